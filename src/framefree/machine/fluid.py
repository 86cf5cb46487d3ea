"""A fluid around the machine: buoyancy, added mass, drag and lift, in a current or a flow.

Every wrench here stands on the left of M a + c + ... = B u, in the axes and at the origin of the
immersed frame. G is that frame's pose in the world, R its rotation, xi its body twist (linear part
first). The fluid at the frame moves with v and turns with w (world axes), so that the frame's twist
relative to it is

    xi_rel = xi - (R^T v, R^T w)

Seen from the fluid, the added mass M_A obeys Kirchhoff's equations with xi_rel; what the fluid's
own acceleration Dv/Dt takes acts on a body as a pressure, density volume Dv/Dt at its center of
buoyancy. For a sphere in a fluid that rotates as a whole these two are the forces of [Auton1988].
"""

from dataclasses import dataclass, replace
from typing import Any

import casadi

from framefree.geometry import se3
from framefree.machine.flow import Flow, FlowMotion
from framefree.machine.immersed import InFluid
from framefree.machine.part import Part, set_field
from framefree.machine.problems import MachineError
from framefree.machine.values import constant, is_symbolic, scalar, vector


@dataclass(frozen=True, eq=False)
class Fluid(Part):
    """A fluid at rest or in motion, and the bodies immersed in it.

    Parameters
    ----------
    immersed : sequence of Immersed, ImmersedBox and ImmersedEllipsoid
    density : float
        kg/m^3; default fresh water.
    current : (3,)
        Velocity of the fluid in world axes, m/s, constant in time: current or wind.
    viscosity : float
        Pa s, for boxes and ellipsoids; 1e-3 is water, 1.8e-5 air.
    flow : Flow or callable, optional
        A velocity field on top of the current, such as ``Flow.rotating((0, 0, 2))``, or a function
        of `position` and `time`.
    """

    immersed: tuple[InFluid, ...]
    density: Any = 1000.0
    current: Any = (0.0, 0.0, 0.0)
    viscosity: Any = 0.0
    flow: Any = None

    def __post_init__(self) -> None:
        set_field(self, "immersed", tuple(self.immersed))
        for item in self.immersed:
            if not isinstance(item, InFluid):
                raise MachineError(
                    "`immersed` must hold Immersed, ImmersedBox or ImmersedEllipsoid, "
                    f"got {type(item).__name__}"
                )
        if self.flow is not None and not isinstance(self.flow, Flow):
            set_field(self, "flow", Flow(self.flow))
        set_field(self, "current", vector(self.current, "`current` of the fluid"))
        for name in ("density", "viscosity"):
            value = scalar(getattr(self, name), f"`{name}` of the fluid")
            set_field(self, name, value)
            if not is_symbolic(value) and value < 0:
                raise MachineError(f"`{name}` of the fluid must not be negative, got {value}")

    @property
    def timed(self) -> bool:
        """Whether the flow changes by itself."""
        return self.flow is not None and self.flow.timed

    def held_at(self, time: float) -> "Fluid":
        """Return the fluid with its flow as it is at one moment."""
        return replace(self, flow=self.flow.held_at(time)) if self.timed else self

    def relative_twist(self, G: Any, xi: Any, time: Any = 0.0) -> Any:
        """Return the twist (6) relative to the fluid: xi - (R^T v, R^T w)."""
        R = se3.rotation(G)
        if self.flow is None:
            return casadi.vertcat(xi[:3] - R.T @ constant(self.current), xi[3:])
        flow = self.flow.at(se3.position(G), time)
        v = constant(self.current) + flow.v
        return casadi.vertcat(xi[:3] - R.T @ v, xi[3:] - R.T @ flow.w)

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

    def added_mass_bias(self, body: InFluid, G: Any, xi: Any, time: Any = 0.0) -> Any:
        """Return what added mass and the fluid's pressure give beyond M_A dxi/dt (6).

        M_A d(xi_rel - xi)/dt + Gam(xi_rel) xi_rel, with d/dt (R^T v) = R^T dv/dt - w x R^T v along
        the body's way, less the push of a fluid that accelerates.
        """
        R, relative = se3.rotation(G), self.relative_twist(G, xi, time)
        turn = xi[3:]
        if self.flow is None:
            swing = casadi.cross(turn, R.T @ constant(self.current))
            moved = casadi.vertcat(swing, casadi.DM.zeros(3))
            return constant(body.added_mass) @ moved + body.coriolis(relative) @ relative
        flow = self._moving(se3.position(G), time)
        v_rate, w_rate = flow.along(R @ xi[:3])
        moved = casadi.vertcat(
            casadi.cross(turn, R.T @ flow.v) - R.T @ v_rate,
            casadi.cross(turn, R.T @ flow.w) - R.T @ w_rate,
        )
        center = R @ constant(body.center) + se3.position(G)
        push = R.T @ self._moving(center, time).acceleration * (self.density * body.volume)
        pressure = casadi.vertcat(push, casadi.cross(constant(body.center), push))
        return constant(body.added_mass) @ moved + body.coriolis(relative) @ relative - pressure

    def _moving(self, position: Any, time: Any) -> FlowMotion:
        """Return the motion of the flow with the current."""
        flow = self.flow.at(position, time)
        return flow._replace(v=constant(self.current) + flow.v)
