"""The reference velocity of a machine with loops or couplings.

Joints and loops together, J nu = 0, leave nu = T w with the independent velocities w of the machine
(`framefree.control.shared.model`), T a function of the configuration. With v = E w those of all
joints and A the inertia of rotors, what `sweeps.py` solves by elimination along a tree reads

    min 1/2 |T w|^2_(M + B) + 1/2 |E w|^2_A - (T^T h + E^T d) . w    subject to   R w + C y = c

where the rows R = Z J_t T and their right side c = Z nu_e are those of the tasks, and y the
wrenches that meet them up to a compliance C. Hence

    T^T (h - (M + B) T w) + E^T (d - A E w) + R^T y = 0

The rates dw and dy solve the same system, differentiated: one factor serves both, and the rate of
nu_r = T w is exact. Linkages are small, so that the system is written out.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca

from framefree.control.port.sweeps import (
    BodyChain,
    BodyRates,
    LoadWithRate,
    NearestVelocity,
    VelocityRequest,
)
from framefree.control.qp.factor import SymmetricFactor
from framefree.control.shared.model import ModelState
from framefree.motion.loops import BodyMath, Tape
from framefree.motion.spatial import Inertia, Matrix
from framefree.motion.state import Jacobian


class ClosedChain(BodyChain):
    """The bodies of a machine with loops or couplings at a state.

    Parameters
    ----------
    tape, x, v
        As of `BodyChain`: of the tree of joints, closed.
    state : ModelState
        The same state in independent velocities.
    """

    def __init__(self, tape: Tape, x: Sequence[Any], v: Sequence[Any], state: ModelState) -> None:
        super().__init__(tape, x, v)
        self.state = state
        bodies = state.model.machine.bodies
        self.jacobians = [
            Jacobian(
                *(tape.call(BodyMath.twist_to_link, i, part) for part in state.jacobian(body.name))
            )
            for i, body in enumerate(bodies)
        ]

    def solve(
        self, request: VelocityRequest, last: Callable[[int, NearestVelocity], None]
    ) -> NearestVelocity:
        """Return the velocity nearest to what is asked for, and its rate."""
        system = _IndependentSystem(self, request)
        w, y = system.solution
        velocity = self.spread(w)
        dw = system.rate(w, y, velocity.twists)
        result = NearestVelocity(velocity, self.spread(dw, w), system.pivot, request)
        for i in range(self.count):
            last(i, result)
        return result

    def spread(self, w: Matrix, turned: Matrix | None = None) -> BodyRates:
        """Return what T w, E w are for every body; with `turned`, dT/dt and dE/dt times it more."""
        state, machine = self.state, self.state.model.machine
        v = state.E @ w
        twists = [J.value @ w for J in self.jacobians]
        if turned is not None:
            v = v + state.E_rate @ turned
            twists = [xi + J.rate @ turned for xi, J in zip(twists, self.jacobians, strict=True)]
        v = ca.densify(v)
        rates = [v[machine.v_slice[joint.name], :] for joint in machine.joints]
        return BodyRates([ca.densify(xi) for xi in twists], rates, [])


class _TaskRows(NamedTuple):
    """R (m x n), c (m) and the diagonal (m) of C, each with its rate."""

    R: Matrix
    c: Matrix
    C: Matrix
    R_rate: Matrix
    c_rate: Matrix
    C_rate: Matrix


class _IndependentSystem:
    """The equations at the top of this file."""

    def __init__(self, chain: ClosedChain, request: VelocityRequest) -> None:
        self.chain, self.request = chain, request
        self.T, self.E = chain.jacobians, chain.state.E
        call, bodies = chain.tape.call, range(chain.count)
        self.barriers = [request.barrier(i) for i in bodies]
        self.inertias = [call(_inertia, i, rows) for i, rows in enumerate(self.barriers)]
        self.loads = [request.load(i) or LoadWithRate(ca.SX(6, 1), ca.SX(6, 1)) for i in bodies]
        self.drives = self._all_drives()

    def _all_drives(self) -> LoadWithRate:
        """Return d (nv) and its rate."""
        machine, none = self.chain.state.model.machine, LoadWithRate(None, None)
        columns = [ca.SX(machine.nv, 1), ca.SX(machine.nv, 1)]
        for joint, drive in zip(machine.joints, self.request.drives, strict=True):
            for column, own in zip(columns, drive or none, strict=True):
                if own is not None:
                    column[machine.v_slice[joint.name], :] = own
        return LoadWithRate(*columns)

    @cached_property
    def rotors(self) -> Matrix:
        """A (nv x nv)."""
        return ca.diagcat(ca.SX(0, 0), *(link.armature for link in self.chain.tape.model.links))

    @cached_property
    def tasks(self) -> _TaskRows | None:
        """The rows of all tasks; None where there are none."""
        parts, give = [], self.request.give
        for k, task in enumerate(self.request.tasks):
            J = self.T[task.body]
            R, R_rate = task.frame.twist_of(J.value), task.frame.twist_of(J.rate)
            c, c_rate = task.twist, task.rate
            if task.rows is not None:
                Z, dZ = task.rows
                R, R_rate, c, c_rate = Z @ R, Z @ R_rate + dZ @ R, Z @ c, Z @ c_rate + dZ @ c
            soft = ca.SX(task.size, 1)
            C = (soft, soft)
            if give is not None:
                C = (give.value * self.request.softness[k], give.rate * self.request.softness[k])
            parts.append((R, c, C[0], R_rate, c_rate, C[1]))
        return _TaskRows(*map(_stacked, zip(*parts, strict=True))) if parts else None

    # ------------------------------------------------------------------ value

    @cached_property
    def factor(self) -> SymmetricFactor:
        """Of the inertia that w has."""
        total = self.E.T @ self.rotors @ self.E
        for J, M in zip(self.T, self.inertias, strict=True):
            total = total + J.value.T @ M @ J.value
        return SymmetricFactor(ca.densify(total))

    @cached_property
    def task_factor(self) -> SymmetricFactor:
        """Of R (inertia)^-1 R^T + C."""
        assert self.tasks is not None
        R = self.tasks.R
        return SymmetricFactor(ca.densify(R @ self.factor.solve(R.T) + ca.diag(self.tasks.C)))

    @property
    def pivot(self) -> Matrix | None:
        """The least pivot of the tasks; None without."""
        return None if self.tasks is None else self.task_factor.least

    @cached_property
    def solution(self) -> tuple[Matrix, Matrix]:
        """The velocities w (n), and y (rows of the tasks)."""
        right = self.E.T @ self.drives.value
        for i, J in enumerate(self.T):
            right = right + J.value.T @ self._load(i)
        return self._solve(right, None if self.tasks is None else self.tasks.c)

    def _load(self, i: int) -> Matrix:
        rows = self.barriers[i]
        return self.loads[i].value + (0 if rows is None else rows.load)

    def _solve(self, right: Matrix, goal: Matrix | None) -> tuple[Matrix, Matrix]:
        """Return w and y with (inertia) w - R^T y = right and R w + C y = goal."""
        free = self.factor.solve(ca.densify(right))
        if self.tasks is None or goal is None:
            return free, ca.SX(0, 1)
        R = self.tasks.R
        y = self.task_factor.solve(ca.densify(goal - R @ free))
        return free + self.factor.solve(ca.densify(R.T @ y)), y

    # ------------------------------------------------------------------ rate

    def rate(self, w: Matrix, y: Matrix, twists: Sequence[Matrix]) -> Matrix:
        """Return dw/dt (n)."""
        E, dE, A = self.E, self.chain.state.E_rate, self.rotors
        right = E.T @ (self.drives.rate - A @ (dE @ w))
        right = right + dE.T @ (self.drives.value - A @ (E @ w))
        for i, (J, M, nu) in enumerate(zip(self.T, self.inertias, twists, strict=True)):
            rows = self.barriers[i]
            change = self.loads[i].rate + (0 if rows is None else rows.load_rate(nu))
            right = right + J.value.T @ (change - M @ (J.rate @ w))
            right = right + J.rate.T @ (self._load(i) - M @ nu)
        if self.tasks is None:
            return self._solve(right, None)[0]
        right = right + self.tasks.R_rate.T @ y
        goal = self.tasks.c_rate - self.tasks.R_rate @ w - self.tasks.C_rate * y
        return self._solve(right, goal)[0]


def _inertia(body: BodyMath, rows: Any) -> Matrix:
    """Return the inertia of a body (6x6) with that of its barrier."""
    inertia: Inertia = body.inertia
    return inertia.matrix if rows is None else inertia.matrix + rows.inertia


def _stacked(parts: Sequence[Matrix]) -> Matrix:
    return ca.vertcat(*parts)
