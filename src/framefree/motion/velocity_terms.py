"""What depends on velocity in the equations of motion, with another velocity in its place.

    inverse(x, v, a) = M a + C(x, v) v + D(x, v) v + ...

With a velocity y in the place of the second v: C y and D y, which are linear in y. C is skew
(dM/dt - 2C), body by body; D holds damping of joints, dampers and drag. Fluid acts on velocities
relative to it: C and D hold coefficients at xi - xi_c, so that dM/dt - 2C is skew in a current as
well (formulations, section 8). For every formulation.
"""

from collections.abc import Iterator
from typing import NamedTuple

import casadi as ca

from framefree.errors import FramefreeError
from framefree.geometry import se3
from framefree.machine import Frame
from framefree.machine.immersed import InFluid
from framefree.machine.values import constant
from framefree.motion.spatial import Matrix, SpatialWrench, Twist
from framefree.motion.state import Jacobian, State

FORMS = ("skew", "kirchhoff", "adjoint")
"""Coriolis matrices to choose from; the first two are skew."""


class Wet(NamedTuple):
    """An immersed frame: what it is, its twist relative to the fluid and its Jacobian."""

    body: InFluid
    relative: Matrix
    J: Jacobian


def coriolis_times(state: State, form: str, y: Matrix) -> Matrix:
    """Return C y (nv), added mass at its twist relative to the fluid included.

    sum_b J_b^T (M_b dJ_b + Gam_b(xi_b) J_b) y, and of rotors G^T A (dG/dt) y with the joint rates
    G v.
    """
    machine = state.machine
    total = ca.SX(state.v.shape[0], 1)
    for body, xi in zip(machine.bodies, state.twists, strict=True):
        if not body.massless:
            M = ca.SX(constant(body.moments.matrix6))
            total += _one_body(form, M, xi, state.jacobian(body.name), y)
    for wet in _wet(state):
        M = ca.SX(constant(wet.body.added_mass))
        if M.nnz():
            total += _one_body(form, M, wet.relative, wet.J, y)
    rotors = ca.vertcat(ca.SX(0, 1), *(constant(joint.armature) for joint in machine.joints))
    return total + state.joint_jacobian.T @ (rotors * (state.joint_jacobian_rate @ y))


def _one_body(form: str, M: Matrix, xi: Matrix, J: Jacobian, y: Matrix) -> Matrix:
    gyroscopic = body_term(form, M, xi, J.value @ y)
    return J.value.T @ (M @ (J.rate @ y) + gyroscopic)


def body_term(form: str, M: Matrix, xi: Matrix, eta: Matrix) -> Matrix:
    """Return ``Gam(xi) eta`` (6) of a body, with Gam one of `FORMS`, without its matrix.

    skew        1/2 (-ad_eta^T M xi - ad_xi^T M eta + M ad_xi eta)
    kirchhoff   -ad_eta^T M xi
    adjoint     -ad_xi^T M eta
    """
    twist, other = Twist.of(xi), Twist.of(eta)
    kirchhoff = other.cross_wrench(SpatialWrench.of(M @ xi)).vector
    adjoint = twist.cross_wrench(SpatialWrench.of(M @ eta)).vector
    if form == "skew":
        return (kirchhoff + adjoint + M @ twist.cross(other).vector) / 2
    return kirchhoff if form == "kirchhoff" else adjoint


def drag_times(state: State, y: Matrix) -> Matrix:
    """Return D y (nv): damping of joints, dampers, drag and lift of the fluid.

    Of these D holds the matrix at the relative twist, such as a coefficient times |xi_i|.
    """
    machine, rates = state.machine, state.joint_jacobian @ y
    parts = [joint.damping_force(rates[machine.v_slice[joint.name], :]) for joint in machine.joints]
    total = state.joint_jacobian.T @ ca.SX(ca.vertcat(ca.SX(0, 1), *parts))
    for damper in machine.dampers:
        a, b, G = state.bodies.relative(damper)
        J = _jacobian(state, b) - se3.adjoint(se3.inverse(G)) @ _jacobian(state, a)
        total += J.T @ damper.wrench(J @ y)
    for wet in _wet(state):
        D = wet.body.drag_matrix(wet.relative, machine.fluid)
        total += wet.J.value.T @ (D @ (wet.J.value @ y))
    return total


def _jacobian(state: State, frame: Frame) -> Matrix:
    return state.jacobian(frame.name).value


def _wet(state: State) -> Iterator[Wet]:
    fluid = state.machine.fluid
    if fluid is None:
        return
    if fluid.flow is not None:
        raise FramefreeError(
            f"velocity terms of `{state.machine.name}` one by one are known in a fluid that rests "
            "or moves uniformly; its fluid has a `flow`"
        )
    for body in fluid.immersed:
        frame = state.machine.frame(body.frame)
        G, xi = state.bodies.pose(frame), state.bodies.twist(frame)
        yield Wet(body, fluid.relative_twist(G, xi), state.jacobian(body.frame))
