"""The kinematic stage: its matrix of flights, what it knows of sensing, and the oracle beside it."""
