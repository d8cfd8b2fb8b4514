"""What flies: patterns, separation and one controller per drone, fed only with what that drone sensed or was told."""
