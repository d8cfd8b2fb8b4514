"""What is measured of an episode."""
