"""Ways round obstacles, and how they are flown."""
