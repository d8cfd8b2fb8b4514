"""What a verb finds out: missions of a condition, patterns, encounters, sweeps, calibration."""
