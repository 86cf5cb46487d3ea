"""How bodies keep clear of obstacles and of each other: a barrier on the reference velocity.

Bodies are covered by lines with a radius. With d the distance from such a line to an obstacle, and
w . nu its rate for velocities nu of the body, every near pair asks for

    w . nu = g(d),      g = speed (1 - d/reach),      weight rho(d) = m ((reach - d)/d)^2

where m is the machine's mass times `weight`, and d counts as no less than `CLOSEST` of the reach.
The reference velocity is then the nu that makes

    1/2 |nu - nu_0|^2_M + sum 1/2 rho (w . nu - g)^2

least, nu_0 being what is asked for otherwise. Seen from nu_0 = 0 that is a push by the potential

    U(d) = integral of rho g = m speed / reach (L^3/d - L^2 - 3 L^2 ln(L/d) + 3 L (L - d)
           - (L^2 - d^2)/2),    L = reach

which grows without bound at contact, and an inertia rho w w^T against motion along the normal,
which grows with it: the velocity stays bounded, whatever the distance. **Why no body touches.** Let
nu_f be any velocity that the joints and the task allow and that has w . nu_f = g for all near
pairs, and E = 1/2 |nu_f - nu_0|^2_M. Since nu_r is the least,

    rho (w . nu_r - g)^2 <= 2 E,     so that  dd/dt >= g - sqrt(2 E / rho) > 0  where  rho g^2 > 2 E

and d never falls below the distance d* at which rho g^2 = 2 E, however fast nu_0 runs against the
obstacle. That is for s = 0; with Kd = k M at least, what s is at the start adds no more than
sqrt(2 V(0) w^T M^-1 w) / k to the way. It says nothing where no such nu_f exists: of a body that
the task itself carries into an obstacle. There the task has to give way, see `yields`.

In the middle of an obstacle all directions are alike: there the slope of d goes to zero and g is
taken times its square, so that nu_r does not grow where d hardly changes.

The right side of the equation for nu_r, and its rate along the motion, change by what `BarrierRows`
holds. Everything is a smooth function of d but for jumps of second derivatives, with slopes of the
order of speed/d*: a step h of the integrator must be below about d*/speed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.port.obstacles import Obstacle, pair_distance
from framefree.control.shared.gains import positive
from framefree.geometry import se3
from framefree.machine import Machine
from framefree.machine.part import set_field
from framefree.machine.values import numbers
from framefree.motion.spatial import Matrix

CLOSEST = 1e-3
"""Distances count as no smaller than this share of `reach`."""


class BarrierRows(NamedTuple):
    """Rows ``w . nu = target`` with their weights, and the rates of all, in link axes.

    Attributes
    ----------
    W : (6 x k)
    weight, target : (k)
        kg, and m/s.
    """

    W: Matrix
    weight: Matrix
    target: Matrix
    W_rate: Matrix
    weight_rate: Matrix
    target_rate: Matrix

    @property
    def inertia(self) -> Matrix:
        """Sum of ``weight w w^T`` (6x6)."""
        return self.W @ ca.diag(self.weight) @ self.W.T

    @property
    def load(self) -> Matrix:
        """Sum of ``weight target w`` (6)."""
        return self.W @ (self.weight * self.target)

    def load_rate(self, nu: Matrix) -> Matrix:
        """Return the rate of ``load - inertia nu`` (6) at a velocity nu that does not change."""
        left, left_rate = self.target - self.W.T @ nu, self.target_rate - self.W_rate.T @ nu
        weighted = self.weight_rate * left + self.weight * left_rate
        return self.W @ weighted + self.W_rate @ (self.weight * left)


class Gap(NamedTuple):
    """A distance d and its slopes by the ends of lines, in world axes.

    `carried` is the part of dd/dt that the obstacle's own motion has, with the sign turned: what
    the line must have for d to stay.
    """

    d: Matrix
    slopes: list[Matrix]
    carried: Matrix

    @property
    def leading(self) -> Matrix:
        """How far d tells where to go: the square of its slope by the line's place, at most 1."""
        by_ends = ca.reshape(ca.vertcat(*self.slopes)[:6, :], 3, 2)
        return ca.fmin(ca.sumsqr(ca.sum2(by_ends)), 1)


@dataclass(frozen=True, eq=False)
class Avoidance:
    """How bodies keep clear of obstacles, and of each other; see the top of this file.

    Parameters
    ----------
    obstacles : sequence of Obstacle
    reach : float
        Distance in m at which bodies begin to yield.
    speed : float
        How fast, m/s, a body at contact is to leave; inside of an obstacle in proportion faster.
    weight : float
        Share of the machine's mass that stands against motion along the normal at half the reach.
    yields : float
        Distance in m below which the task gives way, the more the nearer: it is that of the nearest
        body that counts. 0: it never does.
    radius : float
        Of the lines that cover the bodies, m.
    cover : mapping of str to (k, 3) or (k, 2, 3), optional
        Points or lines that cover bodies by name, in body axes; other bodies are not covered. By
        default lines lead from a body's joint to those of its children (from tip to tip for
        others), see `spine`.
    pairs : sequence of (str, str) or "all"
        Bodies that keep clear of each other; "all" are those that no joint connects. Each of two
        yields half as much as is needed, but where one carries a frame with a pose to follow: then
        the other does all of it.
    """

    obstacles: Any = ()
    reach: float = 0.15
    speed: float = 0.2
    weight: float = 1.0
    yields: float = 0.01
    radius: float = 0.0
    cover: Mapping[str, Any] | None = None
    pairs: Any = field(default=())

    def __post_init__(self) -> None:
        set_field(self, "obstacles", tuple(self.obstacles))
        for item in self.obstacles:
            if not isinstance(item, Obstacle):
                raise ControlError(f"`obstacles` must be obstacles, got {type(item).__name__}")
        for name in ("reach", "speed", "weight"):
            positive(getattr(self, name), name, "an avoidance")
        for name in ("radius", "yields"):
            positive(getattr(self, name), name, "an avoidance", zero=True)
        if self.yields > self.reach:
            raise ControlError(
                f"`yields` of an avoidance must be within its `reach` {self.reach:g} m, got "
                f"{self.yields:g}"
            )

    # ------------------------------------------------------------------ of a machine

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the reference signals that tell where obstacles are."""
        return tuple(dict.fromkeys(name for item in self.obstacles for name in item.needs))

    def check(self, machine: Machine) -> None:
        """Raise `ControlError` where obstacles, covers or pairs do not fit a machine."""
        for item in self.obstacles:
            item.check(machine)
        lines = self.lines_of(machine)
        for one, other in self.pairs_of(machine):
            for name in (one, other):
                if not len(lines[name]):
                    raise ControlError(f"body `{name}` of `pairs` has no `cover`")

    def lines_of(self, machine: Machine) -> Mapping[str, np.ndarray]:
        """Return the ends (k, 2, 3) of the lines that cover every body, in body axes."""
        if self.cover is None:
            lines = {body.name: spine(machine, body.name) for body in machine.bodies}
        else:
            lines = {body.name: _NONE for body in machine.bodies}
            for name, value in self.cover.items():
                lines[machine.body(name).name] = _lines(value, name)
        return MappingProxyType(lines)

    def pairs_of(self, machine: Machine) -> tuple[tuple[str, str], ...]:
        """Return the pairs of bodies that keep clear of each other."""
        if isinstance(self.pairs, str):
            if self.pairs != "all":
                raise ControlError(f'`pairs` must be pairs of bodies, or "all", got {self.pairs!r}')
            return _unconnected(machine, self.lines_of(machine))
        pairs = []
        for pair in self.pairs:
            if isinstance(pair, str) or len(pair) != 2 or pair[0] == pair[1]:
                raise ControlError(f"`pairs` must be pairs of two bodies, got {pair!r}")
            pairs.append((machine.body(pair[0]).name, machine.body(pair[1]).name))
        return tuple(pairs)

    # ------------------------------------------------------------------ by distance

    def potential(self, d: Matrix, mass: Any = 1.0) -> Matrix:
        """Return U (kg m^2/s) at a distance d > 0 (m), for a machine of a mass (kg)."""
        L, m = self.reach, self.weight * mass
        d = ca.fmin(d, L)
        terms = L**3 / d - L**2 - 3 * L**2 * ca.log(L / d) + 3 * L * (L - d) - (L**2 - d**2) / 2
        return m * self.speed / L * terms

    def rule(self, d: Matrix, mass: Any) -> tuple[Matrix, Matrix, Matrix]:
        """Return weight (kg) and target (m/s) of a row at a distance, and how the task gives way.

        The last is a compliance without unit: 0 from `yields` on, without bound at contact.
        """
        least = ca.fmax(d, CLOSEST * self.reach)
        ratio = ca.fmax(self.reach - least, 0) / least
        rho = self.weight * mass * ratio**2
        give = ca.fmax(self.yields - least, 0) / least
        return rho, self.speed * (1 - d / self.reach), give**2

    # ------------------------------------------------------------------ distances and slopes

    def gaps(self, k: int, ends: tuple[Matrix, Matrix], motion: Any, point: bool) -> list[Gap]:
        """Return distances of a line in world axes to obstacle k, whose pose and twist these are.

        With `point` both ends are the same.
        """
        item, (a, b), (pose, twist) = self.obstacles[k], ends, motion
        R, r = se3.rotation(pose), se3.position(pose)
        p, q = R.T @ (a - r), R.T @ (b - r)
        found = [item.distance(p)] if point else item.gaps(p, q)
        velocities = [R @ (twist[:3] + ca.cross(twist[3:], one)) for one in (p, q)]
        gaps = []
        for d in found:
            slopes = [ca.gradient(d, one) for one in (a, b)]
            carried = sum(ca.dot(*pair) for pair in zip(slopes, velocities, strict=True))
            gaps.append(Gap(d - self.radius, slopes, carried))
        return gaps

    @cached_property
    def obstacle_rows(self) -> Callable[[int, bool], ca.Function]:
        """From the number of an obstacle, and whether a line is a point, to a function.

        Its inputs are the ends of the line and their velocities (a, b, da, db, 3 each), pose (4x4),
        twist and its rate (6 each) of the obstacle, and the machine's mass. Its outputs are slopes
        of the n distances by a and b (6 x n), weights, targets (n), compliance; then the rates of
        these; and the distances (n).
        """

        @cache
        def rows(k: int, point: bool) -> ca.Function:
            a, b, da, db = (ca.SX.sym(name, 3) for name in ("a", "b", "da", "db"))
            pose, twist, rate = ca.SX.sym("G", 4, 4), ca.SX.sym("xi", 6), ca.SX.sym("rate", 6)
            gaps = self.gaps(k, (a, b), (pose, twist), point)
            moving = ca.vertcat(a, b, ca.vec(pose), twist)
            speed = ca.vertcat(da, db, ca.vec(pose @ se3.wed(twist)), rate)
            return self._rows_function(gaps, [a, b, da, db, pose, twist, rate], moving, speed)

        return rows

    @cached_property
    def pair_rows(self) -> Callable[[bool, bool], ca.Function]:
        """The same for lines of two bodies: from whether they are points to a function.

        Its inputs are the ends of both lines and their velocities (12 numbers each), and the
        machine's mass; slopes are by all four ends (12 x 1).
        """

        @cache
        def rows(first: bool, second: bool) -> ca.Function:
            at, moving = ca.SX.sym("at", 12), ca.SX.sym("moving", 12)
            a, b, c, d = (at[3 * k : 3 * k + 3] for k in range(4))
            size = max(self.radius, CLOSEST * self.reach)
            distance = pair_distance((a, b), (c, d), size, (first, second))
            gap = Gap(distance - 2 * self.radius, [ca.gradient(distance, at)], ca.SX(0))
            return self._rows_function([gap], [at, moving], at, moving)

        return rows

    def _rows_function(
        self, gaps: list[Gap], inputs: list[Matrix], moving: Matrix, speed: Matrix
    ) -> ca.Function:
        mass = ca.SX.sym("mass")
        slopes = ca.horzcat(*(ca.vertcat(*gap.slopes) for gap in gaps))
        rules = [self.rule(gap.d, mass) for gap in gaps]
        weight = ca.vertcat(*(rule[0] for rule in rules))
        pairs = zip(rules, gaps, strict=True)
        target = ca.vertcat(*(rule[1] * gap.leading + gap.carried for rule, gap in pairs))
        give = sum((rule[2] for rule in rules), ca.SX(0))
        values = [slopes, weight, target, give]
        column = ca.vertcat(*(ca.vec(value) for value in values))
        rates = ca.vertsplit(
            ca.jtimes(column, moving, speed), np.cumsum([0] + [v.numel() for v in values]).tolist()
        )
        shaped = [ca.reshape(one, *value.shape) for one, value in zip(rates, values, strict=True)]
        d = ca.vertcat(*(gap.d for gap in gaps))
        outputs = [ca.densify(ca.SX(one)) for one in (*values, *shaped, d)]
        return ca.Function("rows", [*inputs, mass], outputs)


# ---------------------------------------------------------------------------- lines


_NONE = np.zeros((0, 2, 3))


def _lines(value: Any, body: str) -> np.ndarray:
    """Return lines (k, 2, 3) from lines or points."""
    given = np.asarray(value, float)
    given = given[None] if given.shape == (3,) else given
    if given.ndim == 2 and given.shape[1:] == (3,):
        given = np.stack([given, given], axis=1)
    if given.ndim != 3 or given.shape[1:] != (2, 3):
        raise ControlError(
            f"the `cover` of body `{body}` must be points (k, 3) or lines (k, 2, 3), got shape "
            f"{np.shape(value)}"
        )
    return numbers(given, given.shape, f"the cover of body `{body}`")


def _unconnected(machine: Machine, lines: Mapping[str, np.ndarray]) -> tuple[tuple[str, str], ...]:
    names = [body.name for body in machine.bodies]
    covered = [i for i, name in enumerate(names) if len(lines[name])]
    joined = {frozenset(pair) for pair in enumerate(machine.parent)}
    for loop in machine.loops:
        ends = (machine.frame(frame).body for frame in (loop.frame_a, loop.frame_b))
        joined.add(frozenset(machine.body_index[body] for body in ends))
    return tuple(
        (names[i], names[j])
        for n, i in enumerate(covered)
        for j in covered[n + 1 :]
        if frozenset((i, j)) not in joined
    )


def spine(machine: Machine, body: str) -> np.ndarray:
    """Return lines (k, 2, 3) along a body: from its joint to those of its children, in body axes.

    Where loops close counts as a joint of a child. A body without any ends where its mass center
    lies in the middle; so does the first body of a machine that floats.
    """
    i = machine.body_index[body]
    center = np.asarray(machine.bodies[i].moments.center if machine.bodies[i].inertia else 0.0)
    center = np.broadcast_to(center, 3).astype(float)
    start = np.asarray(machine.joints[i].child_pose, float)[:3, 3]
    ends = [
        np.asarray(machine.joints[k].parent_pose, float)[:3, 3]
        for k, parent in enumerate(machine.parent)
        if parent == i
    ]
    for loop in machine.loops:
        frames = [machine.frame(name) for name in (loop.frame_a, loop.frame_b)]
        ends += [np.asarray(one.pose, float)[:3, 3] for one in frames if one.body == body]
    if machine.parent[i] < 0 and machine.joints[i].nv == 6:
        start = 2 * center - ends[0] if ends else center
    ends = ends or [2 * center - start]
    return np.array([(start, end) for end in ends])
