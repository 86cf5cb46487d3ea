"""One symbolic state of a tree machine, with all that is derived from it on demand."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import casadi as ca

from framefree.geometry import se3
from framefree.machine import PairForce
from framefree.motion import forces
from framefree.motion.load import Load
from framefree.motion.spatial import Inertia, Matrix, Rigid, SpatialWrench, Step, Twist
from framefree.motion.state import InJointCoordinates, Jacobian, RelativeMotion, step_of
from framefree.motion.tree import coriolis, recursion
from framefree.motion.tree.derivatives import TreeSlopes
from framefree.motion.tree.kinematics import frame_step, link_jacobians, link_poses
from framefree.motion.tree.recursion import LinkMotion

if TYPE_CHECKING:
    from framefree.motion.tree.tree import Tree


class TreeState(InJointCoordinates):
    """A state (x, v) of a `Tree`: joint coordinates and joint velocities."""

    equations: "Tree"

    def __init__(self, equations: "Tree", x: Matrix, v: Matrix, t: Matrix) -> None:
        self.equations, self.links = equations, equations.links
        self.x, self.v, self.t = x, v, t

    @cached_property
    def motion(self) -> LinkMotion:
        """Steps, subspaces, twists and bias accelerations of the links."""
        return recursion.motion(self.links, self.x, self.v)

    # ------------------------------------------------------------------ kinematics

    @cached_property
    def poses(self) -> list[Matrix]:
        """Pose (4x4) of every body."""
        return [
            se3.compose(G, link.to_body)
            for link, G in zip(self.links, link_poses(self.links, self.motion.steps), strict=True)
        ]

    @cached_property
    def twists(self) -> list[Matrix]:
        """Body twist (6) of every body."""
        return self._of_bodies(self.motion.twists)

    def accelerations(self, a: Matrix) -> list[Matrix]:
        """Rate (6) of every body twist under joint accelerations a."""
        motion = self.motion

        def visit(i: int, parent: Twist | None) -> Twist:
            joint = motion.biases[i].plus(Twist.of(motion.subspaces[i] @ a[self.links[i].v, :]))
            return joint if parent is None else motion.steps[i].twist_into(parent).plus(joint)

        return self._of_bodies(recursion.over_children(self.links, visit))

    @cached_property
    def link_jacobians(self) -> list[Jacobian]:
        """Jacobian and its rate of every link."""
        return link_jacobians(self.links, self.motion, self.x, self.v)

    def jacobian(self, frame: str) -> Jacobian:
        """Body Jacobian of a frame, and its rate."""
        index, step = frame_step(self.machine, self.links, frame)
        if index < 0:
            nv = self.machine.nv
            return Jacobian(ca.SX(6, nv), ca.SX(6, nv))
        return self.link_jacobians[index].into(step, Twist.zero())

    def frame_pose(self, frame: str) -> Matrix:
        """Pose (4x4) of a frame seen from the world."""
        index, step = frame_step(self.machine, self.links, frame)
        pose = se3.pose(step.R0, step.r)
        if index < 0:
            return pose
        return se3.compose(link_poses(self.links, self.motion.steps)[index], pose)

    def relative(self, a: str, b: str) -> RelativeMotion:
        """Return frame b seen from frame a, by the shortest way through the tree.

        What carries both frames does not enter: its columns of J_ab are exact zeros.
        """
        links = self.links
        (at_a, step_a), (at_b, step_b) = (frame_step(self.machine, links, name) for name in (a, b))
        above_a, above_b = self._way(at_a), self._way(at_b)
        common = set(above_a) & set(above_b)
        G_ca = self._pose([i for i in above_a if i not in common], step_a)
        G_cb = self._pose([i for i in above_b if i not in common], step_b)
        shared = [k for i in common for k in range(links[i].v.start, links[i].v.stop)]
        J_a, J_b = (_without(self.jacobian(name), shared) for name in (a, b))
        return RelativeMotion.of(se3.compose(se3.inverse(G_ca), G_cb), J_a, J_b, self.v)

    def _way(self, i: int) -> list[int]:
        """Links from the base to link i."""
        way: list[int] = []
        while i >= 0:
            way.append(i)
            i = self.links[i].parent
        return way[::-1]

    def _pose(self, way: list[int], last: Step) -> Matrix:
        steps = [self.motion.steps[i] for i in way]
        return se3.compose(*(se3.pose(step.rotation, step.r) for step in (*steps, last)))

    def generalised(self, load: Load) -> Matrix:
        """Return the joint forces (nv) that a load amounts to."""
        total = _at_joints(load)
        for body, wrench in zip(self.machine.bodies, load.wrenches, strict=True):
            if wrench is not None:
                total = total + self.jacobian(body.name).value.T @ wrench
        return total

    def _of_bodies(self, twists: list[Twist]) -> list[Matrix]:
        return [
            step_of(link.to_body).twist_into(twist).vector
            for link, twist in zip(self.links, twists, strict=True)
        ]

    # ------------------------------------------------------------------ loads

    def loads(
        self,
        wrenches: list[Matrix | None] | None = None,
        inertias: Sequence[Inertia] | Sequence[Rigid] | None = None,
        left_out: Sequence[PairForce] = (),
    ) -> list[SpatialWrench]:
        """All wrenches on the links but those of joints and gravity, gyroscopic ones included.

        `wrenches` are further ones on the bodies, in body axes. Gyroscopic are those of `inertias`,
        by default of the links' own. Interactions may be left out.
        """
        own = [link.inertia for link in self.links] if inertias is None else inertias
        gyroscopic = recursion.gyroscopic(own, self.motion.twists)
        loads = [SpatialWrench.zero().minus(wrench) for wrench in gyroscopic]
        passive = forces.body_wrenches(self.bodies, left_out)
        for given in (passive, self._weightless, wrenches or [None] * len(loads)):
            for i, wrench in enumerate(given):
                if wrench is not None:
                    step = step_of(self.links[i].to_body)
                    loads[i] = loads[i].plus(step.wrench_out(SpatialWrench.of(wrench)))
        return loads

    @cached_property
    def _weightless(self) -> list[Matrix | None]:
        """Take back the gravity that the upward acceleration of the world gives to added mass."""
        wrenches: list[Matrix | None] = []
        for added, G in zip(forces.added_masses(self.machine), self.poses, strict=True):
            g = ca.vertcat(se3.rotation(G).T @ self.equations.gravity_vector, ca.SX(3, 1))
            wrenches.append(None if added is None else -added @ g)
        return wrenches

    @cached_property
    def resistance(self) -> Matrix:
        """Passive joint forces (nv) that stand on the left: springs, damping, friction."""
        return forces.joint_resistance(self.machine, self.x, self.v)

    # ------------------------------------------------------------------ the recursions

    def accelerate(self, force: Matrix) -> Matrix:
        """Return the acceleration (nv) under joint forces."""
        return self.forward(Load(self.machine, force=force))

    def forward(self, load: Load) -> Matrix:
        """Return the acceleration (nv) under a load."""
        return recursion.articulated_body(
            self.links,
            self.motion,
            _at_joints(load) - self.resistance,
            self.loads(load.wrenches, self.equations.lumped),
            self.equations.lumped_full,
            self.equations.gravity_vector,
        )

    def respond(self, force: Matrix) -> Matrix:
        """Return the accelerations (nv x k) for joint forces where nothing else acts."""
        return self._slopes.inverse_mass.times(force)

    def inverse(self, a: Matrix, wrenches: list[Matrix | None] | None = None) -> Matrix:
        """Joint forces (nv) for acceleration a under wrenches on the bodies."""
        model = self.equations
        loads = self.loads(wrenches, model.lumped)
        force, _ = recursion.newton_euler(
            self.links, self.motion, a, loads, model.lumped_inertias, model.gravity_vector
        )
        return force + self.resistance

    def carried_wrenches(self, a: Matrix, load: Load) -> list[Matrix]:
        """Return what the joints carry at an acceleration a (nv) that a load is known to give."""
        equations = self.equations
        _, passed = recursion.newton_euler(
            self.links,
            self.motion,
            a,
            self.loads(load.wrenches),
            equations.inertias,
            equations.gravity_vector,
        )
        return [
            ca.vertcat(link.to_joint @ wrench.force, link.to_joint @ wrench.moment)
            for link, wrench in zip(self.links, passed, strict=True)
        ]

    @cached_property
    def mass(self) -> Matrix:
        """Mass matrix (nv x nv)."""
        return recursion.composite_inertia(
            self.links, self.motion.steps, self.motion.subspaces, self.equations.lumped_inertias
        )

    @cached_property
    def coriolis(self) -> Matrix:
        """The skew-symmetric Coriolis matrix (nv x nv), by recursion."""
        if any(added is not None for added in forces.added_masses(self.machine)):
            return coriolis.by_bodies(
                "skew", self.equations.inertias, self.motion, self.link_jacobians
            )
        rates = coriolis.subspace_rates(self.links, self.motion, self.x, self.v)
        return coriolis.recursive(self.links, self.motion, self.equations.lumped, rates)

    @cached_property
    def gravity_force(self) -> Matrix:
        """Joint forces (nv) that hold the machine against gravity alone."""
        at_rest = self.equations.at(self.x)
        zero = ca.SX(self.machine.nv, 1)
        force, _ = recursion.newton_euler(
            self.links,
            at_rest.motion,
            zero,
            [SpatialWrench.zero()] * len(self.links),
            self.equations.lumped,
            self.equations.gravity_vector,
        )
        return force

    # ------------------------------------------------------------------ energy

    @cached_property
    def kinetic(self) -> Matrix:
        """Kinetic energy (J), of rotors and added mass too."""
        total = ca.SX(0)
        for link, inertia, twist in zip(
            self.links, self.equations.inertias, self.motion.twists, strict=True
        ):
            momentum = inertia.times(twist)
            rate = self.v[link.v, :]
            total += ca.dot(momentum.force, twist.linear) + ca.dot(momentum.moment, twist.angular)
            total += ca.dot(rate, link.armature @ rate)
        return total / 2

    # ------------------------------------------------------------------ derivatives

    @cached_property
    def _slopes(self) -> TreeSlopes:
        return TreeSlopes(self)

    def inverse_slopes(self, a: Matrix) -> tuple[Matrix, Matrix]:
        """Return the slopes (nv x nv) of `inverse` by x and by v, in closed form."""
        return self._slopes.by_inverse(a)

    def newton_slopes(self, a: Matrix) -> tuple[Matrix, Matrix]:
        """Return slopes as `inverse_slopes` does, near enough for Newton's method."""
        return self._slopes.by_newton(a)

    def forward_slopes(self, force: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        """Return the slopes (nv x nv) of `accelerate` by x, by v and by the force."""
        return self._slopes.by_forward(force)


def _at_joints(load: Load) -> Matrix:
    """Return the joint forces of a load; in these coordinates `force` is another of them."""
    return load.joint_force if load.force is None else load.joint_force + load.force


def _without(jacobian: Jacobian, columns: list[int]) -> Jacobian:
    value, rate = ca.SX(jacobian.value), ca.SX(jacobian.rate)
    value[:, columns] = 0
    rate[:, columns] = 0
    return Jacobian(ca.sparsify(value), ca.sparsify(rate))
