"""How a swarm is evaluated: episodes, backends, bags, scores and the command line."""

__version__ = "0.1.0"
