"""The maximal formulation: poses and twists of all bodies, joint forces explicit.

With nu the stacked body twists (6N), J nu = 0 what joints, loops and couplings block:

    M dnu + C nu + J^T lam = F + B joint_force + force,     J dnu = gamma

`force` is the port: wrenches (6N) on the bodies, in body axes, from anywhere. `joint_force` (nv)
are the motors, in the order of the machine's velocities; B spreads them on the bodies. F is what is
known: weight, springs, dampers, friction, fluid. lam is what the child exerts on the parent along
the blocked directions; the wrench that a joint carries is -N lam plus motor, friction and rotor.

The configuration x holds position and quaternion wxyz of every body (7N), then the coordinates of
custom joints and the angles of others; v is nu. Of these angles only the number of full turns is
used: the rest comes from the poses.
Accelerations are rates of body twists. `from_joints` and `joint_state` convert from and to the
machine's own state.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.geometry import se3
from framefree.kernel import Kernel
from framefree.machine import Free, Machine, MachineError
from framefree.motion.constrained import Constrained
from framefree.motion.equations import Equations
from framefree.motion.load import Load
from framefree.motion.maximal.groups import BodyGroup
from framefree.motion.maximal.inertial import InertialMatrices, inertial, inertial_motion
from framefree.motion.maximal.joints import kept_coordinates
from framefree.motion.maximal.kinematics import Kinematics, MaximalModel, stack
from framefree.motion.maximal.state import MaximalState
from framefree.motion.maximal.sweeps import LoopedMaximal, supports_loops
from framefree.motion.quantities import Outputs, Recipe, matrix, table, vector
from framefree.motion.spatial import Matrix
from framefree.motion.tree import Tree

LOOPED = 32
"""From so many bodies on, quantities that can be are compiled as loops over bodies."""


@dataclass(frozen=True)
class Redundancy:
    """Which constraint rows repeat others at a configuration, and what that leaves undetermined.

    Attributes
    ----------
    rows, rank : int
        Number of rows of J, and of independent ones.
    joints, loops, couplings : tuple of str
        Those whose wrenches (forces, for couplings) are not unique: loops and couplings then get
        the multipliers of least norm, and the joints' wrenches follow from these.
    """

    rows: int
    rank: int
    joints: tuple[str, ...]
    loops: tuple[str, ...]
    couplings: tuple[str, ...]

    @property
    def unique(self) -> bool:
        """Whether all joint wrenches are determined by the motion."""
        return self.rank == self.rows


class Maximal(Equations):
    """Equations of motion of any machine, with the poses and twists of all bodies.

    Parameters
    ----------
    machine : Machine
    stabilisation : float
        1/s; joints and loops that are apart come together at this rate. Zero: they stay apart.

    Notes
    -----
    `force` is a wrench on every body, in body axes (6N). Beside what every formulation has, there
    are

        from_joints(joint_x, joint_v)       x and v of a state of the joints
        joint_inverse(x, v, a, force)       motor forces (nv of the machine) for an acceleration
        kkt(x, v, force, joint_force)       matrix and right side of the whole system
        kkt_multipliers(...)                its lam, what the child exerts on the parent
        schur(x), projector(x), mobility(x), project(x, v), respond(x, force)
        stacked_jacobian(x)                 T (6N, nv of the machine): v = T joint_v
        motors(x)                           B (6N, nv of the machine): wrenches of joint forces
        known_force(x, v)                   gravity, gyroscopic and passive wrenches
        violation(x)                        how far joints and loops are apart
        inertial(x, v)                      M, C, J, K, ... of [Eslami2025] by name: velocities of
                                            mass centers, world axes (`inertial.py`)
        inertial_motion(x, v, force, joint_force)   dnu/dt and F_J in that layout
    """

    name = "maximal"
    offers = (*Tree.offers, "loop_wrench", "constraint", "constraint_force", "multipliers")
    keeps = True

    def __init__(self, machine: Machine, stabilisation: float = 0.0) -> None:
        super().__init__(machine)
        self.model = MaximalModel(machine, stabilisation)
        nx, nv = self.model.nx, self.model.nv
        self.sizes = {
            "x": nx,
            **dict.fromkeys(("v", "a", "v_r", "a_r", "force"), nv),
            **dict.fromkeys(("joint_force", "joint_v"), machine.nv),
            "joint_x": machine.nx,
            "u": machine.nu,
            "t": 1,
        }
        self.x_names, self.v_names = self._names()
        self.group = BodyGroup(self.model)
        both = ("x", "v", "force", "joint_force")
        self.own = {
            "joint_inverse": Recipe(("x", "v", "a", "force"), self._joint_inverse),
            "kkt": Recipe(both, self._kkt),
            "kkt_multipliers": Recipe(both, _kkt_multipliers),
            "violation": Recipe(("x",), self._violation),
            "schur": Recipe(("x",), self._schur),
            "projector": Recipe(("x",), _projector),
            "mobility": Recipe(("x",), _mobility),
            "project": Recipe(("x", "v"), _project),
            "respond": Recipe(("x", "force"), _respond),
            "stacked_jacobian": Recipe(("x",), _stacked_jacobian),
            "motors": Recipe(("x",), _motors),
            "known_force": Recipe(("x", "v"), _known_force),
            "inertial": Recipe(("x", "v"), inertial),
            "inertial_motion": Recipe(both, inertial_motion),
            "from_joints": Recipe(("joint_x", "joint_v"), self._from_joints),
        }

    def _names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return a name for every number of x and of v."""
        bodies = [body.name for body in self.machine.bodies]
        pose, twist = ("x", "y", "z", "qw", "qx", "qy", "qz"), ("vx", "vy", "vz", "wx", "wy", "wz")
        joints = self.machine.joints
        kept = [
            joints[i].x_names[k] for i in self.model.kept for k in kept_coordinates(joints[i].kind)
        ]
        return (
            (
                *(f"{name}.{part}" for name in bodies for part in pose),
                *kept,
            ),
            tuple(f"{name}.{part}" for name in bodies for part in twist),
        )

    # ------------------------------------------------------------------ the contract

    def at(self, x: Matrix, v: Matrix | None = None, t: Any = 0) -> MaximalState:
        """Return a symbolic state; without v the bodies are at rest."""
        return MaximalState(self, x, ca.SX(self.model.nv, 1) if v is None else v, t)

    def rate_matrix(self, x: Matrix) -> Matrix:
        """Return A (nx x 6N) with dx/dt = A v."""
        v = ca.SX.sym("v", self.model.nv)
        body = Free()
        blocks = [body.rate(x[7 * i : 7 * i + 7]) for i in range(len(self.machine.bodies))]
        kept = Kinematics(self.model, x, v).kept_rates
        return ca.vertcat(ca.diagcat(*blocks), ca.jacobian(kept, v))

    def deviation(self, x: Matrix, v: Matrix, a: Matrix) -> tuple[Matrix, Matrix]:
        """Return W (6N x 6N), that of bodies which move freely, and its rate along (v, a)."""
        blocks = [
            [se3.little_adjoint(column[6 * i : 6 * i + 6]) for i in range(v.shape[0] // 6)]
            for column in (v, a)
        ]
        W, W_rate = (ca.diagcat(*parts) if parts else ca.SX(0, 0) for parts in blocks)
        return W, W_rate

    def start(self, x: np.ndarray, v: np.ndarray, parameters: Any = None) -> tuple[Any, Any]:
        """Return poses and twists of the bodies for a state of the joints."""
        if self._closure is not None:
            x, v = self._closure.consistent(x, v, parameters)
        own = self.numbers("from_joints", parameters, joint_x=x, joint_v=v)
        return own[0], own[1]

    def restore(self, x: Matrix, v: Matrix, t: Matrix, rounds: int) -> tuple[Matrix, Matrix]:
        """Return a symbolic state with all joints together and all loops closed.

        Joint coordinates are read off the poses, and the poses built from them again.
        """
        parameters = self.machine.parameters
        more = [parameters.symbols] if len(parameters) else []
        joint_x, joint_v = self.functions["joint_state"](x, v, *more)
        if self._closure is not None:
            joint_x, joint_v = self._closure.restore(joint_x, joint_v, t, rounds)
        return self.functions["from_joints"](joint_x, joint_v, *more)

    @cached_property
    def _closure(self) -> Constrained | None:
        return Constrained(self.machine) if self.machine.closed else None

    def kernel(self, name: str) -> Kernel:
        """Return the compiled call of a quantity; for long machines a native loop over bodies."""
        long = len(self.machine.bodies) >= LOOPED and supports_loops(self.machine)
        if not long or self.model.stabilisation or name not in self.looped.programs:
            return super().kernel(name)
        if name not in self._kernels:
            self._kernels[name] = self.looped.programs[name]().compile()
        return self._kernels[name]

    @cached_property
    def looped(self) -> LoopedMaximal:
        """Programs that loop over the bodies, and the means to write others."""
        return LoopedMaximal(self.model)

    def inertial(self, x: Any, v: Any, parameters: Any = None) -> InertialMatrices:
        """Return the matrices of the inertial layout at a state, by the names of [Eslami2025]."""
        found = self.numbers("inertial", parameters, x=np.asarray(x, float), v=np.asarray(v, float))
        return InertialMatrices(*found)

    def redundancy(self, x: np.ndarray, tolerance: float = 1e-9) -> Redundancy:
        """Say which rows of J repeat others at a configuration, and what that leaves open.

        Singular values of J, its rows scaled to unit length, below `tolerance` count as zero.
        """
        J = self.numbers("constraint", x=np.asarray(x, float), v=np.zeros(self.model.nv))[0]
        lengths = np.linalg.norm(J, axis=1)
        J = J / np.where(lengths > 0, lengths, 1.0)[:, None]
        U, sizes, _ = np.linalg.svd(J)
        rank = int((sizes > tolerance).sum())
        open_rows = np.linalg.norm(U[:, rank:], axis=1) > np.sqrt(tolerance)

        def named(kind: str) -> tuple[str, ...]:
            return tuple(
                dict.fromkeys(
                    part
                    for (which, part), is_open in zip(self.rows, open_rows, strict=True)
                    if which == kind and is_open
                )
            )

        return Redundancy(len(J), rank, named("joint"), named("loop"), named("coupling"))

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        """For each row of J where it comes from: ("joint" | "loop" | "coupling", name)."""
        machine = self.machine
        found = [("joint", j.name) for j in machine.joints for _ in range(6 - j.nv)]
        found += [("loop", loop.name) for loop in machine.loops for _ in range(loop.size)]
        return (*found, *(("coupling", coupling.name) for coupling in machine.couplings))

    # ------------------------------------------------------------------ quantities of its own

    def _joint_inverse(self, state: MaximalState, a: Matrix, force: Matrix) -> Outputs:
        return {"joint_force": vector(state.joint_forces(a, force)[0])}

    def _violation(self, state: MaximalState) -> Outputs:
        loops = [
            ca.SX(loop.residual(state.bodies.relative(loop)[2])) for loop in self.machine.loops
        ]
        return {"joints": table(state.at.violations, 6), "loops": vector(stack(loops))}

    def _kkt(self, state: MaximalState, force: Matrix, joint_force: Matrix) -> Outputs:
        J, geared = state.held.all_rows, self.geared
        G = state.held.rate_rows[geared, :]
        softness = ca.diag(1 / ca.diag(state.armature)[geared])
        m, g = J.shape[0], len(geared)
        system = ca.blockcat(
            [
                [ca.diagcat(*self.model.inertias), J.T, G.T],
                [J, ca.SX(m, m), ca.SX(m, g)],
                [G, ca.SX(g, m), -softness],
            ]
        )
        motors = state.held.rate_rows.T @ (joint_force - state.resistance)
        right = ca.vertcat(
            force + stack(state.known_wrenches) + motors,
            state.held.all_right,
            state.held.rate_bias[geared],
        )
        return {"matrix": matrix(system), "right": vector(right)}

    @cached_property
    def geared(self) -> list[int]:
        """Indices of the velocities that turn a rotor."""
        diagonal = [link.armature for link in self.model.links]
        values = ca.diag(ca.diagcat(*diagonal)) if diagonal else ca.SX(0, 1)
        return [k for k in range(values.shape[0]) if not values[k].is_zero()]

    def _schur(self, state: MaximalState) -> Outputs:
        self._refuse_massless()
        geared = self.geared
        rows = ca.vertcat(state.held.all_rows, state.held.rate_rows[geared, :])
        inverse = ca.diagcat(*(ca.inv(ca.densify(M)) for M in self.model.inertias))
        softness = ca.diag(1 / ca.diag(state.armature)[geared])
        rigid = ca.SX(len(self.rows), len(self.rows))
        return {"schur": matrix(rows @ inverse @ rows.T + ca.diagcat(rigid, softness))}

    def _refuse_massless(self) -> None:
        for body, M in zip(self.machine.bodies, self.model.inertias, strict=True):
            if M.is_constant() and np.linalg.matrix_rank(ca.DM(M).full()) < 6:
                raise MachineError(
                    f"the Schur complement needs bodies with mass: the inertia of `{body.name}` is "
                    "singular; `mobility` and `projector` do without"
                )

    def _from_joints(self, state: None, joint_x: Matrix, joint_v: Matrix) -> Outputs:
        x, v = self.model.from_joints(joint_x, joint_v)
        return {"x": vector(x), "v": vector(v)}


def _kkt_multipliers(state: MaximalState, force: Matrix, joint_force: Matrix) -> Outputs:
    load = Load(state.machine, force=force, joint_force=joint_force)
    return {"multipliers": vector(state.kkt_multipliers(load))}


def _mobility(state: MaximalState) -> Outputs:
    return {"mobility": matrix(state.respond(ca.SX.eye(state.v.shape[0])))}


def _projector(state: MaximalState) -> Outputs:
    return {"projector": matrix(state.respond(state.mass))}


def _project(state: MaximalState) -> Outputs:
    """Nearest velocity that the joints allow, in the metric of M."""
    return {"velocity": vector(state.respond(state.mass @ state.v))}


def _respond(state: MaximalState, force: Matrix) -> Outputs:
    return {"a": vector(state.respond(force))}


def _stacked_jacobian(state: MaximalState) -> Outputs:
    return {"jacobian": matrix(state.stacked_jacobian)}


def _motors(state: MaximalState) -> Outputs:
    return {"motors": matrix(state.joint_jacobian.T)}


def _known_force(state: MaximalState) -> Outputs:
    G = state.joint_jacobian
    rotors = G.T @ (state.armature @ state.held.rate_bias)
    return {
        "gravity": vector(stack(state.gravity_wrenches)),
        "gyroscopic": vector(stack(state.gyroscopic_wrenches) + rotors),
        "passive": vector(stack(state.passive_wrenches) - G.T @ state.resistance),
    }
