"""Worked machines and scenarios, each one file."""
