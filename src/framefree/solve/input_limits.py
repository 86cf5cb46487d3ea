"""Limits of inputs: bounds, polytopes such as those of tilting thrust, and forces of servos.

A motor's force is f = gain u + bias[0] + bias[1] gear . x + bias[2] gear . v, with x and v of its
joint or tendon. Without feedback its limits are bounds of u, whose ends a negative gain swaps; with
feedback they depend on the state.
"""

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from framefree.machine import Machine
from framefree.machine.actuators import Motor
from framefree.motion.actuation import sensed
from framefree.motion.tree import Tree

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
    servos : tuple of Motor
        Motors with limits of their force that bounds of inputs cannot express.
    """

    machine: Machine
    lower: np.ndarray
    upper: np.ndarray
    A: np.ndarray
    b: np.ndarray
    servos: tuple[Motor, ...]

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
            if not isinstance(actuator, Motor):
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
        forces, by_state = self._forces(x, v, u) if self.servos else (np.zeros(0), slopes[:0])
        for i, servo in enumerate(self.servos):
            force = forces[i]
            beyond = max(force - servo.force_upper, 0.0) + min(force - servo.force_lower, 0.0)
            if not beyond:
                continue
            # The velocities that a servo drives are those that its force feeds back.
            driven = np.abs(by_state[i, :nv]) + np.abs(by_state[i, nv : 2 * nv])
            shares = driven / np.abs(servo.bias_terms[1:]).sum()
            mass = (masses / np.maximum(shares, 1e-300)).min()
            over[k + i] = beyond / mass
            slopes[k + i] = by_state[i] / mass
        return over, slopes

    def what_exceeds(self, x: np.ndarray, v: np.ndarray, u: np.ndarray) -> str:
        """Name an input or servo beyond its limits; empty if all are kept."""
        excess = self.A @ u - self.b - SLACK * (np.abs(self.A) @ np.abs(u) + np.abs(self.b))
        if (excess > 0).any():
            row = self.A[int(excess.argmax())]
            return f"`{self.machine.u_names[int(np.abs(row).argmax())]}` exceeds its limits"
        forces = self._forces(x, v, u)[0] if self.servos else ()
        for servo, force in zip(self.servos, forces, strict=True):
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

    def _forces(self, x: np.ndarray, v: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the forces of the servos (N or N m), and their slopes by x, v and u."""
        forces, slopes = self._servo_forces(x, v, u)
        return forces.full().ravel(), slopes.full()

    @cached_property
    def _servo_forces(self) -> ca.Function:
        machine = self.machine.tree
        x, v, u = (
            ca.SX.sym(n, k)
            for n, k in zip("xvu", (machine.nx, machine.nv, machine.nu), strict=True)
        )
        state = Tree(machine).at(x, v)
        forces = ca.vertcat(
            *(
                servo.force(*sensed(state, servo), u[machine.u_slice[servo.name]])
                for servo in self.servos
            )
        )
        slopes = [state.along(forces), ca.jacobian(forces, v), ca.jacobian(forces, u)]
        return ca.Function(
            "servo_forces", [x, v, u], [ca.densify(forces), ca.densify(ca.horzcat(*slopes))]
        )
