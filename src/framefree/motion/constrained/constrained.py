"""The constrained formulation: ``A(x, v, t) a = b`` laid upon equations ``M a + bias = force``.

Of all accelerations that the constraints allow, the machine takes the one nearest to the free one
in the metric of M (Gauss). With Q = force - bias and a_free = M^-1 Q [Udwadia1992]:

    a = a_free + M^-1/2 (A M^-1/2)^+ (b - A a_free),     M a = Q + Q_c,     Q_c = A^T lam

Rows come from the machine's loops and couplings and from the user. They may depend on each other,
always (a planar linkage closed by a spatial hinge) or now and then (a four-bar through its flat
position): compiled calls mask what depends on other rows, up to a tolerance, and give the
pseudo-inverse solution with the shortest multipliers. Contradicting rows are met in the sense of
least squares. `report` tells what is redundant, contradicting or not unique at a state.

Just at a position where rows lose rank the acceleration is the one of least curvature among those
that the remaining rows allow, which is not the limit of those before and after. A simulation meets
such a position only by chance; near it all digits hold if the state is projected at every step.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.machine import Machine, MachineError
from framefree.motion.constrained.carrier import Carrier, EquationsCarrier, OnTree, TreeCarrier
from framefree.motion.constrained.motion import ConstraintState, Motion
from framefree.motion.constrained.rows import (
    Closed,
    Constraint,
    OfEquations,
    Stabilisation,
    of_machine,
    stacked,
)
from framefree.motion.constrained.states import ConstrainedStates, numbers
from framefree.motion.constrained.wrenches import joint_wrenches, loads
from framefree.motion.equations import Equations, EquationsError, Output, Quantity
from framefree.motion.spatial import Matrix, solve_symmetric
from framefree.motion.tree import Tree

Outputs = dict[str, Output]

PROJECTION = 1e-6
"""Tolerance of `projected_v`: a direction that is weaker than this is left for a later state."""


class Constrained(ConstrainedStates):
    """Equations of motion under constraints, in the coordinates of what they are laid upon.

    Parameters
    ----------
    machine : Machine
    constraints : sequence of Constraint
        Further ones beside the machine's loops and couplings: `Holonomic`, `Nonholonomic`,
        `Acceleration`, `Closed`. If one depends on time, the calls below take t as last argument.
    stabilisation : Stabilisation, optional
        Gains that pull the errors of all constraints without gains of their own to zero.
    base : Equations, optional
        What the constraints are laid upon, by default the tree of the machine's joints. Another
        formulation brings the machine's loops and couplings with it; only `constraints` are added.
    semidefinite : bool, optional
        Whether M may be singular; by default this is found out at random configurations.

    Notes
    -----
    Beside what every formulation has, there are

        constraint(x, v)                A, b, and the errors: see `_constraint`
        constraint_force(x, v, force)   Q_c (nv,)
        multipliers(x, v, force)        lam (m,), the shortest
        loop_wrench(x, v, force)        (loops, 6): frame a on frame b, in b's axes
        consistency(x, v, force)        rank of A, length of A a - b
        projected_x(x)                  x after one step towards the constraints, see `project`
        projected_v(x, v)               v made consistent with the constraints

    `inverse` gives the force under which the constraints have nothing to do. `joint_wrench` counts
    what loops carry as acting on the bodies, and other constraints as acting at the joints.
    """

    name = "constrained"

    def __init__(
        self,
        machine: Machine,
        constraints: Sequence[Constraint] = (),
        *,
        stabilisation: Stabilisation | None = None,
        base: Equations | None = None,
        semidefinite: bool | None = None,
    ) -> None:
        super().__init__(machine)
        self._semidefinite = semidefinite
        self.carrier: Carrier
        if base is None:
            tree = Tree(replace(machine, loops=(), couplings=()))
            self.base: Equations = tree
            self.carrier = TreeCarrier(tree.model)
            own = of_machine(machine, stabilisation)
        else:
            self.base, self.carrier = base, EquationsCarrier(base)
            own = [OfEquations(base.name, base)] if "constraint_bias" in base.quantities else []
        self._own = len(own)
        given = [c if c.gains is not None else replace(c, gains=stabilisation) for c in constraints]
        self.constraints: tuple[Constraint, ...] = (*own, *given)
        _check_names(self.constraints)
        self.rheonomic = self._depends_on_time(given)
        self.sizes = {**self.base.sizes, "t": 1, "multipliers": len(self.labels)}
        self.quantities = {**self.base.quantities, **self._own_quantities()}

    def _own_quantities(self) -> dict[str, Quantity]:
        def quantity(trace: Any, *inputs: str) -> Quantity:
            return Quantity((*inputs, "t") if self.rheonomic else inputs, trace)

        full = self.base.quantity("forward").inputs
        return {
            "forward": quantity(self._forward, *full),
            "joint_wrench": quantity(self._joint_wrench, *full),
            "power": quantity(self._power, *full),
            "constraint": quantity(self._constraint, "x", "v"),
            "constraint_force": quantity(self._constraint_force, *full),
            "multipliers": quantity(self._multipliers, *full),
            "loop_wrench": quantity(self._loop_wrench, *full),
            "consistency": quantity(self._consistency, *full),
            "wrench_of_multipliers": quantity(self._wrench_of, "x", "multipliers"),
            "projected_x": quantity(self._projected_x, "x"),
            "projected_v": quantity(self._projected_v, "x", "v"),
        }

    def quantity(self, name: str) -> Quantity:
        """Return the recipe of a quantity; what the constraints do not change is the base's."""
        return self.quantities[name] if name in self.quantities else self.base.quantity(name)

    # ------------------------------------------------------------------ rows

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """A name for every row."""
        return sum((constraint.labels(self.carrier) for constraint in self.constraints), ())

    def _depends_on_time(self, given: list[Constraint]) -> bool:
        if not given:
            return False
        x, v, t = ca.SX.sym("x", self.carrier.nx), ca.SX.sym("v", self.carrier.nv), ca.SX.sym("t")
        state = self.carrier.at(x, v)
        parts = [constraint.rows(self.carrier, state, t) for constraint in given]
        values = [
            ca.vec(value)
            for part in parts
            for value in (part.A, part.b, part.position, part.velocity)
        ]
        return ca.depends_on(ca.vertcat(*values), t)

    @cached_property
    def semidefinite(self) -> bool:
        """Whether M is taken as singular, so that only the constraints make motion unique."""
        if self._semidefinite is not None:
            return self._semidefinite
        if self.base.name != "tree":
            return False
        rng = np.random.default_rng(0)
        masses = (numbers(self, "mass", x=self.machine.random(rng))[0] for _ in range(3))
        return any(_singular(M) for M in masses)

    # ------------------------------------------------------------------ quantities

    def at(self, x: Matrix, v: Matrix | None = None, t: Any = 0) -> ConstraintState:
        """Return the constraints at a symbolic state."""
        state = self.carrier.at(x, v)
        singular = self.semidefinite
        return ConstraintState(self.carrier, self.constraints, state, t, semidefinite=singular)

    def _motion(
        self, x: Matrix, v: Matrix, force: Matrix, t: Any = 0, joint_force: Any = None
    ) -> Motion:
        at = self.at(x, v, t)
        if joint_force is not None:
            (motors,) = self.base.quantity("motors").trace(x=x).values()
            force = force + motors.value @ joint_force
        return at.motion(force)

    def _forward(self, **inputs: Matrix) -> Outputs:
        return {"a": self._vector(self._motion(**inputs).a)}

    def _constraint(self, x: Matrix, v: Matrix, t: Any = 0) -> Outputs:
        """Return A, stabilised b, errors phi and eta, gradient of phi, and sizes of the rows."""
        state = self.carrier.at(x, v)
        parts = [constraint.rows(self.carrier, state, ca.SX(t)) for constraint in self.constraints]
        rows = stacked(parts, self.carrier.nv)
        m, nv = rows.A.shape
        return {
            "A": Output(rows.A, (m, nv)),
            "b": Output(rows.stabilised, (m,)),
            "position": Output(rows.position, (m,)),
            "velocity": Output(rows.velocity, (m,)),
            "gradient": Output(rows.gradient, (m, nv)),
            "size": Output(rows.size, (m,)),
        }

    def _constraint_force(self, **inputs: Matrix) -> Outputs:
        return {"constraint_force": self._vector(self._motion(**inputs).constraint_force)}

    def _multipliers(self, **inputs: Matrix) -> Outputs:
        multipliers = self._motion(**inputs).multipliers
        return {"multipliers": Output(multipliers, (multipliers.shape[0],))}

    def _consistency(self, **inputs: Matrix) -> Outputs:
        motion = self._motion(**inputs)
        return {"rank": Output(motion.space.rank, ()), "residual": Output(motion.residual, ())}

    def _power(self, **inputs: Matrix) -> Outputs:
        inputs["force"] = inputs["force"] + self._motion(**inputs).constraint_force
        inputs.pop("t", None)
        return self.base.quantity("power").trace(**inputs)

    def _loop_wrench(self, **inputs: Matrix) -> Outputs:
        motion = self._motion(**inputs)
        wrenches = [wrench.T for wrench in motion.at.loop_wrenches(motion.multipliers)]
        return {"wrench": Output(ca.vertcat(ca.SX(0, 6), *wrenches), (len(wrenches), 6))}

    def _joint_wrench(self, **inputs: Matrix) -> Outputs:
        motion = self._motion(**inputs)
        state = motion.at.state
        if not isinstance(state, OnTree):
            self._refuse_loops()
            inputs["force"] = inputs["force"] + motion.force_of(self.constraints[self._own :])
            inputs.pop("t", None)
            return self.base.quantity("joint_wrench").trace(**inputs)
        carried = motion.at.loop_wrenches(motion.multipliers)
        acting = loads(state.tree, zip(self.closed, carried, strict=True))
        return {"wrench": joint_wrenches(state.tree, motion.a, acting)}

    def _refuse_loops(self) -> None:
        """Refuse loops in coordinates that are not bodies' own: forces there say too little."""
        if self.closed and self.base.name != "maximal":
            raise EquationsError(
                f"`joint_wrench` of loops laid upon the {self.base.name} formulation is not known; "
                "lay them upon the tree, or give them to the machine"
            )

    def _wrench_of(self, x: Matrix, multipliers: Matrix, t: Any = 0) -> Outputs:
        """Return what multipliers alone make the joints and loops carry."""
        at = self.at(x, None, t)
        wrenches = at.loop_wrenches(multipliers)
        of_loops = ca.vertcat(ca.SX(0, 6), *(wrench.T for wrench in wrenches))
        loops = {"loops": Output(of_loops, of_loops.shape)}
        if not isinstance(at.state, OnTree):
            zero = ca.SX(len(self.machine.bodies), 6)
            return {"joints": Output(zero, zero.shape), **loops}
        tree, still = at.state.tree, ca.SX(self.carrier.nv, 1)
        acting = loads(tree, zip(self.closed, wrenches, strict=True))
        with_them = joint_wrenches(tree, still, acting)
        without = joint_wrenches(tree, still, [None] * len(acting))
        difference = with_them.value - without.value
        return {"joints": Output(difference, with_them.shape), **loops}

    def _projected_x(self, **inputs: Matrix) -> Outputs:
        """One Gauss-Newton step in the metric of M, damped where it would leave its own range.

        The damping, of the size of the error, vanishes with it; so the steps converge quadratically
        at redundant rows too [Fan2005].
        """
        at = self.at(**inputs)
        error, Y = at.rows.position, at.factor.into(at.rows.gradient.T)
        squares = Y.T @ Y
        damping = ca.trace(squares) * (ca.sqrt(ca.sumsqr(error)) + 1e-14)
        weights = solve_symmetric(squares + damping * ca.DM.eye(Y.shape[1]), error)
        moved = self.integrate(at.state.x, -at.factor.out(Y @ weights))
        return {"projected": Output(moved, (self.carrier.nx,))}

    def _projected_v(self, **inputs: Matrix) -> Outputs:
        at = self.at(**inputs)
        step = at.space(PROJECTION).least(at.rows.velocity)
        return {"projected": self._vector(at.state.v - step)}

    def integrate(self, x: Any, dv: Any) -> Any:
        """Move x by dv on the groups of the coordinates."""
        own = getattr(self.base, "integrate", None)
        if own is None and self.carrier.nx != self.machine.nx:
            raise EquationsError(
                f"the {self.base.name} formulation cannot move its own coordinates"
            )
        return own(x, dv) if own is not None else self.machine.integrate(x, dv)

    @cached_property
    def closed(self) -> list[Closed]:
        """The constraints that are loops."""
        return [c for c in self.constraints if isinstance(c, Closed)]

    def _vector(self, value: Matrix) -> Output:
        return Output(value, (self.carrier.nv,))


def _check_names(constraints: Sequence[Constraint]) -> None:
    names = [constraint.name for constraint in constraints]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise MachineError(f"constraints must have different names, but `{twice[0]}` occurs twice")


def _singular(M: np.ndarray) -> bool:
    """Whether a mass matrix is singular, whatever the units of its coordinates."""
    sizes = np.sqrt(np.abs(np.diag(M)))
    if not len(M):
        return False
    if sizes.min() <= 1e-150:
        return True
    return bool(np.linalg.eigvalsh(M / np.outer(sizes, sizes))[0] < 1e-12)
