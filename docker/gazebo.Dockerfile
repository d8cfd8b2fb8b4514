# PX4's own Gazebo image with sar-eval in its Python: for the evaluator, and for the CSI system inside Gazebo.
# Nothing of PX4 or Gazebo is built here. Context: the repository's top folder.
ARG PX4_GAZEBO_IMAGE=px4io/px4-sitl-gazebo:v1.18.0-beta2
FROM ${PX4_GAZEBO_IMAGE}
ARG REVISION=unknown
LABEL org.opencontainers.image.title="sar-eval-gazebo" \
    org.opencontainers.image.version="0.1.0" \
    org.opencontainers.image.revision="${REVISION}" \
    org.opencontainers.image.licenses="Apache-2.0"
USER root
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3-pip python3-gz-math7 python3-gz-msgs10 python3-gz-sim8 \
        python3-gz-transport13 python3-sdformat14 \
    && rm -rf /var/lib/apt/lists/*
COPY pyproject.toml setup.py MANIFEST.in README.md LICENSE CHANGELOG.md CITATION.cff constraints.txt /source/
COPY analysis /source/analysis
COPY configs /source/configs
COPY launch /source/launch
COPY px4_params /source/px4_params
COPY ros2_ws /source/ros2_ws
COPY worlds /source/worlds
# In a folder of its own, which comes before the distribution's packages and replaces none of them.
RUN pip install --no-cache-dir --target /opt/sar_eval/site -c /source/constraints.txt "/source[report,px4]" \
    && rm -r /source \
    && mkdir -m 1777 /sar-eval /sar-eval/runs /var/cache/sar_eval
COPY docker/evaluate.sh docker/probe.py /opt/sar_eval/
# Any user may run it: nothing is written but runs, /tmp and the folder of kernels.
ENV HOME=/tmp \
    MPLCONFIGDIR=/tmp/matplotlib \
    NUMBA_CACHE_DIR=/var/cache/sar_eval \
    PATH=/opt/sar_eval/site/bin:$PATH \
    PX4_BIN=/opt/px4-gazebo/bin/px4 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONPATH=/opt/sar_eval/site \
    PYTHONUNBUFFERED=1 \
    SAR_IMAGE="sar-eval-gazebo 0.1.0 (${REVISION})"
# A base without gz, PX4, its models or Gazebo's Python modules must fail here, not in the air. The kernels' own folder is
# left alone: what root made there, no one else could write to.
RUN export NUMBA_CACHE_DIR=/tmp/kernels \
    && python3 -c "import gz.math7, gz.msgs10, gz.sim8, gz.transport13, sdformat14" \
    && python3 -c "import sar_gazebo.csilistener, sar_gazebo.system, sar_gazebo.process, sar_gazebo.world" \
    && python3 -c "from sar_eval.px4.gazebo import find_parts; print(find_parts())" \
    && sar-eval --help \
    && rm -rf /tmp/kernels
USER 1000:1000
WORKDIR /sar-eval
ENTRYPOINT []
CMD ["sar-eval", "--help"]
