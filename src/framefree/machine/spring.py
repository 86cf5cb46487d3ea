"""Springs between two frames: point springs, the flexible ball joint, and constant forces.

A flexible ball joint is a `Spherical` joint with, between its two joint frames,
`Spring.torsional(...)`, which needs no angles, or `EulerSpring(...)`, a spring on Euler angles; and
`Damper.torsional(...)`.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import casadi
import numpy as np

from framefree.errors import FramefreeWarning
from framefree.geometry import se3
from framefree.geometry.moments import Moments
from framefree.geometry.operators import Wed, vee2
from framefree.machine.part import Part, checked_name, set_field
from framefree.machine.problems import MachineError
from framefree.machine.values import (
    constant,
    constant_pose,
    numbers,
    pose,
    scalar,
    symmetric,
    vector,
)


@dataclass(frozen=True, eq=False)
class Spring(Part):
    """A frame-independent spring between two frames, each on a body or on the world.

    With the moments' 4x4 form K' (`matrix4`) and G = G_ab, frame b seen from frame a,

        V = 1/2 tr((G - rest) K' (G - rest)^T) + offset

    Any number of springs between points of the two bodies reduce to this: total stiffness, its
    center and its second moment, and the energy that is left at rest [Konz2024, sec. 3.3].

    Parameters
    ----------
    name, frame_a, frame_b : str
    moments : Moments
        Moments of stiffness, in the axes of frame b: N/m, N, Nm.
    rest : pose
        The relaxed G_ab; default the identity.
    offset : float
        Energy stored at the relaxed pose, J: a constant that `potential` counts. Springs between
        points that pull against each other have one.
    """

    name: str
    frame_a: str
    frame_b: str
    moments: Moments
    rest: Any = None
    offset: Any = 0.0

    frame_fields = ("frame_a", "frame_b")

    def __post_init__(self) -> None:
        checked_name(self.name, "a spring")
        if not isinstance(self.moments, Moments):
            raise MachineError(
                f"the moments of spring `{self.name}` must be Moments, got {self.moments!r}"
            )
        warn_of_moments(self.moments, f"spring `{self.name}`")
        set_field(self, "rest", pose(self.rest, f"the rest pose of spring `{self.name}`"))
        set_field(self, "offset", scalar(self.offset, f"the offset of spring `{self.name}`"))

    @classmethod
    def of_points(
        cls, name: str, frame_a: str, frame_b: str, points_a: Any, points_b: Any, stiffness: Any
    ) -> "Spring":
        """Reduce springs between points of a and points of b, (n, 3) in m each, to one spring.

        The springs have no natural length: V = 1/2 sum k_p |G h_bp - h_ap|^2, which is the
        potential of the result, `offset` included. `stiffness` (n), N/m, must not sum to zero.
        """
        a, b = (np.atleast_2d(np.asarray(points, float)) for points in (points_a, points_b))
        k = np.broadcast_to(np.asarray(stiffness, float), len(b))
        if a.shape != b.shape or a.shape[1:] != (3,):
            raise MachineError(
                f"spring `{name}`: `points_a` and `points_b` must both have shape (n, 3), "
                f"got {a.shape} and {b.shape}"
            )
        if not abs(k.sum()) > 0:
            raise MachineError(f"spring `{name}`: the stiffnesses must not sum to zero")
        center_a, center_b = k @ a / k.sum(), k @ b / k.sum()
        # -tr(Q R) is what turns; any Q^T is a rotation times a symmetric matrix: the rest attitude
        # and the second moment about the center. [Konz2024, sec. 2.5]
        turning = (a - center_a).T @ (k[:, None] * (b - center_b))
        rotation, second = _special_polar(turning)
        rest = np.eye(4)
        rest[:3, :3] = rotation
        rest[:3, 3] = center_a - rotation @ center_b
        total = float(k.sum())
        # At rest the centers meet, and the turned points are still apart.
        apart = (a - center_a) - (b - center_b) @ rotation.T
        offset = float(k @ (apart * apart).sum(axis=1)) / 2
        second = second + total * np.outer(center_b, center_b)
        moments = Moments(total, total * center_b, second)
        return cls(name, frame_a, frame_b, moments, rest, offset)

    @classmethod
    def torsional(
        cls, name: str, frame_a: str, frame_b: str, moment: Any, rest: Any = None
    ) -> "Spring":
        """Return a spring against rotation only, with `moment` (3, or 3x3) in Nm/rad.

        V = tr(Wed(moment) (I - R_rest^T R_ab)), exact at every angle: the flexible ball joint.
        """
        what = f"the moment of spring `{name}`"
        return cls(name, frame_a, frame_b, torsional_moments(moment, what), rest)

    def potential(self, G: Any) -> Any:
        """Return V(G_ab), J."""
        gap = G - constant_pose(self.rest)
        stored = casadi.trace(gap @ constant(self.moments.matrix4) @ gap.T) / 2
        return stored + self.offset

    def wrench(self, G: Any) -> Any:
        """Return vee2((I - G^-1 rest) K') (6) in the axes of b: dV/dt = xi_ab . wrench.

        It stands on the left of M a + c + f_K = B u: frame b feels minus this wrench.
        """
        gap = casadi.DM(np.eye(4)) - se3.inverse(G) @ constant_pose(self.rest)
        return vee2(gap @ constant(self.moments.matrix4))


@dataclass(frozen=True, eq=False)
class EulerSpring(Part):
    """Springs on the Euler angles of a flexible ball joint, in their conservative form.

    The angles a turn frame a into frame b by R_ab = Rx(a1) Ry(a2) Rz(a3); V = 1/2 sum k_i a_i^2.
    The axes of these turns are not orthogonal, so that the moment is E^-T diag(k) a with the
    angular velocity E da/dt; the sum of k_i a_i along the axes would not conserve energy
    (errata E0-6). Not defined at a2 = 90 degrees: `Spring.torsional` has no such place.

    Parameters
    ----------
    name, frame_a, frame_b : str
    stiffness : (3,)
        Nm/rad for a1, a2, a3.
    """

    name: str
    frame_a: str
    frame_b: str
    stiffness: Any

    frame_fields = ("frame_a", "frame_b")

    def __post_init__(self) -> None:
        checked_name(self.name, "a spring")
        what = f"the stiffness of spring `{self.name}`"
        set_field(self, "stiffness", numbers(self.stiffness, (3,), what))

    def angles(self, G: Any) -> Any:
        """Return (a1, a2, a3), rad, of G_ab; a2 within 90 degrees."""
        cosine = casadi.sqrt(G[0, 0] ** 2 + G[0, 1] ** 2)
        return casadi.vertcat(
            casadi.atan2(-G[1, 2], G[2, 2]),
            casadi.atan2(G[0, 2], cosine),
            casadi.atan2(-G[0, 1], G[0, 0]),
        )

    def potential(self, G: Any) -> Any:
        """Return V(G_ab), J."""
        angles = self.angles(G)
        return casadi.dot(angles, constant(self.stiffness) * angles) / 2

    def wrench(self, G: Any) -> Any:
        """Return (0, E^-T diag(k) a) (6) in the axes of b: dV/dt = xi_ab . wrench."""
        cosine = casadi.sqrt(G[0, 0] ** 2 + G[0, 1] ** 2)
        c, s = G[0, 0] / cosine, -G[0, 1] / cosine
        k1, k2, k3 = casadi.vertsplit(constant(self.stiffness) * self.angles(G))
        across = (k1 - G[0, 2] * k3) / cosine
        moment = casadi.vertcat(c * across + s * k2, c * k2 - s * across, k3)
        return casadi.vertcat(casadi.DM.zeros(3), moment)


@dataclass(frozen=True, eq=False)
class ConstantForce(Part):
    """A force of constant size and direction between two frames: V = -force . r_ab.

    From the world it carries a share of a body's weight, as gravity compensation does; it stays
    what it is when the machine's gravity is changed.

    Parameters
    ----------
    name, frame_a, frame_b : str
    force : (3,)
        On frame b, in the axes of frame a, N; frame a feels the reaction.
    point : (3,)
        Where it acts, in frame b, m.
    """

    name: str
    frame_a: str
    frame_b: str
    force: Any
    point: Any = (0.0, 0.0, 0.0)

    frame_fields = ("frame_a", "frame_b")

    def __post_init__(self) -> None:
        checked_name(self.name, "a constant force")
        for field in ("force", "point"):
            what = f"the {field} of constant force `{self.name}`"
            set_field(self, field, vector(getattr(self, field), what))

    def potential(self, G: Any) -> Any:
        """Return V(G_ab), J."""
        place = se3.rotation(G) @ constant(self.point) + se3.position(G)
        return -casadi.dot(constant(self.force), place)

    def wrench(self, G: Any) -> Any:
        """Return minus the force and its moment (6) in the axes of b: dV/dt = xi_ab . wrench."""
        push = se3.rotation(G).T @ constant(self.force)
        return -casadi.vertcat(push, casadi.cross(constant(self.point), push))


def warn_of_moments(moments: Moments, what: str) -> None:
    """Warn of moments that push instead of resisting; identified ones may do so."""
    for problem in () if moments.symbolic else moments.problems(form="6x6"):
        warnings.warn(f"{what}: {problem}", FramefreeWarning, stacklevel=4)


def torsional_moments(moment: Any, what: str) -> Moments:
    """Return moments with total and center zero and this moment (3, or symmetric 3x3)."""
    if not isinstance(moment, casadi.SX):
        moment = np.asarray(moment, dtype=float)
        moment = np.diag(np.broadcast_to(moment, 3)) if moment.ndim < 2 else moment
    return Moments(0.0, np.zeros(3), Wed(symmetric(moment, 3, what)))


def _special_polar(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split a 3x3 matrix into rotation times symmetric, of the largest trace."""
    U, sizes, Vt = np.linalg.svd(matrix)
    sign = np.array([1.0, 1.0, np.linalg.det(U) * np.linalg.det(Vt)])
    return (U * sign) @ Vt, (Vt.T * (sign * sizes)) @ Vt
