"""What people look at after a run: figures, a 3-D animation, one HTML page that opens offline."""

from framefree.report.content import Animation, Figure, Line

__all__ = ["Animation", "Figure", "Line"]
