"""What laws of all (independent) velocities share: their model, allocation and gains."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from framefree.control.law import Law
from framefree.control.shared.allocation import Allocation
from framefree.control.shared.gains import joint_gain
from framefree.control.shared.model import Model
from framefree.machine import Machine
from framefree.machine.part import set_field


class AllocatingLaw(Law):
    """A law that asks for forces on the independent velocities, and allocates them."""

    machine: Machine
    independent: Sequence[str] | None
    weight: Any
    limits: bool | str

    @cached_property
    def model(self) -> Model:
        """The machine in independent velocities."""
        return Model(self.machine, self.independent)

    @cached_property
    def allocation(self) -> Allocation:
        """From forces to inputs."""
        return Allocation(self.model, self.weight, self.limits)


@dataclass(frozen=True, eq=False)
class JointLaw(AllocatingLaw):
    """Base of laws with a stiffness and a damping over all velocities, both positive definite.

    The machine needs an actuator for every velocity, or for every independent one where loops or
    couplings leave fewer: see `Model`. Only the independent joints of a reference are read.
    `weight` and `limits` are those of `Allocation`.
    """

    machine: Machine
    stiffness: Any
    damping: Any
    independent: Sequence[str] | None = None
    weight: Any = None
    limits: bool | str = False

    def __post_init__(self) -> None:
        for name in ("stiffness", "damping"):
            gain = joint_gain(getattr(self, name), self.model.joints, name)
            set_field(self, name, gain)
        self.allocation.require_full(self.name)
