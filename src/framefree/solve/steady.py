"""Whether a state is an equilibrium or a steady motion: the errors of what must vanish, in words.

Accelerations are compared with what the forces at hand could cause: gravity, inputs and constraint
forces each alone, and the machine's own L / T^2 (see `framefree.machine.units`).
"""

import numpy as np

from framefree.motion.constrained.solve import pseudo_inverse
from framefree.solve.balance import Balance

LATER = (0.3, 1.1, 3.0)
"""Times along a motion, in the machine's own unit, at which it must still not accelerate."""

OPEN = 1e-7
"""Error of a constraint, rad or lengths of the machine, up to which a state counts as allowed."""


def what_is_open(balance: Balance, x: np.ndarray, v: np.ndarray) -> str:
    """Name the constraint that a state does not meet; empty if it meets all."""
    units = balance.units
    least = min(units.length, 1.0)
    for errors, scale, word in zip(
        balance.errors(x, v),
        (least, least * (1 / units.time + np.abs(v / units.velocity).max(initial=0.0))),
        ("position", "velocity"),
        strict=True,
    ):
        worst = int(np.abs(errors).argmax()) if len(errors) else 0
        if len(errors) and not abs(errors[worst]) <= OPEN * scale:
            label = balance.equations.labels[worst]
            return f"the {word} error of constraint `{label}` is {errors[worst]:.4g}"
    return ""


def what_accelerates(
    balance: Balance, x: np.ndarray, v: np.ndarray, u: np.ndarray, tolerance: float
) -> str:
    """Name the velocity that changes fastest; empty if none changes, relative to the forces."""
    a = balance.acceleration(x, v, u).a
    share = np.abs(a) / attainable(balance, x, v, u)
    worst = int(share.argmax()) if len(a) else 0
    if not len(a) or share[worst] <= tolerance:
        return ""
    return f"`{balance.machine.v_names[worst]}` accelerates by {a[worst]:.4g}"


def what_drifts(
    balance: Balance, x: np.ndarray, v: np.ndarray, u: np.ndarray, tolerance: float
) -> str:
    """Say that a motion is steady for an instant only; empty if it stays without acceleration."""
    if not v.any():
        return ""
    for time in LATER:
        later = balance.machine.integrate(x, v * time * balance.units.time)
        words = what_accelerates(balance, later, v, u, tolerance)
        if words:
            return (
                f"without acceleration for an instant only; {time * balance.units.time:.3g} s "
                f"later {words}"
            )
    return ""


def attainable(balance: Balance, x: np.ndarray, v: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return the accelerations (nv,) that the forces at hand could cause, each of them alone."""
    units = balance.units
    D = units.velocity
    inverse = D[:, None] * pseudo_inverse(units.of_mass(balance.mass(x))) * D
    held = balance.acceleration(x, v, u).constraint_force
    forces = (balance.gravity(x), balance.force(x, v, u), held)
    speed = np.abs(v / D).max(initial=0.0)
    natural = D * (1 / units.time**2 + speed**2)
    return natural + sum(np.abs(inverse @ force) for force in forces)
