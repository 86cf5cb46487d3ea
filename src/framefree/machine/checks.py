"""What must hold between the parts of a machine.

Types, names, and references that lead somewhere.
"""

from typing import Any

from framefree.machine.body import WORLD, Body
from framefree.machine.frame import Frame
from framefree.machine.joint import Joint
from framefree.machine.problems import Problems
from framefree.machine.tree import check_unique, unknown

_TYPES = {"bodies": Body, "joints": Joint, "frames": Frame}


def check_parts(machine: Any, problems: Problems) -> None:
    """Report wrong types, names that are taken twice, and names that nothing has."""
    for group, expected in _TYPES.items():
        for item in getattr(machine, group):
            if not isinstance(item, expected):
                problems.add(
                    f"`{group}` must hold {expected.__name__} objects, got {type(item).__name__}"
                )
    problems.raise_if_any()
    bodies = [body.name for body in machine.bodies]
    frames = [frame.name for frame in machine.frames]
    check_unique("bodies and frames", [*bodies, *frames], problems)
    check_unique("joints", [joint.name for joint in machine.joints], problems)
    for frame in machine.frames:
        if frame.body != WORLD and frame.body not in bodies:
            problems.add(
                unknown(f"the body of frame `{frame.name}`:", frame.body, [*bodies, WORLD])
            )
    places = {WORLD, *bodies, *frames}
    joints = {joint.name for joint in machine.joints}
    for group in ("springs", "dampers", "loops", "couplings", "actuators"):
        parts = getattr(machine, group)
        check_unique(group, [part.name for part in parts], problems)
        for part in parts:
            _check_references(part, places, joints, problems)


def _check_references(part: Any, places: set[str], joints: set[str], problems: Problems) -> None:
    what = f"{type(part).__name__} `{part.name}`"
    for field in part.frame_fields:
        name = getattr(part, field)
        if name not in places:
            problems.add(unknown(f"{what}: frame", name, places))
    for field in part.joint_fields:
        name = getattr(part, field)
        if name not in joints:
            problems.add(unknown(f"{what}: joint", name, joints))
