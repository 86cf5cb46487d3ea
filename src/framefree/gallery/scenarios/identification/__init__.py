"""Scenarios in which numbers of machines are found from data."""
