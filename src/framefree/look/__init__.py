"""Looking at machines and runs: trees in text, pictures, and reports that open in a browser."""

from typing import TYPE_CHECKING

from framefree.lazy import lazy

if TYPE_CHECKING:
    from framefree.look import report
    from framefree.look.picture import draw
    from framefree.look.show import describe

__all__ = ["describe", "draw", "report"]

__getattr__ = lazy(
    __name__,
    {
        "describe": "framefree.look.show:describe",
        "draw": "framefree.look.picture:draw",
        "report": "framefree.look.report",
    },
)


def __dir__() -> list[str]:
    return __all__
