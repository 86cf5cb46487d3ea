"""Writing MJCF: paths of spatial tendons."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from framefree.machine.formats.markup import Element
from framefree.machine.formats.poses import posed, quaternion_of_rotation
from framefree.machine.formats.writing import UNSEEN, node, unused
from framefree.machine.spatial_tendon import Pulley, SpatialTendon, Wrap

if TYPE_CHECKING:
    from framefree.machine.machine import Machine

AddTo = Callable[[str, Element], None]
"""Writes an element on a body."""


class PathWriter:
    """Writes what tendons run through: sites, and geoms that are not seen."""

    def __init__(self, machine: Machine, add: AddTo) -> None:
        self.machine = machine
        self.add = add
        self._sites = {frame.name: frame.name for frame in machine.frames}
        self._taken = set(self._sites)
        self._geoms: set[str] = set()

    def steps(self, tendon: SpatialTendon) -> list[Element]:
        """Return the path of a tendon."""
        return [self._step(step) for step in tendon.path]

    def _step(self, step: Any) -> Element:
        if isinstance(step, Pulley):
            return node("pulley", divisor=step.divisor)
        if isinstance(step, Wrap):
            return self._wrap(step)
        if step not in self._sites:  # the frame of a body, which is no site
            self._sites[step] = self._site(f"{step}_site", step, np.eye(4))
        return node("site", site=self._sites[step])

    def _wrap(self, wrap: Wrap) -> Element:
        frame = self.machine.frame(wrap.frame)
        pose = np.asarray(frame.pose)
        name = unused(wrap.frame, self._geoms)
        size = [wrap.radius] if wrap.shape == "sphere" else [wrap.radius, wrap.radius]
        place = {"pos": pose[:3, 3], "quat": quaternion_of_rotation(pose[:3, :3])}
        self.add(frame.body, node("geom", name=name, type=wrap.shape, size=size, **place, **UNSEEN))
        side = None
        if wrap.side is not None:
            side = self._site(f"{wrap.frame}_side", wrap.frame, posed(np.eye(3), wrap.side))
        return node("geom", geom=name, sidesite=side)

    def _site(self, name: str, frame: str, pose: np.ndarray) -> str:
        """Write a site of a new name at a pose on a frame."""
        name, at = unused(name, self._taken), self.machine.frame(frame)
        place = np.asarray(at.pose) @ pose
        quat = quaternion_of_rotation(place[:3, :3])
        self.add(at.body, node("site", name=name, pos=place[:3, 3], quat=quat))
        return name
