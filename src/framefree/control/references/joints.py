"""References of all joints of a machine: x, v and a."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca

from framefree.control.law import ControlError
from framefree.control.references.base import Matrix, Reference
from framefree.control.references.checks import checked_points, checked_times, checked_vector
from framefree.control.references.path import Path, minimum_jerk, spline, velocity
from framefree.errors import FramefreeError
from framefree.machine import Machine
from framefree.machine.part import set_field
from framefree.motion.given_machine import checked_machine


class JointReference(Reference):
    """Base of references that give "x" (nx), "v" (nv) and "a" (nv) of a machine."""

    machine: Machine

    def at(self, t: Matrix) -> dict[str, Matrix]:
        """Return x, v and a at time t."""
        x, v, a = self.function(t)
        return {"x": x, "v": v, "a": a}

    @property
    def function(self) -> ca.Function:
        """From t to x, v and a."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class _Waypoints(JointReference):
    machine: Machine
    points: Any
    times: Any = ()

    def __post_init__(self) -> None:
        set_field(self, "points", checked_points(self.machine, self.points, self.name))
        set_field(self, "times", checked_times(self.times, len(self.points), self.name))

    @property
    def function(self) -> ca.Function:
        """From t to x, v and a."""
        return self._path.function

    @property
    def _path(self) -> Path:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class MinimumJerk(_Waypoints):
    """From rest to rest through configurations, each way with the least integral of squared jerk.

    Between two points x(t) = x_k (+) b(s) d with d = difference(x_k, x_(k+1)) and b the quintic of
    `smooth_step`: a straight line in plain coordinates, a turn about one axis for a ball joint, a
    screw for a free one. Acceleration is continuous. Before and after, the machine rests.

    Parameters
    ----------
    machine : Machine
        Of the law that follows.
    points : (n, nx)
        Configurations.
    times : (n,)
        When they are reached, s; increasing.

    Examples
    --------
    >>> import framefree as ff
    >>> arm = ff.gallery.MACHINES["double-pendulum"]()
    >>> path = MinimumJerk(arm, points=[[0, 0], [1, 2]], times=[0, 1])
    >>> path.sample([0.0, 0.5, 1.0])["x"].round(6).tolist()
    [[0.0, 0.0], [0.5, 1.0], [1.0, 2.0]]
    """

    @cached_property
    def _path(self) -> Path:
        kinds = [joint.kind for joint in self.machine.joints]
        return minimum_jerk(kinds, self.times, self.points)


@dataclass(frozen=True, eq=False)
class JointSpline(_Waypoints):
    """Smoothly through configurations, at rest only at the first and the last.

    Position, velocity and acceleration are continuous everywhere, the rest before and after
    included. For plain coordinates it is the cubic spline with its first and last piece raised to
    degree five; see `framefree.control.references.path.spline` for rotations.

    Parameters
    ----------
    machine : Machine
        Of the law that follows.
    points : (n, nx)
        Configurations.
    times : (n,)
        When they are passed, s; increasing.
    """

    @cached_property
    def _path(self) -> Path:
        return spline([joint.kind for joint in self.machine.joints], self.times, self.points)


@dataclass(frozen=True, eq=False)
class Hold(JointReference):
    """One configuration x (nx) of a machine for all times."""

    machine: Machine
    x: Any

    def __post_init__(self) -> None:
        checked_machine(self.machine, ControlError, "`machine` of Hold")
        x = checked_vector(self.x, self.machine.nx, f"`x` of {self.name}")
        set_field(self, "x", checked_points(self.machine, [x], self.name)[0])

    def at(self, t: Matrix) -> dict[str, Matrix]:
        """Return x, and zero velocity and acceleration."""
        zero = ca.DM.zeros(self.machine.nv)
        return {"x": ca.DM(self.x), "v": zero, "a": zero}


@dataclass(frozen=True, eq=False)
class JointPath(JointReference):
    """Any path of the joints that can be written down; its derivatives follow from it.

    Parameters
    ----------
    machine : Machine
        Of the law that follows.
    path : callable
        From t (casadi scalar, s) to x (nx), a casadi column or a list of scalars.
    times : sequence of float
        Where the path is not smooth, s.
    """

    machine: Machine
    path: Callable[[Matrix], Any]
    times: Any = ()

    def __post_init__(self) -> None:
        set_field(self, "times", tuple(float(time) for time in self.times))
        x = self.function(0.0)[0].full().ravel()
        try:
            self.machine.validate(x)
        except FramefreeError as error:
            raise ControlError(f"`path` of {self.name} at t = 0: {error}") from None

    @cached_property
    def function(self) -> ca.Function:  # type: ignore[override]
        """From t to x, v and a."""
        machine, t = self.machine, ca.SX.sym("t")
        x = self.path(t)
        x = ca.densify(ca.SX(ca.vertcat(*x) if isinstance(x, list | tuple) else x))
        if x.shape != (machine.nx, 1):
            raise ControlError(
                f"`path` of {self.name} must give {machine.nx} coordinates, got shape {x.shape}"
            )
        rate = ca.jacobian(x, t)
        parts = [
            velocity(joint.kind, x[machine.x_slice[joint.name]], rate[machine.x_slice[joint.name]])
            for joint in machine.joints
        ]
        v = ca.densify(ca.vertcat(ca.SX(0, 1), *parts))
        return ca.Function("path", [t], [x, v, ca.densify(ca.jacobian(v, t))])
