"""The episode as a ROS 2 graph: nodes, the table of them, launch files, and the plain runner."""
