"""Kinematics of the maximal formulation: what poses and twists of all bodies say about the joints.

The configuration x holds, for each body in the machine's order, its position and quaternion wxyz
(7 numbers), and after these the joint coordinates that a pose does not determine: those of custom
joints, and angles, of which the pose tells all but the number of full turns. The velocity v holds
the body twists, 6 numbers each.
"""

from collections.abc import Sequence
from functools import cached_property

import casadi as ca

from framefree.geometry import quaternion, se3
from framefree.machine import Machine
from framefree.motion import forces
from framefree.motion.elimination import Directions, directions
from framefree.motion.maximal.joints import (
    coordinates,
    joint_bias,
    joint_pose,
    joint_step,
    kept_coordinates,
)
from framefree.motion.spatial import Matrix, SpatialWrench, Step, Twist
from framefree.motion.tree.links import Link
from framefree.motion.tree.tree import Tree

POSE, TWIST = 7, 6
"""Numbers of a body in x and in v."""


class MaximalModel:
    """A machine's constants, prepared once for tracing.

    `kept` says for each joint that has coordinates of its own in x (see the top of this file) where
    they are.

    `stabilisation` (1/s) pulls joints and loops that have drifted apart together again:
    d2e + 2 s de + s^2 e = 0 for their errors e.
    """

    def __init__(self, machine: Machine, stabilisation: float = 0.0) -> None:
        self.machine, self.stabilisation = machine, stabilisation
        self.tree = Tree(machine.tree)
        self.links: list[Link] = self.tree.links
        self.on_body = [step_of(se3.inverse(link.to_body)) for link in self.links]
        self.to_body = [step_of(link.to_body) for link in self.links]
        self.kept: dict[int, slice] = {}
        end = POSE * len(self.links)
        for i, link in enumerate(self.links):
            count = len(kept_coordinates(link.kind))
            if count:
                self.kept[i] = slice(end, end + count)
                end += count
        self.nx, self.nv = end, TWIST * len(self.links)

    @cached_property
    def inertias(self) -> list[Matrix]:
        """Inertia (6x6) of every body in its own axes, added mass of the fluid included."""
        added = forces.added_masses(self.machine)
        return [
            ca.SX(body.moments.matrix6) + (0 if extra is None else extra)
            for body, extra in zip(self.machine.bodies, added, strict=True)
        ]

    def from_joints(self, x: Matrix, v: Matrix) -> tuple[Matrix, Matrix]:
        """Return the maximal configuration and velocity of joint coordinates and joint rates."""
        state = self.tree.at(x, v)
        parts = [
            ca.vertcat(se3.position(G), quaternion.from_rotation(se3.rotation(G)))
            for G in state.poses
        ]
        parts += [self.kept_of(i, x[self.links[i].x]) for i in self.kept]
        return stack(parts), stack(state.twists)

    def kept_of(self, i: int, values: Matrix) -> Matrix:
        """Return the rows of coordinates of joint i (nx rows) that x keeps."""
        return values[list(kept_coordinates(self.links[i].kind)), :]


class Kinematics:
    """Bodies, links and joints at a state (x, v). Everything is computed when first asked for."""

    def __init__(self, model: MaximalModel, x: Matrix, v: Matrix) -> None:
        self.model, self.machine, self.links = model, model.machine, model.links
        self.x, self.v = x, v

    # ------------------------------------------------------------------ bodies and links

    @cached_property
    def poses(self) -> list[Matrix]:
        """Pose (4x4) of every body."""
        parts = [self.x[POSE * i : POSE * (i + 1)] for i in range(len(self.links))]
        return [se3.pose(quaternion.to_rotation(part[3:]), part[:3]) for part in parts]

    @cached_property
    def twists(self) -> list[Matrix]:
        """Body twist (6) of every body."""
        return self.split(self.v)

    def split(self, stacked: Matrix) -> list[Matrix]:
        """Return the six rows of every body."""
        return [stacked[TWIST * i : TWIST * (i + 1), :] for i in range(len(self.links))]

    @cached_property
    def bodies(self) -> forces.Bodies:
        """Poses and twists of the bodies, as the force laws want them."""
        return forces.Bodies(self.machine, self.poses, self.twists)

    @cached_property
    def link_poses(self) -> list[Matrix]:
        """Pose (4x4) of every link frame."""
        return [
            se3.compose(G, se3.inverse(link.to_body))
            for G, link in zip(self.poses, self.links, strict=True)
        ]

    @cached_property
    def link_twists(self) -> list[Twist]:
        """Twist of every link frame."""
        return [
            step.twist_into(Twist.of(xi))
            for step, xi in zip(self.model.on_body, self.twists, strict=True)
        ]

    def to_links(self, wrenches: Sequence[Matrix]) -> list[Matrix]:
        """Wrenches on bodies (6 x k each) seen in link frames."""
        return [
            step.wrench_out(SpatialWrench.of(wrench)).vector
            for step, wrench in zip(self.model.to_body, wrenches, strict=True)
        ]

    def of_links(self, twists: Sequence[Matrix]) -> Matrix:
        """Twists of links (6 x k each) seen in body frames, stacked."""
        return stack(
            [
                step.twist_into(Twist.of(twist)).vector
                for step, twist in zip(self.model.to_body, twists, strict=True)
            ]
        )

    # ------------------------------------------------------------------ joints

    @cached_property
    def joint_poses(self) -> list[Matrix]:
        """Pose (4x4) that each joint has, in the axes of its link, found from the bodies' poses."""
        poses = self.link_poses
        return [
            joint_pose(link, None if link.parent < 0 else poses[link.parent], G)
            for link, G in zip(self.links, poses, strict=True)
        ]

    @cached_property
    def joint_x(self) -> Matrix:
        """Joint coordinates (nx of the machine)."""
        parts = []
        for i, (link, G) in enumerate(zip(self.links, self.joint_poses, strict=True)):
            kept = self.x[self.model.kept.get(i, slice(0, 0))]
            parts.append(coordinates(link.kind, se3.rotation(G), se3.position(G), kept))
        return stack(parts)

    @cached_property
    def kept_rates(self) -> Matrix:
        """Rates of the joint coordinates that x holds after the poses."""
        parts = []
        for i in self.model.kept:
            link = self.links[i]
            rate = ca.SX(link.kind.rate(self.joint_x[link.x])) @ self.joint_v[link.v]
            parts.append(self.model.kept_of(i, rate))
        return stack(parts)

    @cached_property
    def steps(self) -> list[Step]:
        """Pose of every link on its parent's: turned as bodies are, placed as joints allow."""
        return [
            joint_step(link, G, self.joint_x)
            for link, G in zip(self.links, self.joint_poses, strict=True)
        ]

    @cached_property
    def directions(self) -> list[Directions]:
        """Free, dual and blocked directions of every joint, in link axes."""
        return [directions(link, self.joint_x) for link in self.links]

    @cached_property
    def carried(self) -> list[Twist]:
        """Twist of each link if its joint did not move."""
        return [
            Twist.zero() if link.parent < 0 else step.twist_into(self.link_twists[link.parent])
            for link, step in zip(self.links, self.steps, strict=True)
        ]

    @cached_property
    def relative(self) -> list[Matrix]:
        """Twist (6) of each link relative to its parent, in link axes; S v where joints hold."""
        return [
            twist.minus(carried).vector
            for twist, carried in zip(self.link_twists, self.carried, strict=True)
        ]

    @cached_property
    def joint_v(self) -> Matrix:
        """Joint rates (nv of the machine)."""
        return stack([d.W.T @ xi for d, xi in zip(self.directions, self.relative, strict=True)])

    @cached_property
    def violations(self) -> list[Matrix]:
        """How far each joint is apart (6): position, m, and rotation vector, rad, in its frame."""
        errors = []
        for link, G in zip(self.links, self.joint_poses, strict=True):
            turn = step_of(ca.SX(se3.pose(link.to_joint, ca.DM.zeros(3))))
            actual = se3.pose(turn.R0 @ se3.rotation(G) @ turn.R0.T, turn.R0 @ se3.position(G))
            allowed = ca.SX(link.kind.pose(self.joint_x[link.x]))
            gap = se3.compose(se3.inverse(allowed), actual)
            errors.append(se3.pose_error(ca.DM.eye(4), gap))
        return errors

    @cached_property
    def biases(self) -> list[Matrix]:
        """Bias of each joint, see `joint_bias`; stabilisation included."""
        biases = []
        for i, link in enumerate(self.links):
            carried, relative = self.carried[i], self.relative[i]
            bias = joint_bias(link, carried, Twist.of(relative), self.joint_x, self.joint_v)
            if self.model.stabilisation:
                N = self.directions[i].N
                turn = ca.diagcat(link.to_joint, link.to_joint)
                bias = bias - N @ (N.T @ self.pull(turn.T @ self.violations[i], relative))
            biases.append(bias)
        return biases

    def pull(self, error: Matrix, rate: Matrix) -> Matrix:
        """Return ``2 s de + s^2 e``."""
        s = self.model.stabilisation
        return 2 * s * rate + s**2 * error


def step_of(pose: Matrix) -> Step:
    """Pose (4x4) as a `Step`."""
    return Step(se3.rotation(pose), se3.position(pose))


def stack(parts: Sequence[Matrix]) -> Matrix:
    """Stack columns (or blocks) on one another."""
    return ca.densify(ca.SX(ca.vertcat(*parts))) if parts else ca.SX(0, 1)
