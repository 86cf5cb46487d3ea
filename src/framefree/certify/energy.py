"""Energy along a short free motion, friction and drag taken away: it must not change."""

from typing import NamedTuple

import casadi as ca
import numpy as np

from framefree.certify.report import Finding
from framefree.certify.subject import UNDEFINED, Subject, evaluate, without_losses
from framefree.kernel import Kernel, compile
from framefree.motion import Equations

NAME = "energy_drift"
MEANING = "energy of a free motion without friction is constant, relative to its exchange"
BAR = 1e-9
MOTIONS = 3
DURATION = 0.6
"""Length of the motion, in the machine's own unit of time, sqrt(L / g)."""
COARSE, FINE = 32, 2048
CONVERGES = 3.5
"""Order from which the drift counts as one of the integrator, which has order 4."""
ROUNDING = 1e-13
"""Drift below which the order of the integrator no longer shows."""


class Drift(NamedTuple):
    """Relative change of energy, the order at which it falls with the step, steps and duration."""

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
    duration = DURATION * subject.units.time
    drift = energy_drift(applying[reference], states.x[chosen], states.v[chosen], duration)
    # A stiff machine needs shorter steps than we take; that its drift vanishes with them is enough.
    converges = drift.order >= CONVERGES
    return Finding.measured(
        NAME,
        drift.value,
        max(BAR, drift.value) if converges else BAR,
        MEANING,
        "the equations create or lose energy: see skew, bias and power residuals, or stiff springs",
        note=f"{drift.duration:g} s in {drift.steps} Runge-Kutta steps; order {drift.order:.2g}",
    )


def energy_drift(eom: Equations, x: np.ndarray, v: np.ndarray, longest: float) -> Drift:
    """Return the drift from states (n, nx), (n, nv) with no force, steps halved until it is small.

    The motion, of `longest` seconds, is shortened where it is too fast for the steps.
    """
    step = _rates(eom)
    drift = Drift(np.inf, 0.0, 0, longest)
    for duration in longest * 10.0 ** -np.arange(4):
        steps, last = COARSE, np.inf
        while steps <= FINE:
            value = _drift_over(eom, step, x, v, duration, steps)
            order = float(np.log2(last / value)) if 0 < value < last < np.inf else 0.0
            drift = Drift(value, order, steps, float(duration))
            if value <= BAR and (last < np.inf or value < ROUNDING):
                return drift
            steps, last = 2 * steps, value
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
) -> float:
    h, every = duration / steps, steps // 8
    records = [(x, v)]
    for k in range(1, steps + 1):
        x, v = _runge_kutta(rates, x, v, h)
        x = eom.machine.normalise(x)
        if k % every == 0:
            records.append((x, v))
    if not (np.isfinite(x).all() and np.isfinite(v).all()):
        return np.inf
    energies = [evaluate(eom.functions["energy"], *record) for record in records]
    kinetic, potential = np.array(energies)[..., 0, 0].swapaxes(0, 1)
    total = kinetic + potential
    exchanged = kinetic.max(axis=0) + np.ptp(potential, axis=0)
    return float((np.abs(total - total[0]).max(axis=0) / np.maximum(exchanged, 1e-300)).max())


def _runge_kutta(
    rates: Kernel, x: np.ndarray, v: np.ndarray, h: float
) -> tuple[np.ndarray, np.ndarray]:
    """One classical step of order 4 on (x, v); quaternions leave unit length by O(h^5) only."""
    x1, v1 = rates(x, v)
    x2, v2 = rates(x + h / 2 * x1, v + h / 2 * v1)
    x3, v3 = rates(x + h / 2 * x2, v + h / 2 * v2)
    x4, v4 = rates(x + h * x3, v + h * v3)
    return x + h / 6 * (x1 + 2 * x2 + 2 * x3 + x4), v + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4)
