"""Loops close a chain of bodies by a constraint between two frames.

For each kind, with G = G_ab (frame b seen from frame a) and xi_ab the twist of b relative to a in
b's axes:

- ``residual(G)`` (k) is zero exactly where the loop is closed;
- ``jacobian(G)`` (k x 6) is its exact rate, d(residual)/dt = jacobian xi_ab;
- ``blocked(G)`` N (6 x k) spans the blocked directions, N^T xi_ab = 0; where the loop is closed,
  jacobian = N^T.
"""

from dataclasses import dataclass
from typing import Any

import casadi
import numpy as np

from framefree.geometry import se3, so3
from framefree.machine.part import Part, checked_name, set_field
from framefree.machine.problems import MachineError
from framefree.machine.values import constant_pose, is_symbolic, pose, scalar, unit_axis

KINDS = ("weld", "ball", "hinge", "slider", "distance")
_SIZES = {"weld": 6, "ball": 3, "hinge": 5, "slider": 5, "distance": 1}
TOLERANCE = 1e-10
"""Largest gap, m or rad, of a loop that counts as closed, unless it says otherwise."""

MOST = 1e-3
"""Largest tolerance of a loop: beyond it is another mechanism."""

_NEEDS = {"hinge": "axis", "slider": "axis", "distance": "length"}


@dataclass(frozen=True, eq=False)
class Loop(Part):
    """Closes a chain between two frames, each on a body or on the world.

    Parameters
    ----------
    name : str
    kind : "weld", "ball", "hinge", "slider" or "distance"
        weld: the frames keep their relative pose; ball: their origins coincide; hinge: and they
        turn about one axis only; slider: they slide along one axis without turning; distance:
        their origins keep a distance.
    frame_a, frame_b : str
    axis : three numbers or "x", "y", "z", ...
        Axis of a hinge or slider, the same in both frames.
    length : float
        Length of a distance loop, m, positive.
    rest : pose
        G_ab that counts as closed, for weld, hinge and slider; default the identity. For a ball its
        position is where b's origin sits in a.
    tolerance : float
        Largest gap, m or rad, of a loop that counts as closed where it cannot be smaller, as in a
        planar linkage whose axes are not quite parallel: the loop's numbers are rounded. Readers
        take it from the digits of a file.
    """

    name: str
    kind: str
    frame_a: str
    frame_b: str
    axis: Any = None
    length: Any = None
    rest: Any = None
    tolerance: float = TOLERANCE

    frame_fields = ("frame_a", "frame_b")

    def __post_init__(self) -> None:
        checked_name(self.name, "a loop")
        if self.kind not in KINDS:
            raise MachineError(
                f"the kind of loop `{self.name}` must be one of {', '.join(KINDS)}, got "
                f"{self.kind!r}"
            )
        set_field(self, "rest", pose(self.rest, f"the rest pose of loop `{self.name}`"))
        for field in ("axis", "length"):
            self._check_presence(field)
        if not 0 < self.tolerance <= MOST:
            raise MachineError(
                f"the tolerance of loop `{self.name}` must be positive and at most {MOST:g}, got "
                f"{self.tolerance}"
            )
        if self.kind == "distance":
            set_field(self, "length", scalar(self.length, f"the length of loop `{self.name}`"))
            if not is_symbolic(self.length) and self.length <= 0:
                raise MachineError(
                    f"the length of loop `{self.name}` must be positive, got {self.length}; "
                    'for zero distance use kind "ball"'
                )
        elif self.axis is not None:
            set_field(self, "axis", unit_axis(self.axis, f"the axis of loop `{self.name}`"))

    @property
    def size(self) -> int:
        """Number of constraint rows."""
        return _SIZES[self.kind]

    def residual(self, G: Any) -> Any:
        """Return what is left to close (size), m and rad; zero where closed."""
        E = self._error(G)
        R, p = se3.rotation(E), se3.position(E)
        if self.kind == "weld":
            return casadi.vertcat(R.T @ p, so3.log(R))
        if self.kind == "ball":
            return R.T @ p
        if self.kind == "hinge":
            return casadi.vertcat(R.T @ p, self._tilt(R))
        if self.kind == "slider":
            return casadi.vertcat(self._across.T @ p, so3.log(R))
        return casadi.sqrt(casadi.sumsqr(p)) - self.length

    def jacobian(self, G: Any) -> Any:
        """Return the rate of the residual per relative twist (size x 6)."""
        E = self._error(G)
        R, p = se3.rotation(E), se3.position(E)
        zero = casadi.DM.zeros
        point = casadi.horzcat(casadi.DM(np.eye(3)), so3.wed(R.T @ p))
        if self.kind == "ball":
            return point
        if self.kind == "hinge":
            return casadi.vertcat(point, casadi.horzcat(zero(2, 3), self._tilt_rate(R)))
        if self.kind == "distance":
            return casadi.horzcat((R.T @ p).T / casadi.sqrt(casadi.sumsqr(p)), zero(1, 3))
        turn = casadi.horzcat(zero(3, 3), so3.right_jacobian_inverse(so3.log(R)))
        if self.kind == "weld":
            return casadi.vertcat(point, turn)
        return casadi.vertcat(casadi.horzcat(self._across.T @ R, zero(2, 3)), turn)

    def blocked(self, G: Any) -> Any:
        """Return the blocked directions N (6 x size), b's axes; constant except for a distance."""
        zero, one = casadi.DM.zeros, casadi.DM(np.eye(3))
        if self.kind == "weld":
            return casadi.DM(np.eye(6))
        if self.kind == "ball":
            return casadi.vertcat(one, zero(3, 3))
        if self.kind == "hinge":
            return casadi.diagcat(one, self._across)
        if self.kind == "slider":
            return casadi.diagcat(self._across, one)
        return self.jacobian(G).T

    @property
    def _across(self) -> casadi.DM:
        """Two unit vectors across the axis (3 x 2)."""
        return constant_pose(across(self.axis))

    def _error(self, G: Any) -> Any:
        """Pose of b seen from where it belongs; a distance is measured from a itself."""
        if self.kind == "distance":
            return G
        return se3.compose(se3.inverse(constant_pose(self.rest)), G)

    def _tilt(self, R: Any) -> Any:
        """Tilt of the axis (2), 2 tan(angle / 2): not zero when the axes are opposed."""
        a = constant_pose(self.axis)
        b = R.T @ a
        return self._across.T @ casadi.cross(b, a) * (2 / casadi.fmax(1 + casadi.dot(a, b), 1e-9))

    def _tilt_rate(self, R: Any) -> Any:
        """Rate of `_tilt` per angular velocity (2 x 3), from d(b)/dt = b x w."""
        a = constant_pose(self.axis)
        b = R.T @ a
        scale = 1 / casadi.fmax(1 + casadi.dot(a, b), 1e-9)
        b_rate = so3.wed(b)
        rate = -so3.wed(a) @ b_rate - scale * casadi.cross(b, a) @ (a.T @ b_rate)
        return (2 * scale) * (self._across.T @ rate)

    def _check_presence(self, field: str) -> None:
        present = getattr(self, field) is not None
        needed = _NEEDS.get(self.kind) == field
        if needed and not present:
            raise MachineError(f"loop `{self.name}` of kind {self.kind} needs `{field}`")
        if present and not needed:
            raise MachineError(f"loop `{self.name}` of kind {self.kind} has no `{field}`")


def across(axis: np.ndarray) -> np.ndarray:
    """Return two unit vectors (3 x 2) that make a right-handed basis with the axis as third."""
    first = np.zeros(3)
    first[int(np.argmin(np.abs(axis)))] = 1.0
    second = np.cross(axis, first)
    second /= np.linalg.norm(second)
    return np.column_stack([np.cross(second, axis), second])
