"""What a prototype does to a craft that hangs on its thrust: whether it hovers or drifts away.

A craft with fewer inputs than velocities moves sideways by tilting. Its prototype is matched only
if the centers of inertia and stiffness lie on one line with the center of mass, along the thrust:
if the line passes beside it, the poles are others than those of the prototype; if the centers
coincide, nothing brings the craft back sideways.
"""

from collections.abc import Sequence

import numpy as np

from framefree.control.law import ControlError
from framefree.control.prototype.parameters import PairParameters
from framefree.control.prototype.rest import rest_dynamics
from framefree.machine import WORLD, Free, Machine
from framefree.machine.units import Units

ASIDE = 0.02
"""Share of the distance between the centers, and of the craft's own length, by which the line may
miss the center of mass."""
SAME = 1e-6
"""Share of the fastest pole by which poles may differ that count as those of the prototype."""
DECAYING = 1e-6
"""Share of the fastest pole by which all must lie in the left half plane."""


def is_one_free_body(machine: Machine) -> bool:
    """Whether a machine is a single body on a free joint."""
    return len(machine.joints) == 1 and isinstance(machine.joints[0].kind, Free)


def hover_poles(machine: Machine, M: np.ndarray, D: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Return the poles (2 nv) of small errors about neutral, inputs nearest to a prototype's.

    With the machine's M_0 e'' + D_0 e' + K_0 e = B u and w = M^-1 (D e' + K e) the inputs minimise
    |e'' + w| in the metric M of the prototype.
    """
    rest = rest_dynamics(machine.numeric)
    per_input = np.linalg.solve(rest.M, rest.B)
    nearest = per_input @ np.linalg.pinv(per_input.T @ M @ per_input, rcond=1e-9) @ per_input.T @ M
    slopes = []
    for own, wanted in ((rest.K, K), (rest.D, D)):
        free = -np.linalg.solve(rest.M, own)
        slopes.append(free - nearest @ (np.linalg.solve(M, wanted) + free))
    nv = machine.nv
    return np.linalg.eigvals(np.block([[np.zeros((nv, nv)), np.eye(nv)], slopes]))


def _as_prototype(machine: Machine, M: np.ndarray, D: np.ndarray, K: np.ndarray) -> bool:
    """Tell whether small errors about hovering have the poles of the prototype."""
    try:
        poles = hover_poles(machine, M, D, K)
    except ControlError:
        return False
    nv = machine.nv
    wanted = np.block(
        [[np.zeros((nv, nv)), np.eye(nv)], [-np.linalg.solve(M, K), -np.linalg.solve(M, D)]]
    )
    apart = np.abs(poles[:, None] - np.linalg.eigvals(wanted)).min(axis=1).max()
    return bool(apart < SAME * np.abs(poles).max())


def what_drifts(machine: Machine, M: np.ndarray, D: np.ndarray, K: np.ndarray) -> str:
    """Say that a craft of one free body will not come back to where it hovers; empty if it will.

    M, D, K (6, 6) are those of the prototype on the craft's velocities.
    """
    if not is_one_free_body(machine):
        return ""
    try:
        poles = hover_poles(machine, M, D, K)
    except ControlError:
        return ""  # No inputs hold it upright: it is no craft that hovers.
    growth = np.real(poles)
    slowest = float(growth.max())
    if slowest < -DECAYING * np.abs(poles).max():
        return ""
    return (
        f"with these parameters `{machine.name}`, which hangs on its thrust, does not come back to "
        f"where it hovers: {int((growth > slowest - DECAYING).sum())} poles of small errors "
        f"lie at {slowest:.3g} 1/s. Errors of position must tilt it: the center of stiffness must "
        "lie above that of inertia, along the thrust. `tuning.thrust_borne(mass, "
        "characteristic((w1, zeta1), (w2, zeta2)), yaw, yaw_inertia)` gives such parameters"
    )


def what_stands_aside(
    machine: Machine, pairs: Sequence[PairParameters], forms: Sequence[np.ndarray]
) -> str:
    """Say by how much the prototype of a single free body stands beside it; empty if it does not.

    Only where one frame, seen from the world, has all of the inertia and the stiffness, and where
    small errors then have other poles than the prototype with `forms` M, D, K (6, 6): drag beside
    the center of mass can ask for just that.
    """
    machine = machine.numeric
    if not is_one_free_body(machine) or len(pairs) != 1 or pairs[0].a != WORLD:
        return ""
    pair = pairs[0]
    kinds = [pair.inertia, pair.stiffness]
    if any(one is None or one.symbolic or not one.total > 0 for one in kinds):
        return ""
    frame = machine.frame(pair.b)
    pose = np.asarray(frame.pose, float)
    s, h = (pose[:3, :3] @ np.asarray(one.center) + pose[:3, 3] for one in kinds if one)
    center = np.asarray(machine.bodies[0].moments.center, float)
    along = h - s
    length = float(np.linalg.norm(along))
    if length < 1e-9:
        return ""
    aside = (center - s) - along * ((center - s) @ along) / length**2
    missed = float(np.linalg.norm(aside))
    if missed <= ASIDE * min(length, Units.of(machine).length) or _as_prototype(machine, *forms):
        return ""
    return (
        f"the line through the centers of inertia and stiffness of the prototype passes "
        f"{1e3 * missed:.3g} mm beside the center of mass of `{machine.name}`, which hangs on its "
        "thrust: small errors will have other poles than the prototype (`tuning.matching` tells "
        "which); give the `center` to `tuning.thrust_borne`"
    )
