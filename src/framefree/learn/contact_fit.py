"""Fitting a contact: two forces by linear least squares, plane, damping and slip speed outside.

    min over n, h, c, v_s, a   sum_i | L_i^-1 (y_i - J_i^T Phi(n, h, c, v_s) a) |^2,  a = (k, k mu)

For a given plane (n, h), damping c and slip speed v_s the two forces of `LearnedContact` enter
linearly; what is left is a function of five numbers (variable projection [Golub1973]), minimised by
Gauss and Newton from a plane that the touching points themselves give: where the force that would
explain a sample stands out from the rest, the ball's center lies on the plane but for radius and
depth. The plane turns about two axes across its normal through the middle of these points, so that
the origin of the world has no part in it.
"""

from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from framefree.kernel import compile
from framefree.learn.contact import LearnedContact
from framefree.learn.errors import LearnError
from framefree.learn.model import BodyMotion
from framefree.learn.samples import Samples, check_enough
from framefree.learn.symmetry import axis_frame
from framefree.machine.contact import EXPONENTS

STANDS_OUT = 0.1
"""Of the largest force: samples above it touch."""
TOUCHING = 12
"""Touching samples below which no contact is learned."""
FLAT = 5.0
"""By how much touching points must spread more along the plane than across it to tell it."""


@dataclass(frozen=True)
class ContactFit:
    """A fitted contact, and how far the samples told it.

    Attributes
    ----------
    model : LearnedContact
    untold : tuple of str
        Numbers whose standard deviation is above their size: the samples do not tell them.
    residual : float
        What the fit leaves of the samples, relative, in the metric.
    touching : int
        Samples in which body and plane overlap.
    """

    model: LearnedContact
    untold: tuple[str, ...]
    residual: float
    touching: int


def fit_contact(
    samples: Samples, center: Any, radius: float, exponent: float | None = None
) -> ContactFit:
    """Learn stiffness, damping, friction, slip speed and plane of a contact.

    Parameters
    ----------
    samples : Samples
        With one body in `bodies`, the one that has the ball.
    center, radius : (3,), float
        Of the ball, in body axes, m.
    exponent : 1 or 1.5, optional
        Of the depth; by default the one that leaves less.

    Raises
    ------
    LearnError
        If there are too few samples, or too few of them touch.
    """
    if len(samples.bodies) != 1:
        raise LearnError(
            f"a contact is learned on one body, the samples have {len(samples.bodies)}: name it in "
            "`bodies` of the samples"
        )
    check_enough(samples, 8)
    fits = []
    for power in EXPONENTS if exponent is None else (exponent,):
        blank = LearnedContact(samples.bodies[0], center, radius, [1, 0, 0, 1, 0, 0, 1, 0], power)
        fits.append(_ContactProjection(blank, samples).fitted())
    return min(fits, key=lambda fit: fit.residual)


class _ContactProjection:
    """The problem in z = (two turns and a shift of a first plane, sqrt c, log v_s)."""

    def __init__(self, blank: LearnedContact, samples: Samples) -> None:
        self.blank, self.samples = blank, samples
        self.kernel = _columns_kernel(blank)
        self.b = samples.whiten(samples.labels).ravel()
        self.full = blank.kernel()
        self.frame, self.middle, self.depth = self._first_plane()
        self.speed = self._usual_speed()

    def _first_plane(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return axes (3, 3) with the normal last, the touching points' middle, a depth (m)."""
        samples, blank = self.samples, self.blank
        R, r = samples.rotation[:, 0], samples.position[:, 0]
        centers = r + R @ np.asarray(blank.center)
        arms = R @ np.asarray(blank.center)
        J = samples.jacobian[:, 0]
        linear, angular = R @ J[:, :3], R @ J[:, 3:]
        at_center = linear + np.cross(angular.swapaxes(1, 2), arms[:, None]).swapaxes(1, 2)
        A = samples.whiten(at_center.swapaxes(1, 2))
        b = samples.whiten(samples.labels)
        force = np.array([np.linalg.lstsq(a, y, rcond=1e-6)[0] for a, y in zip(A, b, strict=True)])
        sizes = np.linalg.norm(force, axis=1)
        touching = sizes > STANDS_OUT * np.quantile(sizes, 0.99)
        count = int(touching.sum())
        if count < TOUCHING or count > len(samples) - 1:
            raise LearnError(
                f"{count} of {len(samples)} samples touch: {TOUCHING} or more are needed, and some "
                "that do not touch"
            )
        points = centers[touching]
        push = (force[touching] / sizes[touching, None]).mean(axis=0)
        spread, axes = np.linalg.svd(points - points.mean(axis=0))[1:]
        flat = spread[1] > FLAT * spread[2]
        normal = axes[2] * np.sign(axes[2] @ push) if flat else push
        normal = normal / np.linalg.norm(normal)
        middle = points.mean(axis=0)
        return axis_frame(normal), middle, float(np.ptp((points - middle) @ normal)) + 1e-6

    def _usual_speed(self) -> float:
        body = self.samples.twist[:, 0]
        u = body[:, :3] + np.cross(body[:, 3:], np.asarray(self.blank.center))
        return max(float(np.median(np.linalg.norm(u, axis=1))), 1e-9)

    def numbers(self, z: np.ndarray) -> np.ndarray:
        """Return damping, slip speed, normal (3) and offset."""
        n = self.frame @ np.array([z[0], z[1], 1.0])
        n = n / np.linalg.norm(n)
        return np.array([z[3] ** 2, np.exp(z[4]), *n, n @ self.middle - self.blank.radius + z[2]])

    def columns(self, z: np.ndarray) -> np.ndarray:
        """Return the two whitened columns (rows, 2)."""
        Phi = self._at_samples(self.kernel, self.numbers(z))
        return self.samples.whiten(self.samples.project(Phi)).reshape(-1, 2)

    def _at_samples(self, kernel: Any, numbers: np.ndarray) -> np.ndarray:
        s = self.samples
        none = np.zeros((len(s), 0))
        motion = (s.twist[:, 0], s.rotation[:, 0], s.down[:, 0], none, s.position[:, 0])
        return kernel(*motion, numbers)[:, None]

    def linear(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return k and k mu, not negative, and what they leave."""
        from scipy.optimize import nnls

        A = self.columns(z)
        sizes = np.linalg.norm(A, axis=0)
        sizes = np.where(sizes > 0, sizes, 1.0)
        a = nnls(A / sizes, self.b)[0] / sizes
        return a, A @ a - self.b

    def fitted(self) -> ContactFit:
        """Return the contact that leaves the least."""
        from scipy.optimize import least_squares

        first = np.array([0.0, 0.0, 0.0, 1.0, np.log(0.3 * self.speed)])
        # A first search of the place alone: a plane off by a depth explains nothing.
        shifts = self.depth * np.linspace(-1.0, 2.0, 31)
        starts = [first + shift * np.eye(5)[2] for shift in shifts]
        start = min(starts, key=lambda z: float(np.sum(self.linear(z)[1] ** 2)))
        found = least_squares(
            lambda z: self.linear(z)[1], start, x_scale=[0.02, 0.02, self.depth / 3, 1.0, 1.0],
            xtol=1e-11, ftol=1e-13, gtol=1e-13, max_nfev=200,
        )  # fmt: skip
        return self._told(found.x)

    def _told(self, z: np.ndarray) -> ContactFit:
        (k, rubbing), left = self.linear(z)
        if not k > 0:
            raise LearnError("no plane pushes the ball as the samples show: the contact pulls")
        c, slip_speed, *plane = self.numbers(z)
        values = np.array([k, c, rubbing / k, slip_speed, *plane])
        spread = self._deviations(values, left)
        model = replace(self.blank, coefficients=values, deviations=spread)
        untold = tuple(
            name for i, name in enumerate(model.names[:4]) if not spread[i] < abs(values[i])
        )
        gaps = model.gaps(self.samples.position[:, 0], self.samples.rotation[:, 0])
        residual = float(np.linalg.norm(left) / np.linalg.norm(self.b))
        return ContactFit(model, untold, residual, int(np.sum(gaps < 0)))

    def _deviations(self, values: np.ndarray, left: np.ndarray) -> np.ndarray:
        """Return standard deviations (8,), by slopes along the seven numbers that are free.

        A number that changes nothing in the samples has an infinite one.
        """
        directions = np.zeros((8, 7))
        directions[:4, :4] = np.eye(4)
        directions[4:7, 4:6] = axis_frame(values[4:7])[:, :2]
        # Where the plane turns about the middle of the points, its place along n moves along.
        directions[7, 4:6] = self.middle @ directions[4:7, 4:6]
        directions[7, 6] = 1.0
        sizes = np.r_[values[0], 1 / self.speed, 1.0, values[3], 1.0, 1.0, self.depth]

        def whitened(change: np.ndarray) -> np.ndarray:
            wrench = self._at_samples(self.full, values + change)
            return self.samples.whiten(self.samples.project(wrench)).ravel()

        J = np.column_stack(
            [
                (whitened(1e-5 * size * d) - whitened(-1e-5 * size * d)) / 2e-5
                for d, size in zip(directions.T, sizes, strict=True)
            ]
        )
        silent = np.linalg.norm(J, axis=0) <= 1e-9 * np.linalg.norm(self.b)
        variance = float(left @ left) / max(len(left) - 7, 1)
        told = np.linalg.pinv(J.T @ J) * variance * np.outer(sizes, sizes)
        spread = np.sqrt(np.maximum(np.diag(directions @ told @ directions.T), 0.0))
        spread[:4][silent[:4]] = np.inf
        return spread


def _columns_kernel(blank: LearnedContact) -> Any:
    motion, z = BodyMotion.symbols(), ca.SX.sym("numbers", 6)
    columns = blank.columns(motion, z[0], z[1], z[2:5], z[5])
    function = ca.Function(
        "contact", [*motion, z], [ca.densify(columns)], [*BodyMotion._fields, "z"], ["columns"]
    )
    return compile(function, shapes={"columns": (6, 2)})
