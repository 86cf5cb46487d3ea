"""Whether references of bodies fit joints and loops: poses that meet, and J nu_d = 0."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.references.base import Reference
from framefree.geometry import quaternion
from framefree.machine import Machine, Prismatic
from framefree.motion.maximal import Maximal
from framefree.motion.maximal.joints import has_coordinates
from framefree.motion.maximal.kinematics import POSE, Kinematics


@dataclass(frozen=True)
class Misfit:
    """By how much a reference violates one joint, loop or coupling, and when.

    Attributes
    ----------
    joint : str
        Its name.
    time : float
        s.
    apart, turned : float
        How far the joint's two sides are apart, m, and turned, rad.
    slipping, turning : float
        How fast they part in directions that the joint blocks, m/s and rad/s: rows of J nu_d.
    kind : "joint", "loop" or "coupling"
    """

    joint: str
    time: float
    apart: float = 0.0
    turned: float = 0.0
    slipping: float = 0.0
    turning: float = 0.0
    kind: str = "joint"

    @property
    def size(self) -> float:
        """The largest of the four."""
        return max(self.apart, self.turned, self.slipping, self.turning)

    def __str__(self) -> str:
        parts = (
            ("apart by", self.apart, "m"),
            ("turned by", self.turned, "rad"),
            ("parting at", self.slipping, "m/s"),
            ("turning apart at", self.turning, "rad/s"),
        )
        seen = [part for part in parts if part[1] > 1e-6 * self.size]
        words = ", ".join(f"{what} {value:.3g} {unit}" for what, value, unit in seen)
        return f"{self.kind} `{self.joint}` at t = {self.time:g} s: {words or 'no misfit'}"


def misfits(
    machine: Machine, reference: Reference, times: Iterable[float], x: Any = None
) -> tuple[Misfit, ...]:
    """Return the worst misfit of every joint, loop and coupling over some times, the worst first.

    Parameters
    ----------
    machine : Machine
    reference : Reference
        With BODY.pose and BODY.twist of every body, or BODY.velocity in world axes.
    times : iterable of float
        s.
    x : (nx,), optional
        The configuration in which velocities are judged where the reference gives no poses; default
        neutral.
    """
    worst: dict[tuple[str, str], Misfit] = {}
    misfits_at = _Joints(machine)
    for time in times:
        signals = {
            k: np.asarray(ca.DM(value).full()) for k, value in reference.at(ca.DM(time)).items()
        }
        poses, twists = _bodies(machine, signals, x)
        for misfit in misfits_at(float(time), poses, twists):
            key = (misfit.kind, misfit.joint)
            if key not in worst or misfit.size > worst[key].size:
                worst[key] = misfit
    return tuple(sorted(worst.values(), key=lambda one: -one.size))


def require_feasible(
    machine: Machine,
    reference: Reference,
    times: Iterable[float],
    x: Any = None,
    tolerance: float = 1e-9,
) -> None:
    """Raise `ControlError` if a reference violates a joint or loop, saying which and how much.

    Parameters as of `misfits`; `tolerance` in m, rad, m/s and rad/s.
    """
    bad = [one for one in misfits(machine, reference, times, x) if not one.size <= tolerance]
    if bad:
        more = f"; and {len(bad) - 1} more" if len(bad) > 1 else ""
        raise ControlError(
            f"the reference does not fit the joints of `{machine.name}`: {bad[0]}{more}"
        )


def _bodies(
    machine: Machine, signals: dict[str, np.ndarray], x: Any
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return poses and body twists that a reference gives at a time."""
    names = [body.name for body in machine.bodies]
    if all(f"{name}.pose" in signals for name in names):
        poses = [signals[f"{name}.pose"] for name in names]
        return poses, [signals[f"{name}.twist"].ravel() for name in names]
    missing = [name for name in names if f"{name}.velocity" not in signals]
    if missing:
        raise ControlError(f"the reference gives neither pose nor velocity of body `{missing[0]}`")
    eom = Maximal(machine)
    start = machine.neutral() if x is None else np.asarray(x, float)
    poses = [
        G for G in np.asarray(eom.functions["body_pose"](
            eom.functions["from_joints"](start, np.zeros(machine.nv))[0]
        ).full()).reshape(len(names), 4, 4)
    ]  # fmt: skip
    twists = []
    for G, name in zip(poses, names, strict=True):
        velocity = signals[f"{name}.velocity"].reshape(2, 3)
        twists.append((velocity @ G[:3, :3]).ravel())
    return poses, twists


class _Joints:
    """How far joints are apart and parting, from poses and twists of the bodies."""

    def __init__(self, machine: Machine) -> None:
        self.machine, eom = machine, Maximal(machine)
        x, v = ca.SX.sym("x", eom.sizes["x"]), ca.SX.sym("v", eom.sizes["v"])
        at = Kinematics(eom.model, x, v)
        parting = [d.N @ (d.N.T @ xi) for d, xi in zip(at.directions, at.relative, strict=True)]
        apart = [*at.violations, *(pair[0] for pair in _closures(at))]
        parting += [pair[1] for pair in _closures(at)]
        self._names = [("joint", joint.name) for joint in machine.joints]
        self._names += [("loop", loop.name) for loop in machine.loops]
        self._names += [("coupling", coupling.name) for coupling in machine.couplings]
        outputs = [ca.horzcat(*apart), ca.horzcat(*parting)]
        self._function = ca.Function("misfit", [x, v], [ca.densify(one) for one in outputs])
        if not all(has_coordinates(joint.kind) for joint in machine.joints):
            raise ControlError("references of machines with custom joints cannot be checked")
        # How far joints are apart does not depend on how many full turns they have made.
        self._turns = np.zeros(eom.sizes["x"] - POSE * len(machine.bodies))

    def __call__(self, time: float, poses: Any, twists: Any) -> list[Misfit]:
        parts = [
            [*G[:3, 3], *quaternion.from_rotation(ca.DM(G[:3, :3])).full().ravel()] for G in poses
        ]
        apart, parting = self._function(
            np.concatenate([*parts, self._turns]), np.concatenate(twists)
        )
        worst = []
        rows = zip(self._names, apart.full().T, parting.full().T, strict=True)
        for (kind, name), a, b in rows:
            sizes = [float(np.linalg.norm(part)) for part in (a[:3], a[3:], b[:3], b[3:])]
            worst.append(Misfit(name, time, *sizes, kind=kind))
        return worst


def _closures(at: Kinematics) -> list[tuple[Any, Any]]:
    """Return how far loops and couplings are apart and how fast they part, six numbers each."""
    machine, pairs = at.machine, []
    for loop in machine.loops:
        a, b, G = at.bodies.relative(loop)
        N = ca.SX(loop.blocked(G))
        xi = ca.SX(at.bodies.relative_twist(a, b, G))
        pairs.append((N @ ca.SX(loop.residual(G)), N @ (N.T @ xi)))
    for coupling in machine.couplings:
        places = [machine.x_names.index(name) for name in coupling.coordinates]
        speeds = [machine.v_names.index(name) for name in coupling.coordinates]
        q = ca.SX.sym("q", len(places))
        gap = q[0] - ca.SX(coupling.value(*ca.vertsplit(q[1:])))
        rate = ca.jacobian(gap, q) @ at.joint_v[speeds, :]
        gap, rate = ca.substitute([gap, rate], [q], [at.joint_x[places, :]])
        joint = next(one for one in machine.joints if coupling.target in one.v_names)
        along = ca.DM(np.eye(6)[0 if isinstance(joint.kind, Prismatic) else 3])
        pairs.append((along * gap, along * rate))
    return pairs
