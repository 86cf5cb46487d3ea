"""A spring and damper between two points, with a natural length: what some call a telescope.

With d the way from point a to point b and a length that is smooth where the points meet,

    L = sqrt(|d|^2 + w^2),    V = k (L - L0)^2 / 2,    f = k (L - L0) + c dL/dt

the force on point b is -f d/L. At zero length the direction is undefined: within the width w the
force fades to zero there, which is an unstable equilibrium for L0 > 0, and V stays exactly the
energy of what acts. Beyond it L exceeds |d| by w^2 / (2 |d|).
"""

from dataclasses import dataclass
from typing import Any

import casadi

from framefree.geometry import se3
from framefree.machine.pair_force import PairForce
from framefree.machine.part import checked_name, set_field
from framefree.machine.problems import MachineError
from framefree.machine.values import constant, is_symbolic, scalar, vector


@dataclass(frozen=True, eq=False)
class PointSpring(PairForce):
    """A spring along the line between two points, each on a body or on the world.

    Parameters
    ----------
    name, frame_a, frame_b : str
    stiffness : number
        k, N/m.
    length : number
        Natural length L0, m.
    damping : number
        c, N s/m, against changes of the length.
    point_a, point_b : (3,)
        In the frames, m; default their origins.
    width : number
        w, m: below about this distance of the points the force fades.
    """

    name: str
    frame_a: str
    frame_b: str
    stiffness: Any
    length: Any = 0.0
    damping: Any = 0.0
    point_a: Any = (0.0, 0.0, 0.0)
    point_b: Any = (0.0, 0.0, 0.0)
    width: Any = 1e-6

    def __post_init__(self) -> None:
        checked_name(self.name, "a point spring")
        for field in ("stiffness", "length", "damping", "width"):
            what = f"`{field}` of point spring `{self.name}`"
            set_field(self, field, scalar(getattr(self, field), what))
            value = getattr(self, field)
            if not is_symbolic(value) and (value < 0 or (field == "width" and value == 0)):
                least = "positive" if field == "width" else "zero or more"
                raise MachineError(f"{what} must be {least}, got {value:g}")
        for field in ("point_a", "point_b"):
            what = f"`{field}` of point spring `{self.name}`"
            set_field(self, field, vector(getattr(self, field), what))

    def wrench_at(self, pose: Any, twist: Any, time: Any) -> Any:
        """Return the force on point b and its moment about the origin of frame b (6)."""
        d, at = self._way(pose), constant(self.point_b)
        length = self._length(d)
        tension = self.stiffness * (length - self.length) + self.damping * self._rate(d, twist)
        force = -tension / length * d
        return casadi.vertcat(force, casadi.cross(at, force))

    @property
    def stores(self) -> bool:
        """True."""
        return True

    def energy_at(self, pose: Any, time: Any) -> Any:
        """Return k (L - L0)^2 / 2, J."""
        return self.stiffness * (self._length(self._way(pose)) - self.length) ** 2 / 2

    def dissipation_at(self, pose: Any, twist: Any, time: Any) -> Any:
        """Return c (dL/dt)^2, W."""
        return self.damping * self._rate(self._way(pose), twist) ** 2

    def records(self, pose: Any, twist: Any, time: Any) -> dict[str, tuple[Any, str]]:
        """Return the length and its rate."""
        d = self._way(pose)
        return {"length": (self._length(d), "m"), "rate": (self._rate(d, twist), "m/s")}

    def _way(self, pose: Any) -> Any:
        """Return d in the axes of frame b."""
        apart = se3.position(pose) - constant(self.point_a)
        return se3.rotation(pose).T @ apart + constant(self.point_b)

    def _length(self, d: Any) -> Any:
        return casadi.sqrt(casadi.sumsqr(d) + self.width**2)

    def _rate(self, d: Any, twist: Any) -> Any:
        velocity = twist[:3] + casadi.cross(twist[3:], constant(self.point_b))
        return casadi.dot(d, velocity) / self._length(d)
