"""What of a machine goes into MJCF for MuJoCo as the plant, and what is left to us."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from framefree.machine import Free, Machine, Planar, Spherical
from framefree.machine.actuators import TendonActuator
from framefree.machine.formats.write_mjcf import to_mjcf
from framefree.machine.formats.write_mjcf_tendons import written_as_compensation
from framefree.machine.formats.writing import WriteError
from framefree.machine.joints import Continuous
from framefree.machine.values import is_symbolic
from framefree.motion import forces
from framefree.simulate.errors import SimulationError
from framefree.simulate.runners.mujoco_sliders import SlidersAsBodies

Matrix = Any


class MjcfPart:
    """What of a machine goes into MJCF, and what is left to us."""

    def __init__(self, machine: Machine, disturbances: Sequence[Any]) -> None:
        self.joint_fields = {joint.name: _ours(joint) for joint in machine.joints}
        self.carried, self.fluid, self.tendons, self.actuators = (
            (),
            machine.fluid is not None,
            True,
            False,
        )
        self.fluid = self.fluid and self._writes(machine)
        self.carried = () if self.fluid else written_as_compensation(machine.numeric)
        self.tendons = self._writes(machine)
        pulls = any(isinstance(a, TendonActuator) for a in machine.actuators)
        self.actuators = self.tendons or not pulls
        self.actuators = self.actuators and self._writes(machine)
        self._check(machine)
        self.applied_by_us = [
            *(f"spring `{s.name}`" for s in machine.springs if s not in self.carried),
            *(f"damper `{damper.name}`" for damper in machine.dampers),
            *(f"interaction `{force.name}`" for force in machine.interactions),
            *(f"tendon `{tendon.name}`" for tendon in machine.tendons if not self.tendons),
            *(
                f"friction of tendon `{t.name}`"
                for t in machine.tendons
                if self.tendons and t.friction
            ),
            *(["fluid"] if machine.fluid is not None and not self.fluid else []),
            *(
                f"{field} of joint `{name}`"
                for name, names in self.joint_fields.items()
                for field in names
                if field != "friction_asymmetry"
            ),
            *(
                [f"actuator `{actuator.name}`" for actuator in machine.actuators]
                if not self.actuators
                else []
            ),
            *(f"disturbance of `{disturbance.target}`" for disturbance in disturbances),
        ]

    def text(self, machine: Machine) -> str:
        """Return a machine, in numbers, as MJCF without what is left to us."""
        without = ["range", "velocity_limit"]  # data of controllers
        without += [] if self.actuators else ["actuator", "effort_limit"]
        machine = self.machine(machine)
        return to_mjcf(SlidersAsBodies(machine).replaced(machine), without=without)

    def _writes(self, machine: Machine) -> bool:
        try:
            self.text(machine.numeric)
        except WriteError:
            return False
        return True

    def left(self, machine: Machine) -> Machine:
        """Return a machine with the springs, dampers, tendons and fluid that are left to us."""
        springs = tuple(part for part in machine.springs if part not in self.carried)
        tendons = machine.tendons
        if self.tendons:
            tendons = tuple(replace(t, stiffness=0.0, damping=0.0) for t in machine.tendons)
        fluid = None if self.fluid else machine.fluid
        return replace(machine, springs=springs, tendons=tendons, fluid=fluid)

    def _check(self, machine: Machine) -> None:
        try:
            self.text(machine.numeric)
        except WriteError as error:
            raise SimulationError(f"MuJoCo cannot be the plant: {error}") from None

    def machine(self, machine: Machine) -> Machine:
        """Return a machine, in numbers, without what is left to us."""
        joints = [
            replace(joint, **dict.fromkeys(self.joint_fields[joint.name], 0.0))
            for joint in machine.joints
        ]
        fluid = machine.fluid if self.fluid else None
        tendons = [replace(t, friction=0.0) for t in machine.tendons if self.tendons]
        # Inputs are activations, which the loop moves itself.
        actuators = [
            a if a.activation is None else replace(a, activation=None)
            for a in (machine.actuators if self.actuators else ())
        ]
        return replace(
            machine,
            joints=joints,
            springs=self.carried,
            dampers=(),
            interactions=(),
            tendons=tendons,
            fluid=fluid,
            actuators=actuators,
            keyframes=(),
        )

    def joint_forces(
        self, machine: Machine, x: Matrix, v: Matrix, *, friction: bool = True
    ) -> Matrix:
        """Return the joint forces (nv) that are left to us, with or without friction of joints."""
        total = -forces.tendon_resistance(self.left(machine), x, v)
        for joint in machine.joints:
            fields, span = self.joint_fields[joint.name], machine.v_slice[joint.name]
            q, rate = x[machine.x_slice[joint.name]], v[span]
            if friction and "friction" in fields:
                total[span] -= joint.friction_force(rate)
            if "damping" in fields:
                total[span] -= joint.damping_force(rate)
            if "stiffness" in fields:
                total[span] -= joint.spring_force(q)
        return total


def _ours(joint: Any) -> tuple[str, ...]:
    """Return the fields of a joint that MJCF cannot express, or not as we mean them."""
    fields = []
    if joint.has_friction:
        fields += ["friction", "friction_asymmetry"]
    if (is_symbolic(joint.damping) or np.any(joint.damping)) and not _says(joint, "damping"):
        fields.append("damping")
    at_rest = not joint.has_spring or np.array_equal(joint.rest, joint.kind.neutral)
    sprung = joint.has_spring and isinstance(joint.kind, Free | Planar | Spherical | Continuous)
    if sprung and not (isinstance(joint.kind, Spherical) and at_rest and _says(joint, "stiffness")):
        fields.append("stiffness")
    return tuple(fields)


def _says(joint: Any, field: str) -> bool:
    """Whether MJCF has words for a joint's damping or stiffness along several velocities."""
    values = getattr(joint, field)
    if not isinstance(joint.kind, Free | Planar | Spherical):
        return True
    # one number for all axes, which is the same along those of the parent and of the child
    alike = values[:2] if isinstance(joint.kind, Planar) else values
    return not is_symbolic(values) and len(set(alike.tolist())) == 1
