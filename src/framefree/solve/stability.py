"""Stability of equilibria and steady motions, by the eigenvalues of small motions about them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from framefree.machine import Machine
from framefree.motion.equations import Equations
from framefree.solve.balance import Balance, SmallMotions, balance_of, small_motions
from framefree.solve.errors import SolveError
from framefree.solve.linearise import neutral_basis
from framefree.solve.steady import LATER, what_accelerates, what_drifts, what_is_open

CHANGING = "small motions about it change with time, so that eigenvalues do not decide stability"

NEUTRAL = 1e-7
"""Size of an eigenvalue, in 1/T, up to which it counts as zero."""

ON_AXIS = 1e-6
"""Share of the size of an eigenvalue up to which its real part counts as zero."""


@dataclass(frozen=True)
class Mode:
    """A small motion proportional to exp(eigenvalue t).

    Attributes
    ----------
    eigenvalue : complex
        1/s; of a conjugate pair the one with positive imaginary part.
    kind : "grows", "decays", "oscillates" or "neutral"
        Neutral ones stay where they are put, or drift.
    coordinates : tuple of str
        Velocities, as in `machine.v_names`, that move most, the largest first.
    """

    eigenvalue: complex
    kind: str
    coordinates: tuple[str, ...]

    @property
    def frequency(self) -> float:
        """Angular frequency, rad/s."""
        return float(abs(self.eigenvalue.imag))

    @property
    def damping(self) -> float:
        """Damping ratio: 1 decays without oscillation, 0 oscillates for ever, below 0 it grows."""
        size = abs(self.eigenvalue)
        return float(-self.eigenvalue.real / size) if size else 0.0

    def __str__(self) -> str:
        real, imag = self.eigenvalue.real, self.eigenvalue.imag
        value = f"{real:.4g} +- {imag:.4g}i" if imag else f"{real:.4g}"
        return f"{self.kind} ({value} 1/s): {', '.join(self.coordinates)}"


@dataclass(frozen=True)
class Stability:
    """The course of small motions about a state, with the inputs held.

    Attributes
    ----------
    verdict : "stable", "unstable" or "marginal"
        Unstable if a mode grows; stable if all decay or oscillate; otherwise marginal: some are
        neutral, as the position of a vehicle, and the linear motion does not decide. That of
        oscillating modes is a verdict on the linear motion too: it holds for the machine itself
        where they stem from a minimum of its potential energy.
    eigenvalues : (n,) complex
        All of them: two for each velocity that the constraints leave free, and one for each
        direction that nonholonomic constraints close to velocities but not to positions.
    modes : tuple of Mode
        Those that grow first, then by decay; conjugate pairs once.
    linear : SmallMotions
        The matrices.
    """

    verdict: str
    eigenvalues: np.ndarray
    modes: tuple[Mode, ...]
    linear: SmallMotions

    def __str__(self) -> str:
        lines = [str(mode) for mode in self.modes if mode.kind != "neutral"]
        neutral = [
            name for mode in self.modes if mode.kind == "neutral" for name in mode.coordinates
        ]
        if neutral:
            lines.append(f"neutral: {', '.join(dict.fromkeys(neutral))}")
        return "\n".join([self.verdict, *(f"  {line}" for line in lines)])


def stability(
    system: Machine | Equations,
    x: Any,
    v: Any = None,
    u: Any = None,
    *,
    tolerance: float = 1e-6,
    parameters: Any = None,
) -> Stability:
    """Return the stability of an equilibrium, or of a steady motion, under inputs u.

    Deviations are taken on the groups of the joints, so that quaternions bring no modes of their
    own, and only along what loops, couplings and further constraints allow. `trim` and
    `equilibrium` find such states.

    Parameters
    ----------
    system : Machine or Equations
        A machine; or its equations in the formulation `tree` or `constrained`, with the
        constraints that were laid upon them.
    x, v, u : (nx,), (nv,), (nu,)
        By default at rest, without inputs.
    tolerance : float
        Largest acceleration that counts as none, relative to what the forces at hand could cause.
    parameters
        Values of the machine's tunable numbers, by default their defaults.

    Raises
    ------
    SolveError
        If the state is neither an equilibrium nor a steady motion: it accelerates, now or further
        along the motion, or does not meet the constraints; or if small motions about it change
        with time, so that eigenvalues do not tell.
    """
    balance = balance_of(system, parameters)
    machine = balance.machine
    machine.validate(x, v)
    x = np.asarray(x, dtype=float)
    v, u = (
        np.zeros(n) if value is None else np.asarray(value, dtype=float)
        for value, n in ((v, machine.nv), (u, machine.nu))
    )
    if u.shape != (machine.nu,) or not np.isfinite(u).all():
        raise SolveError(f"inputs must be {machine.nu} finite numbers, got {u!r}")
    problem = (
        what_is_open(balance, x, v)
        or what_accelerates(balance, x, v, u, tolerance)
        or what_drifts(balance, x, v, u, tolerance)
    )
    if problem:
        raise SolveError(
            f"stability is that of an equilibrium or a steady motion, but {problem}; `trim` and "
            "`equilibrium` find such states"
        )
    result = judged(balance, small_motions(balance, x, v, u))
    if changes(balance, result, x, v, u):
        raise SolveError(f"the state is a steady motion, but {CHANGING}")
    return result


def changes(balance: Balance, now: Stability, x: np.ndarray, v: np.ndarray, u: np.ndarray) -> bool:
    """Whether small motions about a steady motion are others further along it."""
    if not v.any():
        return False
    motions, rate = now.linear, 1 / balance.units.time
    turning = np.abs(motions.rates - motions.basis @ motions.A).max(initial=0.0)
    if turning > 1e-6 * (rate + np.abs(motions.rates).max(initial=0.0)):
        return True
    moved = balance.machine.integrate(x, v * LATER[1] * balance.units.time)
    later = judged(balance, small_motions(balance, moved, v, u)).eigenvalues
    scale = rate + np.abs(later).max(initial=0.0)
    apart = np.abs(now.eigenvalues[:, None] - later).min(axis=1, initial=np.inf)
    return bool((apart > 1e-4 * scale).any())


def judged(balance: Balance, linear: SmallMotions) -> Stability:
    """Return the stability of small motions."""
    machine, T = balance.machine, balance.units.time
    A, basis = _in_natural_units(balance, linear)
    Q, neutral = neutral_basis(A)
    B = Q[:, neutral:].T @ A @ Q[:, neutral:]
    values, vectors = np.linalg.eig(B)
    shapes = basis @ Q[:, neutral:] @ vectors
    modes = [
        Mode(complex(value) / T, _kind(value), _coordinates(machine, shape))
        for value, shape in zip(values, shapes.T, strict=True)
        if value.imag >= 0
    ]
    modes.sort(key=lambda mode: (-mode.eigenvalue.real, mode.frequency))
    modes += [
        Mode(0j, "neutral", _coordinates(machine, shape)) for shape in (basis @ Q[:, :neutral]).T
    ]
    kinds = {mode.kind for mode in modes}
    verdict = "unstable" if "grows" in kinds else "marginal" if "neutral" in kinds else "stable"
    every = np.concatenate([values, np.zeros(neutral)]).astype(complex) / T
    return Stability(verdict, every[np.argsort(-every.real, kind="stable")], tuple(modes), linear)


def _in_natural_units(balance: Balance, linear: SmallMotions) -> tuple[np.ndarray, np.ndarray]:
    """Return T A and an orthonormal basis of (eps / D, T dv / D): numbers without units."""
    D, T = balance.units.velocity, balance.units.time
    scale = np.concatenate([1 / D, T / D])[:, None]
    basis, R = np.linalg.qr(scale * linear.basis)
    # Columns of linear.basis are orthonormal, so that R has an inverse.
    return T * R @ linear.A @ np.linalg.inv(R), basis


def _kind(value: complex) -> str:
    """Name what a motion proportional to exp(value t / T) does."""
    if abs(value) <= NEUTRAL:
        return "neutral"
    if abs(value.real) <= ON_AXIS * abs(value):
        return "oscillates"
    return "grows" if value.real > 0 else "decays"


def _coordinates(machine: Machine, shape: np.ndarray) -> tuple[str, ...]:
    """Name the velocities with at least a third of the largest share in a deviation (2 nv,)."""
    eps, dv = np.split(np.abs(shape), 2)
    sizes = eps if eps.max(initial=0.0) > 1e-6 * dv.max(initial=0.0) else dv
    order = np.argsort(-sizes, kind="stable")
    names = machine.v_names
    return tuple(names[i] for i in order if sizes[i] > sizes.max() / 3)
