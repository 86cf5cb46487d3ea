"""The contract of `motion/`: one symbolic state of a machine in some formulation.

Everything that needs mechanics asks a `State` and nothing else: named quantities, plants,
constraints that are laid upon it, models of laws. The equations of motion of every formulation read

    M a + bias = force + A^T lam,      A a = b      (rows A only where the formulation keeps some)

To add a formulation, subclass `State` and give

1. ``mass``, ``inverse(a)`` and ``accelerate(force)``: M, the force for an acceleration with nothing
   held by rows, and the acceleration under a force on the velocities;
2. ``poses``, ``jacobian(frame)`` and ``accelerations(a)``: where the bodies are and how they move;
3. ``joint_x``, ``joint_v`` and ``joint_jacobian``: the state of the machine's joints, and the
   matrix with ``joint_v = joint_jacobian v``; ``joint_jacobian_rate``, its rate;
4. ``carried_wrenches(a, load)`` and ``loop_wrenches(load)``, where it knows what joints and loops
   carry;
5. ``coriolis`` and ``gravity_force``, where it has them;
6. ``rows`` and ``multipliers(load)``, where constraints are left in its coordinates;

and list what it has in `Equations.offers`. All else is derived here, once. Everything is computed
when first asked for. x and v are casadi columns; derivatives need them to be symbols.
"""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca

from framefree.geometry import se3
from framefree.machine import Machine
from framefree.motion import actuation, forces, tendons
from framefree.motion.load import Load
from framefree.motion.spatial import Matrix, SpatialWrench, Step, Twist, solve_symmetric

if TYPE_CHECKING:
    from framefree.motion.constrained.rows import ConstraintRows
    from framefree.motion.equations import Equations


class Jacobian(NamedTuple):
    """Jacobian J of a frame and its rate, each 6 x nv, in the axes of that frame."""

    value: Matrix
    rate: Matrix

    def into(self, step: Step, relative: Twist) -> "Jacobian":
        """Carry both to a frame that moves with twist `relative` (its own axes) on this one.

        J_ac = Ad_{G_cb} J_ab;  dJ_ac = Ad_{G_cb} dJ_ab - ad_{xi_bc} Ad_{G_cb} J_ab.
        """
        value = twists_into(step, self.value)
        ad = se3.little_adjoint(ca.vertcat(*relative))
        return Jacobian(value, twists_into(step, self.rate) - ad @ value)


class RelativeMotion(NamedTuple):
    """Frame b seen from frame a: pose G_ab, and J_ab with ``xi_ab = J_ab v`` in b's axes.

    `size` is the sum of squares of what J_ab is the difference of: a row of J_ab that is shorter
    than this by many orders is a rounding error.
    """

    G: Matrix
    jacobian: Jacobian
    size: Matrix

    @classmethod
    def of(cls, G_ab: Matrix, J_a: Jacobian, J_b: Jacobian, v: Matrix) -> "RelativeMotion":
        """Return J_ab = J_b - Ad_{G_ba} J_a and its rate."""
        step = step_of(G_ab)
        carried = Jacobian(twists_into(step, J_a.value), twists_into(step, J_a.rate))
        value = J_b.value - carried.value
        # d/dt Ad_{G_ba} = -ad_{xi_ab} Ad_{G_ba}
        rate = J_b.rate - carried.rate + se3.little_adjoint(value @ v) @ carried.value
        size = ca.sumsqr(J_b.value) + ca.sumsqr(carried.value)
        return cls(G_ab, Jacobian(value, rate), size)


class ConstraintError(NamedTuple):
    """Errors of constraints: a column, the names of its entries and their units."""

    value: Matrix
    names: tuple[str, ...] = ()
    units: tuple[str, ...] = ()


class State(ABC):
    """A state (x, v) at time t; see the contract at the top of this file.

    Attributes
    ----------
    equations : Equations
        The formulation, which knows sizes, groups and constants.
    x, v, t : casadi columns
        In the formulation's own coordinates.
    """

    equations: "Equations"
    x: Matrix
    v: Matrix
    t: Matrix

    @property
    def machine(self) -> Machine:
        """The machine."""
        return self.equations.machine

    # ------------------------------------------------------------------ equations of motion

    @property
    @abstractmethod
    def mass(self) -> Matrix:
        """Mass matrix M (nv x nv)."""

    @abstractmethod
    def inverse(self, a: Matrix) -> Matrix:
        """Return the force (nv) for an acceleration a, while rows of constraints hold nothing."""

    def accelerate(self, force: Matrix) -> Matrix:
        """Return the acceleration (nv) under a force on the velocities (nv)."""
        return self.respond(force - self.bias)

    def forward(self, load: Load) -> Matrix:
        """Return the acceleration (nv) under a load."""
        return self.accelerate(self.generalised(load))

    def respond(self, force: Matrix) -> Matrix:
        """Return the accelerations (nv x k) for forces (nv x k) where nothing else acts."""
        return solve_symmetric(self.mass, force)

    @cached_property
    def bias(self) -> Matrix:
        """Force (nv) at zero acceleration, all passive forces included."""
        return self.inverse(ca.SX(self.v.shape[0], 1))

    def generalised(self, load: Load) -> Matrix:
        """Return the force on the velocities (nv) that a load amounts to."""
        total = self.joint_jacobian.T @ load.joint_force
        if load.force is not None:
            total = total + load.force
        for body, wrench in zip(self.machine.bodies, load.wrenches, strict=True):
            if wrench is not None:
                total = total + self.jacobian(body.name).value.T @ wrench
        return total

    # ------------------------------------------------------------------ bodies, frames, joints

    @property
    @abstractmethod
    def poses(self) -> list[Matrix]:
        """Pose (4x4) of every body."""

    @abstractmethod
    def jacobian(self, frame: str) -> Jacobian:
        """Return the body Jacobian of a frame (6 x nv), and its rate."""

    @cached_property
    def twists(self) -> list[Matrix]:
        """Body twist (6) of every body."""
        return [self.jacobian(body.name).value @ self.v for body in self.machine.bodies]

    def accelerations(self, a: Matrix) -> list[Matrix]:
        """Rate (6) of every body twist under an acceleration a (nv)."""
        jacobians = [self.jacobian(body.name) for body in self.machine.bodies]
        return [ca.densify(J.value @ a + J.rate @ self.v) for J in jacobians]

    @cached_property
    def bodies(self) -> forces.Bodies:
        """Poses and twists of the bodies, as the force laws take them."""
        return forces.Bodies(self.machine, self.poses, self.twists, self.t)

    def frame_pose(self, frame: str) -> Matrix:
        """Pose (4x4) of a frame seen from the world."""
        return ca.SX(self.bodies.pose(self.machine.frame(frame)))

    def relative(self, a: str, b: str) -> RelativeMotion:
        """Return frame b seen from frame a."""
        G = se3.compose(se3.inverse(self.frame_pose(a)), self.frame_pose(b))
        return RelativeMotion.of(G, self.jacobian(a), self.jacobian(b), self.v)

    @property
    @abstractmethod
    def joint_x(self) -> Matrix:
        """Coordinates of the machine's joints (nx of the machine)."""

    @property
    @abstractmethod
    def joint_v(self) -> Matrix:
        """Velocities of the machine's joints (nv of the machine)."""

    @property
    @abstractmethod
    def joint_jacobian(self) -> Matrix:
        """The matrix with ``joint_v = joint_jacobian v`` (nv of the machine x nv)."""

    @property
    @abstractmethod
    def joint_jacobian_rate(self) -> Matrix:
        """Rate of `joint_jacobian`; rows of joints without armature may be left zero."""

    def tendon(self, name: str) -> tendons.TendonMotion:
        """Return length and rate of a tendon, and what a unit force along it does."""
        if name not in self._tendons:
            tendon = self.machine.tendon(name)
            at = tendons.motion(tendon, self.bodies, self.joint_x, self.joint_v)
            self._tendons[name] = at
        return self._tendons[name]

    @cached_property
    def _tendons(self) -> dict[str, tendons.TendonMotion]:
        """Tendons that were asked for already: a path around obstacles is long to write down."""
        return {}

    def tendon_jacobian(self, name: str) -> Matrix:
        """Return the row (1 x nv) with ``rate of the tendon's length = row v``."""
        at = self.tendon(name)
        row = ca.SX(1, self.v.shape[0])
        if at.on_joints is not None:
            row += at.on_joints.T @ self.joint_jacobian
        for frame, wrench in at.on_frames:
            row += wrench.T @ self.jacobian(frame.name).value
        return row

    def joint_wrenches(self, load: Load) -> list[Matrix]:
        """Return the wrench (6) that each joint carries, in the child's joint frame.

        What the parent exerts on the child, motor and friction included.
        """
        return self.carried_wrenches(self.forward(load), load)

    def carried_wrenches(self, a: Matrix, load: Load) -> list[Matrix]:
        """Return what the joints carry at an acceleration a (nv) that a load is known to give."""
        raise NotImplementedError

    def loop_wrenches(self, load: Load) -> list[Matrix]:
        """Return the wrench (6) of frame a on frame b of every loop, in b's axes."""
        return []

    # ------------------------------------------------------------------ constraints that are left

    @property
    def rows(self) -> "ConstraintRows | None":
        """The rows ``A a = b`` that these coordinates must still obey; None for none."""
        return None

    def multipliers(self, load: Load) -> Matrix:
        """Return lam (rows), the shortest with ``M a + bias = force + A^T lam``."""
        return ca.SX(0, 1)

    def constraint_errors(self) -> dict[str, "ConstraintError"]:
        """Return how far the state is off its constraints, by the name of the error."""
        return {}

    # ------------------------------------------------------------------ energies

    @property
    def coriolis(self) -> Matrix:
        """C (nv x nv) with ``C v`` the inertial part of the bias and dM/dt - 2C skew."""
        raise NotImplementedError

    @property
    def gravity_force(self) -> Matrix:
        """Force (nv) that holds the machine against gravity alone."""
        raise NotImplementedError

    @cached_property
    def kinetic(self) -> Matrix:
        """Kinetic energy (J), of rotors and added mass too."""
        return ca.dot(self.v, self.mass @ self.v) / 2

    @cached_property
    def potential(self) -> Matrix:
        """Potential energy (J) of gravity, springs and buoyancy."""
        return forces.potential(self.bodies, self.joint_x)

    @cached_property
    def dissipation(self) -> Matrix:
        """Power (W) lost in dampers, friction and drag."""
        return forces.dissipation(self.bodies, self.joint_x, self.joint_v)

    @cached_property
    def passive_power(self) -> Matrix:
        """Power (W) that friction, dampers and a moving fluid give: mostly negative."""
        return forces.passive_power(self.bodies, self.joint_x, self.joint_v)

    def power(self, load: Load) -> Matrix:
        """Return the rate of the energy (W) under a load."""
        return ca.dot(self.v, self.generalised(load)) + self.passive_power

    @cached_property
    def momentum(self) -> dict[str, Matrix]:
        """Momenta in world axes: `linear`, `angular` about the origin, `centroidal`."""
        names = ("linear", "angular", "centroidal")
        return dict(zip(names, forces.momentum(self.bodies), strict=True))

    # ------------------------------------------------------------------ inputs

    @cached_property
    def input_matrix(self) -> Matrix:
        """Force on the velocities (nv x nu) per unit of each input."""
        return actuation.input_matrix(self)

    @cached_property
    def input_bias(self) -> Matrix:
        """Force on the velocities (nv) of the actuators at zero input."""
        return actuation.input_bias(self)

    # ------------------------------------------------------------------ derivatives

    @cached_property
    def rate_matrix(self) -> Matrix:
        """A (nx x nv) with dx/dt = A v."""
        return self.equations.rate_matrix(self.x)

    def along(self, value: Matrix) -> Matrix:
        """Return the slopes of a column by x along the directions of v: ``x (+) eps e_j``."""
        return ca.sparsify(ca.jacobian(value, self.x) @ self.rate_matrix)

    def inverse_slopes(self, a: Matrix) -> tuple[Matrix, Matrix]:
        """Return the slopes (nv x nv) of `inverse` by x and by v at a fixed acceleration."""
        held = ca.SX.sym("held", self.v.shape[0])
        force = self.inverse(held)
        by_x, by_v = ca.substitute(
            [self.along(force), ca.jacobian(force, self.v)], [held], [ca.densify(a)]
        )
        return by_x, by_v

    def newton_slopes(self, a: Matrix) -> tuple[Matrix, Matrix]:
        """Return slopes as `inverse_slopes` does, near enough for Newton's method."""
        return self.inverse_slopes(a)

    def forward_slopes(self, force: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        """Return the slopes (nv x nv) of `accelerate` by x, by v and by the force.

        At a fixed acceleration the force changes by what `inverse_slopes` says, and that change is
        what must be made up for: da = -M^-1 d(force).
        """
        by_x, by_v = self.inverse_slopes(self.accelerate(force))
        by_force = self.respond(ca.SX.eye(self.v.shape[0]))
        return -self.respond(by_x), -self.respond(by_v), by_force

    def sensitivity(self, force: Matrix) -> Matrix:
        """Return the slopes (nv x n) of `accelerate` by the machine's n tunable numbers."""
        held = ca.SX.sym("held", self.v.shape[0])
        by_p = ca.jacobian(self.inverse(held), self.machine.parameters.symbols)
        return -self.respond(ca.substitute(by_p, held, ca.densify(self.accelerate(force))))


class InJointCoordinates(State):
    """A state whose coordinates and velocities are those of the machine's joints themselves."""

    @property
    def joint_x(self) -> Matrix:
        """The coordinates themselves."""
        return self.x

    @property
    def joint_v(self) -> Matrix:
        """The velocities themselves."""
        return self.v

    @property
    def joint_jacobian(self) -> Matrix:
        """The identity."""
        return ca.SX.eye(self.v.shape[0])

    @property
    def joint_jacobian_rate(self) -> Matrix:
        """Zero."""
        return ca.SX(self.v.shape[0], self.v.shape[0])


def step_of(pose: Matrix) -> Step:
    """Return a pose (4x4) as a `Step`."""
    return Step(se3.rotation(pose), se3.position(pose))


def twists_into(step: Step, columns: Matrix) -> Matrix:
    """Return k twists (6 x k) seen from a frame at `step`: ``Ad_{G^-1} columns``."""
    return ca.vertcat(*step.twist_into(Twist.of(columns)))


def in_joint_frame(pose: Any, wrench: Matrix) -> Matrix:
    """Return a wrench on a body, in body axes, seen from a joint's frame (pose) on it."""
    return step_of(se3.inverse(pose)).wrench_out(SpatialWrench.of(wrench)).vector
