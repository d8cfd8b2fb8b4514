"""Flying real PX4: processes, MAVLink links, clocks and health, behind the world an episode flies in."""
