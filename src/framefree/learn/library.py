"""Libraries of terms: wrenches that people can read, of which a basis is a weighted sum.

With the velocity v and rate w of the body relative to the fluid and the direction d of gravity, all
in body axes, a library gives columns Phi(v, w, d) (6 x k), and the wrench is Phi a. A rod of length
L along the unit axis e is cut into strips at s e, |s| <= L/2, that move at u = v + w x s e, with
u_e = e . u and u_n = u - u_e e. Strips have forces f ds and moments s e x f ds:

    across.linear        f = -u_n                              coefficient in N s/m^2
    across.quadratic     f = -|u_n| u_n                        N s^2/m^3
    along.linear         f = -u_e e                            N s/m^2
    along.quadratic      f = -|u_e| u_e e                      N s^2/m^3
    lift                 f = u_e (|u|^2 e - u_e u) / |u|       N s^2/m^3, at right angles to u
    magnus               f = w_e e x u                         N s^2/m^2
    spin                 moment -w_e e                         Nm s
    buoyancy             force -d                              N
    buoyancy.offset      moment e x (-d)                       Nm: the center of buoyancy lies off
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.learn.errors import LearnError
from framefree.learn.polynomials import SymmetricPolynomials
from framefree.learn.symmetry import O2, Symmetry, Trivial, symmetry_of, unit
from framefree.machine.part import set_field

STILL = 1e-9
"""m/s, which keeps |u| smooth at rest."""

Matrix = Any


class Library(ABC):
    """Terms that a basis may have.

    Attributes
    ----------
    names, units, formulas : tuples of str
        Of every term: its name, the unit of its coefficient, and the wrench in words of the
        formula.
    symmetry : Symmetry
        What its terms commute with.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    formulas: tuple[str, ...]
    symmetry: Symmetry

    @abstractmethod
    def columns(self, v: Matrix, w: Matrix, d: Matrix, inputs: Matrix) -> Matrix:
        """Return Phi (6 x k) at a relative velocity, rate, direction of gravity and inputs."""

    @abstractmethod
    def parts(self) -> dict[str, Any]:
        """Return what makes it again: its `kind` and its arguments."""

    def __len__(self) -> int:
        return len(self.names)


_ROD = {
    "across.linear": ("N s/m^2", "strips: -u_n"),
    "across.quadratic": ("N s^2/m^3", "strips: -|u_n| u_n"),
    "along.linear": ("N s/m^2", "strips: -u_e e"),
    "along.quadratic": ("N s^2/m^3", "strips: -|u_e| u_e e"),
    "lift": ("N s^2/m^3", "strips: u_e (|u|^2 e - u_e u)/|u|"),
    "magnus": ("N s^2/m^2", "strips: w_e e x u"),
    "spin": ("Nm s", "moment: -w_e e"),
    "buoyancy": ("N", "force: -d"),
    "buoyancy.offset": ("Nm", "moment: -e x d"),
}


@dataclass(frozen=True, eq=False)
class RodLibrary(Library):
    """Forces of a fluid on a rod, strip by strip; see the top of this file.

    Parameters
    ----------
    length : float
        m.
    axis : (3,)
        Along the rod, in body axes; the rod's middle is the origin of the body.
    strips : int
        Points of the quadrature along the rod.
    """

    length: float
    axis: Any = (1.0, 0.0, 0.0)
    strips: int = 6

    names = tuple(_ROD)
    units = tuple(unit for unit, _ in _ROD.values())
    formulas = tuple(formula for _, formula in _ROD.values())

    def __post_init__(self) -> None:
        if not 0 < self.length < np.inf:
            raise LearnError(f"the length of a rod must be positive, got {self.length}")
        if self.strips < 1:
            raise LearnError(f"a rod needs at least one strip, got {self.strips}")
        set_field(self, "axis", unit(self.axis, "the axis of a rod"))

    @cached_property
    def symmetry(self) -> Symmetry:  # type: ignore[override]
        """Turns about the axis and mirrors through it."""
        return O2(self.axis)

    @cached_property
    def quadrature(self) -> tuple[np.ndarray, np.ndarray]:
        """Places (strips,) along the axis and their lengths, m."""
        places, weights = np.polynomial.legendre.leggauss(self.strips)
        return places * self.length / 2, weights * self.length / 2

    def columns(self, v: Matrix, w: Matrix, d: Matrix, inputs: Matrix) -> Matrix:
        """Return Phi (6 x 9)."""
        e = ca.DM(self.axis)
        spin = ca.dot(e, w)
        strips: list[Matrix] = [ca.SX(6, 1)] * 6
        for s, share in zip(*self.quadrature, strict=True):
            u = v + ca.cross(w, float(s) * e)
            along = ca.dot(e, u)
            across = u - along * e
            speed = smooth_length(u)
            forces = (
                -across,
                -smooth_length(across) * across,
                -along * e,
                -ca.sqrt(along**2 + STILL**2) * along * e,
                along * (ca.dot(u, u) * e - along * u) / speed,
                spin * ca.cross(e, u),
            )
            for i, force in enumerate(forces):
                on_strip = float(share) * ca.vertcat(force, ca.cross(float(s) * e, force))
                strips[i] = strips[i] + on_strip
        zero = ca.SX(3, 1)
        return ca.horzcat(
            *strips,
            ca.vertcat(zero, -spin * e),
            ca.vertcat(-d, zero),
            ca.vertcat(zero, -ca.cross(e, d)),
        )

    def parts(self) -> dict[str, Any]:
        """Return kind, length, axis and strips."""
        axis = np.asarray(self.axis).tolist()
        return {"kind": "RodLibrary", "length": self.length, "axis": axis, "strips": self.strips}


@dataclass(frozen=True, eq=False)
class PolynomialLibrary(Library):
    """All wrenches up to a degree that commute with a symmetry, for a body of any shape.

    Those of degree one in the twist come also multiplied by the speed sqrt(|v|^2 + l^2 |w|^2), as
    drag that grows with the square of the speed has it.

    Parameters
    ----------
    symmetry : Symmetry
    length : float
        l, m, of the body.
    degree : int
        1 or 2.
    features : tuple of str
        Of "velocity", "rate", "down" and "inputs".
    """

    symmetry: Symmetry
    length: float
    degree: int = 1
    features: tuple[str, ...] = ("velocity", "rate", "down")

    def __post_init__(self) -> None:
        if not 0 < self.length < np.inf:
            raise LearnError(f"the length of a body must be positive, got {self.length}")
        set_field(self, "features", tuple(self.features))
        maps = self.polynomials.wrenches
        moving = self._moving
        words = [_words(maps.monomials, own) for own in maps.matrix]
        names = [f"p{i + 1}" for i in range(len(maps))]
        fast = [f"p{i + 1}.fast" for i in moving]
        set_field(self, "names", (*names, *fast))
        # v and l w count in m/s: coefficients carry all units that are left.
        set_field(self, "units", ("SI",) * (len(names) + len(fast)))
        set_field(self, "formulas", (*words, *(f"speed * {words[i]}" for i in moving)))

    @cached_property
    def polynomials(self) -> SymmetricPolynomials:
        """The polynomials."""
        return SymmetricPolynomials(self.symmetry, self.features, self.degree)

    @property
    def _moving(self) -> list[int]:
        """Return places of terms that are linear in the twist."""
        maps = self.polynomials.wrenches
        twist = [len(m) == 1 and m[0] < 6 for m in maps.monomials]
        return [i for i, own in enumerate(maps.matrix) if not np.any(own[:, ~np.array(twist)])]

    def columns(self, v: Matrix, w: Matrix, d: Matrix, inputs: Matrix) -> Matrix:
        """Return Phi (6 x k)."""
        z = ca.vertcat(v, self.length * w, d, inputs)
        plain = self.polynomials.wrenches(z)
        moment = ca.vertcat(ca.DM.ones(3), self.length * ca.DM.ones(3))
        plain = plain * ca.repmat(moment, 1, plain.shape[1])
        speed = smooth_length(z[:6])
        return ca.horzcat(plain, *(speed * plain[:, i] for i in self._moving))

    def parts(self) -> dict[str, Any]:
        """Return kind, symmetry, length, degree and features."""
        return {
            "kind": "PolynomialLibrary",
            "symmetry": self.symmetry.parts(),
            "length": self.length,
            "degree": self.degree,
            "features": list(self.features),
        }


@dataclass(frozen=True, eq=False)
class TrimmedLibrary(Library):
    """A library with a constant wrench in body axes beside it, which no symmetry has.

    A craft is never quite the drawing: propellers differ, a load sits off the middle. What it needs
    to be trimmed is its own, and says nothing of another craft. Constants that the library has
    already are not added.

    Parameters
    ----------
    library : Library
    """

    library: Library

    def __post_init__(self) -> None:
        own, added = self.library, self._added
        words = [f"{what}.{axis}" for what in ("force", "moment") for axis in "xyz"]
        set_field(self, "names", (*own.names, *(f"trim.{words[i]}" for i in added)))
        set_field(self, "units", (*own.units, *("N" if i < 3 else "Nm" for i in added)))
        constant = (f"{words[i]} in body axes, constant" for i in added)
        set_field(self, "formulas", (*own.formulas, *constant))
        set_field(self, "symmetry", Trivial(own.symmetry.inputs))

    @property
    def _added(self) -> list[int]:
        """Entries of a constant wrench that the library does not span at rest."""
        rest = [ca.DM.zeros(n) for n in (3, 3, 3, self.library.symmetry.inputs)]
        columns = np.array(ca.DM(self.library.columns(*rest)))
        columns = columns[:, np.any(columns, axis=0)]
        rank = np.linalg.matrix_rank(columns) if columns.size else 0
        more = [np.column_stack([columns, np.eye(6)[:, i]]) for i in range(6)]
        return [i for i in range(6) if np.linalg.matrix_rank(more[i]) > rank]

    def columns(self, v: Matrix, w: Matrix, d: Matrix, inputs: Matrix) -> Matrix:
        """Return Phi (6 x k)."""
        return ca.horzcat(self.library.columns(v, w, d, inputs), ca.SX.eye(6)[:, self._added])

    def parts(self) -> dict[str, Any]:
        """Return kind and library."""
        return {"kind": "TrimmedLibrary", "library": self.library.parts()}


def library_of(parts: dict[str, Any]) -> Library:
    """Return the library that `Library.parts` describes."""
    arguments = {key: value for key, value in parts.items() if key != "kind"}
    if parts.get("kind") == "RodLibrary":
        return RodLibrary(**arguments)
    if parts.get("kind") == "PolynomialLibrary":
        symmetry = symmetry_of(arguments.pop("symmetry"))
        return PolynomialLibrary(symmetry, **arguments)
    if parts.get("kind") == "TrimmedLibrary":
        return TrimmedLibrary(library_of(dict(arguments["library"])))
    raise LearnError(f"`{parts.get('kind')}` is not a library of terms")


def smooth_length(u: Matrix) -> Matrix:
    """Return |u|, with slope zero at rest."""
    return ca.sqrt(ca.dot(u, u) + STILL**2)


_LETTERS = (*(f"v{i}" for i in "xyz"), *(f"lw{i}" for i in "xyz"), *(f"d{i}" for i in "xyz"))


def _words(monomials: tuple[tuple[int, ...], ...], matrix: np.ndarray) -> str:
    """Return a polynomial wrench as text: "f: (vx, 0, 0)  m: (0, 0, 0)"."""

    def letter(place: int) -> str:
        return _LETTERS[place] if place < 9 else f"u{place - 8}"

    def entry(row: np.ndarray) -> str:
        terms = []
        for j in np.flatnonzero(row):
            name = " ".join(letter(i) for i in monomials[j]) or "1"
            factor = {1.0: "", -1.0: "-"}.get(float(row[j]), f"{row[j]:.4g} ")
            terms.append(f"{factor}{name}")
        return " + ".join(terms).replace("+ -", "- ") or "0"

    force, moment = matrix[:3], matrix[3:]
    parts = []
    if np.any(force):
        parts.append(f"force: ({', '.join(map(entry, force))})")
    if np.any(moment):
        parts.append(f"moment/l: ({', '.join(map(entry, moment))})")
    return "  ".join(parts)
