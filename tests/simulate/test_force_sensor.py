"""A force sensor feels what touches, holds and pushes a body: by statics, on both plants."""

from dataclasses import dataclass

import casadi as ca
import numpy as np
import pytest

import framefree as ff
from framefree.control import LawsTogether
from framefree.control.law import Command, Law, NumericCommand, NumericLaw
from framefree.gallery.machines.touching import block
from framefree.geometry import Moments, se3
from framefree.machine import (
    Body,
    Frame,
    Free,
    Interaction,
    Joint,
    Loop,
    Machine,
)
from framefree.simulate import Encoders, ForceSensor, Imu, Push, SimulationError, simulate

G = 9.81
TILTED = np.array(se3.pose(ff.geometry.so3.exp([0.3, -0.2, 0.5]), [0.1, 0.2, -0.1]))
"""Pose of the sensor's frame on its body."""


@dataclass(frozen=True, eq=False)
class Reader(Law):
    """Inputs of nothing; what it measures is recorded."""

    machine: Machine
    sensor: str = "force"

    @property
    def measures(self):
        return (self.sensor,)

    def control(self, t, x, v, reference, memory):
        return Command(ca.SX(self.machine.nu, 1), {"seen": reference[self.sensor]})


def with_frame(machine, body):
    return machine.attach(Frame("sensor", body, TILTED))


def in_sensor(force, point):
    """Return a force at a point of the body (body axes) as a wrench in the sensor's frame."""
    R, r = TILTED[:3, :3], TILTED[:3, 3]
    return np.concatenate([R.T @ force, R.T @ np.cross(np.asarray(point) - r, force)])


@pytest.mark.parametrize(
    "options", [{}, {"plant": "mujoco"}, {"plant": "mujoco", "contacts": True}]
)
def test_a_block_at_rest_feels_its_weight(options):
    machine = with_frame(block(friction=0.4, stiffness=2e4, damping=20.0), "block")
    mass = machine.body("block").moments.total
    run = simulate(
        machine, Reader(machine), x0=[0, 0, 0.0492, 1, 0, 0, 0], duration=1.5, dt=1e-3,
        control_dt=2e-3, sensors=ForceSensor(frame="sensor"), progress=False, **options,
    )  # fmt: skip
    expected = in_sensor([0, 0, mass * G], [0, 0, 0])
    assert run["force"].shape == (len(run.t), 6)
    assert np.abs(run["force"][-1] - expected).max() < 1e-3 * mass * G
    assert np.array_equal(run["force"], run["seen"])


@pytest.mark.parametrize("options", [{}, {"plant": "mujoco"}])
def test_interactions_and_pushes_are_felt_and_weight_is_not(options):
    body = Body("hull", Moments.of_body(2.0, (0.05, 0, 0), np.eye(3)))
    machine = Machine([body], [Joint("base", Free(), "world", "hull")], gravity=(0, 0, -G))
    pull = Interaction("pull", "hull", "world", lambda pose: ca.vertcat(0, 0, 3, 0, 0, 0))
    machine = with_frame(machine.attach(pull), "hull")
    push = Push("hull", lambda t: [5.0, 0, 0, 0, 0, 0])
    run = simulate(
        machine, Reader(machine), duration=2e-3, dt=1e-3, control_dt=1e-3, disturbances=[push],
        sensors=ForceSensor(frame="sensor"), progress=False, **options,
    )  # fmt: skip
    expected = in_sensor([0, 0, -3.0], [0, 0, 0]) + in_sensor([5.0, 0, 0], [0, 0, 0])
    assert np.abs(run["force"][0] - expected).max() < 1e-9


def held_weight():
    """Return a free body that is held by a weld."""
    body = Body("weight", Moments.of_body(3.0, (0, 0, 0), 0.01 * np.eye(3)))
    joint = Joint("base", Free(), "world", "weight")
    machine = Machine([body], [joint], loops=[Loop("hook", "weld", "world", "weight")])
    return with_frame(machine, "weight")


@pytest.mark.parametrize("plant", ["native", "mujoco"])
def test_loops_are_felt(plant):
    machine = held_weight()
    run = simulate(
        machine, Reader(machine), duration=0.01, dt=1e-3, control_dt=1e-3, plant=plant,
        sensors=ForceSensor(frame="sensor"), progress=False,
    )  # fmt: skip
    assert np.abs(run["force"][-1] - in_sensor([0, 0, 3 * G], [0, 0, 0])).max() < 1e-9


def test_accelerometers_feel_contacts_of_an_engine():
    """What lies on the ground has specific force g upwards, also where MuJoCo holds it."""

    @dataclass(frozen=True, eq=False)
    class WithImu(Reader):
        sensor: str = "imu"

    machine = block(friction=0.4)
    run = simulate(
        machine, WithImu(machine), x0=[0, 0, 0.0498, 1, 0, 0, 0], duration=1.5, dt=1e-3,
        control_dt=1e-3, sensors=Imu(frame="block"), plant="mujoco", contacts=True, progress=False,
    )  # fmt: skip
    assert np.abs(run["imu"][-1] - [0, 0, G, 0, 0, 0]).max() < 1e-2


def test_noise_delay_bias_and_batches():
    machine = with_frame(block(friction=0.4), "block")
    x0 = np.tile([0, 0, 0.0498, 1, 0, 0, 0], (2, 1))
    options = {"duration": 0.4, "dt": 1e-3, "control_dt": 1e-3, "progress": False}
    late = ForceSensor(frame="sensor", delay=3)
    now = simulate(machine, Reader(machine), x0=x0, sensors=ForceSensor(frame="sensor"), **options)
    then = simulate(machine, Reader(machine), x0=x0[0], sensors=late, **options)
    assert np.array_equal(now["force"][0], now["force"][1])
    assert np.array_equal(then["force"][3:], now["force"][0, :-3])
    noisy = ForceSensor(frame="sensor", force=0.5, moment=0.1, bias=(1, 0, 0, 0, 0, 2))
    run = simulate(machine, Reader(machine), x0=x0[0], sensors=noisy, **options)
    error = run["force"] - now["force"][0]
    assert np.abs(error.mean(axis=0) - [1, 0, 0, 0, 0, 2]).max() < 0.1
    assert np.abs(error.std(axis=0) / [0.5, 0.5, 0.5, 0.1, 0.1, 0.1] - 1).max() < 0.15


def test_results_do_not_depend_on_how_a_run_is_cut():
    """The engine's wrenches are part of the loop's state: recorded rows may be seldom."""
    machine = with_frame(block(friction=0.4), "block")
    options = {"duration": 0.1, "dt": 1e-3, "control_dt": 1e-3, "progress": False}
    options |= {"plant": "mujoco", "contacts": True, "sensors": ForceSensor(frame="sensor")}
    x0 = [0, 0, 0.055, 1, 0, 0, 0]
    fine = simulate(machine, Reader(machine), x0=x0, **options)
    coarse = simulate(machine, Reader(machine), x0=x0, every=7, **options)
    assert np.array_equal(fine["force"][::7][: len(coarse.t) - 1], coarse["force"][:-1])
    assert np.abs(fine["force"]).max() > 1


def test_laws_in_numbers_and_several_laws_read_sensors():
    @dataclass(frozen=True, eq=False)
    class InNumbers(NumericLaw):
        machine: Machine
        measures = ("force",)
        signals = {"seen": (6,)}  # noqa: RUF012

        def command(self, t, x, v, reference, memory):
            return NumericCommand(np.zeros(0), {"seen": reference["force"]})

    machine = held_weight()
    options = {"duration": 0.01, "dt": 1e-3, "control_dt": 1e-3, "progress": False}
    run = simulate(machine, InNumbers(machine), sensors=ForceSensor(frame="sensor"), **options)
    assert np.array_equal(run["seen"], run["force"])
    assert np.abs(run["force"][-1]).max() > 1
    both = LawsTogether(machine, {"one": Reader(machine)})
    sensor = ForceSensor(name="one.force", frame="sensor")
    run = simulate(machine, both, sensors=sensor, **options)
    assert np.array_equal(run["one.seen"], run["one.force"])


def test_refused():
    machine = held_weight()
    options = {"duration": 0.01, "dt": 1e-3, "control_dt": 1e-3, "progress": False}
    wrist = ForceSensor(name="wrist", frame="weight")
    unread = ForceSensor(frame="weight"), Encoders()
    with pytest.raises(SimulationError, match="the law reads the sensor `force`; given: none"):
        simulate(machine, Reader(machine), **options)
    with pytest.raises(SimulationError, match="the law reads the sensor `force`; given: `wrist`"):
        simulate(machine, Reader(machine), sensors=wrist, **options)
    with pytest.raises(SimulationError, match="nothing reads the sensor `encoders`"):
        simulate(machine, Reader(machine), sensors=unread, **options)
    with pytest.raises(SimulationError, match="`world` is fixed to the world"):
        simulate(machine, Reader(machine), sensors=ForceSensor(frame="world"), **options)
    with pytest.raises(ff.FramefreeError, match="nowhere"):
        simulate(machine, Reader(machine), sensors=ForceSensor(frame="nowhere"), **options)
