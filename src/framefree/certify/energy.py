"""Energy along a short free motion, friction and drag taken away: it must not change."""

from typing import NamedTuple

import casadi as ca
import numpy as np

from framefree.certify.report import Finding
from framefree.certify.subject import UNDEFINED, Subject, evaluate, without_losses
from framefree.kernel import Kernel, compile
from framefree.machine import Machine
from framefree.motion import Equations
from framefree.motion.tree import Tree

NAME = "energy_drift"
MEANING = "energy of a free motion without friction is constant, relative to its exchange"
BAR = 1e-9
MOTIONS = 3
DURATION = 0.6
"""Length of the motion, in the machine's own unit of time, sqrt(L / g)."""
RADIANS = 10.0
"""Most that the fastest oscillation may turn in the motion, else it is shorter."""
COARSE, FINE = 32, 2048
CONVERGES = 3.5
"""Order from which the drift counts as one of the integrator, which has order 4."""
ENERGY_DIGITS = 1e-6
"""Share of the potential energy that counts as the least exchange."""
ROUNDING = 1e-13
"""Drift below which the order of the integrator no longer shows."""


class Drift(NamedTuple):
    """Relative change of energy, the order at which it falls with the step, steps and duration.

    Where it falls as that of the integrator does, `value` is what is left of it for steps of length
    zero, by Richardson's extrapolation.
    """

    value: float
    order: float
    steps: int
    duration: float


def conservation(subject: Subject) -> Finding:
    """Integrate a few random states and compare their energies."""
    machine = without_losses(subject.machine)
    applying, _ = subject.applicable(machine)
    reference = subject.reference(applying)
    states = subject.closed_states
    if subject.singular:
        return Finding.skipped(NAME, MEANING, UNDEFINED)
    if not reference or not len(states):
        reason = "no formulation in joint coordinates applies" if len(states) else "no closed state"
        return Finding.skipped(NAME, MEANING, reason)
    chosen = np.arange(len(states))[:MOTIONS]
    if subject.closed:
        # A motion must not run into a position in which loops lose rank.
        chosen = np.argsort(-subject.closure.margins(states.x), kind="stable")[:MOTIONS]
    x, v = states.x[chosen], states.v[chosen]
    duration = DURATION * subject.units.time
    rate = fastest_rate(subject, machine, x)
    if rate * duration > RADIANS:
        duration = RADIANS / rate
    drift = energy_drift(applying[reference], x, v, duration)
    return Finding.measured(
        NAME,
        drift.value,
        BAR,
        MEANING,
        "the equations create or lose energy: see skew, bias and power residuals",
        note=f"{drift.duration:.3g} s in {drift.steps} Runge-Kutta steps; order {drift.order:.2g}",
    )


def fastest_rate(subject: Subject, machine: Machine, x: np.ndarray) -> float:
    """Return about the fastest rate (1/s) of small motions about rest at configurations (n, nx).

    Along what loops allow: with these opened, bodies without mass would move at no cost. That their
    forces turn as the loops move is left out.
    """
    tree = Tree(machine.tree)
    xs, zero = ca.SX.sym("x", machine.nx), ca.DM.zeros(machine.nv)
    slopes = tree.functions["inverse_derivatives"](xs, zero, zero)[0]
    function = ca.Function("rates", [xs], [tree.functions["mass"](xs), ca.densify(slopes)])
    masses, stiffnesses = evaluate(function, x)
    D = subject.units.velocity[:, None]
    closure = subject.closure.allowed_directions(x) if subject.closed else None
    bases = [D * np.eye(len(D))] * len(x) if closure is None else [D * Z for Z in closure]
    squares = [
        np.abs(np.linalg.eigvals(np.linalg.solve(B.T @ M @ B, B.T @ K @ B))).max(initial=0.0)
        for M, K, B in zip(masses, stiffnesses, bases, strict=True)
    ]
    return float(np.sqrt(max(squares, default=0.0)))


def energy_drift(eom: Equations, x: np.ndarray, v: np.ndarray, longest: float) -> Drift:
    """Return the drift from states (n, nx), (n, nv) with no force, steps halved until it is small.

    The motion, of `longest` seconds, is shortened where it is too fast for the steps.
    """
    step = _rates(eom)
    drift = Drift(np.inf, 0.0, 0, longest)
    for duration in longest * 10.0 ** -np.arange(4):
        steps, last, before = COARSE, np.inf, None
        while steps <= FINE:
            now = _drift_over(eom, step, x, v, duration, steps)
            value = np.inf if now is None else float(np.abs(now).max())
            order = float(np.log2(last / value)) if 0 < value < last < np.inf else 0.0
            left = value
            if order >= CONVERGES and now is not None and before is not None:
                left = float(np.abs(now + (now - before) / (2**order - 1)).max())
            drift = Drift(min(value, left), order, steps, float(duration))
            if drift.value <= BAR and (last < np.inf or value < ROUNDING):
                return drift
            steps, last, before = 2 * steps, value, now
        stands = 1e-7 < drift.value < np.inf and drift.order < 0.5
        if drift.order >= CONVERGES or stands:
            break
    return drift


def _rates(eom: Equations) -> Kernel:
    """Compile (x, v) -> (dx/dt, dv/dt) of the free motion."""
    machine = eom.machine
    x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    a = eom.functions["forward"](x, v, ca.DM.zeros(machine.nv))
    rates = [ca.densify(machine.rate_matrix(x) @ v), ca.densify(a)]
    return compile(ca.Function("rates", [x, v], rates, ["x", "v"], ["x_dot", "v_dot"]))


def _drift_over(
    eom: Equations, rates: Kernel, x: np.ndarray, v: np.ndarray, duration: float, steps: int
) -> np.ndarray | None:
    """Return the change of energy (8, n) on the way, relative; None where it is not finite."""
    h, every = duration / steps, steps // 8
    records = [(x, v)]
    for k in range(1, steps + 1):
        x, v = _runge_kutta(rates, x, v, h)
        x = eom.machine.normalise(x)
        if k % every == 0:
            records.append((x, v))
    energies = [evaluate(eom.functions["energy"], *record) for record in records]
    kinetic, potential = np.array(energies)[..., 0, 0].swapaxes(0, 1)
    total = kinetic + potential
    if not np.isfinite(total).all():
        return None
    exchanged = kinetic.max(axis=0) + np.ptp(potential, axis=0)
    # A motion at rest exchanges nothing, and no energy is known better than to its last digits.
    least = ENERGY_DIGITS * np.abs(potential).max(axis=0)
    sizes = np.maximum(exchanged, least)
    return np.divide(total[1:] - total[0], sizes, out=np.zeros_like(total[1:]), where=sizes > 0)


def _runge_kutta(
    rates: Kernel, x: np.ndarray, v: np.ndarray, h: float
) -> tuple[np.ndarray, np.ndarray]:
    """One classical step of order 4 on (x, v); quaternions leave unit length by O(h^5) only."""
    x1, v1 = rates(x, v)
    x2, v2 = rates(x + h / 2 * x1, v + h / 2 * v1)
    x3, v3 = rates(x + h / 2 * x2, v + h / 2 * v2)
    x4, v4 = rates(x + h * x3, v + h * v3)
    return x + h / 6 * (x1 + 2 * x2 + 2 * x3 + x4), v + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4)
