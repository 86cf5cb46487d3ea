"""Dry friction that holds a load: how far it creeps, and where it comes to rest."""

import numpy as np
import pytest

from framefree.machine.read import read
from framefree.simulate import simulate

pytest.importorskip("mujoco")
ARM = """<mujoco><worldbody>
<body name="arm"><joint name="j" axis="0 1 0" frictionloss="1"/>
<geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0" mass="0.4"/>
<body name="hand" pos="0.3 0 0"><joint name="k" type="slide" axis="1 0 0.2" frictionloss="2"/>
<geom size="0.03" mass="0.05"/></body></body></worldbody></mujoco>"""


def creep(width):
    machine = read(ARM, friction_width=width)
    run = simulate(machine, duration=20.0, dt=2e-3, every=500, record=())
    return float(np.abs(run.x[-1] - run.x[0]).max())


def test_it_creeps_at_a_share_of_its_width():
    assert 0.1 < creep(1e-2) < 0.5
    assert creep(1e-6) < 3e-5


def test_it_comes_to_rest_where_its_work_is_that_of_the_motion():
    """A slide at 1 m/s under friction 2 N and no other force stops after m v^2 / (2 friction)."""
    text = """<mujoco><option gravity="0 0 0"/><worldbody><body><joint name="k" type="slide"
    axis="1 0 0" frictionloss="2"/><geom size="0.1" mass="3"/></body></worldbody></mujoco>"""
    machine = read(text, friction_width=1e-7)
    run = simulate(machine, v0=[1.0], duration=4.0, dt=1e-3, every=100, record=())
    assert run.x[-1, 0] == pytest.approx(3 / (2 * 2), rel=2e-3)
    assert abs(run.v[-1, 0]) < 1e-9


def test_the_note_of_the_reader_says_so():
    (note,) = [n for n in read(ARM, friction_width=1e-6).ignored if "frictionloss" in n]
    assert "creeps below 1e-06 rad/s or m/s" in note
