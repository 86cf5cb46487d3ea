"""A held body with mass of its own: what each hand carries of it, and how hard they squeeze.

Hand i can give wrenches P_i f_i, at the body's joint frame and in its axes; P_i spans what its
grasp blocks, all six directions for a weld. The wrench that moves the body, `load`, is split so
that the sum of |P_i f_i|^2 / share_i is the smallest (moments over a length of the grasps):

    P_i f_i = D_i load,    D_i = S_i (sum S_j)^+,    S_i = share_i P_i (P_i^T W P_i)^-1 P_i^T

which for welds is D_i = share_i. Wrenches t_i that press and do not move come on top, and what of
them would move the body is taken off by the same split: t_i - D_i sum t_j.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.shared.frames import Frames
from framefree.control.shared.gains import as_numbers
from framefree.control.shared.model import ModelState
from framefree.control.tasks.coupling import RigidCoupling
from framefree.control.tasks.grasp_feedback import integral_rate, measured_wrench, within
from framefree.geometry import so3
from framefree.machine import Free, Machine
from framefree.machine.values import is_symbolic
from framefree.motion.constrained.solve import null_space

Matrix = Any
_NOTHING: Mapping[str, Matrix] = MappingProxyType({})


@dataclass(frozen=True)
class HeldObject:
    """A free body that hands hold, and how its load is split among them.

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
    targets : bool
        Whether the reference has wrenches of the hands on the body: "GRASP.target" (6), force and
        moment at the grasp in the axes of its frame b, of every grasp. They are met as far as
        they do not move the body and the grasp can carry them.
    carries : numbers, optional
        Largest size of each force and moment (6) that a grasp can carry, in the axes of its frame
        b, N and Nm; or one such row for every grasp. Hands press no harder; `LimitedTaskControl`
        keeps them in motion too, and the signal GRASP.use tells the largest share that is used.
    feedback : float
        K, 1/s: how fast what is missing of the pressure is made up for, as sensors tell it
        (`framefree.control.tasks.grasp_feedback`); 0 for no feedback. The sensor
        "GRASP.measured" tells the wrench on the hand, at frame a of the grasp and in its axes
        (`framefree.simulate.ForceSensor`); the signal GRASP.wrench_error tells e.
    """

    body: str
    grasps: tuple[RigidCoupling, ...]
    shares: Any = None
    squeeze: float = 0.0
    targets: bool = False
    carries: Any = None
    feedback: float = 0.0

    def __post_init__(self) -> None:
        grasps = tuple(self.grasps)
        shares = (
            np.full(len(grasps), 1 / max(len(grasps), 1)) if self.shares is None else self.shares
        )
        owner = f"the held body `{self.body}`"
        shares = tuple(as_numbers(shares, "shares", owner).tolist())
        if not np.isfinite(as_numbers(self.squeeze, "squeeze", owner)).all():
            raise ControlError(f"`squeeze` of {owner} must be finite, got {self.squeeze}")
        if not grasps or len(shares) != len(grasps) or abs(sum(shares) - 1) > 1e-9:
            raise ControlError(
                f"`shares` of the held body `{self.body}` must be {len(grasps)} numbers of sum 1, "
                f"got {self.shares}"
            )
        if min(shares) < 0 or (min(shares) == 0 and any(g.kind != "weld" for g in grasps)):
            raise ControlError(
                f"`shares` of the held body `{self.body}` must not be negative, and positive where "
                f"a grasp is not a weld; got {self.shares}"
            )
        object.__setattr__(self, "grasps", grasps)
        object.__setattr__(self, "shares", shares)
        if self.carries is not None:
            object.__setattr__(self, "carries", self._limits(len(grasps)))
        if not 0 <= self.feedback < np.inf:
            raise ControlError(
                f"`feedback` of the held body `{self.body}` must be a number from 0 on, 1/s, got "
                f"{self.feedback}"
            )

    def _limits(self, count: int) -> np.ndarray:
        given = np.asarray(self.carries, float)
        if given.shape not in ((6,), (count, 6)) or not (given >= 0).all():
            raise ControlError(
                f"`carries` of the held body `{self.body}` must be 6 numbers from 0 on, or "
                f"{count} x 6, got {self.carries}"
            )
        return np.broadcast_to(given, (count, 6)).copy()

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        """Shapes of the reference signals that it reads, by name."""
        return {f"{grasp.name}.target": (6, 1) for grasp in self.grasps if self.targets}

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the sensors that it reads."""
        return tuple(f"{grasp.name}.measured" for grasp in self.grasps if self.feedback)

    @property
    def memory_size(self) -> int:
        """How many numbers it remembers: the integrals of what was missing."""
        return 6 * len(self.measures)

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

    def grip(
        self,
        frames: Frames,
        state: ModelState,
        reference: Mapping[str, Matrix] = _NOTHING,
        memory: Matrix | None = None,
    ) -> "Grip":
        """Return the grasps at a state; `memory` holds what feedback has added up."""
        machine = frames.machine
        joint = machine.joints[machine.body_index[self.body]]
        body = frames.at(self.body, joint.child_pose)
        split, free = self._split(machine)
        to_hands, reactions, turns, points = [], [], [], []
        for grasp in self.grasps:
            hand, held = frames.at(grasp.frame_a, grasp.pose), frames.at(grasp.frame_b)
            # Wrench in the axes of the free joint to world axes at the grasp: m -> R m - r x R f.
            lever = ca.cross(ca.repmat(held.p - body.p, 1, 3), body.R)
            to_hands.append(ca.blockcat([[body.R, ca.SX(3, 3)], [-lever, body.R]]))
            Jv = hand.Jv
            if grasp.kind == "slider":
                # The hand has slid along the axis: its wrench acts where the grasp is now.
                axis = held.R @ ca.DM(grasp.axis)
                Jv = Jv - so3.wed(axis * ca.dot(axis, held.p - hand.p)) @ hand.Jw
            reactions.append(state.reduced(ca.vertcat(Jv - held.Jv, hand.Jw - held.Jw).T))
            turns.append(held.R)
            points.append(held.p)
        wanted = self._wanted(points, turns, reference)

        def internal(wrenches: list[Matrix]) -> list[Matrix]:
            """Return what of wrenches (world axes) presses and does not move."""
            pressing = self._pressing(machine, wrenches, to_hands)
            total = sum(pressing, ca.SX(6, 1))
            triples = zip(to_hands, pressing, split, strict=True)
            return [X @ (t - D @ total) for X, t, D in triples]

        errors, rate = [], ca.SX(0, 1)
        if self.feedback and memory is not None:
            told = [
                measured_wrench(frames, grasp.frame_a, place, ca.SX(reference[name]))
                for grasp, place, name in zip(self.grasps, points, self.measures, strict=True)
            ]
            off = internal([a - b for a, b in zip(wanted, told, strict=True)])
            both = [ca.diagcat(R, R) for R in turns]
            errors = [T.T @ e for T, e in zip(both, off, strict=True)]
            rate = integral_rate(self.feedback, ca.vertcat(*errors), memory, self.carries)
            wanted = [
                w + T @ memory[6 * k : 6 * k + 6]
                for k, (w, T) in enumerate(zip(wanted, both, strict=True))
            ]
        pressure = internal(wanted)
        if self.carries is not None:
            share = within(pressure, turns, self.carries)
            pressure = [share * p for p in pressure]
        places = [state.model.v_names.index(name) for name in joint.v_names]
        contacts = [X @ D for X, D in zip(to_hands, split, strict=True)]
        return Grip(places, contacts, reactions, pressure, turns, free, errors, rate)

    def _wanted(self, points: Any, turns: Any, reference: Mapping[str, Matrix]) -> list[Matrix]:
        """Return the wrenches (6) of hands that press, world axes at the grasps; none is zero."""
        wrenches = [ca.SX(6, 1) for _ in points]
        if self.targets:
            for k, grasp in enumerate(self.grasps):
                target = ca.SX(reference[f"{grasp.name}.target"])
                wrenches[k] = ca.diagcat(turns[k], turns[k]) @ target
        for i, j in combinations(range(len(points)), 2):
            if self.squeeze:
                line = points[j] - points[i]
                force = ca.vertcat(self.squeeze * line / ca.sqrt(ca.sumsqr(line)), ca.SX(3, 1))
                wrenches[i], wrenches[j] = wrenches[i] + force, wrenches[j] - force
        return wrenches

    def _pressing(self, machine: Machine, wrenches: Any, to_hands: Any) -> list[Matrix]:
        """Return what grasps can carry of wrenches, at the joint frame and in its axes."""
        pressing = []
        for grasp, wrench, X in zip(self.grasps, wrenches, to_hands, strict=True):
            R, minus_lever = X[:3, :3], X[3:, :3]
            force = R.T @ wrench[:3]
            carried = ca.vertcat(force, R.T @ (wrench[3:] - minus_lever @ force))
            if grasp.kind != "weld":
                G = self._place(machine, grasp)
                N, R_b = grasp.blocked, ca.DM(G[:3, :3])
                # Cut to what the grasp blocks, at the grasp and in its own axes, and back.
                local = ca.diagcat(R_b, R_b).T @ _shifted(-G[:3, 3]) @ carried
                carried = ca.DM(_carried_by(G, N @ N.T)) @ local
            pressing.append(carried)
        return pressing

    def _place(self, machine: Machine, grasp: RigidCoupling) -> np.ndarray:
        """Return frame b of a grasp seen from the body's joint frame."""
        joint = machine.joints[machine.body_index[self.body]]
        poses = joint.child_pose, machine.frame(grasp.frame_b).pose
        if any(is_symbolic(pose) for pose in poses):
            raise ControlError(
                f"frame b of `{grasp.name}` must not be tunable: only a weld can be there"
            )
        return np.linalg.inv(np.asarray(poses[0], float)) @ np.asarray(poses[1], float)

    def _split(self, machine: Machine) -> tuple[list[Any], np.ndarray]:
        """Return D of every hand (6 x 6), and the directions (k x 6) that no hand can push."""
        if all(grasp.kind == "weld" for grasp in self.grasps):
            return list(self.shares), np.zeros((0, 6))
        places = [self._place(machine, grasp) for grasp in self.grasps]
        size = float(np.mean([np.linalg.norm(G[:3, 3]) for G in places])) or 0.1
        W = np.diag([1.0, 1, 1, *([size**-2] * 3)])
        spans = [_carried_by(G, g.blocked) for G, g in zip(places, self.grasps, strict=True)]
        parts = [
            share * P @ np.linalg.solve(P.T @ W @ P, P.T)
            for P, share in zip(spans, self.shares, strict=True)
        ]
        inverse = np.linalg.pinv(sum(parts), rcond=1e-10, hermitian=True)
        return [ca.DM(part @ inverse) for part in parts], null_space(np.hstack(spans).T).T


def _shifted(p: np.ndarray) -> np.ndarray:
    """Return the map (6 x 6) that takes a wrench from a point to one that sees it at p."""
    return np.block([[np.eye(3), np.zeros((3, 3))], [np.array(so3.wed(p)), np.eye(3)]])


def _carried_by(G: np.ndarray, wrenches: np.ndarray) -> np.ndarray:
    """Return wrenches (6 x k), in the axes of a frame at G, at the origin that sees it."""
    return _shifted(G[:3, 3]) @ np.kron(np.eye(2), G[:3, :3]) @ wrenches


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
    turns : list of (3 x 3)
        Rotation of frame b of every grasp.
    free : (k x 6)
        Directions, in the axes of the free joint, along which no hand can push the body.
    errors : list of (6)
        What is missing of each hand's pressure, in the axes of its grasp; empty without feedback.
    rate : column
        Of what feedback adds up.
    """

    places: list[int]
    contacts: list[Matrix]
    reactions: list[Matrix]
    pressure: list[Matrix]
    turns: list[Matrix]
    free: np.ndarray
    errors: list[Matrix]
    rate: Matrix

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

    def exact(self, M: Matrix, bias: Matrix) -> tuple[Matrix, Matrix]:
        """Return the rows A a = b of the body where no hand can push it: it moves by itself."""
        N = ca.DM(self.free)
        return N @ M[self.places, :], -(N @ bias[self.places])
