"""Small systems in coordinates of their own: a circle, nine numbers of a rotation, a sleigh.

They are not machines of joints: poses are functions of coordinates x with phi(x) = 0, and
velocities are chosen freely by dx/dt = A(x) v [Konz2024, ch. 2 and 3].
"""

from typing import Any

import casadi as ca
import numpy as np

from framefree.geometry import Moments, se3
from framefree.machine import Body
from framefree.motion import BodySystem, Coordinates, LagrangianSystem, RelativePose

LENGTH, MASS, GRAVITY = 0.8, 1.5, 9.81
"""Of the pendulum: m, kg, m/s^2."""

CIRCLE = Coordinates(
    2,
    1,
    lambda x: ca.vertcat(-x[1], x[0]),
    lambda x: ca.sumsqr(x) - 1,
    sample=(1.0, 0.0),
    x_names=("cos", "sin"),
    v_names=("turn",),
)
"""A point on the unit circle by cosine and sine."""


def pendulum(amplitude: float = 0.0, omega: float = 0.0, **more: Any) -> BodySystem:
    """Return a rod that hangs from the origin, or from a pivot shaken by amplitude sin(omega t)."""
    rod = Moments.of_body(MASS, (0, 0, -LENGTH / 2), MASS * LENGTH**2 / 12 * np.diag([1, 1, 0.02]))

    def hanging(x: Any) -> Any:
        G = ca.SX.eye(4)
        G[0, 0], G[0, 2], G[2, 0], G[2, 2] = x[0], x[1], -x[1], x[0]
        return G

    def shaken(x: Any, t: Any) -> Any:
        G = hanging(x)
        G[2, 3] = amplitude * ca.sin(omega * t)
        return G

    pose = RelativePose("world", "rod", shaken if amplitude else hanging)
    return BodySystem("pendulum", CIRCLE, [pose], [Body("rod", rod)], **more)


def shaken_lagrangian(amplitude: float, omega: float) -> LagrangianSystem:
    """Return the shaken pendulum by its Lagrangian alone."""
    about_end = MASS * LENGTH**2 * (1 / 12 + 1 / 4)

    def lagrangian(x: Any, v: Any, t: Any) -> Any:
        lift = amplitude * ca.sin(omega * t)
        speed = amplitude * omega * ca.cos(omega * t)
        moment = MASS * LENGTH / 2
        kinetic = about_end * v[0] ** 2 / 2 + moment * x[1] * v[0] * speed + MASS * speed**2 / 2
        return kinetic - GRAVITY * (MASS * lift - moment * x[0])

    return LagrangianSystem("pendulum-lagrangian", CIRCLE, lagrangian)


def nine_numbers(**more: Any) -> BodySystem:
    """Return a top that turns about a point, its attitude by the nine entries of the rotation."""

    def rate(x: Any) -> Any:
        R = ca.reshape(x, 3, 3)
        return ca.horzcat(*(ca.vec(R @ ca.skew(axis)) for axis in np.eye(3)))

    def phi(x: Any) -> Any:
        R = ca.reshape(x, 3, 3)
        return ca.vertcat(*((R.T @ R - ca.DM.eye(3))[i, j] for i in range(3) for j in range(i + 1)))

    coordinates = Coordinates(
        9,
        3,
        rate,
        phi,
        sample=np.eye(3).ravel(),
        x_names=tuple(f"r{i}{j}" for j in range(3) for i in range(3)),
        v_names=("wx", "wy", "wz"),
    )
    pose = RelativePose("world", "top", lambda x: se3.pose(ca.reshape(x, 3, 3), ca.DM.zeros(3)))
    return BodySystem("nine-numbers", coordinates, [pose], [Body("top", TOP)], **more)


TOP = Moments.of_body(1.0, (0, 0, 0.3), np.diag([0.2, 0.25, 0.1]))
"""Of the top, about its own frame's origin, which does not move."""


def sleigh() -> BodySystem:
    """Return Chaplygin's sleigh: a blade under it lets it go forward and turn, not sideways."""
    coordinates = Coordinates(
        3,
        2,
        lambda x: ca.blockcat([[ca.cos(x[2]), 0], [ca.sin(x[2]), 0], [0, 1]]),
        x_names=("x", "y", "heading"),
        v_names=("forward", "turn"),
    )

    def planar(x: Any) -> Any:
        G, c, s = ca.SX.eye(4), ca.cos(x[2]), ca.sin(x[2])
        G[0, 0], G[0, 1], G[1, 0], G[1, 1], G[0, 3], G[1, 3] = c, -s, s, c, x[0], x[1]
        return G

    sled = Body("sled", Moments.of_body(2.0, (0.3, 0, 0), np.diag([0.3, 0.2, 0.4])))
    return BodySystem("sleigh", coordinates, [RelativePose("world", "sled", planar)], [sled])
