"""Limits of inputs: bounds, polytopes such as those of tilting thrust, and forces of servos.

A motor's force is f = gain u + bias[0] + bias[1] gear . x + bias[2] gear . v. Without feedback its
limits are bounds of u, whose ends a negative gain swaps; with feedback they depend on the state.
"""

from dataclasses import dataclass

import numpy as np

from framefree.machine import Machine
from framefree.machine.actuators import JointForce

SLACK = 1e-9
"""Share of the numbers in a limit by which it may be exceeded: rounding."""


@dataclass(frozen=True)
class ActuatorLimits:
    """The limits of the inputs of a machine.

    Attributes
    ----------
    machine : Machine
    lower, upper : (nu,)
        Bounds of single inputs, those of the forces of motors without feedback included.
    A, b : (k, nu), (k,)
        Further limits A u <= b.
    servos : tuple of JointForce
        Motors with limits of their force that bounds of inputs cannot express.
    """

    machine: Machine
    lower: np.ndarray
    upper: np.ndarray
    A: np.ndarray
    b: np.ndarray
    servos: tuple[JointForce, ...]

    @classmethod
    def of(cls, machine: Machine) -> "ActuatorLimits":
        """Return the limits of a machine's actuators."""
        lower, upper = (np.array(bound) for bound in machine.input_limits)
        servos, rows, sides = [], [np.zeros((0, machine.nu))], [np.zeros(0)]
        for actuator in machine.actuators:
            own = machine.u_slice[actuator.name]
            A, b = actuator.polytope
            rows.append(np.zeros((len(b), machine.nu)))
            rows[-1][:, own] = A
            sides.append(b)
            if not isinstance(actuator, JointForce):
                continue
            ends = np.array([actuator.force_lower, actuator.force_upper])
            if np.any(actuator.bias_terms[1:]) or not actuator.gain:
                servos += [actuator] if np.isfinite(ends).any() else []
            else:
                ends = (ends - actuator.bias_terms[0]) / actuator.gain
                lower[own] = np.maximum(lower[own], ends.min())
                upper[own] = np.minimum(upper[own], ends.max())
        return cls(machine, lower, upper, np.vstack(rows), np.concatenate(sides), tuple(servos))

    @classmethod
    def none(cls, machine: Machine) -> "ActuatorLimits":
        """Return no limits."""
        infinite = np.full(machine.nu, np.inf)
        return cls(machine, -infinite, infinite, np.zeros((0, machine.nu)), np.zeros(0), ())

    def rows(
        self, x: np.ndarray, v: np.ndarray, u: np.ndarray, masses: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return how far limits are exceeded, and the slopes of that by x, v and u.

        Bounds of single inputs are not among them. Forces of servos count as the accelerations that
        they cause on masses (nv,).
        """
        nv, nu, k = self.machine.nv, self.machine.nu, len(self.b)
        over = np.zeros(k + len(self.servos))
        slopes = np.zeros((len(over), 2 * nv + nu))
        over[:k] = np.maximum(self.A @ u - self.b, 0)
        slopes[:k, 2 * nv :] = self.A * (over[:k] > 0)[:, None]
        for i, servo in enumerate(self.servos, start=k):
            force = self._force(servo, x, v, u)
            beyond = max(force - servo.force_upper, 0.0) + min(force - servo.force_lower, 0.0)
            if not beyond:
                continue
            own, (_, by_x, by_v) = self.machine.v_slice[servo.joint], servo.bias_terms
            mass = (masses[own] / np.maximum(np.abs(servo.gear), 1e-300)).min()
            over[i] = beyond / mass
            slopes[i, own] = by_x * servo.gear / mass
            slopes[i, nv + own.start : nv + own.stop] = by_v * servo.gear / mass
            slopes[i, 2 * nv + self.machine.u_slice[servo.name].start] = servo.gain / mass
        return over, slopes

    def what_exceeds(self, x: np.ndarray, v: np.ndarray, u: np.ndarray) -> str:
        """Name an input or servo beyond its limits; empty if all are kept."""
        excess = self.A @ u - self.b - SLACK * (np.abs(self.A) @ np.abs(u) + np.abs(self.b))
        if (excess > 0).any():
            row = self.A[int(excess.argmax())]
            return f"`{self.machine.u_names[int(np.abs(row).argmax())]}` exceeds its limits"
        for servo in self.servos:
            force = self._force(servo, x, v, u)
            slack = SLACK * abs(force)
            if not servo.force_lower - slack <= force <= servo.force_upper + slack:
                return f"the force of servo `{servo.name}`, {force:.4g}, exceeds its limits"
        return ""

    def what_is_stuck(self, u: np.ndarray, free: np.ndarray) -> str:
        """Name the free inputs that stand at their limits, for a message; empty if none does."""
        tight = (u <= self.lower + SLACK) | (u >= self.upper - SLACK)
        tight |= (np.abs(self.A[self.A @ u > self.b - SLACK]) > 0).any(axis=0)
        names = [f"`{n}`" for n, t in zip(self.machine.u_names, tight & free, strict=True) if t]
        return f"; inputs at their limits: {', '.join(names)}" if names else ""

    def _force(self, servo: JointForce, x: np.ndarray, v: np.ndarray, u: np.ndarray) -> float:
        """Return gain u + bias[0] + bias[1] gear . x + bias[2] gear . v, N or N m."""
        constant, by_x, by_v = servo.bias_terms
        force = constant + by_v * (servo.gear @ v[self.machine.v_slice[servo.joint]])
        if by_x:
            force += by_x * (servo.gear @ x[self.machine.x_slice[servo.joint]])
        return float(force + servo.gain * u[self.machine.u_slice[servo.name].start])
