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
from framefree.motion.constrained.algebra import TOLERANCE
from framefree.motion.constrained.gauss import damped_step
from framefree.motion.constrained.project import CLOSED, ClosureError
from framefree.motion.constrained.rows import Closed, Constraint, Stabilisation, of_machine
from framefree.motion.constrained.state import ConstrainedState
from framefree.motion.constrained.states import ConstrainedStates
from framefree.motion.equations import Equations
from framefree.motion.load import Load
from framefree.motion.quantities import (
    BODIES,
    FRAMES,
    INPUTS,
    LOADS,
    REGRESSORS,
    SHARES,
    Outputs,
    Recipe,
    load_of,
    scalar,
    table,
    vector,
)
from framefree.motion.spatial import Matrix
from framefree.motion.tree import Tree

CONSISTENT = 1e-6
"""How far (m, rad, m/s, rad/s) a first state may be off the constraints."""

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

        constraint(x, v)                A, b, errors phi and eta, gradient of phi, size of the rows
        constraint_force(x, v, force)   Q_c (nv,)
        multipliers(x, v, force)        lam (m,), the shortest
        loop_wrench(x, v, force)        (loops, 6): frame a on frame b, in b's axes
        consistency(x, v, force)        rank of A, length of A a - b
        projected_x(x)                  x after one step towards the constraints, see `project`
        projected_v(x, v)               v made consistent with the constraints

    `inverse` gives the force under which the constraints have nothing to do. `joint_wrench` counts
    what loops carry as acting on the bodies, and other constraints as acting at the joints.
    Derivatives are those of `forward` itself, constraint forces included. At states off the
    constraints they are slopes along all velocities; `framefree.linearise` keeps to those that the
    constraints allow.
    """

    name = "constrained"
    offers = ()

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
        self.base: Equations = Tree(machine.tree) if base is None else base
        own = of_machine(machine, stabilisation) if base is None else []
        user = [c if c.gains is not None else replace(c, gains=stabilisation) for c in constraints]
        self.constraints: tuple[Constraint, ...] = (*own, *user)
        _check_names(self.constraints)
        self.x_names, self.v_names = self.base.x_names, self.base.v_names
        self._rows_move = self._depends_on_time(user)
        self.rheonomic = self.base.rheonomic or self._rows_move
        self.sizes = {**self.base.sizes, "t": 1, "multipliers": len(self.labels)}
        self.group = self.base.group
        offered = [n for n in (*BELOW, *CHANGED) if n in self.base.offers]
        self.offers = tuple(dict.fromkeys((*offered, *ADDED)))
        self.own = {
            "consistency": Recipe(("x", "v", *LOADS[""]), _consistency),
            "wrench_of_multipliers": Recipe(("x", "multipliers"), _wrench_of),
            "projected_x": Recipe(("x",), self._projected_x),
            "projected_v": Recipe(("x", "v"), _projected_v),
        }

    # ------------------------------------------------------------------ rows

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """A name for every row."""
        rows = self.base.at(*self._symbols()).rows
        kept = 0 if rows is None else rows.A.shape[0]
        own = tuple(f"{self.base.name}[{i}]" for i in range(kept))
        return sum((constraint.labels(self.base) for constraint in self.constraints), own)

    @cached_property
    def units(self) -> tuple[str, ...]:
        """A unit for the position error of every row; empty where it is not known."""
        parts = [c.units(c.size(self.base)) for c in self.constraints]
        known = sum(parts, ())
        return ("",) * (len(self.labels) - len(known)) + known

    @cached_property
    def tolerances(self) -> np.ndarray:
        """Largest position error of every row with which it counts as met."""
        own = sum(constraint.size(self.base) for constraint in self.constraints)
        parts = [np.full(len(self.labels) - own, CLOSED)]
        for constraint in self.constraints:
            loop = constraint.loop if isinstance(constraint, Closed) else None
            tolerance = CLOSED if loop is None else loop.tolerance
            parts.append(np.full(constraint.size(self.base), tolerance))
        return np.concatenate(parts)

    @cached_property
    def rank_tolerance(self) -> float:
        """What counts as zero among rows of unit size: loops that are rounded are redundant so."""
        return max(TOLERANCE, 10.0 * float(self.tolerances.max(initial=0.0)))

    def _symbols(self) -> tuple[Matrix, Matrix, Matrix]:
        sizes = self.base.sizes
        return ca.SX.sym("x", sizes["x"]), ca.SX.sym("v", sizes["v"]), ca.SX.sym("t")

    def _depends_on_time(self, constraints: list[Constraint]) -> bool:
        if not constraints:
            return False
        state = self.base.at(*self._symbols())
        parts = [constraint.rows(state) for constraint in constraints]
        values = [
            ca.vec(value)
            for part in parts
            for value in (part.A, part.b, part.position, part.velocity)
        ]
        return ca.depends_on(ca.vertcat(*values), state.t)

    @cached_property
    def semidefinite(self) -> bool:
        """Whether M is taken as singular, so that only the constraints make motion unique."""
        if self._semidefinite is not None:
            return self._semidefinite
        if self.base.name != "tree":
            return False
        rng = np.random.default_rng(0)
        masses = (self.base.numbers("mass", x=self.machine.random(rng))[0] for _ in range(3))
        return any(_singular(M) for M in masses)

    # ------------------------------------------------------------------ the contract

    def at(self, x: Matrix, v: Matrix | None = None, t: Any = 0) -> ConstrainedState:
        """Return a symbolic state; without v the machine is at rest."""
        return ConstrainedState(self, self.base.at(x, v, ca.SX(t)))

    def rate_matrix(self, x: Matrix) -> Matrix:
        """Return A (nx x nv) with dx/dt = A v."""
        return self.base.rate_matrix(x)

    def deviation(self, x: Matrix, v: Matrix, a: Matrix) -> tuple[Matrix, Matrix]:
        """Return W (nv x nv), ``W_ij = gamma^i_kj v^k``, and its rate along (v, a)."""
        return self.base.deviation(x, v, a)

    def takes_time(self, name: str) -> bool:
        """Tell whether a quantity depends on time: all that the rows enter, if one of them does."""
        kind = name.partition(":")[0]
        if kind in BELOW:
            return self.base.takes_time(name)
        return self._rows_move or super().takes_time(name) or self.base.takes_time(name)

    keeps = True

    def start(self, x: np.ndarray, v: np.ndarray, parameters: Any = None) -> tuple[Any, Any]:
        """Return a state of the joints in these coordinates, brought onto the constraints."""
        return self.consistent(*self.base.start(x, v, parameters), parameters)

    def consistent(
        self, x: np.ndarray, v: np.ndarray, parameters: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return a state brought onto the constraints; refuse one that is far off.

        Raises
        ------
        ClosureError
            If the nearest state that meets the constraints is more than `CONSISTENT` away.
        """
        nearest = self.project(x, v, limits=False, parameters=parameters)
        moved = np.abs(np.asarray(x) - nearest.x).max(initial=0.0)
        turned = np.abs(v - nearest.v).max(initial=0.0)
        if max(moved, turned) > CONSISTENT:
            what = "configuration" if moved > CONSISTENT else "velocity"
            raise ClosureError(
                f"the first {what} does not meet the constraints of `{self.machine.name}`: the "
                f"nearest that does is {max(moved, turned):.3g} away; "
                'use `framefree.equations(machine, "constrained").project(x, v)`',
                {what: float(max(moved, turned))},
            )
        return nearest.x, nearest.v

    def restore(self, x: Matrix, v: Matrix, t: Matrix, rounds: int) -> tuple[Matrix, Matrix]:
        """Return a symbolic state after Newton steps onto the constraints, and a velocity step."""
        x, v = self.base.restore(x, v, t, rounds)

        def step(name: str, **inputs: Matrix) -> Matrix:
            function = self.functions[name]
            inputs |= {"t": t, "parameters": self.machine.parameters.symbols}
            return function(*(inputs[key] for key in function.name_in()))

        for _ in range(rounds):
            x = step("projected_x", x=x)
        return x, step("projected_v", x=x, v=v)

    # ------------------------------------------------------------------ quantities of its own

    def _projected_x(self, state: ConstrainedState) -> Outputs:
        """One Gauss-Newton step in the metric of M, damped where it would leave its own range."""
        step = -damped_step(state.definite_mass, state.rows.gradient, state.rows.position)
        return {"projected": vector(self.integrate(state.x, step))}

    def integrate(self, x: Any, dv: Any) -> Any:
        """Move x by dv on the groups of the coordinates."""
        return self.base.integrate(x, dv)

    @cached_property
    def closed(self) -> list[Closed]:
        """The constraints that are loops."""
        return [c for c in self.constraints if isinstance(c, Closed)]


BELOW = (
    *("mass", "bias", "coriolis", "gravity", "inverse", "rate_matrix", "joint_state"),
    *BODIES,
    *SHARES,
    *("energy", "dissipation", "momentum"),
    *INPUTS,
    *("inverse_derivatives", "inverse_sensitivity", "linearisation"),
    *REGRESSORS,
    *FRAMES,
)
"""What the rows do not change; offered where the formulation below offers it."""

CHANGED = (
    "forward",
    "power",
    "joint_wrench",
    "forward_derivatives",
    "forward_sensitivity",
    "state_matrices",
)
"""What the rows change; offered where the formulation below offers it."""

ADDED = ("constraint", "constraint_force", "multipliers", "loop_wrench")
"""What the rows bring."""


def _consistency(state: ConstrainedState, force: Matrix) -> Outputs:
    motion = state.motion(state.generalised(load_of("", state, force)))
    return {"rank": scalar(motion.rank), "residual": scalar(motion.residual)}


def _wrench_of(state: ConstrainedState, multipliers: Matrix) -> Outputs:
    """Return what multipliers alone make the joints and loops carry."""
    load, still = Load(state.machine), ca.SX(state.v.shape[0], 1)
    held = load.plus(wrenches=state.loads_of(multipliers))
    pairs = zip(
        state.base.carried_wrenches(still, held),
        state.base.carried_wrenches(still, load),
        strict=True,
    )
    joints = [with_them - without for with_them, without in pairs]
    return {"joints": table(joints, 6), "loops": table(state.wrenches_of(multipliers), 6)}


def _projected_v(state: ConstrainedState) -> Outputs:
    still = ca.SX(state.v.shape[0], 1)
    step = state.system(PROJECTION).solve(still, state.rows.velocity)
    return {"projected": vector(state.v - step)}


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
