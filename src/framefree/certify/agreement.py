"""One machine, several formulations: the same accelerations, joint wrenches and power from each."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from framefree.certify.closure import Closure
from framefree.certify.laws import AGREEMENT
from framefree.certify.report import Finding
from framefree.certify.subject import States, Subject, evaluate, relative
from framefree.motion import Equations

LARGEST = {"redundant": 12, "embedded": 40}
"""Velocities above which deriving a formulation takes minutes: only if `thorough`."""


class Answer(NamedTuple):
    """What a machine does at given states: (n, bodies, 6), (n, bodies, 6) and (n,)."""

    body_accelerations: np.ndarray
    joint_wrenches: np.ndarray
    power: np.ndarray


def agreement(subject: Subject, thorough: bool = False) -> Iterator[Finding]:
    """Give one finding for each formulation but the first that applies, the reference."""
    states = subject.closed_states
    found, refused = subject.applicable(subject.machine)
    names = [name for name in subject.formulations if name in found]
    reference = None
    for name in subject.formulations:
        key = f"agreement_{name}_residual"
        if name in refused:
            yield Finding.skipped(key, _MEANING, refused[name])
        elif not len(states):
            yield Finding.skipped(key, _MEANING, "no configuration was found that closes all loops")
        elif name == names[0]:
            continue
        elif not thorough and subject.machine.nv > LARGEST.get(name, np.inf):
            reason = f"{subject.machine.nv} velocities are many for it; ask for `thorough`"
            yield Finding.skipped(key, _MEANING, reason)
        else:
            reference = reference or answer(found[names[0]], states)
            yield _compared(key, subject, found[name], reference, names[0])


_MEANING = "accelerations of all bodies, joint wrenches and power, from another formulation"


def _compared(
    key: str, subject: Subject, eom: Equations, reference: Answer, against: str
) -> Finding:
    other = answer(eom, subject.closed_states)
    fields = {name: getattr(other, name) for name in Answer._fields}
    note = f"against {against}"
    if not unique_wrenches(subject):
        del fields["joint_wrenches"]
        note += "; loops leave the joint wrenches open, they were not compared"
    gaps = {name: relative(value, getattr(reference, name)) for name, value in fields.items()}
    worst = max(gaps, key=lambda name: gaps[name])
    return Finding.measured(
        key,
        gaps[worst],
        AGREEMENT,
        _MEANING,
        "do not trust either before this is understood; a nearly singular M is the usual cause",
        note=f"{note}; largest in {worst.replace('_', ' ')}",
    )


def answer(eom: Equations, states: States) -> Answer:
    """Return what a formulation says about states of the machine's joints.

    A formulation with coordinates of its own has the quantity `from_joints`, and takes motor forces
    as `joint_force`.
    """
    inputs = {"x": states.x, "v": states.v, "force": states.force}
    if "from_joints" in eom.quantities:
        x, v = evaluate(eom.functions["from_joints"], states.x, states.v)
        inputs = {"x": x[..., 0], "v": v[..., 0]}
        inputs["joint_force"], inputs["force"] = states.force, np.zeros_like(inputs["v"])

    def value(name: str) -> np.ndarray:
        function = eom.functions[name]
        return evaluate(function, *(inputs[key] for key in function.name_in()))[0]

    inputs["a"] = value("forward")[..., 0]
    return Answer(value("body_acceleration"), value("joint_wrench"), value("power")[..., 0, 0])


def unique_wrenches(subject: Subject) -> bool:
    """Whether the motion determines all joint wrenches: no loop or coupling repeats another."""
    if not subject.closed:
        return True
    return Closure(subject.machine).independent(subject.closed_states.x)
