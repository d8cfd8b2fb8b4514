"""The episode as a ROS 2 graph: thin shells around the same parts that fly in one process."""
