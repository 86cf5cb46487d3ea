"""What tests of laws share: machines with motors, and the rate of V along the closed loop."""

from dataclasses import dataclass

import casadi as ca
import numpy as np

from framefree.control.references.base import Reference
from framefree.geometry import Moments
from framefree.kernel import compile
from framefree.machine import Body, Frame, Free, Joint, Machine, Spherical
from framefree.machine.actuators import Wrench, motors
from framefree.motion import equations


def driven(machine):
    """Return the machine with a motor for every velocity."""
    return machine.attach(*motors(machine.joints))


def unlimited(machine):
    """Return the machine with drives that give whatever they are asked for."""
    for joint in machine.joints:
        machine = machine.replace(f"joint:{joint.name}", effort_limit=np.inf)
    for drive in machine.actuators:
        wide = {"lower": np.full(drive.nu, -np.inf), "upper": np.full(drive.nu, np.inf)}
        machine = machine.replace(f"actuator:{drive.name}", **wide)
    return machine


def floating():
    """Return a free base pushed by a wrench, with a ball joint on it; its center is off."""
    base = Body("base", Moments.of_body(2.0, (0.05, 0.02, -0.03), np.diag([0.1, 0.15, 0.2])))
    arm = Body("arm", Moments.of_body(0.5, (0, 0, 0.2), np.diag([0.01, 0.01, 0.02])))
    joints = (
        Joint("float", Free(), "world", "base"),
        Joint("ball", Spherical(), "base", "arm", parent_pose=(0, 0, 0.1)),
    )
    machine = Machine((base, arm), joints, (Frame("hand", "arm", (0, 0, 0.4)),), name="floating")
    return machine.attach(Wrench("thrust", "base", np.eye(6)), *motors(joints[1:]))


@dataclass(frozen=True)
class Fixed(Reference):
    """A frame held at a pose."""

    frame: str
    pose: np.ndarray

    def at(self, t):
        G = ca.SX(ca.DM(self.pose))
        rest = {f"{self.frame}.{word}": ca.SX(6, 1) for word in ("twist", "acceleration")}
        return {f"{self.frame}.pose": G, **rest}


@dataclass(frozen=True)
class Moving(Reference):
    """Joints that leave x with v and a, to second order exactly where a test looks: at t = 0."""

    machine: Machine
    x: np.ndarray
    v: np.ndarray
    a: np.ndarray

    def at(self, t):
        t = t * 1.0
        x = self.machine.integrate(ca.DM(self.x), t * ca.DM(self.v) + t * t / 2 * ca.DM(self.a))
        return {"x": x, "v": ca.DM(self.v) + t * ca.DM(self.a), "a": ca.DM(self.a)}


def closed_loop(law, reference):
    """Return the function of (t, x, v) to V, V_rate, dV/dt along the model's motion, and u."""
    machine = law.machine
    t, x, v = ca.SX.sym("t"), ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    made = law.control(t, x, v, reference.at(t), ca.SX(0, 1))
    tree = equations(machine.tree, "tree")
    force = tree.functions["input_matrix"](x) @ made.u + tree.functions["input_bias"](x, v)
    form = "constrained" if machine.closed else "tree"
    a = equations(machine, form).functions["forward"](x, v, force)
    along = ca.vertcat(1, machine.rate_matrix(x) @ v, a)
    V = made.signals["V"]
    rate = ca.jtimes(V, ca.vertcat(t, x, v), along)
    return ca.Function("closed", [t, x, v], [V, made.signals["V_rate"], rate, made.u])


def rate_gap(function, states):
    """Return the largest |dV/dt - V_rate| relative to V and both; and V_rate of all states."""
    gaps, rates = [], []
    for x, v in states:
        V, stated, rate, u = (value.full() for value in function(0.0, x, v))
        assert np.isfinite(u).all()
        assert V[0, 0] >= 0
        gaps.append(abs(stated - rate)[0, 0] / (abs(rate) + abs(stated) + V + 1e-6)[0, 0])
        rates.append(stated[0, 0])
    return max(gaps), np.array(rates)


def native(function, states):
    """Return the outputs of a function of (t, x, v) for many states, compiled."""
    x, v = (np.array(part) for part in zip(*states, strict=True))
    return compile(function)(np.zeros((len(x), 1)), x, v)
