"""Vehicles that carry arms [From2010]."""
