"""References of all bodies of a machine: their poses, or their velocities."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca

from framefree.control.law import ControlError
from framefree.control.references.base import Matrix, Reference
from framefree.control.references.joints import JointReference
from framefree.geometry import se3
from framefree.machine import Machine
from framefree.machine.part import set_field
from framefree.motion import equations


@dataclass(frozen=True, eq=False)
class BodyPoses(Reference):
    """Poses of all bodies, as a reference of the joints places them: they always fit together.

    BODY.pose (4x4), BODY.twist (6, body-fixed) and BODY.acceleration (6, its rate) of every body.

    Parameters
    ----------
    joints : JointReference
    """

    joints: JointReference

    def __post_init__(self) -> None:
        if not isinstance(self.joints, JointReference):
            raise ControlError(
                f"BodyPoses needs a reference of joints, got {type(self.joints).__name__}"
            )
        set_field(self, "times", self.joints.times)

    @property
    def machine(self) -> Machine:
        """The machine whose bodies move."""
        return self.joints.machine

    def at(self, t: Matrix) -> dict[str, Matrix]:
        """Return all signals at time t."""
        joints = self.joints.at(t)
        motion = self._function(joints["x"], joints["v"], joints["a"])
        signals: dict[str, Matrix] = {}
        for i, body in enumerate(self.machine.bodies):
            signals[f"{body.name}.pose"] = motion[0][:, 4 * i : 4 * i + 4]
            signals[f"{body.name}.twist"] = motion[1][:, i]
            signals[f"{body.name}.acceleration"] = motion[2][:, i]
        return signals

    @cached_property
    def _function(self) -> ca.Function:
        machine = self.machine
        sizes = {"x": machine.nx, "v": machine.nv, "a": machine.nv}
        x, v, a = (ca.SX.sym(name, size) for name, size in sizes.items())
        state = equations(machine.tree).at(x, v)
        outputs = [
            ca.horzcat(*state.poses),
            ca.horzcat(*state.twists),
            ca.horzcat(*state.accelerations(a)),
        ]
        return ca.Function("bodies", [x, v, a], [ca.densify(value) for value in outputs])


@dataclass(frozen=True, eq=False)
class BodyVelocities(Reference):
    """Velocities of bodies, in world axes.

    BODY.velocity (6): velocity of the origin of the body's frame, and angular velocity; and its
    rate BODY.velocity_rate.

    Parameters
    ----------
    source : BodyPoses, or mapping of str to callable
        Poses that move at these velocities; or a function of t (casadi scalar, s) to six numbers
        for every body by name.
    times : sequence of float
        Where the functions are not smooth, s.
    """

    source: Any
    times: Any = ()

    def __post_init__(self) -> None:
        if isinstance(self.source, BodyPoses):
            set_field(self, "times", self.source.times)
            return
        if not isinstance(self.source, Mapping) or not all(map(callable, self.source.values())):
            raise ControlError("`source` of BodyVelocities must be BodyPoses, or functions by body")
        set_field(self, "times", tuple(float(time) for time in self.times))
        for name, function in self.source.items():
            if _column(function, ca.SX.sym("t")).shape != (6, 1):
                raise ControlError(f"the velocity of `{name}` must be six numbers")

    def at(self, t: Matrix) -> dict[str, Matrix]:
        """Return all signals at time t."""
        signals: dict[str, Matrix] = {}
        if isinstance(self.source, BodyPoses):
            moving = self.source.at(t)
            for body in self.source.machine.bodies:
                parts = (moving[f"{body.name}.{n}"] for n in ("pose", "twist", "acceleration"))
                signals |= _named(body.name, *_in_world(*parts))
            return signals
        for name, function in self._functions.items():
            signals |= _named(name, *function(t))
        return signals

    @cached_property
    def _functions(self) -> dict[str, ca.Function]:
        functions = {}
        for name, function in self.source.items():
            t = ca.SX.sym("t")
            value = _column(function, t)
            rate = ca.densify(ca.jacobian(value, t))
            functions[name] = ca.Function("velocity", [t], [ca.densify(value), rate])
        return functions


def _column(function: Callable[[Matrix], Any], t: Matrix) -> Matrix:
    value = function(t)
    return ca.SX(ca.vertcat(*value) if isinstance(value, list | tuple) else value)


def _named(body: str, velocity: Matrix, rate: Matrix) -> dict[str, Matrix]:
    return {f"{body}.velocity": velocity, f"{body}.velocity_rate": rate}


def _in_world(pose: Matrix, twist: Matrix, acceleration: Matrix) -> tuple[Matrix, Matrix]:
    """Return a body twist in world axes, and its rate."""
    R, w = se3.rotation(pose), twist[3:]
    rates = [R @ (acceleration[k : k + 3] + ca.cross(w, twist[k : k + 3])) for k in (0, 3)]
    return ca.vertcat(R @ twist[:3], R @ twist[3:]), ca.vertcat(*rates)
