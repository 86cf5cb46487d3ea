"""Things of the gallery by name; a name that is not there is answered by those that are near."""

from collections.abc import Mapping
from typing import TypeVar

from framefree.errors import FramefreeError, near

Item = TypeVar("Item")


class NotInGalleryError(FramefreeError, KeyError):
    """The gallery has nothing of this name."""

    def __str__(self) -> str:
        return str(self.args[0])


class Catalogue(dict[str, Item]):
    """A dictionary of the gallery.

    Parameters
    ----------
    kind : str
        What it holds: "machine" or "scenario".
    things : mapping
        By name, in the order of lists.
    """

    def __init__(self, kind: str, things: Mapping[str, Item]) -> None:
        super().__init__(things)
        self.kind = kind

    def __missing__(self, name: str) -> Item:
        raise NotInGalleryError(
            f"the gallery has no {self.kind} `{name}`; {near(name, self)}it has: {', '.join(self)}"
        )
