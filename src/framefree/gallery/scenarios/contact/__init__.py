"""Scenarios of bodies that touch."""
