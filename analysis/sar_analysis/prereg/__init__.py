"""Claims written down before flying."""
