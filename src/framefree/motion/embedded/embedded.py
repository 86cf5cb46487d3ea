"""The embedded formulation: closed chains in minimal coordinates, as plain ODEs.

The tree's configuration follows from minimal coordinates, q_hat = Xi(q), and with E = dXi/dq
[Dastranj2026]:

    J_b = Jhat_b E,     Gamma_b = J_b^T M_b J_b,     Gamma = sum_b Gamma_b
    Gamma a + h = force,     h = E^T (tree's inverse dynamics at accelerations dE/dt v)

Every body's share Gamma_b stays apart, as a quantity of its own: on a body's numbers only its own
share depends. The map Xi is given in closed form, by couplings or by the user; or the machine's
loops are solved, by Newton's method for configurations and by a linear solve for E.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.machine import Machine, MachineError
from framefree.motion.constrained import Constrained
from framefree.motion.constrained.carrier import TreeCarrier
from framefree.motion.constrained.project import CLOSED
from framefree.motion.constrained.rows import Constraint
from framefree.motion.constrained.solve import numerical_rank
from framefree.motion.constrained.states import numbers
from framefree.motion.constrained.wrenches import joint_wrenches, loads
from framefree.motion.embedded.choice import ClosureRows, choose, margin, singular
from framefree.motion.embedded.maps import SINGULAR, Embedding, Expression, Map, Solved
from framefree.motion.embedded.state import EmbeddedState
from framefree.motion.equations import Equations, Output, Quantity
from framefree.motion.spatial import Matrix
from framefree.motion.tree import Tree

Outputs = dict[str, Output]


class Embedded(Equations):
    """Equations of motion of a machine in minimal coordinates.

    Parameters
    ----------
    machine : Machine
    embedding : Embedding, optional
        A closed form of the tree's configuration. Without, couplings are taken as the closed form
        if the machine has no loops; with loops, the loops (and couplings) are solved.
    independent : sequence of str, optional
        Which velocities are the independent ones where loops are solved; by default they are
        chosen at `start`, joints with actuators first.
    start : (nx,), optional
        A configuration near which the loops can be closed; default the neutral one.

    Attributes
    ----------
    x_names, v_names : tuple of str
        Names of the coordinates and velocities.

    Notes
    -----
    Where loops are solved, x is the configuration of the whole tree, which must be closed
    (`close`), and v holds the independent velocities only. Near positions in which the independent
    velocities do not determine the others, `close` refuses, naming the loop, and compiled calls
    return values that are not finite.

    Forces are those on the minimal coordinates; `generalised_force(x, joint_force)` makes them of
    forces at all joints of the tree. Beside what every formulation has, there are

        body_mass(x)        (bodies, n, n): Gamma_b, with the rotor of the joint that moves body b
        body_gravity(x)     (bodies, n): share of each body in `gravity`
        body_kinetic(x, v)  (bodies,): kinetic energy of each body
        tree_state(x, v)    configuration, velocity and E of the tree
        loop_wrench(x, v, force)    (loops, 6): frame a on frame b, in b's axes
        joint_wrench:joint_force(x, v, joint_force)     where forces act at all joints
    """

    name = "embedded"

    def __init__(
        self,
        machine: Machine,
        embedding: Embedding | None = None,
        *,
        independent: Sequence[str] | None = None,
        start: Any = None,
    ) -> None:
        super().__init__(machine)
        self.constrained = Constrained(machine)
        self.tree = Tree(replace(machine, loops=(), couplings=()))
        self._carrier = TreeCarrier(self.tree.model)
        self.rows = ClosureRows(self.constrained, self._carrier)
        self.map = self._map(embedding, independent, start)
        n = self.map.nv
        self.sizes = {"x": self.map.nx, "v": n, "a": n, "force": n, "joint_force": machine.nv}
        self.quantities = self._own_quantities()

    def _own_quantities(self) -> dict[str, Quantity]:
        state, full = ("x", "v"), ("x", "v", "force")
        return {
            "mass": Quantity(("x",), self._mass),
            "bias": Quantity(state, self._bias),
            "coriolis": Quantity(state, lambda x, v: self._coriolis("coriolis", x, v)),
            "gravity": Quantity(("x",), self._gravity),
            "forward": Quantity(full, self._forward),
            "inverse": Quantity(("x", "v", "a"), self._inverse),
            "body_pose": self._of_tree("body_pose"),
            "body_velocity": self._of_tree("body_velocity"),
            "body_acceleration": self._of_tree("body_acceleration"),
            "energy": self._of_tree("energy"),
            "dissipation": self._of_tree("dissipation"),
            "momentum": self._of_tree("momentum"),
            "joint_wrench": Quantity(full, self._joint_wrench),
            "power": self._of_tree("power"),
            "body_mass": Quantity(("x",), self._body_mass),
            "body_gravity": Quantity(("x",), self._body_gravity),
            "body_kinetic": Quantity(state, self._body_kinetic),
            "tree_state": Quantity(state, self._tree_state),
            "closure": Quantity(("x",), self._closure),
            "generalised_force": Quantity(("x", "joint_force"), self._generalised_force),
            "loop_wrench": Quantity(full, self._loop_wrench),
            "joint_wrench:joint_force": Quantity(
                ("x", "v", "joint_force"), self._joint_wrench_of_joint_force
            ),
        }

    def quantity(self, name: str) -> Quantity:
        """Return the recipe of a quantity, `jacobian:FRAME` and `body_mass:BODY` included."""
        if name in self.quantities:
            return self.quantities[name]
        kind, _, which = name.partition(":")
        if kind == "coriolis" and which:
            return Quantity(("x", "v"), lambda x, v: self._coriolis(name, x, v))
        if kind == "jacobian":
            return Quantity(("x",), lambda x: self._jacobian(which, x, None, 0))
        if kind == "jacobian_rate":
            return Quantity(("x", "v"), lambda x, v: self._jacobian(which, x, v, 1))
        if kind == "frame_pose":
            return self._of_tree(name)
        if kind == "body_mass" and which:
            index = self.machine.body_index[self.machine.body(which).name]
            return Quantity(("x",), lambda x: {"mass": self._square(self.at(x).body_masses[index])})
        return super().quantity(name)

    # ------------------------------------------------------------------ the map

    @property
    def x_names(self) -> tuple[str, ...]:
        """A name for every configuration number."""
        return self.map.x_names

    @property
    def v_names(self) -> tuple[str, ...]:
        """A name for every velocity."""
        return self.map.v_names

    def at(self, x: Matrix, v: Matrix | None = None) -> EmbeddedState:
        """Return a symbolic state."""
        return EmbeddedState(self.map, self._carrier, x, v)

    def rate_matrix(self, x: Matrix) -> Matrix:
        """Return the matrix (nx x nv) with dx/dt = rate_matrix v, of casadi columns."""
        return self.map.rate_matrix(x)

    def integrate(self, x: Any, dv: Any) -> Any:
        """Move x by dv on the groups of the coordinates, in numbers closing the loops again."""
        if isinstance(self.map, Expression) or isinstance(x, ca.SX) or isinstance(dv, ca.SX):
            return self.map.integrate(x, dv)
        _, v_tree, _ = numbers(self, "tree_state", x=x, v=dv)
        return self.close(self.machine.integrate(np.asarray(x, float), v_tree), limits=False)

    def expand(self, x: Any, v: Any, parameters: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return configuration and velocity of the tree at one state."""
        x_tree, v_tree, _ = numbers(self, "tree_state", parameters, x=x, v=v)
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
        self, embedding: Embedding | None, independent: Sequence[str] | None, start: Any
    ) -> Map:
        machine = self.machine
        if embedding is not None:
            found = Expression.by_function(machine, embedding)
            self._check_closed(found, embedding)
            return found
        if not machine.loops and independent is None:
            return Expression.by_couplings(machine)
        x = self.rows.generic(self.constrained.assemble(start))
        A = self.rows(x)
        names = choose(machine, A) if independent is None else tuple(independent)
        found = Solved(machine, self._carrier, names)
        rank = numerical_rank(A, SINGULAR)
        if len(found.dependent) != rank:
            raise MachineError(
                f"the loops of `{machine.name}` leave {machine.nv - rank} velocities independent, "
                f"got {len(names)}: {', '.join(names)}"
            )
        if margin(A, found.dependent) < SINGULAR:
            owners = [label.partition("[")[0] for label in self.constrained.labels]
            raise singular(machine, A, owners, found.dependent)
        return found

    def _check_closed(self, found: Expression, embedding: Embedding) -> None:
        """Refuse a map that does not close the machine's loops or meet its couplings."""
        if not (self.machine.loops or self.machine.couplings):
            return
        sample = np.zeros(found.nv) if embedding.sample is None else np.asarray(embedding.sample)
        q, v = ca.SX.sym("x", found.nx), ca.SX.sym("v", found.nv)
        parameters = self.machine.parameters
        function = ca.Function("x", [q, v, parameters.symbols], [found.at(q, v).x])
        x = function(sample, np.zeros(found.nv), parameters.values()).full().ravel()
        phi = numbers(self.constrained, "constraint", x=x, v=np.zeros(self.machine.nv))[2]
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

    # ------------------------------------------------------------------ quantities

    def _of_tree(self, name: str) -> Quantity:
        """Return the tree's quantity of this name, at the tree's state."""
        quantity = self.tree.quantity(name)

        def trace(x: Matrix, v: Matrix | None = None, **more: Matrix) -> Outputs:
            state = self.at(x, v)
            inputs = {"x": state.chart.x, "v": state.tree.v}
            if "a" in more:
                inputs["a"] = state.acceleration(more["a"])
            if "force" in more:
                inputs["force"] = self.map.spread(state.chart, more["force"])
            return quantity.trace(**{key: inputs[key] for key in quantity.inputs})

        return Quantity(quantity.inputs, trace)

    def _mass(self, x: Matrix) -> Outputs:
        return {"mass": self._square(self.at(x).mass)}

    def _body_mass(self, x: Matrix) -> Outputs:
        parts, n = self.at(x).body_masses, self.map.nv
        return {"mass": Output(ca.vertcat(ca.SX(0, n), *parts), (len(parts), n, n))}

    def _body_gravity(self, x: Matrix) -> Outputs:
        parts, n = [part.T for part in self.at(x).body_gravities], self.map.nv
        return {"gravity": Output(ca.vertcat(ca.SX(0, n), *parts), (len(parts), n))}

    def _body_kinetic(self, x: Matrix, v: Matrix) -> Outputs:
        parts = [ca.dot(v, Gamma @ v) / 2 for Gamma in self.at(x).body_masses]
        return {"kinetic": Output(ca.vertcat(ca.SX(0, 1), *parts), (len(parts),))}

    def _bias(self, x: Matrix, v: Matrix) -> Outputs:
        return {"bias": self._vector(self.at(x, v).bias)}

    def _inverse(self, x: Matrix, v: Matrix, a: Matrix) -> Outputs:
        return {"force": self._vector(self.at(x, v).inverse(a))}

    def _forward(self, x: Matrix, v: Matrix, force: Matrix) -> Outputs:
        return {"a": self._vector(self.at(x, v).forward(force))}

    def _gravity(self, x: Matrix) -> Outputs:
        parts = self.at(x).body_gravities
        return {"gravity": self._vector(sum(parts, ca.SX(self.map.nv, 1)))}

    def _coriolis(self, name: str, x: Matrix, v: Matrix) -> Outputs:
        """Return ``C = E^T (M dE/dt + C_tree E)``: skew wherever the tree's is."""
        state = self.at(x, v)
        E, rate = state.chart.E, state.chart.rate
        # Some of the tree's matrices come by differentiation and need its own symbols.
        symbols = ca.SX.sym("x", self.machine.nx), ca.SX.sym("v", self.machine.nv)
        C = ca.SX(self.tree.quantity(name).trace(*symbols)["coriolis"].value)
        values = [ca.densify(ca.SX(value)) for value in (state.chart.x, state.tree.v)]
        (C,) = ca.substitute([C], list(symbols), values)
        return {"coriolis": self._square(E.T @ (state.tree.mass @ rate + C @ E))}

    def _jacobian(self, frame: str, x: Matrix, v: Matrix | None, which: int) -> Outputs:
        return {"jacobian": Output(self.at(x, v).jacobian(frame)[which], (6, self.map.nv))}

    def _tree_state(self, x: Matrix, v: Matrix) -> Outputs:
        state, (nx, nv) = self.at(x, v), (self.machine.nx, self.machine.nv)
        return {
            "tree_x": Output(state.chart.x, (nx,)),
            "tree_v": Output(state.tree.v, (nv,)),
            "E": Output(state.chart.E, (nv, self.map.nv)),
        }

    def _closure(self, x: Matrix) -> Outputs:
        chart = self.at(x).chart
        state = self._carrier.at(chart.x)
        parts = [c.rows(self._carrier, state, ca.SX(0)) for c in self.constrained.constraints]
        error = ca.vertcat(ca.SX(0, 1), *(part.position for part in parts))
        return {"margin": Output(chart.margin, ()), "error": Output(error, (error.shape[0],))}

    def _generalised_force(self, x: Matrix, joint_force: Matrix) -> Outputs:
        return {"force": self._vector(self.at(x).chart.E.T @ joint_force)}

    def _joint_wrench(self, x: Matrix, v: Matrix, force: Matrix) -> Outputs:
        state = self.at(x, v)
        return self._carried(state, force, self.map.spread(state.chart, force))

    def _joint_wrench_of_joint_force(self, x: Matrix, v: Matrix, joint_force: Matrix) -> Outputs:
        state = self.at(x, v)
        return self._carried(state, state.chart.E.T @ joint_force, joint_force)

    def _carried(self, state: EmbeddedState, force: Matrix, joint_force: Matrix) -> Outputs:
        a = state.forward(force)
        wrenches = state.loop_wrenches(self._constraints, a, joint_force)
        acting = loads(state.tree, zip(self.constrained.closed, wrenches, strict=True))
        return {"wrench": joint_wrenches(state.tree, state.acceleration(a), acting)}

    def _loop_wrench(self, x: Matrix, v: Matrix, force: Matrix) -> Outputs:
        state = self.at(x, v)
        joint_force = self.map.spread(state.chart, force)
        wrenches = state.loop_wrenches(self._constraints, state.forward(force), joint_force)
        rows = [wrench.T for wrench in wrenches]
        return {"wrench": Output(ca.vertcat(ca.SX(0, 6), *rows), (len(rows), 6))}

    @cached_property
    def _constraints(self) -> list[Constraint]:
        return list(self.constrained.constraints)

    def _vector(self, value: Matrix) -> Output:
        return Output(value, (self.map.nv,))

    def _square(self, value: Matrix) -> Output:
        return Output(value, (self.map.nv, self.map.nv))
