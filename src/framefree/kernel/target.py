"""Properties of the processor that the emitter of code needs."""

import functools
import platform
from dataclasses import dataclass

import llvmlite.binding as llvm

from framefree.kernel.graph import CompileError

LANES = (1, 2, 4, 8)


@dataclass(frozen=True)
class Target:
    """A processor: its LLVM name and features, and what follows from them.

    Attributes
    ----------
    cpu, features : str
        As LLVM writes them.
    lanes : int
        Number of states that one vector holds.
    fma : bool
        Whether products and sums fuse into one instruction with one rounding.
    rounding : bool
        Whether floor and ceil are instructions.
    spreads : bool
        Whether an instruction can read one double from memory into all lanes.
    """

    cpu: str
    features: str
    lanes: int
    fma: bool
    rounding: bool
    spreads: bool


@functools.cache
def host(lanes: int | None = None) -> Target:
    """Describe the processor that runs this, with as many lanes as its registers hold."""
    if lanes is not None and lanes not in LANES:
        raise CompileError(f"`lanes` must be one of {LANES}, not {lanes!r}")
    features = llvm.get_host_cpu_features()
    arm = platform.machine().lower() in ("arm64", "aarch64")
    widest = 2
    if features.get("avx512f"):
        widest = 8
    elif features.get("avx"):
        widest = 4
    return Target(
        cpu=llvm.get_host_cpu_name(),
        features=features.flatten(),
        lanes=widest if lanes is None else lanes,
        fma=arm or bool(features.get("fma")),
        rounding=arm or bool(features.get("sse4.1")),
        spreads=bool(features.get("avx512f")),
    )
