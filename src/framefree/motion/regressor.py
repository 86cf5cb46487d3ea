"""Regressors: forces that are linear in what is not known of a machine.

The unknown numbers pi are the tunable ones of the machine (`framefree.machine.paths`): the ten
moments of bodies, friction, drive inertia, springs, dampers, drag, gains of actuators. In every
formulation

    inverse(x, v, a) = Y(x, v, a) pi + offset(x, v, a)

and, for adaptation [Slotine1987], with the skew C and the damping D of
`framefree.motion.velocity_terms`,

    M a_r + C(x, v) v_r + D(x, v) v_r + (rest at x, v) = Y(x, v, v_r, a_r) pi + offset

Y of a body's ten numbers is the sum J_b^T Y_b with Y_b the wrench of Newton and Euler for each
number alone; all other columns are slopes by the symbol, and one that still depends on an unknown
is refused by name: there the force is not linear.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import casadi as ca
import numpy as np

from framefree.geometry import se3
from framefree.geometry.moments import Moments
from framefree.machine import Machine, MachineError
from framefree.machine.paths import Leaf, leaves
from framefree.machine.values import constant
from framefree.motion import actuation
from framefree.motion.spatial import Matrix, SpatialWrench, Twist
from framefree.motion.state import State
from framefree.motion.velocity_terms import body_term, coriolis_times, drag_times

PAIRS = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
"""Entries of a symmetric 3x3 matrix in the order of names xx, xy, xz, yy, yz, zz."""

TEN = ("mass", *(f"first.{k}" for k in "xyz"), *(f"second.{'xyz'[i]}{'xyz'[j]}" for i, j in PAIRS))
"""Names of a body's ten numbers, in the order of `moments_vector`."""


class Regression(NamedTuple):
    """A force that is linear in the unknown numbers: ``Y pi + offset``."""

    Y: Matrix
    offset: Matrix


def moments_vector(moments: Moments) -> np.ndarray:
    """Return the ten numbers of `TEN`: total, first moment, upper half of the second."""
    second = [moments.second[i, j] for i, j in PAIRS]
    return np.array([moments.total, *moments.first, *second], float)


def moments_of_vector(vector: np.ndarray) -> Moments:
    """Return the moments that ten numbers say."""
    second = np.zeros((3, 3))
    for value, (i, j) in zip(vector[4:], PAIRS, strict=True):
        second[i, j] = second[j, i] = value
    return Moments(float(vector[0]), vector[1:4], second)


def body_paths(*bodies: str) -> tuple[str, ...]:
    """Return the paths of all ten numbers of bodies, such as "link3.first.x"."""
    return tuple(f"{body}.{word}" for body in bodies for word in TEN)


# ------------------------------------------------------------------ the regressors of a state


def regressor(state: State, a: Matrix, u: Matrix | None = None) -> Regression:
    """Return the regressor of ``inverse(x, v, a)`` (nv x n) in the machine's tunable numbers.

    With inputs u it is that of ``inverse(x, v, a) - B(x) u - (actuators' bias)``, which is what
    acts from outside: zero where nothing but the actuators does.
    """

    def force() -> Matrix:
        left = state.inverse(a)
        if u is None:
            return left
        return left - state.generalised(actuation.input_load(state, u))

    accelerations = state.accelerations(a)

    def wrench(i: int, M: Matrix) -> Matrix:
        xi = state.twists[i]
        gyroscopic = Twist.of(xi).cross_wrench(SpatialWrench.of(M @ xi)).vector
        return M @ (accelerations[i] - _weight(state, i)) + gyroscopic

    return _assembled(state, force, wrench)


def tracking_regressor(state: State, v_r: Matrix, a_r: Matrix, drag: str = "wanted") -> Regression:
    """Return the regressor of the passivity law: v_r and a_r in the place of v and a.

    Of ``inverse(x, v, a_r) - C s - D s`` with s = v - v_r. With `drag` "met" damping and drag stay
    those at v, and D s is left out.
    """
    s = state.v - v_r

    def force() -> Matrix:
        left = state.inverse(a_r) - coriolis_times(state, "skew", s)
        return left - drag_times(state, s) if drag == "wanted" else left

    def wrench(i: int, M: Matrix) -> Matrix:
        xi, J = state.twists[i], jacobians[i]
        moved = J.value @ a_r + J.rate @ v_r
        return M @ (moved - _weight(state, i)) + body_term("skew", M, xi, J.value @ v_r)

    jacobians = [state.jacobian(body.name) for body in state.machine.bodies]
    return _assembled(state, force, wrench)


def _weight(state: State, i: int) -> Matrix:
    """Return (R_b^T g, 0) (6) of body i."""
    g = ca.SX(constant(state.machine.gravity))
    return ca.vertcat(se3.rotation(state.poses[i]).T @ g, ca.SX(3, 1))


# ------------------------------------------------------------------ assembly


class _BodyNumber(NamedTuple):
    """One of a body's ten numbers among the unknown ones: its place, the body, which of the ten."""

    place: int
    body: int
    number: int


def _assembled(
    state: State, force: Callable[[], Matrix], wrench: Callable[[int, Matrix], Matrix]
) -> Regression:
    machine = state.machine
    p, nv = machine.parameters.symbols, state.v.shape[0]
    numbers = _body_numbers(machine)
    of_bodies = [one.place for one in numbers]
    others = [k for k in range(len(machine.parameters)) if k not in of_bodies]
    # Without the unknown bodies: what is left is linear in the other numbers, or refused below.
    rest = force()
    if of_bodies:
        rest = ca.substitute(rest, p[of_bodies], ca.SX.zeros(len(of_bodies)))
    Y = ca.SX(nv, len(machine.parameters))
    if others:
        Y[:, others] = ca.jacobian(rest, p[others])
    for body in dict.fromkeys(one.body for one in numbers):
        own = [one for one in numbers if one.body == body]
        wrenches = ca.horzcat(*(wrench(body, _unit(one.number)) for one in own))
        J = state.jacobian(machine.bodies[body].name).value
        Y[:, [one.place for one in own]] = J.T @ wrenches
    _refuse_nonlinear(machine, Y)
    offset = ca.substitute(rest, p[others], ca.SX.zeros(len(others))) if others else rest
    return Regression(ca.sparsify(Y), offset)


@lru_cache
def _unit(number: int) -> Matrix:
    """Return the 6x6 inertia with one of the ten numbers 1 and all others 0."""
    return ca.sparsify(ca.SX(ca.DM(moments_of_vector(np.eye(10)[number]).matrix6)))


def _body_numbers(machine: Machine) -> list[_BodyNumber]:
    """Return which unknown numbers are moments of bodies, in which forces are linear one by one."""
    found = leaves(machine.numeric, machine.parameters.names)
    by_moments = {leaf.owner for leaf in found if _moment_of_body(leaf) not in (None, 0)}
    indices = machine.body_index
    return [
        _BodyNumber(place, indices[leaf.owner[1]], number)
        for place, leaf in enumerate(found)
        if leaf.owner in by_moments and (number := _moment_of_body(leaf)) is not None
    ]


def _moment_of_body(leaf: Leaf) -> int | None:
    """Return which of the `TEN` a number is; None for others."""
    if leaf.owner[0] != "bodies" or leaf.key[0] != "moments":
        return None
    kind = leaf.key[1]
    if kind == "total":
        return 0
    if kind == "first":
        return 1 + leaf.key[2]
    return 4 + PAIRS.index(leaf.key[2]) if kind == "second" else None


def _refuse_nonlinear(machine: Machine, Y: Matrix) -> None:
    symbols, names = machine.parameters.symbols, machine.parameters.names
    if not ca.depends_on(Y, symbols):
        return
    wrong = [name for k, name in enumerate(names) if ca.depends_on(Y, symbols[k])]
    raise MachineError(
        "the forces are not linear in "
        + ", ".join(f"`{name}`" for name in wrong)
        + ": hold these numbers, or use a fit by prediction error; of a body the mass, `first` and "
        "`second` moments enter linearly"
    )
