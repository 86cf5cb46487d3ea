"""Contact of balls, computed in axes of the world.

A ball is the same however it is turned. Its contact therefore needs no attitude: with the center
c_b of the ball and frame a, or the center c_a of another ball, the force is evaluated between
frames that have these origins but do not turn with the ball. The wrenches on a body are summed in
axes of the world and turned into those of the body once, which costs less than half of what turning
each of them does.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import casadi as ca

from framefree.geometry import se3
from framefree.machine import WORLD, Contact, Frame
from framefree.machine.values import constant_pose
from framefree.motion.spatial import Matrix, SpatialWrench, Step, Twist

if TYPE_CHECKING:
    from framefree.motion.forces import Bodies


def on_a_ball(force: Any) -> bool:
    """Tell whether a force is contact with a ball in frame b."""
    return isinstance(force, Contact) and force.shape_b.kind == "sphere"


class WorldWrenches:
    """Sums of wrenches on the bodies, in axes of the world about the origins of the bodies."""

    def __init__(self, bodies: "Bodies") -> None:
        self.bodies = bodies
        self._sums: dict[int, SpatialWrench] = {}

    def add_contact(self, contact: Contact) -> None:
        """Add what a contact with a ball in frame b does to both bodies."""
        frame_a, frame_b = (
            self.bodies.machine.frame(n) for n in (contact.frame_a, contact.frame_b)
        )
        centered = {"shape_b": replace(contact.shape_b, pose=None)}
        ball = self._turning_not(frame_b, contact.shape_b.pose)
        if contact.shape_a.kind == "sphere":
            centered["shape_a"] = replace(contact.shape_a, pose=None)
            other = self._turning_not(frame_a, contact.shape_a.pose)
        else:
            other = (
                self.bodies.pose(frame_a),
                Twist.of(ca.densify(ca.SX(self.bodies.twist(frame_a)))),
            )
        G = se3.compose(se3.inverse(other[0]), ball[0])
        carried = Step(se3.rotation(G), se3.position(G)).twist_into(other[1])
        twist = ball[1].vector - carried.vector
        wrench = SpatialWrench.of(replace(contact, **centered).wrench_at(G, twist, 0))
        center = se3.position(ball[0])
        self._add(frame_b, wrench, center)
        self._add(frame_a, SpatialWrench(-wrench.force, -wrench.moment), center)

    def in_body_axes(self, index: int) -> Matrix | None:
        """Return the sum (6) on a body in its own axes; None where nothing acts."""
        if index not in self._sums:
            return None
        total, R = self._sums[index], se3.rotation(self.bodies.poses[index])
        return ca.vertcat(R.T @ total.force, R.T @ total.moment)

    def _turning_not(self, frame: Frame, on_frame: Any) -> tuple[Matrix, Twist]:
        """Return pose and twist of a ball's center, in axes of the world."""
        index = self.bodies.machine.body_index[frame.body]
        offset = se3.position(se3.compose(constant_pose(frame.pose), constant_pose(on_frame)))
        pose = ca.SX.eye(4)
        if frame.body == WORLD:
            pose[:3, 3] = offset
            return pose, Twist(ca.SX(3, 1), ca.SX(3, 1))
        R = se3.rotation(self.bodies.poses[index])
        arm = R @ offset
        pose[:3, 3] = se3.position(self.bodies.poses[index]) + arm
        xi = Twist.of(ca.densify(ca.SX(self.bodies.twists[index])))
        turning = R @ xi.angular
        return pose, Twist(R @ xi.linear + ca.cross(turning, arm), turning)

    def _add(self, frame: Frame, wrench: SpatialWrench, point: Matrix) -> None:
        """Add a wrench at a point of the world to the body of a frame."""
        index = self.bodies.machine.body_index[frame.body]
        if index < 0:
            return
        arm = point - se3.position(self.bodies.poses[index])
        moved = SpatialWrench(wrench.force, wrench.moment + ca.cross(arm, wrench.force))
        known = self._sums.get(index)
        self._sums[index] = moved if known is None else known.plus(moved)
