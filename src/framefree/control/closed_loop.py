"""A machine under a law, as equations of its error: about a rest, and along a moving reference.

The error of a state (x, v) from a reference (x_R, v_R) is z = (eps, v - v_R), with eps along the
velocities: x = x_R (+) eps. For small ones, along any reference,

    dz/dt = A(t) z,    A = [-W(v_R), 1; da/deps, da/dv]

with W of velocities that do not commute [Konz2024, eq. 2.24] and the slopes of the acceleration
that the machine has under the law, the reference held. Where A does not change with time its
eigenvalues decide stability. Along a periodic reference those of the error after one period do, the
Floquet multipliers; eigenvalues of A at single instants ("frozen") are a hint only: along a fast
reference they may all lie on the left while errors grow, and the other way round.

Under loops and couplings eps and v are those of independent velocities
(`framefree.control.error_coordinates`). Where the law has a memory that moves by a rate, such as
that of integral action, z = (eps, v - v_R, m - m_0) with the memory m_0 that the law begins with.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.error_coordinates import ClosedErrors, ErrorCoordinates, TreeErrors
from framefree.control.law import ControlError, Law
from framefree.control.references.base import Reference
from framefree.machine import Machine
from framefree.motion import State, equations
from framefree.motion.actuation import input_load

Matrix = Any

REPEATED = 1e-6
"""Largest share by which the equations of small errors may differ a period later."""
FOLLOWED = 1e-6
"""Largest acceleration, of those along the reference, by which a law may miss it."""


@dataclass(frozen=True, eq=False)
class SmallErrors:
    """Small errors of a machine under a law along a reference.

    Attributes
    ----------
    t : (n,)
    A : (n, 2 nv + memory, 2 nv + memory)
        dz/dt = A z of z = (eps, dv), and what the law remembers; n in the place of nv where loops
        leave n velocities.
    missed : (n, nv)
        Acceleration that the law has at no error, less that of the reference. Where it is not zero
        the reference is not a motion of the machine, and errors do not stay zero.
    """

    t: np.ndarray
    A: np.ndarray
    missed: np.ndarray

    @property
    def eigenvalues(self) -> np.ndarray:
        """Frozen eigenvalues (n, size of z), 1/s, at each instant those that grow fastest first."""
        values = np.linalg.eigvals(self.A)
        return np.take_along_axis(values, np.argsort(-np.real(values), axis=1), axis=1)

    @property
    def slowest(self) -> np.ndarray:
        """Largest real part (n,) of the frozen eigenvalues, 1/s."""
        return np.real(self.eigenvalues[:, 0])


@dataclass(frozen=True, eq=False)
class Floquet:
    """What one period of a reference makes of small errors.

    Attributes
    ----------
    period : float
        s.
    transition : (size of z, size of z)
        From the error at the beginning to that one period later.
    multipliers : (size of z,) complex
        Its eigenvalues, the largest first.
    """

    period: float
    transition: np.ndarray
    multipliers: np.ndarray

    @property
    def exponents(self) -> np.ndarray:
        """Mean rates (size of z), 1/s, at which errors decay; imaginary parts to 2 pi/period."""
        return np.log(self.multipliers.astype(complex)) / self.period

    @property
    def stable(self) -> bool:
        """Whether all small errors decay."""
        return bool(np.abs(self.multipliers).max() < 1 - 1e-9)


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """A machine under a law.

    Parameters
    ----------
    law : Law
        That follows x, v and a of the machine's joints; without memory, or with one that moves by a
        rate.
    machine : Machine, optional
        The plant, with the coordinates and inputs of the law's machine; by default that. Where it
        has loops or couplings, references must keep them.
    """

    law: Law
    machine: Machine | None = None

    def __post_init__(self) -> None:
        own, plant = self.law.machine, self.plant
        if (own.x_names, own.v_names, own.u_names) != (
            plant.x_names,
            plant.v_names,
            plant.u_names,
        ):
            raise ControlError(
                f"`{plant.name}` must have the coordinates and inputs of `{own.name}`, the law's "
                "machine"
            )

    @property
    def plant(self) -> Machine:
        """The machine that moves."""
        return self.law.machine if self.machine is None else self.machine

    def response(
        self, t: Matrix, state: State, reference: Mapping[str, Matrix], memory: Matrix
    ) -> tuple[Matrix, Matrix, Matrix]:
        """Return accelerations, inputs (nu) and the rate of the memory at a state, symbolically."""
        command = self.law.control(t, state.joint_x, state.joint_v, reference, memory)
        kept = command.memory is None or ca.is_equal(command.memory, memory, 1)
        if memory.shape[0] and (command.rate is None or not kept):
            raise ControlError(
                f"small errors are those of laws in continuous time; the memory of {self.law.name} "
                "changes from one control period to the next"
            )
        a = state.forward(input_load(state, command.u))
        rate = ca.SX(0, 1) if command.rate is None else command.rate
        return self._numeric(a), self._numeric(command.u), self._numeric(rate)

    def _numeric(self, value: Matrix) -> Matrix:
        """Return an expression, dense, with the default values of tunable numbers."""
        value = ca.densify(ca.SX(value))
        for machine in (self.law.machine, self.plant):
            if len(machine.parameters):
                defaults = ca.DM(np.asarray(machine.parameters.defaults, float))
                value = ca.substitute(value, machine.parameters.symbols, defaults)
        return value

    # ------------------------------------------------------------------ along a reference

    def small_errors(self, reference: Reference, times: Any) -> SmallErrors:
        """Return the linear equations of small errors at instants (n,), s, of a reference."""
        t = np.atleast_1d(np.asarray(times, float))
        function = self._slopes(reference, t)
        values = [function(moment) for moment in t]
        A = np.array([np.array(value[0]) for value in values])
        return SmallErrors(t, A, np.array([np.array(value[1]).ravel() for value in values]))

    def floquet(self, reference: Reference, period: float, start: float = 0.0) -> Floquet:
        """Return what one period of a reference, from a time on, makes of small errors.

        Raises
        ------
        ControlError
            If the reference does not repeat itself, or if the law does not follow it at no error.
        """
        from scipy.integrate import solve_ivp

        self._check_periodic(reference, period, start)
        function = self._slopes(reference, [start])
        n = function.size1_out(0)

        def rate(t: float, columns: np.ndarray) -> np.ndarray:
            return (np.array(function(t)[0]) @ columns.reshape(n, n)).ravel()

        knots = [start, *(t for t in reference.times if start < t < start + period), start + period]
        columns = np.eye(n).ravel()
        for first, last in pairwise(knots):
            solution = solve_ivp(rate, (first, last), columns, "DOP853", rtol=1e-10, atol=1e-12)
            columns = solution.y[:, -1]
        transition = columns.reshape(n, n)
        values = np.linalg.eigvals(transition).astype(complex)
        return Floquet(period, transition, values[np.argsort(-np.abs(values))])

    def _slopes(self, reference: Reference, times: Any) -> ca.Function:
        """From t to A and to what the law misses at no error; loops are looked at at `times`."""
        t = ca.SX.sym("t")
        signals = {name: ca.SX(value) for name, value in reference.at(t).items()}
        missing = [name for name in ("x", "v", "a") if name not in signals]
        if missing:
            raise ControlError(f"small errors need the reference's `{missing[0]}` of all joints")
        errors = self._coordinates(t, signals, times)
        n, first = errors.size, np.asarray(self.law.memory, float)
        eps, dv, dm = (
            ca.SX.sym(name, k) for name, k in zip("evm", (n, n, len(first)), strict=True)
        )
        state = errors.state(signals, eps, dv, t)
        a, _, rate = self.response(t, state, signals, ca.DM(first) + dm)
        z = ca.vertcat(eps, dv, dm)
        moved = ca.horzcat(-errors.turning(signals), ca.SX.eye(n), ca.SX(n, len(first)))
        A = ca.vertcat(moved, ca.jacobian(ca.vertcat(a, rate), z))
        zero, missed = ca.DM.zeros(*z.shape), a - errors.of(signals["a"])
        outputs = [self._numeric(ca.substitute(value, z, zero)) for value in (A, missed)]
        return ca.Function("slopes", [t], outputs)

    def _coordinates(
        self, t: Matrix, signals: Mapping[str, Matrix], times: Any
    ) -> ErrorCoordinates:
        if not self.plant.closed:
            return TreeErrors(self.plant)
        function = ca.Function("state", [t], [ca.densify(signals[name]) for name in ("x", "v")])
        states = [[np.array(value).ravel() for value in function(moment)] for moment in times]
        errors = ClosedErrors(self.plant, *states[0])
        for state in states[1:]:
            errors.check(*state)
        return errors

    def _check_periodic(self, reference: Reference, period: float, start: float) -> None:
        if not (np.isfinite(period) and period > 0):
            raise ControlError(f"`period` must be positive, got {period}")
        moments = start + period * np.array([0.0, 0.173, 0.41, 0.777])
        now, later = (self.small_errors(reference, t) for t in (moments, moments + period))
        changed = np.abs(later.A - now.A).max(axis=(1, 2)) / (1 + np.abs(now.A).max())
        if not changed.max() <= REPEATED:
            worst = moments[changed.argmax()]
            raise ControlError(
                f"small errors along this reference do not repeat themselves after {period:g} s: "
                f"their equations at t = {worst:.4g} s and a period later differ by a share of "
                f"{changed.max():.3g}"
            )
        t = ca.SX.sym("t")
        wanted = ca.Function("a", [t], [ca.densify(ca.SX(reference.at(t)["a"]))])
        size = max(np.abs(np.array(wanted(s))).max() for s in moments)
        missed = np.abs(now.missed).max()
        if not missed <= FOLLOWED * (1 + size):
            raise ControlError(
                "small errors are those about a motion of the machine, but the law does not follow "
                f"this reference at no error: it misses accelerations of {missed:.3g}"
            )

    # ------------------------------------------------------------------ about rest

    def about_rest(self, x_R: Any = None) -> ca.Function:
        """Return the function from the error z (2 nv) about rest at x_R to dz/dt and inputs u.

        d eps/dt follows from d(x_R (+) eps)/dt = A(x) v; the law is held at x_R, at rest. For laws
        without memory.
        """
        if len(self.law.memory):
            raise ControlError(
                f"errors about rest are those of laws without memory; {self.law.name} has one"
            )
        machine, nv = self.plant, self.plant.nv
        if machine.closed:
            raise ControlError(
                f"errors about rest are those of free velocities; `{machine.name}` has loops or "
                "couplings"
            )
        x_R = machine.numeric.neutral() if x_R is None else np.asarray(x_R, float)
        z = ca.SX.sym("z", 2 * nv)
        eps, v = z[:nv], z[nv:]
        place = ca.SX(ca.DM(x_R))
        x = machine.integrate(place, eps)
        along = ca.jacobian(x, eps)
        rate = machine.rate_matrix(x) @ v
        if not ca.symvar(along):
            moved = ca.DM(np.linalg.pinv(np.array(ca.DM(ca.densify(along))))) @ rate
        else:
            moved = ca.solve(ca.densify(along.T @ along), ca.densify(along.T @ rate))
        still = ca.SX(nv, 1)
        reference = {"x": place, "v": still, "a": still}
        state = equations(machine.tree).at(x, v)
        a, u, _ = self.response(ca.SX(0), state, reference, ca.SX(0, 1))
        return ca.Function(
            "closed", [z], [ca.densify(ca.vertcat(moved, a)), u], ["z"], ["rate", "u"]
        )
