"""Editing a machine: every function returns the sequences of a new one.

The methods of `Machine` of the same names say what each does.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from framefree.geometry.moments import Moments
from framefree.machine.body import WORLD, Body
from framefree.machine.checks import GROUPS
from framefree.machine.fluid import Fluid
from framefree.machine.frame import Frame
from framefree.machine.immersed import InFluid
from framefree.machine.joint import JOINT_NUMBERS, Joint
from framefree.machine.joints import JointKind, Locked
from framefree.machine.names import REFERRING, NamedPart, find, renamed, with_name_changed
from framefree.machine.problems import MachineError
from framefree.machine.tree import unknown
from framefree.machine.values import compose, pose

_BODY_WORDS = ("mass", "center", "inertia_at_center")


def changed(machine: Any, name: str, changes: dict[str, Any]) -> dict[str, Any]:
    """Change fields of one part."""
    entry = find(machine, name)
    changes = dict(changes)
    new_name = changes.pop("name", entry.part.name)
    if isinstance(entry.part, Body):
        changes = _body_changes(entry.part, changes)
    forgotten = {}
    if isinstance(entry.part, Joint) and isinstance(changes.get("kind"), JointKind):
        forgotten = _forgotten(entry.part, changes["kind"])
    part = _replaced(entry.part, {**forgotten, **changes})
    fields = {entry.group: _swapped(getattr(machine, entry.group), entry.part, part)}
    if forgotten:
        fields["keyframes"] = _without_entries(machine.keyframes, {part.name}, set())
    if new_name == entry.part.name:
        return fields
    return with_name_changed(replace(machine, **fields), NamedPart(entry.group, part), new_name)


def attached(machine: Any, parts: tuple[Any, ...]) -> dict[str, Any]:
    """Add parts, each to its group."""
    fields: dict[str, Any] = {}
    for part in parts:
        if isinstance(part, Fluid):
            fields["fluid"] = part
        elif isinstance(part, InFluid):
            fluid = fields.get("fluid", machine.fluid) or Fluid(())
            fields["fluid"] = replace(fluid, immersed=(*fluid.immersed, part))
        else:
            group = _group_of(part)
            fields[group] = (*fields.get(group, getattr(machine, group)), part)
    return fields


def detached(machine: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Remove parts, their descendant bodies, and everything that refers to what is removed."""
    bodies: set[str] = set()
    places: set[str] = set()
    gone: dict[str, set[str]] = {group: set() for group in GROUPS}
    for name in names:
        entry = find(machine, name)
        if entry.group in ("bodies", "joints"):
            top = entry.part.child if isinstance(entry.part, Joint) else entry.part.name
            bodies |= {machine.bodies[i].name for i in machine.subtree(top)}
        elif entry.group == "frames":
            places.add(entry.part.name)
        else:
            gone[entry.group].add(entry.part.name)
    places |= bodies | {frame.name for frame in machine.frames if frame.body in bodies}
    joints = {joint.name for joint in machine.joints if joint.child in bodies}
    return _without(machine, bodies, places, joints, gone)


def merged(machine: Any, other: Any, prefix: str, at: str, placement: Any) -> dict[str, Any]:
    """Add another machine, its world placed on a frame of this one."""
    if not np.array_equal(machine.gravity, other.gravity):
        raise MachineError(
            f"the machines must have the same gravity to be merged, got {machine.gravity.tolist()} "
            f"and {other.gravity.tolist()}; set it with `replace(gravity=...)`"
        )
    frame = machine.frame(at)
    where = compose(frame.pose, pose(placement, "`pose` of the merged machine"))
    moved = frame.body != WORLD or not np.array_equal(where, np.eye(4))
    anchor = f"{prefix}{WORLD}" if moved else WORLD
    if anchor == WORLD and moved:
        anchor = f"{other.name or 'merged'}_{WORLD}"

    def place(name: str) -> str:
        return anchor if name == WORLD else prefix + name

    theirs = renamed(other, place, lambda name: prefix + name, lambda _, name: prefix + name)
    fields: dict[str, Any] = {g: (*getattr(machine, g), *theirs[g]) for g in GROUPS}
    if moved:
        fields["frames"] = _grounded(machine, theirs["frames"], anchor, frame.body, where)
    for notes in ("remarks", "ignored"):
        fields[notes] = (*getattr(machine, notes), *getattr(other, notes))
    fields["fluid"] = _mixed(machine.fluid, theirs.get("fluid"))
    return fields


def prefixed_path(path: str, prefix: str) -> str:
    """Return the path of a number of a merged machine."""
    if path.startswith("gravity."):
        return path
    if path.startswith(("fluid.density", "fluid.current", "fluid.viscosity")):
        return path
    if path.startswith("fluid."):
        return f"fluid.{prefix}{path.removeprefix('fluid.')}"
    word, colon, rest = path.partition(":")
    return f"{word}:{prefix}{rest}" if colon else prefix + path


def locked(machine: Any, name: str, value: Any) -> dict[str, Any]:
    """Hold a joint at a value."""
    joint = machine.joint(name)
    if isinstance(joint.kind, Locked):
        joint = _released(joint)
    users = [
        f"{word} `{part.name}`"
        for word, parts in (("coupling", machine.couplings), ("tendon", machine.tendons))
        for part in parts
        if set(part.referred(part.coordinate_fields)) & set(joint.x_names)
    ]
    if users:
        raise MachineError(
            f"joint `{name}` cannot be locked while {users[0]} uses it; detach that first"
        )
    value = joint.kind.neutral if value is None else value
    held = Joint(
        joint.name,
        Locked(joint, value),
        joint.parent,
        joint.child,
        joint.parent_pose,
        joint.child_pose,
        source=joint.source,
    )
    fields = {"joints": _swapped(machine.joints, machine.joint(name), held)}
    fields["keyframes"] = _without_entries(machine.keyframes, {name}, set())
    return fields


def unlocked(machine: Any, name: str) -> dict[str, Any]:
    """Let a locked joint move again."""
    joint = machine.joint(name)
    if not isinstance(joint.kind, Locked):
        raise MachineError(f"joint `{name}` is not locked")
    return {"joints": _swapped(machine.joints, joint, _released(joint))}


def _released(joint: Joint) -> Joint:
    """Return what was locked, where it is now."""
    places = ("name", "parent", "child", "parent_pose", "child_pose")
    kind: Any = joint.kind
    return replace(kind.joint, **{field: getattr(joint, field) for field in places})


def _body_changes(body: Body, changes: dict[str, Any]) -> dict[str, Any]:
    """Turn mass, center and inertia at the center into moments."""
    words = {word: changes.pop(word) for word in _BODY_WORDS if word in changes}
    if not words:
        return changes
    if "inertia" in changes:
        raise MachineError(
            f"body `{body.name}`: give either `inertia` or mass, center and inertia_at_center"
        )
    if body.massless:
        missing = [word for word in _BODY_WORDS if word not in words]
        if missing:
            raise MachineError(f"body `{body.name}` has no mass yet: `{missing[0]}` is needed too")
        old = words
    else:
        old = {
            "mass": body.moments.total,
            "center": body.moments.center,
            "inertia_at_center": body.moments.moment_at_center,
        }
    values = {**old, **words}
    try:
        inertia = Moments.of_body(*(values[word] for word in _BODY_WORDS))
    except ValueError as error:
        raise MachineError(f"body `{body.name}`: {error}") from None
    return {**changes, "inertia": inertia}


def _forgotten(joint: Joint, kind: JointKind) -> dict[str, Any]:
    """Return the fields that start anew because a new kind has other coordinates."""
    if (kind.x_names, kind.v_names) == (joint.kind.x_names, joint.kind.v_names):
        return {}
    return {name: Joint.__dataclass_fields__[name].default for name in JOINT_NUMBERS}


def _replaced(part: Any, changes: dict[str, Any]) -> Any:
    known = [name for name, field in part.__dataclass_fields__.items() if field.init]
    for word in changes:
        if word not in known:
            extra = _BODY_WORDS if isinstance(part, Body) else ()
            what = f"{type(part).__name__} `{part.name}`: field"
            raise MachineError(unknown(what, word, [*known, *extra]))
    return replace(part, **changes)


def _swapped(parts: tuple, old: Any, new: Any) -> tuple:
    return tuple(new if part is old else part for part in parts)


def _group_of(part: Any) -> str:
    for group, kinds in GROUPS.items():
        if isinstance(part, kinds):
            return group
    raise MachineError(f"a {type(part).__name__} cannot be attached to a machine")


def _without(
    machine: Any, bodies: set[str], places: set[str], joints: set[str], gone: dict[str, set[str]]
) -> dict[str, Any]:
    lost = {name for j in machine.joints if j.name in joints for name in j.x_names}
    referred = {"frame_fields": places, "joint_fields": joints, "coordinate_fields": lost}

    def stays(group: str, part: Any) -> bool:
        refers = any(
            removed.intersection(part.referred(getattr(part, kind)))
            for kind, removed in referred.items()
        )
        return not refers and part.name not in gone[group]

    fields: dict[str, Any] = {
        "bodies": tuple(b for b in machine.bodies if b.name not in bodies),
        "joints": tuple(j for j in machine.joints if j.name not in joints),
        "frames": tuple(f for f in machine.frames if f.name not in places),
    }
    for group in REFERRING:  # tendons stand before the actuators that pull them
        fields[group] = tuple(p for p in getattr(machine, group) if stays(group, p))
        if group == "tendons":
            cut = {t.name for t in machine.tendons} - {t.name for t in fields["tendons"]}
            referred["tendon_fields"] = cut
    kept = {actuator.name for actuator in fields["actuators"]}
    inputs = {actuator.name for actuator in machine.actuators} - kept
    keyframes = tuple(k for k in machine.keyframes if k.name not in gone["keyframes"])
    fields["keyframes"] = _without_entries(keyframes, joints, inputs)
    if machine.fluid is not None:
        immersed = tuple(i for i in machine.fluid.immersed if i.frame not in places)
        fields["fluid"] = replace(machine.fluid, immersed=immersed)
    return fields


def _without_entries(keyframes: tuple, joints: set[str], inputs: set[str]) -> tuple:
    return tuple(
        replace(
            k,
            x=tuple(pair for pair in k.x if pair[0] not in joints),
            v=tuple(pair for pair in k.v if pair[0] not in joints),
            u=tuple(pair for pair in k.u if pair[0] not in inputs),
        )
        for k in keyframes
    )


def _grounded(machine: Any, theirs: tuple, anchor: str, body: str, where: Any) -> tuple:
    """Frames of both, those on the other's world now on this machine's body."""
    own = [
        replace(f, body=body, pose=compose(where, f.pose)) if f.body == anchor else f
        for f in theirs
    ]
    return (*machine.frames, Frame(anchor, body, where), *own)


def _mixed(fluid: Fluid | None, other: Fluid | None) -> Fluid | None:
    if fluid is None or other is None:
        return fluid or other
    same = fluid.density == other.density and fluid.viscosity == other.viscosity
    same = same and fluid.flow is other.flow
    if not (same and np.array_equal(fluid.current, other.current)):
        raise MachineError("the machines must have the same fluid to be merged")
    return replace(fluid, immersed=(*fluid.immersed, *other.immersed))
