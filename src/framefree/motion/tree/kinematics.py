"""Poses, Jacobians and their rates of links, bodies and frames of a tree, on casadi SX or DM."""

from collections.abc import Sequence

import casadi as ca

from framefree.geometry import se3
from framefree.machine import Machine
from framefree.machine.values import constant_pose
from framefree.motion.spatial import Matrix, Step, Twist
from framefree.motion.state import Jacobian
from framefree.motion.tree.links import Link
from framefree.motion.tree.recursion import LinkMotion, over_children


def link_poses(links: Sequence[Link], steps: Sequence[Step]) -> list[Matrix]:
    """Return the pose (4x4) of every link frame seen from the world."""

    def visit(i: int, parent: Matrix | None) -> Matrix:
        G = se3.pose(steps[i].rotation, steps[i].r)
        return G if parent is None else se3.compose(parent, G)

    return over_children(links, visit)


def body_poses(links: Sequence[Link], steps: Sequence[Step]) -> list[Matrix]:
    """Return the pose (4x4) of every body frame seen from the world."""
    return [
        se3.compose(G, link.to_body)
        for link, G in zip(links, link_poses(links, steps), strict=True)
    ]


def link_jacobians(
    links: Sequence[Link], state: LinkMotion, x: Matrix, v: Matrix
) -> list[Jacobian]:
    """Return ``J_i`` with twist_i = J_i v, and ``dJ_i/dt``, for every link."""
    nv = v.shape[0]

    def visit(i: int, parent: Jacobian | None) -> Jacobian:
        link, S = links[i], state.subspaces[i]
        value, rate = ca.SX(6, nv), ca.SX(6, nv)
        if parent is not None:
            value, rate = parent.into(state.steps[i], Twist.of(S @ v[link.v, :]))
        value[:, link.v] = S
        if not link.constant_subspace:
            rate[:, link.v] = link.subspace_rate(x, v)
        return Jacobian(value, rate)

    return over_children(links, visit)


def frame_step(machine: Machine, links: Sequence[Link], frame: str) -> tuple[int, Step]:
    """Return the index of the link that carries a frame (-1: world) and the frame's pose on it."""
    found = machine.frame(frame)
    index = machine.body_index[found.body]
    pose = constant_pose(found.pose)
    if index >= 0:
        pose = se3.compose(links[index].to_body, pose)
    return index, Step(se3.rotation(pose), se3.position(pose))
