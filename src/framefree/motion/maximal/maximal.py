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

import casadi as ca
import numpy as np

from framefree.geometry import quaternion, se3
from framefree.kernel import Kernel
from framefree.machine import Machine, MachineError
from framefree.machine.values import constant_pose
from framefree.motion import forces
from framefree.motion.equations import Equations, Output, Quantity
from framefree.motion.maximal.kinematics import MaximalModel, stack, step_of
from framefree.motion.maximal.state import MaximalState
from framefree.motion.maximal.sweeps import LoopedMaximal, supports_loops
from framefree.motion.spatial import Matrix, Twist

Outputs = dict[str, Output]

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
    """

    name = "maximal"

    def __init__(self, machine: Machine, stabilisation: float = 0.0) -> None:
        super().__init__(machine)
        self.model = MaximalModel(machine, stabilisation)
        self._latest: MaximalState | None = None
        nx, nv = self.model.nx, self.model.nv
        self.sizes = {
            "x": nx,
            "v": nv,
            "a": nv,
            "force": nv,
            "joint_force": machine.nv,
            "joint_x": machine.nx,
            "joint_v": machine.nv,
        }
        driven = ("x", "v", "force", "joint_force")
        self.quantities = {
            "mass": Quantity(("x",), self._mass),
            "bias": Quantity(("x", "v"), self._bias),
            "coriolis": Quantity(("x", "v"), self._coriolis),
            "gravity": Quantity(("x",), self._gravity),
            "forward": Quantity(driven, self._forward),
            "inverse": Quantity(("x", "v", "a"), self._inverse),
            "joint_inverse": Quantity(("x", "v", "a", "force"), self._joint_inverse),
            "body_pose": Quantity(("x",), self._body_pose),
            "body_velocity": Quantity(("x", "v"), self._body_velocity),
            "body_acceleration": Quantity(("x", "v", "a"), self._body_acceleration),
            "energy": Quantity(("x", "v"), self._energy),
            "dissipation": Quantity(("x", "v"), self._dissipation),
            "momentum": Quantity(("x", "v"), self._momentum),
            "power": Quantity(driven, self._power),
            "joint_wrench": Quantity(driven, self._joint_wrench),
            "loop_wrench": Quantity(driven, self._loop_wrench),
            "multipliers": Quantity(driven, self._multipliers),
            "constraints": Quantity(("x",), self._constraints),
            "constraint_bias": Quantity(("x", "v"), self._constraint_bias),
            "violation": Quantity(("x",), self._violation),
            "kkt": Quantity(driven, self._kkt),
            "schur": Quantity(("x",), self._schur),
            "projector": Quantity(("x",), self._projector),
            "mobility": Quantity(("x",), self._mobility),
            "project": Quantity(("x", "v"), self._project),
            "respond": Quantity(("x", "force"), self._respond),
            "stacked_jacobian": Quantity(("x",), self._stacked_jacobian),
            "motors": Quantity(("x",), self._motors),
            "known_force": Quantity(("x", "v"), self._known_force),
            "rate": Quantity(("x", "v"), self._rate),
            "joint_state": Quantity(("x", "v"), self._joint_state),
            "from_joints": Quantity(("joint_x", "joint_v"), self._from_joints),
        }

    def quantity(self, name: str) -> Quantity:
        """Return the recipe of a quantity, `jacobian:FRAME` included."""
        kind, _, which = name.partition(":")
        if kind == "jacobian":
            return Quantity(("x",), lambda x: self._jacobian(which))
        if kind == "jacobian_rate":
            # A frame's twist is a constant matrix times the twist of its body.
            return Quantity(("x", "v"), lambda x, v: self._jacobian_rate(which))
        if kind == "frame_pose":
            return Quantity(("x",), lambda x: self._frame_pose(which, x))
        return super().quantity(name)

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

    def redundancy(self, x: np.ndarray, tolerance: float = 1e-9) -> Redundancy:
        """Say which rows of J repeat others at a configuration, and what that leaves open.

        Singular values of J, its rows scaled to unit length, below `tolerance` count as zero.
        """
        J = np.asarray(self.functions["constraints"](np.asarray(x, float)).full())
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

    def _at(self, x: Matrix, v: Matrix | None = None) -> MaximalState:
        """Return the state (x, v), or some state at x if no velocity is given.

        The latest is kept: quantities of the same symbols share what they have traced.
        """
        latest = self._latest
        if latest is None or latest.x is not x or (v is not None and latest.v is not v):
            latest = MaximalState(self.model, x, ca.SX(self.model.nv, 1) if v is None else v)
            self._latest = latest
        return latest

    # Each method below gives the named outputs of one quantity for symbols of its inputs.

    def _mass(self, x: Matrix) -> Outputs:
        return {"mass": self._square(self._at(x).mass)}

    def _coriolis(self, x: Matrix, v: Matrix) -> Outputs:
        return {"coriolis": self._square(self._at(x, v).coriolis)}

    def _bias(self, x: Matrix, v: Matrix) -> Outputs:
        return {"bias": self._vector(self._port(self._at(x, v), ca.SX(self.model.nv, 1)))}

    def _inverse(self, x: Matrix, v: Matrix, a: Matrix) -> Outputs:
        return {"force": self._vector(self._port(self._at(x, v), a))}

    def _port(self, state: MaximalState, a: Matrix) -> Matrix:
        """Wrenches that give acceleration a while joints and motors carry nothing (lam = 0)."""
        rotors = state.armature @ (state.rows.rate_rows @ a - state.rows.rate_bias)
        motion = ca.diagcat(*self.model.inertias) @ a + state.rows.rate_rows.T @ rotors
        return motion - stack(state.known_wrenches) + state.rows.rate_rows.T @ state.resistance

    def _gravity(self, x: Matrix) -> Outputs:
        return {"gravity": self._vector(-stack(self._at(x).gravity_wrenches))}

    def _forward(self, x: Matrix, v: Matrix, force: Matrix, joint_force: Matrix) -> Outputs:
        state = self._at(x, v)
        solution = state.solve(force, joint_force)
        return {"a": self._vector(state.at.of_links(solution.accelerations))}

    def _joint_inverse(self, x: Matrix, v: Matrix, a: Matrix, force: Matrix) -> Outputs:
        found = self._at(x, v).joint_forces(a, force)[0]
        return {"joint_force": Output(found, (self.machine.nv,))}

    def _joint_wrench(self, x: Matrix, v: Matrix, force: Matrix, joint_force: Matrix) -> Outputs:
        state = self._at(x, v)
        rows = []
        for link, wrench in zip(state.links, state.solve(force, joint_force).wrenches, strict=True):
            turned = ca.diagcat(link.to_joint, link.to_joint) @ wrench
            rows.append(turned.T)
        return {"wrench": _table(rows, 6)}

    def _loop_wrench(self, x: Matrix, v: Matrix, force: Matrix, joint_force: Matrix) -> Outputs:
        state = self._at(x, v)
        multipliers = state.solve(force, joint_force).multipliers
        rows, start = [], 0
        for N in state.rows.loop_blocked:
            rows.append(-(N @ multipliers[start : start + N.shape[1]]).T)
            start += N.shape[1]
        return {"wrench": _table(rows, 6)}

    def _multipliers(self, x: Matrix, v: Matrix, force: Matrix, joint_force: Matrix) -> Outputs:
        state = self._at(x, v)
        solution = state.solve(force, joint_force)
        joints = [
            -d.N.T @ wrench
            for d, wrench in zip(state.at.directions, solution.wrenches, strict=True)
        ]
        value = ca.vertcat(stack(joints), solution.multipliers)
        return {"multipliers": Output(value, (len(self.rows),))}

    def _constraints(self, x: Matrix) -> Outputs:
        value = self._at(x).rows.all_rows
        return {"jacobian": Output(value, (len(self.rows), self.model.nv))}

    def _constraint_bias(self, x: Matrix, v: Matrix) -> Outputs:
        value = self._at(x, v).rows.all_right
        return {"bias": Output(value, (len(self.rows),))}

    def _violation(self, x: Matrix) -> Outputs:
        state = self._at(x)
        loops = [
            ca.SX(loop.residual(state.at.bodies.relative(loop)[2])) for loop in self.machine.loops
        ]
        size = sum(loop.size for loop in self.machine.loops)
        return {
            "joints": _table([error.T for error in state.at.violations], 6),
            "loops": Output(stack(loops), (size,)),
        }

    def _kkt(self, x: Matrix, v: Matrix, force: Matrix, joint_force: Matrix) -> Outputs:
        state = self._at(x, v)
        J, geared = state.rows.all_rows, self._geared()
        G = state.rows.rate_rows[geared, :]
        softness = ca.diag(1 / ca.diag(state.armature)[geared])
        m, g = J.shape[0], len(geared)
        matrix = ca.blockcat(
            [
                [ca.diagcat(*self.model.inertias), J.T, G.T],
                [J, ca.SX(m, m), ca.SX(m, g)],
                [G, ca.SX(g, m), -softness],
            ]
        )
        motors = state.rows.rate_rows.T @ (joint_force - state.resistance)
        right = ca.vertcat(
            force + stack(state.known_wrenches) + motors,
            state.rows.all_right,
            state.rows.rate_bias[geared],
        )
        size = right.shape[0]
        return {"matrix": Output(matrix, (size, size)), "right": Output(right, (size,))}

    def _geared(self) -> list[int]:
        """Return the indices of the velocities that turn a rotor."""
        diagonal = [link.armature for link in self.model.links]
        values = ca.diag(ca.diagcat(*diagonal)) if diagonal else ca.SX(0, 1)
        return [k for k in range(values.shape[0]) if not values[k].is_zero()]

    def _schur(self, x: Matrix) -> Outputs:
        self._refuse_massless()
        state, geared = self._at(x), self._geared()
        rows = ca.vertcat(state.rows.all_rows, state.rows.rate_rows[geared, :])
        inverse = ca.diagcat(*(ca.inv(ca.densify(M)) for M in self.model.inertias))
        softness = ca.diag(1 / ca.diag(state.armature)[geared])
        value = rows @ inverse @ rows.T + ca.diagcat(
            ca.SX(len(self.rows), len(self.rows)), softness
        )
        return {"schur": Output(value, value.shape)}

    def _refuse_massless(self) -> None:
        for body, M in zip(self.machine.bodies, self.model.inertias, strict=True):
            if M.is_constant() and np.linalg.matrix_rank(ca.DM(M).full()) < 6:
                raise MachineError(
                    f"the Schur complement needs bodies with mass: the inertia of `{body.name}` is "
                    "singular; `mobility` and `projector` do without"
                )

    def _mobility(self, x: Matrix) -> Outputs:
        return {"mobility": self._square(self._at(x).respond(ca.SX.eye(self.model.nv)))}

    def _projector(self, x: Matrix) -> Outputs:
        state = self._at(x)
        return {"projector": self._square(state.respond(state.mass))}

    def _project(self, x: Matrix, v: Matrix) -> Outputs:
        state = self._at(x)
        return {"velocity": self._vector(state.respond(state.mass @ v))}

    def _respond(self, x: Matrix, force: Matrix) -> Outputs:
        return {"a": self._vector(self._at(x).respond(force))}

    def _stacked_jacobian(self, x: Matrix) -> Outputs:
        value = self._at(x).stacked_jacobian
        return {"jacobian": Output(value, (self.model.nv, self.machine.nv))}

    def _motors(self, x: Matrix) -> Outputs:
        value = self._at(x).rows.rate_rows.T
        return {"motors": Output(value, (self.model.nv, self.machine.nv))}

    def _known_force(self, x: Matrix, v: Matrix) -> Outputs:
        state = self._at(x, v)
        passive = stack(state.passive_wrenches) - state.rows.rate_rows.T @ state.resistance
        rotors = state.rows.rate_rows.T @ (state.armature @ state.rows.rate_bias)
        return {
            "gravity": self._vector(stack(state.gravity_wrenches)),
            "gyroscopic": self._vector(stack(state.gyroscopic_wrenches) + rotors),
            "passive": self._vector(passive),
        }

    def _jacobian(self, frame: str) -> Outputs:
        found = self.machine.frame(frame)
        index = self.machine.body_index[found.body]
        value = ca.SX(6, self.model.nv)
        if index >= 0:
            step = step_of(constant_pose(found.pose))
            value[:, 6 * index : 6 * index + 6] = ca.vertcat(
                *step.twist_into(Twist.of(ca.SX.eye(6)))
            )
        return {"jacobian": Output(value, value.shape)}

    def _jacobian_rate(self, frame: str) -> Outputs:
        self.machine.frame(frame)
        return {"jacobian": Output(ca.SX(6, self.model.nv), (6, self.model.nv))}

    def _frame_pose(self, frame: str, x: Matrix) -> Outputs:
        value = self._at(x).at.bodies.pose(self.machine.frame(frame))
        return {"pose": Output(ca.SX(value), (4, 4))}

    def _body_pose(self, x: Matrix) -> Outputs:
        rows = [ca.vec(ca.densify(G).T).T for G in self._at(x).at.poses]
        table = _table(rows, 16)
        return {"pose": Output(table.value, (len(rows), 4, 4))}

    def _body_velocity(self, x: Matrix, v: Matrix) -> Outputs:
        return {"velocity": _table([xi.T for xi in self._at(x, v).at.twists], 6)}

    def _body_acceleration(self, x: Matrix, v: Matrix, a: Matrix) -> Outputs:
        return {"acceleration": _table([one.T for one in self._at(x, v).at.split(a)], 6)}

    def _energy(self, x: Matrix, v: Matrix) -> Outputs:
        state = self._at(x, v)
        potential = forces.potential(state.at.bodies, state.at.joint_x)
        return {"kinetic": Output(state.kinetic, ()), "potential": Output(potential, ())}

    def _dissipation(self, x: Matrix, v: Matrix) -> Outputs:
        state = self._at(x, v)
        return {"dissipation": Output(forces.dissipation(state.at.bodies, state.at.joint_v), ())}

    def _power(self, x: Matrix, v: Matrix, force: Matrix, joint_force: Matrix) -> Outputs:
        state = self._at(x, v)
        given = ca.dot(v, force) + ca.dot(state.at.joint_v, joint_force)
        return {
            "power": Output(given + forces.passive_power(state.at.bodies, state.at.joint_v), ())
        }

    def _momentum(self, x: Matrix, v: Matrix) -> Outputs:
        linear, angular, centroidal = forces.momentum(self._at(x, v).at.bodies)
        return {
            "linear": Output(linear, (3,)),
            "angular": Output(angular, (3,)),
            "centroidal": Output(centroidal, (3,)),
        }

    def _rate(self, x: Matrix, v: Matrix) -> Outputs:
        state = self._at(x, v)
        parts = []
        for i, xi in enumerate(state.at.twists):
            wxyz = x[7 * i + 3 : 7 * i + 7]
            parts.append(se3.rotation(state.at.poses[i]) @ xi[:3])
            parts.append(quaternion.rate(wxyz, xi[3:]))
        parts.append(state.at.kept_rates)
        return {"rate": Output(stack(parts), (self.model.nx,))}

    def _joint_state(self, x: Matrix, v: Matrix) -> Outputs:
        state = self._at(x, v)
        return {
            "joint_x": Output(state.at.joint_x, (self.machine.nx,)),
            "joint_v": Output(state.at.joint_v, (self.machine.nv,)),
        }

    def _from_joints(self, joint_x: Matrix, joint_v: Matrix) -> Outputs:
        x, v = self.model.from_joints(joint_x, joint_v)
        return {"x": Output(x, (self.model.nx,)), "v": Output(v, (self.model.nv,))}

    def _vector(self, value: Matrix) -> Output:
        return Output(value, (self.model.nv,))

    def _square(self, value: Matrix) -> Output:
        return Output(value, (self.model.nv, self.model.nv))


def _table(rows: list[Matrix], width: int) -> Output:
    value = ca.vertcat(*rows) if rows else ca.SX(0, width)
    return Output(value, (len(rows), width))
