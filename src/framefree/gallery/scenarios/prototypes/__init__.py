"""Closed loops shaped after a prototype; multicopters [Konz2024]."""
