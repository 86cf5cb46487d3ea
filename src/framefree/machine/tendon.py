"""Tendons: a length that depends on the configuration, and what resists its change.

Springs, damping, friction and limits act on the length L of a tendon, and so do actuators on
it (`framefree.machine.actuators.TendonForce`). A force f along a tendon does the power f dL/dt: a
positive one lengthens it.

To add a kind of tendon, subclass `Tendon` and give

1. ``coordinates`` or ``frames``: what its length depends on, by name; a tendon has one of the two;
2. ``reach(coordinates, poses)``: the length L, and how it changes: the rate of L per unit of each
   coordinate's rate, or for each frame the wrench (6, in the frame's axes) that a unit force along
   the tendon puts on it, so that dL/dt = sum of rates of coordinates, or sum of xi . wrench.

`framefree.motion.tendons` turns these into forces, in every formulation.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import casadi
import numpy as np

from framefree.machine.joint import FRICTION_WIDTH
from framefree.machine.part import Part, checked_name, set_field
from framefree.machine.problems import MachineError
from framefree.machine.values import constant, is_symbolic, numbers, scalar


class TendonReach(NamedTuple):
    """A tendon's length, and its rate per unit rate of coordinates, or wrenches on frames (6)."""

    length: Any
    on_coordinates: Sequence[Any] = ()
    on_frames: Sequence[Any] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Tendon(Part, ABC):
    """Base of all tendons; see the contract at the top of this file.

    Parameters
    ----------
    stiffness : number, or several
        Of a spring along the tendon, see `spring_force`: N/m, N/m^2, N/m^3 for a length in m.
    rest : number or (2,)
        Length at which the spring is relaxed, or the two ends of the range in which it is slack.
    damping : number, or several
        Viscous friction along the tendon, see `damping_force`: N s/m, N s^2/m^2, ....
    friction : number
        Coulomb friction along the tendon, N, see `friction_force`.
    friction_width : number
        Speed over which Coulomb friction changes sign, m/s.
    lower, upper : number
        Limits of the length. As those of joints they are data for controllers and checks; the
        simulation does not enforce them.
    effort_lower, effort_upper : number
        Limits of the sum of the forces of all actuators on the tendon, N, before their gears.
        Where they are exceeded, all these forces shrink by one factor.
    """

    stiffness: Any = 0.0
    rest: Any = 0.0
    damping: Any = 0.0
    friction: Any = 0.0
    friction_width: Any = FRICTION_WIDTH
    lower: Any = -np.inf
    upper: Any = np.inf
    effort_lower: Any = -np.inf
    effort_upper: Any = np.inf

    name: ClassVar[str]
    coordinates: ClassVar[tuple[str, ...]] = ()
    """Coordinates that the length depends on, as named in `machine.x_names`."""
    frames: ClassVar[tuple[str, ...]] = ()
    """Frames that the length depends on."""

    def __post_init__(self) -> None:
        checked_name(self.name, "a tendon")
        for field in ("stiffness", "damping"):
            given = getattr(self, field)
            size = given.shape[0] if is_symbolic(given) else np.size(given)
            set_field(self, field, numbers(given, (size,), self._words(field)))
        set_field(self, "rest", numbers(self.rest, (2,), self._words("rest")))
        for field in ("friction", "friction_width"):
            set_field(self, field, scalar(getattr(self, field), self._words(field)))
        for field in ("lower", "upper", "effort_lower", "effort_upper"):
            value = numbers(getattr(self, field), (), self._words(field), finite=False)
            set_field(self, field, float(value))
        self._check_ranges()

    @abstractmethod
    def reach(self, coordinates: Sequence[Any], poses: Sequence[Any]) -> TendonReach:
        """Return length and directions for values of `coordinates`, and poses of `frames`."""

    @property
    def has_spring(self) -> bool:
        """Whether a spring acts along the tendon."""
        return is_symbolic(self.stiffness) or bool(np.any(self.stiffness))

    @property
    def lossy(self) -> bool:
        """Whether damping or friction act along the tendon."""
        given = (self.damping, self.friction)
        return any(is_symbolic(value) or bool(np.any(value)) for value in given)

    # Forces below stand on the left of M a + c + ... = B u: they resist.

    def stretch(self, length: Any) -> Any:
        """Return how far the length is outside of the range in which the spring is slack."""
        low, high = self.rest[0], self.rest[1]
        if not is_symbolic(self.rest) and low == high:
            return length - low
        return casadi.fmax(length - high, 0) + casadi.fmin(length - low, 0)

    def spring_potential(self, length: Any) -> Any:
        """V = k0 d^2/2 + k1 d^3/3 + ... with d = `stretch`; J."""
        d, k = self.stretch(length), self.stiffness
        return sum((k[i] * d ** (i + 2) / (i + 2) for i in range(k.shape[0])), casadi.SX(0))

    def spring_force(self, length: Any) -> Any:
        """Return k0 d + k1 d^2 + ... with d = `stretch`, the slope of the potential."""
        d, k = self.stretch(length), self.stiffness
        return sum((k[i] * d ** (i + 1) for i in range(k.shape[0])), casadi.SX(0))

    def damping_force(self, rate: Any) -> Any:
        """Return d0 r + d1 |r| r + d2 |r|^2 r + ... with the rate r of the length."""
        d = self.damping
        terms = (d[i] * casadi.fabs(rate) ** i * rate for i in range(1, d.shape[0]))
        return sum(terms, casadi.SX(d[0] * rate))

    def friction_force(self, rate: Any) -> Any:
        """Coulomb friction, smooth through rest: friction tanh(rate / friction_width)."""
        return self.friction * casadi.tanh(rate / self.friction_width)

    def lost_force(self, length: Any, rate: Any) -> Any:
        """Return damping and friction."""
        return self.damping_force(rate) + self.friction_force(rate)

    def effort_factor(self, total: Any) -> Any:
        """Return by what the actuators' forces shrink, from their sum."""
        over = casadi.if_else(total > self.effort_upper, self.effort_upper / total, 1.0)
        return casadi.if_else(total < self.effort_lower, self.effort_lower / total, over)

    @property
    def effort_limited(self) -> bool:
        """Whether the actuators' forces together have limits."""
        return bool(np.isfinite([self.effort_lower, self.effort_upper]).any())

    def _check_ranges(self) -> None:
        for low, high in (("lower", "upper"), ("effort_lower", "effort_upper")):
            if getattr(self, low) > getattr(self, high):
                raise MachineError(
                    f"tendon `{self.name}`: `{low}` {getattr(self, low):.6g} exceeds `{high}` "
                    f"{getattr(self, high):.6g}"
                )
        if not is_symbolic(self.rest) and self.rest[0] > self.rest[1]:
            raise MachineError(f"{self._words('rest')} must not decrease, got {self.rest.tolist()}")
        if not is_symbolic(self.friction) and self.friction < 0:
            raise MachineError(f"{self._words('friction')} must not be negative")
        if not is_symbolic(self.friction_width) and self.friction_width <= 0:
            raise MachineError(f"{self._words('friction_width')} must be positive")

    def _words(self, name: str) -> str:
        return f"`{name}` of tendon `{self.name}`"


@dataclass(frozen=True, eq=False)
class JointTendon(Tendon):
    """A tendon whose length is a sum of joint coordinates times coefficients.

    L = sum of coefficients[i] coordinates[i]. MJCF calls it a fixed tendon: it stands for a
    differential, a cable over pulleys on the joints' axes, or the split force of a gripper.

    Parameters
    ----------
    name : str
    coordinates : str or sequence of str
        As named in `machine.x_names`; their joints have plain coordinates (`JointKind.vector`).
    coefficients : number or (n,)
    **forces
        Keywords: stiffness, rest, damping, friction, limits, see `Tendon`.
    """

    name: str
    coordinates: tuple[str, ...]
    coefficients: Any = 1.0

    coordinate_fields = ("coordinates",)

    def __post_init__(self) -> None:
        names = self.coordinates
        set_field(self, "coordinates", (names,) if isinstance(names, str) else tuple(names))
        if not self.coordinates:
            raise MachineError(f"tendon `{self.name}` needs at least one coordinate")
        count = (len(self.coordinates),)
        set_field(
            self, "coefficients", numbers(self.coefficients, count, self._words("coefficients"))
        )
        super().__post_init__()

    def reach(self, coordinates: Sequence[Any], poses: Sequence[Any]) -> TendonReach:
        """Return the weighted sum, and the coefficients."""
        factors = constant(self.coefficients)
        length = casadi.dot(factors, casadi.vertcat(*coordinates))
        return TendonReach(length, casadi.vertsplit(factors))
