"""From encoders to velocities: a tracking filter on the group of every joint."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.estimation.base import Reading, StateEstimate, StateEstimator
from framefree.control.law import ControlError
from framefree.control.shared.gains import positive
from framefree.machine import Machine

Matrix = Any


@dataclass(frozen=True)
class EncoderFilter(StateEstimator):
    """Estimate positions and velocities of joints from their encoders.

    The estimate moves on at its velocity and is corrected by what the encoder says beyond it,

        x <- x (+) T v,    e = encoder (-) x,    x <- x (+) (1 - b^2) e,    v <- v + (1 - b)^2/T e

    with b = exp(-bandwidth T): a critically damped observer. It knows nothing of forces: while a
    joint accelerates by a, its velocity lags by 2 a/bandwidth; white noise s of the encoder leaves
    about s bandwidth sqrt(bandwidth T)/2 in it.

    Parameters
    ----------
    machine : Machine
        The law's model.
    bandwidth : float
        rad/s.
    sensor : str
        Name of the encoders.
    of : sequence of str, optional
        Joints with encoders, in their order; by default all that move.
    """

    machine: Machine
    bandwidth: float
    sensor: str = "encoders"
    of: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        positive(self.bandwidth, "bandwidth")
        for name in self.of or ():
            if name not in self.machine.joint_index:
                known = ", ".join(f"`{joint.name}`" for joint in self.machine.joints)
                raise ControlError(f"there is no joint `{name}` with an encoder; known: {known}")

    @property
    def joints(self) -> tuple[str, ...]:
        """Joints with encoders."""
        if self.of is not None:
            return tuple(self.of)
        return tuple(joint.name for joint in self.machine.joints if joint.nv)

    @property
    def reads(self) -> tuple[str, ...]:
        """The encoders."""
        return (self.sensor,)

    def first_memory(self, x: Matrix, v: Matrix) -> Matrix:
        """Return coordinates and velocities of the joints at the first state."""
        machine = self.machine
        own = [x[machine.x_slice[name]] for name in self.joints]
        rates = [v[machine.v_slice[name]] for name in self.joints]
        return ca.vertcat(*own, *rates)

    def update(
        self, memory: Matrix, readings: Mapping[str, Reading], period: float
    ) -> StateEstimate:
        """Return positions and velocities after one reading."""
        b = float(np.exp(-self.bandwidth * period))
        reading = readings[self.sensor]
        kinds = [self.machine.joint(name) for name in self.joints]
        at, rate_at = 0, sum(joint.nx for joint in kinds)
        xs: dict[str, Matrix] = {}
        vs: dict[str, Matrix] = {}
        for joint in kinds:
            span = slice(at, at + joint.nx)
            x, v = memory[span, :], memory[rate_at : rate_at + joint.nv, :]
            x = joint.kind.integrate(x, period * v)
            e = reading.fresh * joint.kind.difference(x, reading.value[span, :])
            xs[joint.name] = joint.kind.integrate(x, (1 - b**2) * e)
            vs[joint.name] = v + (1 - b) ** 2 / period * e
            at, rate_at = at + joint.nx, rate_at + joint.nv
        return StateEstimate(xs, vs, ca.vertcat(*xs.values(), *vs.values()))
