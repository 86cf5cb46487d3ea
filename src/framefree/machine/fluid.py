"""A fluid around the machine: buoyancy, added mass, drag and lift, and a uniform current.

Every wrench here stands on the left of M a + c + ... = B u, in the axes and at the origin of the
immersed frame. R is that frame's rotation in the world, xi its body twist (linear part first).
"""

from dataclasses import dataclass
from typing import Any

import casadi

from framefree.machine.immersed import InFluid
from framefree.machine.part import Part, set_field
from framefree.machine.problems import MachineError
from framefree.machine.values import constant, is_symbolic, numbers, scalar


@dataclass(frozen=True, eq=False)
class Fluid(Part):
    """A fluid at rest or in uniform motion, and the bodies immersed in it.

    Parameters
    ----------
    immersed : sequence of Immersed, ImmersedBox and ImmersedEllipsoid
    density : float
        kg/m^3; default fresh water.
    current : (3,)
        Velocity of the fluid in world axes, m/s, constant in time: current or wind.
    viscosity : float
        Pa s, for boxes and ellipsoids; 1e-3 is water, 1.8e-5 air.
    """

    immersed: tuple[InFluid, ...]
    density: Any = 1000.0
    current: Any = (0.0, 0.0, 0.0)
    viscosity: Any = 0.0

    def __post_init__(self) -> None:
        set_field(self, "immersed", tuple(self.immersed))
        for item in self.immersed:
            if not isinstance(item, InFluid):
                raise MachineError(
                    "`immersed` must hold Immersed, ImmersedBox or ImmersedEllipsoid, "
                    f"got {type(item).__name__}"
                )
        set_field(self, "current", numbers(self.current, (3,), "`current` of the fluid"))
        for name in ("density", "viscosity"):
            value = scalar(getattr(self, name), f"`{name}` of the fluid")
            set_field(self, name, value)
            if not is_symbolic(value) and value < 0:
                raise MachineError(f"`{name}` of the fluid must not be negative, got {value}")

    def relative_twist(self, R: Any, xi: Any) -> Any:
        """Return xi - (R^T current, 0) (6), the twist relative to the fluid."""
        return casadi.vertcat(xi[:3] - R.T @ constant(self.current), xi[3:])

    def buoyancy(self, body: InFluid, R: Any, gravity: Any) -> Any:
        """Return the wrench (6) of buoyancy: density volume g at the center of buoyancy, upwards.

        On the left, hence (R^T g, center x R^T g) density volume.
        """
        push = (self.density * body.volume) * (R.T @ constant(gravity))
        return casadi.vertcat(push, casadi.cross(constant(body.center), push))

    def buoyancy_potential(self, body: InFluid, G: Any, gravity: Any) -> Any:
        """Return density volume g . (position of the center of buoyancy), J, at pose G."""
        center = G[:3, :3] @ constant(body.center) + G[:3, 3]
        return (self.density * body.volume) * casadi.dot(constant(gravity), center)

    def added_mass_bias(self, body: InFluid, R: Any, xi: Any) -> Any:
        """Return what added mass gives beyond M_A dxi/dt (6).

        M_A (w x R^T current, 0) + Gam(xi_rel) xi_rel, from d(xi_rel)/dt = dxi/dt + (w x R^T
        current, 0).
        """
        relative = self.relative_twist(R, xi)
        swing = casadi.cross(xi[3:], R.T @ constant(self.current))
        transport = constant(body.added_mass) @ casadi.vertcat(swing, casadi.DM.zeros(3))
        return transport + body.coriolis(relative) @ relative
