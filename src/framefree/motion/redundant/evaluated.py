"""A state whose coordinates are expressions, in formulations that differentiate by them.

Coordinates of the user's own need x and v to be symbols: Jacobians come by differentiation. Where a
state is asked for at expressions (a measurement with noise, a step ahead), it is derived at symbols
of its own, and the expressions are put in their place in every answer.
"""

from collections.abc import Callable
from typing import Any

import casadi as ca

from framefree.motion.spatial import Matrix
from framefree.motion.state import State


def _attribute(name: str) -> Any:
    return property(lambda self: self._put(getattr(self.base, name)), doc=f"`{name}`, evaluated.")


def _method(name: str) -> Any:
    def call(self: Any, *arguments: Any) -> Any:
        return self._put(getattr(self.base, name)(*arguments))

    call.__doc__ = f"Return `{name}`, evaluated."
    return call


class EvaluatedState(State):
    """Answers of another state with expressions in place of its symbols."""

    def __init__(self, base: State, symbols: list[Matrix], values: list[Matrix]) -> None:
        self.base, self._symbols, self._values = base, symbols, values
        self.equations = base.equations
        self.x, self.v, self.t = values

    def _put(self, answer: Any) -> Any:
        """Return an answer, or a collection of answers, with the expressions put in."""
        if isinstance(answer, dict):
            return {name: self._put(value) for name, value in answer.items()}
        if isinstance(answer, list):
            return [self._put(value) for value in answer]
        if isinstance(answer, tuple):
            parts = [self._put(value) for value in answer]
            return tuple(parts) if type(answer) is tuple else type(answer)(*parts)
        return ca.substitute([ca.SX(answer)], self._symbols, self._values)[0]

    mass = _attribute("mass")
    bias = _attribute("bias")
    poses = _attribute("poses")
    twists = _attribute("twists")
    joint_x = _attribute("joint_x")
    joint_v = _attribute("joint_v")
    joint_jacobian = _attribute("joint_jacobian")
    joint_jacobian_rate = _attribute("joint_jacobian_rate")
    coriolis = _attribute("coriolis")
    gravity_force = _attribute("gravity_force")
    kinetic = _attribute("kinetic")
    potential = _attribute("potential")
    dissipation = _attribute("dissipation")
    passive_power = _attribute("passive_power")
    momentum = _attribute("momentum")
    input_matrix = _attribute("input_matrix")
    input_bias = _attribute("input_bias")

    inverse = _method("inverse")
    accelerate = _method("accelerate")
    forward = _method("forward")
    respond = _method("respond")
    generalised = _method("generalised")
    jacobian = _method("jacobian")
    accelerations = _method("accelerations")
    frame_pose = _method("frame_pose")
    carried_wrenches = _method("carried_wrenches")
    power = _method("power")


def at_expressions(
    at: Callable[[Matrix, Matrix, Matrix], State], x: Matrix, v: Matrix, t: Matrix, *, timed: bool
) -> State:
    """Return the state at x, v and t, whether these are symbols or not; v may be zero at rest.

    With `timed` the time must be a symbol, too.
    """
    x, v, t = ca.SX(x), ca.SX(v), ca.SX(t)
    moving = v.is_valid_input() or v.is_zero()
    if x.is_valid_input() and moving and (t.is_valid_input() or not timed):
        return at(x, v, t)
    x, v, t = (ca.densify(value) for value in (x, v, t))
    symbols = [ca.SX.sym(name, size.shape[0]) for name, size in (("x", x), ("v", v), ("t", t))]
    return EvaluatedState(at(*symbols), symbols, [x, v, t])
