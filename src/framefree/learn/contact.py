"""`LearnedContact`: a ball on a body touches a plane whose place and matter are learned.

With the gap g of the ball to the plane, its normal n and the velocity u of the body where they
touch (`BodyMotion.touch`, all in body axes), the depth d = max(-g, 0), its rate d' = -n . u and the
slip u_t = u - (n . u) n, the force at that point is

    f = k d^m max(1 + c d', 0) (n - mu u_t / sqrt(|u_t|^2 + v_s^2))

the law of `framefree.machine.Contact`. Its numbers are k, c, mu and v_s, and the plane: a normal
and a place along it in the world, latent numbers as a current is. Nothing else of the world enters,
so that a surface turned or moved anywhere has the same function with its plane moved along
(`moved`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from framefree.learn.errors import LearnError
from framefree.learn.model import BodyMotion, WrenchModel, checked_numbers, named
from framefree.machine import Machine
from framefree.machine.contact import EXPONENTS
from framefree.machine.part import set_field

MATTER = ("stiffness", "damping", "friction", "slip_speed")
NORMAL = named("normal", "xyz")

Matrix = Any


@dataclass(frozen=True, eq=False)
class LearnedContact(WrenchModel):
    """Contact of a ball on a body with a plane; see the top of this file.

    Parameters
    ----------
    body : str
        On which the ball is.
    center, radius : (3,), float
        Of the ball, in body axes, m.
    coefficients : (8,)
        Stiffness k (N/m^m), damping c (s/m), friction mu, slip speed v_s (m/s), the normal of the
        plane, out of the solid, in world axes, and its place along the normal, m.
    exponent : 1 or 1.5
        m.
    deviations : (8,), optional
        Standard deviations of the numbers, as far as the data told them.
    """

    body: str
    center: Any
    radius: float
    coefficients: Any  # type: ignore[assignment]
    exponent: float = 1.0
    deviations: Any = None

    names = (*MATTER, *NORMAL, "offset")
    linear = ("stiffness",)

    def __post_init__(self) -> None:
        set_field(self, "center", checked_numbers(self.center, 3, "the center of a ball"))
        what = "the numbers of a learned contact"
        set_field(self, "coefficients", checked_numbers(self.coefficients, 8, what))
        if not self.radius >= 0:
            raise LearnError(f"the radius of a ball must not be negative, got {self.radius}")
        if self.exponent not in EXPONENTS:
            raise LearnError(f"the exponent of a contact must be 1 or 1.5, got {self.exponent!r}")
        if not np.linalg.norm(self.coefficients[4:7]) > 0:
            raise LearnError("the normal of a plane must not be zero")
        if not (self.coefficients[[0, 1, 2]] >= 0).all() or not self.coefficients[3] > 0:
            raise LearnError(
                "stiffness, damping and friction of a contact must not be negative and its slip "
                f"speed must be positive, got {self.coefficients[:4]}"
            )

    @property
    def units(self) -> tuple[str, ...]:  # type: ignore[override]
        """Units of the numbers."""
        stiffness = "N/m" if self.exponent == 1 else "N/m^1.5"
        return (stiffness, "s/m", "", "m/s", "", "", "", "m")

    @property
    def normal(self) -> np.ndarray:
        """Normal (3,) of the plane in world axes, of length one."""
        n = np.array(self.coefficients[4:7])
        return n / np.linalg.norm(n)

    def wrench(self, motion: BodyMotion, numbers: Matrix | None = None) -> Matrix:
        """Return the wrench (6) on the body."""
        k, c, mu, slip_speed, *normal, offset = ca.vertsplit(self.constants(numbers))
        columns = self.columns(motion, c, slip_speed, ca.vertcat(*normal), offset)
        return k * (columns[:, 0] + mu * columns[:, 1])

    def columns(
        self, motion: BodyMotion, c: Matrix, slip_speed: Matrix, normal: Matrix, offset: Matrix
    ) -> Matrix:
        """Return the wrenches (6 x 2) of which the contact has k and k mu."""
        touch = motion.touch(normal / ca.norm_2(normal), offset, ca.DM(self.center), self.radius)
        u, n = touch.velocity, touch.normal
        across = u - ca.dot(n, u) * n
        size = ca.fmax(-touch.gap, 0) ** self.exponent * ca.fmax(1 - c * ca.dot(n, u), 0)
        rubbing = -size * across / ca.sqrt(ca.sumsqr(across) + slip_speed**2)
        forces = ca.horzcat(size * n, rubbing)
        moments = [ca.cross(touch.point, forces[:, i]) for i in range(2)]
        return ca.vertcat(forces, ca.horzcat(*moments))

    def gaps(self, position: Any, rotation: Any) -> np.ndarray:
        """Return the gap (n,) of the ball at places (n, 3) and attitudes (n, 3, 3), m."""
        centers = np.asarray(position) + np.asarray(rotation) @ self.center
        return centers @ self.normal - self.coefficients[7] - self.radius

    def added_to(self, machine: Machine, bodies: Sequence[str] | None = None) -> Machine:
        """Return the machine with the contact on its body, or on others that have such a ball."""
        return super().added_to(machine, (self.body,) if bodies is None else bodies)

    def moved(self, pose: Any) -> "LearnedContact":
        """Return the same matter behind a plane that is moved by a pose (4x4)."""
        G, values = np.asarray(pose, float), np.array(self.coefficients)
        values[4:7] = G[:3, :3] @ self.normal
        values[7] += values[4:7] @ G[:3, 3]
        return self.with_coefficients(values)

    def turned(self, R: Any) -> "LearnedContact":
        """Return the contact in a world that is turned by R."""
        pose = np.eye(4)
        pose[:3, :3] = R
        return self.moved(pose)

    def with_coefficients(self, values: Any) -> "LearnedContact":
        """Return the contact with other numbers."""
        return replace(self, coefficients=values)

    def formula(self) -> str:
        """Return the law as text, and a line for every number with unit and deviation."""
        power = "" if self.exponent == 1 else "^1.5"
        lines = [f"f = k d{power} max(1 + c d', 0) (n - mu u_t / sqrt(|u_t|^2 + v_s^2))"]
        letters = ("k", "c", "mu", "v_s", "n_x", "n_y", "n_z", "place along n")
        for i, (letter, unit) in enumerate(zip(letters, self.units, strict=True)):
            spread = 0.0 if self.deviations is None else self.deviations[i]
            told = f"{self.coefficients[i]:.5g}" + (f" ± {spread:.2g}" if spread else "")
            lines.append(f"{letter} = {told} {unit}".rstrip())
        return "\n".join(lines)

    def parts(self) -> dict[str, Any]:
        """Return what makes it again."""
        return {
            "kind": "LearnedContact",
            "body": self.body,
            "center": np.asarray(self.center),
            "radius": self.radius,
            "coefficients": np.asarray(self.coefficients),
            "exponent": self.exponent,
            "deviations": None if self.deviations is None else np.asarray(self.deviations),
        }

    @classmethod
    def of_parts(cls, parts: Mapping[str, Any]) -> "LearnedContact":
        """Return the contact that `parts` describes."""
        return cls(**{key: value for key, value in parts.items() if key != "kind"})
