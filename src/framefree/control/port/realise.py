"""The port of a machine: what is known of its forces, and how a port command becomes inputs.

In the maximal form, M dnu + J^T lam - F_known = tau. Known are weight, gyroscopic wrenches,
springs, dampers, friction and fluid; tau, the port, is everything else: actuators, contact,
whatever was not modelled. Only ``T^T tau`` moves the machine, so a command tau_c is realised by
inputs u with

    B u + bias = T^T tau_c

exactly where the actuators can do that, and otherwise by the u whose accelerations come closest in
the metric of the kinetic energy (Gauss): B^T M^-1 (T^T tau_c - B u - bias) = 0.
"""

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
from framefree.machine import Machine, Wrench
from framefree.machine.part import set_field
from framefree.machine.values import constant_pose
from framefree.motion.actuation import input_matrix
from framefree.motion.spatial import Matrix, SpatialWrench, Step
from framefree.motion.tree import Tree

SAMPLES = 8


@dataclass(frozen=True, eq=False)
class VirtualPort:
    """The virtual port of a machine without loops.

    Parameters
    ----------
    machine : Machine
    """

    machine: Machine

    def __post_init__(self) -> None:
        machine = self.machine
        if machine.closed:
            raise ControlError(
                f"port laws are for trees of bodies; `{machine.name}` has loops or couplings"
            )
        if machine.tendons:
            raise ControlError(f"port laws know no tendons; `{machine.name}` has some")
        if machine.timed:
            raise ControlError(
                f"port laws know no time; `{machine.name}` has interactions that depend on it"
            )
        set_field(self, "_on_bodies", _full_ports(machine))

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

    def measured(self, x: Any, v: Any, a: Any) -> np.ndarray:
        """Return the joint forces (nv) ``T^T tau`` of the whole port in a motion: M a + bias.

        x, v, a are of the joints.
        """
        return self._tree.functions["inverse"](x, v, a).full().ravel()

    def residual(self, x: Any, v: Any, a: Any, u: Any) -> np.ndarray:
        """Return what of the port (nv) the actuators' inputs u do not explain: contact and such."""
        B, bias = (self._tree.functions[name] for name in ("input_matrix", "input_bias"))
        return self.measured(x, v, a) - (B(x) @ ca.DM(u) + bias(x, v)).full().ravel()

    @cached_property
    def _tree(self) -> Tree:
        return Tree(self.machine)

    # ------------------------------------------------------------------ realisation

    @property
    def full(self) -> bool:
        """Whether there is an actuator, without limits, for every direction of every body."""
        return self._on_bodies is not None and not self.limited  # type: ignore[attr-defined]

    @cached_property
    def rank(self) -> int:
        """Number of directions, of nv, that the actuators reach; at random states the least."""
        if self.full:
            return self.machine.nv
        return min(map(rank, self._samples), default=0)

    @property
    def exact(self) -> bool:
        """Whether every port command is realised."""
        return self.rank == self.machine.nv and not self.limited

    @cached_property
    def _samples(self) -> list[np.ndarray]:
        machine, rng = self.machine, np.random.default_rng(0)
        if not machine.nu:
            return []
        x = ca.SX.sym("x", machine.nx)
        B = input_matrix(self._tree.at(x))
        return at_configurations(machine, x, B, machine.numeric.random(rng, SAMPLES))

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
        """Return inputs (nu) for joint forces (nv), and the joint forces that are not realised."""
        return self._allocation(self._allocation.model.at(x, v), force)

    @cached_property
    def _allocation(self) -> Allocation:
        return Allocation(Model(self.machine), limits=self.limited)

    @cached_property
    def limited(self) -> bool:
        """Whether anything limits what the actuators give: then not every command is realised."""
        return limited(self.machine)


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
