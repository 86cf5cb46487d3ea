"""Sensors: what a machine tells of itself, with noise, biases and delay.

A sensor is read at the beginning of every control period, or of every few of them, and its readings
may arrive some periods later. To add one, subclass `Sensor` (a frozen dataclass) and give

1. ``value(state, acting)``: the true reading at a `State` of the plant, a column; `PlantForces`
   say what acts on it, and give its accelerations, where they are needed;
2. ``disturbed(machine, value, noise)``: the reading, from the true one and `deviations(machine)`
   times standard normal numbers, as many as these.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.estimation import Reading
from framefree.geometry import quaternion, se3
from framefree.machine import Machine
from framefree.machine.values import constant_pose
from framefree.motion import State
from framefree.simulate.errors import SimulationError
from framefree.simulate.plant_forces import PlantForces

Matrix = Any


@dataclass(frozen=True, kw_only=True)
class Sensor(ABC):
    """Base of all sensors; see the contract at the top of this file.

    Parameters
    ----------
    name : str
    every : int
        Control periods from one reading to the next.
    delay : int
        Control periods until a reading arrives.
    """

    name: str
    every: int = 1
    delay: int = 0

    def __post_init__(self) -> None:
        for name, least in (("every", 1), ("delay", 0)):
            value = getattr(self, name)
            if value < least or value != int(value):
                raise SimulationError(
                    f"`{name}` of the sensor `{self.name}` must be a whole number from {least} on, "
                    f"got {value}"
                )

    @abstractmethod
    def value(self, state: State, acting: PlantForces) -> Matrix:
        """Return the true reading at a state of the plant."""

    @abstractmethod
    def deviations(self, machine: Machine) -> np.ndarray:
        """Return the standard deviations of its noise."""

    @abstractmethod
    def disturbed(self, machine: Machine, value: Matrix, noise: Matrix) -> Matrix:
        """Return the reading: the true one with noise and biases."""


@dataclass(frozen=True, kw_only=True)
class Imu(Sensor):
    """An accelerometer and a gyroscope on a frame: specific force and angular velocity (6).

    Parameters
    ----------
    frame : str
    accelerometer, gyroscope : float
        Deviation of a reading, m/s^2 and rad/s.
    accelerometer_bias, gyroscope_bias : (3,)
        Constant errors, in the frame's axes.
    """

    name: str = "imu"
    frame: str = "body"
    accelerometer: float = 0.0
    gyroscope: float = 0.0
    accelerometer_bias: Any = (0.0, 0.0, 0.0)
    gyroscope_bias: Any = (0.0, 0.0, 0.0)

    def value(self, state: State, acting: PlantForces) -> Matrix:
        """Return v' + w x v - R^T g and w of the frame, in its axes."""
        machine = state.machine
        frame = machine.frame(self.frame)
        index = machine.body_index[frame.body]
        if index < 0:
            raise SimulationError(f"the sensor `{self.name}` sits on the world, which is at rest")
        into = se3.adjoint(se3.inverse(constant_pose(frame.pose)))
        twist = into @ state.twists[index]
        rate = into @ state.accelerations(acting.acceleration())[index]
        R = se3.rotation(state.frame_pose(self.frame))
        gravity = ca.DM(np.asarray(machine.gravity, float))
        v, w = twist[:3], twist[3:]
        return ca.vertcat(rate[:3] + ca.cross(w, v) - R.T @ gravity, w)

    def deviations(self, machine: Machine) -> np.ndarray:
        """Return those of all six numbers."""
        return np.repeat([float(self.accelerometer), float(self.gyroscope)], 3)

    def disturbed(self, machine: Machine, value: Matrix, noise: Matrix) -> Matrix:
        """Add noise and biases."""
        bias = np.concatenate([self.accelerometer_bias, self.gyroscope_bias])
        return value + noise + ca.DM(np.asarray(bias, float))


@dataclass(frozen=True, kw_only=True)
class PoseSensor(Sensor):
    """Cameras that tell the pose of a frame in the world: position and wxyz (7).

    Parameters
    ----------
    frame : str
    position, angle : float
        Deviation of a reading along and about each axis, m and rad.
    """

    name: str = "pose"
    frame: str = "body"
    position: float = 0.0
    angle: float = 0.0

    def value(self, state: State, acting: PlantForces) -> Matrix:
        """Return position and wxyz of the frame."""
        G = state.frame_pose(self.frame)
        return ca.vertcat(se3.position(G), quaternion.from_rotation(se3.rotation(G)))

    def deviations(self, machine: Machine) -> np.ndarray:
        """Return those along and about three axes."""
        return np.repeat([float(self.position), float(self.angle)], 3)

    def disturbed(self, machine: Machine, value: Matrix, noise: Matrix) -> Matrix:
        """Move the pose by a small twist in its own axes."""
        G = se3.pose(quaternion.to_rotation(value[3:7]), value[:3])
        moved = se3.compose(G, se3.exp(noise))
        return ca.vertcat(
            se3.position(moved), quaternion.product(value[3:7], quaternion.exp(noise[3:]))
        )


@dataclass(frozen=True, kw_only=True)
class Encoders(Sensor):
    """Encoders of joints: their coordinates, in the order of the joints.

    Parameters
    ----------
    joints : sequence of str, optional
        By default all that move.
    deviation : float
        Of a reading along the velocities, rad or m.
    resolution : float
        Smallest step that is told, rad or m; 0 for none. Joints whose coordinates are not plain
        numbers (balls, cos and sin) have none.
    """

    name: str = "encoders"
    joints: tuple[str, ...] | None = None
    deviation: float = 0.0
    resolution: float = 0.0

    def _joints(self, machine: Machine) -> list[Any]:
        if self.joints is None:
            return [joint for joint in machine.joints if joint.nv]
        return [machine.joint(name) for name in self.joints]

    def value(self, state: State, acting: PlantForces) -> Matrix:
        """Return the coordinates."""
        spans = state.machine.x_slice
        own = self._joints(state.machine)
        return ca.vertcat(*(state.joint_x[spans[joint.name]] for joint in own))

    def deviations(self, machine: Machine) -> np.ndarray:
        """Return those along all velocities."""
        return np.full(sum(joint.nv for joint in self._joints(machine)), float(self.deviation))

    def disturbed(self, machine: Machine, value: Matrix, noise: Matrix) -> Matrix:
        """Move every joint by its noise, and round to the resolution."""
        parts, at, along = [], 0, 0
        for joint in self._joints(machine):
            x = joint.kind.integrate(
                value[at : at + joint.nx, :], noise[along : along + joint.nv, :]
            )
            if self.resolution and joint.kind.vector:
                x = self.resolution * ca.floor(x / self.resolution + 0.5)
            parts.append(x)
            at, along = at + joint.nx, along + joint.nv
        return ca.vertcat(*parts)


@dataclass(frozen=True, kw_only=True)
class JointAccelerations(Sensor):
    """A sensor of the accelerations of joints, as a motion reference unit tells those of a ship.

    Of a free joint these are the rates of its body twist (6), in its own axes: m/s^2 and rad/s^2.

    Parameters
    ----------
    joints : sequence of str
        In any order; readings are in that of the machine.
    deviation : float or (n,)
        Of a reading, m/s^2 or rad/s^2; one for all velocities of the joints, or one for each.
    """

    name: str = "accelerations"
    joints: tuple[str, ...] = ("base",)
    deviation: Any = 0.0

    def value(self, state: State, acting: PlantForces) -> Matrix:
        """Return the accelerations."""
        a = acting.acceleration()
        return ca.vertcat(*(a[span, :] for span in self._spans(state.machine)))

    def deviations(self, machine: Machine) -> np.ndarray:
        """Return those of all velocities of the joints."""
        count = sum(span.stop - span.start for span in self._spans(machine))
        values = np.asarray(self.deviation, float)
        if values.ndim and values.shape != (count,):
            raise SimulationError(
                f"`deviation` of the sensor `{self.name}` must be one number or {count}, got "
                f"{values.shape[0]}"
            )
        return np.broadcast_to(values, (count,)).copy()

    def disturbed(self, machine: Machine, value: Matrix, noise: Matrix) -> Matrix:
        """Add noise."""
        return value + noise

    def _spans(self, machine: Machine) -> list[slice]:
        for name in self.joints:
            machine.joint(name)  # refuses a joint that does not exist, by name
        return [machine.v_slice[j.name] for j in machine.joints if j.name in self.joints]


@dataclass(frozen=True, kw_only=True)
class ForceSensor(Sensor):
    """A sensor of the wrench from outside on the body of a frame, in the frame's axes (6).

    It feels contacts, interactions, loops (such as a grasp) and disturbances, not weight and
    inertia of the body itself. Where MuJoCo solves contacts itself, their share is that of the step
    before, and zero at the first.

    Parameters
    ----------
    frame : str
    force, moment : float
        Deviation of a reading, N and Nm.
    bias : (6,)
        Constant error, in the frame's axes.
    """

    name: str = "force"
    frame: str = "body"
    force: float = 0.0
    moment: float = 0.0
    bias: Any = (0.0,) * 6

    def value(self, state: State, acting: PlantForces) -> Matrix:
        """Return the wrench."""
        return ca.densify(acting.on_frame(self.frame))

    def deviations(self, machine: Machine) -> np.ndarray:
        """Return those of all six numbers."""
        return np.repeat([float(self.force), float(self.moment)], 3)

    def disturbed(self, machine: Machine, value: Matrix, noise: Matrix) -> Matrix:
        """Add noise and bias."""
        return value + noise + ca.DM(np.asarray(self.bias, float))


@dataclass(frozen=True)
class SensorArray:
    """All sensors of a run: what they carry from one control period to the next, and read.

    The memory holds the number of periods so far and, for every sensor whose readings arrive late,
    the true values that are on their way, the oldest first.

    Attributes
    ----------
    machine : Machine
        The plant's.
    sensors : tuple of Sensor
    """

    machine: Machine
    sensors: tuple[Sensor, ...]

    def __post_init__(self) -> None:
        names = [sensor.name for sensor in self.sensors]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise SimulationError(f"two sensors are called `{twice[0]}`")

    @cached_property
    def deviations(self) -> np.ndarray:
        """Standard deviations of the noise of all sensors, one after the other."""
        parts = [sensor.deviations(self.machine) for sensor in self.sensors]
        values = np.concatenate([np.zeros(0), *parts])
        if not (np.isfinite(values).all() and (values >= 0).all()):
            raise SimulationError("deviations of sensors must be finite and not negative")
        return values

    def first_memory(self, state: State, acting: PlantForces) -> Matrix:
        """Return the memory at the first state, as if it had always been so."""
        parts = [ca.SX(1, 1)]
        for sensor in self.sensors:
            parts += [sensor.value(state, acting)] * sensor.delay
        return ca.densify(ca.vertcat(*parts))

    def read(
        self, memory: Matrix, state: State, acting: PlantForces, noise: Matrix
    ) -> tuple[dict[str, Reading], Matrix]:
        """Return what all sensors say when a control period begins, and the next memory."""
        count, at, used = memory[0], 1, 0
        readings, kept = {}, [count + 1]
        for sensor in self.sensors:
            value = sensor.value(state, acting)
            size = value.shape[0] * sensor.delay
            queue = ca.vertcat(memory[at : at + size, :], value)
            n = len(sensor.deviations(self.machine))
            reading = sensor.disturbed(
                self.machine, queue[: value.shape[0], :], noise[used : used + n, :]
            )
            kept.append(queue[value.shape[0] :, :])
            since = count - sensor.delay
            fresh = ca.logic_and(since >= 0, ca.fmod(ca.fmax(since, 0), sensor.every) < 0.5)
            readings[sensor.name] = Reading(reading, fresh)
            at, used = at + size, used + n
        return readings, ca.densify(ca.vertcat(*kept))
