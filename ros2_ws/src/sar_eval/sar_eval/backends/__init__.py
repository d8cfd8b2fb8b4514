"""What an episode flies in: the protocol that every tier keeps, and the embedded one."""
