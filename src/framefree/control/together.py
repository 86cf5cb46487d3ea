"""Several laws in one run: one for each robot, or for each group of joints.

Every law has a machine of its own, whose joints and actuators are found in the whole machine by
name, reads references and records signals under its own name, and has its part of the memory. The
inputs of the whole machine are the sum of what the laws give. An input that two laws would use is
refused; those that none uses are zero.

Laws that are expressions stay one. As soon as one of them is a law in numbers, all together are one
too (`framefree.control.numeric_together`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca

from framefree.control.law import (
    UNKNOWN_FORCE,
    AnyLaw,
    Command,
    ControlError,
    Law,
    NumericLaw,
    Timing,
)
from framefree.control.law_group import LawGroup
from framefree.control.numeric_together import NumericLawsTogether
from framefree.machine import Machine

Matrix = Any


@dataclass(frozen=True, eq=False)
class LawsTogether(LawGroup, Law):
    """Laws that act on one machine at the same time.

    A law `left` reads "left.x" where it needs "x" (`framefree.control.references.Named` gives it
    that), and the sensor "left.force" where it measures "force"; it records "left.V" where alone it
    would record "V".

    Parameters
    ----------
    machine : Machine
        The whole: every joint and every actuator of the laws' machines is one of it.
    laws : mapping of str to Law or NumericLaw
        With a law in numbers among them they are made a `NumericLawsTogether`.
    uses : mapping of str to sequence of str
        Names of the actuators that a law may use, by the name of the law; by default all of its
        machine's. What it says of the others is left out.
    """

    machine: Machine
    laws: Mapping[str, Any]
    uses: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __new__(cls, machine: Machine, laws: Mapping[str, Any], *more: Any, **named: Any) -> Any:
        """Return what the laws allow: an expression, or a law in numbers."""
        if not isinstance(laws, Mapping):
            raise ControlError(
                "`laws` of LawsTogether must map names to laws, such as {'left': law, 'right': "
                f"other}}, got {laws!r}"
            )
        if any(isinstance(law, NumericLaw) for law in dict(laws).values()):
            return NumericLawsTogether(machine, laws, *more, **named)
        return super().__new__(cls)

    @property
    def takes(self) -> tuple[str, ...]:
        """An estimate of unknown forces, where a law can use it."""
        taken = any(UNKNOWN_FORCE in law.takes for law in self.laws.values())
        return (UNKNOWN_FORCE,) if taken else ()

    def timed(self, timing: Timing) -> AnyLaw:
        """Return the laws as they must be for a control period and a delay."""
        laws = {name: law.timed(timing) for name, law in self.laws.items()}
        return LawsTogether(self.machine, laws, self.uses)  # type: ignore[arg-type]

    def control(
        self, t: Matrix, x: Matrix, v: Matrix, reference: Mapping[str, Matrix], memory: Matrix
    ) -> Command:
        """Return the sum of the laws' inputs, and what each of them records."""
        u, signals, first = ca.SX(self.machine.nu, 1), {}, 0
        following, rates = [], []
        for name, law in self.laws.items():
            known, size = self._known[name], len(law.memory)
            own = memory[first : first + size]
            first += size
            state = known.x(x), known.v(v)
            made = law.control(t, *state, self._reference(name, reference), own)
            for actuator in self._used(name):
                places = law.machine.u_slice[actuator]
                u[self.machine.u_slice[actuator]] = made.u[places]
            signals |= {f"{name}.{key}": value for key, value in made.signals.items()}
            following.append(own if made.memory is None else made.memory)
            rates.append(ca.SX(size, 1) if made.rate is None else made.rate)
        if not memory.shape[0]:
            return Command(u, signals)
        return Command(u, signals, ca.vertcat(*following), ca.vertcat(*rates))

    def _reference(self, name: str, reference: Mapping[str, Matrix]) -> dict[str, Matrix]:
        """Return what one law reads."""
        begin = f"{name}."
        own = {k.removeprefix(begin): v for k, v in reference.items() if k.startswith(begin)}
        if UNKNOWN_FORCE in reference and UNKNOWN_FORCE in self.laws[name].takes:
            own[UNKNOWN_FORCE] = self._known[name].v(reference[UNKNOWN_FORCE])
        return own
