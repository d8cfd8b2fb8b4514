"""Stage 1's rows and the choice of median seeds."""
