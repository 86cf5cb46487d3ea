"""One symbolic state of the maximal formulation, with all that is derived from it, on demand."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from framefree.geometry import se3
from framefree.machine.values import constant, constant_pose
from framefree.motion import forces
from framefree.motion.body_factors import BODY_FACTORS
from framefree.motion.constrained.rows import ConstraintRows
from framefree.motion.load import Load
from framefree.motion.maximal.graph import Connection, Elimination, KktSolution
from framefree.motion.maximal.kinematics import Kinematics, stack
from framefree.motion.maximal.rows import JointRows
from framefree.motion.spatial import Matrix, SpatialWrench, Twist
from framefree.motion.state import ConstraintError, Jacobian, State, step_of, twists_into
from framefree.motion.tree import recursion

if TYPE_CHECKING:
    from framefree.motion.maximal.maximal import Maximal


class MaximalState(State):
    """Poses x and twists v of all bodies, and what joints, loops and couplings make of them."""

    equations: "Maximal"

    def __init__(self, equations: "Maximal", x: Matrix, v: Matrix, t: Matrix) -> None:
        self.equations, self.model = equations, equations.model
        self.links = self.model.links
        self.x, self.v, self.t = x, v, t
        self.at = Kinematics(self.model, x, v)
        self.held = JointRows(self.at)

    # ------------------------------------------------------------------ bodies, joints

    @property
    def poses(self) -> list[Matrix]:
        """Pose (4x4) of every body."""
        return self.at.poses

    @property
    def twists(self) -> list[Matrix]:
        """Body twist (6) of every body."""
        return self.at.twists

    def accelerations(self, a: Matrix) -> list[Matrix]:
        """Rate (6) of every body twist: the six rows of a."""
        return self.at.split(a)

    def jacobian(self, frame: str) -> Jacobian:
        """Return the body Jacobian of a frame: a constant, as its body's twist is part of v."""
        found = self.machine.frame(frame)
        index = self.machine.body_index[found.body]
        value = ca.SX(6, self.model.nv)
        if index >= 0:
            step = step_of(constant_pose(found.pose))
            value[:, 6 * index : 6 * index + 6] = twists_into(step, ca.SX.eye(6))
        return Jacobian(value, ca.SX(6, self.model.nv))

    @property
    def joint_x(self) -> Matrix:
        """Coordinates of the joints, read off the poses."""
        return self.at.joint_x

    @property
    def joint_v(self) -> Matrix:
        """Velocities of the joints."""
        return self.at.joint_v

    @property
    def joint_jacobian(self) -> Matrix:
        """G (nv of the machine x 6N): joint rates = G v."""
        return self.held.rate_rows

    @property
    def joint_jacobian_rate(self) -> Matrix:
        """dG/dt (nv of the machine x 6N), of joints with rotors."""
        return self.held.rate_rows_rate

    @cached_property
    def rows(self) -> ConstraintRows:
        """``J a = gamma`` of joints, loops and couplings, which all hold positions."""
        J = self.held.all_rows
        m = J.shape[0]
        lengths = ca.vertcat(ca.SX(0, 1), *(ca.sumsqr(J[i, :]) for i in range(m)))
        gamma, gains = self.held.all_right, np.zeros((m, 2))
        return ConstraintRows(J, gamma, None, J @ self.v, ca.SX(m, 1), J, lengths, gains)

    def constraint_errors(self) -> dict[str, ConstraintError]:
        """Return how far joints and loops are apart at most (m or rad)."""
        apart = {
            "joints_apart": stack(self.at.violations),
            "loops_apart": stack(
                [ca.SX(loop.residual(self.bodies.relative(loop)[2])) for loop in self.machine.loops]
            ),
        }
        return {
            name: ConstraintError(ca.mmax(ca.fabs(value)))
            for name, value in apart.items()
            if value.numel()
        }

    # ------------------------------------------------------------------ loads

    @cached_property
    def gravity_wrenches(self) -> list[Matrix]:
        """Weight of every body, in body axes."""
        g = ca.SX(constant(self.machine.gravity))
        return [
            ca.SX(body.moments.matrix6) @ ca.vertcat(se3.rotation(G).T @ g, ca.SX(3, 1))
            for body, G in zip(self.machine.bodies, self.at.poses, strict=True)
        ]

    @cached_property
    def gyroscopic_wrenches(self) -> list[Matrix]:
        """``ad_xi^T M xi`` of every body, in body axes; that of added mass counts as passive."""
        found = []
        for body, xi in zip(self.machine.bodies, self.at.twists, strict=True):
            momentum = ca.SX(body.moments.matrix6) @ xi
            found.append(-Twist.of(xi).cross_wrench(SpatialWrench.of(momentum)).vector)
        return found

    @cached_property
    def passive_wrenches(self) -> list[Matrix]:
        """What springs, dampers and fluid exert on every body, in body axes."""
        return [
            ca.SX(6, 1) if wrench is None else ca.SX(wrench)
            for wrench in forces.body_wrenches(self.bodies)
        ]

    @cached_property
    def known_wrenches(self) -> list[Matrix]:
        """Everything that acts on the bodies beside joints and port, in body axes."""
        parts = (self.gravity_wrenches, self.gyroscopic_wrenches, self.passive_wrenches)
        return [sum(wrenches, ca.SX(6, 1)) for wrenches in zip(*parts, strict=True)]

    @cached_property
    def resistance(self) -> Matrix:
        """Passive joint forces (nv) that stand on the left: springs, damping, friction."""
        return forces.joint_resistance(self.machine, self.at.joint_x, self.at.joint_v)

    # ------------------------------------------------------------------ solving

    @cached_property
    def system(self) -> Elimination:
        """The KKT system of this configuration."""
        connections = [
            Connection(link.parent, link.v, step, d, inertia, link.armature)
            for link, step, d, inertia in zip(
                self.links, self.at.steps, self.at.directions, self.model.tree.inertias, strict=True
            )
        ]
        return Elimination(connections, self.held.border)

    def solve(self, load: Load) -> KktSolution:
        """Solve the KKT system under a load."""
        force = load.stacked if load.force is None else load.stacked + load.force
        wrenches = [
            w + known for w, known in zip(self.at.split(force), self.known_wrenches, strict=True)
        ]
        return self.system.solve(
            self.at.to_links(wrenches), load.joint_force - self.resistance, self.at.biases
        )

    def forward(self, load: Load) -> Matrix:
        """Return the rates of all twists (6N) under a load."""
        return self.at.of_links(self.solve(load).accelerations)

    def accelerate(self, force: Matrix) -> Matrix:
        """Return the rates of all twists (6N) under wrenches on the bodies (6N)."""
        return self.forward(Load(self.machine, force=force))

    def inverse(self, a: Matrix) -> Matrix:
        """Return the wrenches (6N) that give acceleration a while joints and motors do nothing."""
        rotors = self.armature @ (self.held.rate_rows @ a - self.held.rate_bias)
        motion = ca.diagcat(*self.model.inertias) @ a + self.held.rate_rows.T @ rotors
        return motion - stack(self.known_wrenches) + self.held.rate_rows.T @ self.resistance

    def carried_wrenches(self, a: Matrix, load: Load) -> list[Matrix]:
        """Return the wrench (6) that each joint carries, in the child's joint frame."""
        return [
            ca.diagcat(link.to_joint, link.to_joint) @ wrench
            for link, wrench in zip(self.links, self.solve(load).wrenches, strict=True)
        ]

    def joint_wrenches(self, load: Load) -> list[Matrix]:
        """Return the wrench (6) that each joint carries, in the child's joint frame."""
        return self.carried_wrenches(ca.SX(0, 1), load)

    def loop_wrenches(self, load: Load) -> list[Matrix]:
        """Return the wrench (6) of frame a on frame b of every loop, in b's axes."""
        multipliers, start, wrenches = self.solve(load).multipliers, 0, []
        for N in self.held.loop_blocked:
            wrenches.append(-N @ multipliers[start : start + N.shape[1]])
            start += N.shape[1]
        return wrenches

    def multipliers(self, load: Load) -> Matrix:
        """Return lam (rows) of ``M a + bias = force + J^T lam``: what the parent exerts."""
        return -self.kkt_multipliers(load)

    def kkt_multipliers(self, load: Load) -> Matrix:
        """Return lam of the KKT system ``M a + bias + J^T lam = force``: child on parent."""
        solution = self.solve(load)
        joints = [
            -d.N.T @ wrench for d, wrench in zip(self.at.directions, solution.wrenches, strict=True)
        ]
        return ca.vertcat(stack(joints), solution.multipliers)

    def respond(self, force: Matrix) -> Matrix:
        """Return ``Phi_c force`` (6N x k): acceleration for wrenches alone, nothing else acting."""
        drive = ca.SX(self.machine.nv, force.shape[1])
        return self.at.of_links(
            self.system.solve(self.at.to_links(self.at.split(force)), drive, None).accelerations
        )

    def joint_forces(self, acceleration: Matrix, force: Matrix) -> tuple[Matrix, list[Matrix]]:
        """Motor forces (nv) for body accelerations, and joint wrenches in link axes."""
        a = [
            step.twist_into(Twist.of(one)).vector
            for step, one in zip(self.model.on_body, self.at.split(acceleration), strict=True)
        ]
        wrenches = self.at.to_links(
            [w + known for w, known in zip(self.at.split(force), self.known_wrenches, strict=True)]
        )
        inertias = self.model.tree.inertias
        needed = [
            SpatialWrench.of(inertia.times(Twist.of(one)).vector - wrench)
            for inertia, one, wrench in zip(inertias, a, wrenches, strict=True)
        ]
        passed = recursion.over_parents(
            self.links, needed, lambda i, w: self.at.steps[i].wrench_out(w), SpatialWrench.plus
        )
        motors = []
        for i, link in enumerate(self.links):
            rate = self.at.directions[i].W.T @ (a[i] - self._carried_over(i, a) - self.at.biases[i])
            motors.append(self.at.directions[i].S.T @ passed[i].vector + link.armature @ rate)
        return stack(motors) + self.resistance, [wrench.vector for wrench in passed]

    def _carried_over(self, i: int, accelerations: Sequence[Matrix]) -> Matrix:
        parent = self.links[i].parent
        if parent < 0:
            return ca.SX(6, 1)
        return self.at.steps[i].twist_into(Twist.of(accelerations[parent])).vector

    # ------------------------------------------------------------------ matrices in body axes

    @cached_property
    def armature(self) -> Matrix:
        """Rotor inertias (nv x nv), diagonal."""
        return ca.diagcat(*(link.armature for link in self.links))

    @cached_property
    def mass(self) -> Matrix:
        """M (6N x 6N): bodies, and rotors G^T A G."""
        rotors = self.held.rate_rows.T @ self.armature @ self.held.rate_rows
        return ca.diagcat(*self.model.inertias) + rotors

    @cached_property
    def coriolis(self) -> Matrix:
        """C (6N x 6N) with dM/dt - 2C skew: Gam(xi_b) of the bodies, rotors G^T A dG/dt."""
        bodies = [
            BODY_FACTORS["skew"](M, xi)
            for M, xi in zip(self.model.inertias, self.at.twists, strict=True)
        ]
        return (
            ca.diagcat(*bodies) + self.held.rate_rows.T @ self.armature @ self.held.rate_rows_rate
        )

    @cached_property
    def stacked_jacobian(self) -> Matrix:
        """T (6N x nv) with v = T (joint rates), in body axes."""
        nv = self.machine.nv
        found: list[Matrix] = []
        for i, link in enumerate(self.links):
            T = ca.SX(6, nv)
            if link.parent >= 0:
                T = ca.vertcat(*self.at.steps[i].twist_into(Twist.of(found[link.parent])))
            T[:, link.v] = self.at.directions[i].S
            found.append(T)
        return self.at.of_links(found)

    # ------------------------------------------------------------------ energy

    @property
    def gravity_force(self) -> Matrix:
        """Wrenches (6N) that hold every body against gravity alone."""
        return -stack(self.gravity_wrenches)

    def power(self, load: Load) -> Matrix:
        """Return the rate of the energy (W) under a load."""
        force = load.stacked if load.force is None else load.stacked + load.force
        given = ca.dot(self.v, force) + ca.dot(self.joint_v, load.joint_force)
        return given + self.passive_power

    @cached_property
    def kinetic(self) -> Matrix:
        """Kinetic energy (J), of rotors and added mass too."""
        total = ca.dot(self.at.joint_v, self.armature @ self.at.joint_v)
        for M, xi in zip(self.model.inertias, self.at.twists, strict=True):
            total += ca.dot(xi, M @ xi)
        return total / 2

    # ------------------------------------------------------------------ derivatives

    def forward_slopes(self, force: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        """Return the slopes (6N x 6N) of `accelerate` by x, by v and by the force.

        The elimination itself is differentiated, so that the slopes are those of what is computed
        also where joints are apart.
        """
        held = ca.SX.sym("held", self.model.nv)
        a = self.accelerate(held)
        slopes = [self.along(a), ca.jacobian(a, self.v)]
        by_x, by_v = ca.substitute(slopes, [held], [ca.densify(ca.SX(force))])
        return by_x, by_v, self.respond(ca.SX.eye(self.model.nv))

    def sensitivity(self, force: Matrix) -> Matrix:
        """Return the slopes (6N x n) of `accelerate` by the machine's n tunable numbers."""
        return ca.jacobian(self.accelerate(force), self.machine.parameters.symbols)
