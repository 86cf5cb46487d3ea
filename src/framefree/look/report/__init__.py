"""What people look at after a run: figures, a 3-D animation, one HTML page that opens offline."""

from framefree.look.report.content import (
    Animation,
    Figure,
    Line,
    Page,
    Promise,
    ReportError,
    Setting,
)
from framefree.look.report.defaults import default_animation, default_figures, run_page
from framefree.look.report.page import write

__all__ = [
    "Animation",
    "Figure",
    "Line",
    "Page",
    "Promise",
    "ReportError",
    "Setting",
    "default_animation",
    "default_figures",
    "run_page",
    "write",
]
