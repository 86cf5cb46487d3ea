"""MuJoCo as the plant: the machine written as MJCF and stepped by an engine that we did not write.

Forces that MJCF cannot express are computed by us at the beginning of every step and applied as
generalised forces: springs, dampers and interactions between frames, a fluid other than MuJoCo's
(its added mass by the acceleration that our own equations give), smooth Coulomb friction, damping
and springs that differ between the axes of a joint, actuators and tendons that MJCF does not have,
disturbances, and constraints of the user. Contacts and stops are off.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import casadi as ca
import mujoco
import numpy as np

from framefree.kernel import Kernel, compile
from framefree.machine import Free, Machine, Planar, Spherical
from framefree.machine.actuators import TendonActuator
from framefree.machine.formats.mjcf_engine import mujoco_warnings
from framefree.machine.formats.write_mjcf import to_mjcf
from framefree.machine.formats.write_mjcf_tendons import written_as_compensation
from framefree.machine.formats.writing import WriteError
from framefree.machine.joints import Continuous
from framefree.machine.values import is_symbolic
from framefree.motion import forces
from framefree.motion.constrained import Constrained
from framefree.motion.load import Load
from framefree.motion.tree import Tree
from framefree.simulate.actuation import actuate
from framefree.simulate.disturbances import Moment
from framefree.simulate.errors import SimulationError
from framefree.simulate.integrators import Integrator, RungeKuttaMuntheKaas4, SemiImplicitEuler
from framefree.simulate.loop import ControlLoop
from framefree.simulate.noise import NoiseSource
from framefree.simulate.runners.adaptive import control_kernel, held_command
from framefree.simulate.runners.base import Clock, KeptRows, LoopStates, Runner
from framefree.simulate.user_rows import held_over_steps, user_constraints

Matrix = Any

_BAD = [
    int(getattr(mujoco.mjtWarning, f"mjWARN_BAD{name}"))
    for name in ("QPOS", "QVEL", "QACC", "CTRL")
]
"""Warnings of values that MuJoCo does not take: not finite, or beyond 1e10."""


class MujocoRunner(Runner):
    """Steps a machine by MuJoCo, under the same compiled law.

    Attributes
    ----------
    model, data : mujoco.MjModel, mujoco.MjData
    applied_by_us : list of str
        What is computed here and applied as generalised forces.
    rows : Constrained or None
        The machine under constraints of the user, which MuJoCo does not know.
    """

    def __init__(
        self,
        loop: ControlLoop,
        clock: Clock,
        constants: LoopStates,
        noise: NoiseSource | None,
        integrator: Any,
        rows: Constrained | None = None,
    ) -> None:
        super().__init__(loop, clock, constants, noise)
        self.integrator = integrator
        self.written = MjcfPart(loop.machine, loop.disturbances)
        self.rows = None if rows is None else held_over_steps(rows, clock.dt)
        self.applied_by_us = [
            *self.written.applied_by_us,
            *(f"constraint `{constraint.name}`" for constraint in user_constraints(rows)),
        ]
        self.layout = loop.machine.layout("mujoco")
        self.control = control_kernel(loop)
        self.forces = compile(self._forces(), shapes={"time": (), "h": ()})
        self.drive = self._drive_kernel()
        self._produced: LoopStates | None = None
        self._make_model()

    def set_constants(self, constants: LoopStates) -> None:
        """Take other values of the parameters."""
        super().set_constants(constants)
        self._make_model()

    def _make_model(self) -> None:
        values = self.constants.get("parameters", np.zeros(0))
        text = self.written.text(self.loop.machine.with_parameters(values.tolist()))
        with mujoco_warnings():
            self.model = mujoco.MjModel.from_xml_string(text)
        prepare(self.model, self.clock.dt, self.integrator, limits=self.loop.limits)
        self.data = mujoco.MjData(self.model)
        self._produced = None

    # ------------------------------------------------------------------ what we compute

    def _forces(self) -> ca.Function:
        """Return the function from the state to the inputs u and to our generalised forces."""
        loop, s = self.loop, self.loop.symbols
        state = loop.plant.at(s["x"], s["v"], s["time"])
        moment = Moment(s["time"], s["time"], s["h"])
        load, u = loop.plant_side.load(state, moment, loop.symbol("drive"), loop.symbol("held"))
        tree = Tree(loop.machine.tree).at(state.joint_x, state.joint_v, s["time"])
        ours = Load(loop.machine)
        for disturbance in loop.disturbances:
            disturbance.add(ours, loop.machine, lambda: tree.poses, moment)
        if not self.written.actuators:
            actuate(ours, state, u, limits=loop.limits)
        ours_left = self.written.left(loop.machine)
        left = forces.Bodies(ours_left, tree.poses, tree.twists, s["time"])
        for body, wrench in zip(loop.machine.bodies, forces.body_wrenches(left), strict=True):
            if wrench is not None:
                ours.on_frame(loop.machine.frame(body.name), wrench)
        self._add_inertia(ours, tree, lambda: state.forward(load))
        ours.joint_force = ours.joint_force + self.written.joint_forces(
            loop.machine, state.joint_x, state.joint_v
        )
        total = tree.generalised(ours)
        if self.rows is not None:
            at = self.rows.at(state.joint_x, state.joint_v, s["time"])
            motion = at.motion(at.generalised(load))
            total = total + motion.force_of(user_constraints(self.rows))
        outputs = [ca.densify(ca.SX(value)) for value in (u, total)]
        return ca.Function("forces", list(s.values()), outputs, list(s), ["u", "force"])

    def _add_inertia(self, ours: Load, tree: Any, acceleration: Any) -> None:
        """Add the inertial forces of added mass, at the acceleration of our own equations."""
        added = forces.added_masses(self.written.left(self.loop.machine))
        if all(matrix is None for matrix in added):
            return
        rates = tree.accelerations(acceleration())
        for body, matrix, rate in zip(self.loop.machine.bodies, added, rates, strict=True):
            if matrix is not None:
                ours.on_frame(self.loop.machine.frame(body.name), -matrix @ rate)

    def _drive_kernel(self) -> Kernel | None:
        loop, s = self.loop, self.loop.symbols
        if loop.drive is None or "drive" not in s:
            return None
        rate, h = partial(loop.drive.rate, command=s["held"]), s["h"]
        z = s["drive"]
        k1 = rate(z)
        k2 = rate(z + h / 2 * k1)
        k3 = rate(z + h / 2 * k2)
        k4 = rate(z + h * k3)
        moved = z + h / 6 * (k1 + 2 * (k2 + k3) + k4)
        inputs = [z, s["held"], h]
        return compile(ca.Function("drive", inputs, [moved], ["z", "held", "h"], ["z_next"]))

    # ------------------------------------------------------------------ steps

    def advance(self, state: LoopStates, first: int, count: int, every: int) -> KeptRows:
        """Move on by `count` steps of dt from step `first`."""
        before = self._produced
        if before is None or any(state[name] is not before[name] for name in ("x", "v")):
            self._set(state)
        kept: list[LoopStates] = []
        inputs = self.varying(first, count)
        with mujoco_warnings():
            for k in range(count):
                if k % every == 0:
                    kept.append(state)
                noise = {name: values[k] for name, values in inputs.items() if name != "time"}
                state = self._step(state, inputs["time"][k], {**self.constants, **noise})
        self._produced = state
        return KeptRows({name: np.stack([row[name] for row in kept]) for name in state}, state)

    def _set(self, state: LoopStates) -> None:
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:] = self.layout.x_to(state["x"])
        self.data.qvel[:] = self.layout.v_to(state["x"], state["v"])

    def _step(self, state: LoopStates, t: float, fixed: LoopStates) -> LoopStates:
        dt = self.clock.dt
        state = held_command(self.control, self.loop, state, t, dt, fixed)
        inputs = {**state, **fixed, "time": t, "h": dt}
        if self.drive is not None:  # MuJoCo holds inputs over a step: those in its middle
            inputs["drive"] = self.drive(state["drive"], state["held"], dt / 2)
        u, force = self.forces(**{name: inputs[name] for name in self.loop.symbols})
        if self.written.actuators:
            self.data.ctrl[:] = u
        self.data.qfrc_applied[:] = self.layout.v_to(state["x"], force)
        mujoco.mj_step(self.model, self.data)
        x = self.layout.x_from(self.data.qpos)
        following = {**state, "x": x, "v": self.layout.v_from(x, self.data.qvel)}
        if self.data.warning.number[_BAD].any():
            # It would go on with other values in their place: what it says of them ends the run.
            following |= {name: np.full_like(following[name], np.nan) for name in ("x", "v")}
        if self.drive is not None:
            following["drive"] = self.drive(state["drive"], state["held"], dt)
        return following


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
        return to_mjcf(self.machine(machine), without=without)

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

    def joint_forces(self, machine: Machine, x: Matrix, v: Matrix) -> Matrix:
        """Return the joint forces (nv) that are left to us."""
        total = -forces.tendon_resistance(self.left(machine), x, v)
        for joint in machine.joints:
            fields, span = self.joint_fields[joint.name], machine.v_slice[joint.name]
            q, rate = x[machine.x_slice[joint.name]], v[span]
            if "friction" in fields:
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


def prepare(model: Any, dt: float, integrator: Integrator, *, limits: bool) -> None:
    """Set step, integrator and switches; equality constraints as stiff as the step allows."""
    if isinstance(integrator, RungeKuttaMuntheKaas4):
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    elif isinstance(integrator, SemiImplicitEuler):
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    else:
        raise SimulationError('MuJoCo has the integrators "rk4" and "euler"')
    model.opt.timestep = dt
    off = mujoco.mjtDisableBit
    model.opt.disableflags |= int(off.mjDSBL_CONTACT) | int(off.mjDSBL_LIMIT)
    # Otherwise a run that diverges would begin anew, unnoticed.
    model.opt.disableflags |= int(off.mjDSBL_AUTORESET)
    if not limits:
        model.opt.disableflags |= int(off.mjDSBL_CLAMPCTRL)
        model.actuator_forcelimited[:] = 0
        model.jnt_actfrclimited[:] = 0
    if model.neq:
        model.opt.iterations, model.opt.tolerance = 200, 1e-14
        model.eq_solref[:] = 2.0 * dt, 1.0
        model.eq_solimp[:] = 0.9999, 0.9999, 0.001, 0.5, 2.0
