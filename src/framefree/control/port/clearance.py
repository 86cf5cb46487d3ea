"""An avoidance for the bodies of a machine: from their motion to the rows of the barrier."""

from collections.abc import Mapping, Sequence
from functools import cached_property, partial, wraps
from itertools import product
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.port.avoidance import Avoidance, BarrierRows
from framefree.control.port.bodies import PlacedLink
from framefree.control.port.frame_tasks import Compliance
from framefree.control.port.sweeps import BodyChain, NearestVelocity, VelocityRequest
from framefree.geometry import se3
from framefree.machine import Machine
from framefree.machine.part import plain
from framefree.machine.values import constant
from framefree.motion.loops import BodyMath, summed
from framefree.motion.spatial import Matrix


class _GuardTotal:
    """Adds up how far tasks give way, and finds the least distance, on a tape."""

    def __init__(self, tape: Any) -> None:
        self.tape, self.distance = tape, None
        self._give: Any = None
        self._rate: Any = None

    def add(self, give: Any, rate: Any, distance: Any) -> None:
        """Take in what one body, or a pair, gives."""
        self._give = summed(self.tape, self._give, give)
        self._rate = summed(self.tape, self._rate, rate)
        self.distance = _lesser(self.tape, self.distance, distance)

    @property
    def compliance(self) -> Compliance | None:
        """How far tasks give way."""
        return None if self._give is None else Compliance(self._give, self._rate)


class Guard:
    """Keeps the bodies of a machine clear.

    Parameters
    ----------
    machine : Machine
    avoidance : Avoidance
    held : sequence of int
        Bodies whose motion a task determines: of a pair the other one yields.
    """

    def __init__(self, machine: Machine, avoidance: Avoidance, held: Sequence[int]) -> None:
        self.machine, self.avoidance, self.held = machine, avoidance, tuple(held)
        self.lines = avoidance.lines_of(machine)
        self.pairs = tuple(
            (machine.body_index[one], machine.body_index[other])
            for one, other in avoidance.pairs_of(machine)
        )

    @cached_property
    def mass(self) -> Any:
        """Mass of the whole machine, kg."""
        return sum(
            (ca.SX(constant(body.moments.total)) for body in self.machine.bodies if body.inertia),
            ca.SX(0),
        )

    @property
    def watches(self) -> bool:
        """Whether there is anything to keep clear of."""
        covered = any(len(lines) for lines in self.lines.values())
        return bool(self.pairs) or (bool(self.avoidance.obstacles) and covered)

    @property
    def length(self) -> float:
        """A length that makes turns and ways comparable, m."""
        return self.avoidance.reach

    def key(self, body: str) -> Any:
        """Return what covers a body."""
        return plain(self.lines[body])

    def guarded(
        self,
        chain: BodyChain,
        reference: Mapping[str, Any],
        request: VelocityRequest,
        softness: Sequence[Matrix],
    ) -> VelocityRequest:
        """Return a request with the rows of all bodies near obstacles.

        With pairs of bodies it is refined: how two bodies approach each other is known only when
        there is a first answer.
        """
        tape, total = chain.tape, _GuardTotal(chain.tape)
        rows: list[Any] = [None] * chain.count
        motions = tuple(
            item.motion(self.machine, reference) if item.needs else None
            for item in self.avoidance.obstacles
        )
        for i, body in enumerate(self.machine.bodies):
            if len(self.lines[body.name]) and self.avoidance.obstacles:
                rows[i], *more = tape.call(self.near, i, chain.placed[i], motions)
                total.add(*more)
        request = request._replace(
            barriers=rows,
            give=total.compliance if self.avoidance.yields else None,
            softness=tuple(softness),
            distance=total.distance,
        )
        if not self.pairs:
            return request
        return request._replace(refine=lambda first: self._paired(chain, request, first))

    def _paired(
        self, chain: BodyChain, request: VelocityRequest, first: NearestVelocity
    ) -> VelocityRequest:
        """Return a request with the rows of pairs of bodies, which a first answer would break."""
        tape, rows, total = chain.tape, list(request.barriers), _GuardTotal(chain.tape)
        if request.distance is not None:
            total.add(*(request.give or (None, None)), request.distance)
        for pair in self.pairs:
            places = tuple(chain.placed[i] for i in pair)
            asked = tuple((first.velocity.twists[i], first.rate.twists[i]) for i in pair)
            for ends in self._ends(chain.tape.model, pair):
                key = ("pair", plain(ends), self._shares(pair))
                step = wraps(self.between)(partial(self.between, ends, self._shares(pair)))
                before = tuple(rows[i] for i in pair)
                *found, give, rate, distance = tape.shared(key, step, places, asked, before)
                for i, one in zip(pair, found, strict=True):
                    rows[i] = one
                total.add(give, rate, distance)
        give = total.compliance if self.avoidance.yields else None
        return request._replace(barriers=rows, give=give, distance=total.distance, refine=None)

    def _shares(self, pair: tuple[int, int]) -> tuple[float, float]:
        """Return how much of what is needed each of two bodies does."""
        free = [i not in self.held for i in pair]
        return (free[0] / max(sum(free), 1), free[1] / max(sum(free), 1))

    def _ends(self, model: Any, pair: tuple[int, int]) -> list[np.ndarray]:
        """Return the ends (2, 2, 3) of every two lines of a pair of bodies, in link axes."""
        own = []
        for i in pair:
            G = np.asarray(ca.DM(model.links[i].to_body).full())
            lines = self.lines[self.machine.bodies[i].name]
            own.append([line @ G[:3, :3].T + G[:3, 3] for line in lines])
        return [np.stack(two) for two in product(*own)]

    def between(
        self, ends: np.ndarray, shares: tuple[float, float], places: Any, asked: Any, before: Any
    ) -> tuple[Any, ...]:
        """Return the rows of two bodies, with those they had before, compliance and distance.

        `asked` are twists (6) and rates of the first answer: what they lack of the target is
        shared.
        """
        points = tuple(bool(np.array_equal(*line)) for line in ends)
        at, moving = [], []
        for line, placed in zip(ends, places, strict=True):
            for q in map(ca.DM, line):
                at.append(placed.pose.r + placed.pose.R @ q)
                velocity = placed.twist.linear + ca.cross(placed.twist.angular, q)
                moving.append(placed.pose.R @ velocity)
        found = self.avoidance.pair_rows(*points)(ca.vertcat(*at), ca.vertcat(*moving), self.mass)
        (slopes, weight, target, give), (turned, *rates) = found[:4], found[4:8]
        sides = []
        for k, (line, placed) in enumerate(zip(ends, places, strict=True)):
            part, q = slice(6 * k, 6 * k + 6), [ca.DM(point) for point in line]
            sides.append(wrenches(placed, q, slopes[part, :], turned[part, :]))
        speeds = [
            (ca.dot(w, nu), ca.dot(dw, nu) + ca.dot(w, rate))
            for (w, dw), (nu, rate) in zip(sides, asked, strict=True)
        ]
        lacks = [target - speeds[0][0] - speeds[1][0], rates[1] - speeds[0][1] - speeds[1][1]]
        rows = []
        for side, share, own, earlier in zip(sides, shares, speeds, before, strict=True):
            targets = [own[k] + share * lacks[k] for k in range(2)]
            new = BarrierRows(side[0], weight, targets[0], side[1], rates[0], targets[1])
            rows.append(new if earlier is None else _together([earlier, new]))
        return *rows, give, rates[2], found[8]

    def near(self, body: BodyMath, placed: PlacedLink, motions: Any) -> tuple[Any, ...]:
        """Return the rows of a body, the compliance for it with its rate, and its distance."""
        avoidance, parts = self.avoidance, []
        for line in self.lines[body.joint.child]:
            ends = [self._on_link(body, point) for point in line]
            point = bool(np.array_equal(*line))
            for k, item in enumerate(avoidance.obstacles):
                motion = motions[k] or item.motion(self.machine, {})
                parts.append(self._rows(k, placed, ends, motion, point))
        rows = _together([p[0] for p in parts])
        give, rate = (sum((p[k] for p in parts), ca.SX(0)) for k in (1, 2))
        distance = ca.mmin(ca.vertcat(*(p[3] for p in parts)))
        return rows, give, rate, distance

    @staticmethod
    def _on_link(body: BodyMath, point: np.ndarray) -> Matrix:
        G = body.link.to_body
        return se3.rotation(G) @ ca.DM(point) + se3.position(G)

    def _rows(
        self, k: int, placed: PlacedLink, ends: list[Matrix], motion: Any, point: bool
    ) -> tuple[BarrierRows, Matrix, Matrix, Matrix]:
        R, r = placed.pose
        v, w = placed.twist
        at = [r + R @ q for q in ends]
        moving = [R @ (v + ca.cross(w, q)) for q in ends]
        function = self.avoidance.obstacle_rows(k, point)
        found = function(*at, *moving, *motion, self.mass)
        (slopes, weight, target, give), (turned, *rates) = found[:4], found[4:8]
        W, W_rate = wrenches(placed, ends, slopes, turned)
        rows = BarrierRows(W, weight, target, W_rate, rates[0], rates[1])
        return rows, give, rates[2], found[8]


def wrenches(
    placed: PlacedLink, ends: Sequence[Matrix], slopes: Matrix, rates: Matrix
) -> tuple[Matrix, Matrix]:
    """Return w (6 x k) with ``dd/dt = w . nu`` and its rate, in link axes.

    `ends` are points (3) on the link; `slopes` (6 x k) those of d by their places in world axes.
    """
    R, w = placed.pose.R, placed.twist.angular
    W, dW = [], []
    for k in range(slopes.shape[1]):
        total = [ca.SX(3, 1)] * 4
        for j, q in enumerate(ends):
            part = slice(3 * j, 3 * j + 3)
            f = R.T @ slopes[part, k]
            df = R.T @ rates[part, k] - ca.cross(w, f)
            more = (f, ca.cross(q, f), df, ca.cross(q, df))
            total = [a + b for a, b in zip(total, more, strict=True)]
        W.append(ca.vertcat(*total[:2]))
        dW.append(ca.vertcat(*total[2:]))
    return ca.densify(ca.horzcat(*W)), ca.densify(ca.horzcat(*dW))


def _together(parts: Sequence[BarrierRows]) -> BarrierRows:
    """Return the rows of all parts as one."""
    W, weight, target, W_rate, weight_rate, target_rate = zip(*parts, strict=True)
    return BarrierRows(
        ca.horzcat(*W),
        ca.vertcat(*weight),
        ca.vertcat(*target),
        ca.horzcat(*W_rate),
        ca.vertcat(*weight_rate),
        ca.vertcat(*target_rate),
    )


def _lesser(tape: Any, a: Any, b: Any) -> Any:
    if a is None:
        return b
    least = tape.shared("least", ca.fmin, a, b)
    tape.forget(a, b)
    return least
