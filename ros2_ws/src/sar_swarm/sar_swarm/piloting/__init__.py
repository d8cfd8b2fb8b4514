"""What a drone does next: task, pattern, safety, failsafes."""
