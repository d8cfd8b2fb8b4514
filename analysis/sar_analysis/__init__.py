"""From bags to claims: metrics, statistics, pre-registration, tables. No ROS, no simulator."""
