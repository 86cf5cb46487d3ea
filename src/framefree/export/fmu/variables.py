"""The numbers of a block as variables of an FMU, each with its value reference."""

from dataclasses import dataclass
from typing import NamedTuple

from framefree.export.block import BlockPort, StepBlock

CLOCK = "t"
"""Input of a controller that is the time itself: the master gives it with every step."""
COUNTS = ("count_of_steps",)
"""Memory that follows from the time."""


class FmuVariable(NamedTuple):
    """One number.

    Attributes
    ----------
    reference : int
        Its value reference: 0 is the time.
    name, unit, about : str
    causality : "input", "output", "parameter" or "local"
    variability : "continuous", "discrete" or "tunable"
    start : float or None
        First value; None where it is calculated.
    state : int or None
        Of a rate, the value reference of what it is the rate of.
    """

    reference: int
    name: str
    unit: str
    about: str
    causality: str
    variability: str
    start: float | None
    state: int | None = None


class FmuRange(NamedTuple):
    """Value references first, first + 1, ... of numbers of a struct in C, from `offset` on."""

    first: int
    count: int
    struct: str
    offset: int


@dataclass(frozen=True)
class FmuLayout:
    """All variables of a block, and where C has them.

    Attributes
    ----------
    variables : tuple of FmuVariable
    ranges : tuple of FmuRange
    continuous : bool
        Whether it can be integrated by the master (model exchange).
    """

    variables: tuple[FmuVariable, ...]
    ranges: tuple[FmuRange, ...]
    continuous: bool

    @property
    def states(self) -> list[FmuVariable]:
        """The continuous states."""
        by_reference = {one.reference: one for one in self.variables}
        return [by_reference[one.state] for one in self.rates if one.state is not None]

    @property
    def rates(self) -> list[FmuVariable]:
        """Their rates, in the same order."""
        return [one for one in self.variables if one.state is not None]

    def of(self, causality: str) -> list[FmuVariable]:
        """Return the variables of one causality."""
        return [one for one in self.variables if one.causality == causality]


def lay_out_variables(block: StepBlock) -> FmuLayout:
    """Choose names and value references for all numbers of a block."""
    maker = _Maker()
    continuous = block.rates is not None
    for group, ports in block.groups.items():
        single = len(block.groups) == 1
        for port, offset in _offsets(ports):
            if port.name != CLOCK:
                prefix = port.name if single else f"{group}.{port.name}"
                kind = "continuous" if continuous else "discrete"
                maker.add(port, offset, group, prefix, "input", kind, [0.0] * port.size)
    kind = "continuous" if continuous else "discrete"
    for port, offset in _offsets(block.outputs):
        maker.add(port, offset, "out", port.name, "output", kind, None)
    moving = () if block.rates is None else block.rates.states
    states: dict[str, int] = {}
    for port, offset in _offsets(block.memory):
        if port.name in COUNTS:
            continue
        start = [float(value) for value in block.start[port.name]]
        if port.name in block.held:
            maker.add(port, offset, "memory", port.name, "parameter", "tunable", start)
            continue
        states[port.name] = maker.next
        kind = "continuous" if port.name in moving else "discrete"
        maker.add(port, offset, "memory", f"state.{port.name}", "local", kind, start)
    if block.rates is not None:
        rated = tuple(port for port in block.memory if port.name in moving)
        for port, offset in _offsets(rated):
            maker.add(
                port, offset, "rate", f"state.{port.name}", "local", "continuous", None,
                states[port.name],
            )  # fmt: skip
    return FmuLayout(tuple(maker.variables), tuple(maker.ranges), continuous)


class _Maker:
    def __init__(self) -> None:
        self.variables: list[FmuVariable] = []
        self.ranges: list[FmuRange] = []
        self.next = 1

    def add(
        self,
        port: BlockPort,
        offset: int,
        struct: str,
        prefix: str,
        causality: str,
        variability: str,
        start: list[float] | None,
        state: int | None = None,
    ) -> None:
        self.ranges.append(FmuRange(self.next, port.size, struct, offset))
        for k in range(port.size):
            name = prefix if port.size == 1 else f"{prefix}[{port.entry(k)}]"
            unit, about = port.unit(k), port.about
            if state is not None:
                name, about = f"der({name})", f"rate of {about}"
                unit = f"{unit}/s" if unit else ""
            self.variables.append(
                FmuVariable(
                    self.next, name, unit, about, causality, variability,
                    None if start is None else start[k], None if state is None else state + k,
                )
            )  # fmt: skip
            self.next += 1


def _offsets(ports: tuple[BlockPort, ...]) -> list[tuple[BlockPort, int]]:
    made, at = [], 0
    for port in ports:
        made.append((port, at))
        at += port.size
    return made
