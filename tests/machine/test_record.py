"""Machines as data: what is written can be read, and says the same."""

import json

import casadi
import numpy as np
import pytest
from machine_samples import arm, chain

from framefree.machine import Coupling, Custom, Machine, MachineError, Revolute


@pytest.mark.parametrize(
    "machine",
    [
        arm(),
        chain(),
        chain().lock("j8", (0.5, 0.5, 0.5, 0.5)).lock("j1", 0.3),
        arm().tunable("upper.mass", "upper.length"),
        Machine((), ()),
    ],
    ids=["arm", "chain", "locked", "tunable", "empty"],
)
def test_round_trip_through_json(machine):
    text = json.dumps(machine.to_dict(), allow_nan=False)
    again = Machine.from_dict(json.loads(text))
    assert again == machine
    assert again.to_dict() == machine.to_dict()
    rng = np.random.default_rng(0)
    assert np.array_equal(again.random(rng), machine.random(np.random.default_rng(0)))


def screw(x):
    return Revolute().pose(x)


def test_what_has_no_plain_form_is_refused_by_name():
    custom = chain((Custom(screw, 1), Revolute()))
    with pytest.raises(MachineError, match="Joint `j0`: a Custom cannot be written down"):
        custom.to_dict()
    coupled = arm().detach("gear").attach(Coupling("cam", "finger", "elbow", casadi.sin))
    with pytest.raises(MachineError, match="Coupling `cam`"):
        coupled.to_dict()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("framefree_machine"), "format 1, got None"),
        (lambda d: d.update(boddies=[]), "did you mean `bodies`"),
        (lambda d: d["bodies"][0].update(type="Bodie"), "did you mean `Body`"),
        (lambda d: d["bodies"][0].update(weight=1), "Body: field `weight` is unknown"),
        (lambda d: d["bodies"][0].pop("name"), "name"),
        (lambda d: d["bodies"][0]["inertia"].update(total="heavy"), "Moments"),
    ],
)
def test_broken_data_is_refused(change, message):
    data = json.loads(json.dumps(arm().to_dict()))
    change(data)
    with pytest.raises(MachineError, match=message):
        Machine.from_dict(data)
