"""Vehicles: rigid body, autopilot, estimator, wind and faults."""
