"""Checks that need no computation of motion: inertias, masses, limits, notes.

`machine.problems` lists what the description itself reports. Here each kind of problem becomes
one finding, and what a description may not judge (sizes, missing limits) is added.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from framefree.certify.report import Finding, Verdict
from framefree.machine import Body, Joint, Machine, Prismatic, Revolute
from framefree.machine.closure import loose_joints
from framefree.machine.units import carried_inertias, extent, felt_inertias, motions

GYRATION = (1e-5, 10.0)
"""Radii of gyration, relative to the largest length of the others, between which bodies lie."""
MASS_RATIO = 1e6
IDLE = 1e-12
"""Share of what a joint could feel below which its motion counts as resisted by nothing."""


def lint(machine: Machine) -> Iterator[Finding]:
    """Give one finding for each kind of mistake, with the parts that have it."""
    for rule in (inertia, unmoved_mass, sizes, limits, neutral, notes):
        yield rule(machine)


def inertia(machine: Machine) -> Finding:
    """Report bodies whose moments no distribution of mass has."""
    remarks = [message for body in machine.bodies for message in body.problems]
    return _counted(
        "impossible_inertias",
        remarks,
        "bodies whose inertia no distribution of mass has (negative, or the triangle inequality "
        "of the principal moments is broken)",
        "correct mass, center or inertia; otherwise energies and eigenvalues of M may be negative",
    )


def unmoved_mass(machine: Machine) -> Finding:
    """Report joints that move no inertia and that no loop or coupling leads."""
    return _counted(
        "joints_without_inertia",
        [f"joint `{name}`" for name in loose_joints(machine, idle_joints(machine))],
        "joints that move no inertia and that no loop leads: accelerations are undefined",
        "give the last body an inertia or the joint an armature, or make the joint fixed",
    )


def idle_joints(machine: Machine) -> list[str]:
    """Return joints with a motion, at the neutral configuration, that nothing outwards resists.

    That is where S^T I S is singular for the joint's motions S and the inertia I, seen from its
    frame, of all that it carries.
    """
    immersed = machine.fluid.immersed if machine.fluid is not None else ()
    wet = {machine.frame(part.frame).body for part in immersed if part.resists_acceleration}
    idle = []
    felt, carried = felt_inertias(machine), carried_inertias(machine)
    for joint, could_feel, inertia in zip(machine.joints, felt, carried, strict=True):
        if not joint.nv or wet & {machine.bodies[k].name for k in machine.subtree(joint.child)}:
            continue
        S = motions(joint)
        feels = S.T @ inertia @ S + np.diag(joint.armature)
        root = np.sqrt(np.where(could_feel > 0, could_feel, 1.0))
        if np.linalg.eigvalsh(feels / np.outer(root, root))[0] <= IDLE:
            idle.append(joint.name)
    return idle


def sizes(machine: Machine) -> Finding:
    """Report bodies so small, large or light beside others that a unit is likely wrong."""
    heavy = [body for body in machine.bodies if not body.massless]
    masses = [body.moments.total for body in heavy]
    radii = [_gyration(body) for body in heavy]
    links, remarks = extent(machine, radii=False), []
    for i, (body, mass, radius) in enumerate(zip(heavy, masses, radii, strict=True)):
        others = max([*radii[:i], *radii[i + 1 :], links], default=0.0)
        low, high = (share * others for share in GYRATION)
        if len(heavy) > 1 and not low <= radius <= high:
            remarks.append(
                f"body `{body.name}` has a radius of gyration of {radius:.2g} m among lengths of "
                f"{others:.2g} m"
            )
        if mass * MASS_RATIO < max(masses):
            remarks.append(
                f"body `{body.name}`, {mass:.2g} kg, has less than {1 / MASS_RATIO:g} of the mass "
                "of the heaviest"
            )
    return _counted(
        "odd_sizes",
        remarks,
        "bodies whose radius of gyration or mass is far from that of the others of a machine",
        "see that masses are in kg, lengths in m and inertias in kg m^2",
        Verdict.WARN,
    )


def _gyration(body: Body) -> float:
    """Return the largest radius of gyration of a body, m."""
    moments = np.linalg.eigvalsh(body.moments.moment_at_center)
    return float(np.sqrt(np.abs(moments).max() / body.moments.total))


def limits(machine: Machine) -> Finding:
    """Report joint limits that are missing or leave no range."""
    return _counted(
        "odd_limits",
        [message for joint in machine.joints for message in _odd_limits(joint)],
        "joints without limits where there should be some, or with limits that leave no motion",
        "add limits to the file, or make the joint continuous or fixed",
        Verdict.WARN,
    )


def neutral(machine: Machine) -> Finding:
    """Report joint limits that exclude the neutral configuration."""
    outside = [
        f"joint `{joint.name}`"
        for joint in machine.joints
        if (joint.kind.neutral < joint.lower).any() or (joint.kind.neutral > joint.upper).any()
    ]
    return _counted(
        "neutral_outside_limits",
        outside,
        "joints whose zero position is outside of their limits: do not start a motion from there",
        "start from a configuration within the limits, or move the joint's zero",
        Verdict.WARN,
    )


def notes(machine: Machine) -> Finding:
    """Report all other remarks of the reader and the description."""
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
    remarks: Sequence[str],
    meaning: str,
    remedy: str,
    severity: Verdict = Verdict.FAIL,
) -> Finding:
    verdict = severity if remarks else Verdict.PASS
    return Finding(name, verdict, meaning, len(remarks), 0, listed(remarks), remedy)


def listed(words: Sequence[str], limit: int = 4) -> str:
    """Join the first few of many remarks."""
    shown = "; ".join(words[:limit])
    return shown if len(words) <= limit else f"{shown}; and {len(words) - limit} more"
