"""Wrenches of loops on the bodies of a tree, and what the joints of the tree then carry."""

from collections.abc import Iterable

import casadi as ca

from framefree.geometry import se3
from framefree.machine import Frame, Machine
from framefree.machine.values import constant_pose
from framefree.motion.constrained.rows import Closed
from framefree.motion.equations import Output
from framefree.motion.spatial import Matrix, Step, Wrench
from framefree.motion.tree.state import TreeState


def loads(tree: TreeState, loops: Iterable[tuple[Closed, Matrix]]) -> list[Matrix | None]:
    """Return the wrench (6) that loops exert on every body, in body axes; None where none does.

    Loops come with the wrench of frame a on frame b in b's axes; frame a feels the reaction.
    """
    machine = tree.machine
    total: list[Matrix | None] = [None] * len(machine.bodies)
    for closed, wrench in loops:
        a, b = (machine.frame(name) for name in (closed.loop.frame_a, closed.loop.frame_b))
        G_ab = se3.compose(se3.inverse(tree.frame_pose(a.name)), tree.frame_pose(b.name))
        _add(machine, total, b, wrench)
        _add(machine, total, a, -_out(G_ab, wrench))
    return total


def joint_wrenches(tree: TreeState, a: Matrix, acting: list[Matrix | None]) -> Output:
    """Return what every joint carries (bodies, 6) at acceleration a, in the child's joint frame."""
    passed = tree.joint_wrenches(a, acting)
    rows = [
        ca.vertcat(link.to_joint @ wrench.force, link.to_joint @ wrench.moment).T
        for link, wrench in zip(tree.links, passed, strict=True)
    ]
    return Output(ca.vertcat(ca.SX(0, 6), *rows), (len(rows), 6))


def _add(machine: Machine, total: list[Matrix | None], frame: Frame, wrench: Matrix) -> None:
    index = machine.body_index[frame.body]
    if index >= 0:
        on_body = _out(constant_pose(frame.pose), wrench)
        total[index] = on_body if total[index] is None else total[index] + on_body


def _out(G: Matrix, wrench: Matrix) -> Matrix:
    """Carry a wrench out of the frame that G is the pose of."""
    return Step(se3.rotation(G), se3.position(G)).wrench_out(Wrench.of(wrench)).vector
