"""Derivatives of forward and inverse dynamics, and linearisation about a trajectory."""
