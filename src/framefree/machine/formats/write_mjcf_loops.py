"""Writing MJCF: loops as constraints that MuJoCo has.

A ball is a <connect>, a weld a <weld>. A hinge is two <connect>s, at its origin and at a point on
its axis; a distance is a <tendon> constraint on a string between two sites.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from framefree.machine.closure import body_poses
from framefree.machine.formats.markup import Element
from framefree.machine.formats.poses import posed
from framefree.machine.formats.writing import node, unused
from framefree.machine.units import Units

if TYPE_CHECKING:
    from framefree.machine.loop import Loop
    from framefree.machine.machine import Machine

AddSite = Callable[[str, str, np.ndarray], str]
"""Writes a site of a name on a body at a pose."""


class LoopWriter:
    """Writes loops, with sites on the bodies and strings among the tendons.

    Parameters
    ----------
    machine : Machine
    add_site : callable
    strings : Element
        The <tendon> section.
    """

    def __init__(self, machine: Machine, add_site: AddSite, strings: Element) -> None:
        self.machine, self._add_site, self._strings = machine, add_site, strings
        self._taken = {frame.name for frame in machine.frames}
        self._tendons = {tendon.name for tendon in machine.tendons}
        self._names = {part.name for part in (*machine.loops, *machine.couplings)}

    def write(self, loop: Loop) -> list[Element]:
        """Return the constraints that a loop is; none where MuJoCo has no such thing."""
        rest = np.asarray(loop.rest)
        if loop.kind == "weld":
            return [self._pair("weld", loop, loop.name, rest, np.eye(4))]
        if loop.kind == "ball":
            place = posed(np.eye(3), rest[:3, 3])
            return [self._pair("connect", loop, loop.name, place, np.eye(4))]
        if loop.kind == "hinge":
            along = posed(np.eye(3), Units.of(self.machine.tree).length * np.asarray(loop.axis))
            second = unused(f"{loop.name}_axis", self._names)
            return [
                self._pair("connect", loop, loop.name, rest, np.eye(4)),
                self._pair("connect", loop, second, rest @ along, along),
            ]
        if loop.kind == "distance":
            return [self._distance(loop)]
        return []

    def _pair(self, tag: str, loop: Loop, name: str, on_a: np.ndarray, on_b: np.ndarray) -> Element:
        sites = self._sites(loop, name, on_a, on_b)
        return node(tag, name=name, site1=sites[0], site2=sites[1])

    def _distance(self, loop: Loop) -> Element:
        """Write a string between the frames, and that its length is the loop's.

        MuJoCo measures the length from that of the neutral configuration.
        """
        sites = self._sites(loop, loop.name, np.eye(4), np.eye(4))
        string = unused(loop.name, self._tendons)
        steps = [node("site", site=site) for site in sites]
        self._strings.children.append(node("spatial", *steps, name=string))
        beyond = float(loop.length) - self._neutral_distance(loop)
        return node("tendon", name=loop.name, tendon1=string, polycoef=[beyond, 0, 0, 0, 0])

    def _sites(self, loop: Loop, name: str, on_a: np.ndarray, on_b: np.ndarray) -> list[str]:
        a, b = self.machine.frame(loop.frame_a), self.machine.frame(loop.frame_b)
        places = (("a", a, np.asarray(a.pose) @ on_a), ("b", b, np.asarray(b.pose) @ on_b))
        return [
            self._add_site(unused(f"{name}_{end}", self._taken), frame.body, pose)
            for end, frame, pose in places
        ]

    def _neutral_distance(self, loop: Loop) -> float:
        machine = self.machine
        poses = body_poses(machine, ca.DM(machine.neutral()))
        points = []
        for name in (loop.frame_a, loop.frame_b):
            frame = machine.frame(name)
            index, point = machine.body_index[frame.body], np.asarray(frame.pose)[:, 3]
            points.append((np.array(ca.DM(poses[index])) @ point if index >= 0 else point)[:3])
        return float(np.linalg.norm(points[0] - points[1]))
