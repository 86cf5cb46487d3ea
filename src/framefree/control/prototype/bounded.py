"""Errors of position that the prototype feels only as far as the craft can act on them.

A craft on its thrust that is far from its reference, or fast, would have to tilt beyond the
horizontal, or push more than it can, to move as its prototype does; within limits it then falls, or
turns over. The law sees errors e and e' of the place of the flying body in their stead that ask for
no more than a speed s and an acceleration a:

    e1 = e min(1, s d / (k |e|)),    (e, e') := (e1, e') min(1, m a / |k e1 + d e'|)

with the prototype's mass, damping and stiffness m, d, k. Far away the craft so approaches with the
speed s, and its prototype asks for inclinations within atan(a/g). Near by nothing is changed, and
neither is what the reference itself asks for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca

from framefree.control.law import ControlError
from framefree.control.prototype.parameters import KINDS, PairParameters
from framefree.control.references.thrust import flying_joint
from framefree.control.shared.gains import positive
from framefree.geometry import quaternion
from framefree.machine import WORLD, Machine

Matrix = Any

_TINY = 1e-12


@dataclass(frozen=True)
class BoundedErrors:
    """How fast, and with which acceleration, a prototype brings a craft back from far away.

    Parameters
    ----------
    speed : float
        m/s, of the approach.
    acceleration : float
        m/s^2, which position errors ask for at most; 4 is an inclination of 22 degrees.
    """

    speed: float = 4.0
    acceleration: float = 4.0

    def __post_init__(self) -> None:
        positive(self.speed, "speed", "bounded errors")
        positive(self.acceleration, "acceleration", "bounded errors")

    def check(self, machine: Machine, pairs: Sequence[PairParameters]) -> None:
        """Refuse machines that do not fly, and prototypes that are not fixed to the world."""
        _ = flying_joint(machine)
        numbers = [total for total in self._totals(pairs) if not isinstance(total, ca.SX)]
        if not all(total > 0 for total in numbers):
            raise ControlError(
                "bounded errors need inertia, damping and stiffness of a frame seen from the world"
            )

    def reference(
        self,
        machine: Machine,
        pairs: Sequence[PairParameters],
        state: tuple[Matrix, Matrix],
        reference: Mapping[str, Matrix],
    ) -> dict[str, Matrix]:
        """Return the reference (x, v, a) moved towards the craft at a state (x, v)."""
        joint = flying_joint(machine).name
        at, along = machine.x_slice[joint], machine.v_slice[joint]
        x, v = state[0][at], state[1][along]
        x_R, v_R, a_R = (reference[name] for name in ("x", "v", "a"))
        R, R_R = (quaternion.to_rotation(q[3:7]) for q in (x, x_R[at]))
        w_R, linear_R = v_R[along][3:], v_R[along][:3]
        velocity = R @ v[:3]
        e, rate = self._felt(pairs, x[:3] - x_R[at][:3], velocity - R_R @ linear_R)
        new = [ca.SX(ca.densify(value)) for value in (x_R, v_R, a_R)]
        new[0][at.start : at.start + 3] = x[:3] - e
        moved = R_R.T @ (velocity - rate)
        new[1][along.start : along.start + 3] = moved
        # The acceleration in the world stays: R_R' (a + w x v) of body axes.
        new[2][along.start : along.start + 3] = a_R[along][:3] + ca.cross(w_R, linear_R - moved)
        return {**reference, **dict(zip("xva", new, strict=True))}

    def _felt(self, pairs: Sequence[PairParameters], e: Matrix, rate: Matrix) -> tuple:
        """Return error and rate (3) as far as the prototype feels them."""
        m, d, k = self._totals(pairs)
        e = e * ca.fmin(1, self.speed * d / (k * _length(e)))
        share = ca.fmin(1, m * self.acceleration / _length(k * e + d * rate))
        return e * share, rate * share

    @staticmethod
    def _totals(pairs: Sequence[PairParameters]) -> list[Any]:
        """Return mass, damping and stiffness of all that is seen from the world."""
        fixed = [pair for pair in pairs if pair.a == WORLD]
        moments = [[getattr(pair, kind) for pair in fixed] for kind in KINDS]
        return [sum((m.total for m in some if m is not None), 0.0) for some in moments]


def _length(vector: Matrix) -> Matrix:
    return ca.sqrt(ca.sumsqr(vector) + _TINY)
