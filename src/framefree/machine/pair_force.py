"""Forces between two frames that depend on how they lie and move: the contract of all of them.

With G = G_ab the pose of frame b seen from frame a, xi = xi_ab the twist of b relative to a in b's
axes and the time t, a part gives the wrench w(G, xi, t) that acts *on* frame b, in b's axes at its
origin; frame a feels the reaction. "world" is a frame like any other. Nothing else enters: neither
where both frames are nor in which axes bodies are written, so that every such force is the same in
all frames.

What it does to the energy of a machine follows from the energy V(G, t) that it stores, if any:

    power on the machine = xi . w = -dV/dt - (dissipation) + (what it supplies)

To add one, subclass `PairForce` (a frozen dataclass with fields name, frame_a, frame_b) and give

1. ``wrench_at(pose, twist, time)``: w (6), a casadi column;
2. ``energy_at(pose, time)``: V (J), and ``stores = True`` if it has one;
3. ``dissipation_at(pose, twist, time)``: what it turns into heat (W), if anything;
4. ``timed``: whether time enters;
5. ``records(pose, twist, time)``: what is worth recording beside the wrench, by name, with units;
6. ``newton_slopes(pose, twist, time)``: slopes of the wrench that are near enough for Newton's
   method, where differentiating the wrench itself would cost too much;
7. ``drag(pose, twist, time)``: how strongly the wrench resists other velocities, where it does so
   strongly: engines that hold forces over a step need it.

`framefree.motion.forces` puts them into all formulations.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import casadi

from framefree.geometry import se3
from framefree.machine.part import Part


class PairForce(Part, ABC):
    """Base of forces between two frames; see the contract at the top of this file."""

    name: ClassVar[str]
    frame_a: ClassVar[str]
    frame_b: ClassVar[str]

    frame_fields = ("frame_a", "frame_b")
    smooth: ClassVar[bool] = True
    """Whether integrators keep their order: contact, which sets in at a kink, does not."""

    @abstractmethod
    def wrench_at(self, pose: Any, twist: Any, time: Any) -> Any:
        """Return the wrench (6) on frame b, in its axes at its origin: N, Nm."""

    @property
    def timed(self) -> bool:
        """Whether the force depends on time by itself."""
        return False

    @property
    def stores(self) -> bool:
        """Whether there is an energy; without, all that the force does counts as supplied."""
        return False

    def energy_at(self, pose: Any, time: Any) -> Any:
        """Return the stored energy (J)."""
        return casadi.SX(0)

    def dissipation_at(self, pose: Any, twist: Any, time: Any) -> Any:
        """Return the power that is turned into heat (W)."""
        return casadi.SX(0)

    def records(self, pose: Any, twist: Any, time: Any) -> dict[str, tuple[Any, str]]:
        """Return further quantities to record: name to value (scalar or column) and unit."""
        return {}

    def newton_slopes(self, pose: Any, twist: Any, time: Any) -> tuple[Any, Any] | None:
        """Return slopes (6 x 6 each) of the wrench by the motion of b and by the twist, nearly.

        Newton's method uses them; None where the wrench is to be differentiated like all else.
        """
        return None

    def drag(self, pose: Any, twist: Any, time: Any) -> Any:
        """Return C >= 0 (6 x 6): at a twist that differs by d the wrench is smaller by about C d.

        None where the wrench does not depend on the twist, or so weakly that it may be held.
        """
        return None

    def held_at(self, time: float) -> "PairForce":
        """Return the force as it is at one moment; itself where time does not enter."""
        return self

    def energy_rate(self, pose: Any, twist: Any, time: Any) -> Any:
        """Return dV/dt (W) along the motion: dG/dt = G wed(xi), and by itself in time."""
        if not self.stores:
            return casadi.SX(0)
        by_pose, by_time = self._slopes(pose, time)
        return casadi.dot(by_pose, pose @ se3.wed(casadi.densify(twist))) + by_time

    def conservative_wrench(self, pose: Any, time: Any) -> Any:
        """Return the wrench (6) of the energy alone: xi . w = -(dV/dt at a fixed time)."""
        twist = casadi.SX.sym("twist", 6)
        by_pose, _ = self._slopes(pose, time)
        rate = casadi.dot(by_pose, pose @ se3.wed(twist))
        return -casadi.gradient(rate, twist)

    def _slopes(self, pose: Any, time: Any) -> tuple[Any, Any]:
        """Return the slopes of V by the entries of the pose (4x4) and by time."""
        G, t = casadi.SX.sym("G", 4, 4), casadi.SX.sym("t")
        V = casadi.SX(self.energy_at(G, t))
        slopes = [casadi.gradient(V, G), casadi.gradient(V, t)]
        by_pose, by_time = casadi.substitute(
            slopes, [G, t], [casadi.densify(casadi.SX(pose)), casadi.SX(time)]
        )
        return by_pose, by_time


@dataclass(frozen=True, eq=False)
class ConservativePart(PairForce):
    """What is left of a force between two frames without its losses: the slope of its energy."""

    name: str
    frame_a: str
    frame_b: str
    force: PairForce

    @property
    def stores(self) -> bool:
        """True."""
        return True

    def energy_at(self, pose: Any, time: Any) -> Any:
        """Return the energy of the whole."""
        return self.force.energy_at(pose, time)

    def wrench_at(self, pose: Any, twist: Any, time: Any) -> Any:
        """Return the wrench of the energy."""
        return self.force.conservative_wrench(pose, time)


def conservative(forces: Any) -> tuple[ConservativePart, ...]:
    """Return what is left of forces between frames without losses, time standing still at zero.

    Of smooth ones: where forces set in at a kink, an integration does not show whether energy is
    kept; that is seen from the power at single states.
    """
    held = [force.held_at(0.0) for force in forces if force.smooth]
    return tuple(ConservativePart(f.name, f.frame_a, f.frame_b, f) for f in held if f.stores)
