"""Links and joints as a model file says them, before they are put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from framefree.geometry.moments import Moments
from framefree.machine.formats.markup import Place
from framefree.machine.joints import JointKind
from framefree.machine.problems import MachineError
from framefree.machine.shape import Shape

UNLIMITED = 1e16
"""Limits from this size on are none: the formats have no word for infinity."""


@dataclass(frozen=True)
class LinkRecord:
    """A link: its mass, None if it has none, what is wrong with it, and the link's shapes."""

    name: str
    place: Place
    moments: Moments | None
    doubt: str = ""
    shapes: tuple[Shape, ...] = ()
    pose: np.ndarray = field(default_factory=lambda: np.eye(4))
    """Seen from the world, of a link that no joint moves."""


@dataclass(frozen=True)
class Mimic:
    """A coordinate follows another: own = multiplier other + offset.

    `part` and `other_part` name one of several coordinates of a joint, "" where there is one.
    """

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0
    part: str = ""
    other_part: str = ""


@dataclass(frozen=True)
class JointRecord:
    """A joint as the file says it.

    Attributes
    ----------
    kind : JointKind
        `Fixed()` where the links do not move against each other.
    parent_pose, child_pose : (4, 4)
        The joint frame seen from the two links.
    numbers : mapping
        Fields of a `Joint`: limits, damping, friction, stiffness, rest.
    mimics : tuple of Mimic
    """

    name: str
    kind: JointKind
    place: Place
    parent: str
    child: str
    parent_pose: np.ndarray
    child_pose: np.ndarray = field(default_factory=lambda: np.eye(4))
    numbers: Mapping[str, Any] = field(default_factory=dict)
    mimics: tuple[Mimic, ...] = ()


@dataclass(frozen=True)
class LoopClosureRecord:
    """A constraint that closes a loop: a kind of `Loop` between two poses on links."""

    name: str
    kind: str
    place: Place
    link_a: str
    pose_a: np.ndarray
    link_b: str
    pose_b: np.ndarray
    axis: Any = None


@dataclass(frozen=True)
class CouplingRecord:
    """Joints to a successor turn, in sum, `ratio` times as far as those to a predecessor."""

    name: str
    place: Place
    predecessor: str
    successor: str
    ratio: float


@dataclass(frozen=True)
class FrameRecord:
    """A named pose on a link."""

    name: str
    place: Place
    link: str
    pose: np.ndarray


def triangle_doubt(inertia: np.ndarray) -> str:
    """Say which principal moments at the center no body can have, "" if they are all right.

    Each is the sum of two non-negative second moments, so that none exceeds the other two together.
    """
    low, middle, high = np.linalg.eigvalsh(inertia)
    if low + middle - high >= -1e-9 * max(abs(low), abs(high)):
        return ""
    return (
        "the inertia is not that of any distribution of mass: its principal moments at the center, "
        f"{low:.6g}, {middle:.6g} and {high:.6g} kg m^2, break the triangle inequality: the "
        "largest must not exceed the sum of the others"
    )


def moments_of(total: float, pose: np.ndarray, entries: Any) -> tuple[Moments | None, str]:
    """Return the moments of a link and what is wrong with them.

    Parameters
    ----------
    total : float
        Mass, kg.
    pose : (4, 4)
        Frame of the inertia, at the center of mass, seen from the link.
    entries : six numbers
        ixx, ixy, ixz, iyy, iyz, izz, kg m^2.
    """
    if total == 0 and not any(entries):
        return None, ""
    xx, xy, xz, yy, yz, zz = entries
    matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=float)
    R = pose[:3, :3]
    try:
        moments = Moments.of_body(total, pose[:3, 3], R @ matrix @ R.T)
    except ValueError as error:  # overflow of huge entries
        raise MachineError(str(error)) from None
    return moments, triangle_doubt(matrix)
