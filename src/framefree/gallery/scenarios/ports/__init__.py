"""Chains that a virtual port controls [Eslami2025]."""
