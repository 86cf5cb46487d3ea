"""The embedded formulation: closed chains in minimal coordinates, as plain ODEs.

The tree's configuration follows from minimal coordinates, q_hat = Xi(q), and with E = dXi/dq
[Dastranj2026]:

    J_b = Jhat_b E,     Gamma_b = J_b^T M_b J_b,     Gamma = sum_b Gamma_b
    Gamma a + h = force,     h = E^T (tree's inverse dynamics at accelerations dE/dt v)

Every body's shares (`framefree.motion.partition`) are quantities, too: on a body's numbers only its
own share depends. The map Xi is given in closed form, by couplings or by the user; or the machine's
loops are solved, by Newton's method for configurations and by a linear solve for E.
"""

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from framefree.machine import Machine, MachineError
from framefree.motion.constrained import Constrained
from framefree.motion.constrained.closing import BeyondLimits
from framefree.motion.constrained.constrained import CONSISTENT
from framefree.motion.constrained.project import CLOSED, ClosureError
from framefree.motion.constrained.solve import numerical_rank
from framefree.motion.embedded.choice import ClosureRows, choose, driven_targets, margin, singular
from framefree.motion.embedded.groups import ClosedGroup, MinimalGroup
from framefree.motion.embedded.maps import SINGULAR, Embedding, Expression, Map, Solved
from framefree.motion.embedded.state import EmbeddedState
from framefree.motion.equations import Equations
from framefree.motion.groups import Group
from framefree.motion.quantities import Outputs, Recipe, matrix, scalar, vector
from framefree.motion.spatial import Matrix
from framefree.motion.tree import Tree


class Embedded(Equations):
    """Equations of motion of a machine in minimal coordinates.

    Parameters
    ----------
    machine : Machine
    embedding : Embedding, optional
        A closed form of the tree's configuration. Without, couplings are taken as the closed form
        if the machine has no loops; with loops, the loops (and couplings) are solved.
    independent : sequence of str, or "driven", optional
        Which velocities are the independent ones where loops are solved; by default they are
        chosen at `start`, joints with actuators first. With "driven" couplings give way to
        actuators, too: a driven coordinate is independent although a coupling says how it follows
        from others.
    start : (nx,), optional
        A configuration near which the loops can be closed; default the neutral one.

    Notes
    -----
    Where loops are solved, x is the configuration of the whole tree, which must be closed
    (`close`), and v holds the independent velocities only. Near positions in which the independent
    velocities do not determine the others, `close` refuses, naming the loop, and compiled calls
    return values that are not finite.

    Forces are those on the minimal coordinates; `generalised_force(x, joint_force)` makes them of
    forces at all joints of the tree. Beside what every formulation has, there are

        tree_state(x, v)    configuration, velocity and E of the tree
        loop_wrench(x, v, force)    (loops, 6): frame a on frame b, in b's axes
        closure(x)          how well the others follow (at most 1), and errors of the loops
    """

    name = "embedded"
    offers = (*Tree.offers, "loop_wrench")

    def __init__(
        self,
        machine: Machine,
        embedding: Embedding | None = None,
        *,
        independent: Sequence[str] | str | None = None,
        start: Any = None,
    ) -> None:
        super().__init__(machine)
        self.constrained = Constrained(machine)
        self.tree = Tree(machine.tree)
        self.rows = ClosureRows(self.constrained)
        self.map = self._map(embedding, independent, start)
        n = self.map.nv
        self.sizes = {
            "x": self.map.nx,
            **dict.fromkeys(("v", "a", "v_r", "a_r", "force"), n),
            "joint_force": machine.nv,
            "t": 1,
            "u": machine.nu,
        }
        self.x_names, self.v_names = self.map.x_names, self.map.v_names
        self.keeps = not isinstance(self.map, Expression)
        self.group: Group = (
            MinimalGroup(self.map)
            if isinstance(self.map, Expression)
            else ClosedGroup(self.map, machine)
        )
        self.own = {
            "tree_state": Recipe(("x", "v"), self._tree_state),
            "closure": Recipe(("x",), self._closure),
            "generalised_force": Recipe(("x", "joint_force"), self._generalised_force),
        }

    def own_recipe(self, name: str) -> Recipe | None:
        """Return a quantity of its own, `coriolis:NAME` included."""
        kind, _, which = name.partition(":")
        if kind == "coriolis" and which:
            return Recipe(("x", "v"), lambda state: self._named_coriolis(name, state))
        return super().own_recipe(name)

    # ------------------------------------------------------------------ the map

    def at(self, x: Matrix, v: Matrix | None = None, t: Any = 0) -> EmbeddedState:
        """Return a symbolic state; without v the machine is at rest."""
        return EmbeddedState(self, x, v, t)

    def start(self, x: np.ndarray, v: np.ndarray, parameters: Any = None) -> tuple[Any, Any]:
        """Return the minimal coordinates of a closed state of the joints, or of themselves."""
        if len(x) == self.map.nx and not self.keeps:
            return x, v
        x, v = self.constrained.consistent(x, v, parameters)
        minimal = self.reduce(x, v)
        if not self.keeps and self.machine.loops:
            self._check_tuned(x, *minimal, parameters)
        return minimal

    def _check_tuned(self, x: np.ndarray, q: np.ndarray, v: np.ndarray, parameters: Any) -> None:
        """Refuse a closed form that does not follow what numbers of the machine are tuned to."""
        gap = float(np.abs(self.machine.difference(x, self.expand(q, v, parameters)[0])).max())
        if gap > CONSISTENT:
            raise ClosureError(
                f"the embedding of `{self.machine.name}` gives a configuration {gap:.3g} off the "
                "closed one: another branch, or tunable numbers that its function does not take "
                "from `machine.parameters`",
                {"embedding": gap},
            )

    def restore(self, x: Matrix, v: Matrix, t: Matrix, rounds: int) -> tuple[Matrix, Matrix]:
        """Return a symbolic state with the loops closed again."""
        if not self.keeps:
            return x, v
        return self.constrained.restore(x, ca.SX(self.machine.nv, 1), t, rounds)[0], v

    def rate_matrix(self, x: Matrix) -> Matrix:
        """Return the matrix (nx x nv) with dx/dt = rate_matrix v, of casadi columns."""
        return self.map.rate_matrix(x)

    def integrate(self, x: Any, dv: Any) -> Any:
        """Move x by dv on the groups of the coordinates, in numbers closing the loops again."""
        if isinstance(self.map, Expression) or isinstance(x, ca.SX) or isinstance(dv, ca.SX):
            return self.map.integrate(x, dv)
        _, v_tree, _ = self.numbers("tree_state", x=x, v=dv)
        return self.close(self.machine.integrate(np.asarray(x, float), v_tree), limits=False)

    def expand(self, x: Any, v: Any, parameters: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return configuration and velocity of the tree at one state."""
        x_tree, v_tree, _ = self.numbers("tree_state", parameters, x=x, v=v)
        return x_tree, v_tree

    def reduce(self, x: Any, v: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the minimal state of a closed state of the tree, (n,) or (batch, n)."""
        x, v = np.asarray(x, float), np.asarray(v, float)
        reduced = self.map.reduce(x)
        assert self.map.independent is not None  # `Map.reduce` has refused what has no inverse
        return reduced, v[..., list(self.map.independent)]

    def close(self, x: Any, parameters: Any = None, *, limits: bool = True) -> np.ndarray:
        """Return x (nx,) with the loops closed by the dependent coordinates, the others kept.

        With `limits`, the dependent coordinates end within the limits of their joints.

        Raises
        ------
        SingularError
            Where the independent velocities do not determine the others, naming the loop.
        ClosureError
            If the loops cannot be closed from here, or only beyond limits.
        """
        if isinstance(self.map, Expression):
            return np.asarray(x, float)
        found = self.constrained.project(
            x, weight="unit", hold=self.map.v_names, limits=limits, parameters=parameters
        ).x
        A = self.rows(found, parameters)
        dependent = [k for k in range(self.machine.nv) if k not in (self.map.independent or ())]
        if margin(A, dependent) < SINGULAR:
            owners = [label.partition("[")[0] for label in self.constrained.labels]
            raise singular(self.machine, A, owners, dependent)
        return found

    def _map(
        self, embedding: Embedding | None, independent: Sequence[str] | str | None, start: Any
    ) -> Map:
        machine, by_couplings = self.machine, not self.machine.loops
        if independent == "driven":
            independent, by_couplings = None, by_couplings and not driven_targets(machine)
        elif isinstance(independent, str):
            raise MachineError(
                f'`independent` must be names of velocities or "driven", got {independent!r}'
            )
        if embedding is not None:
            found = Expression.by_function(machine, embedding)
            self._check_closed(found, embedding)
            return found
        if by_couplings and independent is None:
            return Expression.by_couplings(machine)
        x = self._closed_start(start)
        if independent is None:
            A = self.rows(self.rows.generic(x))
            found = Solved(machine, self.tree, choose(machine, A))
        else:
            found = Solved(machine, self.tree, tuple(independent))
            A = self.rows(self.rows.generic(x, found.dependent))
        rank = numerical_rank(A, SINGULAR)
        if len(found.dependent) != rank:
            raise MachineError(
                f"the loops of `{machine.name}` leave {machine.nv - rank} velocities independent, "
                f"got {len(found.v_names)}: {', '.join(found.v_names)}"
            )
        if margin(A, found.dependent) < SINGULAR:
            owners = [label.partition("[")[0] for label in self.constrained.labels]
            raise singular(machine, A, owners, found.dependent)
        return found

    def _closed_start(self, start: Any) -> np.ndarray:
        """Return a closed configuration near a start, within limits if one is reached."""
        try:
            return self.constrained.assemble(start)
        except BeyondLimits:
            return self.constrained.assemble(start, limits=False)

    def _check_closed(self, found: Expression, embedding: Embedding) -> None:
        """Refuse a map that does not close the machine's loops or meet its couplings."""
        if not self.machine.closed:
            return
        sample = np.zeros(found.nv) if embedding.sample is None else np.asarray(embedding.sample)
        q, v = ca.SX.sym("x", found.nx), ca.SX.sym("v", found.nv)
        parameters = self.machine.parameters
        function = ca.Function("x", [q, v, parameters.symbols], [found.at(q, v).x])
        x = function(sample, np.zeros(found.nv), parameters.values()).full().ravel()
        phi = self.constrained.numbers("constraint", x=x, v=np.zeros(self.machine.nv))[2]
        wrong = {
            label.partition("[")[0]: value
            for label, value in zip(self.constrained.labels, phi, strict=True)
            if not abs(value) < CLOSED
        }
        if wrong:
            listed = ", ".join(f"`{name}` by {abs(value):.3g}" for name, value in wrong.items())
            raise MachineError(
                f"at {sample.tolist()} the embedding does not meet {listed}; give a `sample` in "
                "its range if this is outside"
            )

    # ------------------------------------------------------------------ quantities of its own

    def _named_coriolis(self, name: str, state: EmbeddedState) -> Outputs:
        # Some of the tree's matrices come by differentiation and need its own symbols.
        symbols = ca.SX.sym("x", self.machine.nx), ca.SX.sym("v", self.machine.nv)
        (C,) = self.tree.quantity(name).trace(*symbols).values()
        values = [ca.densify(ca.SX(value)) for value in (state.joint_x, state.joint_v)]
        (C,) = ca.substitute([ca.SX(C.value)], list(symbols), values)
        return {"coriolis": matrix(state.coriolis_from(C))}

    def _tree_state(self, state: EmbeddedState) -> Outputs:
        return {
            "tree_x": vector(state.joint_x),
            "tree_v": vector(state.joint_v),
            "E": matrix(state.chart.E),
        }

    def _closure(self, state: EmbeddedState) -> Outputs:
        at_rest = self.tree.at(state.joint_x)
        parts = [constraint.rows(at_rest) for constraint in self.constrained.constraints]
        error = ca.vertcat(ca.SX(0, 1), *(part.position for part in parts))
        return {"margin": scalar(state.chart.margin), "error": vector(error)}

    def _generalised_force(self, state: EmbeddedState, joint_force: Matrix) -> Outputs:
        return {"force": vector(state.chart.E.T @ joint_force)}
