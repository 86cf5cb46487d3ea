"""What laws that act on one machine share: which joints, inputs and signals are whose."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import AnyLaw, ControlError
from framefree.control.shared.correspondence import Correspondence
from framefree.machine import Machine
from framefree.machine.part import set_field

Matrix = Any


class LawGroup(AnyLaw):
    """What groups of laws share: whose actuators are whose, and names.

    Every law is checked when the group is made.
    """

    machine: Machine
    laws: Mapping[str, Any]
    uses: Mapping[str, Sequence[str]]

    def __post_init__(self) -> None:
        laws = dict(self.laws)
        for name, law in laws.items():
            if not name or "." in name:
                raise ControlError(f"the name of a law must have no dot in it, got {name!r}")
            if not isinstance(law, AnyLaw):
                raise ControlError(
                    f"LawsTogether takes laws, `{name}` is a {type(law).__name__}; a function is "
                    "made a law by `FunctionLaw(machine, rule)`"
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
