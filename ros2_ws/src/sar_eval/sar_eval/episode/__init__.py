"""One episode: the tick loop, the swarm in it, its judgement and its record."""
