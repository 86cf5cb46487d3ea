"""Symmetries of a body: groups under which its wrench commutes, f(g z) = g f(z).

A group element g in O(3) turns or reflects the body. Of what the body meets, z = (v, w, d, inputs),
true vectors (velocities v, the direction d of gravity, forces) become g v; axial vectors (rates w,
moments) become det(g) g w; inputs are permuted, as propellers are that take each other's places.

A group is given by finitely many elements, enough that their mean over polynomials of degree 3 is
that over the whole group: five turns and five mirrors for `O2`, the 48 symmetries of a cube for
`O3`. `sample` draws from the whole group, for tests.

`C4` needs care: a turn by 90 degrees exchanges propellers that spin in opposite senses. It is a
symmetry only together with a change of sign of what the spin does, the rate and the moment about
the axis.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np

from framefree.learn.errors import LearnError
from framefree.machine.part import set_field

TURNS = 5
"""Turns that stand for all turns about an axis: exact for polynomials below this degree."""


class GroupElement(NamedTuple):
    """One element of a group.

    Attributes
    ----------
    matrix : (3, 3)
        g in O(3), in body axes.
    inputs : (k, k)
        What it does to the inputs.
    spin : (3, 3)
        A further map of axial vectors, the identity but for `C4`.
    """

    matrix: np.ndarray
    inputs: np.ndarray
    spin: np.ndarray

    @property
    def axial(self) -> np.ndarray:
        """What it does to rates and moments (3, 3)."""
        return np.linalg.det(self.matrix) * self.spin @ self.matrix

    @property
    def on_motion(self) -> np.ndarray:
        """What it does to z = (v, w, d, inputs)."""
        return block_diagonal(self.matrix, self.axial, self.matrix, self.inputs)

    @property
    def on_wrench(self) -> np.ndarray:
        """What it does to a wrench (force, moment), (6, 6)."""
        return block_diagonal(self.matrix, self.axial)


class Symmetry(ABC):
    """A group of symmetries of a body; see the top of this file."""

    inputs: int = 0

    @property
    @abstractmethod
    def elements(self) -> tuple[GroupElement, ...]:
        """Elements whose mean over polynomials of degree 3 is that over the group."""

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> GroupElement:
        """Draw an element of the whole group."""

    @abstractmethod
    def parts(self) -> dict[str, Any]:
        """Return what makes it again: its `kind` and its arguments."""

    def _plain(self, matrix: np.ndarray) -> GroupElement:
        return GroupElement(matrix, np.eye(self.inputs), np.eye(3))


@dataclass(frozen=True, eq=False)
class Trivial(Symmetry):
    """No symmetry of the body: only that of the world, which body axes give for free."""

    inputs: int = 0

    @property
    def elements(self) -> tuple[GroupElement, ...]:
        """The identity."""
        return (self._plain(np.eye(3)),)

    def sample(self, rng: np.random.Generator) -> GroupElement:
        """Return the identity."""
        return self.elements[0]

    def parts(self) -> dict[str, Any]:
        """Return its kind."""
        return {"kind": "Trivial", "inputs": self.inputs}


@dataclass(frozen=True, eq=False)
class O2(Symmetry):
    """All turns about an axis and all mirrors through it: a rod, a cone, a body of revolution.

    The ends of the axis may differ.

    Parameters
    ----------
    axis : (3,)
        In body axes.
    """

    axis: Any = (1.0, 0.0, 0.0)
    inputs: int = 0

    def __post_init__(self) -> None:
        set_field(self, "axis", unit(self.axis, "the axis of `O2`"))

    @property
    def elements(self) -> tuple[GroupElement, ...]:
        """Five turns, with and without a mirror."""
        angles = 2 * np.pi * np.arange(TURNS) / TURNS
        return tuple(
            self._plain(self._element(angle, mirrored)) for angle in angles for mirrored in (0, 1)
        )

    def sample(self, rng: np.random.Generator) -> GroupElement:
        """Draw a turn, with a mirror in half of the cases."""
        return self._plain(self._element(rng.uniform(0, 2 * np.pi), int(rng.integers(2))))

    def _element(self, angle: float, mirrored: int) -> np.ndarray:
        return about_axis(self.axis, angle, mirrored)

    def parts(self) -> dict[str, Any]:
        """Return its kind and axis."""
        return {"kind": "O2", "axis": np.asarray(self.axis).tolist(), "inputs": self.inputs}


@dataclass(frozen=True, eq=False)
class O3(Symmetry):
    """All turns and reflections: a ball."""

    inputs: int = 0

    @property
    def elements(self) -> tuple[GroupElement, ...]:
        """The 48 symmetries of a cube, which leave no tensor of degree 3 but those of `O3`."""
        return tuple(
            self._plain(np.eye(3)[list(order)] * np.array(signs))
            for order in permutations(range(3))
            for signs in product((1.0, -1.0), repeat=3)
        )

    def sample(self, rng: np.random.Generator) -> GroupElement:
        """Draw a turn or a reflection."""
        matrix, triangle = np.linalg.qr(rng.normal(size=(3, 3)))
        return self._plain(matrix * np.sign(np.diag(triangle)))

    def parts(self) -> dict[str, Any]:
        """Return its kind."""
        return {"kind": "O3", "inputs": self.inputs}


class _Finite(Symmetry):
    """A group of a few elements, from which samples are drawn too."""

    def sample(self, rng: np.random.Generator) -> GroupElement:
        """Draw one of the elements."""
        return self.elements[int(rng.integers(len(self.elements)))]


@dataclass(frozen=True, eq=False)
class C2v(_Finite):
    """Half a turn about an axis and two mirrors through it: a quadcopter whose propellers spin.

    Parameters
    ----------
    axis : (3,)
        In body axes.
    plane : (3,)
        Normal of one of the mirrors, perpendicular to the axis.
    mirrored, half_turned : sequences of int
        Which input takes the place of each under that mirror and under the half turn; default all
        stay.
    """

    axis: Any = (0.0, 0.0, 1.0)
    plane: Any = (1.0, 0.0, 0.0)
    mirrored: tuple[int, ...] = ()
    half_turned: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        axis, plane = unit(self.axis, "the axis of `C2v`"), unit(self.plane, "`plane` of `C2v`")
        if abs(axis @ plane) > 1e-12:
            raise LearnError("`plane` of `C2v` must be perpendicular to its axis")
        if len(self.mirrored) != len(self.half_turned):
            raise LearnError("`mirrored` and `half_turned` of `C2v` must name the same inputs")
        set_field(self, "axis", axis)
        set_field(self, "plane", plane)
        mirror, turn = permutation(self.mirrored, "mirrored"), permutation(
            self.half_turned, "half_turned"
        )  # fmt: skip
        square = np.eye(len(mirror))
        if not (np.array_equal(mirror @ mirror, square) and np.array_equal(turn @ turn, square)):
            raise LearnError("mirrors and half turns done twice must leave all inputs in place")
        if not np.array_equal(mirror @ turn, turn @ mirror):
            raise LearnError("`mirrored` and `half_turned` must commute, as mirror and turn do")
        set_field(self, "inputs", len(mirror))

    @property
    def elements(self) -> tuple[GroupElement, ...]:
        """The identity, the half turn and both mirrors."""
        mirror = np.eye(3) - 2 * np.outer(self.plane, self.plane)
        turn = 2 * np.outer(self.axis, self.axis) - np.eye(3)
        swap, back = permutation(self.mirrored, ""), permutation(self.half_turned, "")
        pairs = (
            (np.eye(3), np.eye(self.inputs)),
            (mirror, swap),
            (turn, back),
            (turn @ mirror, back @ swap),
        )
        return tuple(GroupElement(matrix, inputs, np.eye(3)) for matrix, inputs in pairs)

    def parts(self) -> dict[str, Any]:
        """Return its kind and arguments."""
        return {
            "kind": "C2v",
            "axis": np.asarray(self.axis).tolist(),
            "plane": np.asarray(self.plane).tolist(),
            "mirrored": list(self.mirrored),
            "half_turned": list(self.half_turned),
        }


@dataclass(frozen=True, eq=False)
class C4(_Finite):
    """Quarter turns about an axis that exchange propellers, and with them the sense of their spin.

    Parameters
    ----------
    axis : (3,)
        In body axes.
    turned : sequence of int
        Which input takes the place of each under a quarter turn, counterclockwise about the axis.
    spin : bool
        Whether neighbours spin in opposite senses, so that rate and moment about the axis change
        sign.
    """

    axis: Any = (0.0, 0.0, 1.0)
    turned: tuple[int, ...] = ()
    spin: bool = True

    def __post_init__(self) -> None:
        set_field(self, "axis", unit(self.axis, "the axis of `C4`"))
        quarter = permutation(self.turned, "turned")
        if not np.array_equal(np.linalg.matrix_power(quarter, 4), np.eye(len(quarter))):
            raise LearnError("four quarter turns must leave all inputs of `C4` in place")
        set_field(self, "inputs", len(quarter))

    @property
    def elements(self) -> tuple[GroupElement, ...]:
        """The four turns."""
        swap = np.eye(3) - 2 * np.outer(self.axis, self.axis) if self.spin else np.eye(3)
        quarter = permutation(self.turned, "")
        return tuple(
            GroupElement(
                about_axis(self.axis, k * np.pi / 2),
                np.linalg.matrix_power(quarter, k),
                np.linalg.matrix_power(swap, k),
            )
            for k in range(4)
        )

    def parts(self) -> dict[str, Any]:
        """Return its kind and arguments."""
        axis = np.asarray(self.axis).tolist()
        return {"kind": "C4", "axis": axis, "turned": list(self.turned), "spin": self.spin}


GROUPS: dict[str, type[Symmetry]] = {kind.__name__: kind for kind in (Trivial, O2, O3, C2v, C4)}
"""All groups by name."""


def symmetry_of(parts: dict[str, Any]) -> Symmetry:
    """Return the group that `Symmetry.parts` describes."""
    arguments = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in parts.items()
        if key != "kind"
    }
    if parts.get("kind") not in GROUPS:
        known = ", ".join(f"`{name}`" for name in GROUPS)
        raise LearnError(f"`{parts.get('kind')}` is not a symmetry; choose one of {known}")
    return GROUPS[parts["kind"]](**arguments)


# ---------------------------------------------------------------------- matrices


def unit(axis: Any, what: str) -> np.ndarray:
    """Return an axis (3,) with length one."""
    vector = np.array(axis, float)
    if vector.shape != (3,) or not np.isfinite(vector).all() or not np.linalg.norm(vector) > 0:
        raise LearnError(f"{what} must be three numbers, not all zero, got {axis!r}")
    vector = vector / np.linalg.norm(vector)
    vector.setflags(write=False)
    return vector


def about_axis(axis: np.ndarray, angle: float, mirrored: int = 0) -> np.ndarray:
    """Return a turn about an axis, after a mirror through the axis if asked for."""
    frame = axis_frame(axis)
    c, s = np.cos(angle), np.sin(angle)
    # Quarter turns are exact, so that products of group elements are group elements to the bit.
    c, s = (float(round(x)) if abs(x - round(x)) < 1e-15 else x for x in (c, s))
    turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    flip = np.diag([1.0, -1.0 if mirrored else 1.0, 1.0])
    return frame @ turn @ flip @ frame.T


def axis_frame(axis: np.ndarray) -> np.ndarray:
    """Return a rotation (3, 3) whose third column is the axis; exact for coordinate axes."""
    first = np.eye(3)[(int(np.argmax(np.abs(axis))) + 1) % 3]
    first = first - (first @ axis) * axis
    first = first / np.linalg.norm(first)
    return np.column_stack([first, np.cross(axis, first), axis])


def permutation(order: Any, what: str) -> np.ndarray:
    """Return the matrix (k, k) with ``(P u)[i] = u[order[i]]``."""
    if sorted(order) != list(range(len(order))):
        raise LearnError(f"`{what}` must name every input once, from 0 on, got {tuple(order)}")
    return np.eye(len(order))[list(order)] if len(order) else np.zeros((0, 0))


def block_diagonal(*blocks: np.ndarray) -> np.ndarray:
    """Return a matrix with these blocks on its diagonal."""
    size = sum(len(block) for block in blocks)
    result, at = np.zeros((size, size)), 0
    for block in blocks:
        result[at : at + len(block), at : at + len(block)] = block
        at += len(block)
    return result
