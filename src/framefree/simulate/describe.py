"""Laws, references and the like as plain data, for the header of a record."""

import platform
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from framefree.errors import FramefreeError
from framefree.machine import Machine
from framefree.motion.redundant import System

PACKAGES = ("framefree", "numpy", "scipy", "casadi", "llvmlite", "mujoco")


def described(value: Any) -> Any:
    """Return a value as data that JSON can hold; what has no such form by its `repr`."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else str(float(value))
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.ndarray):
        return described(value.tolist())
    if isinstance(value, tuple | list):
        return [described(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): described(item) for key, item in value.items()}
    if isinstance(value, Machine | System):
        return machine_data(value)
    if is_dataclass(value) and not isinstance(value, type):
        items = {f.name: described(getattr(value, f.name)) for f in fields(value) if f.init}
        return {"type": type(value).__name__, **items}
    if callable(value):
        return f"<{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value)}>"
    own = {k: v for k, v in getattr(value, "__dict__", {}).items() if not k.startswith("_")}
    return {"type": type(value).__name__, **{key: described(item) for key, item in own.items()}}


def machine_data(machine: Machine | System) -> Any:
    """Return a machine as data, or its name where it has parts that live only in Python."""
    try:
        return machine.to_dict()
    except FramefreeError as error:
        return {"name": machine.name, "not_recorded": str(error)}


def versions() -> dict[str, str]:
    """Return the versions of what a result depends on."""
    return dict(_versions())


@cache
def _versions() -> dict[str, str]:
    from importlib import metadata  # slow to import

    names = {"python": platform.python_version(), "machine": platform.machine()}
    for name in PACKAGES:
        try:
            names[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return names
