"""Reading URDF: links and joints put together as a machine.

The root link is the world (`base` "fixed" or None), or floats in it (`base` "free").
"""

from __future__ import annotations

from framefree.machine.formats.builder import MachineBuilder
from framefree.machine.formats.markup import Element, ReadError
from framefree.machine.formats.options import ReadOptions
from framefree.machine.formats.records import JointRecord, LinkRecord
from framefree.machine.formats.source import Source
from framefree.machine.formats.urdf_couplings import coupled
from framefree.machine.formats.urdf_elements import RobotElements
from framefree.machine.formats.urdf_gazebo import closing_joints
from framefree.machine.machine import Machine
from framefree.machine.problems import Problems, known_names
from framefree.machine.tree import unknown


def read_urdf(source: Source, robot: Element, options: ReadOptions) -> Machine:
    """Return the machine that a <robot> element describes."""
    problems = Problems()
    elements = RobotElements(source, robot, problems)
    order = _tree(elements, problems)
    gazebo = elements.extensions.gazebo_joints if order else ()
    closing = closing_joints(elements.place, gazebo, order)
    remarks, ignored = elements.left_out(strict=options.strict)
    problems.raise_if_any(ReadError)
    joints = [*elements.joints, *closing]
    driven = elements.extensions.motors
    builder = MachineBuilder(source.name, elements.links, joints, options, problems, driven)
    builder.stand_on_world()
    moved_by = {link.name: joint for link, joint in order if joint is not None}
    for record in elements.extensions.couplings:
        builder.couple(coupled(record, moved_by))
    for link, joint in order:
        builder.add(link, joint, free=options.base == "free")
    for loop in elements.extensions.loops:
        builder.add_loop(loop)
    for joint in closing:
        builder.close(joint)
    for frame in elements.extensions.frames:
        builder.add_frame(frame)
    return builder.machine(elements.name, remarks=remarks, ignored=ignored)


def _tree(
    elements: RobotElements, problems: Problems
) -> list[tuple[LinkRecord, JointRecord | None]]:
    """Links with the joint that moves each, the root (without) first, parents before children."""
    links: dict[str, LinkRecord] = {}
    for link in elements.links:
        if link.name in links:
            line = links[link.name].place.element.line
            link.place.problem(f"this name is taken by the link at line {line}")
        links.setdefault(link.name, link)
    taken: dict[str, JointRecord] = {}
    moved_by: dict[str, JointRecord] = {}
    for joint in elements.joints:
        if joint.name in taken:
            line = taken[joint.name].place.element.line
            joint.place.problem(f"this name is taken by the joint at line {line}")
        taken.setdefault(joint.name, joint)
        for end in ("parent", "child"):
            if getattr(joint, end) not in links:
                joint.place.problem(unknown(f"{end} link", getattr(joint, end), links))
        if joint.child in moved_by:
            other = moved_by[joint.child].name
            joint.place.problem(
                f"link `{joint.child}` is the child of joint `{other}` already; URDF describes "
                "trees, close a loop with a <loop_joint>, with `read(..., loops=...)` or in Python "
                "with a Loop"
            )
        moved_by.setdefault(joint.child, joint)
    _check_extensions(elements, links)
    if problems.messages:
        return []
    return _depth_first(links, moved_by, elements, problems)


def _check_extensions(elements: RobotElements, links: dict[str, LinkRecord]) -> None:
    for loop in elements.extensions.loops:
        for name in (loop.link_a, loop.link_b):
            if name not in links:
                loop.place.problem(unknown("link", name, links))
    for coupling in elements.extensions.couplings:
        for name in (coupling.predecessor, coupling.successor):
            if name not in links:
                coupling.place.problem(unknown("link", name, links))
    for frame in elements.extensions.frames:
        if frame.link not in links:
            frame.place.problem(unknown("link", frame.link, links))
    elements.extensions.check_springs({joint.name for joint in elements.joints})


def _depth_first(
    links: dict[str, LinkRecord],
    moved_by: dict[str, JointRecord],
    elements: RobotElements,
    problems: Problems,
) -> list[tuple[LinkRecord, JointRecord | None]]:
    roots = [name for name in links if name not in moved_by]
    if len(roots) != 1:
        words = "the joints close a cycle" if links else "there are no links"
        problems.add(
            f"{elements.source.name}: exactly one link must have no parent joint, the root; "
            + (f"got {known_names(roots)}" if roots else words)
        )
        return []
    children: dict[str, list[JointRecord]] = {}
    for joint in moved_by.values():
        children.setdefault(joint.parent, []).append(joint)
    order, stack = [], [roots[0]]
    while stack:
        name = stack.pop()
        order.append((links[name], moved_by.get(name)))
        stack.extend(joint.child for joint in reversed(children.get(name, [])))
    reached = {link.name for link, _ in order}
    for name in links:
        if name not in reached:
            links[name].place.problem(
                f"the link is not connected to the root link `{roots[0]}`: its joints close a cycle"
            )
    return order
