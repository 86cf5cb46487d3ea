"""A chain of rods in a fluid that its equations do not know, and motions of it.

The fluid resists strip by strip, lifts, turns spinning rods aside, carries them off their middle
and flows. Its drag across the rod halves above 0.8 m/s, as that of a cylinder does when its
boundary layer becomes turbulent; no term of the library has that:

    f = -k (1 - 1/4 (1 + tanh((|u_n| - 0.8 m/s) / 0.1 m/s))) |u_n| u_n
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.references import JointPath
from framefree.gallery.machines.chains import chain
from framefree.geometry import quaternion
from framefree.learn import BodyMotion, LearnedModel, RodLibrary, Samples, WrenchModel
from framefree.learn.library import smooth_length
from framefree.machine import Machine

LENGTH = 0.4
TERMS = {
    "across.linear": 4.0,
    "across.quadratic": 40.0,
    "along.linear": 1.0,
    "along.quadratic": 3.0,
    "lift": 8.0,
    "magnus": 2.0,
    "spin": 0.02,
    "buoyancy": 6.0,
    "buoyancy.offset": 0.15,
}
"""Coefficients of the fluid, in the units of `framefree.learn.RodLibrary`."""
CURRENT = (0.15, 0.1, -0.05)
"""m/s, in world axes."""
FAST, WIDTH, LOST = 0.8, 0.1, 0.5
"""Speed (m/s) above which drag halves, over which width, and by which share."""

Matrix = Any


@dataclass(frozen=True, eq=False)
class TrueFluid(WrenchModel):
    """The fluid itself, as the plant feels it.

    Parameters
    ----------
    crisis : bool
        Whether drag halves above 0.8 m/s; without, the library spans the fluid.
    current : (3,)
        m/s.
    """

    crisis: bool = True
    current: Any = CURRENT

    names = ("current.x", "current.y", "current.z")
    units = ("m/s",) * 3
    linear = ()

    @property
    def coefficients(self) -> np.ndarray:  # type: ignore[override]
        """The current (3,), m/s."""
        return np.array(self.current, float)

    @property
    def spanned(self) -> LearnedModel:
        """The part that the library spans."""
        library = RodLibrary(LENGTH)
        return LearnedModel(library, [*(TERMS[name] for name in library.names), *self.current])

    def wrench(self, motion: BodyMotion, numbers: Matrix | None = None) -> Matrix:
        """Return the wrench (6) on a rod."""
        current = self.constants(numbers)
        own = self.spanned
        total = own.wrench(motion, ca.vertcat(ca.DM(own.coefficients[:-3]), current))
        return total + self._relief(motion, current) if self.crisis else total

    def _relief(self, motion: BodyMotion, current: Matrix) -> Matrix:
        """Return what the halved drag takes back."""
        library, xi = RodLibrary(LENGTH), motion.relative(current)
        e, total = ca.DM(library.axis), ca.SX(6, 1)
        for s, share in zip(*library.quadrature, strict=True):
            u = xi[:3] + ca.cross(xi[3:], float(s) * e)
            across = u - ca.dot(e, u) * e
            speed = smooth_length(across)
            less = LOST / 2 * (1 + ca.tanh((speed - FAST) / WIDTH))
            force = TERMS["across.quadratic"] * less * speed * across
            total = total + float(share) * ca.vertcat(force, ca.cross(float(s) * e, force))
        return total

    def turned(self, R: Any) -> "TrueFluid":
        """Return the fluid with its current turned."""
        return replace(self, current=tuple(np.asarray(R, float) @ np.asarray(self.current)))

    def with_coefficients(self, values: Any) -> "TrueFluid":
        """Return the fluid with another current."""
        return replace(self, current=tuple(values))

    def parts(self) -> dict[str, Any]:
        """Return crisis and current."""
        return {"kind": "TrueFluid", "crisis": self.crisis, "current": list(self.current)}

    @classmethod
    def of_parts(cls, parts: Mapping[str, Any]) -> "TrueFluid":
        """Return the fluid that `parts` describes."""
        return cls(parts["crisis"], tuple(parts["current"]))


# ---------------------------------------------------------------------- motions


@dataclass(frozen=True)
class Swimming:
    """Random smooth motions of a chain: sums of sines of its place and of the rods' directions.

    Parameters
    ----------
    turn : (4,)
        Quaternion (wxyz) by which the whole motion is turned in the world.
    space : bool
        Whether rods leave the plane of x and z.
    travel, swing, bend, spin : float
        Amplitudes: m of the place, rad of all rods, of each rod, and about their own axes.
    slowest, fastest : float
        Hz.
    """

    turn: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    space: bool = False
    travel: float = 0.25
    swing: float = 0.5
    bend: float = 0.25
    spin: float = 0.6
    slowest: float = 0.1
    fastest: float = 0.5

    def path(self, machine: Machine, seed: int) -> JointPath:
        """Return one motion as a reference of the joints."""
        return JointPath(machine, self.curve(len(machine.bodies), seed))

    def curve(self, bodies: int, seed: int) -> Any:
        """Return x(t) as a function of a casadi scalar."""
        rng = np.random.default_rng(seed)
        sines = [self._sines(rng) for _ in range(5 + 3 * bodies)]

        def curve(t: Any) -> Any:
            wave = [_sum_of_sines(one, t) for one in sines]
            side = 1.0 if self.space else 0.0
            place = self.travel * ca.vertcat(wave[0], side * wave[1], wave[2])
            rods, turn = [], ca.DM(self.turn)
            for b in range(bodies):
                up = self.swing * wave[3] + self.bend * wave[5 + 3 * b]
                out = side * (self.swing * wave[4] + self.bend * wave[6 + 3 * b])
                own = self.spin * wave[7 + 3 * b]
                bent = quaternion.product(_about(1, up), _about(0, own))
                rods.append(quaternion.product(turn, quaternion.product(_about(2, out), bent)))
            joints = [quaternion.product(quaternion.conjugate(a), b) for a, b in pairwise(rods)]
            R = quaternion.to_rotation(turn)
            return ca.vertcat(R @ place, rods[0], *joints)

        return curve

    def _sines(self, rng: np.random.Generator, count: int = 3) -> np.ndarray:
        """Return sizes, frequencies (rad/s) and phases (3, count)."""
        sizes = rng.uniform(0.5, 1.0, count)
        frequencies = 2 * np.pi * rng.uniform(self.slowest, self.fastest, count)
        return np.array([sizes, frequencies, rng.uniform(0, 2 * np.pi, count)])


def swimming_samples(
    machine: Machine,
    style: Swimming,
    fluid: WrenchModel,
    *,
    count: int,
    motions: int = 20,
    seed: int = 0,
    duration: float = 20.0,
) -> Samples:
    """Return samples at random times of random motions, with what the fluid does there."""
    per = -(-count // motions)
    rng = np.random.default_rng(seed + 10_000)
    xs, vs = [], []
    for k in range(motions):
        function = style.path(machine, seed * 1000 + k).function
        times = np.sort(rng.uniform(0, duration, per))
        x, v = (np.array(one) for one in function.map(per)(times[None])[:2])
        xs.append(x.T)
        vs.append(v.T)
    x, v = np.vstack(xs)[:count], np.vstack(vs)[:count]
    which = np.repeat(np.arange(motions), per)[:count]
    bare = Samples.of_states(machine, x, v, np.zeros((len(x), machine.nv)), motion=which)
    return replace(bare, labels=bare.predicted(fluid))


def swimmer(bodies: int = 5, gravity: Any = (0.0, 0.0, -9.81)) -> Machine:
    """Return the chain without the fluid: what the law knows."""
    return chain(bodies, lengths=LENGTH, gravity=gravity)


def _sum_of_sines(table: np.ndarray, t: Any) -> Any:
    return sum(size * ca.sin(w * t + phase) for size, w, phase in table.T)


def _about(axis: int, angle: Any) -> Any:
    half = [ca.SX(0)] * 3
    half[axis] = ca.sin(angle / 2)
    return ca.vertcat(ca.cos(angle / 2), *half)
