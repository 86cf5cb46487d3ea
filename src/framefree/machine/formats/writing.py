"""Shared by the writers: elements as text, numbers in all their digits, and refusals."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from framefree.machine.formats.markup import Element, quoted
from framefree.machine.formats.poses import inverse
from framefree.machine.joint import FRICTION_WIDTH, Joint
from framefree.machine.joints import Fixed
from framefree.machine.joints.locked import Locked
from framefree.machine.problems import MachineError, Problems

if TYPE_CHECKING:
    from framefree.machine.machine import Machine


UNSEEN = {"rgba": (0.0, 0.0, 0.0, 0.0), "group": 5, "contype": 0, "conaffinity": 0}
"""Attributes of geoms that are there for tendons or a fluid alone."""


class WriteError(MachineError):
    """A machine has something that a model format cannot say."""


def node(tag: str, *children: Element, **attributes: Any) -> Element:
    """Return an element; attributes that are None are left out, arrays are written in full."""
    texts = {k.rstrip("_"): _text(v) for k, v in attributes.items() if v is not None}
    return Element(tag, texts, 0, list(children))


def document(root: Element, remarks: Iterable[str]) -> str:
    """Return an element as an XML document, with remarks as comments at its top."""
    lines = ['<?xml version="1.0" encoding="utf-8"?>']
    lines += [f"<!-- {remark.replace('--', '- -')} -->" for remark in remarks]
    stack: list[tuple[Element, int, bool]] = [(root, 0, False)]
    while stack:
        element, depth, closing = stack.pop()
        indent = "  " * depth
        if closing:
            lines.append(f"{indent}</{element.tag}>")
            continue
        attributes = "".join(f" {k}={quoted(v)}" for k, v in element.attributes.items())
        lines.append(f"{indent}<{element.tag}{attributes}{'' if element.children else '/'}>")
        if element.children:
            stack.append((element, depth, True))
            stack.extend((child, depth + 1, False) for child in reversed(element.children))
    return "\n".join([*lines, ""])


def checked_without(without: str | Iterable[str], valid: Iterable[str]) -> set[str]:
    """Return what to leave out, each a word that the writer knows."""
    words = {without} if isinstance(without, str) else set(without)
    wrong = sorted(words - set(valid))
    if wrong:
        listed = ", ".join(f"`{word}`" for word in valid)
        raise WriteError(f"`without` may name {listed}; got `{wrong[0]}`")
    return words


def check_numeric(machine: Machine, problems: Problems) -> None:
    """Refuse a machine with tunable numbers."""
    if len(machine.parameters.names):
        problems.add("the machine has tunable numbers; write `machine.numeric` instead")
    problems.raise_if_any(WriteError)


def check_friction(joint: Joint, problems: Problems) -> None:
    """Refuse what reading back would not give: another friction width, and asymmetry."""
    if np.any(joint.friction_asymmetry):
        problems.add(f"joint `{joint.name}`: `friction_asymmetry` cannot be written")
    if joint.has_friction and joint.friction_width != FRICTION_WIDTH:
        problems.add(
            f"joint `{joint.name}`: `friction_width` {joint.friction_width:g} cannot be written; "
            f"only the default, {FRICTION_WIDTH:g}"
        )


def is_fixed(joint: Joint) -> bool:
    """Whether a joint does not move."""
    return isinstance(joint.kind, Fixed | Locked)


def fixed_pose(joint: Joint) -> np.ndarray:
    """Pose (4x4) of the child body in the parent body of a joint that does not move."""
    held = np.array(joint.kind.pose(np.zeros(0)), dtype=float)
    return joint.parent_pose @ held @ inverse(np.asarray(joint.child_pose))


def is_identity(pose: np.ndarray) -> bool:
    """Whether a pose is the identity, exactly."""
    return bool(np.array_equal(pose, np.eye(4)))


def unused(name: str, taken: set[str]) -> str:
    """Return this name, or a longer one that is not taken; it is from now on."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return " ".join(_number(number) for number in np.atleast_1d(np.asarray(value, float)).ravel())


def _number(value: float) -> str:
    return repr(float(value) + 0.0).removesuffix(".0")
