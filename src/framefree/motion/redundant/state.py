"""One symbolic state of bodies in redundant coordinates, and what the equations need of it."""

from functools import cached_property
from typing import TYPE_CHECKING

import casadi as ca

from framefree.geometry import se3
from framefree.machine import Machine
from framefree.machine.values import constant, constant_pose
from framefree.motion import forces
from framefree.motion.body_factors import BODY_FACTORS
from framefree.motion.load import Load
from framefree.motion.redundant.system import BodySystem, RelativePose
from framefree.motion.spatial import Matrix, SpatialWrench, Twist, symmetric
from framefree.motion.state import InJointCoordinates, Jacobian, in_joint_frame, step_of
from framefree.motion.tangent import Tangent

if TYPE_CHECKING:
    from framefree.motion.redundant.redundant import Redundant


class RedundantState(InJointCoordinates):
    """A state (x, v) of `Redundant` equations; x is a symbol, v too where energies are derived."""

    equations: "Redundant"

    def __init__(self, equations: "Redundant", x: Matrix, v: Matrix, t: Matrix) -> None:
        self.equations = equations
        self.x, self.v, self.t = x, v, t
        self.tangent: Tangent = equations.coordinates.at(x)

    # ------------------------------------------------------------------ kinematics

    @cached_property
    def _placed(self) -> list[tuple[Matrix, Jacobian]]:
        """Pose, Jacobian and its rate of every body, by the rules of the graph.

        Poses that move by themselves add a last column to the Jacobians: the twist that goes with
        the rate 1 of the time.
        """
        found: dict[int, tuple[Matrix, Jacobian]] = {}
        for i, way in self.equations.ways.items():
            G, J = self._edge(way.edge)
            if not way.forwards:
                G, J = _reversed(G, J, self._rates)
            if way.start >= 0:
                G_0a, J_0a = found[way.start]
                carried = J_0a.into(step_of(G), Twist.of(J.value @ self._rates))
                J = Jacobian(carried.value + J.value, carried.rate + J.rate)
                G = se3.compose(G_0a, G)
            found[i] = (G, J)
        return [found[i] for i in range(len(self.machine.bodies))]

    @cached_property
    def _rates(self) -> Matrix:
        """The velocities, and the rate of the time where poses move by themselves."""
        return ca.vertcat(self.v, 1) if self.equations.moving else self.v

    def _edge(self, edge: RelativePose) -> tuple[Matrix, Jacobian]:
        """Relative pose, and its Jacobian by differentiation: wed(J_i) = G^-1 d_i G."""
        G = edge.at(self.x, self.t)
        slopes = self.tangent.along(ca.vec(G))
        if self.equations.moving:
            slopes = ca.horzcat(slopes, ca.jacobian(ca.vec(G), self.t))
        back = se3.inverse(G)
        J = ca.SX(6, slopes.shape[1])
        for i in range(slopes.shape[1]):
            if slopes[:, i].nnz():
                J[:, i] = ca.sparsify(se3.vee(back @ ca.reshape(slopes[:, i], 4, 4)))
        return G, Jacobian(J, ca.sparsify(self._rate(J)))

    def _rate(self, value: Matrix) -> Matrix:
        """Return the rate of a function of x and t along the motion."""
        along = self.tangent.rate(value, self.v)
        if not self.equations.moving:
            return along
        return along + ca.reshape(ca.jacobian(ca.vec(ca.densify(value)), self.t), *value.shape)

    @cached_property
    def poses(self) -> list[Matrix]:
        """Pose (4x4) of every body."""
        return [G for G, _ in self._placed]

    @cached_property
    def jacobians(self) -> list[Jacobian]:
        """Body Jacobian (6 x nv) of every body, and its rate."""
        nv = self.tangent.nv
        return [Jacobian(J.value[:, :nv], J.rate[:, :nv]) for _, J in self._placed]

    @cached_property
    def twists(self) -> list[Matrix]:
        """Body twist (6) of every body."""
        return [ca.densify(J.value @ self._rates) for _, J in self._placed]

    def accelerations(self, a: Matrix) -> list[Matrix]:
        """Rate (6) of every body twist under accelerations a (nv)."""
        nv = self.tangent.nv
        return [ca.densify(J.value[:, :nv] @ a + J.rate @ self._rates) for _, J in self._placed]

    def jacobian(self, frame: str) -> Jacobian:
        """Body Jacobian of a frame, and its rate."""
        found = self.machine.frame(frame)
        index = self.machine.body_index[found.body]
        if index < 0:
            return Jacobian(ca.SX(6, self.tangent.nv), ca.SX(6, self.tangent.nv))
        return self.jacobians[index].into(step_of(constant_pose(found.pose)), Twist.zero())

    # ------------------------------------------------------------------ inertia

    @cached_property
    def rigid_mass(self) -> Matrix:
        """``sum_b J^T M_b J`` of the bodies alone."""
        return self._projected(self.equations.inertias)

    @cached_property
    def metric(self) -> Matrix:
        """The same with the fluid's added mass: what the connection coefficients belong to."""
        return self.rigid_mass + self._projected(self.equations.added_masses)

    @cached_property
    def mass(self) -> Matrix:
        """Mass matrix (nv x nv), rotors included."""
        return self.metric + self.equations.armature

    def _projected(self, inertias: list[Matrix | None]) -> Matrix:
        total = ca.SX(self.tangent.nv, self.tangent.nv)
        for J, M in zip(self.jacobians, inertias, strict=True):
            if M is not None:
                total += symmetric(J.value.T @ M @ J.value)
        return total

    @cached_property
    def kinetic(self) -> Matrix:
        """Kinetic energy (J), of rotors and added mass too."""
        if not self.equations.moving:
            return super().kinetic
        inertias = [
            M if added is None else M + added
            for M, added in zip(self.equations.inertias, self.equations.added_masses, strict=True)
        ]
        pairs = zip(inertias, self.twists, strict=True)
        return sum((ca.dot(xi, M @ xi) / 2 for M, xi in pairs), ca.SX(0))

    def power(self, load: Load) -> Matrix:
        """Return the rate of the energy (W); poses that move by themselves do work, too."""
        if not self.equations.moving:
            return super().power(load)
        energy = self.kinetic + self.potential
        moving = self._rate(energy) + ca.jtimes(energy, self.v, self.forward(load))
        return ca.densify(moving)

    # ------------------------------------------------------------------ forces

    @cached_property
    def body_loads(self) -> list[Matrix]:
        """Wrench (6) of springs, dampers and fluid on every body."""
        given = forces.body_wrenches(self.bodies)
        return [ca.SX(6, 1) if wrench is None else ca.SX(wrench) for wrench in given]

    @cached_property
    def weights(self) -> list[Matrix]:
        """Wrench (6) of gravity on every body."""
        return [
            M @ ca.vertcat(se3.rotation(G).T @ self.equations.gravity_vector, ca.SX(3, 1))
            for M, G in zip(self.equations.inertias, self.poses, strict=True)
        ]

    def projected(self, wrenches: list[Matrix]) -> Matrix:
        """Return ``sum_b J^T w`` (nv)."""
        total = ca.SX(self.tangent.nv, 1)
        for J, wrench in zip(self.jacobians, wrenches, strict=True):
            total += J.value.T @ wrench
        return ca.densify(total)

    @cached_property
    def resistance(self) -> Matrix:
        """Passive forces (nv) that are not those of bodies; they stand on the left."""
        if isinstance(self.machine, Machine):
            return forces.joint_resistance(self.machine, self.x, self.v)
        total = ca.SX(self.tangent.nv, 1)
        if self.machine.potential is not None:
            total += self.tangent.gradient(self.machine.potential(self.x))
        return total + self._rayleigh_force

    @cached_property
    def _rayleigh_force(self) -> Matrix:
        law = None if isinstance(self.machine, Machine) else self.machine.rayleigh
        if law is None:
            return ca.SX(self.tangent.nv, 1)
        v = ca.SX.sym("v", self.tangent.nv)
        return ca.substitute(ca.gradient(law(self.x, v), v), v, self.v)

    @cached_property
    def gravity_force(self) -> Matrix:
        """Forces (nv) that hold the bodies against gravity alone."""
        return -self.projected(self.weights)

    @cached_property
    def passive(self) -> Matrix:
        """All forces (nv) on the left but those of inertia: gravity, springs, losses, fluid."""
        return self.gravity_force - self.projected(self.body_loads) + self.resistance

    def inverse(self, a: Matrix) -> Matrix:
        """Return the force (nv) for an acceleration: Newton and Euler's laws, projected."""
        needed = [
            M @ rate - se3.little_adjoint(xi).T @ (M @ xi)
            for M, xi, rate in zip(
                self.equations.inertias, self.twists, self.accelerations(a), strict=True
            )
        ]
        return self.projected(needed) + self.passive + self.extra_inertia(a)

    def extra_inertia(self, a: Matrix) -> Matrix:
        """Force (nv) of rotors and of the fluid's added mass against accelerations a.

        Their velocity terms are not here: rotors have none, and those of the fluid, which depend on
        its current, stand among `body_loads`.
        """
        total = self.equations.armature @ a
        accelerations = self.accelerations(a)
        for J, M, rate in zip(
            self.jacobians, self.equations.added_masses, accelerations, strict=True
        ):
            if M is not None:
                total += J.value.T @ (M @ rate)
        return total

    @cached_property
    def potential(self) -> Matrix:
        """Potential energy (J)."""
        total = super().potential
        if isinstance(self.machine, BodySystem) and self.machine.potential is not None:
            total += self.machine.potential(self.x)
        return total

    @cached_property
    def dissipation(self) -> Matrix:
        """Power (W) lost in dampers, friction and drag."""
        return super().dissipation + ca.dot(self.v, self._rayleigh_force)

    @cached_property
    def passive_power(self) -> Matrix:
        """Power (W) that friction, dampers and a moving fluid give: mostly negative."""
        return super().passive_power - ca.dot(self.v, self._rayleigh_force)

    @cached_property
    def damping(self) -> Matrix:
        """``D = sum_ab J_ab^T D_ab J_ab`` of dampers (nv x nv), and of viscous joint friction."""
        total = ca.SX(self.tangent.nv, self.tangent.nv)
        for joint in self.machine.joints:
            part = self.machine.v_slice[joint.name]  # type: ignore[union-attr]
            total[part, part] = ca.diag(constant(joint.damping))
        for damper in self.machine.dampers:
            _, _, G_ab = self.bodies.relative(damper)
            moved = self.jacobian(damper.frame_a).into(step_of(G_ab), Twist.zero())
            J_ab = self.jacobian(damper.frame_b).value - moved.value
            total += symmetric(J_ab.T @ constant(damper.matrix) @ J_ab)
        return total

    @cached_property
    def coriolis(self) -> Matrix:
        """``sum_b J^T (M_b dJ + Gam(xi_b) J)``: dM/dt - 2C is skew, for every A.

        Where velocities commute into each other it is the matrix of the connection coefficients,
        ``C_ij = Gamma_ijk v^k``.
        """
        total = ca.SX(self.tangent.nv, self.tangent.nv)
        for M, added, xi, J in zip(
            self.equations.inertias,
            self.equations.added_masses,
            self.twists,
            self.jacobians,
            strict=True,
        ):
            inertia = M if added is None else M + added
            factor = BODY_FACTORS["skew"](inertia, xi)
            total += J.value.T @ (inertia @ J.rate + factor @ J.value)
        return total

    def carried_wrenches(self, a: Matrix, load: Load) -> list[Matrix]:
        """Return what carries each body: of a machine in joint axes, else in the body's own.

        It accelerates the body and all that it carries, less what acts on them.
        """
        total: list[SpatialWrench] = []
        for M, added, xi, rate, weight, own, more in zip(
            self.equations.inertias,
            self.equations.added_masses,
            self.twists,
            self.accelerations(a),
            self.weights,
            self.body_loads,
            load.wrenches,
            strict=True,
        ):
            inertia = M if added is None else M + added
            gyroscopic = -se3.little_adjoint(xi).T @ (M @ xi)
            acting = weight + own if more is None else weight + own + more
            total.append(SpatialWrench.of(inertia @ rate + gyroscopic - acting))
        for i, way in reversed(self.equations.ways.items()):
            if way.start >= 0:
                G = se3.compose(se3.inverse(self.poses[way.start]), self.poses[i])
                total[way.start] = total[way.start].plus(step_of(G).wrench_out(total[i]))
        if not isinstance(self.machine, Machine):
            return [wrench.vector for wrench in total]
        return [
            in_joint_frame(constant_pose(joint.child_pose), wrench.vector)
            for joint, wrench in zip(self.machine.joints, total, strict=True)
        ]


def _reversed(G: Matrix, J: Jacobian, v: Matrix) -> tuple[Matrix, Jacobian]:
    """G_ba and J_ba = -Ad_{G_ab} J_ab with its rate -Ad_{G_ab} (dJ_ab + ad_{xi_ab} J_ab)."""
    Ad, ad = se3.adjoint(G), se3.little_adjoint(ca.densify(J.value @ v))
    return se3.inverse(G), Jacobian(-Ad @ J.value, -Ad @ (J.rate + ad @ J.value))
