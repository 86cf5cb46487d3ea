"""Natural units of a machine, so that no verdict depends on the units it is described in.

A machine of millimetres and grams is as sound as one of metres and tonnes. Everything that a check
compares with a threshold is therefore counted in units of the machine itself:

    L    length: how far its masses lie from their joints, along the links between, m
    T    time: sqrt(L / g), in which a body falls half that far, s; one second without gravity

Linear velocities count in L/T and angular ones in 1/T. With D = diag(L or 1) the matrix D M D is in
kg m^2 throughout, D f in N m, and a / D in rad/s^2.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from framefree.geometry import Moments, se3
from framefree.machine.joint import Joint

if TYPE_CHECKING:
    from framefree.machine.machine import Machine

SINGULAR = 1e-13
"""Share of its possible size below which a number counts as zero."""


@dataclass(frozen=True)
class Units:
    """Natural units of one machine.

    Attributes
    ----------
    length, time : float
        L in m and T in s.
    velocity : (nv,)
        D: L for velocities that are translations, 1 for rotations.
    stride : (nx,)
        Change of each coordinate that moves what it carries by L; 1 for rotations.
    inertia : (nv,)
        What each velocity could feel of the masses it carries, kg or kg m^2.
    """

    length: float
    time: float
    velocity: np.ndarray
    stride: np.ndarray
    inertia: np.ndarray

    @property
    def twist(self) -> np.ndarray:
        """Units (6,) of twists and their rates: L for the linear part, 1 for the angular part."""
        return np.repeat([self.length, 1.0], 3)

    def of_mass(self, M: np.ndarray) -> np.ndarray:
        """Return D M D (..., nv, nv), kg m^2."""
        return self.velocity[:, None] * M * self.velocity

    @classmethod
    def of(cls, machine: "Machine") -> "Units":
        """Return the natural units of a machine in numbers."""
        length = extent(machine)
        g = float(np.linalg.norm(machine.gravity))
        linear = linear_velocities(machine)
        velocity = np.where(linear, length, 1.0)
        felt = np.concatenate([np.zeros(0), *felt_inertias(machine)]) * velocity**2
        # A joint that moves next to nothing counts with a millionth of what the others feel.
        felt = np.maximum(felt, 1e-6 * felt.max(initial=0.0)) / velocity**2
        felt = np.where(felt > 0, felt, 1.0)
        time = float(np.sqrt(length / g)) if g > 0 else 1.0
        return cls(length, time, velocity, _strides(machine, length), felt)

    def random(self, machine: "Machine", rng: "np.random.Generator", count: int) -> np.ndarray:
        """Return random configurations (count, nx) within the limits.

        Translations without limits are spread over one length of the machine to either side.
        """
        x = machine.random(rng, count)
        lower, upper = limits(machine)
        unlimited = translations(machine) & ~(np.isfinite(lower) & np.isfinite(upper))
        x[:, unlimited] = np.clip(x * self.length, lower, upper)[:, unlimited]
        return x


def linear_velocities(machine: "Machine") -> np.ndarray:
    """Return which velocities (nv,) are translations, m/s."""
    columns = [np.zeros(0, bool), *(_angular(joint) == 0 for joint in machine.joints)]
    return np.concatenate(columns).astype(bool)


def translations(machine: "Machine") -> np.ndarray:
    """Return which coordinates (nx,) are lengths, m."""
    marks = [np.zeros(0, bool)]
    for joint in machine.joints:
        rate = np.array(ca.DM(joint.kind.rate(ca.DM(joint.kind.neutral))))
        marks.append(np.abs(rate[:, _angular(joint) == 0]).sum(axis=1) > 0)
    return np.concatenate(marks).astype(bool)


def limits(machine: "Machine") -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper limits (nx,) of all coordinates."""
    none = np.zeros(0)
    lower = np.concatenate([none, *(joint.lower for joint in machine.joints)])
    return lower, np.concatenate([none, *(joint.upper for joint in machine.joints)])


def endless(machine: "Machine") -> np.ndarray:
    """Return which coordinates (nx,) have no limit on one side, so that loads move any distance."""
    lower, upper = limits(machine)
    sliding = [np.zeros(0, bool)]
    for joint in machine.joints:
        samples = joint.kind.sample(np.random.default_rng(0), 3) if joint.nv else ()
        sliding.append(np.zeros(joint.nx, bool))
        for x in (joint.kind.neutral, *samples):
            sliding[-1] |= _translation(joint, x) > 0
    return np.concatenate(sliding) & ~(np.isfinite(lower) & np.isfinite(upper))


def extent(machine: "Machine", *, radii: bool = True) -> float:
    """Return L: the largest distance of a mass from the first joint, along joints and links, m.

    Where the frames of bodies and of the world lie does not matter. With `radii` bodies count by
    their radii of gyration too, and the length is one metre where nothing has any.
    """
    far, longest = np.zeros(len(machine.bodies)), 0.0
    for i, (body, joint) in enumerate(zip(machine.bodies, machine.joints, strict=True)):
        parent = machine.parent[i]
        if parent >= 0:
            link = np.linalg.inv(machine.joints[parent].child_pose) @ joint.parent_pose
            far[i] = far[parent] + np.linalg.norm(link[:3, 3])
        far[i] += _finite_travel(joint)
        longest = max(longest, far[i] + _distance(body.moments, joint.child_pose, radii))
    return float(longest) if longest > 0 or not radii else 1.0


def felt_inertias(machine: "Machine") -> list[np.ndarray]:
    """Return, for each joint, what its velocities (nv,) could feel of what they carry.

    That is |S_linear|^2 m + |S_angular|^2 |I| for the joint's motions S, the carried mass m and its
    moment of inertia I about the joint at the neutral configuration, with the rotors.
    """
    felt = []
    for joint, inertia in zip(machine.joints, carried_inertias(machine), strict=True):
        mass, moment = np.abs(inertia[:3, :3]).max(), np.abs(inertia[3:, 3:]).max()
        felt.append(_linear(joint) ** 2 * mass + _angular(joint) ** 2 * moment + joint.armature)
    return felt


def carried_inertias(machine: "Machine") -> list[np.ndarray]:
    """Return the 6x6 inertias that the joints carry, in their own frames, at neutral."""
    carried = [np.array(body.moments.matrix6) for body in machine.bodies]
    for i in reversed(range(len(machine.bodies))):
        joint = machine.joints[i]
        carried[i] = seen_from(carried[i], joint.child_pose)
        if machine.parent[i] >= 0:
            step = np.array(ca.DM(joint.kind.pose(ca.DM(joint.kind.neutral))))
            pose = joint.parent_pose @ step
            carried[machine.parent[i]] += seen_from(carried[i], np.linalg.inv(pose))
    return carried


def seen_from(inertia: np.ndarray, G_ab: np.ndarray) -> np.ndarray:
    """Return the 6x6 inertia Ad^T I Ad seen from frame b of one given in frame a."""
    adjoint = np.array(se3.adjoint(G_ab))
    return adjoint.T @ inertia @ adjoint


def motions(joint: Joint) -> np.ndarray:
    """Return the motions S (6, nv) of a joint at its neutral configuration."""
    S = np.array(ca.DM(joint.kind.jacobian(ca.DM(joint.kind.neutral))))
    return S.reshape(6, joint.nv)


def with_unit_diagonal(M: np.ndarray) -> np.ndarray:
    """Return D^-1/2 M D^-1/2 with D the diagonal of M: the same in all units of the velocities.

    Its condition number tells how many digits a solution with M loses [Demmel1997].
    """
    sizes = np.sqrt(np.abs(np.einsum("...ii->...i", M)))
    sizes = np.where(sizes > 0, sizes, 1.0)
    return M / (sizes[..., :, None] * sizes[..., None, :])


def definiteness(M: np.ndarray, inertia: np.ndarray) -> float:
    """Return how far M (nv, nv) is from singular, 1 at most, whatever the units of the velocities.

    It is the smallest eigenvalue of M with unit diagonal; or, where that is less, the smallest
    share of a diagonal entry in what its velocity could feel, `inertia` (nv,), as far as it is
    within rounding. Minus infinity where M is not finite.
    """
    if not M.size:
        return 1.0
    if not np.isfinite(M).all():
        return -np.inf
    share = float((np.diag(M) / inertia).min())
    least = float(np.linalg.eigvalsh(with_unit_diagonal(M))[0])
    return min(share, least) if share <= SINGULAR else least


def _angular(joint: Joint) -> np.ndarray:
    """Return the angular speed of a joint per unit of each velocity (nv,)."""
    return np.linalg.norm(motions(joint)[3:], axis=0)


def _linear(joint: Joint) -> np.ndarray:
    """Return the linear speed of a joint's frame per unit of each velocity (nv,)."""
    return np.linalg.norm(motions(joint)[:3], axis=0)


def _translation(joint: Joint, x: np.ndarray) -> np.ndarray:
    """Return how far a joint's frame moves per unit of each coordinate (nx,) at x, m."""
    rate = np.array(ca.DM(joint.kind.rate(ca.DM(x)))).reshape(joint.nx, joint.nv)
    S = np.array(ca.DM(joint.kind.jacobian(ca.DM(x)))).reshape(6, joint.nv)
    return np.abs(rate) @ np.linalg.norm(S[:3], axis=0)


def _strides(machine: "Machine", length: float) -> np.ndarray:
    """Return L over the translation that a unit of each coordinate makes (nx,); else 1."""
    strides = [np.zeros(0)]
    for joint in machine.joints:
        moved = _translation(joint, joint.kind.neutral)
        strides.append(np.where(moved > 0, length / np.where(moved > 0, moved, 1.0), 1.0))
    return np.concatenate(strides)


def _finite_travel(joint: Joint) -> float:
    """Return how far a joint can slide where its limits say so, m; 0 without limits."""
    reach = np.maximum(np.abs(joint.lower), np.abs(joint.upper))
    far = np.where(np.isfinite(reach), reach, 0.0)
    return float(np.linalg.norm(far * _translation(joint, joint.kind.neutral)))


def _distance(moments: Moments, child_pose: np.ndarray, radii: bool) -> float:
    """Return how far the mass of a body reaches from its joint: center and radius of gyration."""
    if not moments.total > 0:
        return 0.0
    center = np.linalg.inv(child_pose) @ np.append(np.array(moments.center), 1.0)
    about = np.abs(np.linalg.eigvalsh(np.array(moments.moment_at_center))).max() if radii else 0.0
    return float(np.linalg.norm(center[:3]) + np.sqrt(about / moments.total))
