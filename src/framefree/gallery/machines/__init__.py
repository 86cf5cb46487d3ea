"""Worked machines, one file a family."""
