"""What is drawn beside the bodies, a box to tick each: frames, axes, loops, forces, trails.

A mark is made when it is first wanted, and moved only while it is seen.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from framefree.look.report import style
from framefree.look.report.scene import as_position_and_wxyz
from framefree.machine import Machine

AXIS, LOOP, SPRING, TRAIL = (213, 94, 0), (204, 121, 167), (0, 158, 115), (0, 114, 178)
JOINT_FORCE, CONTACT_FORCE = (86, 180, 233), (230, 159, 0)
"""Colours that colour-blind people can tell apart [Wong2011]."""
LONGEST = 0.35
"""Length of the longest arrow, in sizes of the machine."""
FORGET = 0.995
"""Share of the largest force that is remembered from one picture to the next."""
NONE = 1e-6
"""Force that is not shown, N."""
STEPS = 240
"""Places that a trail has."""
AXES = ("axis", "axis1", "axis2", "normal")

DRAWN_FROM = {"joint forces": "joint_wrench", "contact forces": "interaction_wrench"}
"""Signals without which a mark cannot be drawn."""

Signals = Mapping[tuple[str, str], np.ndarray]


class Marks:
    """All marks of a machine.

    Parameters
    ----------
    scene : viser.SceneApi
    machine : Machine
        In numbers.
    reach : float
        Its size, m.
    trailed : str
        Frame that leaves a trail.
    """

    def __init__(self, scene: Any, machine: Machine, reach: float, trailed: str) -> None:
        self.scene, self.machine, self.reach, self.trailed = scene, machine, reach, trailed
        self.wanted: set[str] = set()
        self._nodes: dict[str, Any] = {}
        self._largest: dict[str, float] = {}
        self._trail: deque[np.ndarray] = deque(maxlen=STEPS)
        self._axes = [
            (i, np.asarray(joint.child_pose, float), np.asarray(axis, float))
            for i, joint in enumerate(machine.joints)
            for name in AXES
            if (axis := getattr(joint.kind, name, None)) is not None
        ]
        self._loops = [self._ends(loop) for loop in machine.loops]
        self._springs = style.ties(machine)

    @property
    def kinds(self) -> list[str]:
        """Names of the marks that this machine can have."""
        made = ["frames"]
        made += ["joint axes"] if self._axes else []
        made += ["loops"] if self._loops else []
        made += ["springs and dampers"] if self._springs else []
        made += ["joint forces"] if self.machine.joints else []
        made += ["contact forces"] if self.machine.interactions else []
        return [*made, "trail"]

    def want(self, kind: str, wanted: bool) -> None:
        """Show a mark, or hide it."""
        self.wanted.add(kind) if wanted else self.wanted.discard(kind)
        self._trail.clear()
        if kind in self._nodes:
            self._nodes[kind].visible = wanted

    def scale(self, kind: str) -> str:
        """Return in words how long an arrow is."""
        largest = self._largest.get(kind)
        if largest is None:
            return ""
        length = f"{LONGEST * self.reach:.2g} m = {largest:.3g} N"
        return f"{kind}: {length if largest > NONE else 'none'}"

    def forget(self) -> None:
        """Let trails begin anew."""
        self._trail.clear()

    # ------------------------------------------------------------------ moving

    def move(self, poses: np.ndarray, signals: Signals) -> None:
        """Draw all marks that are wanted for poses (bodies, 4, 4) and one row of signals."""
        world = np.concatenate([poses, np.eye(4)[None]])
        if "frames" in self.wanted:
            self._draw_frames(world)
        if "joint axes" in self.wanted:
            self._lines("joint axes", self._axis_ends(world), AXIS)
        if "loops" in self.wanted:
            self._lines("loops", _between(world, self._loops), LOOP, least=0.04 * self.reach)
        if "springs and dampers" in self.wanted:
            self._lines("springs and dampers", _between(world, self._springs), SPRING)
        if "joint forces" in self.wanted:
            self._arrows("joint forces", *self._joint_forces(world, signals), JOINT_FORCE)
        if "contact forces" in self.wanted:
            self._arrows("contact forces", *self._contact_forces(world, signals), CONTACT_FORCE)
        if "trail" in self.wanted:
            self._draw_trail(world)

    def _draw_frames(self, world: np.ndarray) -> None:
        extra = [self._pose(world, frame.name) for frame in self.machine.frames]
        every = np.concatenate([world[:-1], np.array(extra).reshape(-1, 4, 4)])
        at = as_position_and_wxyz(every).astype(np.float32)
        node = self._nodes.get("frames")
        if node is None:
            size = 0.08 * self.reach
            self._nodes["frames"] = self.scene.add_batched_axes(
                "/marks/frames", at[:, 3:], at[:, :3], axes_length=size, axes_radius=0.04 * size
            )
            return
        node.batched_positions, node.batched_wxyzs = at[:, :3], at[:, 3:]

    def _draw_trail(self, world: np.ndarray) -> None:
        self._trail.append(self._pose(world, self.trailed)[:3, 3])
        points = np.array(self._trail)
        if len(points) < 2:
            points = np.repeat(points, 2, axis=0)
        self._lines("trail", np.stack([points[:-1], points[1:]], axis=1), TRAIL)

    def _lines(self, kind: str, ends: np.ndarray, color: Any, least: float = 0.0) -> None:
        """Draw lines between ends (n, 2, 3); short ones at least so long, upright, to be seen."""
        ends = np.array(ends, np.float32)
        short = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1) < least
        ends[short, 0, 2] -= least / 2
        ends[short, 1, 2] += least / 2
        node = self._nodes.get(kind)
        if node is None:
            self._nodes[kind] = self.scene.add_line_segments(
                f"/marks/{kind}", ends, color, thickness=4.0, thickness_units="screen"
            )
            return
        node.points = ends

    def _arrows(self, kind: str, places: np.ndarray, forces: np.ndarray, color: Any) -> None:
        if not len(places):
            return
        largest = float(np.linalg.norm(forces, axis=1).max(initial=0.0))
        largest = max(largest, FORGET * self._largest.get(kind, 0.0), NONE)
        self._largest[kind] = largest
        ends = places + forces * (LONGEST * self.reach / largest)
        points = np.stack([places, ends], axis=1).astype(np.float32)
        node = self._nodes.get(kind)
        if node is None:
            size = 0.008 * self.reach
            self._nodes[kind] = self.scene.add_arrows(
                f"/marks/{kind}",
                points,
                color,
                shaft_radius=size,
                head_radius=2.2 * size,
                head_length=5 * size,
            )
            return
        node.points = points

    # ------------------------------------------------------------------ where things are

    def _joint_forces(self, world: np.ndarray, signals: Signals) -> tuple[np.ndarray, np.ndarray]:
        """Return where joints are, and what parents exert on children there, in world axes."""
        wrench = signals.get(("signals", DRAWN_FROM["joint forces"]))
        if wrench is None:
            return np.zeros((0, 3)), np.zeros((0, 3))
        at = [world[i] @ np.asarray(j.child_pose) for i, j in enumerate(self.machine.joints)]
        forces = [G[:3, :3] @ w[:3] for G, w in zip(at, wrench.reshape(-1, 6), strict=True)]
        return np.array([G[:3, 3] for G in at]), np.array(forces)

    def _contact_forces(self, world: np.ndarray, signals: Signals) -> tuple[np.ndarray, np.ndarray]:
        """Return the frames b of interactions, and what they feel there, in world axes."""
        wrench = signals.get(("signals", DRAWN_FROM["contact forces"]))
        if wrench is None:
            return np.zeros((0, 3)), np.zeros((0, 3))
        at = [self._pose(world, part.frame_b) for part in self.machine.interactions]
        forces = [G[:3, :3] @ w[:3] for G, w in zip(at, wrench.reshape(-1, 6), strict=True)]
        return np.array([G[:3, 3] for G in at]), np.array(forces)

    def _pose(self, world: np.ndarray, name: str) -> np.ndarray:
        frame = self.machine.frame(name)
        return world[self.machine.body_index[frame.body]] @ np.asarray(frame.pose, float)

    def _axis_ends(self, world: np.ndarray) -> np.ndarray:
        length = 0.09 * self.reach
        ends = []
        for i, pose, axis in self._axes:
            G = world[i] @ pose
            along = length * (G[:3, :3] @ axis)
            ends.append((G[:3, 3] - along, G[:3, 3] + along))
        return np.array(ends)

    def _ends(self, loop: Any) -> tuple[int, Any, int, Any]:
        frames = [self.machine.frame(name) for name in (loop.frame_a, loop.frame_b)]
        a, b = (
            (self.machine.body_index[f.body], tuple(np.asarray(f.pose, float)[:3, 3]))
            for f in frames
        )
        return (*a, *b)


def _between(world: np.ndarray, pairs: Any) -> np.ndarray:
    """Return the ends (n, 2, 3) of pairs of body and point."""
    ends = [(world[a] @ (*p, 1.0), world[b] @ (*q, 1.0)) for a, p, b, q in pairs]
    return np.array(ends)[:, :, :3]
