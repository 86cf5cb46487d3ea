"""Stability of states without acceleration, by the eigenvalues of small motions about them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from framefree.machine import Machine
from framefree.solve.balance import Linear, balance

ZERO = 1e-10
"""Singular values below this, relative to the largest (at least 1/s), belong to neutral motions."""

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
    """How small motions about a state go on, with the inputs held.

    Attributes
    ----------
    verdict : "stable", "unstable" or "marginal"
        Unstable if a mode grows; stable if all decay or oscillate; otherwise marginal: some are
        neutral, as the position of a vehicle, and the linear motion does not decide. That of
        oscillating modes is a verdict on the linear motion too: it holds for the machine itself
        where they stem from a minimum of its potential energy.
    eigenvalues : (2 r,) complex
        All of them, r the number of velocities that the constraints leave free.
    modes : tuple of Mode
        Those that grow first, then by decay; conjugate pairs once.
    linear : Linear
        The matrices.
    """

    verdict: str
    eigenvalues: np.ndarray
    modes: tuple[Mode, ...]
    linear: Linear

    def __str__(self) -> str:
        lines = [str(mode) for mode in self.modes if mode.kind != "neutral"]
        neutral = [
            name for mode in self.modes if mode.kind == "neutral" for name in mode.coordinates
        ]
        if neutral:
            lines.append(f"neutral: {', '.join(dict.fromkeys(neutral))}")
        return "\n".join([self.verdict, *(f"  {line}" for line in lines)])


def stability(
    machine: Machine, x: Any, v: Any = None, u: Any = None, *, parameters: Any = None
) -> Stability:
    """Return the stability of a state (x, v) without acceleration under inputs u.

    Deviations are taken on the groups of the joints, so that quaternions bring no modes of their
    own, and only along what loops and couplings allow. `trim` and `equilibrium` find such states.

    Parameters
    ----------
    machine : Machine
    x, v, u : (nx,), (nv,), (nu,)
        By default at rest, without inputs.
    parameters
        Values of the machine's tunable numbers, by default their defaults.
    """
    machine = machine.with_parameters(parameters)
    machine.validate(x, v)
    v, u = (
        np.zeros(n) if value is None else np.asarray(value, dtype=float)
        for value, n in ((v, machine.nv), (u, machine.nu))
    )
    return judged(machine, balance(machine).linear(np.asarray(x, dtype=float), v, u))


def judged(machine: Machine, linear: Linear) -> Stability:
    """Return the stability of small motions."""
    Q, neutral = _neutral(linear.A)
    B = Q[:, neutral:].T @ linear.A @ Q[:, neutral:]
    values, vectors = np.linalg.eig(B)
    shapes = linear.basis @ Q[:, neutral:] @ vectors
    modes = [
        Mode(complex(value), _kind(value), _coordinates(machine, shape))
        for value, shape in zip(values, shapes.T, strict=True)
        if value.imag >= 0
    ]
    modes.sort(key=lambda mode: (-mode.eigenvalue.real, mode.frequency))
    modes += [
        Mode(0j, "neutral", _coordinates(machine, shape))
        for shape in (linear.basis @ Q[:, :neutral]).T
    ]
    kinds = {mode.kind for mode in modes}
    verdict = "unstable" if "grows" in kinds else "marginal" if "neutral" in kinds else "stable"
    every = np.concatenate([values, np.zeros(neutral)]).astype(complex)
    return Stability(verdict, every[np.argsort(-every.real, kind="stable")], tuple(modes), linear)


def _neutral(A: np.ndarray) -> tuple[np.ndarray, int]:
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


def _kind(value: complex) -> str:
    if abs(value) <= 1e-7:
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
