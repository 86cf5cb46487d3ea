"""Dampers between two frames."""

from dataclasses import dataclass
from typing import Any

from framefree.geometry.moments import Moments
from framefree.machine.part import Part, checked_name, set_field
from framefree.machine.spring import torsional_moments, warn_of_moments
from framefree.machine.values import constant, symmetric


@dataclass(frozen=True, eq=False)
class Damper(Part):
    """A viscous damper between two frames, each on a body or on the world.

    It resists the twist xi_ab of frame b relative to frame a, in b's axes, by the wrench D xi_ab:
    as if points of b moved through a viscous fluid that is fixed to a.

    Parameters
    ----------
    name, frame_a, frame_b : str
    damping : Moments or 6x6
        In frame b: Moments of point dampers (N s/m, N s, Nm s), or a symmetric 6x6 matrix, linear
        part first, for damping that differs by direction.
    """

    name: str
    frame_a: str
    frame_b: str
    damping: Any

    frame_fields = ("frame_a", "frame_b")

    def __post_init__(self) -> None:
        checked_name(self.name, "a damper")
        if isinstance(self.damping, Moments):
            warn_of_moments(self.damping, f"damper `{self.name}`")
        else:
            what = f"the damping of damper `{self.name}`"
            set_field(self, "damping", symmetric(self.damping, 6, what))

    @classmethod
    def of_points(
        cls, name: str, frame_a: str, frame_b: str, points_b: Any, damping: Any
    ) -> "Damper":
        """Reduce dampers (n), N s/m, at points of b (n, 3), m, to one."""
        return cls(name, frame_a, frame_b, Moments.of_points(points_b, damping))

    @classmethod
    def torsional(cls, name: str, frame_a: str, frame_b: str, moment: Any) -> "Damper":
        """Return a damper against rotation only, with `moment` (3, or 3x3) in Nm s/rad."""
        what = f"the moment of damper `{name}`"
        return cls(name, frame_a, frame_b, torsional_moments(moment, what))

    @property
    def matrix(self) -> Any:
        """D (6x6) in frame b, linear part first."""
        return self.damping.matrix6 if isinstance(self.damping, Moments) else self.damping

    def wrench(self, xi: Any) -> Any:
        """Return D xi_ab (6) in the axes of b; on the left of the equations, power lost is xi .

        D xi.
        """
        return constant(self.matrix) @ xi
