"""Bodies in a fluid: what each feels at its twist relative to the fluid.

To add one, subclass `InFluid` and give ``frame`` and ``drag_matrix(xi, fluid)`` (6x6); the wrench
that resists is this matrix times the twist xi of the frame relative to the fluid. Buoyancy and
added mass are those of `Immersed`; the others have none.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import casadi
import numpy as np

from framefree.geometry import se3, so3
from framefree.machine.part import Part, checked_name, set_field
from framefree.machine.problems import MachineError, Problems
from framefree.machine.values import constant, is_symbolic, numbers, scalar, symmetric, vector

if TYPE_CHECKING:
    from framefree.machine.fluid import Fluid

STILL = 1e-30
"""Square of a speed, (m/s)^2, below which its direction does not matter: slopes stay finite."""


class InFluid(Part, ABC):
    """Base of all that a fluid pushes; see the top of this file."""

    frame: str
    frame_fields = ("frame",)
    volume: ClassVar[Any] = 0.0
    center: ClassVar[Any] = np.zeros(3)
    added_mass: ClassVar[Any] = np.zeros((6, 6))

    @property
    def name(self) -> str:
        """The frame's name."""
        return self.frame

    @property
    def inert(self) -> "InFluid | None":
        """What stays of it without drag and lift: buoyancy and added mass, or nothing."""
        return None

    @property
    def resists_acceleration(self) -> bool:
        """Whether it has added mass."""
        return is_symbolic(self.added_mass) or bool(np.any(self.added_mass))

    @abstractmethod
    def drag_matrix(self, xi: Any, fluid: "Fluid") -> Any:
        """Return D(xi) (6x6), positive semidefinite but for a skew part, which is lift."""

    def drag(self, xi: Any, fluid: "Fluid") -> Any:
        """Return drag and lift D(xi) xi (6) at the twist xi relative to the fluid."""
        return self.drag_matrix(xi, fluid) @ xi

    def coriolis(self, xi: Any) -> Any:
        """Return Gam (6x6) of the added mass: skew, with Gam(xi) xi = -ad_xi^T M_A xi.

        Gam(xi) = 1/2 (-W(M xi) - ad_xi^T M + M ad_xi), right for every symmetric M.
        """
        M = constant(self.added_mass)
        ad = se3.little_adjoint(xi)
        return (M @ ad - ad.T @ M - _turning(M @ xi)) / 2

    def _words(self, name: str) -> str:
        return f"`{name}` of the body immersed at `{self.frame}`"


@dataclass(frozen=True, eq=False)
class Immersed(InFluid):
    """Buoyancy, added mass and drag of one body, expressed in one of its frames.

    Parameters
    ----------
    frame : str
        Frame or body; center, matrices and drag are in its axes, about its origin.
    volume : float
        Displaced volume, m^3.
    center : (3,)
        Center of buoyancy, m.
    added_mass : (6, 6)
        Symmetric, linear part first: kg, kg m, kg m^2. Six numbers give a diagonal.
    linear_drag : (6, 6)
        Wrench per relative twist; six numbers give a diagonal.
    quadratic_drag : (6, 6)
        Wrench per |xi_i| xi_i of the relative twist; six numbers give a diagonal.
    """

    frame: str
    volume: Any = 0.0  # pyright: ignore[reportIncompatibleVariableOverride]
    center: Any = (0.0, 0.0, 0.0)  # pyright: ignore[reportIncompatibleVariableOverride]
    added_mass: Any = 0.0  # pyright: ignore[reportIncompatibleVariableOverride]
    linear_drag: Any = 0.0
    quadratic_drag: Any = 0.0

    def __post_init__(self) -> None:
        checked_name(self.frame, "the frame of an immersed body")
        problems = Problems()
        with problems.at():
            set_field(self, "volume", scalar(self.volume, self._words("volume")))
            if not is_symbolic(self.volume) and self.volume < 0:
                problems.add(f"{self._words('volume')} must not be negative, got {self.volume}")
        with problems.at():
            set_field(self, "center", vector(self.center, self._words("center")))
        for name in ("added_mass", "linear_drag", "quadratic_drag"):
            with problems.at():
                value = _matrix6(getattr(self, name))
                check = symmetric if name == "added_mass" else _square
                set_field(self, name, check(value, 6, self._words(name)))
        problems.raise_if_any()

    @property
    def inert(self) -> "Immersed":
        """The same without drag."""
        return replace(self, linear_drag=0.0, quadratic_drag=0.0)

    def drag_matrix(self, xi: Any, fluid: "Fluid") -> Any:
        """Return linear drag + quadratic drag diag(|xi|) (6x6); it does not depend on the fluid."""
        speeds = casadi.diag(casadi.fabs(xi))
        return constant(self.linear_drag) + constant(self.quadratic_drag) @ speeds


@dataclass(frozen=True, eq=False)
class ImmersedBox(InFluid):
    """Drag of a box in a fluid, the forces that MuJoCo gives to every body by default.

    With sides a, b, c, their mean d, the density rho and the viscosity eta of the fluid,

        force_x  = -(3 pi d eta + rho/2 b c |v_x|) v_x
        moment_x = -(pi d^3 eta + rho/64 a (b^4 + c^4) |w_x|) w_x

    and so on by turns. There is neither buoyancy nor added mass.

    Parameters
    ----------
    frame : str
        The box's center and axes.
    sides : (3,)
        Full lengths along the frame's axes, m.
    """

    frame: str
    sides: Any

    def __post_init__(self) -> None:
        checked_name(self.frame, "the frame of an immersed box")
        _set_lengths(self, "sides")

    def drag_matrix(self, xi: Any, fluid: "Fluid") -> Any:
        """Return the diagonal of the forces above, with their signs turned."""
        diameter = float(np.mean(self.sides))
        a, b, c = self.sides
        area = np.array([b * c, a * c, a * b]) / 2
        moment = np.array([a * (b**4 + c**4), b * (a**4 + c**4), c * (a**4 + b**4)]) / 64
        speeds = casadi.fabs(xi)
        linear = fluid.viscosity * (3 * np.pi * diameter)
        turning = fluid.viscosity * (np.pi * diameter**3)
        return casadi.diag(
            casadi.vertcat(
                linear + fluid.density * constant(area) * speeds[:3],
                turning + fluid.density * constant(moment) * speeds[3:],
            )
        )


@dataclass(frozen=True, eq=False)
class ImmersedEllipsoid(InFluid):
    """Drag and lift of an ellipsoid in a fluid, as MuJoCo's ellipsoid model has them.

    Blunt and slender drag by the area that the ellipsoid shows to the flow, drag of turning,
    viscous resistance, Magnus and Kutta lift, and the gyroscopic wrench of the fluid that moves
    along (its added mass at a constant twist; what would resist acceleration is left out, as in
    MuJoCo).

    Parameters
    ----------
    frame : str
        The ellipsoid's center and axes.
    semi_axes : (3,)
        Half lengths along the frame's axes, m.
    blunt_drag, slender_drag, angular_drag, kutta_lift, magnus_lift : float
        MuJoCo's `fluidcoef`, with its defaults.
    added_volume : (3,)
        Added mass along each axis per density, m^3; default that of the ellipsoid in potential
        flow.
    added_moment : (3,)
        Added inertia about each axis per density, m^5; default likewise.
    """

    frame: str
    semi_axes: Any
    blunt_drag: Any = 0.5
    slender_drag: Any = 0.25
    angular_drag: Any = 1.5
    kutta_lift: Any = 1.0
    magnus_lift: Any = 1.0
    added_volume: Any = None
    added_moment: Any = None

    def __post_init__(self) -> None:
        checked_name(self.frame, "the frame of an immersed ellipsoid")
        _set_lengths(self, "semi_axes")
        for name in ("blunt_drag", "slender_drag", "angular_drag", "kutta_lift", "magnus_lift"):
            set_field(self, name, scalar(getattr(self, name), self._words(name)))
        volumes, moments = potential_flow(self.semi_axes)
        for name, default in (("added_volume", volumes), ("added_moment", moments)):
            value = getattr(self, name)
            value = default if value is None else value
            set_field(self, name, numbers(value, (3,), self._words(name)))

    def drag_matrix(self, xi: Any, fluid: "Fluid") -> Any:
        """Return drag on the diagonal, with lift and the gyroscopic wrench as its skew part."""
        v, w, rho, eta = xi[:3], xi[3:], fluid.density, fluid.viscosity
        diameter = 2 / 3 * float(np.sum(self.semi_axes))
        shown, circulation = self._flow(v)
        largest = float(np.pi * np.prod(np.sort(self.semi_axes)[1:]))
        across = self.blunt_drag * shown + self.slender_drag * (largest - shown)
        linear = eta * (3 * np.pi * diameter) + rho * _length(v) * across
        resistance = self._angular_coefficients()
        most = float(np.abs(resistance).max()) or 1.0
        spin = constant(resistance / most) * w
        turning = eta * (np.pi * diameter**3) + rho * most * _length(spin)
        volume = 4 / 3 * np.pi * float(np.prod(self.semi_axes))
        lift = rho * so3.wed(self.magnus_lift * volume * w + self.kutta_lift * circulation)
        carried = casadi.vertcat(constant(self.added_volume) * v, constant(self.added_moment) * w)
        eye, zero = casadi.DM.eye(3), casadi.DM.zeros(3, 3)
        drag = casadi.blockcat([[linear * eye - lift, zero], [zero, turning * eye]])
        return drag - rho * _turning(carried)

    def _flow(self, v: Any) -> tuple[Any, Any]:
        """Return the area (m^2) shown to the flow, and the circulation (3) of Kutta's lift.

        Both are written with products of semi-axes divided by the largest, for numbers of a size.
        """
        a, b, c = self.semi_axes
        products = np.array([b * c, a * c, a * b])
        largest = float(products.max())
        part = constant((products / largest) ** 2)
        normal = part * v
        along = casadi.fmax(casadi.dot(normal, v), STILL)
        square = casadi.fmax(casadi.dot(normal, normal), STILL)
        shown = np.pi * largest * casadi.sqrt(square / along)
        cosine = along / (_length(v) * square)
        return shown, (cosine * shown) * casadi.cross(normal, v)

    def _angular_coefficients(self) -> np.ndarray:
        """Return the drag of turning about each axis per density, m^5."""
        a, b, c = self.semi_axes
        others = np.array([max(b, c), max(a, c), max(a, b)])
        own = 8 / 15 * np.pi * self.semi_axes * others**4
        _, middle, longest = np.sort(self.semi_axes)
        most = 8 / 15 * np.pi * middle * longest**4
        return self.angular_drag * own + self.slender_drag * (most - own)


def potential_flow(semi_axes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the added mass (m^3) and added inertia (m^5) of an ellipsoid per density.

    In potential flow, by the integrals alpha_i = a b c int_0^inf dx / ((a_i^2 + x) D(x)) [Lamb1932,
    sec. 114 and 115].
    """
    from scipy.special import elliprd  # scipy takes long to import

    squares = np.square(semi_axes)
    product = float(np.prod(semi_axes))
    volume = 4 / 3 * np.pi * product
    masses, moments = np.zeros(3), np.zeros(3)
    alpha = [
        2 / 3 * product * elliprd(squares[(i + 1) % 3], squares[(i + 2) % 3], squares[i])
        for i in range(3)
    ]
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        masses[i] = volume * alpha[i] / (2 - alpha[i])
        gap, total = squares[j] - squares[k], squares[j] + squares[k]
        below = 2 * gap + total * (alpha[j] - alpha[k])
        if gap and below:
            moments[i] = volume / 5 * gap**2 * (alpha[k] - alpha[j]) / below
    return masses, moments


def _turning(momentum: Any) -> Any:
    """Return W (6x6), skew, with W xi = (p x w, p x v + l x w) of a momentum (p, l)."""
    p, l = so3.wed(momentum[:3]), so3.wed(momentum[3:])
    return casadi.blockcat([[casadi.DM.zeros(3, 3), p], [p, l]])


def _length(vector: Any) -> Any:
    """Return |vector|, with a slope of zero at rest."""
    return casadi.sqrt(casadi.fmax(casadi.dot(vector, vector), STILL))


def _set_lengths(part: Any, name: str) -> None:
    lengths = numbers(getattr(part, name), (3,), part._words(name))
    if is_symbolic(lengths) or (lengths <= 0).any():
        raise MachineError(f"{part._words(name)} must be three positive numbers, got {lengths}")
    set_field(part, name, lengths)


def _matrix6(value: Any) -> Any:
    if is_symbolic(value):
        return value
    array = np.asarray(value, dtype=float)
    return np.diag(np.broadcast_to(array, 6)) if array.ndim < 2 else array


def _square(value: Any, size: int, what: str) -> Any:
    return numbers(value, (size, size), what)
