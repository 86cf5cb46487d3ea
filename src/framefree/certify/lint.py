"""What can be seen without computing any motion: inertias, masses, limits, notes.

`machine.problems` says what the description itself found doubtful. Here each kind of doubt becomes
one finding, and what a description may not judge (sizes, missing limits) is added.
"""

from collections.abc import Iterator, Sequence

import casadi
import numpy as np

from framefree.certify.report import Finding, Verdict
from framefree.geometry import se3
from framefree.machine import Joint, Machine, Prismatic, Revolute

GYRATION = (1e-4, 10.0)
"""Radii of gyration, m, between which the bodies of machines lie."""
MASS_RATIO = 1e6
IDLE = 1e-12
"""Share of the largest inertia below which a joint's motion counts as resisted by nothing."""


def lint(machine: Machine) -> Iterator[Finding]:
    """Give one finding for each kind of mistake, with the parts that have it."""
    for rule in (inertia, unmoved_mass, sizes, limits, neutral, notes):
        yield rule(machine)


def inertia(machine: Machine) -> Finding:
    """Bodies whose moments no distribution of mass has."""
    found = [message for body in machine.bodies for message in body.problems]
    return _counted(
        "impossible_inertias",
        found,
        "bodies whose inertia no distribution of mass has (negative, or the triangle inequality "
        "of the principal moments is broken)",
        "correct mass, center or inertia; otherwise energies and eigenvalues of M may be negative",
    )


def unmoved_mass(machine: Machine) -> Finding:
    """Joints that can move without moving any inertia: the mass matrix is singular."""
    return _counted(
        "joints_without_inertia",
        [f"joint `{name}`" for name in idle_joints(machine)],
        "joints that move no inertia: the mass matrix is singular and accelerations are undefined",
        "give the last body an inertia or the joint an armature, or make the joint fixed",
        # Loops may give such a joint what it lacks; the eigenvalues of M then tell.
        Verdict.WARN if machine.loops or machine.couplings else Verdict.FAIL,
    )


def idle_joints(machine: Machine) -> list[str]:
    """Return joints with a motion, at the neutral configuration, that nothing outwards resists.

    That is where S^T I S is singular for the joint's motions S and the inertia I, seen from its
    frame, of all that it carries.
    """
    immersed = machine.fluid.immersed if machine.fluid is not None else ()
    wet = {machine.frame(part.frame).body for part in immersed}
    carried = [np.array(body.moments.matrix6) for body in machine.bodies]
    idle = []
    for i in reversed(range(len(machine.bodies))):
        joint = machine.joints[i]
        inertia = _seen(carried[i], joint.child_pose)
        neutral = casadi.DM(joint.kind.neutral)
        if joint.nv and not wet & {machine.bodies[k].name for k in machine.subtree(joint.child)}:
            S = np.array(casadi.DM(joint.kind.jacobian(neutral)))
            felt = S.T @ inertia @ S + np.diag(joint.armature)
            scale = max(np.abs(inertia).max(), joint.armature.max())
            if np.linalg.eigvalsh(felt)[0] <= IDLE * scale:
                idle.append(joint.name)
        if machine.parent[i] >= 0:
            pose = joint.parent_pose @ np.array(casadi.DM(joint.kind.pose(neutral)))
            carried[machine.parent[i]] += _seen(inertia, np.linalg.inv(pose))
    return idle[::-1]


def _seen(inertia: np.ndarray, G_ab: np.ndarray) -> np.ndarray:
    """Return the 6x6 inertia Ad^T I Ad seen from frame b of one given in frame a."""
    adjoint = np.array(se3.adjoint(G_ab))
    return adjoint.T @ inertia @ adjoint


def sizes(machine: Machine) -> Finding:
    """Bodies so small, large or light that a unit is likely wrong."""
    found = []
    masses = [body.moments.total for body in machine.bodies if not body.massless]
    for body in machine.bodies:
        if body.massless:
            continue
        radius = np.sqrt(
            np.abs(np.linalg.eigvalsh(body.moments.moment_at_center)) / body.moments.total
        )
        if radius.max() < GYRATION[0] or radius.max() > GYRATION[1]:
            found.append(f"body `{body.name}` has a radius of gyration of {radius.max():.2g} m")
        if body.moments.total * MASS_RATIO < max(masses):
            found.append(
                f"body `{body.name}`, {body.moments.total:.2g} kg, has less than "
                f"{1 / MASS_RATIO:g} of the mass of the heaviest"
            )
    return _counted(
        "odd_sizes",
        found,
        "bodies whose radius of gyration or mass is far from that of the others of a machine",
        "see that masses are in kg, lengths in m and inertias in kg m^2",
        Verdict.WARN,
    )


def limits(machine: Machine) -> Finding:
    """Limits that are missing or leave nothing."""
    return _counted(
        "odd_limits",
        [message for joint in machine.joints for message in _odd_limits(joint)],
        "joints without limits where there should be some, or with limits that leave no motion",
        "add limits to the file, or make the joint continuous or fixed",
        Verdict.WARN,
    )


def neutral(machine: Machine) -> Finding:
    """Limits that leave the neutral configuration out."""
    found = [
        f"joint `{joint.name}`"
        for joint in machine.joints
        if (joint.kind.neutral < joint.lower).any() or (joint.kind.neutral > joint.upper).any()
    ]
    return _counted(
        "neutral_outside_limits",
        found,
        "joints whose zero position is outside of their limits: do not start a motion from there",
        "start from a configuration within the limits, or move the joint's zero",
        Verdict.WARN,
    )


def notes(machine: Machine) -> Finding:
    """All else that the reader or the description remarked."""
    reported = {m for body in machine.bodies for m in body.problems}
    idle = [f"joint `{name}` moves no mass" for name in idle_joints(machine)]
    rest = [
        message
        for message in machine.problems
        if message not in reported and not any(words in message for words in idle)
    ]
    return _counted(
        "remarks", rest, "what was read but is doubtful", "see each remark", Verdict.WARN
    )


def _odd_limits(joint: Joint) -> Iterator[str]:
    if not isinstance(joint.kind, Revolute | Prismatic):
        return
    low, high = float(joint.lower[0]), float(joint.upper[0])
    if not (np.isfinite(low) and np.isfinite(high)):
        yield f"joint `{joint.name}` has no limits"
    elif low == high:
        yield f"joint `{joint.name}` can only be at {low:g}"
    for name in ("velocity_limit", "effort_limit"):
        if (getattr(joint, name) == 0).any():
            yield f"the {name.replace('_', ' ')} of joint `{joint.name}` is zero"


def _counted(
    name: str,
    found: Sequence[str],
    meaning: str,
    remedy: str,
    severity: Verdict = Verdict.FAIL,
) -> Finding:
    verdict = severity if found else Verdict.PASS
    return Finding(name, verdict, meaning, len(found), 0, listed(found), remedy)


def listed(words: Sequence[str], limit: int = 4) -> str:
    """Join the first few of many remarks."""
    shown = "; ".join(words[:limit])
    return shown if len(words) <= limit else f"{shown}; and {len(words) - limit} more"
