"""Modules whose names are loaded when they are first used, and packages that can be called."""

import inspect
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from framefree.errors import hint


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
            names = getattr(sys.modules[module], "__all__", places)
            question = "" if name.startswith("_") else hint(name, names)
            raise AttributeError(f"module {module!r} has no attribute {name!r}{question}")
        value = resolved(places[name])
        setattr(sys.modules[module], name, value)
        return value

    return load


def resolved(place: str) -> Any:
    """Return what is at "package.module" or "package.module:name"."""
    path, _, inside = place.partition(":")
    module = import_module(path)
    return getattr(module, inside) if inside else module


def make_callable(module: str, function: Callable[..., Any]) -> None:
    """Let a package be called as its function of the same name, which it would shadow.

    ``framefree.simulate(machine, ...)`` then is ``framefree.simulate.simulate(machine, ...)``.
    """

    class CallableModule(ModuleType):
        __signature__ = inspect.signature(function)

        def __call__(self, *arguments: Any, **options: Any) -> Any:
            return function(*arguments, **options)

    CallableModule.__call__.__doc__ = function.__doc__
    sys.modules[module].__class__ = CallableModule
