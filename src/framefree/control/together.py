"""Several laws in one run: one for each robot, or for each group of joints.

Every law has a machine of its own, whose joints and actuators are found in the whole machine by
name, reads references and records signals under its own name, and has its part of the memory. The
inputs of the whole machine are the sum of what the laws give. An input that two laws would use is
refused; those that none uses are zero.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import UNKNOWN_FORCE, AnyLaw, Command, ControlError, Law, Timing
from framefree.control.shared.correspondence import Correspondence
from framefree.machine import Machine
from framefree.machine.part import set_field

Matrix = Any


@dataclass(frozen=True, eq=False)
class LawsTogether(Law):
    """Laws that act on one machine at the same time.

    A law `left` reads "left.x" where it needs "x" (`framefree.control.references.Named` gives it
    that), and the sensor "left.force" where it measures "force"; it records "left.V" where alone it
    would record "V".

    Parameters
    ----------
    machine : Machine
        The whole: every joint and every actuator of the laws' machines is one of it.
    laws : mapping of str to Law
    uses : mapping of str to sequence of str
        Names of the actuators that a law may use, by the name of the law; by default all of its
        machine's. What it says of the others is left out.
    """

    machine: Machine
    laws: Mapping[str, Law]
    uses: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        laws = dict(self.laws)
        for name, law in laws.items():
            if not name or "." in name:
                raise ControlError(f"the name of a law must have no dot in it, got {name!r}")
            if not isinstance(law, Law):
                raise ControlError(
                    f"LawsTogether takes laws that are expressions; `{name}` is a "
                    f"{type(law).__name__}"
                )
        if not laws:
            raise ControlError("LawsTogether needs laws")
        for name in self.uses:
            if name not in laws:
                raise ControlError(f"`uses` names `{name}`, which is none of: {', '.join(laws)}")
        set_field(self, "laws", MappingProxyType(laws))
        self._check_inputs()

    def _check_inputs(self) -> None:
        """Refuse actuators that two laws use."""
        owner: dict[str, str] = {}
        for name in self.laws:
            self._known[name]
            for actuator in self._used(name):
                if actuator in owner:
                    raise ControlError(
                        f"the actuator `{actuator}` is used by the laws `{owner[actuator]}` and "
                        f"`{name}`; say in `uses` which of them it belongs to"
                    )
                owner[actuator] = name

    def _used(self, name: str) -> tuple[str, ...]:
        """Return the names of the actuators that a law uses."""
        own = tuple(actuator.name for actuator in self.laws[name].machine.actuators)
        given = self.uses.get(name)
        for actuator in given or ():
            if actuator not in own:
                raise ControlError(
                    f"`uses` of law `{name}` names actuator `{actuator}`, which its machine does "
                    f"not have; it has {', '.join(own) or 'none'}"
                )
        return own if given is None else tuple(given)

    @cached_property
    def _known(self) -> dict[str, Correspondence]:
        return {name: Correspondence(self.machine, law.machine) for name, law in self.laws.items()}

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the reference signals, each with that of its law."""
        return tuple(f"{name}.{one}" for name, law in self.laws.items() for one in law.needs)

    @property
    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """Rows and columns of these signals."""
        laws = self.laws.items()
        return {f"{name}.{one}": shape for name, law in laws for one, shape in law.shapes.items()}

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the sensors that the laws read, each with that of its law."""
        return tuple(f"{name}.{one}" for name, law in self.laws.items() for one in law.measures)

    @property
    def takes(self) -> tuple[str, ...]:
        """An estimate of unknown forces, where a law can use it."""
        taken = any(UNKNOWN_FORCE in law.takes for law in self.laws.values())
        return (UNKNOWN_FORCE,) if taken else ()

    @property
    def units(self) -> Mapping[str, str]:  # type: ignore[override]
        """Units of the signals."""
        laws = self.laws.items()
        return {f"{name}.{key}": unit for name, law in laws for key, unit in law.units.items()}

    @property
    def memory(self) -> np.ndarray:
        """The laws' memories, one after the other."""
        return np.concatenate([np.zeros(0), *(law.memory for law in self.laws.values())])

    def first_memory(self, x: Matrix, v: Matrix) -> Matrix:
        """Return the memories at the first state."""
        parts = [
            law.first_memory(self._known[name].x(x), self._known[name].v(v))
            for name, law in self.laws.items()
        ]
        return ca.vertcat(ca.SX(0, 1), *parts)

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
