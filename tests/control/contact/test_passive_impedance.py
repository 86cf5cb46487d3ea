"""Energy that a sampled impedance gives to passive worlds of many stiffnesses, against its margin.

What the law gives is found from the plant's energies alone, not from the law's own count.
"""

import numpy as np
import pytest

import framefree as ff
from framefree.control import ControlError, Impedance, PassiveImpedance
from framefree.control.references.frames import FrameWaypoints
from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Frame,
    Free,
    Joint,
    Loop,
    Machine,
    PointSpring,
    Revolute,
    motors,
)

K, D = np.diag([3000.0, 0, 3000, 0, 0, 0]), np.diag([90.0, 0, 90, 0, 0, 0])
START = np.array([0.7, -1.3])
MARGIN = 0.5


def arm(effort=60.0, g=9.81, **more):
    """Return two rods that hang in the plane of x and z, with motors."""
    length = 0.5
    rod = Moments.of_body(1.5, (0, 0, -length / 2), 0.03 * np.diag([1, 1, 0.1]))
    joints = [
        Joint("hip", Revolute("y"), "world", "upper", (0, 0, 1.5), effort_limit=effort, **more),
        Joint("knee", Revolute("y"), "upper", "lower", (0, 0, -length), effort_limit=effort,
              **more),
    ]  # fmt: skip
    tip = Frame("tip", "lower", (0, 0, -length))
    bodies = [Body("upper", rod), Body("lower", rod)]
    return Machine(bodies, joints, (tip,), actuators=motors(joints), gravity=(0, 0, -g))


def coupled(law, period, delay, stiffnesses, **options):
    """Return a run of an arm whose tip hangs on springs to a fixed point, one for each stiffness.

    The springs are at rest in the beginning, and keep all energy that they are given.
    """
    machine = law.machine
    pose = machine.forward_kinematics(START, "tip")
    place, length = pose[:3, 3] + [0.3, 0, 0.2], np.hypot(0.3, 0.2)
    world = PointSpring("world_spring", "world", "tip", 1e3, length, 0.0, place, (0, 0, 0))
    plant = machine.attach(world).tunable("world_spring.stiffness")
    return ff.simulate(
        plant, law, FrameWaypoints("tip", [pose, pose], [0.0, 9.0]), START, [0.4, -0.6],
        duration=1.6, dt=2.5e-4, control_dt=period, delay=delay, integrator="rk4",
        parameters=np.array(stiffnesses)[:, None], every=round(period / 2.5e-4),
        record=("energy",), progress=False, **options,
    )  # fmt: skip


def given(law, run):
    """Return the energy (J) that the law ever gave beyond what its spring had stored then.

    From every moment to every later one: the gain of kinetic energy and of the world's springs.
    """
    x, v = run.x.reshape(-1, 2), run.v.reshape(-1, 2)
    weight = np.asarray(ff.equations(law.machine).energy(x, 0 * v)[1]).reshape(run.energy.shape)
    gained = run.energy - weight
    e = run["e"]
    stored = np.einsum("...i,ij,...j->...", e, law.stiffness, e) / 2
    later = np.maximum.accumulate(gained[:, ::-1], axis=1)[:, ::-1]
    return (later - gained - stored).max(axis=1)


STIFFNESSES = np.logspace(1, 5.5, 10)


def test_worlds_of_all_stiffnesses_get_no_more_than_the_margin():
    """Two periods late the plain impedance gives hundreds of joules; the counted one does not."""
    law = PassiveImpedance(arm(), "tip", K, D, margin=MARGIN, speed=5.0)
    run = coupled(law, 5e-3, 2, STIFFNESSES)
    assert np.abs(run.v).max() < 5.0
    assert run["overdraft"].max() == 0.0
    assert (given(law, run) <= MARGIN).all()
    plain = Impedance(arm(), "tip", K, D)
    without = given(plain, coupled(plain, 5e-3, 2, STIFFNESSES))
    assert without.max() > 100 * MARGIN
    assert np.sum(without > 4 * MARGIN) >= 8


def test_the_margin_is_used_and_kept_where_motors_saturate():
    """Without weight, slow sampling of a stiff spring: it gives energy, up to its margin."""
    weak = arm(effort=12.0, g=0.0)
    law = PassiveImpedance(weak, "tip", 3 * K, 3 * D, margin=MARGIN, speed=4.0)
    run = coupled(law, 10e-3, 1, STIFFNESSES)
    beyond = given(law, run)
    assert run["overdraft"].max() == 0.0
    assert (beyond <= MARGIN).all()
    assert run["energy_left"].min() < 0.9 * MARGIN
    assert np.abs(run.u).max() == pytest.approx(12.0)


@pytest.mark.slow
def test_what_was_not_foreseen_is_told():
    """Joints faster than said: the margin that holds is the stated one and the overdraft."""
    law = PassiveImpedance(arm(), "tip", 3 * K, 3 * D, margin=0.02, speed=0.05)
    run = coupled(law, 10e-3, 2, STIFFNESSES)
    over = run["overdraft"].max(axis=1)
    assert np.abs(run.v).max() > 0.05
    assert over.max() > 0
    assert (given(law, run) <= 0.02 + over + 1e-9).all()


def test_in_a_fast_loop_it_is_the_impedance():
    """Where nothing is short, the law does what `Impedance` does; V falls at the stated rate."""
    machine = arm(velocity_limit=3.0)
    law = PassiveImpedance(machine, "tip", K, D, margin=2.0)
    pose = machine.forward_kinematics(START, "tip")
    away = pose.copy()
    away[:3, 3] += [0.05, 0, 0.04]
    path = FrameWaypoints("tip", [pose, away], [0.0, 0.3])
    options = {"duration": 0.5, "dt": 1e-3, "control_dt": 1e-3, "progress": False}
    run = ff.simulate(machine, law, path, START, **options)
    same = ff.simulate(machine, Impedance(machine, "tip", K, D), path, START, **options)
    assert run["scale"].min() == 1.0
    assert np.abs(run.x - same.x).max() < 1e-12
    assert run["supplied"][-1] > 0
    still = ff.simulate(
        machine, law, FrameWaypoints("tip", [away, away], [0.0, 9.0]), START, duration=0.2,
        dt=1e-4, progress=False,
    )  # fmt: skip
    rate = np.gradient(still["V"], still.t)
    assert np.abs(rate - still["V_rate"])[2:-2].max() < 1e-2 * np.abs(rate).max()


def test_refused():
    with pytest.raises(ControlError, match="give `speed`, or a `velocity_limit` to `hip`"):
        PassiveImpedance(arm(), "tip", K, D, margin=MARGIN)
    with pytest.raises(ControlError, match="`margin` must be a positive number"):
        PassiveImpedance(arm(), "tip", K, D, margin=0.0, speed=5.0)
    with pytest.raises(ControlError, match="`joint_damping` must be a number from 0 on"):
        PassiveImpedance(arm(), "tip", K, D, margin=MARGIN, speed=5.0, joint_damping=-1.0)
    closed = arm().attach(Loop("pin", "weld", "world", "tip"))
    with pytest.raises(ControlError, match="without loops"):
        PassiveImpedance(closed, "tip", K, D, margin=MARGIN, speed=5.0)
    rod = Body("rod", Moments.of_body(1.0, (0, 0, 0), np.eye(3)))
    afloat = Machine([rod], [Joint("base", Free(), "world", "rod")])
    with pytest.raises(ControlError, match="plain joints"):
        PassiveImpedance(afloat, "rod", K, D, margin=MARGIN, speed=5.0)
