"""Roll-outs in single precision: near those in double, bits that depend on nothing else."""

import numpy as np
import pytest

import framefree as ff
from framefree.simulate import SimulationError

PENDULUM = {"duration": 0.5, "dt": 1e-3, "integrator": "rk4"}


def starts(count=5):
    return np.random.default_rng(0).uniform(-1, 1, size=(count, 2))


def test_motion_is_that_of_double_precision_to_single_rounding():
    machine = ff.gallery.MACHINES["double-pendulum"]()
    exact = ff.simulate(machine, x0=starts(), **PENDULUM)
    near = ff.simulate(machine, x0=starts(), precision="single", **PENDULUM)
    assert 0 < np.abs(near.x - exact.x).max() < 1e-4
    assert np.array_equal(near.x[:, 1:].astype(np.float32), near.x[:, 1:])
    assert near.meta["options"]["precision"] == "single"


def test_bits_do_not_depend_on_batch_or_threads():
    machine = ff.gallery.MACHINES["double-pendulum"]()
    many = ff.simulate(machine, x0=starts(), precision="single", threads=2, **PENDULUM)
    alone = ff.simulate(machine, x0=starts()[3], precision="single", **PENDULUM)
    assert np.array_equal(many.x[3], alone.x)
    assert np.array_equal(many.v[3], alone.v)


@pytest.mark.parametrize("option", [{"integrator": ff.simulate.Adaptive()}, {"plant": "mujoco"}])
def test_what_has_no_single_precision_is_refused(option):
    machine = ff.gallery.MACHINES["double-pendulum"]()
    with pytest.raises(SimulationError, match="native plant and explicit integrators"):
        ff.simulate(machine, precision="single", **{**PENDULUM, **option})


def test_other_words_are_refused():
    machine = ff.gallery.MACHINES["double-pendulum"]()
    with pytest.raises(SimulationError, match='"double" or "single"'):
        ff.simulate(machine, precision="float", **PENDULUM)
