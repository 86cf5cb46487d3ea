"""One machine, several formulations: the same accelerations, joint wrenches and power from each."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from framefree.certify.laws import AGREEMENT
from framefree.certify.report import Finding
from framefree.certify.subject import UNDEFINED, States, Subject, evaluate, relative
from framefree.motion import Equations

LARGEST = {"embedded": 60, "constrained": 60, "redundant": 60}
"""Velocities above which deriving a formulation takes minutes: only if `thorough`."""


class Answer(NamedTuple):
    """What a machine does at given states: (n, bodies, 6), (n, bodies, 6) and (n,)."""

    body_accelerations: np.ndarray
    joint_wrenches: np.ndarray
    power: np.ndarray


def agreement(subject: Subject, thorough: bool = False) -> Iterator[Finding]:
    """Give one finding for each formulation but one that applies, the reference."""
    states = subject.closed_states
    found, refused = subject.applicable(subject.machine)
    against = subject.reference(found)
    reference = None
    for name in subject.formulations:
        key = f"agreement_{name}_residual"
        if name in refused:
            yield Finding.skipped(key, _MEANING, refused[name])
        elif not len(states):
            yield Finding.skipped(key, _MEANING, "no configuration was found that closes all loops")
        elif subject.singular:
            yield Finding.skipped(key, _MEANING, UNDEFINED)
        elif not against:
            yield Finding.skipped(key, _MEANING, "no formulation in joint coordinates applies")
        elif name == against:
            continue
        elif not thorough and subject.machine.nv > LARGEST.get(name, np.inf):
            reason = f"{subject.machine.nv} velocities are many for it; ask for `thorough`"
            yield Finding.skipped(key, _MEANING, reason)
        else:
            reference = reference or answer(found[against], states)
            yield _compared(key, subject, found[name], reference, against)


_MEANING = "accelerations of all bodies, joint wrenches and power, from another formulation"


def _compared(
    key: str, subject: Subject, eom: Equations, reference: Answer, against: str
) -> Finding:
    other = answer(eom, subject.closed_states)
    fields = list(Answer._fields)
    note = f"against {against}"
    if not unique_wrenches(subject):
        fields.remove("joint_wrenches")
        note += "; loops leave the joint wrenches open, they were not compared"
    count = len(subject.closed_states)
    good = np.ones(count, dtype=bool)
    if eom.sizes["v"] < subject.machine.nv:
        # Where the independent velocities do not determine the others it has no answer.
        good = np.isfinite(other.body_accelerations).all(axis=(1, 2))
        note += f"; its coordinates serve at {good.sum()} of {count} states"
    gaps = {
        name: relative(getattr(other, name)[good], getattr(reference, name)[good])
        for name in fields
    }
    worst = max(gaps, key=lambda name: gaps[name])
    return Finding.measured(
        key,
        gaps[worst] if good.any() else np.inf,
        AGREEMENT,
        _MEANING,
        "do not trust either before this is understood; a nearly singular M is the usual cause",
        note=f"{note}; largest in {worst.replace('_', ' ')}",
    )


def answer(eom: Equations, states: States) -> Answer:
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
    return Answer(
        value("body_acceleration"),
        value("joint_wrench:joint_force"),
        value("power:joint_force")[..., 0, 0],
    )


def unique_wrenches(subject: Subject) -> bool:
    """Whether the motion determines all joint wrenches: no loop or coupling repeats another."""
    if not subject.closed:
        return True
    return subject.closure.independent(subject.closed_states.x)
