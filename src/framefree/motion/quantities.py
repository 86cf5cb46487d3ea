"""The named quantities: inputs, outputs and meaning of each, derived once from a `State`.

A quantity has the same name, the same arguments and the same meaning in every formulation that
offers it. Inputs are columns in the formulation's own sizes:

    x, v, a         coordinates, velocities, accelerations
    force           on the velocities: its power is v . force
    joint_force     at the machine's joints, as motors exert it
    u               inputs of the machine's actuators
    v_r, a_r        velocities and accelerations that a law wants, in the place of v and a
    t               time; the last input of every quantity where the formulation depends on time

What takes `force` is there in four versions: `forward(x, v, force)`, `forward:joint_force(x, v,
joint_force)`, `forward:u(x, v, u)` (actuators without their limits) and `forward:both(x, v, force,
joint_force)`. The slopes in `forward_derivatives:u` and `state_matrices:u` are by u.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import casadi as ca

from framefree.motion import actuation
from framefree.motion import regressor as regressors
from framefree.motion.body_shares import SHARES, share_of
from framefree.motion.load import Load
from framefree.motion.outputs import (
    XV,
    XVA,
    Output,
    Outputs,
    Recipe,
    X,
    matrix,
    pose_table,
    scalar,
    table,
    vector,
)
from framefree.motion.spatial import Matrix
from framefree.motion.state import State

LOADS: dict[str, tuple[str, ...]] = {
    "": ("force",),
    "joint_force": ("joint_force",),
    "u": ("u",),
    "both": ("force", "joint_force"),
}
"""Versions of the quantities that take a load: suffix to the inputs that make it up."""


def load_of(version: str, state: State, *inputs: Matrix) -> Load:
    """Return the load that the inputs of one of the `LOADS` make up."""
    if version == "u":
        return actuation.input_load(state, inputs[0])
    return Load(state.machine, **dict(zip(LOADS[version], inputs, strict=True)))


# ------------------------------------------------------------------ quantities of a state


def _energy(state: State) -> Outputs:
    return {"kinetic": scalar(state.kinetic), "potential": scalar(state.potential)}


def _momentum(state: State) -> Outputs:
    return {name: vector(value) for name, value in state.momentum.items()}


def _joint_state(state: State) -> Outputs:
    return {"joint_x": vector(state.joint_x), "joint_v": vector(state.joint_v)}


def _constraint(state: State) -> Outputs:
    rows = state.rows
    if rows is None:
        raise TypeError("this state has no rows of constraints")
    return {
        "A": matrix(rows.A),
        "b": vector(rows.stabilised),
        "position": vector(rows.position),
        "velocity": vector(rows.velocity),
        "gradient": matrix(rows.gradient),
        "size": vector(rows.size),
    }


def _one(output: str, shape: Callable[[Matrix], Output], attribute: str) -> Callable[..., Outputs]:
    return lambda state: {output: shape(getattr(state, attribute))}


STATE: dict[str, Recipe] = {
    "mass": Recipe(X, _one("mass", matrix, "mass")),
    "bias": Recipe(XV, _one("bias", vector, "bias")),
    "coriolis": Recipe(XV, _one("coriolis", matrix, "coriolis")),
    "gravity": Recipe(X, _one("gravity", vector, "gravity_force")),
    "inverse": Recipe(XVA, lambda state, a: {"force": vector(state.inverse(a))}),
    "rate_matrix": Recipe(X, lambda state: {"rate_matrix": matrix(state.rate_matrix)}),
    "body_pose": Recipe(X, lambda state: {"pose": pose_table(state.poses)}),
    "body_velocity": Recipe(XV, lambda state: {"velocity": table(state.twists, 6)}),
    "body_acceleration": Recipe(
        XVA, lambda state, a: {"acceleration": table(state.accelerations(a), 6)}
    ),
    "energy": Recipe(XV, _energy),
    "dissipation": Recipe(XV, _one("dissipation", scalar, "dissipation")),
    "momentum": Recipe(XV, _momentum),
    "joint_state": Recipe(XV, _joint_state),
    "input_matrix": Recipe(X, _one("B", matrix, "input_matrix")),
    "input_bias": Recipe(XV, _one("bias", vector, "input_bias")),
    "constraint": Recipe(XV, _constraint),
    **SHARES,
}
"""Quantities of a state alone."""


FORCED = (
    *("bias", "body_bias", "inverse", "forward", "power", "energy", "dissipation"),
    *("joint_wrench", "loop_wrench", "multipliers", "constraint_force"),
    *("forward_derivatives", "inverse_derivatives", "linearisation", "state_matrices"),
    *("inverse_sensitivity", "forward_sensitivity", "regressor", "tracking_regressor"),
    *("joint_inverse", "kkt", "kkt_multipliers", "known_force", "consistency"),
    *("stiffness_force", "hamilton", "hamiltonian", "hessian"),
)
"""Kinds of quantities that forces between bodies enter: time does where these depend on it."""


BODIES = ("body_pose", "body_velocity", "body_acceleration")
ENERGIES = ("energy", "dissipation", "momentum", "power")
INPUTS = ("input_matrix", "input_bias")
SLOPES = ("forward_derivatives", "inverse_derivatives", "linearisation", "state_matrices")
"""Names that formulations offer together."""


# ------------------------------------------------------------------ quantities under a load


def _forward(state: State, load: Load) -> Outputs:
    return {"a": vector(state.forward(load))}


def _power(state: State, load: Load) -> Outputs:
    return {"power": scalar(state.power(load))}


def _joint_wrench(state: State, load: Load) -> Outputs:
    return {"wrench": table(state.joint_wrenches(load), 6)}


def _loop_wrench(state: State, load: Load) -> Outputs:
    return {"wrench": table(state.loop_wrenches(load), 6)}


def _multipliers(state: State, load: Load) -> Outputs:
    return {"multipliers": vector(state.multipliers(load))}


def _constraint_force(state: State, load: Load) -> Outputs:
    a = state.forward(load)
    missing = state.mass @ a + state.bias - state.generalised(load)
    return {"constraint_force": vector(missing)}


UNDER_LOAD: dict[str, Callable[[State, Load], Outputs]] = {
    "forward": _forward,
    "power": _power,
    "joint_wrench": _joint_wrench,
    "loop_wrench": _loop_wrench,
    "multipliers": _multipliers,
    "constraint_force": _constraint_force,
}
"""Quantities that take a load; see `LOADS`."""


# ------------------------------------------------------------------ derivatives, one rule for all


def _inverse_derivatives(state: State, a: Matrix) -> Outputs:
    by_x, by_v = state.inverse_slopes(a)
    slopes = {"dforce_dx": by_x, "dforce_dv": by_v, "dforce_da": state.mass}
    return {name: matrix(slope) for name, slope in slopes.items()}


def forward_slopes(
    version: str, state: State, *inputs: Matrix
) -> tuple[Matrix, Matrix, list[Matrix]]:
    """Return the slopes of `forward` by x, by v, and by every input of a load.

    With Q(x, v, inputs) the force that the load amounts to, and a = accelerate(x, v, Q),
    da/dx = d(accelerate)/dx + d(accelerate)/dQ dQ/dx, and so on.
    """
    Q = state.generalised(load_of(version, state, *inputs))
    by_x, by_v, by_force = state.forward_slopes(Q)
    Q_x, Q_v = state.along(Q), ca.sparsify(ca.jacobian(Q, state.v))
    if Q_x.nnz():
        by_x = by_x + by_force @ Q_x
    if Q_v.nnz():
        by_v = by_v + by_force @ Q_v
    if version == "":
        return by_x, by_v, [by_force]
    return by_x, by_v, [by_force @ ca.jacobian(Q, one) for one in inputs]


def _forward_derivatives(version: str, state: State, *inputs: Matrix) -> Outputs:
    by_x, by_v, by_inputs = forward_slopes(version, state, *inputs)
    names = [f"da_d{name}" for name in LOADS[version]]
    slopes = {"da_dx": by_x, "da_dv": by_v, **dict(zip(names, by_inputs, strict=True))}
    return {name: matrix(slope) for name, slope in slopes.items()}


def _state_matrices(version: str, state: State, *inputs: Matrix) -> Outputs:
    """Return A and B of ``d/dt (eps, dv) = A (eps, dv) + B d(inputs)`` along a motion.

    Deviations eps of x and dv of v are not each other's rates where velocities do not commute
    [Konz2024, eq. 2.24]: d(eps)/dt = dv - W eps with W_ij = gamma^i_kj v^k.
    """
    nv = state.v.shape[0]
    by_x, by_v, by_inputs = forward_slopes(version, state, *inputs)
    W, _ = state.equations.deviation(state.x, state.v, ca.SX(nv, 1))
    right = ca.horzcat(*by_inputs)
    A = ca.blockcat([[-W, ca.SX.eye(nv)], [by_x, by_v]])
    return {"A": matrix(A), "B": matrix(ca.vertcat(ca.SX(*right.shape), right))}


class Linearisation(NamedTuple):
    """First order of f(x, v, a) along a motion: ``f0 eps + f1 d(eps)/dt + f2 d2(eps)/dt2``.

    eps (nv) is the deviation x (+) eps of the configuration.
    """

    f0: Matrix
    f1: Matrix
    f2: Matrix


def _linearisation(state: State, a: Matrix) -> Outputs:
    """Combine the slopes of `inverse` along a motion [Konz2024, eq. 2.25].

    A deviation eps of x deviates the velocities too:

        dv = d(eps)/dt + W eps,        da = d2(eps)/dt2 + W d(eps)/dt + (dW/dt) eps
    """
    by_x, by_v = state.inverse_slopes(a)
    by_a, (W, W_rate) = state.mass, state.equations.deviation(state.x, state.v, a)
    result = Linearisation(by_x + by_v @ W + by_a @ W_rate, by_v + by_a @ W, by_a)
    return {name: matrix(value) for name, value in result._asdict().items()}


def _inverse_sensitivity(state: State, a: Matrix) -> Outputs:
    p = state.machine.parameters.symbols
    return {"dforce_dp": matrix(ca.jacobian(state.inverse(a), p))}


def _forward_sensitivity(state: State, force: Matrix) -> Outputs:
    return {"da_dp": matrix(state.sensitivity(force))}


def _regressor(state: State, a: Matrix, u: Matrix | None = None) -> Outputs:
    result = regressors.regressor(state, a, u)
    return {"Y": matrix(result.Y), "offset": vector(result.offset)}


def _tracking_regressor(drag: str, state: State, v_r: Matrix, a_r: Matrix) -> Outputs:
    result = regressors.tracking_regressor(state, v_r, a_r, drag)
    return {"Y": matrix(result.Y), "offset": vector(result.offset)}


REGRESSORS: dict[str, Recipe] = {
    "regressor": Recipe(XVA, _regressor),
    "regressor:u": Recipe((*XVA, "u"), _regressor),
    "tracking_regressor": Recipe((*XV, "v_r", "a_r"), partial(_tracking_regressor, "wanted")),
    "tracking_regressor:met": Recipe((*XV, "v_r", "a_r"), partial(_tracking_regressor, "met")),
}
"""Forces linear in the machine's tunable numbers: see `framefree.motion.regressor`."""

OF_PARAMETERS = (
    "forward_sensitivity",
    "inverse_sensitivity",
    *REGRESSORS,
)
"""What every formulation offers of a machine that has tunable numbers."""


DERIVATIVES: dict[str, Recipe] = {
    "inverse_derivatives": Recipe(XVA, _inverse_derivatives),
    "linearisation": Recipe(XVA, _linearisation),
    "inverse_sensitivity": Recipe(XVA, _inverse_sensitivity),
    "forward_sensitivity": Recipe((*XV, "force"), _forward_sensitivity),
}
"""Derivatives of the force for an acceleration, and by the machine's tunable numbers."""

LOAD_DERIVATIVES: dict[str, Callable[..., Outputs]] = {
    "forward_derivatives": _forward_derivatives,
    "state_matrices": _state_matrices,
}
"""Derivatives of the acceleration under a load; see `LOADS`."""


# ------------------------------------------------------------------ recipes by name


def recipe(name: str) -> Recipe | None:
    """Return the recipe of a quantity by its name, versions and frames included; None for none."""
    kind, _, which = name.partition(":")
    if name in STATE:
        return STATE[name]
    if name in DERIVATIVES:
        return DERIVATIVES[name]
    if name in REGRESSORS:
        return REGRESSORS[name]
    if kind in LOAD_DERIVATIVES and which in LOADS:
        return Recipe((*XV, *LOADS[which]), partial(LOAD_DERIVATIVES[kind], which))
    if kind in UNDER_LOAD and which in LOADS:
        law = UNDER_LOAD[kind]

        def under_load(state: State, *inputs: Matrix) -> Outputs:
            return law(state, load_of(which, state, *inputs))

        return Recipe((*XV, *LOADS[which]), under_load)
    if kind in SHARES:
        return share_of(kind, which)
    return _of_frame(kind, which)


def _of_frame(kind: str, frame: str) -> Recipe | None:
    if kind == "jacobian":
        return Recipe(X, lambda state: {"jacobian": matrix(state.jacobian(frame).value)})
    if kind == "jacobian_rate":
        return Recipe(XV, lambda state: {"jacobian": matrix(state.jacobian(frame).rate)})
    if kind == "frame_pose":
        return Recipe(X, lambda state: {"pose": matrix(state.frame_pose(frame))})
    return None


FRAMES = ("frame_pose", "jacobian", "jacobian_rate")
"""Quantities of a frame: `frame_pose:FRAME` and so on."""
