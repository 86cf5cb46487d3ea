"""Scenarios of what a law does not know: loads."""
