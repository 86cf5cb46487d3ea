"""Closed chains in minimal coordinates, and robust control [Dastranj2026]."""
