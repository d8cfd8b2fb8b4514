# Foxglove's bridge and rosbag2's player, with our message types. Context: the repository's top folder.
ARG ROS_IMAGE=ros:jazzy-ros-base-noble
FROM ${ROS_IMAGE}
LABEL org.opencontainers.image.title="sar-eval-viz" org.opencontainers.image.version="0.1.0" \
    org.opencontainers.image.licenses="Apache-2.0"
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ros-jazzy-foxglove-bridge ros-jazzy-rosbag2-storage-mcap \
    && rm -rf /var/lib/apt/lists/*
COPY ros2_ws/src/sar_msgs /ws/src/sar_msgs
RUN . /opt/ros/jazzy/setup.sh && cd /ws && colcon build --merge-install && rm -r build log src && mkdir -p /sar-eval/runs
COPY docker/play.sh /opt/sar_eval/play.sh
ENV HOME=/tmp ROS_LOG_DIR=/tmp/ros ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST
USER 1000:1000
WORKDIR /sar-eval
ENTRYPOINT ["/bin/bash", "-c", ". /opt/ros/jazzy/setup.bash && . /ws/install/setup.bash && exec \"$@\"", "viz"]
CMD ["ros2", "run", "foxglove_bridge", "foxglove_bridge", "--ros-args", "-p", "port:=8765"]
