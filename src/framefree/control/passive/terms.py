"""What depends on velocity in the equations of motion, as matrices that a law may use.

    inverse(x, v, a) = M a + C(x, v) v + D(x, v) v + ...

With a velocity y in the place of the second v: C y and D y, which are linear in y. Fluid acts on
velocities relative to it: C and D hold coefficients at xi - xi_c, so that dM/dt - 2C is skew in a
current as well (formulations, section 8).
"""

from collections.abc import Iterator
from typing import NamedTuple

import casadi as ca

from framefree.geometry import se3
from framefree.machine import Frame
from framefree.machine.immersed import InFluid
from framefree.machine.values import constant
from framefree.motion.spatial import Matrix
from framefree.motion.state import Jacobian
from framefree.motion.tree import coriolis
from framefree.motion.tree.state import TreeState

FORMS = tuple(coriolis.BODY_FACTORS)
"""Coriolis matrices to choose from; the first two are skew."""


class Wet(NamedTuple):
    """An immersed frame: what it is, its twist relative to the fluid and its Jacobian."""

    body: InFluid
    relative: Matrix
    J: Jacobian


def coriolis_times(state: TreeState, form: str, y: Matrix) -> Matrix:
    """Return C y (nv), added mass at its twist relative to the fluid included."""
    inertias = [link.inertia for link in state.links]
    if form == "skew":
        rates = coriolis.subspace_rates(state.links, state.motion, state.x, state.v)
        C = coriolis.recursive(state.links, state.motion, inertias, rates)
    else:
        C = coriolis.by_bodies(form, inertias, state.motion, state.link_jacobians)
    total = C @ y
    for wet in _wet(state):
        M = ca.SX(constant(wet.body.added_mass))
        if M.nnz():
            factor = coriolis.BODY_FACTORS[form](M, wet.relative)
            total += wet.J.value.T @ (M @ (wet.J.rate @ y) + factor @ (wet.J.value @ y))
    return total


def drag_times(state: TreeState, y: Matrix) -> Matrix:
    """Return D y (nv): damping of joints, dampers, drag and lift of the fluid.

    Of these D holds the matrix at the relative twist, such as a coefficient times |xi_i|.
    """
    machine = state.machine
    parts = [joint.damping_force(y[machine.v_slice[joint.name], :]) for joint in machine.joints]
    total = ca.SX(ca.vertcat(ca.SX(0, 1), *parts))
    for damper in machine.dampers:
        a, b, G = state.bodies.relative(damper)
        J = _jacobian(state, b) - se3.adjoint(se3.inverse(G)) @ _jacobian(state, a)
        total += J.T @ damper.wrench(J @ y)
    for wet in _wet(state):
        D = wet.body.drag_matrix(wet.relative, machine.fluid)
        total += wet.J.value.T @ (D @ (wet.J.value @ y))
    return total


def _jacobian(state: TreeState, frame: Frame) -> Matrix:
    return state.jacobian(frame.name).value


def _wet(state: TreeState) -> Iterator[Wet]:
    fluid = state.machine.fluid
    if fluid is None:
        return
    for body in fluid.immersed:
        frame = state.machine.frame(body.frame)
        R, xi = se3.rotation(state.bodies.pose(frame)), state.bodies.twist(frame)
        yield Wet(body, fluid.relative_twist(R, xi), state.jacobian(body.frame))
