"""Properties of the processor that the emitter of code needs.

Environment: with ``FRAMEFREE_COMPILE=quick`` kernels are compiled in haste. Results keep their
bits; compiling takes less time and the code runs slower, which suits test suites that run much code
once.
"""

import functools
import os
import platform
from dataclasses import dataclass, field

import llvmlite.binding as llvm

from framefree.kernel.graph import CompileError

LANES = (1, 2, 4, 8)
SINGLE_LANES = (2, 4, 8, 16)
FULL, QUICK = "full", "quick"


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
    single : bool
        Whether kernels compute in single precision, twice as many states in a register.
    quick : bool
        Whether code is compiled in haste: the same bits, slower.
    triple : str, optional
        System that the code is for, as LLVM writes it; by default the one that this runs on.
    """

    cpu: str
    features: str
    lanes: int
    fma: bool
    rounding: bool
    spreads: bool
    single: bool = False
    quick: bool = False
    triple: str = field(default_factory=llvm.get_process_triple)

    @property
    def number(self) -> str:
        """LLVM's name of the numbers that kernels compute with."""
        return "float" if self.single else "double"

    @property
    def bytes(self) -> int:
        """Size of such a number."""
        return 4 if self.single else 8

    @property
    def width(self) -> int:
        """Bytes of a vector: of one slot of a workspace."""
        return self.lanes * self.bytes


def host(lanes: int | None = None, *, single: bool = False) -> Target:
    """Describe the processor that runs this, with as many lanes as its registers hold."""
    asked = os.environ.get("FRAMEFREE_COMPILE") or FULL
    if asked not in (FULL, QUICK):
        raise CompileError(f"FRAMEFREE_COMPILE must be `{FULL}` or `{QUICK}`, not `{asked}`")
    return _host(lanes, single, asked == QUICK)


@functools.cache
def _host(lanes: int | None, single: bool, quick: bool) -> Target:
    known = SINGLE_LANES if single else LANES
    if lanes is not None and lanes not in known:
        raise CompileError(f"`lanes` must be one of {known}, not {lanes!r}")
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
        lanes=widest * (1 + single) if lanes is None else lanes,
        fma=arm or bool(features.get("fma")),
        rounding=arm or bool(features.get("sse4.1")),
        spreads=bool(features.get("avx512f")),
        single=single,
        quick=quick,
    )
