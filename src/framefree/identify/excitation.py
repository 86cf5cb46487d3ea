"""Motions that tell what is unknown: Fourier series within limits, of arms and of free bodies.

    x(t) = middle (+) q(t),     q(t) = sum_k (a_k sin k w t + b_k cos k w t) / k

with coefficients such that the motion begins and ends at rest. Among such motions the one is sought
whose regressor has the least condition number in the base parameters [Swevers1997].
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.references.joints import JointReference
from framefree.control.references.path import velocity
from framefree.identify.base import BaseParameters, base_parameters
from framefree.identify.errors import IdentifyError
from framefree.identify.rows import UnknownModel
from framefree.kernel import compile
from framefree.machine import Machine
from framefree.machine.joints import Free
from framefree.machine.part import set_field
from framefree.motion.spatial import Matrix

REACH, SPEED, ACCELERATION = 1.2, 1.5, 6.0
"""What a motion may do where a joint says nothing: rad (or m), per s, per s^2."""
INSTANTS = 200
"""Times at which a motion is judged."""


@dataclass(frozen=True, eq=False)
class FourierMotion(JointReference):
    """A periodic motion of all joints that begins and ends at rest.

    Parameters
    ----------
    machine : Machine
        Of the law that follows.
    middle : (nx,)
        Configuration about which it moves.
    sines, cosines : (harmonics, nv)
        Coefficients of q(t).
    period : float
        s. Afterwards it begins anew.
    """

    machine: Machine
    middle: Any
    sines: Any
    cosines: Any
    period: float = 20.0

    def __post_init__(self) -> None:
        set_field(self, "middle", np.array(self.middle, float))
        for name in ("sines", "cosines"):
            set_field(self, name, np.atleast_2d(np.array(getattr(self, name), float)))

    @cached_property
    def function(self) -> ca.Function:  # type: ignore[override]
        """From t to x, v and a."""
        t = ca.SX.sym("t")
        outputs = _motion(self.machine, self.middle, self.period, ca.DM(self.sines),
                          ca.DM(self.cosines), t)  # fmt: skip
        return ca.Function("fourier", [t], list(outputs))


def _motion(
    machine: Machine, middle: np.ndarray, period: float, sines: Matrix, cosines: Matrix, t: Matrix
) -> tuple[Matrix, Matrix, Matrix]:
    """Return x, v and a of the series at time t."""
    w = 2 * np.pi / period
    q = ca.SX(machine.nv, 1)
    for k in range(1, sines.shape[0] + 1):
        q += (sines[k - 1, :].T * ca.sin(k * w * t) + cosines[k - 1, :].T * ca.cos(k * w * t)) / k
    x = ca.densify(ca.SX(machine.integrate(ca.DM(middle), q)))
    rate = ca.jacobian(x, t)
    parts = [
        velocity(joint.kind, x[machine.x_slice[joint.name]], rate[machine.x_slice[joint.name]])
        for joint in machine.joints
    ]
    v = ca.densify(ca.vertcat(ca.SX(0, 1), *parts))
    return x, v, ca.densify(ca.jacobian(v, t))


@dataclass(frozen=True, eq=False)
class Excitation:
    """A designed motion.

    Attributes
    ----------
    reference : FourierMotion
    base : BaseParameters
        What it tells; `base.condition` is that of its regressor.
    condition, first_condition : float
        Of the regressor in the base parameters, and what the first random motion had.
    """

    reference: FourierMotion
    base: BaseParameters
    condition: float
    first_condition: float


def excite(
    machine: Machine,
    unknown: Any,
    *,
    duration: float = 20.0,
    harmonics: int = 10,
    reach: Any = None,
    speed: Any = None,
    acceleration: Any = ACCELERATION,
    middle: Any = None,
    rounds: int = 300,
    seed: int = 0,
) -> Excitation:
    """Return a motion within limits whose regressor has a small condition number.

    Parameters
    ----------
    machine : Machine
        Without loops; as far as it is known.
    unknown : sequence of str
        As in `framefree.identify.fit`.
    duration : float
        s, one period of the series.
    harmonics : int
        Terms of the series.
    reach, speed, acceleration : float or (nv,), optional
        Largest |q|, rate and acceleration of every velocity; by default 80 percent of the joint's
        limits, and `REACH`, `SPEED` where it has none.
    middle : (nx,), optional
        By default between the limits of the joints.
    rounds : int
        Changes that are tried.
    seed : int
    """
    if machine.closed:
        raise IdentifyError("excitation is designed for machines without loops and couplings")
    machine = machine.numeric
    design = _Design(machine, unknown, duration, harmonics, _limits(machine, reach, speed,
                     acceleration), _middle(machine, middle))  # fmt: skip
    rng = np.random.default_rng(seed)
    shape = (2, harmonics, machine.nv)
    starts = [rng.normal(size=shape) for _ in range(max(4, rounds // 15))]
    costs = [design.cost(one) for one in starts]
    best, cost = starts[int(np.argmin(costs))], min(costs)
    width = 0.5
    for _ in range(rounds):
        changed = rng.random(shape) < 0.2
        trial = best + width * changed * rng.normal(size=shape)
        other = design.cost(trial)
        if other < cost:
            best, cost, width = trial, other, min(1.0, 1.2 * width)
        else:
            width = max(0.05, 0.985 * width)
    sines, cosines = design.scaled(best)
    reference = FourierMotion(machine, design.middle, sines, cosines, duration)
    return Excitation(reference, design.base, float(np.exp(cost)), float(np.exp(costs[0])))


class _Design:
    """Judges coefficients: it scales them into the limits, and measures the condition number."""

    def __init__(
        self, machine: Machine, unknown: Any, period: float, harmonics: int,
        limits: np.ndarray, middle: np.ndarray,
    ) -> None:  # fmt: skip
        self.machine, self.period, self.middle, self.limits = machine, period, middle, limits
        self.model = UnknownModel(machine, tuple(unknown))
        k = np.arange(1, harmonics + 1)
        self.t = np.arange(INSTANTS) * period / INSTANTS
        wt = 2 * np.pi / period * np.outer(self.t, k)
        w = 2 * np.pi / period
        self.tables = {
            0: (np.sin(wt) / k, np.cos(wt) / k),
            1: (w * np.cos(wt), -w * np.sin(wt)),
            2: (-w * w * k * np.sin(wt), -w * w * k * np.cos(wt)),
        }
        self.at_rest = (np.ones(harmonics), k.astype(float))
        t, sines = ca.SX.sym("t"), ca.SX.sym("sines", harmonics, machine.nv)
        cosines = ca.SX.sym("cosines", harmonics, machine.nv)
        outputs = _motion(machine, middle, period, sines, cosines, t)
        function = ca.Function("motion", [t, ca.vec(sines.T), ca.vec(cosines.T)], list(outputs))
        self.kernel = compile(function)
        rng = np.random.default_rng(1)
        count = 40 + 6 * len(self.model.names) // machine.nv
        v, a = rng.normal(size=(2, count, machine.nv))
        Y, _ = self.model.rows(machine.random(rng, count), v, 3 * a, np.zeros_like(v), None)
        self.base = base_parameters(self.model.names, Y.reshape(-1, Y.shape[-1]))

    def scaled(self, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return sines and cosines at rest for t = 0 and within the limits of every joint."""
        sines, cosines = coefficients
        rest_v, rest_a = self.at_rest
        sines = sines - np.outer(rest_v, rest_v @ sines) / (rest_v @ rest_v)
        cosines = cosines - np.outer(rest_a, rest_a @ cosines) / (rest_a @ rest_a)
        peaks = np.array(
            [np.abs(s @ sines + c @ cosines).max(axis=0) for s, c in self.tables.values()]
        )
        factor = (self.limits / np.maximum(peaks, 1e-12)).min(axis=0)
        return sines * factor, cosines * factor

    def cost(self, coefficients: np.ndarray) -> float:
        """Return the logarithm of the condition number."""
        sines, cosines = self.scaled(coefficients)
        n = len(self.t)
        x, v, a = self.kernel(
            self.t[:, None], np.tile(sines.ravel(), (n, 1)), np.tile(cosines.ravel(), (n, 1))
        )
        Y, _ = self.model.rows(x, v, a, np.zeros_like(v), None)
        columns = Y.reshape(-1, Y.shape[-1])[:, self.base.chosen]
        lengths = np.linalg.norm(columns, axis=0)
        if not lengths.all():
            return np.inf
        values = np.linalg.eigvalsh((columns / lengths).T @ (columns / lengths))
        return float(np.inf if values[0] <= 0 else 0.5 * np.log(values[-1] / values[0]))


def _limits(machine: Machine, reach: Any, speed: Any, acceleration: Any) -> np.ndarray:
    """Return the largest q, rate and acceleration of every velocity (3, nv)."""
    own_reach, own_speed = np.full(machine.nv, REACH), np.full(machine.nv, SPEED)
    for joint in machine.joints:
        place = machine.v_slice[joint.name]
        if joint.kind.vector and joint.nv:
            half = (np.asarray(joint.upper) - np.asarray(joint.lower)) / 2
            own_reach[place] = np.minimum(np.where(np.isfinite(half), 0.8 * half, REACH), np.pi)
        if isinstance(joint.kind, Free):
            own_reach[place] = REACH / 2
        limit = np.asarray(joint.velocity_limit)
        own_speed[place] = np.where(np.isfinite(limit), 0.8 * limit, SPEED)
    given = (own_reach if reach is None else reach, own_speed if speed is None else speed)
    return np.array([np.broadcast_to(one, machine.nv) for one in (*given, acceleration)], float)


def _middle(machine: Machine, middle: Any) -> np.ndarray:
    if middle is not None:
        return np.array(middle, float)
    x = machine.neutral()
    for joint in machine.joints:
        place = machine.x_slice[joint.name]
        ends = np.array([joint.lower, joint.upper], float)
        bounded = np.isfinite(ends).all(axis=0)
        if joint.kind.vector:
            x[place] = np.where(bounded, np.where(bounded, ends, 0.0).mean(axis=0), x[place])
    return x
