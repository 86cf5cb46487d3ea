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

from framefree.control.allocation import Allocation
from framefree.control.law import ControlError
from framefree.control.model import Model
from framefree.geometry import se3
from framefree.machine import Machine, Wrench
from framefree.machine.part import set_field
from framefree.machine.values import constant_pose
from framefree.motion.actuation import input_bias, input_matrix
from framefree.motion.maximal import Maximal
from framefree.motion.spatial import Matrix, Step
from framefree.motion.spatial import Wrench as SpatialWrench
from framefree.motion.tree import Tree

SINGULAR = 1e-9
"""Share of the largest singular value below which one counts as zero."""

SAMPLES = 8


@dataclass(frozen=True, eq=False)
class Port:
    """The virtual port of a machine without loops.

    Parameters
    ----------
    machine : Machine
    """

    machine: Machine

    def __post_init__(self) -> None:
        machine = self.machine
        if machine.loops or machine.couplings:
            raise ControlError(
                f"port laws are for trees of bodies; `{machine.name}` has loops or couplings"
            )
        set_field(self, "_on_bodies", _full_ports(machine))

    # ------------------------------------------------------------------ what is known

    @property
    def known(self) -> tuple[str, ...]:
        """What the model knows of the forces, in words."""
        machine, found = self.machine, ["gyroscopic wrenches"]
        gravity = machine.gravity
        if not isinstance(gravity, np.ndarray) or gravity.any():
            found.insert(0, "weight")
        found += [f"spring `{one.name}`" for one in machine.springs]
        found += [f"damper `{one.name}`" for one in machine.dampers]
        for joint in machine.joints:
            parts = {
                "damping": isinstance(joint.damping, ca.SX) or np.any(joint.damping),
                "friction": joint.has_friction,
                "spring": joint.has_spring,
            }
            found += [f"{what} of joint `{joint.name}`" for what, has in parts.items() if has]
        return tuple(found + (["fluid"] if machine.fluid is not None else []))

    @property
    def unknown(self) -> tuple[str, ...]:
        """What the port must account for beside the actuators."""
        return ("contact", "disturbances", "forces that are not modelled")

    @property
    def directions(self) -> int:
        """Number of directions of the port that move the machine, of 6N."""
        return self.machine.nv

    @cached_property
    def equations(self) -> Maximal:
        """The maximal form."""
        return Maximal(self.machine)

    def measured(self, x: Any, v: Any, a: Any) -> np.ndarray:
        """Return the joint forces (nv) ``T^T tau`` of the whole port in a motion: M a + bias.

        x, v, a are of the joints.
        """
        return np.asarray(self._inverse(*map(ca.DM, (x, v, a))).full()).ravel()

    def residual(self, x: Any, v: Any, a: Any, u: Any) -> np.ndarray:
        """Return what of the port (nv) the actuators' inputs u do not explain: what is unknown."""
        given = self._actuated(*map(ca.DM, (x, v, u))).full().ravel()
        return self.measured(x, v, a) - given

    @cached_property
    def _inverse(self) -> ca.Function:
        x, v, a = (ca.SX.sym(n, k) for n, k in self._sizes("x", "v", "a"))
        return ca.Function("port", [x, v, a], [Tree(self.machine).at(x, v).inverse(a)])

    @cached_property
    def _actuated(self) -> ca.Function:
        x, v, u = (ca.SX.sym(n, k) for n, k in self._sizes("x", "v", "u"))
        state = Tree(self.machine).at(x, v)
        return ca.Function("actuated", [x, v, u], [input_matrix(state) @ u + input_bias(state)])

    def _sizes(self, *names: str) -> list[tuple[str, int]]:
        machine = self.machine
        sizes = {"x": machine.nx, "v": machine.nv, "a": machine.nv, "u": machine.nu}
        return [(name, sizes[name]) for name in names]

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
        return int(min((_rank(B) for B in self._samples), default=0))

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
        values = machine.parameters
        inputs = [x, *([values.symbols] if len(values) else [])]
        B = ca.Function("B", inputs, [ca.densify(input_matrix(Tree(machine).at(x)))])
        more = [values.values()] if len(values) else []
        return [B(machine.random(rng), *more).full() for _ in range(SAMPLES)]

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

    def inputs_of_joints(self, x: Matrix, v: Matrix, force: Matrix) -> tuple[Matrix, Matrix]:
        """Return inputs (nu) for joint forces (nv), and the joint forces that are not realised."""
        if not self.machine.nu:
            return ca.SX(0, 1), force
        found = self._allocation(self._allocation.model.at(x, v), force)
        return found.u, found.unrealised

    @cached_property
    def _allocation(self) -> Allocation:
        return Allocation(Model(self.machine), limits=self.limited)

    @cached_property
    def limited(self) -> bool:
        """Whether inputs have limits: then not every command is realised."""
        bounds = np.concatenate(self.machine.input_limits)
        return bool(np.isfinite(bounds).any() or len(self.machine.input_polytope[1]))


def _rank(B: np.ndarray) -> int:
    sizes = np.linalg.svd(B, compute_uv=False)
    return int((sizes > SINGULAR * max(sizes.max(initial=0.0), 1e-300)).sum())


def _full_ports(machine: Machine) -> tuple[Any, ...] | None:
    """Return an actuator with six independent inputs for every body; None where one lacks it."""
    found: dict[str, Any] = {}
    for actuator in machine.actuators:
        if not isinstance(actuator, Wrench):
            if not actuator.nu or actuator.bias(ca.SX(9, 1), ca.SX(9, 1)) is not None:
                return None
            continue
        directions = actuator.directions
        constant = isinstance(directions, np.ndarray) and directions.shape == (6, 6)
        if constant and _rank(directions) == 6:
            found.setdefault(machine.frame(actuator.frame).body, actuator)
    if any(body.name not in found for body in machine.bodies):
        return None
    return tuple(found[body.name] for body in machine.bodies)


def has_joint_part(machine: Machine, i: int) -> bool:
    """Whether joint i needs a force of its own: for rotors, springs, damping or friction."""
    joint = machine.joints[i]
    numbers = (joint.armature, joint.damping)
    several = any(isinstance(value, ca.SX) or np.any(value) for value in numbers)
    return bool(several or joint.has_spring or joint.has_friction)
