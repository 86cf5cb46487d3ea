"""Joints, and with them a vehicle, follow a trajectory; or keep their station."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from framefree.control.law import Command
from framefree.control.passive.law import CommandedState, PassiveLaw, ReferenceVelocity
from framefree.control.passive.potentials import check_joints, joint_potentials
from framefree.control.references import Hold
from framefree.machine.part import set_field
from framefree.motion.spatial import Matrix


@dataclass(frozen=True, eq=False)
class PassivityControl(PassiveLaw):
    """All commanded joints follow "x", "v" and "a" of a reference.

        w_r = carried desired velocity - Lambda g,     Ph = sum of the joints' potentials
        V = 1/2 s^T M s + Ph,    dV/dt = -s^T (K + D) s - g^T Lambda g

    with the joints' potentials and their gradients g (`framefree.control.passive.potentials`): free
    bases and ball joints have no Euler angles, and no attitude at which the law is not defined.

    Parameters
    ----------
    machine, K, freedom, form, drag, within_limits :
        As in `PassiveLaw`.
    stiffness : float or (n,)
        Of the potentials, N/m and Nm/rad. Positions in space have one for all directions.
    Lambda : float or (n,)
        Pace by force: w_r has -Lambda g, so that errors decay at about Lambda stiffness.
    """

    stiffness: Any = 20.0
    Lambda: Any = 0.1

    needs: ClassVar[tuple[str, ...]] = ("x", "v", "a")

    def __post_init__(self) -> None:
        super().__post_init__()
        set_field(self, "stiffness", self.gain("stiffness"))
        set_field(self, "Lambda", self.gain("Lambda"))
        check_joints(self.machine, self.joints, self.stiffness)

    def symbols(self) -> dict[str, tuple[Matrix, Matrix]]:
        """Return x, v and a, with dx/dt = v, dv/dt = a; the rate of a is not needed."""
        return joint_symbols(self.machine)

    def desired(self, at: CommandedState) -> tuple[Matrix, Matrix]:
        """Return the configuration and the velocities that are followed."""
        return at.reference["x"], at.reference["v"]

    def follow(self, at: CommandedState) -> ReferenceVelocity:
        """Return the desired velocity, drawn towards where the joints should be."""
        e = joint_potentials(
            self.machine, self.joints, self.stiffness, at.state.x, *self.desired(at)
        )
        pace = ca.DM(self.Lambda) * e.gradient
        loss = ca.dot(e.gradient, pace)
        return ReferenceVelocity(e.carried - pace, e.gradient, e.potential, loss, {})


def joint_symbols(machine: Any) -> dict[str, tuple[Matrix, Matrix]]:
    """Return symbols of x, v and a of a machine, each with its rate."""
    x, v, a = (ca.SX.sym(f"{n}_d", size) for n, size in
               (("x", machine.nx), ("v", machine.nv), ("a", machine.nv)))  # fmt: skip
    return {"x": (x, machine.rate_matrix(x) @ v), "v": (v, a), "a": (a, ca.SX(machine.nv, 1))}


@dataclass(frozen=True, eq=False)
class StationKeeping(PassivityControl):
    """`PassivityControl` at one configuration, against current, gravity and pushes.

    It needs no reference.

    Parameters
    ----------
    place : (nx,)
        Where to stay, by default neutral.
    """

    place: Any = None

    needs: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        place = self.machine.neutral() if self.place is None else self.place
        set_field(self, "place", np.asarray(Hold(self.machine, place).x))

    def desired(self, at: CommandedState) -> tuple[Matrix, Matrix]:
        """Return the place, at rest."""
        return ca.DM(self.place), ca.SX(self.machine.nv, 1)

    def symbols(self) -> dict[str, tuple[Matrix, Matrix]]:
        """Return none."""
        return {}

    def control(
        self, t: Matrix, x: Matrix, v: Matrix, reference: Mapping[str, Matrix], memory: Matrix
    ) -> Command:
        """Return the inputs at a state."""
        return super().control(t, x, v, reference, memory)
