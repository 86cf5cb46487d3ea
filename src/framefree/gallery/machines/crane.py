"""The series-parallel manipulator of [Dastranj2026]: a crane whose second link a cylinder drives.

A base turns (phi), a boom rises (theta), and the arm at its end is held by a cylinder of stroke
delta. Elbow and cylinder make a triangle with two sides L0 and a third one l0 + delta, so that

    zeta = -acos((l0 + delta)^2 / (2 L0^2) - 1),    beta = zeta / 2

are the angles of the elbow and of the cylinder against the boom. Numbers are those of the
document, distances read as its errata ask (E2-1, E2-3). It gives no inertia of cylinder and piston
beyond their masses: here they are thin rods, stated below.
"""

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Coupling,
    Frame,
    Joint,
    JointForce,
    Loop,
    Machine,
    Prismatic,
    Revolute,
    Shape,
)
from framefree.machine.values import constant_pose
from framefree.motion.embedded import Embedded, Embedding

LENGTH, SIDE, CLOSED_LENGTH, STROKE = 2.0, 0.35, 0.425, 0.2
"""Length of boom and arm, L0, l0 and the largest delta, m."""
COORDINATES: tuple[str, ...] = ("phi", "theta", "delta")
LONGER = 1.3
"""Length and mass of the link that reconfiguration puts in, over those of the second link."""

# The shoulder's axis is horizontal, its y axis points up.
_SHOULDER = np.array([[1, 0, 0, 0], [0, 0, -1, -0.075], [0, 1, 0, 0.206], [0, 0, 0, 1.0]])
_BOOM_INERTIA = np.array([[0.311, -0.065, 0.098], [-0.065, 22.7, -0.003], [0.098, -0.003, 22.8]])
_ARM_INERTIA = np.array([[0.311, 0.065, -0.098], [0.065, 22.7, -0.003], [-0.098, -0.003, 22.8]])
_ARM_CENTER = np.array([1.041, 0.001, -0.077])
_ROD_LENGTH = 0.4
_ALONG_X = np.array([[0, 0, 1.0], [0, 1, 0], [-1, 0, 0]])
"""Turns the z axis, along which cylinders are drawn, into x."""


@dataclass(frozen=True)
class Triangle:
    """Elbow and cylinder: sides on boom and arm, and the cylinder's length at no stroke, m.

    In the document both sides are L0; moving the cylinder's mount makes them different.
    """

    boom_side: Any = SIDE
    arm_side: Any = SIDE
    closed_length: Any = CLOSED_LENGTH

    def __call__(self, delta: Any) -> Any:
        """Return the elbow's angle zeta (rad, in (-pi, 0)) at a stroke in m, by cosines."""
        a, b, length = self.boom_side, self.arm_side, self.closed_length + delta
        cosine = (length**2 - a**2 - b**2) / (2 * a * b)
        return -ca.acos(cosine) if isinstance(cosine, ca.SX | ca.DM) else -np.arccos(cosine)

    def tilt(self, delta: Any) -> Any:
        """Return the cylinder's angle beta against the boom (rad), a casadi expression."""
        zeta = self(delta)
        return ca.atan2(self.arm_side * ca.sin(zeta), self.boom_side + self.arm_side * ca.cos(zeta))


def elbow(delta: Any) -> Any:
    """Return zeta (rad, in (-pi, 0)) at a stroke in m, a casadi expression or numbers."""
    return Triangle()(delta)


def elbow_slope(delta: Any) -> Any:
    """Return dzeta/ddelta (rad/m) in closed form: 2 / sqrt(4 L0^2 - (l0 + delta)^2)."""
    # The document's (l0 + delta) / (L0^2 sqrt(1 - cos^2)) with the root taken apart.
    return 2 / np.sqrt(4 * SIDE**2 - (CLOSED_LENGTH + np.asarray(delta, float)) ** 2)


def arm_moments(scale: float = 1.0) -> Moments:
    """Return mass moments of the second link, `scale` times as long and as heavy.

    A slender link: center with the length, transverse inertia with mass and length squared.
    """
    stretch = np.diag([scale, 1.0, 1.0])
    second = Moments.of_body(60.0, (0, 0, 0), _ARM_INERTIA).second
    at_center = Moments(60.0 * scale, np.zeros(3), scale * stretch @ second @ stretch)
    return Moments.of_body(60.0 * scale, stretch @ _ARM_CENTER, at_center.moment)


def crane(scale: float = 1.0) -> Machine:
    """Return the crane with cylinder and piston as bodies and their pin as a loop: the plant.

    Parameters
    ----------
    scale : float
        Length and mass of the second link against the document's; its cylinder mount stays.
    """
    rod = np.diag([0.01, 1, 1]) * _ROD_LENGTH**2 / 12
    bodies = (
        *_links(scale),
        Body("cylinder", Moments.of_body(1.5, (_ROD_LENGTH / 2, 0, 0), 1.5 * rod)),
        Body("piston", Moments.of_body(1.0, (-_ROD_LENGTH / 2, 0, 0), 1.0 * rod)),
    )
    joints = (
        *_link_joints(),
        Joint("beta", Revolute("z"), "boom", "cylinder", parent_pose=(LENGTH - SIDE, 0, 0)),
        _stroke("cylinder", "piston", (CLOSED_LENGTH, 0, 0)),
    )
    return Machine(
        bodies,
        joints,
        _frames(scale),
        # Pins of such cylinders sit in spherical bearings, which also leaves no redundant moments.
        loops=(Loop("pin", "ball", "mount", "piston"),),
        actuators=_motors(),
        geometry=(
            *_shapes(scale),
            _rod("cylinder", 0.045, _ROD_LENGTH, _ROD_LENGTH / 2, (0.25, 0.3, 0.35, 1)),
            _rod("piston", 0.02, _ROD_LENGTH, -_ROD_LENGTH / 2, (0.8, 0.82, 0.85, 1)),
        ),
        name="crane",
    )


def crane_model(scale: float = 1.0, triangle: Triangle | None = None) -> Machine:
    """Return the crane without cylinder and piston: the controller's model, as in the document.

    The stroke stays as a coordinate, of a rod without mass; the elbow follows it in closed form,
    whose lengths can be tuned: "triangle.arm_side" and so on.
    """
    return Machine(
        (*_links(scale), Body("rod", None)),
        (*_link_joints(), _stroke("boom", "rod", (LENGTH - SIDE, 0, 0))),
        _frames(scale),
        couplings=(Coupling("triangle", "zeta", ("delta",), triangle or Triangle()),),
        actuators=_motors(),
        geometry=_shapes(scale),
        name="crane model",
    )


def closed_form(machine: Machine) -> Embedded:
    """Return the equations of `crane` in (phi, theta, delta), its loop solved by the triangle.

    The triangle is that of the machine, tunable places of the cylinder's pins included.
    """
    triangle = Triangle(
        LENGTH - constant_pose(machine.joint("beta").parent_pose)[0, 3],
        constant_pose(machine.frame("mount").pose)[0, 3],
        constant_pose(machine.joint("delta").parent_pose)[0, 3],
    )

    def configuration(q: Any) -> Any:
        zeta, beta = triangle(q[2]), triangle.tilt(q[2])
        values = {"phi": q[0], "theta": q[1], "zeta": zeta, "beta": beta, "delta": q[2]}
        return ca.vertcat(*(values[name] for name in machine.x_names))

    return Embedded(machine, Embedding(COORDINATES, configuration))


def crane_state(machine: Machine, q: Any, rate: Any = (0, 0, 0)) -> tuple[np.ndarray, np.ndarray]:
    """Return configuration and velocity of all joints at (phi, theta, delta), (3,) or (n, 3)."""
    q, rate = np.asarray(q, float), np.broadcast_to(np.asarray(rate, float), np.shape(q))
    zeta, zeta_rate = elbow(q[..., 2]), elbow_slope(q[..., 2]) * rate[..., 2]
    values = {
        "phi": (q[..., 0], rate[..., 0]),
        "theta": (q[..., 1], rate[..., 1]),
        "zeta": (zeta, zeta_rate),
        "beta": (zeta / 2, zeta_rate / 2),
        "delta": (q[..., 2], rate[..., 2]),
    }
    pairs = [values[name] for name in machine.x_names]
    return np.stack([x for x, _ in pairs], axis=-1), np.stack([v for _, v in pairs], axis=-1)


def _links(scale: float) -> tuple[Body, ...]:
    boom = Moments.of_body(60.0, (0.959, 0.001, -0.077), _BOOM_INERTIA)
    return (
        Body("base", Moments.of_body(30.0, (0, 0, 0.103), np.diag([0.804, 0.831, 1.18]))),
        Body("boom", boom),
        Body("arm", arm_moments(scale)),
    )


def _link_joints() -> tuple[Joint, ...]:
    return (
        Joint("phi", Revolute("z"), "world", "base"),
        Joint("theta", Revolute("z"), "base", "boom", parent_pose=_SHOULDER),
        Joint("zeta", Revolute("z"), "boom", "arm", parent_pose=(LENGTH, 0, 0)),
    )


def _stroke(parent: str, child: str, place: Any) -> Joint:
    return Joint("delta", Prismatic("x"), parent, child, place, lower=0.0, upper=STROKE)


def _frames(scale: float) -> tuple[Frame, ...]:
    return Frame("tip", "arm", (LENGTH * scale, 0, 0)), Frame("mount", "arm", (SIDE, 0, 0))


def _motors() -> tuple[JointForce, ...]:
    return tuple(JointForce(f"drive_{name}", name) for name in COORDINATES)


def _shapes(scale: float) -> tuple[Shape, ...]:
    def beam(body: str, length: float) -> Shape:
        return Shape(body, "box", (length, 0.1, 0.1), (length / 2, 0, -0.075))

    orange = (0.93, 0.6, 0.15, 1.0)
    return (
        Shape("base", "cylinder", (0.16, 0.206), (0, 0, 0.103), color=(0.3, 0.32, 0.35, 1)),
        *(
            Shape(s.frame, s.kind, s.size, s.pose, color=orange)
            for s in (beam("boom", LENGTH), beam("arm", LENGTH * scale))
        ),
    )


def _rod(body: str, radius: float, length: float, middle: float, color: Any) -> Shape:
    pose = np.eye(4)
    pose[:3, :3], pose[0, 3] = _ALONG_X, middle
    return Shape(body, "cylinder", (radius, length), pose, color=color)
