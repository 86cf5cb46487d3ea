"""Interactions as parts of a machine: what they take, what they refuse, and how they travel."""

import pickle
import warnings

import casadi as ca
import numpy as np
import pytest

from framefree.errors import FramefreeWarning
from framefree.geometry import Moments
from framefree.machine import Body, Frame, Free, Interaction, Joint, Machine, MachineError
from framefree.machine.formats.writing import WriteError

BALL = Body("ball", Moments.of_body(2.0, (0, 0, 0), 0.1 * np.eye(3)))


def ball(*parts):
    joint = Joint("base", Free(), "world", "ball")
    return Machine([BALL], [joint], [Frame("spot", "ball", (0.1, 0, 0))], interactions=parts)


def drag(twist, k):
    return ca.vertcat(-k * twist[:3], 0, 0, 0)


def test_arguments_are_taken_by_name():
    part = Interaction("pull", "world", "ball", lambda time, twist: time * twist)
    value = part.wrench_at(np.eye(4), np.arange(6.0), 2.0)
    assert np.array_equal(np.array(ca.DM(value)).ravel(), 2 * np.arange(6.0))
    assert part.timed
    assert not part.stores
    held = part.held_at(3.0)
    assert not held.timed
    value = held.wrench_at(np.eye(4), np.arange(6.0), 2.0)
    assert np.array_equal(np.array(ca.DM(value)).ravel(), 3 * np.arange(6.0))


def test_time_that_does_not_enter_does_not_count():
    part = Interaction("pull", "world", "ball", lambda time, twist: 0 * time - twist)
    assert not part.timed
    assert part.held_at(1.0) is part


def test_a_casadi_function_serves():
    xi, k = ca.MX.sym("xi", 6), ca.MX.sym("k")
    law = ca.Function("law", [xi, k], [-k * xi], ["twist", "k"], ["w"])
    part = Interaction("drag", "world", "ball", law, parameters={"k": 3.0})
    assert np.array_equal(
        np.array(ca.DM(part.wrench_at(np.eye(4), np.ones(6), 0))).ravel(), np.full(6, -3.0)
    )


def test_equal_by_value_and_picklable():
    parts = [Interaction("drag", "world", "ball", drag, parameters={"k": k}) for k in (1, 1, 2)]
    assert parts[0] == parts[1]
    assert hash(parts[0]) == hash(parts[1])
    assert parts[0] != parts[2]
    other = Interaction("drag", "world", "ball", lambda twist, k: -k * twist, parameters={"k": 1})
    assert parts[0] != other
    again = pickle.loads(pickle.dumps(ball(parts[0])))
    assert again == ball(parts[0])
    assert ball(parts[0]) != ball(parts[2])


def test_parameters_are_tunable_numbers():
    weights = np.arange(6.0).reshape(2, 3)
    part = Interaction(
        "net",
        "world",
        "ball",
        lambda pose, k, w, offset: ca.vertcat(k * w @ pose[:3, 3], 0, offset),
        parameters={"k": 2.0, "w": weights, "offset": [1.0, 2.0, 3.0]},
    )
    machine = ball(part).tunable("net.k", "net.w.1.2", "net.offset.0")
    assert machine.parameters.defaults.tolist() == [2.0, 5.0, 1.0]
    tuned = machine.with_parameters({"net.w.1.2": 7.0, "net.k": 3.0}).interactions[0]
    values = dict(tuned.parameters)
    assert values["k"] == 3.0
    assert values["w"].tolist() == [[0, 1, 2], [3, 4, 7]]
    assert machine.with_parameters() == machine.numeric
    with pytest.raises(MachineError, match=r"`net.w.3.0`.*w.<0 to 1>.<0 to 2>"):
        ball(part).tunable("net.w.3.0")


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (lambda twist: twist[:3], r"must be 6 numbers, force and moment, got shape \(3, 1\)"),
        (lambda twist: ca.SX.sym("foreign") * twist, "depends on `foreign`.*`parameters`"),
        (lambda velocity: velocity, "asks for `velocity`.*`pose`, `time`, `twist`"),
        (lambda *twist: twist[0], r"takes arguments by name: \*twist"),
        (lambda twist: twist / ca.norm_2(twist), "has no value at rest"),
        (lambda twist: twist if twist[0] > 0 else -twist, "could not be traced"),
        (lambda twist: np.sin(float(twist[0])) * twist, "those of casadi"),
        (7.0, "must be a function or a casadi.Function"),
        (None, "needs a `wrench`"),
        (ca.Function("f", [ca.SX.sym("a", 6)], [ca.SX.zeros(6)]), "asks for `i0`"),
    ],
)
def test_wrong_expressions_are_refused_by_name(law, message):
    with pytest.raises(MachineError, match=message) as error:
        Interaction("gust", "world", "ball", law)
    assert "`gust`" in str(error.value)


def test_other_wrong_descriptions():
    with pytest.raises(MachineError, match=r"energy.*asks for `twist`"):
        Interaction("a", "world", "ball", lambda twist: twist, energy=lambda twist: twist[0])
    with pytest.raises(MachineError, match="must be one number"):
        Interaction("a", "world", "ball", lambda twist: twist, energy=lambda pose: pose)
    with pytest.raises(MachineError, match=r"`twist`.*must have the name of an argument"):
        Interaction("a", "world", "ball", lambda twist: twist, parameters={"twist": 1.0})
    with pytest.raises(MachineError, match="finite numbers"):
        Interaction("a", "world", "ball", lambda twist, k: k * twist, parameters={"k": np.nan})
    part = Interaction("a", "world", "moon", lambda twist: -twist)
    with pytest.raises(MachineError, match=r"Interaction `a`: frame `moon`"):
        ball(part)
    with pytest.raises(MachineError, match="two different frames"):
        ball(Interaction("a", "ball", "ball", lambda twist: -twist))


def test_missing_slopes_at_rest_are_warned_of():
    with pytest.warns(FramefreeWarning, match="no slopes at rest"):
        Interaction("a", "world", "ball", lambda twist: -ca.norm_2(twist) * twist)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Interaction("a", "world", "ball", lambda twist: -twist * ca.sqrt(ca.sumsqr(twist) + 1e-12))


def test_editing_follows():
    part = Interaction("drag", "world", "spot", drag, parameters={"k": 1.0})
    machine = ball(part)
    assert machine.replace("spot", name="place").interactions[0].frame_b == "place"
    assert machine.detach("spot").interactions == ()
    assert machine.detach("drag").interactions == ()
    assert ball().attach(part) == machine
    two = ball(part).merge(ball(part), prefix="other_")
    assert [p.name for p in two.interactions] == ["drag", "other_drag"]
    tuned = machine.tunable("drag.k").merge(machine, prefix="o_")
    assert tuned.parameters.names == ("drag.k",)


def test_formats_refuse_it_by_name():
    machine = ball(Interaction("drag", "world", "ball", drag, parameters={"k": 1.0}))
    with pytest.raises(WriteError, match="interaction `drag`"):
        machine.to_mjcf()
    assert "drag" in machine.to_mjcf(without="interaction")
    with pytest.raises(WriteError, match="interaction `drag`"):
        machine.to_urdf()
    with pytest.raises(MachineError, match="interaction"):
        machine.to_dict()
