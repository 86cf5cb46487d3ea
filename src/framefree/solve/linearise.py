"""Linear equations of small motions about any motion, in any formulation, under any constraints.

About a motion x(t), v(t) under inputs u(t) deviations eps of x (taken along the velocities,
x (+) eps), dv of v and du of u obey

    d/dt (eps, dv) = F (eps, dv) + G du,     F = [-W, 1; da/dx, da/dv],     G = [0; da/du]

with W of velocities that do not commute [Konz2024, eq. 2.24], and slopes of the whole acceleration,
constraint forces included. Constraints allow only deviations with

    (dphi/dx) eps = 0,     (deta/dx) eps + (deta/dv) dv = 0

that is (eps, dv) = N y. As y some of the entries of (eps, dv) themselves are taken, y = S (eps, dv)
with a constant choice S, so that also where N moves along the motion

    dy/dt = A y + B du,      A = S F N,      B = S G
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import casadi as ca
import numpy as np
import scipy.linalg

from framefree.machine import Machine
from framefree.motion import Equations, equations
from framefree.motion.actuation import input_load
from framefree.motion.constrained.report import without_noise
from framefree.motion.constrained.solve import null_space
from framefree.motion.redundant import System
from framefree.solve.errors import SolveError

ZERO = 1e-10
"""Singular values below this, relative to the largest (at least 1/s), belong to neutral motions."""


@dataclass(frozen=True)
class LinearSystem:
    """Small motions: ``dy/dt = A y + B du``.

    Attributes
    ----------
    A : (n, n)
    B : (n, nu)
        By the inputs u.
    B_force : (n, nv)
        By forces on the velocities.
    names : tuple of str
        Names of the entries of y: "x.NAME" is the deviation of the coordinate along the velocity
        NAME, "v.NAME" that of the velocity itself.
    inputs : tuple of str
        Names of the inputs.
    basis : (2 nv, n)
        (eps, dv) = basis y.
    a : (nv,)
        Acceleration of the motion.
    steady : bool
        Whether the motion looks the same at all times: it does not accelerate, and A does not
        change along it. Only then do the eigenvalues decide stability.
    """

    A: np.ndarray
    B: np.ndarray
    B_force: np.ndarray
    names: tuple[str, ...]
    inputs: tuple[str, ...]
    basis: np.ndarray
    a: np.ndarray
    steady: bool

    @property
    def eigenvalues(self) -> np.ndarray:
        """All eigenvalues (n,) of A, 1/s, those that grow fastest first.

        About a steady motion (`steady`) they tell its stability. Zeros stand for symmetries (a
        place, a heading, a speed that may be any): see `neutral`.
        """
        Q, zeros = neutral_basis(self.A)
        rest = Q[:, zeros:]
        values = np.concatenate([np.linalg.eigvals(rest.T @ self.A @ rest), np.zeros(zeros)])
        return values.astype(complex)[np.lexsort((values.imag, -values.real))]

    @property
    def neutral(self) -> int:
        """Number of eigenvalues that are zero."""
        return neutral_basis(self.A)[1]

    def __str__(self) -> str:
        values = ", ".join(f"{value:.4g}" for value in self.eigenvalues)
        return f"{len(self.names)} states ({', '.join(self.names)}); eigenvalues {values} 1/s"


def linearise(
    system: Machine | System | Equations,
    x: Any,
    v: Any = None,
    u: Any = None,
    a: Any = None,
    *,
    t: float = 0.0,
    parameters: Any = None,
) -> LinearSystem:
    """Return the linear equations of small motions about a state of a motion.

    Parameters
    ----------
    system : Machine, a system in coordinates of its own, or Equations
        Equations in any formulation, with any constraints; of a machine its joint coordinates under
        its loops and couplings.
    x, v : (nx,), (nv,)
        In the coordinates of the equations; by default at rest. They must meet the constraints.
    u : (nu,), optional
        Inputs of the actuators; default zero.
    a : (nv,), optional
        Acceleration of the motion, where forces that are not inputs give it: these are held. By
        default it is what the inputs give.
    t : float
        Time, s.
    parameters : optional
        Values of the machine's tunable numbers, by default their defaults.

    Raises
    ------
    SolveError
        Where the state does not meet the constraints, or the formulation cannot be linearised.

    Examples
    --------
    >>> import framefree as ff
    >>> small = ff.linearise(ff.gallery.MACHINES["cart-pole"](), [0.0, 0.0])
    >>> small.names
    ('x.slide', 'x.hinge', 'v.slide', 'v.hinge')
    >>> small.A.shape, small.B.shape
    ((4, 4), (4, 1))
    >>> bool(small.eigenvalues.real.max() > 0)  # upright, it falls
    True
    """
    eom = system if isinstance(system, Equations) else _equations(system)
    if "state_matrices" not in eom.offers:
        raise SolveError(
            f"the {eom.name} formulation of `{eom.machine.name}` cannot be linearised: its "
            "velocities do not belong to coordinates; give all velocities that x allows, and the "
            "constraint as a `Nonholonomic` of the constrained formulation"
        )
    nv, nu = eom.sizes["v"], eom.machine.nu
    point = [
        np.zeros(size) if value is None else np.asarray(value, float)
        for value, size in ((x, eom.sizes["x"]), (v, nv), (u, nu))
    ]
    for name, value, size in zip("xvu", point, (eom.sizes["x"], nv, nu), strict=True):
        if value.shape != (size,) or not np.isfinite(value).all():
            raise SolveError(f"`{name}` must be {size} finite numbers, got shape {value.shape}")
    point[0] = eom.normalise(point[0])
    values = [*point, t, eom.machine.parameters.values(parameters)]
    numbers = _numbers(eom)
    extra = np.zeros(nv) if a is None else numbers.missing(values, np.asarray(a, float))
    F, G, G_force, acceleration, _, phi, eta, *rows = numbers(values, extra)
    _check(eom, phi, eta)
    Z = _allowed(*rows)
    chosen = _independent(Z)
    N = Z @ np.linalg.inv(Z[chosen])
    A, every = (F @ N)[chosen], eom.state_names
    return LinearSystem(
        A,
        G[chosen],
        G_force[chosen],
        tuple(every[k] for k in chosen),
        eom.machine.u_names,
        N,
        acceleration.ravel(),
        _is_steady(numbers, values, extra, A, chosen),
    )


def _allowed(
    gradient: np.ndarray, eta_x: np.ndarray, eta_v: np.ndarray, size: np.ndarray
) -> np.ndarray:
    """Return a basis (2 nv, n) of the deviations that constraints allow."""
    phi_x, eta_v = (without_noise(rows, size.ravel()) for rows in (gradient, eta_v))
    return null_space(np.block([[phi_x, np.zeros_like(phi_x)], [eta_x, eta_v]]))


def _is_steady(
    numbers: "_Numbers",
    values: list[Any],
    extra: np.ndarray,
    A: np.ndarray,
    chosen: list[int],
) -> bool:
    """Tell whether a motion does not accelerate, and A stays as it is a little later.

    Accelerations are compared with what the forces at hand could cause together, in the metric of
    M; A with that after a thousandth of its own time, speeds in those of one joule.
    """
    x, v, _, t, *_ = values
    actual, possible, *masses = numbers(values, extra)[4].ravel().tolist()
    if actual > STEADY**2 * possible:
        return False
    rate = float(np.abs(np.linalg.eigvals(A)).max(initial=0.0)) or float(np.abs(v).max(initial=0.0))
    if not v.any() or not rate:
        return not numbers.eom.rheonomic
    h = 1e-3 / rate
    later = [numbers.eom.integrate(x, h * v), *values[1:]]
    later[3] = t + h
    F, _, _, _, scales, _, _, *rows = numbers(later, extra)
    Z = _allowed(*rows)
    actual, possible = scales.ravel()[:2]
    if Z.shape[1] != len(chosen) or actual > STEADY**2 * possible:
        return False
    speeds = np.array([1 / np.sqrt(mass) if mass > 0 else 1.0 for mass in masses])
    units = np.concatenate([speeds / rate, speeds])[chosen]
    changed = (F @ Z @ np.linalg.inv(Z[chosen]))[chosen] - A
    before, after = (np.abs(B * units / units[:, None]).max() for B in (A, changed))
    return bool(after <= STEADY * before)


@lru_cache(maxsize=8)
def _equations(system: Any) -> Equations:
    return equations(system)


@lru_cache(maxsize=8)
def _numbers(eom: Equations) -> "_Numbers":
    return _Numbers(eom)


class _Numbers:
    """Slopes and constraints of equations at points (x, v, u, t, parameters), in numbers."""

    def __init__(self, eom: Equations) -> None:
        self.eom = eom
        nv = eom.sizes["v"]
        x, v = ca.SX.sym("x", eom.sizes["x"]), ca.SX.sym("v", nv)
        u, t, extra = ca.SX.sym("u", eom.machine.nu), ca.SX.sym("t"), ca.SX.sym("extra", nv)
        state = eom.at(x, v, t)
        Q = state.generalised(input_load(state, u))
        by_x, by_v, by_force = state.forward_slopes(Q + extra)
        by_x = by_x + by_force @ state.along(Q)
        by_v = by_v + by_force @ ca.jacobian(Q, v)
        W, _ = eom.deviation(x, v, ca.SX(nv, 1))
        F = ca.blockcat([[-W, ca.SX.eye(nv)], [by_x, by_v]])
        G_force = ca.vertcat(ca.SX(nv, nv), by_force)
        a = state.accelerate(Q + extra)
        # a . M a, and its size if all forces at hand acted together, whatever their signs. Where
        # they cancel, what rounding leaves of them is no acceleration: no force of gravity is
        # larger than sqrt(M_ii m) g, and no number is better known than to the last digits.
        weight = ca.sqrt(ca.fabs(ca.diag(state.mass)) * _mass(eom.machine)) * _gravity(eom.machine)
        sizes = ca.fabs(state.bias) + ca.fabs(Q + extra) + ROUNDING / STEADY * weight
        spread = ca.fabs(by_x) @ ca.SX.ones(nv) * (1 + ca.norm_inf(x)) + ca.fabs(by_v) @ ca.fabs(v)
        floor = (ROUNDING / STEADY) ** 2 * ca.dot(spread, ca.fabs(state.mass) @ spread)
        pushes = ca.dot(a, state.mass @ a), ca.dot(sizes, ca.fabs(by_force) @ sizes) + floor
        scales = ca.vertcat(*pushes, ca.diag(state.mass))
        outputs = [F, G_force @ ca.jacobian(Q, u), G_force, a, scales]
        rows = state.rows
        if rows is None:
            outputs += [ca.SX(0, 1)] * 2 + [ca.SX(0, nv)] * 3 + [ca.SX(0, 1)]
        else:
            eta_v = ca.jacobian(rows.velocity, v)
            outputs += [rows.position, rows.velocity, rows.gradient]
            outputs += [state.along(rows.velocity), eta_v, rows.size]
        inputs = [x, v, u, t, eom.machine.parameters.symbols]
        dense = [ca.densify(ca.SX(value)) for value in outputs]
        self._slopes = ca.Function("slopes", [*inputs, extra], dense)
        held = ca.SX.sym("a", nv)
        A = ca.SX(0, nv) if rows is None else rows.A
        needed = [state.inverse(held) - Q, A]
        self._needed = ca.Function("needed", [*inputs, held], [ca.densify(out) for out in needed])

    def __call__(self, point: list[Any], extra: np.ndarray) -> list[np.ndarray]:
        return [np.asarray(value.full()) for value in self._slopes(*point, extra)]

    def missing(self, point: list[Any], a: np.ndarray) -> np.ndarray:
        """Return the force (nv,) that a motion needs beside inputs and constraint forces."""
        force, A = (np.asarray(value.full()) for value in self._needed(*point, a))
        free = null_space(A)
        return free @ (free.T @ force.ravel())


def _mass(machine: Machine) -> Any:
    """Return the mass (kg) of all bodies that have one."""
    inertias = (body.inertia for body in machine.bodies)
    return sum((inertia.total for inertia in inertias if inertia is not None), ca.SX(0.0))


def _gravity(machine: Machine) -> Any:
    """Return the size of gravity (m/s^2)."""
    return ca.norm_2(ca.SX(ca.vertcat(*machine.gravity)))


STEADY = 1e-6
"""Share of possible accelerations, and of A, up to which a motion counts as steady."""

ROUNDING = 1e-12
"""Share of a state or of a weight that counts as rounding."""

MET = 1e-6
"""Largest error (m, rad, m/s, rad/s) of the constraints at a valid state."""


def _check(eom: Equations, phi: np.ndarray, eta: np.ndarray) -> None:
    off = max(float(np.abs(error).max(initial=0.0)) for error in (phi, eta))
    if not off < MET:
        raise SolveError(
            f"the state is off the constraints of `{eom.machine.name}` by {off:.3g}: small motions "
            "about it have no meaning; bring it onto them first"
        )


def neutral_basis(A: np.ndarray) -> tuple[np.ndarray, int]:
    """Return an orthonormal basis of which the first k columns span what A^j maps to zero.

    Eigenvalues of a chain of j such motions (force to speed to position) come out of a usual solver
    as large as the j-th root of a rounding error. Taking off one null space after the other finds
    them as the zeros they are.
    """
    n = len(A)
    Q, k = np.eye(n), 0
    scale = ZERO * max(1.0, float(np.linalg.norm(A, 2)) if n else 1.0)
    while k < n:
        _, sizes, rows = np.linalg.svd(Q[:, k:].T @ A @ Q[:, k:])
        count = int((sizes <= scale).sum())
        if not count:
            break
        # Singular values fall: the last rows are the null space; they go first.
        Q[:, k:] = Q[:, k:] @ np.roll(rows.T, count, axis=1)
        k += count
    return Q, k


def _independent(Z: np.ndarray) -> list[int]:
    """Return as many rows of Z as it has columns, far from depending on each other, in order."""
    if not Z.shape[1]:
        return []
    pivots = np.asarray(scipy.linalg.qr(Z.T, mode="economic", pivoting=True)[-1])
    return sorted(pivots[: Z.shape[1]].tolist())
