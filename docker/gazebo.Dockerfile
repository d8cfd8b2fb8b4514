# PX4's own Gazebo image with sar-eval in its Python, for the CSI system. Nothing of PX4 or Gazebo is built here.
# Context: the repository's top folder. Not built or flown yet by its authors.
ARG PX4_GAZEBO_IMAGE=px4io/px4-sitl-gazebo:v1.17.0
FROM ${PX4_GAZEBO_IMAGE}
USER root
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3-pip python3-gz-math7 python3-gz-msgs10 python3-gz-sim8 \
        python3-gz-transport13 python3-sdformat14 \
    && rm -rf /var/lib/apt/lists/*
COPY pyproject.toml setup.py MANIFEST.in README.md LICENSE CHANGELOG.md CITATION.cff constraints.txt /source/
COPY analysis /source/analysis
COPY configs /source/configs
COPY px4_params /source/px4_params
COPY ros2_ws /source/ros2_ws
COPY worlds /source/worlds
# In a folder of its own, which comes before the distribution's packages and replaces none of them.
RUN pip install --no-cache-dir --target /opt/sar_eval/site -c /source/constraints.txt /source \
    && cp -r /source/ros2_ws/src/sar_gazebo/sar_gazebo /opt/sar_eval/site/ \
    && cp -r /source/ros2_ws/src/sar_gazebo/models /opt/sar_eval/models \
    && rm -r /source \
    && mkdir -m 1777 /runs /var/cache/sar_eval
ENV HOME=/tmp \
    NUMBA_CACHE_DIR=/var/cache/sar_eval \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONPATH=/opt/sar_eval/site \
    GZ_SIM_RESOURCE_PATH=/opt/sar_eval/models:/opt/px4-gazebo/share/gz/models
# A base without Gazebo's Python modules must fail here, not in the air.
RUN python3 -c "import gz.math7, gz.msgs10, gz.sim8, gz.transport13, sdformat14, sar_gazebo.system"
USER 1000:1000
WORKDIR /runs
ENTRYPOINT []
CMD ["gz", "sim", "--help"]
