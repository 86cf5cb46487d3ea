"""Sensors tell what is there, late and seldom as they are, and a law sees nothing else."""

from dataclasses import dataclass

import casadi as ca
import numpy as np
import pytest
from simulate_machines import PD, Sine, pendulum

from framefree.control.estimation import (
    EncoderFilter,
    InvariantFilter,
    Reading,
    StateEstimate,
    StateEstimator,
)
from framefree.control.law import Command, ControlError, Law, NumericCommand, NumericLaw
from framefree.geometry import Moments, batch
from framefree.machine import Body, Frame, Free, Joint, Machine, Revolute
from framefree.simulate import Encoders, Imu, Noise, PoseSensor, Pulse, SimulationError, simulate

PERIOD = 0.01


def free_body(gravity=(0.0, 0.0, -9.81)):
    """A body with a frame off its middle."""
    body = Body("body", Moments.of_body(2.0, (0, 0, 0), np.diag([0.02, 0.02, 0.03])))
    tip = Frame("tip", "body", (0.3, 0, 0, np.sqrt(0.5), 0, 0, np.sqrt(0.5)))
    joint = Joint("base", Free(), "world", "body")
    return Machine((body,), (joint,), (tip,), gravity=gravity, name="body")


@dataclass(frozen=True)
class Raw(StateEstimator):
    """Records a reading as it comes; the state is where it started."""

    machine: Machine
    sensor: str
    size: int

    joints = ("base",)

    @property
    def reads(self):
        return (self.sensor,)

    def first_memory(self, x, v):
        return ca.vertcat(x, v)

    def update(self, memory, readings, period):
        value, fresh = readings[self.sensor]
        signals = {"reading": value, "fresh": ca.SX(fresh)}
        return StateEstimate({"base": memory[:7]}, {"base": memory[7:]}, memory, signals)


def read(machine, sensor, size, *, duration=0.2, **options):
    return simulate(
        machine, duration=duration, dt=5e-3, control_dt=PERIOD, sensors=sensor,
        estimator=Raw(machine, sensor.name, size), progress=False, **options,
    )  # fmt: skip


def test_an_imu_in_free_fall_feels_nothing_and_one_that_is_held_feels_its_weight():
    machine = free_body()
    falling = read(machine, Imu(), 6)
    assert np.abs(falling["reading"]).max() < 1e-12
    weight = [Pulse("body", [0, 0, 2 * 9.81, 0, 0, 0])]
    held = read(machine, Imu(), 6, disturbances=weight)
    assert np.allclose(held["reading"], [0, 0, 9.81, 0, 0, 0], atol=1e-12)


def test_an_imu_off_the_middle_of_a_spinning_body_feels_the_spin():
    """Towards the middle by w^2 r; the tip's x is along the body's y."""
    machine = free_body(gravity=(0, 0, 0))
    run = read(machine, Imu(frame="tip"), 6, v0=[0, 0, 0, 0, 0, 5.0])
    assert np.allclose(run["reading"], [0, 25 * 0.3, 0, 0, 0, 5.0], atol=1e-6)


def test_biases_and_noise_of_an_imu():
    sensor = Imu(
        accelerometer=0.1, gyroscope=0.02, accelerometer_bias=(1, 2, 3), gyroscope_bias=(4, 5, 6)
    )
    run = read(free_body(), sensor, 6, duration=20.0)
    assert np.allclose(run["reading"].mean(axis=0), [1, 2, 3, 4, 5, 6], atol=0.02)
    assert np.allclose(run["reading"].std(axis=0), np.repeat([0.1, 0.02], 3), rtol=0.1)


def test_poses_come_late_and_seldom():
    machine = free_body()
    run = read(machine, PoseSensor(every=4, delay=3), 7, v0=[1.0, 0, 0, 0.5, 1.0, 0.3])
    fresh = np.flatnonzero(run["fresh"] > 0.5)
    assert fresh.tolist() == [3, 7, 11, 15, 19]
    for k in fresh:
        assert np.allclose(run["reading"][k, :3], run.x[k - 3, :3])
        there, told = batch.rotation(run.x[k - 3, 3:7]), batch.rotation(run["reading"][k, 3:7])
        assert np.allclose(there, told)


def test_noise_of_a_pose_is_along_and_about_its_own_axes():
    sensor = PoseSensor(position=0.01, angle=0.05)
    run = read(free_body((0, 0, 0)), sensor, 7, duration=20.0)
    turned = batch.rotation_log(batch.rotation(run["reading"][:, 3:7]))
    assert np.allclose(turned.std(axis=0), 0.05, rtol=0.1)
    assert np.allclose(run["reading"][:, :3].std(axis=0), 0.01, rtol=0.1)


# ---------------------------------------------------------------------- a law behind sensors


def test_encoders_give_velocities():
    """A law with encoders follows nearly as one that knows the state."""
    machine = pendulum()
    options = {"duration": 3.0, "dt": 5e-3, "control_dt": 5e-3, "progress": False}
    law, x0 = PD(machine), [0.4, -0.2]
    known = simulate(machine, law, Sine(2), x0, **options)
    sensors = Encoders(deviation=1e-5, resolution=1e-4)
    seen = simulate(
        machine,
        law,
        Sine(2),
        x0,
        sensors=sensors,
        estimator=EncoderFilter(machine, 200.0),
        **options,
    )
    assert np.abs(seen.x - known.x).max() < 0.02
    assert np.abs(seen["estimated_x"] - seen.x).max() < 5e-4
    assert np.abs(seen["estimated_v"] - seen.v)[100:].max() < 0.1
    assert np.abs(seen["estimated_v"] - seen.v).max() > 1e-4  # it is no gift


def test_a_flying_arm_has_its_base_from_one_estimator_and_its_joint_from_another():
    body = Body("body", Moments.of_body(2.0, (0, 0, 0), np.diag([0.02, 0.02, 0.03])))
    link = Body("link", Moments.of_body(0.3, (0.1, 0, 0), np.diag([1e-3] * 3)))
    joints = (
        Joint("base", Free(), "world", "body"),
        Joint("elbow", Revolute((0, 1, 0)), "body", "link", (0.1, 0, 0)),
    )
    machine = Machine((body, link), joints, name="flying arm")
    v0 = [0.3, 0, 2.0, 0.5, -0.4, 0.8, 2.0]
    run = simulate(
        machine, v0=v0, duration=0.5, dt=5e-3, control_dt=5e-3, progress=False,
        sensors=(Imu(), PoseSensor(every=10, delay=3), Encoders(joints=("elbow",))),
        estimator=(
            EncoderFilter(machine, 200.0, of=("elbow",)), InvariantFilter(machine, delay=3),
        ),
    )  # fmt: skip
    assert np.abs(run["estimated_x"][:, :3] - run.x[:, :3]).max() < 2e-3
    assert np.abs(run["estimated_x"][:, 7] - run.x[:, 7]).max() < 2e-3
    assert np.abs(run["estimated_v"] - run.v)[20:].max() < 0.05
    assert np.abs(run.v[:, 6] - run.v[0, 6]).max() > 0.05  # the arm swings


def test_the_encoder_filter_lags_by_two_accelerations_over_its_bandwidth():
    machine = pendulum()
    chosen = EncoderFilter(machine, 50.0)
    period, a = 1e-3, np.array([2.0, -1.0])
    memory = chosen.first_memory(ca.DM.zeros(2), ca.DM.zeros(2))
    m, y = ca.SX.sym("m", 4), ca.SX.sym("y", 2)

    told = chosen.update(m, {"encoders": Reading(y)}, period)
    step = ca.Function("step", [m, y], [told.memory])
    for k in range(1000):
        memory = step(memory, ca.DM(a * (k * period) ** 2 / 2))
    lag = a * 0.999 - np.array(memory[2:]).ravel()
    assert np.allclose(lag, 2 * a / 50.0, rtol=0.03)


def test_the_law_sees_only_the_estimate():
    @dataclass(frozen=True)
    class Seeing(Law):
        machine: Machine

        def control(self, t, x, v, reference, memory):
            return Command(ca.SX(0, 1), {"seen_x": x, "seen_v": v})

    machine = free_body()
    run = simulate(
        machine, Seeing(machine), v0=[0.2, 0, 1, 1, 2, 0.5], duration=1.0, dt=5e-3,
        control_dt=5e-3, progress=False,
        sensors=(Imu(accelerometer=0.05, gyroscope=0.01), PoseSensor(every=10, delay=4)),
        estimator=InvariantFilter(machine, delay=4),
    )  # fmt: skip
    assert np.array_equal(run["seen_x"], run["estimated_x"])
    assert np.array_equal(run["seen_v"], run["estimated_v"])
    assert 1e-6 < np.abs(run["seen_x"][:, :3] - run.x[:, :3]).max() < 0.05
    assert run.meta["options"]["sensors"][0]["gyroscope"] == 0.01


@dataclass(frozen=True)
class InPython(NumericLaw):
    """Records what it sees."""

    machine: Machine
    takes = ("unknown_force",)

    @property
    def signals(self):
        return {"seen": (self.machine.nv,)}

    def command(self, t, x, v, reference, memory):
        return NumericCommand(np.zeros(self.machine.nu), {"seen": v})


def test_a_law_in_python_and_mujoco_see_the_same():
    pytest.importorskip("mujoco")
    machine = pendulum()
    sensors, estimator = Encoders(deviation=1e-4), EncoderFilter(machine, 100.0)
    options = {"x0": [0.4, -0.2], "duration": 0.2, "dt": 2.5e-3, "control_dt": 5e-3}
    options |= {"sensors": sensors, "estimator": estimator, "progress": False}
    runs = [simulate(machine, InPython(machine), **options, plant=p) for p in ("native", "mujoco")]
    for run in runs:
        assert np.array_equal(run["seen"], run["estimated_v"])
    assert np.abs(runs[0]["seen"] - runs[1]["seen"]).max() < 2e-3


def test_many_trajectories_have_noise_of_their_own_and_the_same_as_alone():
    machine = pendulum()
    options = {"duration": 0.2, "dt": 5e-3, "control_dt": 5e-3, "progress": False}
    options |= {"sensors": Encoders(deviation=1e-3), "estimator": EncoderFilter(machine, 50.0)}
    x0 = np.array([[0.3, 0.1], [0.3, 0.1], [-0.2, 0.4]])
    together = simulate(machine, PD(machine), Sine(2), x0, **options)
    alone = simulate(machine, PD(machine), Sine(2), x0[0], **options)
    assert np.array_equal(together["estimated_v"][0], alone["estimated_v"])
    assert np.abs(together["estimated_v"][0] - together["estimated_v"][1]).max() > 1e-3


def test_refused():
    machine = pendulum()
    encoders, chosen = Encoders(), EncoderFilter(machine, 50.0)
    options = {"duration": 0.1, "dt": 1e-2, "control_dt": 1e-2, "progress": False}

    def start(**more):
        simulate(machine, PD(machine), Sine(2), **{**options, **more})

    with pytest.raises(SimulationError, match="give them or `noise`, not both"):
        start(sensors=encoders, estimator=chosen, noise=Noise(x=1e-3))
    with pytest.raises(SimulationError, match="an `estimator` needs `sensors`"):
        start(estimator=chosen)
    with pytest.raises(SimulationError, match="reads the sensor `encoders`; given: `dials`"):
        start(sensors=Encoders(name="dials"), estimator=chosen)
    with pytest.raises(SimulationError, match="nothing reads the sensor `encoders`"):
        start(sensors=encoders)
    with pytest.raises(SimulationError, match="comes from 2"):
        start(sensors=encoders, estimator=(chosen, EncoderFilter(machine, 20.0)))
    with pytest.raises(SimulationError, match="two sensors are called `encoders`"):
        start(sensors=(encoders, Encoders(deviation=1.0)), estimator=chosen)
    with pytest.raises(SimulationError, match="`every` of the sensor `pose` must be a whole"):
        PoseSensor(every=0)
    with pytest.raises(SimulationError, match="`sensors` needs a control period"):
        start(sensors=encoders, estimator=chosen, control_dt=None)
    with pytest.raises(SimulationError, match="not negative"):
        start(sensors=Encoders(deviation=-1.0), estimator=chosen)
    with pytest.raises(ControlError, match="there is no joint `elbow` with an encoder"):
        EncoderFilter(machine, 50.0, of=("elbow",))
