"""Looking at machines and runs: trees in text, pictures, reports, and a live view in a browser."""

from typing import TYPE_CHECKING

from framefree.lazy import lazy

if TYPE_CHECKING:
    from framefree.look import report
    from framefree.look.picture import draw
    from framefree.look.show import describe
    from framefree.look.view import view

__all__ = ["describe", "draw", "report", "view"]

__getattr__ = lazy(
    __name__,
    {
        "describe": "framefree.look.show:describe",
        "draw": "framefree.look.picture:draw",
        "report": "framefree.look.report",
        "view": "framefree.look.view:view",
    },
)


def __dir__() -> list[str]:
    return __all__
