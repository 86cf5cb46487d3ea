"""Finding parts of a machine by name, and giving all of them other names."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from framefree.machine.body import WORLD
from framefree.machine.part import with_names
from framefree.machine.problems import MachineError, known_names
from framefree.machine.tree import unknown

GROUPS = {
    "body": "bodies",
    "joint": "joints",
    "frame": "frames",
    "spring": "springs",
    "damper": "dampers",
    "tendon": "tendons",
    "interaction": "interactions",
    "loop": "loops",
    "coupling": "couplings",
    "actuator": "actuators",
    "keyframe": "keyframes",
}
"""Groups of named parts, by the word that qualifies a name: "joint:elbow"."""

UNNAMED = ("geometry", "collisions")
"""Groups whose parts nothing else refers to: their names need not differ, and do not change."""

REFERRING = (
    *("springs", "dampers", "tendons", "interactions", "loops", "couplings", "actuators"),
    *UNNAMED,
)
"""Groups whose parts refer to frames, joints, coordinates or tendons by fields that they list."""


@dataclass(frozen=True)
class NamedPart:
    """A part, and the group of the machine that holds it."""

    group: str
    part: Any


def find_all(machine: Any, name: str) -> list[NamedPart]:
    """Return all parts of this name; "joint:elbow" looks among joints only."""
    word, _, rest = name.partition(":")
    groups = [GROUPS[word]] if word in GROUPS and rest else list(GROUPS.values())
    wanted = rest if word in GROUPS and rest else name
    return [
        NamedPart(g, part) for g in groups for part in getattr(machine, g) if part.name == wanted
    ]


def find(machine: Any, name: str) -> NamedPart:
    """Return the one part of this name.

    A motor that drives the joint of its own name, as those of robot files do, leaves the name to
    the joint; "actuator:elbow" is the motor.

    Raises
    ------
    MachineError
        If there is none, or if parts of several groups have the name.
    """
    entries = find_all(machine, name)
    if any(item.group == "joints" for item in entries):
        entries = [item for item in entries if not _drives_its_namesake(item)]
    if len(entries) == 1:
        return entries[0]
    if not entries:
        raise MachineError(unknown("part", name, all_names(machine)))
    words = [word for word, group in GROUPS.items() if group in {item.group for item in entries}]
    ways = known_names(f"{word}:{name}" for word in words)
    raise MachineError(f"several parts are named `{name}`; say which: {ways}")


def _drives_its_namesake(item: NamedPart) -> bool:
    """Whether this is an actuator on the joint that has its name."""
    return item.group == "actuators" and getattr(item.part, "joint", None) == item.part.name


def all_names(machine: Any) -> set[str]:
    """Return the names of all parts."""
    return {part.name for group in GROUPS.values() for part in getattr(machine, group)}


def renamed(
    machine: Any,
    place: Callable[[str], str] = lambda name: name,
    joint: Callable[[str], str] = lambda name: name,
    own: Callable[[str, str], str] = lambda group, name: name,
) -> dict[str, Any]:
    """Return all sequences of a machine with other names.

    Parameters
    ----------
    place : new name of a body or frame; it is called for "world" too, where a part refers to it.
    joint : new name of a joint.
    own : new name of any other part, from its group and name.
    """
    fields: dict[str, Any] = {
        "bodies": tuple(replace(b, name=place(b.name)) for b in machine.bodies),
        "frames": tuple(replace(f, name=place(f.name), body=place(f.body)) for f in machine.frames),
        "joints": tuple(
            replace(j, name=joint(j.name), parent=place(j.parent), child=place(j.child))
            for j in machine.joints
        ),
    }
    changed = {
        "frame_fields": place,
        "joint_fields": joint,
        "coordinate_fields": _coordinates(machine, joint).__getitem__,
        "tendon_fields": lambda name: own("tendons", name),
    }
    for group in REFERRING:
        fields[group] = tuple(_referring(p, group, changed, own) for p in getattr(machine, group))
    fields["keyframes"] = tuple(
        replace(
            k,
            name=own("keyframes", k.name),
            x=tuple((joint(name), values) for name, values in k.x),
            v=tuple((joint(name), values) for name, values in k.v),
            u=tuple((own("actuators", name), values) for name, values in k.u),
        )
        for k in machine.keyframes
    )
    if machine.fluid is not None:
        immersed = tuple(replace(i, frame=place(i.frame)) for i in machine.fluid.immersed)
        fields["fluid"] = replace(machine.fluid, immersed=immersed)
    return fields


def _referring(part: Any, group: str, changed: dict[str, Any], own: Any) -> Any:
    changes = {
        field: with_names(getattr(part, field), new_name)
        for kind, new_name in changed.items()
        for field in getattr(part, kind)
    }
    if group not in UNNAMED:
        changes["name"] = own(group, part.name)
    return replace(part, **changes)


def _coordinates(machine: Any, joint: Callable[[str], str]) -> dict[str, str]:
    """Return the new name of every coordinate."""
    return {name: joint(j.name) + name[len(j.name) :] for j in machine.joints for name in j.x_names}


def with_name_changed(machine: Any, entry: NamedPart, name: str) -> dict[str, Any]:
    """Return all sequences of a machine with one part renamed, references included."""
    old = entry.part.name

    def swap(candidate: str) -> str:
        return name if candidate == old else candidate

    if entry.group in ("bodies", "frames"):
        if name == WORLD:
            raise MachineError(f"`{old}` cannot be renamed `world`: that is the fixed world")
        return renamed(machine, place=swap)
    if entry.group == "joints":
        return renamed(machine, joint=swap)
    return renamed(machine, own=lambda group, n: swap(n) if group == entry.group else n)
