"""Short runs whose parts are exported in tests."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import casadi as ca
import numpy as np

from framefree.control import ComputedTorque, LimitedTaskControl
from framefree.control.estimation import EncoderFilter, ForceObserver
from framefree.control.law import Command, Law
from framefree.control.references.base import Reference
from framefree.control.tasks import JointControl
from framefree.gallery import MACHINES
from framefree.geometry import Moments
from framefree.machine import Body, Joint, Machine, Prismatic, Revolute
from framefree.machine.actuators import motors
from framefree.simulate import Encoders, simulate

ROD = Moments.of_body(1.0, (0, 0, -0.25), np.diag([0.03, 0.02, 0.01]))


@cache
def arm():
    """Two hanging rods with motors."""
    joints = [
        Joint("shoulder", Revolute("x"), "world", "upper"),
        Joint("elbow", Revolute("y"), "upper", "lower", (0, 0, -0.5)),
    ]
    machine = Machine([Body("upper", ROD), Body("lower", ROD)], joints, name="arm")
    return machine.attach(*motors(machine.joints))


@cache
def cart():
    """Two carts on rails: linear, without an elementary function."""
    body = Moments.of_body(2.0, (0, 0, 0), np.eye(3))
    joints = [
        Joint("rail", Prismatic("x"), "world", "first"),
        Joint("second_rail", Prismatic("x"), "first", "second"),
    ]
    machine = Machine([Body("first", body), Body("second", body)], joints, gravity=(0, 0, 0))
    return machine.attach(*motors(machine.joints))


@dataclass(frozen=True)
class Swing(Reference):
    """Both joints swing."""

    def at(self, t):
        size, rate = ca.DM([0.4, 0.3]), ca.DM([1.1, 1.7])
        return {
            "x": size * ca.sin(rate * t),
            "v": size * rate * ca.cos(rate * t),
            "a": -size * rate**2 * ca.sin(rate * t),
        }


@dataclass(frozen=True)
class Linear(Law):
    """u = -K (x, v) - integral, as a linear-quadratic regulator with an integral has it."""

    machine: Machine
    gains: tuple = ((3.1, 0.7, 1.9, 0.2), (0.4, 2.3, 0.1, 1.3))
    units: ClassVar[Mapping[str, str]] = {"V": "J"}

    @property
    def memory(self):
        return np.array([0.01, -0.02])

    def control(self, t, x, v, reference, memory):
        u = -ca.DM(self.gains) @ ca.vertcat(x, v) - 0.3 * memory
        return Command(u, {"V": ca.sumsqr(v), "matrix": x @ v.T}, rate=x)


@cache
def linear_run():
    return simulate(
        cart(), Linear(cart()), x0=[0.3, -0.2], duration=1.0, dt=0.01, control_dt=0.01,
        progress=False,
    )  # fmt: skip


@cache
def arm_run(duration=1.0):
    """Sensors, estimator, observer, lag, delay and prediction all at once."""
    machine = arm()
    law = ComputedTorque(machine, stiffness=60.0, damping=16.0)
    return simulate(
        machine, law, Swing(), duration=duration, dt=2e-3, control_dt=4e-3, lag=0.01, delay=1,
        predict=True, sensors=Encoders(deviation=1e-5), observer=ForceObserver(machine, 5.0),
        estimator=EncoderFilter(machine, 150.0), seed=3, progress=False,
    )  # fmt: skip


@cache
def limited_run():
    """A law with a solver in it."""
    machine = arm()
    law = LimitedTaskControl(machine, [[JointControl(machine, np.full(2, 0.3), Kp=50.0)]])
    return simulate(machine, law, duration=0.1, dt=1e-3, control_dt=1e-3, progress=False)


@cache
def top_run(duration=0.5):
    machine = MACHINES["heavy-top"]()
    v0 = np.zeros(machine.nv)
    v0[-1] = 30.0
    x0 = machine.integrate(machine.neutral(), 0.3 * np.eye(machine.nv)[0])
    return simulate(machine, x0=x0, v0=v0, duration=duration, dt=1e-3, progress=False)
