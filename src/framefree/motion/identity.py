"""What the equations of a machine depend on, as a digest: compiled code is found without tracing.

Equations that this package writes are a function of the machine, the formulation, its options and
the package's own source. Where all of these are plain data, their digest tells whether code that
was compiled before may be used. A user's own functions (custom joints, interactions, constraints)
are no plain data: such equations have no identity, and their code is found by its graph.
"""

import functools
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import framefree
from framefree.machine import Machine, MachineError
from framefree.machine.record import encoded

SOURCES = ("geometry", "machine", "motion")
"""Folders that equations are traced by; the key of compiled code covers `kernel` itself."""

UNMOVING = ("name", "geometry", "collisions", "keyframes", "remarks", "ignored")
"""Fields of a machine that do not enter its equations."""


def identity(machine: Machine, formulation: str, options: Mapping[str, Any]) -> bytes | None:
    """Return the digest of all that the equations of a machine depend on; None if unknown."""
    source = _source()
    if source is None:
        return None
    try:
        names = [field.name for field in fields(machine) if field.name not in UNMOVING]
        data = {name: encoded(getattr(machine.numeric, name), name) for name in names}
        plain = {name: encoded(value, name) for name, value in options.items()}
    except MachineError:
        return None
    facts = (data, list(machine.parameters.names), formulation, plain)
    text = json.dumps(facts, sort_keys=True).encode()
    return hashlib.sha256(source + hashlib.sha256(text).digest()).digest()


@functools.cache
def _source() -> bytes | None:
    """Return a digest of the source that traces equations; None if it cannot be read."""
    digest, root = hashlib.sha256(), os.path.dirname(framefree.__file__)
    try:
        for folder in SOURCES:
            for path in _python_files(os.path.join(root, folder)):
                digest.update(os.path.relpath(path, root).replace(os.sep, "/").encode() + b"\0")
                with open(path, "rb") as file:
                    digest.update(file.read() + b"\0")
    except OSError:
        return None
    return digest.digest()


def _python_files(folder: str) -> list[str]:
    """Return the paths of all files of Python code in a folder, in order.

    Every start passes here; `pathlib` would take three times as long.
    """
    paths: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                paths.append(entry.path)
            elif entry.is_dir() and entry.name != "__pycache__":
                paths += _python_files(entry.path)
    return sorted(paths)
