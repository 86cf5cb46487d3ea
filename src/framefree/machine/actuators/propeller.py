"""Propellers: thrust along an axis with its reaction torque."""

from dataclasses import dataclass
from typing import Any

import casadi
import numpy as np

from framefree.machine.actuators.base import FrameActuator
from framefree.machine.part import set_field
from framefree.machine.problems import MachineError
from framefree.machine.values import constant, scalar, unit_axis


@dataclass(frozen=True, eq=False)
class Propeller(FrameActuator):
    """A propeller whose input is its thrust, N.

    At thrust u the frame feels the force u axis and the moment -spin torque_ratio u axis: the air
    turns back what turns counter-clockwise (spin +1, seen against the axis).

    Parameters
    ----------
    name, frame : str
        The propeller sits at the frame's origin.
    axis : three numbers or "x", "y", "z", ...
        Direction of thrust.
    torque_ratio : float
        Drag torque per thrust, m; not negative.
    spin : +1 or -1
        +1 turns counter-clockwise about `axis`, -1 clockwise.
    lower, upper : float
        Limits of the thrust; default no reverse thrust.
    """

    name: str
    frame: str
    axis: Any = "z"
    torque_ratio: Any = 0.0
    spin: int = 1
    lower: Any = 0.0
    upper: Any = np.inf

    def __post_init__(self) -> None:
        self._check_name_and_limits()
        _store_axis_and_ratio(self)

    @property
    def columns(self) -> Any:
        """Wrench per newton (6 x 1)."""
        axis = constant(self.axis)
        return casadi.vertcat(axis, -self.spin * self.torque_ratio * axis)


@dataclass(frozen=True, eq=False)
class TiltingPropeller(FrameActuator):
    """A propeller tilted by a fast servo: its inputs are the two components of its thrust.

    Tilting by the angle t turns the thrust direction about `tilt_axis`. The inputs

        u = (F sin t, F cos t)

    enter linearly. Limits on F and t make a set that is not convex; the polytope is the inscribed
    one with F cos t >= force[0] and the arc F = force[1] replaced by `chords` chords. A tilt with
    dynamics of its own is a joint instead, with a `Propeller` on the tilting body.

    Parameters
    ----------
    name, frame : str
    axis, tilt_axis : three numbers or "x", "y", "z", ...
        Direction of thrust at zero tilt, and the axis across it about which it tilts.
    torque_ratio, spin :
        As for `Propeller`; the torque turns with the thrust.
    force : (2,)
        Smallest and largest thrust, N; infinite where there is no limit.
    tilt : (2,)
        Smallest and largest tilt, rad, within 90 degrees.
    chords : int
        Sides that replace the arc of largest thrust.
    """

    name: str
    frame: str
    axis: Any = "z"
    tilt_axis: Any = "x"
    torque_ratio: Any = 0.0
    spin: int = 1
    force: Any = (0.0, np.inf)
    tilt: Any = (-np.pi / 4, np.pi / 4)
    chords: int = 3

    def __post_init__(self) -> None:
        _store_axis_and_ratio(self)
        what = f"the tilt axis of actuator `{self.name}`"
        set_field(self, "tilt_axis", unit_axis(self.tilt_axis, what))
        if abs(self.tilt_axis @ self.axis) > 1e-9:
            raise MachineError(f"{what} must be across its thrust axis")
        low, high = (float(value) for value in self.force)
        left, right = (float(value) for value in self.tilt)
        set_field(self, "force", (low, high))
        set_field(self, "tilt", (left, right))
        if not 0 <= low < high:
            raise MachineError(
                f"the force range of actuator `{self.name}` must satisfy 0 <= lower < upper, "
                f"got {(low, high)}"
            )
        if not -np.pi / 2 < left < right < np.pi / 2:
            raise MachineError(
                f"the tilt range of actuator `{self.name}` must be increasing and within 90 "
                "degrees, "
                f"got {(left, right)}"
            )
        if self.chords < 1:
            raise MachineError(
                f"actuator `{self.name}` needs at least one chord, got {self.chords}"
            )
        self._check_name_and_limits()

    @property
    def nu(self) -> int:
        """Two: F sin t and F cos t."""
        return 2

    @property
    def u_names(self) -> tuple[str, ...]:
        """Names of the two components."""
        return (f"{self.name}.sine", f"{self.name}.cosine")

    @property
    def columns(self) -> Any:
        """Wrenches per newton across and along the axis (6 x 2)."""
        directions = constant(np.column_stack([np.cross(self.tilt_axis, self.axis), self.axis]))
        return casadi.vertcat(directions, -self.spin * self.torque_ratio * directions)

    @property
    def lower(self) -> np.ndarray:
        """Lower bounds of the inputs: those of the polytope."""
        return self._bounds()[0]

    @property
    def upper(self) -> np.ndarray:
        """Upper bounds of the inputs: those of the polytope."""
        return self._bounds()[1]

    @property
    def polytope(self) -> tuple[np.ndarray, np.ndarray]:
        """Half-planes A u <= b: least thrust, tilt range, and chords of the largest thrust."""
        low, high = self.force
        left, right = self.tilt
        rows = [(0.0, -1.0), (np.cos(right), -np.sin(right)), (-np.cos(left), np.sin(left))]
        sides = [-low, 0.0, 0.0]
        if np.isfinite(high):
            half = (right - left) / (2 * self.chords)
            middles = left + half * (2 * np.arange(self.chords) + 1)
            rows += [(np.sin(t), np.cos(t)) for t in middles]
            sides += [high * np.cos(half)] * self.chords
        return np.array(rows), np.array(sides)

    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        low, high = self.force
        left, right = self.tilt
        sines = np.array([min(0.0, np.sin(left)), max(0.0, np.sin(right))])
        # inf * 0 is not a number; a side without tilt has no thrust.
        reach = np.where(
            sines == 0.0, 0.0, sines * high if np.isfinite(high) else np.copysign(np.inf, sines)
        )
        return np.array([reach[0], low]), np.array([reach[1], high])

    def _check_name_and_limits(self) -> None:
        """Limits follow from `force` and `tilt`."""


@dataclass(frozen=True, eq=False)
class SpinningPropeller(FrameActuator):
    """The air's wrench on a propeller that is a body of its own, turned by a joint.

    It has no input: drive the joint with a `JointForce`. At joint speed w (rad/s, about `axis`) the
    frame feels the force spin thrust_coefficient w |w| axis and the moment
    -torque_coefficient w |w| axis.

    Parameters
    ----------
    name, frame, joint : str
        The frame is on the propeller, its origin on the axis; the joint has one velocity.
    axis : three numbers or "x", "y", "z", ...
        Axis of the joint, in the frame, pointing along the thrust.
    thrust_coefficient, torque_coefficient : float
        N s^2/rad^2 and Nm s^2/rad^2.
    spin : +1 or -1
        Sign of the joint speed that gives positive thrust.
    """

    name: str
    frame: str
    joint: str
    axis: Any = "z"
    thrust_coefficient: Any = 0.0
    torque_coefficient: Any = 0.0
    spin: int = 1

    frame_fields = ("frame",)
    joint_fields = ("joint",)
    lower = np.zeros(0)
    upper = np.zeros(0)

    def __post_init__(self) -> None:
        _store_axis(self)
        for field in ("thrust_coefficient", "torque_coefficient"):
            value = scalar(getattr(self, field), f"`{field}` of propeller `{self.name}`")
            set_field(self, field, value)

    @property
    def nu(self) -> int:
        """Zero: a propeller of this kind is driven by its joint."""
        return 0

    @property
    def u_names(self) -> tuple[str, ...]:
        """No inputs."""
        return ()

    @property
    def columns(self) -> Any:
        """Empty (6 x 0)."""
        return casadi.DM.zeros(6, 0)

    @property
    def sensed_joint(self) -> str | None:
        """The joint that turns the propeller."""
        return self.joint

    def bias(self, x: Any, v: Any) -> Any:
        """Return the wrench of the air (6) at joint speed v."""
        axis, square = constant(self.axis), v[0] * casadi.fabs(v[0])
        return casadi.vertcat(
            (self.spin * self.thrust_coefficient * square) * axis,
            (-self.torque_coefficient * square) * axis,
        )


def _store_axis(propeller: Any) -> None:
    what = f"the axis of propeller `{propeller.name}`"
    set_field(propeller, "axis", unit_axis(propeller.axis, what))
    if propeller.spin not in (1, -1):
        raise MachineError(
            f"the spin of propeller `{propeller.name}` must be +1 (counter-clockwise) or -1, "
            f"got {propeller.spin!r}"
        )


def _store_axis_and_ratio(propeller: Any) -> None:
    _store_axis(propeller)
    what = f"the torque ratio of propeller `{propeller.name}`"
    set_field(propeller, "torque_ratio", scalar(propeller.torque_ratio, what))
