"""A fluid around the machine: buoyancy, added mass, drag, and a uniform current.

Every wrench here stands on the left of M a + c + ... = B u, in the axes and at the origin of the
immersed frame. R is that frame's rotation in the world, xi its body twist (linear part first).
"""

from dataclasses import dataclass
from typing import Any

import casadi
import numpy as np

from framefree.geometry import se3, so3
from framefree.machine.part import Part, checked_name, set_field
from framefree.machine.problems import MachineError, Problems
from framefree.machine.values import constant, is_symbolic, numbers, scalar, symmetric


@dataclass(frozen=True, eq=False)
class Immersed(Part):
    """Buoyancy, added mass and drag of one body, expressed in one of its frames.

    Parameters
    ----------
    frame : str
        Frame or body; center, matrices and drag are in its axes, about its origin.
    volume : float
        Displaced volume, m^3.
    center : (3,)
        Center of buoyancy, m.
    added_mass : (6, 6)
        Symmetric, linear part first: kg, kg m, kg m^2. Six numbers give a diagonal.
    linear_drag : (6, 6)
        Wrench per relative twist; six numbers give a diagonal.
    quadratic_drag : (6, 6)
        Wrench per |xi_i| xi_i of the relative twist; six numbers give a diagonal.
    """

    frame: str
    volume: Any = 0.0
    center: Any = (0.0, 0.0, 0.0)
    added_mass: Any = 0.0
    linear_drag: Any = 0.0
    quadratic_drag: Any = 0.0

    frame_fields = ("frame",)

    def __post_init__(self) -> None:
        checked_name(self.frame, "the frame of an immersed body")
        problems = Problems()
        with problems.at():
            set_field(self, "volume", scalar(self.volume, self._words("volume")))
            if not is_symbolic(self.volume) and self.volume < 0:
                problems.add(f"{self._words('volume')} must not be negative, got {self.volume}")
        with problems.at():
            set_field(self, "center", numbers(self.center, (3,), self._words("center")))
        for name in ("added_mass", "linear_drag", "quadratic_drag"):
            with problems.at():
                value = _matrix6(getattr(self, name))
                check = symmetric if name == "added_mass" else _square
                set_field(self, name, check(value, 6, self._words(name)))
        problems.raise_if_any()

    @property
    def name(self) -> str:
        """The frame's name."""
        return self.frame

    def coriolis(self, xi: Any) -> Any:
        """Return Gam (6x6) of the added mass: skew, with Gam(xi) xi = -ad_xi^T M_A xi.

        Gam(xi) = 1/2 (-W(M xi) - ad_xi^T M + M ad_xi), right for every symmetric M.
        """
        M = constant(self.added_mass)
        momentum = M @ xi
        p, l = so3.wed(momentum[:3]), so3.wed(momentum[3:])
        W = casadi.blockcat([[casadi.DM.zeros(3, 3), p], [p, l]])
        ad = se3.little_adjoint(xi)
        return (M @ ad - ad.T @ M - W) / 2

    def drag(self, xi_relative: Any) -> Any:
        """Return linear and quadratic drag (6) of the twist relative to the fluid."""
        squared = casadi.fabs(xi_relative) * xi_relative
        return constant(self.linear_drag) @ xi_relative + constant(self.quadratic_drag) @ squared

    def _words(self, name: str) -> str:
        return f"`{name}` of the body immersed at `{self.frame}`"


@dataclass(frozen=True, eq=False)
class Fluid(Part):
    """A fluid at rest or in uniform motion, and the bodies immersed in it.

    Parameters
    ----------
    immersed : sequence of Immersed
    density : float
        kg/m^3; default fresh water.
    current : (3,)
        Velocity of the fluid in world axes, m/s, constant in time.
    """

    immersed: tuple[Immersed, ...]
    density: Any = 1000.0
    current: Any = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        set_field(self, "immersed", tuple(self.immersed))
        for item in self.immersed:
            if not isinstance(item, Immersed):
                raise MachineError(f"`immersed` must hold Immersed, got {type(item).__name__}")
        set_field(self, "density", scalar(self.density, "`density` of the fluid"))
        set_field(self, "current", numbers(self.current, (3,), "`current` of the fluid"))
        if not is_symbolic(self.density) and self.density < 0:
            raise MachineError(f"`density` of the fluid must not be negative, got {self.density}")

    def relative_twist(self, R: Any, xi: Any) -> Any:
        """Return xi - (R^T current, 0) (6), the twist relative to the fluid."""
        return casadi.vertcat(xi[:3] - R.T @ constant(self.current), xi[3:])

    def buoyancy(self, body: Immersed, R: Any, gravity: Any) -> Any:
        """Return the wrench (6) of buoyancy: density volume g at the center of buoyancy, upwards.

        On the left, hence (R^T g, center x R^T g) density volume.
        """
        push = (self.density * body.volume) * (R.T @ constant(gravity))
        return casadi.vertcat(push, casadi.cross(constant(body.center), push))

    def buoyancy_potential(self, body: Immersed, G: Any, gravity: Any) -> Any:
        """Return density volume g . (position of the center of buoyancy), J, at pose G."""
        center = G[:3, :3] @ constant(body.center) + G[:3, 3]
        return (self.density * body.volume) * casadi.dot(constant(gravity), center)

    def added_mass_bias(self, body: Immersed, R: Any, xi: Any) -> Any:
        """Return what added mass gives beyond M_A dxi/dt (6).

        M_A (w x R^T current, 0) + Gam(xi_rel) xi_rel, from d(xi_rel)/dt = dxi/dt + (w x R^T
        current, 0).
        """
        relative = self.relative_twist(R, xi)
        swing = casadi.cross(xi[3:], R.T @ constant(self.current))
        transport = constant(body.added_mass) @ casadi.vertcat(swing, casadi.DM.zeros(3))
        return transport + body.coriolis(relative) @ relative


def _matrix6(value: Any) -> Any:
    if is_symbolic(value):
        return value
    array = np.asarray(value, dtype=float)
    return np.diag(np.broadcast_to(array, 6)) if array.ndim < 2 else array


def _square(value: Any, size: int, what: str) -> Any:
    return numbers(value, (size, size), what)
