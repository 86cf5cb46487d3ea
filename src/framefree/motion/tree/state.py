"""One symbolic state of a tree machine, with all that is derived from it on demand."""

from collections.abc import Sequence
from functools import cached_property

import casadi as ca

from framefree.geometry import se3
from framefree.machine import Machine
from framefree.machine.values import constant
from framefree.motion import forces
from framefree.motion.spatial import Inertia, Matrix, Rigid, Step, Twist, Wrench
from framefree.motion.tree import recursion
from framefree.motion.tree.kinematics import Jacobian, frame_step, link_jacobians, link_poses
from framefree.motion.tree.links import Link, links_of
from framefree.motion.tree.lump import lumped
from framefree.motion.tree.recursion import Motion


class TreeModel:
    """A machine's links and constants, prepared once for tracing."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.links: list[Link] = links_of(machine)
        self.gravity: Matrix = ca.SX(constant(machine.gravity))

    @cached_property
    def inertias(self) -> list[Inertia]:
        """Inertia of every link in its own frame, added mass of the fluid included."""
        added = forces.added_masses(self.machine)
        return [
            link.inertia if extra is None else link.inertia.plus(_in_link(link, extra))
            for link, extra in zip(self.links, added, strict=True)
        ]

    @cached_property
    def lumped(self) -> list[Rigid]:
        """Inertias of the links that give the same joint forces with fewer operations."""
        return lumped(self.links)

    @cached_property
    def lumped_inertias(self) -> list[Rigid] | list[Inertia]:
        """The same, added mass of the fluid included."""
        added = forces.added_masses(self.machine)
        if all(extra is None for extra in added):
            return self.lumped
        return [
            rigid.full if extra is None else rigid.full.plus(_in_link(link, extra))
            for rigid, link, extra in zip(self.lumped, self.links, added, strict=True)
        ]

    def at(self, x: Matrix, v: Matrix | None = None) -> "TreeState":
        """Return the state (x, v); without v the machine is at rest."""
        return TreeState(self, x, ca.SX(self.machine.nv, 1) if v is None else v)


class TreeState:
    """A state (x, v) of a `TreeModel`. Everything is computed when first asked for."""

    def __init__(self, model: TreeModel, x: Matrix, v: Matrix) -> None:
        self.model, self.machine, self.links = model, model.machine, model.links
        self.x, self.v = x, v

    @cached_property
    def motion(self) -> Motion:
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

    @cached_property
    def bodies(self) -> forces.Bodies:
        """Poses and twists of the bodies, as the force laws want them."""
        return forces.Bodies(self.machine, self.poses, self.twists)

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

    def _of_bodies(self, twists: list[Twist]) -> list[Matrix]:
        return [
            _step(link.to_body).twist_into(twist).vector
            for link, twist in zip(self.links, twists, strict=True)
        ]

    # ------------------------------------------------------------------ loads

    def loads(
        self,
        wrenches: list[Matrix | None] | None = None,
        inertias: Sequence[Inertia] | Sequence[Rigid] | None = None,
    ) -> list[Wrench]:
        """All wrenches on the links but those of joints and gravity, gyroscopic ones included.

        `wrenches` are further ones on the bodies, in body axes. Gyroscopic are those of `inertias`,
        by default of the links' own.
        """
        own = [link.inertia for link in self.links] if inertias is None else inertias
        gyroscopic = recursion.gyroscopic(own, self.motion.twists)
        loads = [Wrench.zero().minus(wrench) for wrench in gyroscopic]
        passive = forces.body_wrenches(self.bodies)
        for given in (passive, self._weightless, wrenches or [None] * len(loads)):
            for i, wrench in enumerate(given):
                if wrench is not None:
                    step = _step(self.links[i].to_body)
                    loads[i] = loads[i].plus(step.wrench_out(Wrench.of(wrench)))
        return loads

    @cached_property
    def _weightless(self) -> list[Matrix | None]:
        """Take back the gravity that the upward acceleration of the world gives to added mass."""
        wrenches: list[Matrix | None] = []
        for added, G in zip(forces.added_masses(self.machine), self.poses, strict=True):
            g = ca.vertcat(se3.rotation(G).T @ self.model.gravity, ca.SX(3, 1))
            wrenches.append(None if added is None else -added @ g)
        return wrenches

    @cached_property
    def resistance(self) -> Matrix:
        """Passive joint forces (nv) that stand on the left: springs, damping, friction."""
        return forces.joint_resistance(self.machine, self.x, self.v)

    # ------------------------------------------------------------------ the recursions

    def forward(self, force: Matrix, wrenches: list[Matrix | None] | None = None) -> Matrix:
        """Acceleration (nv) under joint forces and wrenches on the bodies."""
        return recursion.articulated_body(
            self.links,
            self.motion,
            force - self.resistance,
            self.loads(wrenches),
            self.model.inertias,
            self.model.gravity,
        )

    def inverse(self, a: Matrix, wrenches: list[Matrix | None] | None = None) -> Matrix:
        """Joint forces (nv) for acceleration a under wrenches on the bodies."""
        model = self.model
        loads = self.loads(wrenches, model.lumped)
        force, _ = recursion.newton_euler(
            self.links, self.motion, a, loads, model.lumped_inertias, model.gravity
        )
        return force + self.resistance

    def joint_wrenches(
        self, a: Matrix, wrenches: list[Matrix | None] | None = None
    ) -> list[Wrench]:
        """Wrench that each joint passes from parent to child for acceleration a, in link axes."""
        model = self.model
        return recursion.newton_euler(
            self.links, self.motion, a, self.loads(wrenches), model.inertias, model.gravity
        )[1]

    @cached_property
    def mass(self) -> Matrix:
        """Mass matrix (nv x nv)."""
        return recursion.composite_inertia(
            self.links, self.motion.steps, self.motion.subspaces, self.model.lumped_inertias
        )

    @cached_property
    def gravity_force(self) -> Matrix:
        """Joint forces (nv) that hold the machine against gravity alone."""
        at_rest = self.model.at(self.x)
        zero = ca.SX(self.machine.nv, 1)
        force, _ = recursion.newton_euler(
            self.links,
            at_rest.motion,
            zero,
            [Wrench.zero()] * len(self.links),
            self.model.lumped,
            self.model.gravity,
        )
        return force

    # ------------------------------------------------------------------ energy

    @cached_property
    def kinetic(self) -> Matrix:
        """Kinetic energy (J), of rotors and added mass too."""
        total = ca.SX(0)
        for link, inertia, twist in zip(
            self.links, self.model.inertias, self.motion.twists, strict=True
        ):
            momentum = inertia.times(twist)
            rate = self.v[link.v, :]
            total += ca.dot(momentum.force, twist.linear) + ca.dot(momentum.moment, twist.angular)
            total += ca.dot(rate, link.armature @ rate)
        return total / 2


def _step(pose: Matrix) -> Step:
    return Step(se3.rotation(pose), se3.position(pose))


def _in_link(link: Link, matrix: Matrix) -> Inertia:
    """Return a body's 6x6 inertia seen in its link's frame."""
    return _step(link.to_body).inertia_out(Inertia.of(ca.SX(matrix)))
