"""Arranging bodies and joints as a tree: every body moved by one joint, parents before children."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from framefree.errors import near
from framefree.machine.body import WORLD, Body
from framefree.machine.frame import Frame
from framefree.machine.joint import Joint
from framefree.machine.problems import Problems, known_names
from framefree.machine.values import compose


def arrange(
    bodies: Sequence[Body], joints: Sequence[Joint], frames: Sequence[Frame], problems: Problems
) -> tuple[tuple[Body, ...], tuple[Joint, ...]]:
    """Bodies and joints in depth-first order, joint i moving body i.

    What is wrong goes to `problems`.

    Children of one body keep the order in which their joints are listed. Subtrees are contiguous.
    """
    names = {body.name: body for body in bodies}
    places = {frame.name: frame for frame in frames}
    joints = [_resolved(joint, names, places, problems) for joint in joints]
    moved_by = _tree_joints(joints, names, problems)
    children: dict[str, list[Joint]] = {}
    for joint in moved_by.values():
        children.setdefault(joint.parent, []).append(joint)
    order: list[Joint] = []
    stack = children.get(WORLD, [])[::-1]
    while stack:
        joint = stack.pop()
        order.append(joint)
        stack.extend(children.get(joint.child, [])[::-1])
    _report_unreached(names, moved_by, {joint.child for joint in order}, problems)
    return tuple(names[joint.child] for joint in order), tuple(order)


def check_unique(kind: str, names: Iterable[str], problems: Problems) -> None:
    """Report names that occur more than once."""
    seen: set[str] = set()
    reported: set[str] = set()
    for name in names:
        if name in seen and name not in reported:
            problems.add(f"{kind} must have different names, but `{name}` occurs more than once")
            reported.add(name)
        seen.add(name)


def unknown(what: str, name: str, valid: Iterable[str]) -> str:
    """Message for a name that is not there, with the nearest or all valid ones."""
    valid = list(valid)
    if hint := near(name, valid):
        return f"{what} `{name}` is unknown; {hint.strip()}"
    return f"{what} `{name}` is unknown; {'known: ' if valid else ''}{known_names(valid)}"


def _resolved(
    joint: Joint, bodies: dict[str, Body], frames: dict[str, Frame], problems: Problems
) -> Joint:
    """Return the joint with frames' names replaced by their bodies, and unknown names reported."""
    changes = {}
    for end in ("parent", "child"):
        name = getattr(joint, end)
        if name in bodies or name == WORLD:
            continue
        if name in frames:
            changes[end] = frames[name].body
            changes[f"{end}_pose"] = compose(frames[name].pose, getattr(joint, f"{end}_pose"))
        else:
            problems.add(
                unknown(f"the {end} of joint `{joint.name}`:", name, [*bodies, *frames, WORLD])
            )
    return replace(joint, **changes) if changes else joint


def _tree_joints(
    joints: list[Joint], bodies: dict[str, Body], problems: Problems
) -> dict[str, Joint]:
    """Return the one joint that moves each body; what breaks the tree is reported."""
    moved_by: dict[str, Joint] = {}
    for joint in joints:
        if joint.child == WORLD:
            problems.add(
                f"joint `{joint.name}`: the world cannot be the child; swap parent and child"
            )
        elif joint.parent == joint.child:
            problems.add(f"joint `{joint.name}` connects body `{joint.child}` to itself")
        elif joint.child in moved_by:
            other = moved_by[joint.child]
            problems.add(
                f"body `{joint.child}` is the child of joint `{other.name}` and of joint "
                f"`{joint.name}`, "
                f"which closes a cycle; close it with a Loop between `{joint.parent}` and "
                f"`{joint.child}` instead of joint `{joint.name}`"
            )
        elif joint.child in bodies:
            moved_by[joint.child] = joint
    return moved_by


def _report_unreached(
    bodies: dict[str, Body], moved_by: dict[str, Joint], reached: set[str], problems: Problems
) -> None:
    for name in bodies:
        if name not in moved_by:
            problems.add(
                f"body `{name}` is not connected: no joint has it as child; a body that flies "
                "freely "
                f'needs Joint("{name}_free", Free(), "world", "{name}")'
            )
    stray = [n for n in bodies if n in moved_by and n not in reached and _in_cycle(n, moved_by)]
    if stray:
        first = moved_by[stray[0]].name
        problems.add(
            f"bodies {known_names(stray)} hang on each other in a cycle and not on the world; "
            "replace one "
            f"joint, for instance `{first}`, by a Loop, and connect one of the bodies to `world`"
        )


def _in_cycle(name: str, moved_by: dict[str, Joint]) -> bool:
    at = moved_by[name].parent
    for _ in range(len(moved_by)):
        if at == name:
            return True
        if at not in moved_by:
            return False
        at = moved_by[at].parent
    return False
