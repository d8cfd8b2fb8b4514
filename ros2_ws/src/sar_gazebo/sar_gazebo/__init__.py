"""Gazebo's side: the CSI system, staged worlds, and the bridge from Gazebo's messages to ours."""
