"""The elements and attributes of MJCF, as the installed MuJoCo lists them.

MuJoCo stops at the first attribute that it does not know, and inside <frame> and <replicate> it
does not look at all. So every name is checked here, and all that are wrong are reported together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache

from framefree.machine.formats.mjcf_engine import mujoco_module

INDENT = 3
"""Blanks by which MuJoCo's list of elements is indented per level."""
_ENTRY = re.compile(r"( *)([\w()]+) \((.)\)(.*)")
_PLACED = frozenset({"name", "pos", "quat", "axisangle", "xyaxes", "zaxis", "euler"})


@dataclass
class Known:
    """What MuJoCo knows of an element: its attributes, and the elements inside it."""

    attributes: set[str] = field(default_factory=set)
    children: dict[str, Known] = field(default_factory=dict)

    def child(self, tag: str) -> Known | None:
        """Return what is known of an element inside this one; None if there is no such element."""
        return self.children.get(tag)


@cache
def schema() -> Known | None:
    """Return what MuJoCo knows, which is <mujoco>; None if this MuJoCo has no list."""
    listing = getattr(mujoco_module(), "mj_printSchema", None)
    if listing is None:
        return None
    root = _parsed(listing(False, False))
    return Known(children={"mujoco": root, "mujocoinclude": root})


def _parsed(text: str) -> Known:
    open_elements: list[Known] = []
    for line in text.splitlines():
        entry = _ENTRY.match(line)
        if entry is None:
            if open_elements:
                open_elements[-1].attributes |= set(line.split())
            continue
        blanks, tag, times, rest = entry.groups()
        depth = len(blanks) // INDENT
        known = Known(set(rest.split()))
        del open_elements[depth:]
        if open_elements:
            tags = ("worldbody", "body") if tag == "(world)body" else (tag,)
            open_elements[-1].children |= dict.fromkeys(tags, known)
        if times == "R":
            known.children[tag.replace("(world)", "")] = known
        if tag == "(world)body":
            _add_frames(known)
        open_elements.append(known)
    root = open_elements[0]
    root.children.pop("body", None)
    return root


def _add_frames(body: Known) -> None:
    """Add the elements that hold others as a body does, which the list leaves out."""
    body.children["frame"] = Known({*_PLACED, "childclass"}, body.children)
    body.children["replicate"] = Known({"count", "sep", "offset", "euler"}, body.children)
