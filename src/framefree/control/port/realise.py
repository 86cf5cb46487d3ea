"""The port of a machine: what is known of its forces, and how a port command becomes inputs.

In the maximal form, M dnu + J^T lam - F_known = tau. Known are weight, gyroscopic wrenches,
springs, dampers, friction and fluid; tau, the port, is everything else: actuators, contact,
whatever was not modelled. Only ``T^T tau`` moves the machine, so a command tau_c is realised by
inputs u with

    B u + bias = T^T tau_c

exactly where the actuators can do that, and otherwise by the u whose accelerations come closest in
the metric of the kinetic energy (Gauss): B^T M^-1 (T^T tau_c - B u - bias) = 0.

With loops or couplings T has a column for every independent velocity only
(`framefree.control.shared.model`), and forces that work against each other around a loop do not
count.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.shared.allocation import Allocated, Allocation
from framefree.control.shared.input_map import rank
from framefree.control.shared.limits import limited
from framefree.control.shared.model import Model, at_configurations
from framefree.geometry import se3
from framefree.kernel import Kernel, compile
from framefree.machine import Machine, Wrench
from framefree.machine.part import set_field
from framefree.machine.values import constant, constant_pose
from framefree.motion import forces
from framefree.motion.spatial import Inertia, Matrix, SpatialWrench, Step, Twist
from framefree.motion.state import State

SAMPLES = 8


@dataclass(frozen=True, eq=False)
class VirtualPort:
    """The virtual port of a machine.

    Parameters
    ----------
    machine : Machine
    independent : sequence of str, optional
        Of a machine with loops or couplings, the velocities that the others follow from; by default
        they are chosen, joints with actuators first.
    """

    machine: Machine
    independent: Sequence[str] | None = None

    def __post_init__(self) -> None:
        machine = self.machine
        if machine.tendons:
            raise ControlError(f"port laws know no tendons; `{machine.name}` has some")
        if machine.timed:
            raise ControlError(
                f"port laws know no time; `{machine.name}` has interactions that depend on it"
            )
        _ = self.model  # refuses velocities that are not independent
        set_field(self, "_on_bodies", _full_ports(machine))

    @cached_property
    def model(self) -> Model:
        """The machine in independent velocities."""
        return Model(self.machine, self.independent, whole_joints=False)

    # ------------------------------------------------------------------ what is known

    @property
    def known(self) -> tuple[str, ...]:
        """What the model knows of the forces, in words."""
        machine, known = self.machine, ["gyroscopic wrenches"]
        gravity = machine.gravity
        if not isinstance(gravity, np.ndarray) or gravity.any():
            known.insert(0, "weight")
        known += [f"spring `{one.name}`" for one in machine.springs]
        known += [f"damper `{one.name}`" for one in machine.dampers]
        known += [f"interaction `{one.name}`" for one in machine.interactions]
        for joint in machine.joints:
            parts = {
                "damping": isinstance(joint.damping, ca.SX) or np.any(joint.damping),
                "friction": joint.has_friction,
                "spring": joint.has_spring,
            }
            known += [f"{what} of joint `{joint.name}`" for what, has in parts.items() if has]
        return tuple(known + (["fluid"] if machine.fluid is not None else []))

    def measured(self, x: Any, v: Any, a: Any, parameters: Any = None) -> np.ndarray:
        """Return the forces (n) ``T^T tau`` of the whole port in a motion: M a + bias.

        On all velocities, n = nv, or on the independent ones of a machine with loops.

        Parameters
        ----------
        x, v, a : (nx,), (nv,), (nv,) or (batch, ...)
            Of the joints: configuration, velocity and acceleration.
        parameters : mapping, (n,) or (batch, n), optional
            Values of the machine's tunable numbers; by default their own.
        """
        return self._explained(x, v, a, None, parameters)[0]

    def residual(self, x: Any, v: Any, a: Any, u: Any, parameters: Any = None) -> np.ndarray:
        """Return what of the port (n) the actuators' inputs u do not explain: contact and such.

        Arguments as in `measured`, and u (nu,) or (batch, nu).
        """
        return self._explained(x, v, a, u, parameters)[1]

    def body_wrenches(self, x: Any, v: Any, a: Any, parameters: Any = None) -> np.ndarray:
        """Return what joints and port together put on every body: M dnu - F_known (bodies, 6).

        In body axes, linear first. A motion tells no more of single bodies: in tau - J^T lam the
        wrenches lam of the joints may be anything. The joints' own springs, friction and rotors
        are not part of it; what they need is left in ``measured - T^T (these)``.
        """
        return self._explained(x, v, a, None, parameters)[2]

    def residual_of(self, run: Any, parameters: Any = None) -> np.ndarray:
        """Return `residual` at every row of a run, (rows, n) or (batch, rows, n).

        The run must be of the same joints and inputs, with accelerations recorded:
        ``simulate(..., record=("acceleration", ...))``.

        Parameters
        ----------
        run : Run
        parameters : mapping, (n,) or (batch, n), optional
            Values of the tunable numbers, as they were given to `simulate`; by default their own.

        Raises
        ------
        ControlError
            If the run has no accelerations, or other joints or inputs.
        """
        if "acceleration" not in run.signals:
            raise ControlError(
                "the run has no accelerations: record them by "
                '`simulate(..., record=("energy", "acceleration"))`'
            )
        parts = [np.asarray(part) for part in (run.x, run.v, run.signals["acceleration"], run.u)]
        machine, sizes = self.machine, [part.shape[-1] for part in parts]
        if sizes != [machine.nx, machine.nv, machine.nv, machine.nu]:
            raise ControlError(
                f"the run has {sizes[0]} coordinates, {sizes[1]} velocities and {sizes[3]} inputs; "
                f"`{machine.name}` has {machine.nx}, {machine.nv} and {machine.nu}"
            )
        rows = parts[0].shape[:-1]
        x, v, a, u = (part.reshape(-1, part.shape[-1]) for part in parts)
        if np.ndim(parameters) == 2:  # one row of values for each trajectory
            parameters = np.repeat(np.asarray(parameters, float), rows[-1], axis=0)
        return self.residual(x, v, a, u, parameters).reshape(*rows, self.model.n)

    def _explained(
        self, x: Any, v: Any, a: Any, u: Any, parameters: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the whole port, its residual, and the wrenches on bodies."""
        machine = self.machine
        rows = np.shape(x)[:-1]
        u = np.zeros((*rows, machine.nu)) if u is None else u
        given = parameters is None or isinstance(parameters, Mapping)
        numbers = machine.parameters.values(parameters) if given else np.asarray(parameters, float)
        tunable = [np.broadcast_to(numbers, (*rows, numbers.shape[-1]))] if len(numbers) else []
        whole, rest, wrenches = self._kernel(x, v, a, u, *tunable)
        return whole, rest, wrenches.reshape(*rows, len(machine.bodies), 6)

    @cached_property
    def _kernel(self) -> Kernel:
        machine = self.machine
        x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
        a, u = ca.SX.sym("a", machine.nv), ca.SX.sym("u", machine.nu)
        reduced = self.model.at(x, v)
        tree = reduced.tree
        whole = reduced.reduced(tree.inverse(a))
        rest = whole - reduced.B @ u - reduced.input_bias
        wrenches = ca.vertcat(ca.SX(0, 1), *_needed(tree, a))
        symbols = machine.parameters.symbols
        inputs = {"x": x, "v": v, "a": a, "u": u}
        inputs |= {"parameters": symbols} if len(machine.parameters) else {}
        outputs = [ca.densify(ca.SX(part)) for part in (whole, rest, wrenches)]
        names = ["measured", "residual", "wrenches"]
        return compile(ca.Function("port", [*inputs.values()], outputs, [*inputs], names))

    # ------------------------------------------------------------------ realisation

    @property
    def full(self) -> bool:
        """Whether there is an actuator, without limits, for every direction of every body."""
        return self._on_bodies is not None and not self.limited  # type: ignore[attr-defined]

    @cached_property
    def rank(self) -> int:
        """Number of directions, of n, that the actuators reach; at random states the least."""
        if self.full:
            return self.model.n
        return min(map(rank, self._samples), default=0)

    @property
    def exact(self) -> bool:
        """Whether every port command is realised."""
        return self.rank == self.model.n and not self.limited

    @cached_property
    def _samples(self) -> list[np.ndarray]:
        machine = self.machine
        if not machine.nu:
            return []
        x = ca.SX.sym("x", machine.nx)
        B = self.model.at(x, ca.SX(machine.nv, 1)).B
        return at_configurations(machine, x, B, self.model.samples(SAMPLES))

    def inputs_of_bodies(self, wrenches: list[Matrix]) -> Matrix:
        """Return inputs (nu) that put these wrenches (6 each, body axes) on the bodies."""
        machine, u = self.machine, ca.SX(self.machine.nu, 1)
        for wrench, actuator in zip(wrenches, self._on_bodies, strict=True):  # type: ignore[attr-defined]
            pose = se3.inverse(constant_pose(machine.frame(actuator.frame).pose))
            step = Step(se3.rotation(pose), se3.position(pose))
            inverse = ca.sparsify(ca.DM(np.linalg.inv(np.asarray(actuator.directions))), 1e-15)
            at_frame = step.wrench_out(SpatialWrench.of(wrench)).vector
            u[machine.u_slice[actuator.name]] = inverse @ at_frame
        return u

    def inputs_of_joints(self, x: Matrix, v: Matrix, force: Matrix) -> Allocated:
        """Return inputs (nu) for joint forces (nv), and the forces (n) that are not realised."""
        state = self.model.at(x, v)
        return self._allocation(state, state.reduced(force))

    @cached_property
    def _allocation(self) -> Allocation:
        return Allocation(self.model, limits=self.limited)

    @cached_property
    def limited(self) -> bool:
        """Whether anything limits what the actuators give: then not every command is realised."""
        return limited(self.machine)


def _needed(state: State, a: Matrix) -> list[Matrix]:
    """Return M dnu - F_known (6) of every body, in body axes."""
    machine = state.machine
    known, added = forces.body_wrenches(state.bodies), forces.added_masses(machine)
    needed = []
    for i, body in enumerate(machine.bodies):
        J, M = state.jacobian(body.name), Inertia.of(ca.SX(constant(body.moments.matrix6)))
        twist = Twist.of(ca.densify(ca.SX(state.bodies.twists[i])))
        rate = J.value @ a + J.rate @ state.v
        up = se3.rotation(state.bodies.poses[i]).T @ -ca.SX(machine.gravity)
        total = M.matrix @ (rate + ca.vertcat(up, ca.SX(3, 1)))
        total += twist.cross_wrench(M.times(twist)).vector
        total += 0 if added[i] is None else added[i] @ rate
        needed.append(total if known[i] is None else total - known[i])
    return needed


def _full_ports(machine: Machine) -> tuple[Any, ...] | None:
    """Return an actuator with six independent inputs for every body; None where one lacks it."""
    on_bodies: dict[str, Any] = {}
    for actuator in machine.actuators:
        if not isinstance(actuator, Wrench):
            if not actuator.nu or actuator.bias(ca.SX(9, 1), ca.SX(9, 1)) is not None:
                return None
            continue
        directions = actuator.directions
        constant = isinstance(directions, np.ndarray) and directions.shape == (6, 6)
        if constant and rank(directions) == 6:
            on_bodies.setdefault(machine.frame(actuator.frame).body, actuator)
    if any(body.name not in on_bodies for body in machine.bodies):
        return None
    return tuple(on_bodies[body.name] for body in machine.bodies)


def has_joint_part(machine: Machine, i: int) -> bool:
    """Whether joint i needs a force of its own: for rotors, springs, damping or friction."""
    joint = machine.joints[i]
    numbers = (joint.armature, joint.damping)
    several = any(isinstance(value, ca.SX) or np.any(value) for value in numbers)
    return bool(several or joint.has_spring or joint.has_friction)
