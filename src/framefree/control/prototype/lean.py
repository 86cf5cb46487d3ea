"""A reference that leans against a force which no input can match.

A craft with all its thrust along one axis cannot push against a force across it: it must lean until
thrust and force together are what its motion takes. For a turn eps of the reference about the
origin of its free body, the force that would lack at no error is

    rho(eps) = P (M a_R + b(x_R, v_R) - f_unknown)   at the turned reference,

P the part that no input gives, in the metric of M^-1. Newton's method with the least turn makes it
zero: position and velocity of the origin stay, and the twist is turned into the new axes. How the
lean changes with time is not counted: it is as slow as the estimate of the force and the change of
thrust.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca

from framefree.geometry import quaternion
from framefree.machine import Free, Machine
from framefree.motion import Equations
from framefree.motion.actuation import input_bias, input_matrix
from framefree.motion.spatial import solve_symmetric

Matrix = Any

STEPS = 2
"""Newton steps: leans of some degrees are then exact to 1e-6 of them."""
LEAST = 1e-4
"""Share of the largest slope below which a turn has no effect, such as one about the thrust.

Larger than the rounding of floats, or the turn about the thrust is noise in single precision."""


@dataclass(frozen=True, eq=False)
class Lean:
    """Turns a reference against an unknown force, at most about the origin of a free body.

    Attributes
    ----------
    equations : Equations
        Of the law's machine, in joint coordinates.
    """

    equations: Equations

    @property
    def machine(self) -> Machine:
        """The law's machine."""
        return self.equations.machine

    @cached_property
    def joint(self) -> Any:
        """The free joint to the world, if there is one."""
        free = [j for j in self.machine.joints if isinstance(j.kind, Free) and j.parent == "world"]
        return free[0] if len(free) == 1 else None

    def __call__(
        self, reference: Mapping[str, Matrix], force: Matrix, t: Matrix = 0
    ) -> dict[str, Matrix]:
        """Return the reference with x, v and a turned against a force (nv) on the velocities."""
        motion = [reference[name] for name in ("x", "v", "a")]
        parameters = self._parameters
        eps = ca.SX(3, 1)
        for _ in range(STEPS):
            eps = eps + self._step(*motion, force, eps, t, *parameters)
        return {**reference, **dict(zip("xva", self._turned(*motion, eps), strict=True))}

    @property
    def _parameters(self) -> list[Matrix]:
        return [self.machine.parameters.symbols] if len(self.machine.parameters) else []

    @cached_property
    def _symbols(self) -> list[Matrix]:
        sizes = (self.machine.nx, self.machine.nv, self.machine.nv, 3)
        return [ca.SX.sym(name, n) for name, n in zip(("x", "v", "a", "eps"), sizes, strict=True)]

    @cached_property
    def _turned(self) -> ca.Function:
        """From x, v, a and a turn eps to those of the turned free body."""
        x, v, a, eps = self._symbols
        at, along = self.machine.x_slice[self.joint.name], self.machine.v_slice[self.joint.name]
        turn = ca.vertcat(1, eps / 2) / ca.sqrt(1 + ca.sumsqr(eps) / 4)
        back = quaternion.to_rotation(turn).T
        new = [ca.SX(x), ca.SX(v), ca.SX(a)]
        new[0][at.start + 3 : at.start + 7] = quaternion.product(x[at][3:7], turn)
        for own in new[1:]:
            own[along] = ca.vertcat(back @ own[along][:3], back @ own[along][3:])
        return ca.Function("turned", self._symbols, new)

    @cached_property
    def _step(self) -> ca.Function:
        """From x, v, a, force and eps to the change of eps by Newton's method."""
        x, v, a, eps = self._symbols
        force, t = ca.SX.sym("force", self.machine.nv), ca.SX.sym("t")
        x_new, v_new, a_new = self._turned(x, v, a, eps)
        state = self.equations.at(x_new, v_new, t)
        B = input_matrix(state)
        per_input = ca.densify(solve_symmetric(state.mass, B))
        needed = state.inverse(a_new) - input_bias(state) - force
        given = solve_symmetric(ca.densify(B.T @ per_input), ca.densify(per_input.T @ needed))
        rho = ca.densify(needed - B @ given)
        slope = ca.densify(ca.jacobian(rho, eps))
        solved = ca.densify(solve_symmetric(state.mass, ca.horzcat(rho, slope)))
        normal = slope.T @ solved[:, 1:]
        # A turn that changes nothing (about the thrust, or in free fall) is left at zero.
        size = LEAST * ca.trace(normal) + 1e-12
        change = -solve_symmetric(normal + size * ca.SX.eye(3), slope.T @ solved[:, 0])
        return ca.Function("lean", [x, v, a, force, eps, t, *self._parameters], [change])
