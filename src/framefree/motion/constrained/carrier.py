"""What constraints are laid upon: equations ``M a + bias = force`` with frames on their bodies.

Constraint rows need little of the equations under them: M and bias at a state, how x follows from
v, and the relative pose and Jacobian of two frames. `TreeCarrier` takes these from the recursions
over a tree, `EquationsCarrier` from the named quantities of any other formulation.
"""

from functools import cached_property
from typing import Any, NamedTuple, Protocol

import casadi as ca

from framefree.geometry import se3
from framefree.motion.equations import Equations
from framefree.motion.spatial import Matrix, Step, Twist
from framefree.motion.tree.kinematics import Jacobian, frame_step
from framefree.motion.tree.state import TreeModel, TreeState


class Relative(NamedTuple):
    """Frame b seen from frame a: pose G_ab, and J_ab with ``xi_ab = J_ab v`` in b's axes.

    `size` is the sum of squares of what J_ab is the difference of: a row of J_ab that is shorter
    than this by many orders is a rounding error.
    """

    G: Matrix
    jacobian: Jacobian
    size: Matrix


class CarrierState(Protocol):
    """A state (x, v) of what constraints are laid upon."""

    x: Matrix
    v: Matrix

    @property
    def mass(self) -> Matrix:
        """M (nv x nv)."""
        ...

    @property
    def bias(self) -> Matrix:
        """Force (nv) at zero acceleration."""
        ...

    def relative(self, a: str, b: str) -> Relative:
        """Return frame b seen from frame a."""
        ...


class Carrier(Protocol):
    """Equations that constraints can be laid upon."""

    nx: int
    nv: int

    def rate_matrix(self, x: Matrix) -> Matrix:
        """Return A (nx x nv) with dx/dt = A v."""
        ...

    def at(self, x: Matrix, v: Matrix | None = None) -> CarrierState:
        """Return a state; without v the machine is at rest."""
        ...


class TreeCarrier:
    """The tree of a machine, its loops and couplings left out."""

    def __init__(self, model: TreeModel) -> None:
        self.machine, self.model = model.machine, model
        self.nx, self.nv = model.machine.nx, model.machine.nv

    def rate_matrix(self, x: Matrix) -> Matrix:
        """Return A (nx x nv) with dx/dt = A v."""
        return self.machine.rate_matrix(x)

    def at(self, x: Matrix, v: Matrix | None = None) -> "OnTree":
        """Return a state; without v the machine is at rest."""
        return OnTree(self.model.at(x, v))


class OnTree:
    """A state of a `TreeCarrier`."""

    def __init__(self, tree: TreeState) -> None:
        self.tree, self.x, self.v = tree, tree.x, tree.v

    @property
    def mass(self) -> Matrix:
        """M (nv x nv)."""
        return self.tree.mass

    @cached_property
    def bias(self) -> Matrix:
        """Force (nv) at zero acceleration."""
        return self.tree.inverse(ca.SX(self.v.shape[0], 1))

    def relative(self, a: str, b: str) -> Relative:
        """Return frame b seen from frame a, by the shortest way through the tree.

        What carries both frames does not enter: its columns of J_ab are exact zeros.
        """
        links, machine = self.tree.links, self.tree.machine
        (at_a, step_a), (at_b, step_b) = (frame_step(machine, links, name) for name in (a, b))
        above_a, above_b = self._way(at_a), self._way(at_b)
        common = set(above_a) & set(above_b)
        G_ca = self._pose([i for i in above_a if i not in common], step_a)
        G_cb = self._pose([i for i in above_b if i not in common], step_b)
        shared = [k for i in common for k in range(links[i].v.start, links[i].v.stop)]
        J_a, J_b = (_without(self.tree.jacobian(name), shared) for name in (a, b))
        return _difference(se3.compose(se3.inverse(G_ca), G_cb), J_a, J_b, self.v)

    def _way(self, i: int) -> list[int]:
        """Links from the base to link i."""
        way: list[int] = []
        while i >= 0:
            way.append(i)
            i = self.tree.links[i].parent
        return way[::-1]

    def _pose(self, way: list[int], last: Step) -> Matrix:
        steps = [self.tree.motion.steps[i] for i in way]
        return se3.compose(*(se3.pose(step.rotation, step.r) for step in (*steps, last)))


class EquationsCarrier:
    """Any formulation with the quantities mass, bias, frame_pose, jacobian and jacobian_rate.

    One that has rows of its own (`constraints` and `constraint_bias`, as the maximal one) gets them
    as constraints like any other; see `OfEquations`.
    """

    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        self.nx, self.nv = equations.sizes["x"], equations.sizes["v"]

    def rate_matrix(self, x: Matrix) -> Matrix:
        """Return A (nx x nv) with dx/dt = A v."""
        if callable(own := getattr(self.equations, "rate_matrix", None)):
            return own(x)
        if "rate_matrix" in self.equations.quantities:
            return self.at(x).value("rate_matrix")
        if "rate" in self.equations.quantities:
            v = ca.SX.sym("v", self.nv)
            return ca.jacobian(self.at(x, v).value("rate"), v)
        return self.equations.machine.rate_matrix(x)

    def at(self, x: Matrix, v: Matrix | None = None) -> "OnEquations":
        """Return a state; without v the machine is at rest."""
        return OnEquations(self.equations, x, ca.SX(self.nv, 1) if v is None else v)


class OnEquations:
    """A state of an `EquationsCarrier`."""

    def __init__(self, equations: Equations, x: Matrix, v: Matrix) -> None:
        self._equations, self.x, self.v = equations, x, v

    @cached_property
    def mass(self) -> Matrix:
        """M (nv x nv)."""
        return self.value("mass")

    @cached_property
    def bias(self) -> Matrix:
        """Force (nv) at zero acceleration."""
        return self.value("bias")

    def relative(self, a: str, b: str) -> Relative:
        """Return frame b seen from frame a."""
        poses = [self.value(f"frame_pose:{name}") for name in (a, b)]
        J_a, J_b = (
            Jacobian(self.value(f"jacobian:{name}"), self.value(f"jacobian_rate:{name}"))
            for name in (a, b)
        )
        G = se3.compose(se3.inverse(poses[0]), poses[1])
        return _difference(G, J_a, J_b, self.v)

    def value(self, name: str) -> Any:
        """Return the only output of a quantity of x and v."""
        quantity = self._equations.quantity(name)
        inputs = {"x": self.x, "v": self.v}
        (output,) = quantity.trace(**{key: inputs[key] for key in quantity.inputs}).values()
        return output.value


def _difference(G_ab: Matrix, J_a: Jacobian, J_b: Jacobian, v: Matrix) -> Relative:
    """Return J_ab = J_b - Ad_{G_ba} J_a and its rate."""
    step = Step(se3.rotation(G_ab), se3.position(G_ab))
    carried = Jacobian(_into(step, J_a.value), _into(step, J_a.rate))
    value = J_b.value - carried.value
    # d/dt Ad_{G_ba} = -ad_{xi_ab} Ad_{G_ba}
    ad = se3.little_adjoint(value @ v)
    rate = J_b.rate - carried.rate + ad @ carried.value
    size = ca.sumsqr(J_b.value) + ca.sumsqr(carried.value)
    return Relative(G_ab, Jacobian(value, rate), size)


def _into(step: Step, columns: Matrix) -> Matrix:
    return ca.vertcat(*step.twist_into(Twist.of(columns)))


def _without(jacobian: Jacobian, columns: list[int]) -> Jacobian:
    value, rate = ca.SX(jacobian.value), ca.SX(jacobian.rate)
    value[:, columns] = 0
    rate[:, columns] = 0
    return Jacobian(ca.sparsify(value), ca.sparsify(rate))
