"""Many trajectories on MuJoCo: each has the bits that it has alone."""

import casadi as ca
import numpy as np
import pytest

import framefree as ff
from framefree.control import PDGravity
from framefree.control.references import Hold
from framefree.errors import FramefreeWarning
from framefree.gallery.machines.arms import iiwa
from framefree.machine.actuators import motors
from framefree.simulate import Noise, Push
from framefree.simulate.errors import SimulationError

pytest.importorskip("mujoco")


@pytest.fixture(scope="module")
def arm():
    machine = iiwa()
    return machine.replace(actuators=motors(machine.joints))


def compared(machine, law=None, reference=None, *, batch=3, seed=0, **options):
    """Return a run of many trajectories; every one must equal a run of its own."""
    rng = np.random.default_rng(0)
    x, v = machine.random(rng, batch), 0.3 * rng.normal(size=(batch, machine.nv))
    options = {"duration": 0.011, "dt": 1e-3, "plant": "mujoco", "progress": False, **options}
    together = ff.simulate(machine, law, reference, x, v, seed=seed, **options)
    for k in range(batch):
        own = seed[k] if isinstance(seed, tuple) else seed
        alone = ff.simulate(machine, law, reference, x[k], v[k], seed=own, **options)
        for name in ("x", "v", "u"):
            assert np.array_equal(getattr(together, name)[k], getattr(alone, name)), name
    return together


def test_a_law_at_every_step(arm):
    run = compared(arm, PDGravity(arm, 20.0, 1.0), Hold(arm, arm.neutral()))
    assert not np.array_equal(run.u[0], run.u[1])


@pytest.mark.parametrize("threads", [1, 2])
def test_a_command_that_is_held(arm, threads):
    law, reference = PDGravity(arm, 20.0, 1.0), Hold(arm, arm.neutral())
    compared(arm, law, reference, control_dt=4e-3, every=3, threads=threads)


@pytest.mark.filterwarnings("ignore:MuJoCo")
@pytest.mark.filterwarnings("ignore:1 of 3 traj")
def test_loops_that_blow_up(arm):
    law, reference = PDGravity(arm, 20.0, 9.0), Hold(arm, arm.neutral())
    compared(arm, law, reference, control_dt=4e-3, every=3)


def test_lag_noise_and_forces_of_ours(arm):
    law, reference = PDGravity(arm, 20.0, 1.0), Hold(arm, arm.neutral())
    push = Push(arm.bodies[-1].name, lambda t: [3 * ca.sin(500 * t), 0, 1, 0, 0, 0])
    more = {"lag": 0.01, "noise": Noise(x=1e-3, v=1e-3), "disturbances": push}
    compared(arm, law, reference, seed=(3, 1, 2), control_dt=2e-3, **more)


def test_free_bodies_whose_coordinates_are_not_mujocos():
    compared(ff.gallery.MACHINES["space-arm"](), integrator="euler")


@pytest.mark.filterwarnings("ignore:MuJoCo")
def test_one_that_breaks_off_ends_only_itself(arm):
    x = np.tile(arm.neutral(), (3, 1))
    v = np.zeros((3, 7))
    v[1] = 1e9
    with pytest.warns(FramefreeWarning, match="1 of 3 trajectories ended early"):
        run = ff.simulate(
            arm, None, None, x, v, duration=0.01, dt=1e-3, plant="mujoco", progress=False
        )
    assert np.isfinite(run.x[[0, 2]]).all()
    assert not np.isfinite(run.x[1, -1]).any()


def test_machines_with_constraints_are_refused():
    machine = ff.gallery.MACHINES["crane"]()
    closed = ff.equations(machine).project(machine.neutral(), np.zeros(machine.nv))
    x = np.tile(closed.x, (2, 1))
    with pytest.raises(SimulationError, match="need a machine without loops or couplings"):
        ff.simulate(machine, None, None, x, duration=0.01, dt=1e-3, plant="mujoco", progress=False)
