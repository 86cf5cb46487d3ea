"""One symbolic state of bodies in redundant coordinates, and what the equations need of it."""

from functools import cached_property

import casadi as ca

from framefree.geometry import se3
from framefree.machine import Machine
from framefree.machine.values import constant, constant_pose
from framefree.motion import forces
from framefree.motion.redundant.coordinates import Coordinates, Tangent
from framefree.motion.redundant.system import BodySystem, RelativePose, machine_poses, ways
from framefree.motion.spatial import Matrix, Step, Twist, Wrench, solve_symmetric, symmetric
from framefree.motion.tree.kinematics import Jacobian


class RedundantModel:
    """A machine or a user's system of bodies, prepared once for tracing."""

    def __init__(self, subject: Machine | BodySystem) -> None:
        self.machine = subject
        if isinstance(subject, BodySystem):
            self.coordinates, poses = subject.coordinates, list(subject.poses)
        else:
            self.coordinates, poses = Coordinates.of_machine(subject), machine_poses(subject)
        self.ways = ways(subject.bodies, subject.body_index, poses)
        self.has_loops = len(poses) > len(self.ways)
        self.gravity: Matrix = ca.SX(constant(subject.gravity))
        self.inertias = [ca.SX(constant(body.moments.matrix6)) for body in subject.bodies]
        self.added_masses = forces.added_masses(subject)  # type: ignore[arg-type]
        rotors = ca.vertcat(ca.SX(0, 1), *(constant(joint.armature) for joint in subject.joints))
        self.armature = ca.diag(rotors) if subject.joints else ca.SX(subject.nv, subject.nv)

    def at(self, x: Matrix, v: Matrix | None = None) -> "RedundantState":
        """Return the state (x, v), x a symbol; without v the bodies are at rest."""
        return RedundantState(self, x, ca.SX(self.coordinates.nv, 1) if v is None else v)


class RedundantState:
    """A state (x, v) of a `RedundantModel`; x is a symbol, v too where energies are derived."""

    def __init__(self, model: RedundantModel, x: Matrix, v: Matrix) -> None:
        self.model, self.machine = model, model.machine
        self.x, self.v = x, v
        self.tangent: Tangent = model.coordinates.at(x)

    # ------------------------------------------------------------------ kinematics

    @cached_property
    def _placed(self) -> list[tuple[Matrix, Jacobian]]:
        """Pose, Jacobian and its rate of every body, by the rules of the graph."""
        found: dict[int, tuple[Matrix, Jacobian]] = {}
        for i, way in self.model.ways.items():
            G, J = self._edge(way.edge)
            if not way.forwards:
                G, J = _reversed(G, J, self.v)
            if way.start >= 0:
                G_0a, J_0a = found[way.start]
                carried = J_0a.into(_step(G), Twist.of(J.value @ self.v))
                J = Jacobian(carried.value + J.value, carried.rate + J.rate)
                G = se3.compose(G_0a, G)
            found[i] = (G, J)
        return [found[i] for i in range(len(self.machine.bodies))]

    def _edge(self, edge: RelativePose) -> tuple[Matrix, Jacobian]:
        """Relative pose, and its Jacobian by differentiation: wed(J_i) = G^-1 d_i G."""
        G = ca.SX(edge.pose(self.x))
        slopes = self.tangent.along(ca.vec(G))
        back = se3.inverse(G)
        J = ca.SX(6, self.tangent.nv)
        for i in range(self.tangent.nv):
            if slopes[:, i].nnz():
                J[:, i] = ca.sparsify(se3.vee(back @ ca.reshape(slopes[:, i], 4, 4)))
        return G, Jacobian(J, ca.sparsify(self.tangent.rate(J, self.v)))

    @cached_property
    def poses(self) -> list[Matrix]:
        """Pose (4x4) of every body."""
        return [G for G, _ in self._placed]

    @cached_property
    def jacobians(self) -> list[Jacobian]:
        """Body Jacobian (6 x nv) of every body, and its rate."""
        return [J for _, J in self._placed]

    @cached_property
    def twists(self) -> list[Matrix]:
        """Body twist (6) of every body."""
        return [ca.densify(J.value @ self.v) for J in self.jacobians]

    @cached_property
    def bodies(self) -> forces.Bodies:
        """Poses and twists of the bodies, as the force laws want them."""
        return forces.Bodies(self.machine, self.poses, self.twists)  # type: ignore[arg-type]

    def accelerations(self, a: Matrix) -> list[Matrix]:
        """Rate (6) of every body twist under accelerations a (nv)."""
        return [ca.densify(J.value @ a + J.rate @ self.v) for J in self.jacobians]

    def jacobian(self, frame: str) -> Jacobian:
        """Body Jacobian of a frame, and its rate."""
        found = self.machine.frame(frame)
        index = self.machine.body_index[found.body]
        if index < 0:
            return Jacobian(ca.SX(6, self.tangent.nv), ca.SX(6, self.tangent.nv))
        return self.jacobians[index].into(_step(constant_pose(found.pose)), Twist.zero())

    def frame_pose(self, frame: str) -> Matrix:
        """Pose (4x4) of a frame seen from the world."""
        return self.bodies.pose(self.machine.frame(frame))

    # ------------------------------------------------------------------ inertia

    @cached_property
    def rigid_mass(self) -> Matrix:
        """``sum_b J^T M_b J`` of the bodies alone."""
        return self._projected(self.model.inertias)

    @cached_property
    def metric(self) -> Matrix:
        """The same with the fluid's added mass: what the connection coefficients belong to."""
        return self.rigid_mass + self._projected(self.model.added_masses)

    @cached_property
    def mass(self) -> Matrix:
        """Mass matrix (nv x nv), rotors included."""
        return self.metric + self.model.armature

    def _projected(self, inertias: list[Matrix | None]) -> Matrix:
        total = ca.SX(self.tangent.nv, self.tangent.nv)
        for J, M in zip(self.jacobians, inertias, strict=True):
            if M is not None:
                total += symmetric(J.value.T @ M @ J.value)
        return total

    @cached_property
    def kinetic(self) -> Matrix:
        """Kinetic energy (J), of rotors and added mass too."""
        return ca.dot(self.v, self.mass @ self.v) / 2

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
            M @ ca.vertcat(se3.rotation(G).T @ self.model.gravity, ca.SX(3, 1))
            for M, G in zip(self.model.inertias, self.poses, strict=True)
        ]

    def generalised(self, wrenches: list[Matrix]) -> Matrix:
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
        return -self.generalised(self.weights)

    @cached_property
    def passive(self) -> Matrix:
        """All forces (nv) on the left but those of inertia: gravity, springs, losses, fluid."""
        return self.gravity_force - self.generalised(self.body_loads) + self.resistance

    def extra_inertia(self, a: Matrix) -> Matrix:
        """Force (nv) of rotors and of the fluid's added mass against accelerations a.

        Their velocity terms are not here: rotors have none, and those of the fluid, which depend on
        its current, stand among `body_loads`.
        """
        total = self.model.armature @ a
        accelerations = self.accelerations(a)
        for J, M, rate in zip(self.jacobians, self.model.added_masses, accelerations, strict=True):
            if M is not None:
                total += J.value.T @ (M @ rate)
        return total

    @cached_property
    def potential(self) -> Matrix:
        """Potential energy (J)."""
        total = forces.potential(self.bodies, self.x)
        if isinstance(self.machine, BodySystem) and self.machine.potential is not None:
            total += self.machine.potential(self.x)
        return total

    @cached_property
    def dissipation(self) -> Matrix:
        """Power (W) lost in dampers, friction and drag."""
        return forces.dissipation(self.bodies, self.v) + ca.dot(self.v, self._rayleigh_force)

    @cached_property
    def passive_power(self) -> Matrix:
        """Power (W) that friction, dampers and a moving fluid give: mostly negative."""
        return forces.passive_power(self.bodies, self.v) - ca.dot(self.v, self._rayleigh_force)

    @cached_property
    def damping(self) -> Matrix:
        """``D = sum_ab J_ab^T D_ab J_ab`` of dampers (nv x nv), and of viscous joint friction."""
        total = ca.SX(self.tangent.nv, self.tangent.nv)
        for joint in self.machine.joints:
            part = self.machine.v_slice[joint.name]  # type: ignore[union-attr]
            total[part, part] = ca.diag(constant(joint.damping))
        for damper in self.machine.dampers:
            _, _, G_ab = self.bodies.relative(damper)
            moved = self.jacobian(damper.frame_a).into(_step(G_ab), Twist.zero())
            J_ab = self.jacobian(damper.frame_b).value - moved.value
            total += symmetric(J_ab.T @ constant(damper.matrix) @ J_ab)
        return total

    def joint_wrenches(self, a: Matrix) -> list[Matrix]:
        """Wrench (6) through the edge that carries each body, on it and in its body axes.

        What accelerates the body and all that it carries, less what acts on them. Not unique where
        the graph has loops.
        """
        total: list[Wrench] = []
        for M, added, xi, rate, weight, load in zip(
            self.model.inertias,
            self.model.added_masses,
            self.twists,
            self.accelerations(a),
            self.weights,
            self.body_loads,
            strict=True,
        ):
            inertia = M if added is None else M + added
            gyroscopic = -se3.little_adjoint(xi).T @ (M @ xi)
            total.append(Wrench.of(inertia @ rate + gyroscopic - weight - load))
        for i, way in reversed(self.model.ways.items()):
            if way.start >= 0:
                G = se3.compose(se3.inverse(self.poses[way.start]), self.poses[i])
                total[way.start] = total[way.start].plus(_step(G).wrench_out(total[i]))
        return [wrench.vector for wrench in total]

    def forward(self, force: Matrix, bias: Matrix) -> Matrix:
        """Return ``M^-1 (force - bias)``."""
        return solve_symmetric(self.mass, force - bias)


def _step(pose: Matrix) -> Step:
    return Step(se3.rotation(pose), se3.position(pose))


def _reversed(G: Matrix, J: Jacobian, v: Matrix) -> tuple[Matrix, Jacobian]:
    """G_ba and J_ba = -Ad_{G_ab} J_ab with its rate -Ad_{G_ab} (dJ_ab + ad_{xi_ab} J_ab)."""
    Ad, ad = se3.adjoint(G), se3.little_adjoint(ca.densify(J.value @ v))
    return se3.inverse(G), Jacobian(-Ad @ J.value, -Ad @ (J.rate + ad @ J.value))
