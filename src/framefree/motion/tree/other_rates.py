"""The same motion in other rates w: v = Y(x) w, with Y (nv x m) of full row rank.

    M_w = Y^T M Y,    C_w = Y^T (M dY/dt + C Y),    c_w = Y^T (c + M dY/dt w),    f_w = Y^T f

With dM/dt - 2C skew so is dM_w/dt - 2C_w; the equations M_w dw/dt + c_w + ... = f_w keep their form
[From2010, eq. (12) to (16), (23); errata E1-3]. Bounds of M carry over where Y is bounded and has
bounded inverse. Rates that can be named here:

    quaternion      w = dx/dt: a free joint has four numbers for three turns, so that M_w (nx x nx)
                    has rank nv; on the rates that keep quaternions at unit length it is bounded
    task            w = (v of the base, rate of an end frame in world axes, v of joints left over)
    task_euler      the same with the rates of position, roll, pitch and yaw of the base, as printed

`task` is the [eta; x_e] of [From2010, eq. (23) to (25)] for six joints, where it is square; with
fewer than six the end frame counts by its position, and joints beyond what is needed keep their own
velocities (errata E1-11). It is defined where the arm is not singular.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice
from typing import Any

import casadi as ca
import numpy as np

from framefree.geometry import quaternion, se3
from framefree.machine import Free, Joint, Machine, MachineError, Planar
from framefree.motion.spatial import Matrix

TASKS = ("task", "task_euler")
MOST = 5000
"""Choices of velocities for an end frame that are looked at."""


def quaternion_map(machine: Machine, x: Matrix) -> Matrix:
    """Return Y (nv x nx), the left inverse of A in dx/dt = A v, joint by joint."""
    blocks = []
    for joint in machine.joints:
        A = ca.SX(joint.kind.rate(x[machine.x_slice[joint.name], :]))
        blocks.append(ca.solve(A.T @ A, A.T) if joint.nv else ca.SX(0, joint.nx))
    return ca.diagcat(ca.SX(0, 0), *blocks)


def transformed(mass: Matrix, coriolis: Matrix, Y: Matrix, Y_rate: Matrix) -> Matrix:
    """Return C_w."""
    return Y.T @ (mass @ Y_rate + coriolis @ Y)


def map_rate(machine: Machine, Y: Matrix, x: Matrix, v: Matrix) -> Matrix:
    """Return dY/dt."""
    flat = ca.jtimes(ca.vec(ca.densify(Y)), x, machine.rate_matrix(x) @ v)
    return ca.reshape(flat, *Y.shape)


@dataclass(frozen=True)
class TaskRates:
    """The rates of a base and of an end frame in the place of a machine's velocities.

    Parameters
    ----------
    tree : Equations
        The tree formulation of the machine.
    frame : str
        The end frame.
    euler : bool
        Whether a free base counts by the rates of its position, roll, pitch and yaw.

    Raises
    ------
    MachineError
        Where fewer than three joints carry the frame.
    """

    tree: Any
    frame: str
    euler: bool = False

    def __post_init__(self) -> None:
        self.machine.frame(self.frame)  # refuses a frame that does not exist, by name
        if self.rows == 0:
            raise MachineError(
                f"`{self.machine.name}` has {len(self._moving)} velocities beside its base that "
                f"move the frame `{self.frame}`: task coordinates need three or more"
            )

    @property
    def machine(self) -> Machine:
        """The machine."""
        return self.tree.machine

    @cached_property
    def base(self) -> Joint | None:
        """The free or planar joint on the world that carries all; None for an arm that stands."""
        roots = [joint for joint in self.machine.joints if joint.parent == "world" and joint.nv]
        if len(roots) == 1 and isinstance(roots[0].kind, Free | Planar):
            return roots[0]
        return None

    @property
    def turns_by_angles(self) -> bool:
        """Whether roll, pitch and yaw of the base are among the coordinates."""
        return self.euler and self.base is not None and isinstance(self.base.kind, Free)

    @cached_property
    def arm(self) -> list[int]:
        """Places of all velocities but the base's."""
        own = range(0) if self.base is None else _places(self.machine, self.base.name)
        return [k for k in range(self.machine.nv) if k not in own]

    @cached_property
    def rows(self) -> int:
        """How many rates the end frame has: 6, or 3 of its position."""
        return 6 if len(self._moving) >= 6 else 3 if len(self._moving) >= 3 else 0

    @cached_property
    def _moving(self) -> list[int]:
        """Places of the velocities of the arm that move the frame."""
        return [k for k in self.arm if np.abs(self._samples[:, :, k]).max() > 1e-12]

    @cached_property
    def active(self) -> list[int]:
        """Places of the velocities that the end frame's rates replace; the others stay.

        Of all choices the one in which the frame is best moved at most configurations.
        """
        J = self._samples[:, : self.rows, :]

        def moved(chosen: tuple[int, ...]) -> float:
            return float(np.median(np.abs(np.linalg.det(J[:, :, chosen]))))

        choices = combinations(self._moving, self.rows)
        best = max(islice(choices, MOST), key=moved)
        if moved(best) < 1e-12 * np.abs(J).max() ** self.rows:
            raise MachineError(
                f"the joints of `{self.machine.name}` beside its base cannot move the frame "
                f"`{self.frame}` in {self.rows} directions: it has no task coordinates"
            )
        return sorted(best)

    @property
    def linear(self) -> np.ndarray:
        """Which of the rates (nv,) are of positions, in m/s, so far as base and end go."""
        marks = np.zeros(self.machine.nv, bool)
        if self.base is not None:
            start = self.machine.v_slice[self.base.name].start
            marks[start : start + (3 if isinstance(self.base.kind, Free) else 2)] = True
        marks[self.active[:3]] = True
        return marks

    def map(self, state: Any) -> Matrix:
        """Return Y (nv x nv) at a state: v = Y w.

        The rates w stand where the velocities do that they replace: first the end frame's velocity,
        then its angular velocity, both in world axes, in the places of `active`.
        """
        nv = self.machine.nv
        J = self._world_jacobian(state)[: self.rows, :]
        others = [k for k in range(nv) if k not in self.active]
        Y = ca.SX(nv, nv)
        Y[others, others] = self._base_map(state)[others, others]
        C = ca.densify(J[:, self.active])
        Y[self.active, self.active] = ca.solve(C, ca.SX.eye(self.rows))
        Y[self.active, others] = -ca.solve(C, ca.densify(J[:, others] @ Y[others, others]))
        return Y

    def rates(self, state: Any) -> Matrix:
        """Return the matrix (nv x nv) of w per v, the inverse of `map`."""
        nv = self.machine.nv
        W = ca.SX.eye(nv)
        others = [k for k in range(nv) if k not in self.active]
        W[others, others] = ca.solve(ca.densify(self._base_map(state)[others, others]),
                                     ca.SX.eye(len(others)))  # fmt: skip
        W[self.active, :] = self._world_jacobian(state)[: self.rows, :]
        return W

    def _base_map(self, state: Any) -> Matrix:
        """Return the identity, or v of a free base per rate of its position and angles."""
        Y = ca.SX.eye(self.machine.nv)
        if self.turns_by_angles and self.base is not None:
            at = _places(self.machine, self.base.name)
            R = quaternion.to_rotation(state.x[self.machine.x_slice[self.base.name], :][3:7])
            Y[at[:3], at[:3]] = R.T
            Y[at[3:], at[3:]] = _turning(R)
        return Y

    def _world_jacobian(self, state: Any) -> Matrix:
        """Return velocity of the frame's origin and its angular velocity, in world axes, per v."""
        R = se3.rotation(state.frame_pose(self.frame))
        J = state.jacobian(self.frame).value
        return ca.vertcat(R @ J[:3, :], R @ J[3:, :])

    @cached_property
    def _samples(self) -> np.ndarray:
        """World Jacobians (n, 6, nv) at a few configurations, with tunable numbers as they are."""
        x, machine = ca.SX.sym("x", self.machine.nx), self.machine
        J = self._world_jacobian(self.tree.at(x))
        function = ca.Function("J", [x, machine.parameters.symbols], [ca.densify(J)])
        starts = machine.numeric.random(np.random.default_rng(0), 8)
        return np.array([function(one, machine.parameters.defaults).full() for one in starts])


def _turning(R: Matrix) -> Matrix:
    """Return the body rate per rate of roll, pitch and yaw of R = Rz(yaw) Ry(pitch) Rx(roll).

    Not defined at pitch 90 degrees, where R has no roll.
    """
    cosine = ca.sqrt(R[2, 1] ** 2 + R[2, 2] ** 2)
    c, s = R[2, 2] / cosine, R[2, 1] / cosine
    return ca.blockcat([[1, 0, R[2, 0]], [0, c, R[2, 1]], [0, -s, R[2, 2]]])


def _places(machine: Machine, joint: str) -> list[int]:
    return list(range(machine.v_slice[joint].start, machine.v_slice[joint].stop))
