"""From bags to arrays."""
