"""The setting of `chain-reach`: a chain in an arc, what its end is to do, and a ball in its way."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.control import MomentumObserver, UnknownForce
from framefree.control.port import Avoidance, EndEffectorControl, Sphere
from framefree.control.references import FramePath
from framefree.control.references.staged import InFrame
from framefree.errors import FramefreeError
from framefree.gallery.machines.chains import chain
from framefree.gallery.scenarios.ports.chain_measures import body_poses
from framefree.geometry import se3, so3
from framefree.machine import Frame, Machine
from framefree.simulate import Pulse

RADIUS, HALF = 0.03, 0.2
"""Of the rods: radius and half their length, m."""
SETTLED = 3.0
"""When the end has its whole motion, s."""
OBSERVER = 300.0
"""Pace of the observer of unknown forces, 1/s."""


@dataclass(frozen=True)
class ReachSetting:
    """A chain of n rods, where it starts, what its end is to do, and what is in its way.

    The chain lies in an arc and floats, carried by the wrenches of its port against gravity. Its
    end is to swing to and fro and turn; an obstacle sits beside its middle.
    """

    bodies: int
    tunable: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.bodies < 2:
            raise FramefreeError(f"a chain in an arc has two bodies or more, got {self.bodies}")

    @cached_property
    def machine(self) -> Machine:
        """The chain, with a wrench on every body; frame `stage` is what the scene stands on."""
        made = chain(self.bodies, radius=RADIUS, frames=[Frame("stage", "world")])
        return made.tunable(*self.tunable) if self.tunable else made

    @cached_property
    def start(self) -> np.ndarray:
        """First configuration (nx,): an arc."""
        joints = self.bodies - 1
        steps = [0, 0, 0, 0, 0, -0.6, *([0, 0, 1.2 / joints] * joints)]
        return self.machine.integrate(self.machine.neutral(), np.array(steps, float))

    @cached_property
    def _first(self) -> np.ndarray:
        return body_poses(self.machine.numeric, self.start[None])[0]

    @cached_property
    def reference(self) -> InFrame:
        """What the end follows: it begins 6 cm and 6 degrees away from it."""
        first = self._first[-1] @ np.asarray(self.machine.frame("end").pose)
        r, R = ca.DM(first[:3, 3]), ca.DM(first[:3, :3])

        def path(t: Any) -> Any:
            s = ca.fmin(t / SETTLED, 1)
            ramp, a = s**4 * (35 - 84 * s + 70 * s**2 - 20 * s**3), 0.8 * t
            swing = ca.vertcat(
                -0.05 - 0.15 * ramp * ca.sin(2 * a),
                0.03 + 0.45 * ramp * ca.sin(a),
                0.03 + 0.25 * ramp * ca.sin(a + 1),
            )
            turn = ramp * ca.sin(a) * ca.DM([0.3, 0.4, 0.5]) + ca.DM([0, 0, 0.1])
            return se3.pose(so3.exp(turn) @ R, r + swing)

        return InFrame(FramePath("end", path, times=(SETTLED,)), self.machine, "stage")

    @cached_property
    def obstacle(self) -> Sphere:
        """A ball beside the middle of the chain."""
        middle = self._first[self.bodies // 2 - 1][:3, 3]
        return Sphere(middle + np.array([0.05, 0.26, 0.05]), 0.15, frame="stage")

    @property
    def pulses(self) -> tuple[Pulse, ...]:
        """A force on the last rod but one, and later a moment on another."""
        n = self.bodies
        return (
            Pulse(f"body{max(1, n - 1)}", (0, 10, 15, 0, 0, 0), 6.0, 0.2),
            Pulse(f"body{max(1, n - 3)}", (0, 0, 0, 0, 2, 2), 9.0, 0.2),
        )

    @property
    def last(self) -> str:
        """The body at the end."""
        return f"body{self.bodies}"

    def pushed(self, name: str) -> str:
        """Return a body of the chain by its name, or by "first" and "last"."""
        body = {"first": "body1", "last": self.last}.get(name, name)
        return self.machine.body(body).name

    def law(
        self, *, avoiding: bool = True, ignore_joints: bool = False, observer: bool = False
    ) -> EndEffectorControl:
        """Return law III, with an observer of unknown forces if asked for.

        The observer takes what it does not know for a wrench on the last body that is constant in
        the world.
        """
        observed = MomentumObserver(OBSERVER, UnknownForce(self.last)) if observer else None
        avoidance = Avoidance([self.obstacle], radius=RADIUS)
        return EndEffectorControl(
            self.machine,
            damping=10.0,
            ignore_joints=ignore_joints,
            rate=5.0,
            turn_rate=5.0,
            avoidance=avoidance if avoiding else None,
            unknown=observed,
        )
