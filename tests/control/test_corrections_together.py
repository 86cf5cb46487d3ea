"""Corrections side by side: V falls by the sum of what they state, and each keeps its states."""

from dataclasses import replace

import numpy as np
import pytest
from closed_loop import ClosedLoop
from test_learned_laws import GAINS, TRUE, WRONG, in_fluid
from unknown_machines import arm, floating

from framefree.control import Adaptation, Adaptive, PassivityControl
from framefree.control.law import ControlError
from framefree.control.unknown import CorrectionsTogether, LearnedAdaptation
from framefree.geometry import Moments
from framefree.machine import Machine

GAIN = {"drag": 0.3, "lift.weight": 2.0, "current": 0.1}


def loaded(machine: Machine) -> Machine:
    """Return the machine with a payload on its last body."""
    last = machine.bodies[-1]
    more = Moments.of_body(0.7, np.array([0.1, -0.05, 0.2]), 0.02 * np.eye(3))
    heavier = replace(last, inertia=last.moments + more)
    return replace(machine, bodies=(*machine.bodies[:-1], heavier))


def adapting(machine: Machine, truth=TRUE, true_machine: Machine | None = None):
    payload = Adaptation((machine.bodies[-1].name,), truth=true_machine or loaded(machine))
    law = PassivityControl(machine, **GAINS, unknown=payload)
    return Adaptive(law, WRONG, GAIN, truth=truth)


@pytest.mark.parametrize("make", [arm, floating])
def test_V_falls_as_stated_with_payload_and_fluid_unknown(make):
    machine = make()
    law = adapting(machine)
    assert isinstance(law.unknown, CorrectionsTogether)
    rng = np.random.default_rng(1)

    def near(_, first):
        k = len(TRUE.coefficients)
        return np.r_[first[:-k], first[-k:] + 0.1 * rng.normal(size=k)]

    plant = in_fluid(loaded(machine))
    assert ClosedLoop(law, plant).worst(near, 5) < 1e-9
    # The same, told another payload than there is, or another fluid: now it must not fit.
    assert ClosedLoop(adapting(machine, true_machine=machine), plant).worst(near, 5) > 1e-4
    assert ClosedLoop(adapting(machine, truth=WRONG), plant).worst(near, 5) > 1e-4


def test_states_are_those_of_the_parts():
    machine = arm()
    law = adapting(machine)
    assert len(law.memory) == 10 + 6
    first = ClosedLoop(law).first(machine.neutral(), np.zeros(machine.nv)).full().ravel()
    assert np.allclose(first[-6:], WRONG.coefficients)


def test_refused():
    machine = arm()
    part = LearnedAdaptation(WRONG, GAIN)
    with pytest.raises(ControlError, match="`prediction` of LearnedAdaptation must be 0"):
        PassivityControl(
            machine, **GAINS,
            unknown=CorrectionsTogether((part, LearnedAdaptation(WRONG, GAIN, prediction=1.0))),
        )  # fmt: skip
    twice = PassivityControl(machine, **GAINS, unknown=CorrectionsTogether((part, part)))
    with pytest.raises(ControlError, match="both record `"):
        ClosedLoop(twice)
