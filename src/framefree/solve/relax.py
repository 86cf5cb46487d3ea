"""Following forces downhill: from a configuration to a stable equilibrium."""

import numpy as np

from framefree.motion.constrained.project import ClosureError
from framefree.motion.constrained.solve import null_space
from framefree.solve.balance import Balance

LARGEST = 0.3
"""Largest step, rad and lengths of the machine."""


def relaxed(
    balance: Balance, x: np.ndarray, u: np.ndarray, held: np.ndarray, rng: np.random.Generator
) -> np.ndarray | None:
    """Return the configuration in which a machine without inertia comes to rest, roughly.

    Steps are Newton's with the stiffness made positive, so that they always go with the forces:
    down from a maximum or saddle of the potential, to a minimum. A small random push at the start
    leaves equilibria that are not stable. None where the machine cannot be closed.
    """
    machine, steps = balance.machine, rng.normal(size=balance.machine.nv)
    D, T = balance.units.velocity, balance.units.time
    x = machine.integrate(x, np.where(held, 0.0, 1e-3 * D * steps))
    still = np.zeros(machine.nv)
    size = LARGEST
    for _ in range(200):
        try:
            x = balance.equations.project(x, weight="unit").x if balance.rows else x
        except ClosureError:
            return None
        lam = balance.acceleration(x, still, u).multipliers
        f, K, _, M, _, A, *_ = balance.slopes(x, still, u, lam)
        Z = D[:, None] * null_space(np.vstack([A * D, np.eye(machine.nv)[held]]))
        push = -(Z.T @ f)
        values, vectors = _generalised(Z.T @ (K + K.T) @ Z / 2, Z.T @ M @ Z)
        weight = np.sqrt(np.abs(balance.units.of_mass(M)).max(initial=0.0)) / T**2
        if not len(push) or np.abs(vectors.T @ push).max(initial=0.0) <= 1e-6 * weight:
            return x
        soft = 1e-3 * max(1 / T**2, float(np.abs(values).max(initial=0.0)))
        step = Z @ (vectors @ ((vectors.T @ push) / np.maximum(np.abs(values), soft)))
        share = min(1.0, size / np.abs(step / D).max())
        x_new = machine.normalise(machine.integrate(x, step * share))
        # Beyond the point where the forces turn back, steps get shorter.
        turned = balance.slopes(x_new, still, u, lam)[0] @ step > 0
        size = size / 2 if turned else min(LARGEST, 1.5 * size)
        x = x_new
    return x


def _generalised(K: np.ndarray, M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return w and V with K V = M V diag(w), V^T M V = 1; directions without mass are slow."""
    if not len(M):
        return np.zeros(0), np.zeros((0, 0))
    sizes, axes = np.linalg.eigh(M)
    root = axes / np.sqrt(np.maximum(sizes, 1e-9 * sizes.max()))
    values, vectors = np.linalg.eigh(root.T @ K @ root)
    return values, root @ vectors
