"""From minimal coordinates to the tree: ``x_tree = Xi(x)``, ``v_tree = E v``, and dE/dt.

`Expression` is a map in closed form: the machine's couplings, or what the user gives. `Solved` is
the map that the machine's loops imply: its x is the whole configuration of the tree, already
closed, its v the independent velocities, and E follows from the loops' rows by a linear solve,

    A_dep v_dep + A_ind v = 0,    E_dep = -A_dep^+ A_ind,    dE_dep/dt = -A_dep^+ (dA/dt E)

so that everything traced from it is closed form, too.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.machine import Machine, MachineError
from framefree.machine.tree import unknown
from framefree.motion.constrained.orthogonal import Orthogonal
from framefree.motion.constrained.rows import ConstraintRows, of_machine, stacked
from framefree.motion.constrained.scales import scales
from framefree.motion.spatial import Matrix, solve_symmetric
from framefree.motion.tree import Tree

SINGULAR = 1e-6
"""What must be left of a column of A_dep beside the others, relative to the length that `scales`
gives it; below this the loops are not solved."""


@dataclass(frozen=True)
class Embedding:
    """A map from minimal coordinates to a machine's configuration, in closed form.

    Parameters
    ----------
    names : sequence of str
        Of the minimal coordinates q, plain numbers with dq/dt = v. Where all of them are names of
        joint coordinates that the function hands on as they are, minimal states can be taken from
        those of the tree (`Embedded.reduce`).
    function : callable
        From the casadi column q to the configuration x of the tree (nx).
    sample : (n,), optional
        Coordinates in the range of the map, at which it is checked; default zeros.
    """

    names: Sequence[str]
    function: Callable[[Any], Any]
    sample: Any = None


class Chart(NamedTuple):
    """A point of the map: tree configuration x, E (nv_tree x n), dE/dt, and how well E is known.

    `margin` is at most 1; where it is below `SINGULAR`, E is not finite.
    """

    x: Matrix
    E: Matrix
    rate: Matrix
    margin: Matrix


class Map(ABC):
    """Base of maps from minimal coordinates (x, v) to the tree."""

    x_names: tuple[str, ...]
    v_names: tuple[str, ...]
    independent: tuple[int, ...] | None
    """Indices in the tree's v of the velocities that v consists of; None if it has others."""

    @property
    def nx(self) -> int:
        """Number of configuration numbers."""
        return len(self.x_names)

    @property
    def nv(self) -> int:
        """Number of velocities."""
        return len(self.v_names)

    @abstractmethod
    def at(self, x: Matrix, v: Matrix) -> Chart:
        """Return the tree's configuration, E and dE/dt at a state."""

    @abstractmethod
    def rate_matrix(self, x: Matrix) -> Matrix:
        """Return the matrix (nx x nv) with dx/dt = rate_matrix v."""

    @abstractmethod
    def integrate(self, x: Any, dv: Any) -> Any:
        """Move x by dv on the groups of the coordinates."""

    @abstractmethod
    def reduce(self, x: np.ndarray) -> np.ndarray:
        """Return the minimal configuration of a tree configuration that is closed."""

    def spread(self, chart: Chart, force: Matrix) -> Matrix:
        """Return joint forces (nv_tree) that amount to a force on the minimal coordinates.

        They act at the independent joints; if the coordinates are others, they are the shortest.
        """
        if self.independent is None:
            return chart.E @ solve_symmetric(chart.E.T @ chart.E, force)
        spread = ca.SX(chart.E.shape[0], 1)
        spread[list(self.independent)] = force
        return spread


class Expression(Map):
    """A map in closed form; make one with `by_couplings` or `by_function`."""

    def __init__(
        self,
        machine: Machine,
        names: tuple[tuple[str, ...], tuple[str, ...]],
        symbols: Matrix,
        configuration: Matrix,
        E: Matrix,
        rate_matrix: Matrix,
    ) -> None:
        self.machine = machine
        self.x_names, self.v_names = names
        self.independent = None
        self._kept: list[int] | None = None
        self._x, self._v = symbols, ca.SX.sym("v", len(self.v_names))
        velocity = rate_matrix @ self._v
        rate = ca.reshape(ca.jtimes(ca.vec(ca.densify(E)), self._x, velocity), *E.shape)
        self._outputs = [configuration, E, rate]
        self._rate_matrix = rate_matrix

    @classmethod
    def by_couplings(cls, machine: Machine) -> "Expression":
        """Return the map in which the targets of couplings follow from other coordinates."""
        targets = {coupling.target: coupling for coupling in machine.couplings}
        kept = [k for k, name in enumerate(machine.x_names) if name not in targets]
        # A target's joint has plain coordinates, so its x and v have the same names.
        kept_v = [k for k, name in enumerate(machine.v_names) if name not in targets]
        names = tuple(machine.x_names[k] for k in kept), tuple(machine.v_names[k] for k in kept_v)
        x = ca.SX.sym("x", len(kept))
        values: dict[str, Matrix] = dict(zip(names[0], ca.vertsplit(x), strict=True))

        def value(name: str) -> Matrix:
            if name not in values:
                coupling = targets[name]
                values[name] = ca.SX(coupling.value(*(value(s) for s in coupling.sources)))
            return values[name]

        full = ca.vertcat(ca.SX(0, 1), *(value(name) for name in machine.x_names))
        rates = ca.SX(machine.rate_matrix(full))[kept, kept_v]
        E = ca.SX(machine.nv, len(kept_v))
        E[kept_v, :] = ca.DM.eye(len(kept_v))
        for name in targets:
            E[machine.v_names.index(name), :] = ca.jacobian(values[name], x) @ rates
        expression = cls(machine, names, x, full, E, rates)
        expression.independent, expression._kept = tuple(kept_v), kept
        return expression

    @classmethod
    def by_function(cls, machine: Machine, embedding: Embedding) -> "Expression":
        """Return the map that the user defines."""
        names = tuple(embedding.names)
        q = ca.SX.sym("x", len(names))
        x = ca.densify(ca.SX(embedding.function(q)))
        if x.shape != (machine.nx, 1):
            raise MachineError(
                f"the embedding must give {machine.nx} coordinates ({', '.join(machine.x_names)}), "
                f"got shape {x.shape}"
            )
        A = machine.rate_matrix(x)
        # dx/dt = A v_tree: A has full column rank, so v_tree is its left inverse times dx/dt.
        E = ca.jacobian(x, q)
        if not all(joint.kind.vector for joint in machine.joints):
            E = solve_symmetric(A.T @ A, A.T @ E)
        expression = cls(machine, (names, names), q, x, E, ca.SX.eye(len(names)))
        kept = _own_coordinates(machine, names, q, x)
        if kept is not None:
            expression.independent, expression._kept = kept
        return expression

    def at(self, x: Matrix, v: Matrix) -> Chart:
        """Return the tree's configuration, E and dE/dt at a state."""
        state = [ca.densify(ca.SX(x)), ca.densify(ca.SX(v))]
        configuration, E, rate = ca.substitute(self._outputs, [self._x, self._v], state)
        return Chart(configuration, E, rate, ca.SX(1))

    def rate_matrix(self, x: Matrix) -> Matrix:
        """Return the matrix (nx x nv) with dx/dt = rate_matrix v."""
        return ca.substitute([self._rate_matrix], [self._x], [ca.densify(ca.SX(x))])[0]

    def integrate(self, x: Any, dv: Any) -> Any:
        """Move x by dv on the groups of the coordinates."""
        if self._kept is None or self.independent is None:
            return x + dv
        # The targets' coordinates are plain numbers, so anything may stand in their place.
        full, step = self.machine.neutral(), np.zeros(self.machine.nv)
        if isinstance(x, ca.SX | ca.DM) or isinstance(dv, ca.SX | ca.DM):
            full, step = ca.SX(ca.DM(full)), ca.SX(ca.DM(step))
            full[self._kept], step[list(self.independent)] = x, dv
            return self.machine.integrate(full, step)[self._kept]
        full = np.broadcast_to(full, (*np.shape(x)[:-1], len(full))).copy()
        step = np.broadcast_to(step, (*np.shape(dv)[:-1], len(step))).copy()
        full[..., self._kept], step[..., list(self.independent)] = x, dv
        return self.machine.integrate(full, step)[..., self._kept]

    def reduce(self, x: np.ndarray) -> np.ndarray:
        """Return the minimal configuration of a tree configuration that is closed."""
        if self._kept is None:
            raise MachineError(
                "an embedding given as a function cannot be inverted: choose minimal coordinates"
            )
        return x[..., self._kept]


class Solved(Map):
    """The map that the loops and couplings of a machine imply, in its own tree's configuration.

    Parameters
    ----------
    machine : Machine
    tree : Tree
        Equations of the machine without its loops and couplings.
    independent : sequence of str
        Velocities, as in `machine.v_names`, from which the loops determine all others.
    """

    def __init__(self, machine: Machine, tree: Tree, independent: Sequence[str]) -> None:
        for name in independent:
            if name not in machine.v_names:
                raise MachineError(unknown("independent velocity:", name, machine.v_names))
        self.machine, self.tree = machine, tree
        self.x_names, self.v_names = machine.x_names, tuple(independent)
        self._chosen = [machine.v_names.index(name) for name in independent]
        self.independent = tuple(self._chosen)
        self.dependent = [k for k in range(machine.nv) if k not in self._chosen]
        self.constraints = of_machine(machine, None)
        self.scales = scales(machine)

    def rows(self, x: Matrix, v: Matrix) -> ConstraintRows:
        """Return the rows of all loops and couplings at a state of the tree."""
        state = self.tree.at(x, v)
        parts = [constraint.rows(state) for constraint in self.constraints]
        return stacked(parts, self.machine.nv)

    def at(self, x: Matrix, v: Matrix) -> Chart:
        """Return the tree's configuration, E and dE/dt at a state."""
        A = self._weighted(self.rows(x, ca.SX(self.machine.nv, 1)).A)
        solver, margin = self._solver(A)
        refused = 1 / (margin > SINGULAR)
        E = self._filled(refused * _solved(solver, -A[:, self._chosen]), identity=True)
        A_rate = self._weighted(self.rows(x, E @ v).rate)
        rate = self._filled(_solved(solver, -(A_rate @ E)), identity=False)
        return Chart(x, E, rate, margin)

    def _weighted(self, A: Any) -> Matrix:
        """Return rows as lengths."""
        return ca.diag(ca.SX(ca.DM(self.scales.rows))) @ A

    def _solver(self, A: Matrix) -> tuple[Orthogonal, Matrix]:
        """Return the solver of the dependent columns, and the least share left of one of them."""
        columns = [A[:, k] for k in self.dependent]
        squares = (self.scales.columns[self.dependent] ** 2).tolist()
        solver = Orthogonal(columns, [ca.SX(1)] * len(columns), SINGULAR, squares)
        margin = ca.SX(1)
        for share in solver.share:
            margin = ca.fmin(margin, share)
        return solver, margin

    def _filled(self, dependent: Matrix, *, identity: bool) -> Matrix:
        full = ca.SX(self.machine.nv, self.nv)
        if identity:
            full[self._chosen, :] = ca.DM.eye(self.nv)
        full[self.dependent, :] = dependent
        return full

    def rate_matrix(self, x: Matrix) -> Matrix:
        """Return the matrix (nx x nv) with dx/dt = rate_matrix v."""
        return self.machine.rate_matrix(x) @ self.at(x, ca.SX(self.nv, 1)).E

    def integrate(self, x: Any, dv: Any) -> Any:
        """Move x by dv: to first order, along the loops; then close them (`Embedded.close`)."""
        if isinstance(x, ca.SX | ca.DM) or isinstance(dv, ca.SX | ca.DM):
            return self.machine.integrate(x, self.at(x, ca.SX(self.nv, 1)).E @ dv)
        raise MachineError("in numbers use `Embedded.integrate`, which closes the loops")

    def reduce(self, x: np.ndarray) -> np.ndarray:
        """Return the minimal configuration of a tree configuration that is closed."""
        return x


def _own_coordinates(
    machine: Machine, names: tuple[str, ...], q: Matrix, x: Matrix
) -> tuple[tuple[int, ...], list[int]] | None:
    """Return where q stands in the tree's v and x, if it consists of plain joint coordinates."""
    plain = {name for joint in machine.joints if joint.kind.vector for name in joint.x_names}
    if not plain.issuperset(names):
        return None
    kept = [machine.x_names.index(name) for name in names]
    if not all(ca.is_equal(x[k], q[i]) for i, k in enumerate(kept)):
        return None
    return tuple(machine.v_names.index(name) for name in names), kept


def _solved(solver: Orthogonal, right: Matrix) -> Matrix:
    rows = solver.solve(solver.components(right))
    return ca.vertcat(ca.SX(0, right.shape[1]), *rows)
