"""Loops of a URDF file as Gazebo's users write them: a <joint> of SDFormat within <gazebo>.

Gazebo puts what stands in a <gazebo> without `reference` into the model that it makes of the URDF
file. A <joint> there has a parent and a child like any other, but both are links that other joints
move already, so that it closes a loop. Its <pose> is seen from the child, and where it sits on the
parent follows from how the file draws the robot, all joints at zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from framefree.machine.formats.markup import Element, Place
from framefree.machine.formats.poses import inverse
from framefree.machine.formats.records import JointRecord, LinkRecord
from framefree.machine.formats.sdf_joints import joint_of
from framefree.machine.formats.sdf_scope import Scope

VERSION = "1.7"
"""Of SDFormat, into which Gazebo turns a URDF file: axes are those of the joint's own frame."""


def closing_joints(
    robot: Place,
    elements: Iterable[Element],
    order: Sequence[tuple[LinkRecord, JointRecord | None]],
) -> list[JointRecord]:
    """Return the joints of Gazebo that close loops; what is wrong with them is noted.

    Parameters
    ----------
    robot : Place
    elements : iterable of Element
        The <joint>s within <gazebo>.
    order : sequence of (LinkRecord, JointRecord or None)
        Links with the joint that moves each, parents first.
    """
    scope = Scope.of_world(robot, VERSION)
    scope.links = {link.name: link.place.element for link, _ in order}
    scope.put(_drawn(order))
    taken = {joint.name for _, joint in order if joint is not None}
    records = []
    for element in elements:
        name = (element.get("name") or "").strip()
        place = scope.place_of(element)
        if not name or name in taken:
            place.problem("this name is taken by another joint" if name else "it needs a `name`")
            continue
        taken.add(name)
        scope.joints[name] = element
        record = joint_of(scope, place)
        if record is not None:
            records.append(record)
    return records


def _drawn(order: Sequence[tuple[LinkRecord, JointRecord | None]]) -> dict[str, np.ndarray]:
    """Return the poses of all links seen from the root, all joints at zero."""
    poses: dict[str, np.ndarray] = {}
    for link, joint in order:
        if joint is None:
            poses[link.name] = np.eye(4)
        else:
            moved = poses[joint.parent] @ joint.parent_pose
            poses[link.name] = moved @ inverse(joint.child_pose)
    return poses
