"""Estimates and their intervals."""
