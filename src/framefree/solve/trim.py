"""Equilibria and trim: states without acceleration, and whether they are stable."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from framefree.machine import Machine
from framefree.machine.tree import unknown
from framefree.motion.constrained.project import ClosureError
from framefree.motion.equations import Equations
from framefree.solve.balance import Balance, balance_of, small_motions
from framefree.solve.errors import SolveError
from framefree.solve.input_limits import ActuatorLimits
from framefree.solve.inverse_kinematics import held_velocities
from framefree.solve.least_squares import LeastSquares, minimise
from framefree.solve.relax import relaxed
from framefree.solve.stability import CHANGING, Stability, changes, judged
from framefree.solve.steady import LATER

GRAVITY = 9.81
"""Acceleration that inputs and multipliers of unit size are scaled to."""


@dataclass(frozen=True)
class Trim:
    """A state without acceleration, or the nearest to one that the search reached.

    Attributes
    ----------
    x, v, u : (nx,), (nv,), (nu,)
    success : bool
        Whether nothing accelerates, now and along the motion, and all limits are kept.
    acceleration : (nv,)
        What is left.
    stability : Stability or None
        Stability of small motions with inputs held; None without success, or if they change along
        a steady motion, so that eigenvalues do not tell.
    message : str
        The same in words.
    """

    x: np.ndarray
    v: np.ndarray
    u: np.ndarray
    success: bool
    acceleration: np.ndarray
    stability: Stability | None
    message: str

    def __str__(self) -> str:
        modes = () if self.stability is None else str(self.stability).splitlines()[1:]
        return "\n".join([self.message, *modes])


def equilibrium(
    system: Machine | Equations,
    x0: Any = None,
    u: Any = None,
    *,
    hold: Sequence[str] = (),
    stable: bool = False,
    tolerance: float = 1e-9,
    attempts: int = 10,
    seed: int = 0,
    parameters: Any = None,
) -> Trim:
    """Find a configuration in which a machine stays at rest under constant inputs.

    Parameters
    ----------
    system : Machine or Equations
        A machine, with or without loops and couplings; or its equations in the formulation `tree`
        or `constrained`, with the constraints that were laid upon them.
    x0 : (nx,), optional
        Where to look; default neutral.
    u : (nu,), optional
        Inputs; default zero.
    hold : sequence of str
        Joints, or single velocities as in `machine.v_names`, that keep their values. Forces must
        balance there too.
    stable : bool
        Whether to follow the forces downhill first, to a minimum of the potential where there is
        one. Otherwise the nearest equilibrium of any kind is looked for.
    tolerance : float
        Largest acceleration, m/s^2 and rad/s^2, that counts as none.
    attempts : int
        Largest number of starts: x0, then configurations around it.
    seed : int
        Seed of those.
    parameters
        Values of the machine's tunable numbers, by default their defaults.

    Returns
    -------
    Trim
        With the stability; `success` is false if no equilibrium is near.
    """
    balance = balance_of(system, parameters)
    names = (hold, balance.machine.u_names, ())
    search = _TrimSearch(balance, x0, None, u, names, tolerance, limits=False)
    return search.run(attempts, np.random.default_rng(seed), stable=stable)


def trim(
    system: Machine | Equations,
    x0: Any = None,
    v: Any = None,
    u0: Any = None,
    *,
    hold: Sequence[str] = (),
    hold_inputs: Sequence[str] = (),
    free_velocities: Sequence[str] = (),
    limits: bool = True,
    tolerance: float = 1e-9,
    attempts: int = 10,
    seed: int = 0,
    parameters: Any = None,
) -> Trim:
    """Find a state, and inputs within their limits, in which nothing accelerates.

    With a velocity this is a steady motion: velocities stay constant while the machine moves on,
    such as a vehicle on a straight line, a circle or a helix (constant body twist), or a spinning
    top. If inputs alone can balance the machine at x0 it stays there; otherwise a state near is
    looked for.

    Parameters
    ----------
    system : Machine or Equations
        A machine, with or without loops and couplings; or its equations in the formulation `tree`
        or `constrained`, with the constraints that were laid upon them.
    x0 : (nx,), optional
        Where to look; default neutral.
    v : (nv,), optional
        Velocity; default at rest. It is kept, except for `free_velocities`.
    u0 : (nu,), optional
        Inputs to start from; default zero, or the nearest that is within the limits.
    hold : sequence of str
        Joints, or single velocities as in `machine.v_names`, whose coordinates keep their values.
    hold_inputs : sequence of str
        Inputs, as in `machine.u_names`, that keep their values.
    free_velocities : sequence of str
        Velocities, as in `machine.v_names`, that are unknowns, too.
    limits : bool
        Whether inputs stay within their limits.
    tolerance, attempts, seed, parameters
        As for `equilibrium`.

    Returns
    -------
    Trim
        With the stability for inputs held; `success` is false if no such state is near.
    """
    balance = balance_of(system, parameters)
    names = (hold, hold_inputs, free_velocities)
    search = _TrimSearch(balance, x0, v, u0, names, tolerance, limits=limits)
    return search.run(attempts, np.random.default_rng(seed))


class _TrimSearch:
    """Unknowns z = (x, v, u, lam, d(lam)/dt), which of them may change, and how far."""

    def __init__(
        self,
        balance: Balance,
        x0: Any,
        v: Any,
        u0: Any,
        names: tuple[Sequence[str], Sequence[str], Sequence[str]],
        tolerance: float,
        *,
        limits: bool,
    ) -> None:
        self.balance, self.machine, self.units = balance, balance.machine, balance.units
        machine = balance.machine
        # Accelerations below 1e-13 of the machine's own are rounding errors.
        self.tolerance = max(tolerance, 1e-13 * self.units.length / self.units.time**2)
        hold, hold_inputs, free_velocities = names
        self.held = held_velocities(machine, hold)
        self.free_v = _chosen(free_velocities, machine.v_names, "`free_velocities`:")
        self.free_u = ~_chosen(hold_inputs, machine.u_names, "`hold_inputs`:")
        x = machine.neutral() if x0 is None else x0
        v = np.zeros(machine.nv) if v is None else v
        machine.validate(x, v)
        self.x, self.v = machine.normalise(x), np.asarray(v, dtype=float)
        self.moving = bool(self.v.any() or self.free_v.any())
        self._set_inputs(u0, limits=limits)
        self._set_scales()

    def _set_inputs(self, u0: Any, *, limits: bool) -> None:
        nu = self.machine.nu
        self.limits = (
            ActuatorLimits.of(self.machine) if limits else ActuatorLimits.none(self.machine)
        )
        u = np.zeros(nu) if u0 is None else np.asarray(u0, dtype=float)
        if u.shape != (nu,) or not np.isfinite(u).all():
            raise SolveError(f"inputs must be {nu} finite numbers, got {u0!r}")
        self.u = np.where(self.free_u, np.clip(u, self.limits.lower, self.limits.upper), u)

    def _set_scales(self) -> None:
        """Rows of forces in units of acceleration; inputs and multipliers by what they cause."""
        sizes = np.diag(self.balance.mass(self.x))
        self.masses = np.maximum(sizes, 1e-3 * self.units.inertia)
        b, nv = self.balance, self.machine.nv
        J = b.at_rest(*b.split(self._start(self.x)))[1].full()
        effects = np.abs(J[:nv, 2 * nv :] / self.masses[:, None]).max(axis=0, initial=0.0)
        scale = GRAVITY / np.where(effects > 0, effects, GRAVITY)
        scale[len(scale) - b.rows :] = scale[self.machine.nu : self.machine.nu + b.rows]
        self.scale = np.concatenate([np.ones(2 * nv), scale])

    def _start(self, x: np.ndarray) -> np.ndarray:
        return np.concatenate([x, self.v, self.u, np.zeros(2 * self.balance.rows)])

    # ------------------------------------------------------------------ as least squares

    def _rows(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        function = self.balance.in_motion if self.moving else self.balance.at_rest
        r, J = (part.full() for part in function(*self.balance.split(z)))
        r, nv, m = r.ravel(), self.machine.nv, self.balance.rows
        weights = np.ones(len(r))
        weights[:nv] = 1 / self.masses
        if self.moving:
            weights[nv + 3 * m :] = 1 / self.masses
        x, v, u, _, _ = self.balance.split(z)
        over, slopes = self.limits.rows(x, v, u, self.masses)
        beyond = np.zeros((len(over), J.shape[1]))
        beyond[:, : slopes.shape[1]] = slopes
        return np.append(r * weights, over), np.vstack([J * weights[:, None], beyond]) * self.scale

    def _evaluate(self, z: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = [self._rows(one) for one in z]
        return np.array([r for r, _ in rows]), np.array([J for _, J in rows])

    def _move(self, z: np.ndarray, step: np.ndarray) -> np.ndarray:
        nx, nv = self.machine.nx, self.machine.nv
        step = step * self.scale
        x = self.machine.normalise(self.machine.integrate(z[:, :nx], step[:, :nv]))
        return np.hstack([x, z[:, nx:] + step[:, nv:]])

    def _room(self, z: np.ndarray, held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        m, u = self.balance.rows, self.balance.split(z[0])[2]
        infinite, none = np.full(2 * m, np.inf), np.zeros(self.machine.nv)
        bounds = []
        for sign, limit in ((-1, self.limits.lower), (1, self.limits.upper)):
            parts = [
                np.where(held, none, sign * np.inf),
                np.where(self.free_v, sign * np.inf, none),
                np.where(self.free_u, limit - u, 0.0),
                sign * infinite,
            ]
            bounds.append(np.concatenate(parts)[None] / self.scale)
        return bounds[0], bounds[1]

    # ------------------------------------------------------------------ the search

    def run(self, attempts: int, rng: np.random.Generator, *, stable: bool = False) -> Trim:
        """Return the first state found, or the best."""
        best: tuple[float, Trim] | None = None
        if self.free_u.any():
            # What inputs alone can hold stays where it is.
            _, result = self._solved(self.x, np.ones_like(self.held))
            if result.success:
                return result
        for attempt in range(max(attempts, 1)):
            stray = (~self.held) * rng.normal(size=self.machine.nv) * (attempt / attempts)
            stray = self.units.velocity * stray
            x = self.machine.integrate(self.x, stray) if attempt else self.x
            if stable:
                x = relaxed(self.balance, x, self.u, self.held, rng)
            if x is None:
                continue
            cost, result = self._solved(x, self.held)
            falls = result.stability is not None and result.stability.verdict == "unstable"
            if result.success and not (stable and falls):
                return result
            if best is None or cost < best[0]:
                best = (cost, result)
        if best is None:
            raise SolveError("no start could be brought onto the constraints of the machine")
        return best[1]

    def _solved(self, x: np.ndarray, held: np.ndarray) -> tuple[float, Trim]:
        """Return the state reached from x with some velocities held, and the squares left."""
        room = partial(self._room, held=held)
        problem = LeastSquares(self._evaluate, self._move, room, self.tolerance / 10)
        answer = minimise(problem, self._start(x)[None], 200)
        return float(answer.cost[0]), self._judged(answer.z[0])

    def _judged(self, z: np.ndarray) -> Trim:
        x, v, u, _, _ = self.balance.split(z)
        x, v, problem = self._closed(x, v)
        a = self.balance.acceleration(x, v, u).a
        trimmed = Trim(x, v, u, False, a, None, "")
        if not problem:
            problem = self._what_moves(a) or self.limits.what_exceeds(x, v, u)
            problem = problem or self._what_drifts(x, v, u)
        if problem:
            stuck = self.limits.what_is_stuck(u, self.free_u)
            return replace(
                trimmed, message=f"no {self._word} found near the start: {problem}{stuck}"
            )
        result = judged(self.balance, small_motions(self.balance, x, v, u))
        if changes(self.balance, result, x, v, u):
            return replace(trimmed, success=True, message=f"{self._word}; {CHANGING}")
        words = f"{self._word}, {result.verdict}"
        return replace(trimmed, success=True, stability=result, message=words)

    @property
    def _word(self) -> str:
        if self.moving:
            return "steady motion"
        return "trim" if self.free_u.any() else "equilibrium"

    def _closed(self, x: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, str]:
        if not self.balance.rows:
            return x, v, ""
        try:
            state = self.balance.equations.project(x, v)
        except ClosureError as error:
            return x, v, str(error)
        if np.abs(state.v - v).max(initial=0.0) > 1e-6:
            return x, v, "the velocity does not go along the constraints"
        return state.x, state.v, ""

    def _what_moves(self, a: np.ndarray) -> str:
        worst = int(np.argmax(np.abs(a))) if len(a) else 0
        if not len(a) or abs(a[worst]) <= self.tolerance:
            return ""
        return f"`{self.machine.v_names[worst]}` accelerates by {a[worst]:.4g} at least"

    def _what_drifts(self, x: np.ndarray, v: np.ndarray, u: np.ndarray) -> str:
        if not v.any():
            return ""
        for time in self.units.time * np.array(LATER):
            later = self.machine.integrate(x, v * time)
            a = np.abs(self.balance.acceleration(later, v, u).a).max(initial=0.0)
            if not a <= 1e3 * self.tolerance * (1 + np.abs(v).max()):
                return f"without acceleration for an instant only; {time:.3g} s later it is {a:.4g}"
        return ""


def _chosen(names: Sequence[str], known: tuple[str, ...], what: str) -> np.ndarray:
    for name in names:
        if name not in known:
            raise SolveError(unknown(what, name, known))
    return np.array([name in names for name in known], dtype=bool)
