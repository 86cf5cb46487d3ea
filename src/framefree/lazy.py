"""Names of a module that are loaded when they are first used, so that importing stays fast."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy(module: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a module that loads names on first use (PEP 562).

    Parameters
    ----------
    module : str
        The module's own `__name__`.
    places : mapping of str to str
        For each name where it is: "package.module" for a module itself, "package.module:name" for
        something in it.
    """

    def load(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        path, _, inside = places[name].partition(":")
        value = import_module(path)
        if inside:
            value = getattr(value, inside)
        setattr(sys.modules[module], name, value)
        return value

    return load
