"""Inverse kinematics: a configuration in which frames are where they should be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from framefree.machine import Machine
from framefree.machine.tree import unknown
from framefree.motion.constrained.project import ClosureError
from framefree.solve.errors import SolveError
from framefree.solve.kinematics import FrameErrors, Targets, constrained, frame_errors
from framefree.solve.least_squares import LeastSquares, minimise
from framefree.solve.reach import Reach, reach

STARTS = 8
"""Random starts that are tried at once."""

BARELY = 1 + 1e-12
"""Factor by which a target may be beyond the reach of a frame: rounding."""


@dataclass(frozen=True)
class Posture:
    """The result of inverse kinematics; for a batch of targets, arrays with a leading axis.

    Attributes
    ----------
    x : (nx,)
        The configuration, or the nearest one found.
    reached : bool
        Whether all errors are within the tolerance.
    residuals : dict of str to (2,)
        Distance in m and angle in rad that every frame is off; 0 where it has no target.
    message : str
        The same in words, with what stands in the way.
    attempts : int
        Starts that were tried, at most, for one target.
    """

    x: np.ndarray
    reached: Any
    residuals: dict[str, np.ndarray]
    message: str
    attempts: int


def inverse_kinematics(
    machine: Machine,
    targets: Mapping[str, Any],
    x0: Any = None,
    *,
    limits: bool = True,
    hold: Sequence[str] = (),
    weights: Mapping[str, Any] | None = None,
    tolerance: float = 1e-10,
    attempts: int = 100,
    seed: int = 0,
    parameters: Any = None,
) -> Posture:
    """Find a configuration in which frames have the target poses, attitudes or positions.

    Loops and couplings of the machine stay closed. The search starts at x0; if that fails, at
    random configurations, and of those that then succeed the nearest to x0 is taken.

    Parameters
    ----------
    machine : Machine
    targets : mapping of frame to (4, 4), (3, 3) or (3,)
        Pose, attitude or position in the world; or batches of them, (k, 4, 4) and so on, which are
        solved together.
    x0 : (nx,) or (k, nx), optional
        Where to start; default neutral.
    limits : bool
        Whether coordinates stay within the limits of their joints.
    hold : sequence of str
        Joints, or single velocities as in `machine.v_names`, that do not move from x0.
    weights : mapping of frame to number or (number, number), optional
        Weights of position (1/m) and attitude (1/rad) errors; they matter where not all can be met.
    tolerance : float
        Largest error that counts as reached, m and rad.
    attempts : int
        Largest number of starts.
    seed : int
        Seed of the random starts.
    parameters
        Values of the machine's tunable numbers, by default their defaults.

    Returns
    -------
    Posture
        With `reached` false, the nearest configuration found.

    Raises
    ------
    SolveError, MachineError, StateError
        If the problem is not stated as it should be.
    """
    machine = machine.with_parameters(parameters)
    goal = Targets.of(machine, targets)
    first = _first(machine, x0, goal.count, limits=limits)
    search = _PostureSearch(
        machine, goal, first, hold, limits, _checked_weights(goal, weights), tolerance
    )
    search.run(attempts, np.random.default_rng(seed))
    return search.posture(goal.batch is None and np.ndim(x0) != 2)


def _first(machine: Machine, x0: Any, count: int, *, limits: bool) -> np.ndarray:
    if x0 is None:
        x0 = machine.neutral()
        if limits:
            lower, upper = _limits(machine)
            x0 = np.clip(x0, lower, upper)
    x0 = np.asarray(x0, dtype=float)
    machine.validate(x0)
    if x0.ndim == 2 and count not in (1, len(x0)):
        raise SolveError(f"`x0` must be one configuration or {count}, got {len(x0)}")
    many = np.atleast_2d(machine.normalise(x0))
    return np.array(np.broadcast_to(many, (max(count, len(many)), machine.nx)))


def _limits(machine: Machine) -> tuple[np.ndarray, np.ndarray]:
    """Limits (nx,) of plain coordinates; infinite for all others."""
    lower, upper = np.full(machine.nx, -np.inf), np.full(machine.nx, np.inf)
    for joint in machine.joints:
        if joint.kind.vector:
            own = machine.x_slice[joint.name]
            lower[own], upper[own] = joint.lower, joint.upper
    return lower, upper


def _checked_weights(goal: Targets, weights: Mapping[str, Any] | None) -> dict[str, np.ndarray]:
    chosen, known = dict(weights or {}), [frame for frame, _ in goal.kinds]
    for frame, value in chosen.items():
        if frame not in known:
            raise SolveError(unknown("`weights` of a target:", frame, known))
        pair = np.asarray(value, dtype=float)
        if pair.shape not in ((), (2,)) or not (pair > 0).all():
            raise SolveError(
                f"the weight of `{frame}` must be one or two positive numbers, got {value!r}"
            )
    return {frame: np.broadcast_to(np.asarray(chosen.get(frame, 1.0), float), 2) for frame in known}


def held_velocities(machine: Machine, hold: Sequence[str]) -> np.ndarray:
    """Return which velocities (nv,) are held; `hold` names joints or single velocities."""
    held = np.zeros(machine.nv, dtype=bool)
    for name in hold:
        if name in machine.v_slice:
            held[machine.v_slice[name]] = True
        elif name in machine.v_names:
            held[machine.v_names.index(name)] = True
        else:
            raise SolveError(unknown("`hold`:", name, (*machine.v_slice, *machine.v_names)))
    return held


class _PostureSearch:
    """The best configuration of every problem so far, and ways to better it."""

    def __init__(
        self,
        machine: Machine,
        goal: Targets,
        first: np.ndarray,
        hold: Sequence[str],
        limits: bool,
        weights: dict[str, np.ndarray],
        tolerance: float,
    ) -> None:
        self.machine, self.goal, self.first, self.tolerance = machine, goal, first, tolerance
        self.limits, self.attempts = limits, 0
        self.errors: FrameErrors = frame_errors(machine, goal.kinds)
        self.held = held_velocities(machine, hold)
        self.closed = bool(machine.loops or machine.couplings)
        self.weights = np.ones(self.errors.kernel.outputs[0].shape)
        for frame, pair in weights.items():
            for own, weight in zip(self.errors.rows[frame], pair, strict=True):
                if own is not None:
                    self.weights[own] = weight
        self._set_bounds()
        self.best, self.cost = first.copy(), np.full(len(first), np.inf)
        self.solved = np.zeros(len(first), dtype=bool)

    def _set_bounds(self) -> None:
        machine = self.machine
        lower, upper = _limits(machine)
        if not self.limits:
            lower[:], upper[:] = -np.inf, np.inf
        plain = np.isfinite(lower) | np.isfinite(upper)
        vector = np.zeros(machine.nx, dtype=int)
        for joint in machine.joints:
            if joint.kind.vector:
                span = machine.v_slice[joint.name]
                vector[machine.x_slice[joint.name]] = np.arange(span.start, span.stop)
        self.bound_x, self.bound_v = np.flatnonzero(plain), vector[plain]
        self.lower, self.upper = lower, upper

    # ------------------------------------------------------------------ one round of starts

    def problem(self, owner: np.ndarray, penalty: float = 1.0) -> LeastSquares:
        """Return the least-squares problem; `owner` tells which target belongs to each row."""
        weights = self.weights.copy()
        weights[self.errors.others] *= penalty

        def evaluate(x: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            e, J = self.errors.kernel(x, *self.goal.at(owner[which]))
            return e * weights, J * weights[:, None]

        tolerance = self.tolerance * float(weights.min())
        return LeastSquares(evaluate, self._move, self._room, tolerance)

    def _move(self, x: np.ndarray, step: np.ndarray) -> np.ndarray:
        moved = self.errors.moved(x, step)
        return np.clip(moved, self.lower, self.upper)

    def _room(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low = np.full((len(x), self.machine.nv), -np.inf)
        high = np.full((len(x), self.machine.nv), np.inf)
        low[:, self.bound_v] = (self.lower - x)[:, self.bound_x]
        high[:, self.bound_v] = (self.upper - x)[:, self.bound_x]
        low[:, self.held] = high[:, self.held] = 0.0
        return low, high

    def attempt(self, starts: np.ndarray, owner: np.ndarray) -> None:
        """Try starts (k, nx) for the problems they belong to, and keep what is better."""
        if not len(owner):
            return
        answer = minimise(self.problem(owner), starts)
        e, _ = self.errors.kernel(answer.z, *self.goal.at(owner))
        met = np.abs(e).max(axis=1, initial=0.0) <= self.tolerance
        away = np.linalg.norm(self.machine.difference(self.first[owner], answer.z), axis=1)
        for k in np.lexsort((np.where(met, away, answer.cost), ~met)):
            i = owner[k]
            if not self.solved[i] and (met[k] or answer.cost[k] < self.cost[i]):
                self.best[i], self.cost[i], self.solved[i] = answer.z[k], answer.cost[k], met[k]

    def run(self, attempts: int, rng: np.random.Generator) -> None:
        """Search from the first configuration, then from random ones."""
        every = np.arange(len(self.first))
        inside = self._move(self.first, np.zeros((len(every), self.machine.nv)))
        inside = np.where(self._kept, self.first, inside)
        self.attempt(inside, every)
        self.attempts = 1
        while self.attempts < attempts:
            # Where no start can succeed, one round is enough to find the nearest configuration.
            pending = ~self.solved if self.attempts == 1 else ~(self.solved | self._too_far)
            if not pending.any():
                break
            count = min(STARTS, attempts - self.attempts)
            left = np.repeat(every[pending], count)
            starts = np.where(self._kept, self.first[left], self.machine.random(rng, len(left)))
            self.attempt(starts, left)
            self.attempts += count
        if self.closed:
            self._close()

    @property
    def _kept(self) -> np.ndarray:
        """Coordinates (nx,) of joints that are held in whole or in part."""
        kept = np.zeros(self.machine.nx, dtype=bool)
        for joint in self.machine.joints:
            kept[self.machine.x_slice[joint.name]] = self.held[
                self.machine.v_slice[joint.name]
            ].any()
        return kept

    def _close(self) -> None:
        """Where a target is out of reach, give closed loops the precedence over frames."""
        for i in np.flatnonzero(~self.solved):
            x, owner = self.best[i : i + 1], np.array([i])
            for penalty in (1e2, 1e4):
                x = minimise(self.problem(owner, penalty), x).z
            names = [
                name for name, held in zip(self.machine.v_names, self.held, strict=True) if held
            ]
            try:
                x[0] = constrained(self.machine).project(x[0], weight="unit", hold=names).x
            except ClosureError:
                continue
            self.best[i] = x[0]

    @cached_property
    def _balls(self) -> dict[str, Reach | None]:
        """Reach of the origins of the frames that have a target position."""
        frames = [frame for frame, kind in self.goal.kinds if kind != "attitude"]
        return {frame: reach(self.machine, frame, limits=self.limits) for frame in frames}

    @cached_property
    def _too_far(self) -> np.ndarray:
        """Which problems (k,) have a target beyond the reach of its frame."""
        too_far = np.zeros(len(self.first), dtype=bool)
        for frame, position in self._positions(np.arange(len(self.first))).items():
            ball = self._balls[frame]
            if ball is not None:
                too_far |= np.linalg.norm(position - ball.center, axis=1) > ball.radius * BARELY
        return too_far

    def _positions(self, problems: np.ndarray) -> dict[str, np.ndarray]:
        """Target positions (k, 3) by frame."""
        values = zip(self.goal.kinds, self.goal.at(problems), strict=True)
        return {
            frame: value[:, :3, 3] if kind == "pose" else value
            for (frame, kind), value in values
            if kind != "attitude"
        }

    # ------------------------------------------------------------------ the answer

    def posture(self, single: bool) -> Posture:
        """Return the best configurations, with what they miss."""
        every = np.arange(len(self.best))
        e, _ = self.errors.kernel(self.best, *self.goal.at(every))
        residuals = {}
        for frame, rows in self.errors.rows.items():
            parts = [
                np.zeros(len(e)) if o is None else np.linalg.norm(e[:, o], axis=1) for o in rows
            ]
            residuals[frame] = np.stack(parts, axis=1)
        message = self._message(residuals)
        if single:
            first = {frame: value[0] for frame, value in residuals.items()}
            return Posture(self.best[0], bool(self.solved[0]), first, message, self.attempts)
        return Posture(self.best, self.solved, residuals, message, self.attempts)

    def _message(self, residuals: dict[str, np.ndarray]) -> str:
        missed = np.flatnonzero(~self.solved)
        count = len(self.solved)
        if not len(missed):
            return "reached" if count == 1 else f"all {count} targets reached"
        worst = missed[int(np.argmax(self.cost[missed]))]
        words = self._why(worst, {frame: value[worst] for frame, value in residuals.items()})
        if count == 1:
            return words
        return f"{count - len(missed)} of {count} targets reached; target {worst}: {words}"

    def _why(self, i: int, residuals: dict[str, np.ndarray]) -> str:
        off = [
            f"`{frame}` is {_distance(frame, value, self.errors)} away at best"
            for frame, value in residuals.items()
            if value.max() > self.tolerance
        ]
        words = ", ".join(off) or "the loops or limits cannot be met"
        words += f", after {self.attempts} attempts"
        for frame, position in self._positions(np.array([i])).items():
            words += self._beyond(frame, position[0])
        stuck = self._at_limits(self.best[i])
        return words + (f"; at their limits: {', '.join(stuck)}" if stuck else "")

    def _beyond(self, frame: str, target: np.ndarray) -> str:
        ball = self._balls[frame]
        if ball is None:
            return f"; no joint moves `{frame}`"
        distance = float(np.linalg.norm(target - ball.center))
        if distance <= ball.radius * BARELY:
            return ""
        return (
            f"; its target is out of reach: {distance:.4g} m from joint `{ball.joint}`, of which "
            f"`{frame}` stays within {ball.radius:.4g} m"
        )

    def _at_limits(self, x: np.ndarray) -> list[str]:
        near = 1e-9
        return [
            f"`{name}`"
            for name, value, low, high in zip(
                self.machine.x_names, x, self.lower, self.upper, strict=True
            )
            if value <= low + near or value >= high - near
        ]


def _distance(frame: str, value: np.ndarray, errors: FrameErrors) -> str:
    linear, angular = errors.rows[frame]
    parts = []
    if linear is not None:
        parts.append(f"{value[0]:.3g} m")
    if angular is not None:
        parts.append(f"{np.degrees(value[1]):.3g} deg")
    return " and ".join(parts)
