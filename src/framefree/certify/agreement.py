"""One machine, several formulations: the same accelerations, joint wrenches and power from each."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from framefree.certify.laws import AGREEMENT, LEAST
from framefree.certify.report import Finding
from framefree.certify.subject import UNDEFINED, States, Subject, evaluate, relative
from framefree.motion import Equations

LARGEST = {"embedded": 60, "constrained": 60, "redundant": 60}
"""Velocities above which deriving a formulation takes minutes: only if `thorough`."""

CANCELLED = 1e-6
"""Share of flows of power that counts as the least size of their sum."""


class FormulationAnswer(NamedTuple):
    """The motion of a machine at states of its joints, computed by one formulation.

    Attributes
    ----------
    body_accelerations : (n, bodies, 6)
    power : (n,)
    joint_wrenches : (n, bodies, 6) or None
        None where the formulation does not offer them.
    """

    body_accelerations: np.ndarray
    power: np.ndarray
    joint_wrenches: np.ndarray | None


def agreement(subject: Subject, thorough: bool = False) -> Iterator[Finding]:
    """Give two findings for each formulation but one that applies, the reference.

    The first is about motion, the second about the wrenches in the joints.
    """
    states = subject.closed_states
    applying, refused = subject.applicable(subject.machine)
    against = subject.reference(applying)
    reference = None
    for name in subject.formulations:
        reason = ""
        if name in refused:
            reason = refused[name]
        elif not len(states):
            reason = "no configuration was found that closes all loops"
        elif subject.singular:
            reason = UNDEFINED
        elif not against:
            reason = "no formulation in joint coordinates applies"
        elif name == against:
            continue
        elif not thorough and subject.machine.nv > LARGEST.get(name, np.inf):
            reason = f"{subject.machine.nv} velocities are many for it; ask for `thorough`"
        if reason:
            yield Finding.skipped(f"agreement_{name}_residual", _MOTION, reason)
            continue
        reference = reference or answer(applying[against], states)
        yield from _compared(name, subject, applying[name], reference, against)


_MOTION = "accelerations of all bodies and power, from another formulation"
_WRENCHES = "wrenches in all joints, from another formulation"
_REMEDY = "do not trust either before this is understood; a nearly singular M is the usual cause"


def _compared(
    name: str, subject: Subject, eom: Equations, reference: FormulationAnswer, against: str
) -> Iterator[Finding]:
    other, units = answer(eom, subject.closed_states), subject.units
    valid = _valid(subject, eom)
    note = f"against {against}"
    if not valid.all():
        note += f"; its coordinates are valid at {valid.sum()} of {len(valid)} states"
    # Natural sizes: L / T^2, and what masses of natural size gain in power.
    # Of power no more is known than the last digits of the flows that it is the sum of.
    M, flow = _largest_mass(subject), CANCELLED * _flow(subject)
    gaps = {
        "body accelerations": relative(
            other.body_accelerations[valid] / units.twist,
            reference.body_accelerations[valid] / units.twist,
            LEAST / units.time**2,
        ),
        "power": relative(
            other.power[valid],
            reference.power[valid],
            LEAST * M[valid] / units.time**3 + flow[valid],
        ),
    }
    worst = max(gaps, key=lambda quantity: gaps[quantity])
    yield Finding.measured(
        f"agreement_{name}_residual",
        gaps[worst] if valid.any() else np.inf,
        AGREEMENT,
        _MOTION,
        _REMEDY,
        note=f"{note}; largest in {worst}",
    )
    key = f"agreement_{name}_wrench_residual"
    if other.joint_wrenches is None or reference.joint_wrenches is None:
        silent = eom.name if other.joint_wrenches is None else against
        reason = f"the {silent} formulation does not offer joint wrenches"
        yield Finding.skipped(key, _WRENCHES, reason)
    elif not unique_wrenches(subject):
        yield Finding.skipped(key, _WRENCHES, "loops leave the joint wrenches open")
    else:
        gap = relative(
            other.joint_wrenches[valid] * units.twist,
            reference.joint_wrenches[valid] * units.twist,
            LEAST * M[valid] / units.time**2,
        )
        gap = gap if valid.any() else np.inf
        yield Finding.measured(key, gap, AGREEMENT, _WRENCHES, _REMEDY, note=note)


def _largest_mass(subject: Subject) -> np.ndarray:
    """Return the largest entry (n,) of M in natural units, kg m^2."""
    (M,) = evaluate(subject.bare.functions["mass"], subject.closed_states.x)
    return np.abs(subject.units.of_mass(M)).max(axis=(1, 2))


def _flow(subject: Subject) -> np.ndarray:
    """Return the power (n,) that all forces at hand could have together, whatever their signs."""
    states = subject.closed_states
    (bias,) = evaluate(subject.tree.functions["bias"], states.x, states.v)
    return (np.abs(states.v) * (np.abs(bias[..., 0]) + np.abs(states.force))).sum(axis=1)


def _valid(subject: Subject, eom: Equations) -> np.ndarray:
    """Return at which states (n,) the coordinates of a formulation must have an answer.

    One with some of the joints' velocities has none where these do not determine the others.
    """
    x, names = subject.closed_states.x, subject.machine.v_names
    if not subject.closed or not set(eom.v_names) < set(names):
        return np.ones(len(x), dtype=bool)
    return subject.closure.determined(x, [names.index(name) for name in eom.v_names])


def answer(eom: Equations, states: States) -> FormulationAnswer:
    """Return what a formulation says about states of the machine's joints."""
    own = [eom.start(x, v) for x, v in zip(states.x, states.v, strict=True)]
    inputs = {
        "x": np.array([x for x, _ in own]),
        "v": np.array([v for _, v in own]),
        "joint_force": states.force,
    }

    def value(name: str) -> np.ndarray:
        function = eom.functions[name]
        return evaluate(function, *(inputs[key] for key in function.name_in()))[0]

    inputs["a"] = value("forward:joint_force")[..., 0]
    return FormulationAnswer(
        value("body_acceleration"),
        value("power:joint_force")[..., 0, 0],
        value("joint_wrench:joint_force") if "joint_wrench" in eom.offers else None,
    )


def unique_wrenches(subject: Subject) -> bool:
    """Whether the motion determines all joint wrenches: no loop or coupling repeats another."""
    if not subject.closed:
        return True
    return subject.closure.independent(subject.closed_states.x)
