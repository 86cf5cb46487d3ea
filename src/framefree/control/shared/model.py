"""The model of a law in independent velocities: those of all joints, or what loops leave of them.

    M a + h = force,    x_tree = x,    v_tree = E v,    force = E^T (joint forces)

For a machine without loops and couplings E is the identity. With them, the law gets the whole
state of the joints, closed, and works in the velocities of the independent joints only; the others
follow (`framefree.motion.embedded`). Nothing here has loops to solve: x is closed already.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.shared.frames import FrameMotion, Frames
from framefree.machine import Machine
from framefree.machine.joint import Joint
from framefree.motion import Equations, equations, forces
from framefree.motion.actuation import input_bias, input_matrix
from framefree.motion.constrained.project import ClosureError
from framefree.motion.embedded import Embedded
from framefree.motion.embedded.state import EmbeddedState
from framefree.motion.spatial import symmetric
from framefree.motion.state import Jacobian, State

Matrix = Any


class IndependentJoint(NamedTuple):
    """A joint, and which of its velocities are independent."""

    joint: Joint
    chosen: tuple[int, ...]

    @property
    def v_names(self) -> tuple[str, ...]:
        """Names of these velocities."""
        return tuple(self.joint.v_names[k] for k in self.chosen)

    @property
    def size(self) -> int:
        """How many."""
        return len(self.chosen)


class Model:
    """A machine in independent velocities.

    Parameters
    ----------
    machine : Machine
    independent : sequence of str, optional
        Names of the independent velocities of a machine with loops or couplings; by default they
        are chosen, joints with actuators first.
    whole_joints : bool
        Whether of ball, planar and free joints all velocities must be among them, or none, as laws
        with errors of joints need it.

    Attributes
    ----------
    joints : tuple of IndependentJoint
        In the machine's order.
    v_names : tuple of str
    chosen : list of int
        Places of the independent velocities among the machine's.
    """

    def __init__(
        self,
        machine: Machine,
        independent: Sequence[str] | None = None,
        *,
        whole_joints: bool = True,
    ) -> None:
        self.machine = machine
        self._embedded: Embedded | None = None
        names: Sequence[str] = machine.v_names
        if machine.closed:
            if independent is None and not machine.loops:
                targets = {coupling.target for coupling in machine.couplings}
                independent = [name for name in machine.v_names if name not in targets]
            self._embedded = Embedded(machine, independent=independent)
            names = self._embedded.v_names
        elif independent is not None and set(independent) != set(names):
            raise ControlError(
                f"`{machine.name}` has no loops and no couplings: all its velocities are "
                f"independent, not only {', '.join(independent) or 'none'}"
            )
        self.joints = _independent(machine, names, whole_joints)
        self.v_names = tuple(name for joint in self.joints for name in joint.v_names)
        self.chosen = [machine.v_names.index(name) for name in self.v_names]
        # The map may have its own order of velocities; ours is the machine's.
        self._order = [list(names).index(name) for name in self.v_names]

    @property
    def n(self) -> int:
        """Number of independent velocities."""
        return len(self.v_names)

    def at(self, x: Matrix, v: Matrix, t: Matrix = 0) -> "ModelState":
        """Return a state of the joints (x, v), closed, at a time."""
        if self._embedded is None:
            return ModelState(self, self._tree.at(x, v, t))
        own = ca.SX(self.n, 1)
        own[self._order] = v[self.chosen]
        return ModelState(self, self._embedded.at(x, own, t))

    def samples(self, count: int) -> list[np.ndarray]:
        """Return configurations of the joints at which the machine can be."""
        rng = np.random.default_rng(0)
        if self._embedded is None:
            return list(self.machine.numeric.random(rng, count))
        closed = self._embedded.constrained
        start, samples = closed.assemble(), []
        for _ in range(count):
            near = self.machine.integrate(start, 0.3 * rng.normal(size=self.machine.nv))
            try:
                samples.append(closed.project(near, weight="unit").x)
            except ClosureError:
                continue
        return samples or [start]

    @cached_property
    def _tree(self) -> Equations:
        return equations(self.machine.tree)

    @cached_property
    def still(self) -> Equations:
        """The tree in a fluid at rest."""
        fluid = self.machine.fluid
        if fluid is None:
            return self._tree
        still = replace(fluid, current=np.zeros(3))
        return equations(replace(self.machine.tree, fluid=still))


class ActuatedState:
    """A state of a tree of joints, seen in velocities w that a law commands: v = E w + (drift).

    Parameters
    ----------
    tree : State
    E : (nv x n), optional
        By default the identity: all velocities.
    """

    def __init__(self, tree: State, E: Matrix | None = None) -> None:
        self.tree, self._basis = tree, E

    def reduced(self, joint_forces: Matrix) -> Matrix:
        """Return the forces (n) on w that forces (nv) at all joints amount to."""
        return joint_forces if self._basis is None else self._basis.T @ joint_forces

    @cached_property
    def mass(self) -> Matrix:
        """Mass matrix M (n x n)."""
        M = self.tree.mass
        return M if self._basis is None else symmetric(self._basis.T @ M @ self._basis)

    @cached_property
    def B(self) -> Matrix:
        """Force per unit of every input (n x nu)."""
        # Exact zeros first: a direction that no input reaches must not count through E.
        return self.reduced(ca.sparsify(input_matrix(self.tree), 1e-14))

    @cached_property
    def input_bias(self) -> Matrix:
        """Force (n) of the actuators without input."""
        return self.reduced(input_bias(self.tree))


class ModelState(ActuatedState):
    """A state of a `Model`; everything is computed when first asked for."""

    def __init__(self, model: Model, state: State | EmbeddedState) -> None:
        self.model = model
        self._embedded = state if isinstance(state, EmbeddedState) else None
        tree = state.tree if isinstance(state, EmbeddedState) else state
        super().__init__(tree, None if self._embedded is None else self.E)

    @cached_property
    def v(self) -> Matrix:
        """Independent velocities (n)."""
        return self.tree.v[self.model.chosen]

    @cached_property
    def E(self) -> Matrix:
        """Velocities of all joints per independent one (nv x n)."""
        if self._embedded is None:
            return ca.DM.eye(self.model.n)
        return self._embedded.chart.E[:, self.model._order]

    @cached_property
    def E_rate(self) -> Matrix:
        """Rate of E along the motion (nv x n)."""
        if self._embedded is None:
            return ca.SX(self.model.n, self.model.n)
        return self._embedded.chart.rate[:, self.model._order]

    @cached_property
    def drift(self) -> Matrix:
        """Rates (nv) of all velocities where the independent ones keep theirs: dE/dt v."""
        if self._embedded is None:
            return ca.SX(self.tree.v.shape[0], 1)
        return self._embedded.acceleration()

    @property
    def margin(self) -> Matrix:
        """How well the independent velocities determine the others, at most 1."""
        return ca.SX(1) if self._embedded is None else self._embedded.chart.margin

    @cached_property
    def mass(self) -> Matrix:
        """Mass matrix M (n x n)."""
        if self._embedded is None:
            return self.tree.mass
        order = self.model._order
        return self._embedded.mass[order, order]

    def inverse(self, a: Matrix) -> Matrix:
        """Return the force (n) for an acceleration (n), all passive forces included."""
        if self._embedded is None:
            return self.tree.inverse(a)
        own = ca.SX(self.model.n, 1)
        own[self.model._order] = a
        return self._embedded.inverse(own)[self.model._order]

    @cached_property
    def holding(self) -> Matrix:
        """Force (n) that holds the machine still against gravity, springs and all else at rest."""
        rest = self.model.still.at(self.tree.x, None, self.tree.t)
        return self.reduced(rest.inverse(ca.SX(self.tree.v.shape[0], 1)))

    @cached_property
    def passive_power(self) -> Matrix:
        """Power (W) of what acts on the moving machine beyond what `holding` holds it against.

        That of friction, dampers and a moving fluid, and of interactions by their twist.
        """
        bodies = self.tree.bodies
        if not bodies.machine.interactions:
            return self.tree.passive_power
        known = forces.interaction_power(bodies)
        return self.tree.passive_power - known + forces.interaction_power_about_rest(bodies)

    def jacobian(self, frame: str) -> Jacobian:
        """Return the body Jacobian of a frame (6 x n), and its rate."""
        if self._embedded is None:
            return self.tree.jacobian(frame)
        value, rate = self._embedded.jacobian(frame)
        return Jacobian(value[:, self.model._order], rate[:, self.model._order])

    def frame(self, frame: str) -> FrameMotion:
        """Return the motion of a frame in world axes, with Jacobians over w."""
        if self._embedded is None:
            return Frames(self.tree).at(frame)
        return FrameMotion.of(self.tree.frame_pose(frame), self.jacobian(frame), self.v)


def at_configurations(
    machine: Machine, x: Matrix, value: Matrix, samples: Iterable[np.ndarray]
) -> list[np.ndarray]:
    """Return a function of x alone, and of tunable numbers at their defaults, at configurations."""
    parameters = machine.parameters
    symbols, values = ([parameters.symbols], [parameters.defaults]) if len(parameters) else ([], [])
    function = ca.Function("at_configurations", [x, *symbols], [ca.densify(ca.SX(value))])
    return [function(sample, *values).full() for sample in samples]


def _independent(
    machine: Machine, names: Sequence[str], whole: bool
) -> tuple[IndependentJoint, ...]:
    joints = []
    for joint in machine.joints:
        chosen = tuple(k for k, name in enumerate(joint.v_names) if name in names)
        if whole and chosen and len(chosen) < joint.nv and not joint.kind.vector:
            listed = ", ".join(joint.v_names[k] for k in chosen)
            raise ControlError(
                f"of joint `{joint.name}` only {listed} would be independent; choose `independent` "
                "so that all its velocities are, or none"
            )
        if chosen:
            joints.append(IndependentJoint(joint, chosen))
    return tuple(joints)
