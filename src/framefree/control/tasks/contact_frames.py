"""Frames that stand on something: where they touch, how hard they may push, and when.

A contact frame stands still on its ground, and its ground pushes it with forces that the law finds.
At each of its points the force f, with its part f_n along the normal and f_t across it, stays in an
inner pyramid of the friction cone,

    d_j . f_t <= mu cos(pi / sides) f_n,    d_j = (cos, sin)(2 pi j / sides),  j = 1 .. sides

whose edges lie on the cone |f_t| <= mu f_n and whose faces lie inside of it.

A round foot rolls: with its center at c, its radius r and the normal n of a plane ground, the point
that touches is c - r n, always another one of the foot, and

    v = dc/dt + r n x w = 0,    d/dt v = d2c/dt2 + r n x dw/dt = 0

where the acceleration of a point of the foot would have w x (w x r n) besides.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from framefree.control.law import ControlError
from framefree.control.shared.gains import positive
from framefree.machine import Machine

OPEN = 0.01
"""Share of its largest force below which a switched contact is open."""
INSIDE = 1e-9
"""Share by which the pyramid is narrower, so that rounding errors do not leave the cone."""
POINT = ("tangent 1", "tangent 2", "normal")
FLAT = (*POINT, "turn 1", "turn 2", "turn about normal")
PRESSED = (2, 3, 4)
"""Which of these rows keep a contact on its ground; the others keep it from slipping."""


@dataclass(frozen=True)
class ContactFrame:
    """A frame of the machine that stands on a ground, by one point or flat on several.

    The point, or the frame with all its points, does not move relative to the ground:
    ``d/dt v + Kd v = 0`` with v its velocity seen from there (of a flat contact also the angular
    one). What is left of a velocity when it closes so dies out at the rate Kd. A position is not
    held: it is the ground that does. That it stays on the ground comes before that it does not
    slip: where friction does not suffice, it slides as far as it must.

    Parameters
    ----------
    frame : str
    friction : float
        mu.
    points : sequence of (3,)
        Where it is pushed, in the axes of the frame, m: one point, or three and more that do not
        lie on a line, the corners of a flat foot.
    radius : float
        Of a round foot whose center is the point, m; 0: a point of the foot touches.
    ground : str
        A frame; "world" is one like any other. It feels the reaction.
    normal : (3,)
        Of the ground, towards the machine, in the axes of `ground`.
    sides : int
        Of the pyramid, at least 3. Friction that it leaves unused: 1 - cos(pi / sides), with 8 of
        them 7.6 percent.
    least, most : float
        Normal force, of all points together, N. With `least` 0 a foot may carry nothing.
    Kd : float
        1/s.
    switched : bool
        Whether the reference says how much the contact may carry: "NAME.load" (1) between 0 and 1,
        the share of `most`, which then must be finite. Below `OPEN` it is open: it moves freely
        and is not pushed. See `ContactSchedule`.
    name : str
        By default that of the frame.
    """

    frame: str
    friction: float = 0.6
    points: Any = ((0.0, 0.0, 0.0),)
    radius: float = 0.0
    ground: str = "world"
    normal: Any = (0.0, 0.0, 1.0)
    sides: int = 8
    least: float = 0.0
    most: float = np.inf
    Kd: float = 20.0
    switched: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or self.frame)
        points = np.asarray(self.points, float)
        if points.ndim != 2 or points.shape[1:] != (3,) or not np.isfinite(points).all():
            raise ControlError(
                f"`points` of contact `{self.name}` must be rows of 3 finite numbers, got "
                f"{self.points!r}"
            )
        spread = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
        if len(points) > 1 and (len(points) < 3 or spread[1] <= 1e-6 * spread[0]):
            raise ControlError(
                f"`points` of contact `{self.name}` must be one, or three and more that do not lie "
                f"on a line; got {len(points)} on a line"
            )
        normal = np.asarray(self.normal, float)
        if normal.shape != (3,) or not np.isfinite(normal).all() or not normal.any():
            raise ControlError(
                f"`normal` of contact `{self.name}` must be 3 numbers that are not all zero, got "
                f"{self.normal!r}"
            )
        object.__setattr__(self, "points", tuple(map(tuple, points.tolist())))
        object.__setattr__(self, "normal", tuple((normal / np.linalg.norm(normal)).tolist()))
        for word in ("friction", "Kd"):
            if positive(getattr(self, word), word, f"contact `{self.name}`").shape:
                raise ControlError(f"`{word}` of contact `{self.name}` must be one number")
        if positive(self.radius, "radius", f"contact `{self.name}`", zero=True) and len(points) > 1:
            raise ControlError(f"contact `{self.name}` is flat, and cannot have a `radius` as well")
        if not isinstance(self.sides, int) or self.sides < 3:
            raise ControlError(
                f"`sides` of contact `{self.name}` must be an integer from 3 on, got {self.sides}"
            )
        if not 0 <= self.least < self.most or not np.isfinite(self.least):
            raise ControlError(
                f"contact `{self.name}` needs 0 <= `least` < `most`, got {self.least} and "
                f"{self.most}"
            )
        if self.switched and not np.isfinite(self.most):
            raise ControlError(
                f"contact `{self.name}` is switched by the share of `most` that it may carry: give "
                "a finite `most`, such as the weight of the machine"
            )

    @property
    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """Shapes of the reference signals that it reads, by name."""
        return {f"{self.name}.load": (1, 1)} if self.switched else {}

    @property
    def flat(self) -> bool:
        """Whether it has several points, and so does not turn."""
        return len(self.points) > 1

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the rows that hold it, in `axes`."""
        return FLAT if self.flat else POINT

    def rows(self, pressed: bool) -> list[int]:
        """Return which rows keep it on its ground, or else which keep it from slipping."""
        return [k for k in range(len(self.parts)) if (k in PRESSED) == pressed]

    @cached_property
    def axes(self) -> np.ndarray:
        """Two tangents and the normal as columns (3 x 3), in the axes of the ground."""
        n = np.array(self.normal)
        if n[2] == 1.0:
            return np.eye(3)
        across = np.cross(np.eye(3)[np.abs(n).argmin()], n)
        across /= np.linalg.norm(across)
        return np.column_stack([across, np.cross(n, across), n])

    @cached_property
    def pyramid(self) -> np.ndarray:
        """Rows D (sides x 3) of a force in `axes` that lies inside where D f >= 0."""
        angles = 2 * np.pi * np.arange(1, self.sides + 1) / self.sides
        slope = self.friction * np.cos(np.pi / self.sides) * (1 - INSIDE)
        return np.column_stack([-np.cos(angles), -np.sin(angles), np.full(self.sides, slope)])

    def check(self, machine: Machine) -> None:
        """Raise `ControlError` or `MachineError` if it cannot be a contact of this machine."""
        own, other = machine.frame(self.frame), machine.frame(self.ground)
        if own.body == other.body:
            raise ControlError(
                f"contact `{self.name}` is between frames of one body: `{self.frame}` and "
                f"`{self.ground}` both are on `{own.body}`"
            )
