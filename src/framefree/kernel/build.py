"""From a CasADi function to an object file, by way of the cache."""

import hashlib
import json
import os
import sys
import sysconfig
from pathlib import Path
from typing import Any, NamedTuple

import casadi as ca
import llvmlite
import llvmlite.binding as llvm
import numpy as np

from framefree.kernel import cache
from framefree.kernel.graph import Port
from framefree.kernel.interpreter import HEADER
from framefree.kernel.native import TileLayout
from framefree.kernel.target import Target


def build(
    function: ca.Function,
    inputs: tuple[Port, ...],
    outputs: tuple[Port, ...],
    target: Target,
    keep: bool | str | os.PathLike,
) -> tuple[bytes, TileLayout]:
    """Return the object file of a function, from the cache if it is there.

    `keep` says whether to use the cache, or names a folder for it.
    """
    key = graph_key(function, inputs, outputs, target) if keep and cache.enabled() else None
    place = None if key is None else cache.place(None if isinstance(keep, bool) else keep)
    if key is not None and (stored := stored_object(key, place)) is not None:
        return stored
    from framefree.kernel.emission import object_file

    binary, layout = object_file(function, inputs, outputs, target)
    if key is not None:
        facts = json.dumps(vars(layout)).encode()
        cache.store(key, len(facts).to_bytes(4, "little") + facts + binary, place)
    return binary, layout


def stored_object(key: bytes, place: Path | None = None) -> tuple[bytes, TileLayout] | None:
    """Return the object file that the cache has under a key; None if it has none."""
    stored = cache.load(key, place)
    if stored is None:
        return None
    length = int.from_bytes(stored[:4], "little")
    return stored[4 + length :], TileLayout(**json.loads(stored[4 : 4 + length]))


class KnownCode(NamedTuple):
    """Compiled code that was found without its function."""

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    binary: bytes
    layout: TileLayout


def known_key(identity: bytes, target: Target) -> bytes | None:
    """Return the key of a function that is known by its identity; None if versions are unknown."""
    if VERSIONS is None:
        return None
    facts = repr((ca.CasadiMeta.version(), target)).encode()
    return hashlib.sha256(b"known" + VERSIONS + hashlib.sha256(facts).digest() + identity).digest()


def stored_code(key: bytes) -> KnownCode | None:
    """Return the code to which the cache has a pointer under this key; None if it has none."""
    pointer = cache.load(key)
    if pointer is None:
        return None
    facts = json.loads(pointer)
    stored = stored_object(bytes.fromhex(facts["graph"]))
    if stored is None:
        return None
    inputs, outputs = (
        tuple(Port(name, tuple(shape)) for name, shape in facts[ports])
        for ports in ("inputs", "outputs")
    )
    return KnownCode(facts["name"], inputs, outputs, *stored)


def store_pointer(
    key: bytes,
    function: ca.Function,
    inputs: tuple[Port, ...],
    outputs: tuple[Port, ...],
    target: Target,
) -> None:
    """Let the cache find the code of a function under a key that needs no graph."""
    graph = graph_key(function, inputs, outputs, target)
    if graph is None:
        return
    facts: dict[str, Any] = {"name": function.name(), "graph": graph.hex()}
    for name, ports in (("inputs", inputs), ("outputs", outputs)):
        facts[name] = [(port.name, port.shape) for port in ports]
    cache.store(key, json.dumps(facts).encode())


def graph_key(
    function: ca.Function, inputs: tuple[Port, ...], outputs: tuple[Port, ...], target: Target
) -> bytes | None:
    """Return what the object file depends on, as a digest; None if that is unknown."""
    try:
        serial = function.serialize()
    except RuntimeError:
        return None
    if VERSIONS is None:
        return None
    parts = [VERSIONS, repr((inputs, outputs, target)).encode(), serial.encode()]
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).digest()


def _versions() -> bytes | None:
    """Digest everything but the function: this package's code, the compiler, the interpreter."""
    facts = (
        llvmlite.__version__,
        llvm.llvm_version_info,
        llvm.get_process_triple(),
        sys.implementation.cache_tag,
        sysconfig.get_config_var("SOABI"),
        HEADER,
        np._core.multiarray._get_ndarray_c_version(),  # type: ignore[attr-defined]
    )
    digest = hashlib.sha256(repr(facts).encode())
    try:
        for path in sorted(Path(__file__).parent.rglob("*.py")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    except OSError:
        return None
    return digest.digest()


VERSIONS = _versions()
"""Taken when this code was loaded: later the files may be those of another version."""
