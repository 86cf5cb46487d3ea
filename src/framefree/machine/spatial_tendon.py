"""Tendons through space: taut strings from frame to frame, over pulleys, spheres and cylinders."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi

from framefree.geometry import se3
from framefree.machine.part import Part, checked_name, set_field
from framefree.machine.problems import MachineError
from framefree.machine.tendon import Tendon, TendonReach
from framefree.machine.values import numbers, scalar
from framefree.machine.wrapping import around_cylinder, around_sphere, length_of

_SHAPES = {"sphere": around_sphere, "cylinder": around_cylinder}


@dataclass(frozen=True, eq=False)
class Wrap(Part):
    """A sphere or a cylinder that a tendon runs around, between two points of its path.

    Parameters
    ----------
    frame : str
        Its center; a cylinder, without ends, is along z.
    radius : number
        m.
    shape : "sphere" or "cylinder"
    side : (3,) or None
        A point in the frame's axes on the side where the tendon runs. Without one it takes the
        shorter way, and leaves the obstacle where a straight line is free. With a point inside of
        the obstacle the tendon runs through it, as through a ring, and touches it from within.
    """

    frame: str
    radius: float
    shape: str = "sphere"
    side: Any = None

    frame_fields = ("frame",)

    def __post_init__(self) -> None:
        checked_name(self.frame, "the frame of a wrap")
        set_field(self, "radius", float(scalar(self.radius, self._words("radius"))))
        if not self.radius > 0:
            raise MachineError(f"{self._words('radius')} must be positive, got {self.radius:g}")
        if self.shape not in _SHAPES:
            raise MachineError(
                f"{self._words('shape')} must be sphere or cylinder, got {self.shape!r}"
            )
        if self.side is not None:
            set_field(self, "side", numbers(self.side, (3,), self._words("side")))

    def _words(self, name: str) -> str:
        return f"`{name}` of the wrap at `{self.frame}`"


@dataclass(frozen=True, eq=False)
class Pulley(Part):
    """The end of one branch of a tendon and the begin of the next, as at a moving pulley.

    Parameters
    ----------
    divisor : number
        Lengths of the next branch are divided by it: 2 where two strings carry what one pulls.
    """

    divisor: float

    def __post_init__(self) -> None:
        set_field(self, "divisor", float(scalar(self.divisor, "`divisor` of a pulley")))
        if not self.divisor > 0:
            raise MachineError(f"`divisor` of a pulley must be positive, got {self.divisor:g}")


class _Span(NamedTuple):
    """A string from one frame to the next, perhaps around an obstacle, and the divisor."""

    start: str
    wrap: Wrap | None
    end: str
    divisor: float


@dataclass(frozen=True, eq=False)
class SpatialTendon(Tendon):
    """A taut string through the origins of frames, around obstacles and over pulleys.

    MuJoCo's spatial tendon, with its rules of wrapping. The length is that of the string, its
    branches divided as their pulleys say. Where a string begins to touch an obstacle, length and
    moment arms stay continuous; with a side given they may jump.

    Parameters
    ----------
    name : str
    path : sequence of frame names, Wrap and Pulley
        In the order of the string. A Wrap stands between two frames, a Pulley between branches of
        at least two frames each; it may also come first.
    **forces
        Keywords: stiffness, rest, damping, friction, limits, see `Tendon`.
    """

    name: str
    path: tuple[Any, ...]

    frame_fields = ("path",)

    def __post_init__(self) -> None:
        set_field(self, "path", tuple(self.path))
        self._check_path()
        super().__post_init__()

    @property
    def frames(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Frames that the length depends on, each once."""
        return tuple(dict.fromkeys(self.referred(("path",))))

    def reach(self, coordinates: Sequence[Any], poses: Sequence[Any]) -> TendonReach:
        """Return the length, and the wrench of a unit force along the tendon on every frame."""
        place = dict(zip(self.frames, poses, strict=True))
        wrenches = {name: casadi.SX(6, 1) for name in self.frames}
        total = casadi.SX(0)
        for span in self._spans():
            length, pulls = _stretched(span, place)
            total += length / span.divisor
            for name, wrench in pulls:
                wrenches[name] += wrench / span.divisor
        return TendonReach(total, (), tuple(wrenches.values()))

    def _spans(self) -> Iterator[_Span]:
        divisor, start, wrap = 1.0, None, None
        for step in self.path:
            if isinstance(step, Pulley):
                divisor, start = step.divisor, None
            elif isinstance(step, Wrap):
                wrap = step
            else:
                if start is not None:
                    yield _Span(start, wrap, step, divisor)
                start, wrap = step, None

    def _check_path(self) -> None:
        kinds = ""
        for step in self.path:
            if not isinstance(step, str | Wrap | Pulley):
                raise MachineError(
                    f"the path of tendon `{self.name}` must hold names of frames, Wrap and Pulley, "
                    f"got {type(step).__name__}"
                )
            kinds += "w" if isinstance(step, Wrap) else "p" if isinstance(step, Pulley) else "f"
        branches = kinds.removeprefix("p").split("p")
        for branch in branches:
            bare = branch.replace("fw", "f")
            if len(bare) < 2 or "w" in bare or branch.endswith("w"):
                raise MachineError(
                    f"the path of tendon `{self.name}` must have at least two frames in every "
                    "branch, and a Wrap only between two frames"
                )


def _stretched(span: _Span, place: dict[str, Any]) -> tuple[Any, list[tuple[str, Any]]]:
    """Return the length of a string, and wrenches on frames that a unit force along it puts."""
    ends = [place[span.start], place[span.end]]
    points = [se3.position(G) for G in ends]
    if span.wrap is None:
        gap = points[1] - points[0]
        length = length_of(gap)
        along = [gap / length] * 2
        on_wrap: list[tuple[str, Any]] = []
    else:
        length, along, wrench = _wrapped(span.wrap, place[span.wrap.frame], points)
        on_wrap = [(span.wrap.frame, wrench)]
    none = casadi.SX(3, 1)
    first, last = (
        casadi.vertcat(sign * (se3.rotation(G).T @ e), none)
        for sign, G, e in zip((-1, 1), ends, along, strict=True)
    )
    return length, [(span.start, first), (span.end, last), *on_wrap]


def _wrapped(wrap: Wrap, G: Any, points: list[Any]) -> tuple[Any, list[Any], Any]:
    """Return length, directions at both ends in world axes, and the wrench on the obstacle."""
    R, center = se3.rotation(G), se3.position(G)
    p0, p1 = (R.T @ (point - center) for point in points)
    touch = _SHAPES[wrap.shape](p0, p1, wrap.radius, wrap.side)
    gap = p1 - p0
    straight = length_of(gap)
    before, after = touch.first - p0, p1 - touch.last
    lengths = [length_of(before), length_of(after)]
    length = casadi.if_else(touch.touches, lengths[0] + touch.length + lengths[1], straight)
    e0 = casadi.if_else(touch.touches, before / lengths[0], gap / straight)
    e1 = casadi.if_else(touch.touches, after / lengths[1], gap / straight)
    moment = casadi.cross(touch.first, e0) - casadi.cross(touch.last, e1)
    wrench = casadi.if_else(touch.touches, casadi.vertcat(e0 - e1, moment), casadi.DM.zeros(6))
    return length, [R @ e0, R @ e1], wrench
