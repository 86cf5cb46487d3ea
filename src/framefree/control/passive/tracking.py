"""Joints, and with them a vehicle, follow a trajectory; or keep their station."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from framefree.control.law import Command
from framefree.control.passive.errors import Error, check_joints, joint_errors
from framefree.control.passive.law import Given, PassiveLaw, Wish
from framefree.control.references import Hold
from framefree.machine.part import set_field
from framefree.motion.spatial import Matrix


@dataclass(frozen=True, eq=False)
class PassivityControl(PassiveLaw):
    """All commanded joints follow "x", "v" and "a" of a reference.

        w_r = carried desired velocity - Lambda g,     Ph = sum of the joints' potentials
        V = 1/2 s^T M s + Ph,    dV/dt = -s^T (K + D) s - g^T Lambda g

    with potentials and their gradients g as in `framefree.control.passive.errors`: free bases and
    ball joints have no Euler angles, and no attitude at which the law is not defined.

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

    def errors(self, given: Given) -> Error:
        """Return the error of all commanded joints."""
        wanted = given.reference
        return joint_errors(
            self.machine, self.joints, self.stiffness, given.state.x, wanted["x"], wanted["v"]
        )

    def wish(self, given: Given) -> Wish:
        """Return the desired velocity, drawn towards where the joints should be."""
        e = self.errors(given)
        pace = ca.DM(self.Lambda) * e.gradient
        return Wish(e.carried - pace, e.gradient, e.potential, ca.dot(e.gradient, pace), {})


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

    def errors(self, given: Given) -> Error:
        """Return the error of all commanded joints."""
        still = ca.SX(self.machine.nv, 1)
        place = ca.DM(self.place)
        return joint_errors(self.machine, self.joints, self.stiffness, given.state.x, place, still)

    def symbols(self) -> dict[str, tuple[Matrix, Matrix]]:
        """Return none."""
        return {}

    def control(
        self, t: Matrix, x: Matrix, v: Matrix, reference: Mapping[str, Matrix], memory: Matrix
    ) -> Command:
        """Return the inputs at a state."""
        return super().control(t, x, v, {}, memory)
