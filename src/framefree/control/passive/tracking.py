"""Joints, and with them a vehicle, follow a trajectory; or keep their station."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from framefree.control.law import Command
from framefree.control.passive.law import CommandedState, PassiveLaw, ReferenceVelocity
from framefree.control.passive.potentials import POSITIONS, check_joints, joint_potentials
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

    Where of a joint some velocities y only follow (`Underactuated`), as sway of a vessel, its
    position is in Ph all the same and draws those that are commanded. What y does to Ph is then
    part of dV/dt, and recorded: `following_power` (W), g_y . (y - carried desired velocity). It is
    all that can make V grow.

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
    units: ClassVar = {**PassiveLaw.units, "following_power": "W"}

    def __post_init__(self) -> None:
        super().__post_init__()
        set_field(self, "stiffness", self.gain("stiffness"))
        set_field(self, "Lambda", self.gain("Lambda"))
        check_joints(self.machine, self.joints, self._joint_stiffness)

    @cached_property
    def _joint_stiffness(self) -> np.ndarray:
        """Stiffness of all velocities of these joints: 0 of what follows, but for positions."""
        parts, given = [], dict(zip(self.places, self.stiffness, strict=True))
        for joint in map(self.machine.joint, self.joints):
            first = self.machine.v_slice[joint.name].start
            own = np.array([given.get(first + k, 0.0) for k in range(joint.nv)])
            positions = own[: POSITIONS.get(type(joint.kind), 0)]
            positions[positions == 0] = positions.max(initial=0.0)
            parts.append(own)
        return np.concatenate(parts) if parts else np.zeros(0)

    def symbols(self) -> dict[str, tuple[Matrix, Matrix]]:
        """Return x, v and a, with dx/dt = v, dv/dt = a; the rate of a is not needed."""
        return joint_symbols(self.machine)

    def desired(self, at: CommandedState) -> tuple[Matrix, Matrix]:
        """Return the configuration and the velocities that are followed."""
        return at.reference["x"], at.reference["v"]

    def follow(self, at: CommandedState) -> ReferenceVelocity:
        """Return the desired velocity, drawn towards where the joints should be."""
        e = joint_potentials(
            self.machine, self.joints, self._joint_stiffness, at.state.x, *self.desired(at)
        )
        own = self.places_in_joints
        pull = e.gradient[own, :]
        pace = ca.DM(self.Lambda) * pull
        loss, signals = ca.dot(pull, pace), {}
        left = [k for k in range(e.gradient.shape[0]) if k not in own]
        if left:
            places = [self.joint_places[k] for k in left]
            power = ca.dot(e.gradient[left, :], at.state.v[places, :] - e.carried[left, :])
            loss, signals = loss - power, {"following_power": power}
        return ReferenceVelocity(e.carried[own, :] - pace, pull, e.potential, loss, signals)


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
