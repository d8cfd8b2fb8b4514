"""From YAML to an episode: scenarios, episode sets, tiers, and where shared files lie."""
