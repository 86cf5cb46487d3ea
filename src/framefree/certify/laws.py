"""Laws that the equations of motion of every machine obey, measured at random states.

All are measured on the tree of joints, loops opened, and in natural units of the machine. Rates
come from the chain rule on the traced graph itself, so that no step size blurs them.
"""

from collections.abc import Iterator
from typing import NamedTuple

import casadi as ca
import numpy as np

from framefree.certify.report import Finding
from framefree.certify.subject import UNDEFINED, States, Subject, evaluate, relative
from framefree.geometry import se3
from framefree.machine import Machine, MachineError
from framefree.motion import Equations, forces
from framefree.motion.maximal import Maximal
from framefree.motion.maximal.inertial import from_inertial, tensors, to_inertial, turned
from framefree.motion.tree import Tree

ROUNDING = 1e-10
"""Bar of identities that only rounding breaks."""
SKEW = 1e-11
AGREEMENT = 1e-9
"""Bar of what passes through the inverse of M."""
LEAST = 1e-3
"""Share of the natural size of a quantity that counts as its least size."""


def laws(subject: Subject) -> Iterator[Finding]:
    """Give the residuals of kinematics, closed form, Coriolis matrix, power and round trip."""
    yield kinematics(subject)
    yield closed_form(subject)
    yield from coriolis(subject)
    yield inertial_layout(subject)
    yield power_balance(subject)
    yield round_trip(subject)


def kinematics(subject: Subject) -> Finding:
    """d/dt G_b = G_b wed(xi_b) for the poses and twists of all bodies."""
    eom, states = subject.tree, subject.open_states
    x, v = _symbols(eom)
    pose, twist = eom.functions["body_pose"](x), eom.functions["body_velocity"](x, v)
    moved = []
    for i in range(twist.shape[0]):
        G = ca.reshape(pose[i, :].T, 4, 4).T
        moved.append(ca.vec((G @ se3.wed(twist[i, :].T)).T))
    rate = ca.jtimes(ca.vec(pose.T), x, eom.machine.rate_matrix(x) @ v)
    function = ca.Function("kinematics", [x, v], [rate, ca.vertcat(ca.SX(0, 1), *moved)])
    # The last column of a pose is a length, all others have no unit.
    sizes = np.tile([1.0, 1.0, 1.0, subject.units.length], 4 * twist.shape[0])[:, None]
    rates, twists = (value / sizes for value in evaluate(function, states.x, states.v))
    return Finding.measured(
        "kinematic_residual",
        relative(rates, twists, LEAST / subject.units.time),
        ROUNDING,
        "the rates of the bodies' poses agree with their velocities",
        "a joint's pose map and its Jacobian contradict each other: correct the joint kind",
    )


def closed_form(subject: Subject) -> Finding:
    """Compare M and c of the recursions with their sums over the bodies."""
    eom, states = subject.bare, subject.open_states
    M, c = sums_over_bodies(eom.machine, states)
    (mass,), (bias,) = (
        evaluate(eom.functions["mass"], states.x),
        evaluate(eom.functions["bias"], states.x, states.v),
    )
    D, of_mass = subject.units.velocity, subject.units.of_mass
    least = LEAST * _largest(of_mass(M)) / subject.units.time**2
    return Finding.measured(
        "closed_form_residual",
        max(
            relative(of_mass(mass), of_mass(M)),
            relative(D * bias[..., 0], D * c, least),
        ),
        ROUNDING,
        "mass matrix and velocity forces by recursion equal their sums over the bodies",
        "this is an error of framefree: please report it with the file",
    )


def coriolis(subject: Subject) -> Iterator[Finding]:
    """Make both tests of C, as a wrong one can pass the first alone."""
    skew, bias = coriolis_residuals(subject, "coriolis")
    yield Finding.measured(
        "skew_residual",
        skew,
        SKEW,
        "M_dot - 2C is skew-symmetric, as passivity-based control needs it",
        "do not use this Coriolis matrix in a Lyapunov function",
    )
    yield Finding.measured(
        "bias_residual",
        bias,
        ROUNDING,
        "C v equals the velocity forces; skew symmetry alone does not show that C is right",
        "this Coriolis matrix is wrong: controllers that use it compensate the wrong force",
    )


def coriolis_residuals(subject: Subject, quantity: str) -> tuple[float, float]:
    """Return how far a Coriolis matrix is from M_dot = C + C^T, and from C v = c; relative."""
    eom, states = subject.bare, subject.open_states
    x, v = _symbols(eom)
    mass = eom.functions["mass"](x)
    rate = ca.jtimes(ca.vec(mass), x, eom.machine.rate_matrix(x) @ v)
    M_dot = ca.Function("M_dot", [x, v], [mass, ca.reshape(rate, *mass.shape)])
    M, M_dot = evaluate(M_dot, states.x, states.v)
    (C,) = evaluate(eom.functions[quantity], states.x, states.v)
    (bias,) = evaluate(eom.functions["bias"], states.x, states.v)
    D, of_mass = subject.units.velocity, subject.units.of_mass
    # In units of M times a rate: so that a machine whose C vanishes has a scale, too.
    scale = _largest(of_mass(C)) + _largest(of_mass(M)) * _largest(states.v / D)
    skew = relative(of_mass(C + C.swapaxes(1, 2)), of_mass(M_dot), scale)
    forces_of = np.einsum("nij,nj->ni", C, states.v)
    least = LEAST * scale * _largest(states.v / D)
    return skew, relative(D * forces_of, D * bias[..., 0], least)


def inertial_layout(subject: Subject) -> Finding:
    """Make both tests of C in the inertial layout of the maximal form [Eslami2025, app. C]."""
    name = "inertial_skew_residual"
    meaning = "with velocities of mass centers in world axes, M_dot - 2C is skew-symmetric, too"
    machine, states = subject.bare.machine, subject.open_states
    eom = Maximal(machine)
    x, v = _symbols(subject.bare)
    state = eom.at(*eom.model.from_joints(x, v))
    try:
        _, M, C, D_M = tensors(state)
    except MachineError as error:
        return Finding.skipped(name, meaning, str(error))
    M, C, D_M = (ca.densify(one) for one in (M, C, D_M))
    rate = ca.reshape(ca.jtimes(ca.vec(M), x, machine.rate_matrix(x) @ v), *M.shape)
    # What bodies need to keep their velocities in the world: C nu, and nothing along.
    back = from_inertial(state)
    needed = back.T @ state.inverse(-back @ turned(state))
    nu = to_inertial(state) @ state.v
    n = M.shape[0]
    given = ca.vertcat(ca.SX(n, 1), C @ nu[n:])
    outputs = [M, C, D_M, rate, needed, given]
    function = ca.Function("layout", [x, v], [ca.densify(one) for one in outputs])
    M, C, D_M, rate, needed, given = evaluate(function, states.x, states.v)
    speed = _largest(states.v / subject.units.velocity)
    scale = _largest(M) * speed
    lengths = np.r_[np.full(n, subject.units.length), np.ones(n)][:, None]
    residuals = (
        relative(C + C.swapaxes(1, 2), rate, scale),
        relative(D_M, rate, scale),
        relative(lengths * needed, lengths * given, scale * speed + _largest(lengths * needed)),
    )
    return Finding.measured(
        name, max(residuals), ROUNDING, meaning, "this is an error of framefree: please report it"
    )


def power_balance(subject: Subject) -> Finding:
    """d/dt (kinetic + potential) along the motion = power."""
    eom, states = subject.tree, subject.open_states
    x, v = _symbols(eom)
    a, force = ca.SX.sym("a", eom.machine.nv), ca.SX.sym("force", eom.machine.nv)
    kinetic, potential = eom.functions["energy"](x, v)
    x_dot = eom.machine.rate_matrix(x) @ v
    power = eom.functions["power"](x, v, force)
    parts = [ca.jtimes(kinetic, x, x_dot), ca.jtimes(kinetic, v, a), ca.jtimes(potential, x, x_dot)]
    function = ca.Function("power", [x, v, a, force], [ca.vertcat(*parts), power])
    (pushed,) = evaluate(eom.functions["inverse"], states.x, states.v, states.a)
    rates, power = evaluate(function, states.x, states.v, states.a, pushed[..., 0])
    # What flows in at a stiff damper and is lost there cancels, and leaves its rounding.
    flows = _largest(rates) + _largest(power) + _largest(states.v * pushed[..., 0])
    return Finding.measured(
        "power_residual",
        relative(rates.sum(axis=1), power[..., 0], flows),
        ROUNDING,
        "energy changes by the power of motors, friction and fluid, and by nothing else",
        "some force and its potential contradict each other; see the other failures first",
    )


def round_trip(subject: Subject) -> Finding:
    """inverse(forward(force)) = force."""
    name, meaning = "round_trip_residual", "`inverse` returns the force that `forward` took"
    eom, states = subject.tree, subject.open_states
    if subject.singular_open:
        return Finding.skipped(name, meaning, UNDEFINED)
    (a,) = evaluate(eom.functions["forward"], states.x, states.v, states.force)
    (force,) = evaluate(eom.functions["inverse"], states.x, states.v, a[..., 0])
    (bias,) = evaluate(eom.functions["bias"], states.x, states.v)
    D = subject.units.velocity
    size = _largest(D * bias[..., 0]) + _largest(D * states.force)
    return Finding.measured(
        name,
        relative(D * force[..., 0], D * states.force, size),
        AGREEMENT,
        meaning,
        "the mass matrix is singular or nearly so: see the smallest eigenvalue of M",
    )


class Jacobians(NamedTuple):
    """Body Jacobians, their rates (n, bodies, 6, nv) and body twists (n, bodies, 6)."""

    value: np.ndarray
    rate: np.ndarray
    twist: np.ndarray


def jacobians(machine: Machine, states: States) -> Jacobians:
    """Return the Jacobians of all bodies at all states."""
    x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    state = Tree(machine.tree).at(x, v)
    pairs = [state.jacobian(body.name) for body in machine.bodies]
    stacks = [ca.densify(ca.vertcat(*(pair[k] for pair in pairs))) for k in (0, 1)]
    function = ca.Function("jacobians", [x, v], [*stacks, ca.vertcat(*state.twists)])
    value, rate, twist = evaluate(function, states.x, states.v)
    shape = (len(states), len(machine.bodies), 6)
    return Jacobians(
        value.reshape(*shape, machine.nv), rate.reshape(*shape, machine.nv), twist.reshape(shape)
    )


def sums_over_bodies(machine: Machine, states: States) -> tuple[np.ndarray, np.ndarray]:
    """Return ``M = sum J^T M_b J`` and ``c = sum J^T (M_b dJ v - ad_xi^T M_b xi)`` of bare bodies.

    In plain NumPy, apart from the kinematics; rotors add to the diagonal of M.
    """
    J = jacobians(machine, states)
    inertias = _inertias(machine)
    momentum = np.einsum("bij,nbj->nbi", inertias, J.twist)
    inertial = np.einsum("bij,nbjk,nk->nbi", inertias, J.rate, states.v)
    wrench = inertial - _adjoint_transposed(J.twist, momentum)
    armature = np.concatenate([np.zeros(0), *(joint.armature for joint in machine.joints)])
    M = np.einsum("nbik,bij,nbjl->nkl", J.value, inertias, J.value, optimize=True)
    return M + np.diag(armature), np.einsum("nbik,nbi->nk", J.value, wrench)


def _inertias(machine: Machine) -> np.ndarray:
    bodies = np.array([body.moments.matrix6 for body in machine.bodies]).reshape(-1, 6, 6)
    added = forces.added_masses(machine)
    extra = [np.zeros((6, 6)) if m is None else np.array(ca.DM(m).full()) for m in added]
    return bodies + np.reshape(extra, (-1, 6, 6))


def _adjoint_transposed(twist: np.ndarray, wrench: np.ndarray) -> np.ndarray:
    """Return ``ad_xi^T w`` for xi = (v, w), w = (f, m): (f x w, f x v + m x w)."""
    v, w = twist[..., :3], twist[..., 3:]
    f, m = wrench[..., :3], wrench[..., 3:]
    return np.concatenate([np.cross(f, w), np.cross(f, v) + np.cross(m, w)], axis=-1)


def _symbols(eom: Equations) -> tuple[ca.SX, ca.SX]:
    return ca.SX.sym("x", eom.machine.nx), ca.SX.sym("v", eom.machine.nv)


def _largest(values: np.ndarray) -> np.ndarray:
    """Return the largest entry of each state (n,)."""
    flat = np.abs(values.reshape(len(values), -1))
    return flat.max(axis=1, initial=0.0)
