"""The contract of `learn/`: a model of the wrench on a body that the equations do not know.

The equations are split at the port. The known side is the machine; the unknown side is a wrench
tau_b on each body, which a model gives as one function of what the body itself meets, in its own
axes:

    tau_b = f(xi_b, R_b^T d, R_b^T c, inputs, gap; numbers)

with the body's twist xi_b, the direction d of gravity and vectors c that are constant in the world,
such as a current or the normal of a surface, and the gap of a point of the body to a surface.
Turning the world changes none of these arguments, so that every model commutes
with all changes of the world's frame. Bodies that are alike share one function.

To add a model, subclass `WrenchModel` and give

1. ``names``, ``units`` and ``coefficients``: its adjustable numbers, those that a law may adapt;
   ``linear``, the names of those in which the wrench is linear (affine) while the others are held;
2. ``wrench(motion, numbers)``: the wrench (6) that acts on the body, force first, in body axes at
   the origin of its frame, as a casadi expression. Without numbers its coefficients are constants,
   with a column (size) of symbols they are inputs, and retraining needs no compilation;
3. ``turned(R)``: the same model in a world that is turned by R, which turns its current;
4. ``parts()``: what `framefree.learn.save` writes, and a classmethod ``of_parts`` that reads it.

Everything else is derived here.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import casadi as ca
import numpy as np

from framefree.control.unknown.learned import learned_interactions
from framefree.kernel import Kernel, compile
from framefree.learn.errors import LearnError
from framefree.machine import Machine

Matrix = Any


class BodyMotion(NamedTuple):
    """What a model sees of one body; all columns are casadi expressions.

    Attributes
    ----------
    twist : (6)
        Body twist relative to the world, in body axes, m/s and rad/s.
    rotation : (3 x 3)
        R_b, the body seen from the world: it takes vectors of the world into body axes.
    down : (3)
        Direction of gravity in body axes, of length one; zero where there is no gravity.
    inputs : (k)
        Commands that change the wrench, such as those of propellers.
    position : (3)
        Place of the body's origin in the world, m. Models see it by the gap to a surface alone
        (`touch`), so that moving body and surface together changes nothing.
    """

    twist: Matrix
    rotation: Matrix
    down: Matrix
    inputs: Matrix = ca.SX(0, 1)
    position: Matrix = ca.SX(3, 1)

    @classmethod
    def symbols(cls, inputs: int = 0) -> Self:
        """Return a motion of symbols."""
        return cls(
            ca.SX.sym("twist", 6),
            ca.SX.sym("rotation", 3, 3),
            ca.SX.sym("down", 3),
            ca.SX.sym("inputs", inputs),
            ca.SX.sym("position", 3),
        )

    def relative(self, current: Matrix) -> Matrix:
        """Return the twist (6) relative to a current (3, world axes): ``(v - R^T c, w)``."""
        return ca.vertcat(self.twist[:3] - self.rotation.T @ current, self.twist[3:])

    def touch(self, normal: Matrix, offset: Matrix, center: Matrix, radius: float) -> "Touch":
        """Return how a ball on the body meets the plane ``normal . r = offset`` of the world.

        Parameters
        ----------
        normal, offset : (3), scalar
            Unit normal, out of the solid, in world axes, and the plane's place along it, m.
        center, radius : (3), float
            Of the ball, in body axes, m.
        """
        n = self.rotation.T @ normal
        gap = ca.dot(normal, self.position) + ca.dot(n, center) - offset - radius
        # Half way between both surfaces where they overlap, as `machine.Contact` has it.
        point = center - (radius + gap / 2) * n
        return Touch(gap, n, point, self.twist[:3] + ca.cross(self.twist[3:], point))


class Touch(NamedTuple):
    """How a body meets a surface, in body axes: none of it changes with the world's frame.

    Attributes
    ----------
    gap : scalar
        m; negative where they overlap.
    normal : (3)
        Out of the surface, of length one.
    point : (3)
        Where they touch, m.
    velocity : (3)
        Of the body there, m/s.
    """

    gap: Matrix
    normal: Matrix
    point: Matrix
    velocity: Matrix


class WrenchModel(ABC):
    """A learned wrench on a body; see the contract at the top of this file."""

    names: tuple[str, ...]
    """Its adjustable numbers, such as "current.x"."""
    units: tuple[str, ...]
    """Their units, one each."""
    coefficients: np.ndarray
    """Their values (size,)."""
    linear: tuple[str, ...]
    """Names of the numbers that enter linearly."""
    inputs: int = 0
    """How many inputs it takes."""

    @property
    def size(self) -> int:
        """How many adjustable numbers there are."""
        return len(self.names)

    @abstractmethod
    def wrench(self, motion: BodyMotion, numbers: Matrix | None = None) -> Matrix:
        """Return the wrench (6) on the body, N and Nm, in body axes."""

    @abstractmethod
    def turned(self, R: Any) -> Self:
        """Return the model for a world that is turned by R (3x3)."""

    @abstractmethod
    def parts(self) -> dict[str, Any]:
        """Return arrays and plain values that make the model again."""

    @classmethod
    @abstractmethod
    def of_parts(cls, parts: Mapping[str, Any]) -> Self:
        """Return the model that `parts` describes."""

    @abstractmethod
    def with_coefficients(self, values: Any) -> Self:
        """Return the model with other values (size,) of its adjustable numbers."""

    def trust(self, motion: BodyMotion) -> Matrix | None:
        """Return how far the model may be trusted, 0 to 1; None where nothing is known of it."""
        return None

    def constants(self, numbers: Matrix | None) -> Matrix:
        """Return the numbers as a column, of constants where none are given."""
        if numbers is None:
            return ca.SX(ca.DM(self.coefficients))
        if numbers.shape != (self.size, 1):
            raise LearnError(
                f"the model has {self.size} numbers, got a column of {numbers.shape[0]}"
            )
        return numbers

    def added_to(self, machine: Machine, bodies: Sequence[str] | None = None) -> Machine:
        """Return the machine with the model as its own: laws made for it compensate the model.

        Parameters
        ----------
        machine : Machine
        bodies : sequence of str, optional
            Bodies on which the model acts; by default all that have mass.
        """
        own = learned_interactions(self, machine, bodies)
        return replace(machine, interactions=(*machine.interactions, *own))

    def value(self, name: str) -> float:
        """Return one of its numbers."""
        if name not in self.names:
            known = ", ".join(f"`{known}`" for known in self.names) or "none"
            raise LearnError(f"the model has no number `{name}`; it has: {known}")
        return float(self.coefficients[self.names.index(name)])

    def function(self, name: str = "wrench") -> ca.Function:
        """Return (twist, rotation, down, inputs, position, numbers) -> wrench, for casadi."""
        motion = BodyMotion.symbols(self.inputs)
        numbers = ca.SX.sym("numbers", self.size)
        wrench = ca.densify(ca.SX(self.wrench(motion, numbers)))
        names = [*BodyMotion._fields, "numbers"]
        return ca.Function(name, [*motion, numbers], [wrench], names, ["wrench"])

    def kernel(self) -> Kernel:
        """Return the same compiled: one motion, or many at once."""
        return compile(self.function(), shapes={"wrench": (6,)})

    def __call__(
        self,
        twist: Any,
        rotation: Any,
        down: Any,
        inputs: Any = (),
        numbers: Any = None,
        position: Any = (0.0, 0.0, 0.0),
    ) -> np.ndarray:
        """Return the wrench (6), or (n, 6), at motions in numbers."""
        values = self.coefficients if numbers is None else np.asarray(numbers, float)
        given, place = np.asarray(inputs, float), np.asarray(position, float)
        return self._compiled(twist, rotation, down, given, place, values)

    @cached_property
    def _compiled(self) -> Kernel:
        return self.kernel()


def gravity_direction(machine: Machine) -> np.ndarray:
    """Return the direction (3,) of gravity in the world; zero where there is none."""
    g = np.asarray(machine.numeric.gravity, float)
    size = float(np.linalg.norm(g))
    return g / size if size else g


def checked_numbers(values: Any, size: int, what: str) -> np.ndarray:
    """Return finite values (size,); raise `LearnError` otherwise."""
    array = np.array(values, float)
    if array.shape != (size,):
        raise LearnError(f"{what} must have shape {(size,)}, got {array.shape}")
    if not np.isfinite(array).all():
        raise LearnError(f"{what} must be finite, got {array}")
    array.setflags(write=False)
    return array


def named(prefix: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return names with a prefix and a point before them."""
    return tuple(f"{prefix}.{name}" for name in names)
