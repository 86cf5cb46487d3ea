"""A held body with mass of its own: what each hand carries of it, and how hard they squeeze."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.shared.frames import Frames
from framefree.control.shared.model import ModelState
from framefree.control.tasks.coupling import RigidCoupling
from framefree.machine import Free, Machine

Matrix = Any


@dataclass(frozen=True)
class HeldObject:
    """A free body that hands hold rigidly, and how its load is split among them.

    The wrench that moves the body is the sum of what the hands give. Each gives a share of it; to
    that come forces between pairs of hands, along the line that joins them, which the body feels as
    pressure and not as motion.

    Parameters
    ----------
    body : str
        A body of the machine on a free joint.
    grasps : tuple of RigidCoupling
        From a hand (frame a) to a frame of the body (frame b), which also are tasks.
    shares : numbers, optional
        Of the grasps, of sum 1; by default equal.
    squeeze : float
        Force, N, with which every pair of hands presses the body between them.
    """

    body: str
    grasps: tuple[RigidCoupling, ...]
    shares: Any = None
    squeeze: float = 0.0

    def __post_init__(self) -> None:
        grasps = tuple(self.grasps)
        shares = (
            np.full(len(grasps), 1 / max(len(grasps), 1)) if self.shares is None else self.shares
        )
        shares = tuple(np.asarray(shares, float).tolist())
        if not grasps or len(shares) != len(grasps) or abs(sum(shares) - 1) > 1e-9:
            raise ControlError(
                f"`shares` of the held body `{self.body}` must be {len(grasps)} numbers of sum 1, "
                f"got {self.shares}"
            )
        object.__setattr__(self, "grasps", grasps)
        object.__setattr__(self, "shares", shares)

    def check(self, machine: Machine) -> None:
        """Refuse a machine in which the body is not free, or grasped elsewhere."""
        joint = machine.joints[machine.body_index[machine.body(self.body).name]]
        if not isinstance(joint.kind, Free) or joint.parent != "world":
            raise ControlError(f"the held body `{self.body}` must be on a free joint to the world")
        for grasp in self.grasps:
            if machine.frame(grasp.frame_b).body != self.body:
                raise ControlError(f"frame b of `{grasp.name}` must be on the body `{self.body}`")

    def opened(self, machine: Machine) -> Machine:
        """Return the machine without the loops by which it holds the body."""
        grasped = {(grasp.frame_a, grasp.frame_b) for grasp in self.grasps}
        held = [
            loop.name
            for loop in machine.loops
            if {(loop.frame_a, loop.frame_b), (loop.frame_b, loop.frame_a)} & grasped
        ]
        return machine.detach(*held) if held else machine

    def grip(self, frames: Frames, state: ModelState) -> "Grip":
        """Return the grasps at a state."""
        machine = frames.machine
        joint = machine.joints[machine.body_index[self.body]]
        body = frames.at(self.body, joint.child_pose)
        contacts, reactions, points = [], [], []
        for grasp, share in zip(self.grasps, self.shares, strict=True):
            hand, held = frames.at(grasp.frame_a, grasp.pose), frames.at(grasp.frame_b)
            r = held.p - body.p
            # Wrench in the axes of the free joint to world axes at the grasp: m -> R m - r x R f.
            lever = ca.cross(ca.repmat(r, 1, 3), body.R)
            X = ca.blockcat([[body.R, ca.SX(3, 3)], [-lever, body.R]])
            contacts.append(share * X)
            reactions.append(state.reduced(ca.vertcat(hand.Jv - held.Jv, hand.Jw - held.Jw).T))
            points.append(held.p)
        places = [state.model.v_names.index(name) for name in joint.v_names]
        return Grip(places, contacts, reactions, self._pressure(points))

    def _pressure(self, points: list[Matrix]) -> list[Matrix]:
        """Return the wrench (6) of each hand that presses and does not move the body."""
        wrenches = [ca.SX(6, 1) for _ in points]
        if not self.squeeze:
            return wrenches
        for i, j in combinations(range(len(points)), 2):
            line = points[j] - points[i]
            force = ca.vertcat(self.squeeze * line / ca.sqrt(ca.sumsqr(line)), ca.SX(3, 1))
            wrenches[i], wrenches[j] = wrenches[i] + force, wrenches[j] - force
        return wrenches


class Grip(NamedTuple):
    """The grasps of a held body at one state; wrenches of hands on the body, world axes.

    Attributes
    ----------
    places : list of int
        Where the velocities of the body's free joint are among the independent ones.
    contacts : list of (6 x 6)
        From the generalised force on the free joint to the wrench of each hand.
    reactions : list of (n x 6)
        From that wrench to the forces on independent velocities that motors must give more than
        without the body.
    pressure : list of (6)
        Wrenches of the hands that do not move the body.
    """

    places: list[int]
    contacts: list[Matrix]
    reactions: list[Matrix]
    pressure: list[Matrix]

    def transfer(self, tau: Matrix) -> Matrix:
        """Return forces (n x k) after hands have taken over what the body needs."""
        load = tau[self.places, :]
        pairs = zip(self.reactions, self.contacts, strict=True)
        return tau + sum((r @ (c @ load) for r, c in pairs), ca.SX(tau.shape[0], tau.shape[1]))

    @property
    def offset(self) -> Matrix:
        """Forces (n) of the pressure."""
        pairs = zip(self.reactions, self.pressure, strict=True)
        return sum((r @ p for r, p in pairs), ca.SX(self.reactions[0].shape[0], 1))

    def wrenches(self, tau: Matrix) -> list[Matrix]:
        """Return the wrench (6) of each hand on the body, for forces before the transfer."""
        load = tau[self.places, :]
        return [c @ load + p for c, p in zip(self.contacts, self.pressure, strict=True)]
