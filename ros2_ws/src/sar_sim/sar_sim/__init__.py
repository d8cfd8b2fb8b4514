"""What the swarm flies in: worlds, vehicles with PX4's control law, wind, link, and the referee who knows the truth."""
