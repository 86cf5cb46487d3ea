"""Loops of a URDF file in a file beside it, as example-parallel-robots of Gepetto writes them.

URDF describes trees. That collection of closed robots keeps in `robot.yaml` what the tree lacks:

    closed_loop: [[frame, frame], ...]      pairs of links that coincide
    type: ['6d', '3d', ...]                 with their axes, a weld, or with their origins, a ball
    name_mot: [name, ...]                   joints with motors: names, or parts of names
    joint_name: [name, ...]                 joints of another kind than the file says,
    joint_type: ['SPHERICAL', 'FIXED', ...] of this one

`closed_loop` is needed; without `type` all are welds, without `name_mot` motors stay as they are.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from framefree.machine.actuators import motors
from framefree.machine.formats.markup import ReadError
from framefree.machine.formats.source import bytes_of
from framefree.machine.joint import Joint
from framefree.machine.joints import Fixed, Spherical
from framefree.machine.loop import Loop
from framefree.machine.machine import Machine
from framefree.machine.problems import MachineError, Problems
from framefree.machine.tree import unknown

Sidecar = str | os.PathLike[str] | Mapping[str, Any]
"""Path of the file, or what it holds."""

_KEYS = ("closed_loop", "type", "name_mot", "joint_name", "joint_type")
_LOOPS = {"6d": "weld", "3d": "ball"}
_JOINTS = {"SPHERICAL": Spherical, "FIXED": Fixed}


def with_sidecar(machine: Machine, given: Sidecar) -> Machine:
    """Return a machine with the loops, joints and motors of a sidecar file.

    Raises
    ------
    ReadError
        Listing everything that is wrong with the file.
    """
    name, content = _content(given)
    problems = Problems()
    lists = _lists(name, content, problems)
    problems.raise_if_any(ReadError)
    retyped = _retyped(machine, name, lists, problems)
    loops = _loops(machine, name, lists, problems)
    driven = _driven(machine, name, lists, problems)
    problems.raise_if_any(ReadError)
    kept = [a for a in machine.actuators if a.sensed_joint not in retyped]
    changed = replace(
        machine,
        joints=[retyped.get(joint.name, joint) for joint in machine.joints],
        actuators=kept if driven is None else (),
        loops=(*machine.loops, *loops),
    )
    if driven is None:
        return changed
    return changed.attach(*motors([j for j in changed.joints if j.name in driven and j.nv]))


def _content(given: Sidecar) -> tuple[str, Any]:
    """Return the name of a sidecar for messages, and what it holds."""
    if isinstance(given, Mapping):
        return "`loops`", given
    path = Path(given)
    # An optional dependency.
    try:
        import yaml
    except ImportError as error:
        if error.name != "yaml":
            raise
        raise ReadError(
            "YAML files need the package `pyyaml`: install `framefree[models]`, or give what the "
            "file holds as a mapping"
        ) from None
    try:
        return path.name, yaml.safe_load(bytes_of(path))
    except yaml.YAMLError as error:
        raise ReadError(f"{path.name}: this is not YAML: {error}") from None


def _lists(name: str, content: Any, problems: Problems) -> dict[str, list[Any]]:
    """Return the lists of a sidecar; report what is not one, and lists of different length."""
    if not isinstance(content, Mapping):
        problems.add(f"{name}: a mapping with {', '.join(_KEYS)} is needed, got {content!r:.80}")
        return {}
    for key in content:
        if key not in _KEYS:
            problems.add(f"{name}: {unknown('key', str(key), _KEYS)}")
    lists: dict[str, list[Any]] = {}
    for key in _KEYS:
        value = content.get(key)
        if value is not None and (isinstance(value, str) or not isinstance(value, Sequence)):
            problems.add(f"{name}: `{key}` must be a list, got {value!r:.80}")
        elif value is not None:
            lists[key] = list(value)
    if "closed_loop" not in content:
        problems.add(f"{name}: `closed_loop`, the pairs of links that coincide, is missing")
    for one, other in (("closed_loop", "type"), ("joint_name", "joint_type")):
        if other in lists and len(lists.get(one, ())) != len(lists[other]):
            problems.add(
                f"{name}: `{one}` and `{other}` must be of one length, got "
                f"{len(lists.get(one, ()))} and {len(lists[other])}"
            )
    if "joint_name" in lists and "joint_type" not in lists:
        problems.add(f"{name}: `joint_name` needs `joint_type`")
    return lists


def _loops(
    machine: Machine, name: str, lists: dict[str, list[Any]], problems: Problems
) -> list[Loop]:
    pairs = lists["closed_loop"]
    kinds, loops = lists.get("type", ["6d"] * len(pairs)), []
    known = [*(b.name for b in machine.bodies), *(f.name for f in machine.frames), "world"]
    for pair, kind in zip(pairs, kinds, strict=True):
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            problems.add(f"{name}: `closed_loop` must hold pairs of links, got {pair!r:.80}")
            continue
        missing = [str(end) for end in pair if end not in known]
        for end in missing:
            problems.add(f"{name}: `closed_loop`: {unknown('link', end, known)}")
        if str(kind).lower() not in _LOOPS:
            problems.add(f"{name}: `type` must be one of {', '.join(_LOOPS)}, got {kind!r:.80}")
        elif not missing:
            loops.append(Loop(f"{pair[0]}_{pair[1]}", _LOOPS[str(kind).lower()], *pair))
    return loops


def _retyped(
    machine: Machine, name: str, lists: dict[str, list[Any]], problems: Problems
) -> dict[str, Joint]:
    """Return joints that are of another kind, without what belongs to the old one."""
    joints = {joint.name: joint for joint in machine.joints}
    changed: dict[str, Joint] = {}
    for joint, kind in zip(lists.get("joint_name", ()), lists.get("joint_type", ()), strict=True):
        if joint not in joints:
            problems.add(f"{name}: `joint_name`: {unknown('joint', str(joint), joints)}")
        elif str(kind).upper() not in _JOINTS:
            problems.add(f"{name}: `joint_type` must be one of {', '.join(_JOINTS)}, got {kind!r}")
        else:
            old = joints[joint]
            new = _JOINTS[str(kind).upper()]()
            try:
                changed[joint] = Joint(
                    joint, new, old.parent, old.child, old.parent_pose, old.child_pose
                )
            except MachineError as error:
                problems.add(f"{name}: joint `{joint}`: {error}")
    return changed


def _driven(
    machine: Machine, name: str, lists: dict[str, list[Any]], problems: Problems
) -> set[str] | None:
    if "name_mot" not in lists:
        return None
    names, driven = [joint.name for joint in machine.joints], set()
    for motor in map(str, lists["name_mot"]):
        found = {joint for joint in names if motor == joint} or {j for j in names if motor in j}
        if not found:
            problems.add(f"{name}: `name_mot`: {unknown('joint', motor, names)}")
        driven |= found
    return driven
