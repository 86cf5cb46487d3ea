"""MuJoCo as the plant: the machine written as MJCF and stepped by an engine that we did not write.

Forces that MJCF cannot express are computed by us at the beginning of every step and applied as
generalised forces: springs, dampers and interactions between frames, a fluid other than MuJoCo's
(its added mass by the acceleration that our own equations give), smooth Coulomb friction, damping
and springs that differ between the axes of a joint, actuators and tendons that MJCF does not have,
disturbances, and constraints of the user. Forces that resist velocity strongly are taken at the
end of the step (`mujoco_drag`): friction of contacts always, that of joints with the integrator
"implicit", which is chosen where others would shake. Slider loops become bodies
(`mujoco_sliders`). Stops are off, and contacts unless they are asked for: then MuJoCo solves them
(`mujoco_contacts`), and our forces of contact are left out.
"""

from collections.abc import Mapping
from functools import partial
from operator import itemgetter
from typing import Any

import casadi as ca
import mujoco
import numpy as np

from framefree.kernel import Kernel, compile
from framefree.machine import Machine
from framefree.machine.formats.mjcf_engine import mujoco_warnings
from framefree.motion import forces
from framefree.motion.constrained import Constrained
from framefree.motion.load import Load
from framefree.motion.tree import Tree
from framefree.simulate.actuation import actuate
from framefree.simulate.disturbances import Moment
from framefree.simulate.errors import SimulationError
from framefree.simulate.integrators import (
    SDIRK2,
    Integrator,
    RungeKuttaMuntheKaas4,
    SemiImplicitEuler,
)
from framefree.simulate.loop import ControlLoop
from framefree.simulate.noise import NoiseSource
from framefree.simulate.runners.adaptive import HeldCommand
from framefree.simulate.runners.base import Clock, KeptRows, LoopInputs, LoopStates, Runner
from framefree.simulate.runners.mjcf_part import MjcfPart
from framefree.simulate.runners.mujoco_contacts import EngineContacts
from framefree.simulate.runners.mujoco_drag import resisting_force
from framefree.simulate.runners.mujoco_sliders import SlidersAsBodies
from framefree.simulate.runners.mujoco_together import BAD, EngineTrajectories
from framefree.simulate.storage import Arrays
from framefree.simulate.user_rows import held_over_steps, user_constraints

Matrix = Any


class MujocoRunner(Runner):
    """Steps a machine by MuJoCo, under the same compiled law.

    Attributes
    ----------
    model, data : mujoco.MjModel, mujoco.MjData
    applied_by_us : list of str
        What is computed here and applied as generalised forces.
    holds : bool
        Whether inputs and our forces stay as they are from command to command.
    rows : Constrained or None
        The machine under constraints of the user, which MuJoCo does not know.
    contacts : EngineContacts or None
        Those that MuJoCo solves: of the machine `touching`, which is the loop's with its contacts.
    """

    batches = True
    repeatable = True

    def __init__(
        self,
        loop: ControlLoop,
        clock: Clock,
        constants: LoopStates,
        noise: NoiseSource | None,
        integrator: Any,
        rows: Constrained | None = None,
        touching: Machine | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(loop, clock, constants, noise)
        self.integrator = integrator
        self.written = MjcfPart(loop.machine, loop.disturbances)
        self.contacts = None if touching is None else EngineContacts(touching, settings)
        if self.contacts is not None:
            self._check_contacts(rows)
        self.rows = None if rows is None else held_over_steps(rows, clock.dt)
        self.applied_by_us = [
            *self.written.applied_by_us,
            *(f"constraint `{constraint.name}`" for constraint in user_constraints(rows)),
        ]
        self.control = HeldCommand(loop)
        self._inputs = itemgetter(*loop.symbols)
        self.friction = self._friction_kernel()
        self.forces = compile(self._forces(), shapes={"time": (), "h": ()})
        self.drive = self._drive_kernel()
        self._produced: LoopStates | None = None
        self._make_model()
        if self.contacts is not None:
            self.channels = self.contacts.channels

    def set_constants(self, constants: LoopStates) -> None:
        """Take other values of the parameters."""
        before = self._parameters
        super().set_constants(constants)
        self._produced = None
        if not np.array_equal(before, self._parameters):
            self._make_model()

    @property
    def _parameters(self) -> np.ndarray:
        """Values of the tunable numbers of the plant's machine."""
        values = self.constants.get("parameters", np.zeros(0))
        if values.ndim > 1 and (values != values[:1]).any():
            raise SimulationError(
                "MuJoCo has one machine for all trajectories: their `parameters` must be the same"
            )
        return values if values.ndim == 1 else values[0]

    def _make_model(self) -> None:
        whole = self.loop.machine if self.contacts is None else self.contacts.machine
        machine = whole.with_parameters(self._parameters.tolist())
        self.states = SlidersAsBodies(machine)
        text = self.written.text(machine)
        with mujoco_warnings():
            if self.contacts is None:
                self.model = mujoco.MjModel.from_xml_string(text)
            else:
                self.model = self.contacts.model(text, machine)
        prepare(self.model, self.clock.dt, self.integrator, limits=self.loop.limits)
        if self.contacts is not None:
            self.model.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
        self.data, self.seen = mujoco.MjData(self.model), mujoco.MjData(self.model)
        self._warnings = self.data.warning.number  # how often each came, kept up by MuJoCo
        self._many: EngineTrajectories | None = None
        self._produced = None

    def _check_contacts(self, rows: Constrained | None) -> None:
        """Refuse what our own equations would have to know contact forces for."""
        machine = self.loop.machine
        added = forces.added_masses(self.written.left(machine))
        names = [f"constraint `{constraint.name}`" for constraint in user_constraints(rows)]
        names += [
            f"added mass of body `{body.name}`"
            for body, matrix in zip(machine.bodies, added, strict=True)
            if matrix is not None
        ]
        if names:
            raise SimulationError(
                f"`contacts=True` cannot go with {', '.join(names)}: their forces are computed "
                "outside of MuJoCo, without its contact forces"
            )

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
            disturbance.add(ours, tree, moment)
        if not self.written.actuators:
            actuate(ours, state, u, limits=loop.limits)
        ours_left = self.written.left(loop.machine)
        left = forces.Bodies(ours_left, tree.poses, tree.twists, s["time"])
        for body, wrench in zip(loop.machine.bodies, forces.body_wrenches(left), strict=True):
            if wrench is not None:
                ours.on_frame(loop.machine.frame(body.name), wrench)
        self._add_inertia(ours, tree, lambda: state.forward(load))
        ours.joint_force = ours.joint_force + self.written.joint_forces(
            loop.machine, state.joint_x, state.joint_v, friction=self.friction is None
        )
        self.drags, drag = self._drag(ours_left, state)
        total = tree.generalised(ours)
        if self.rows is not None:
            at = self.rows.at(state.joint_x, state.joint_v, s["time"])
            motion = at.motion(at.generalised(load))
            total = total + motion.force_of(user_constraints(self.rows))
        moving = ca.vertcat(s["x"], s["v"], s["time"])
        fixed = not any(ca.which_depends(ca.vertcat(u, total), moving, 1, False))
        self.holds = bool(loop.ratio) and self.loop.drive is None and fixed
        outputs = [ca.densify(ca.SX(value)) for value in (u, total, drag)]
        return ca.Function("forces", list(s.values()), outputs, list(s), ["u", "force", "drag"])

    def _friction_kernel(self) -> Kernel | None:
        """Return joint friction and its slope at speeds, where it is taken at the end of steps."""
        machine = self.loop.machine
        names = [name for name, fields in self.written.joint_fields.items() if "friction" in fields]
        if not names or self.integrator is not SDIRK2:
            return None
        v, force = ca.SX.sym("v", machine.nv), ca.SX(machine.nv, 1)
        for name in names:
            span = machine.v_slice[name]
            force[span] = machine.joint(name).friction_force(v[span])
        slope = ca.jtimes(force, v, ca.SX.ones(machine.nv))
        outputs = [ca.densify(ca.SX(value)) for value in (force, slope)]
        symbols = [v, machine.parameters.symbols]
        return compile(ca.Function("friction", symbols, outputs, ["v", "p"], ["force", "slope"]))

    def _drag(self, machine: Machine, state: Any) -> tuple[bool, Matrix]:
        """Return whether any of our forces resists velocity strongly, and how much (nv x nv)."""
        x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
        t = self.loop.symbols["time"]
        at = Tree(self.loop.machine.tree).at(x, v, t)
        found = forces.drag(forces.Bodies(machine, at.poses, at.twists, t), v)
        if found is None:
            return False, ca.SX(0, 0)
        now = [ca.densify(ca.SX(value)) for value in (state.joint_x, state.joint_v)]
        return True, ca.substitute([ca.densify(found)], [x, v], now)[0]

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
        begins = before is None or any(state[name] is not before[name] for name in ("x", "v"))
        if state["x"].ndim > 1:
            return self._advance_many(state, first, count, every, begins)
        if begins:
            self._set(state, self.data)
        kept: list[LoopStates] = []
        inputs = self.varying(first, count)
        # Kernels take floats and arrays of doubles as they are; NumPy's scalars they would convert.
        times = inputs.pop("time").tolist()
        fixed = {**self.constants, "h": self.clock.dt}
        with mujoco_warnings():
            for k, time in enumerate(times):
                if k % every == 0:
                    kept.append(state)
                noise = {name: values[k] for name, values in inputs.items()}
                state = self._step(state, {**fixed, **noise, "time": time})
        self._produced = state
        return KeptRows({name: np.stack([row[name] for row in kept]) for name in state}, state)

    def _advance_many(
        self, state: LoopStates, first: int, count: int, every: int, begins: bool
    ) -> KeptRows:
        """Move many trajectories on together."""
        many = self._trajectories()
        if begins:
            many.set(state["x"], state["v"])
        inputs = self.varying(first, count)
        times = inputs.pop("time").tolist()
        fixed = {**self.constants, "h": self.clock.dt}
        kept: list[LoopStates] = []
        k = 0
        with mujoco_warnings():
            while k < count:
                noise = {n: np.ascontiguousarray(a[:, k]) for n, a in inputs.items()}
                now = {**fixed, **noise, "time": times[k]}
                steps = 1
                if self.holds:  # MuJoCo alone moves until the next command
                    steps = min(count - k, self.loop.ratio - int(state["count"].flat[0]))
                before, state = state, self.control(state, now)
                applied = self._applied(state, now)
                x, v = many.step(*applied, self.clock.dt, steps)
                for j in range(steps):
                    if (k + j) % every == 0:
                        kept.append(before)
                    state = state if j == 0 else self.control(state, now)
                    state = before = {**state, "x": x[j], "v": v[j]}
                if self.drive is not None:
                    state["drive"] = self.drive(state["drive"], state["held"], self.clock.dt)
                k += steps
        self._produced = state
        return KeptRows({n: np.stack([row[n] for row in kept], axis=-2) for n in state}, state)

    def _trajectories(self) -> EngineTrajectories:
        if self.contacts is not None or self.drags or self.friction is not None:
            raise SimulationError(
                "many trajectories at once on MuJoCo cannot go with contacts, or other forces that "
                "are taken at the end of a step, as strong friction of joints is: give one state "
                "at a time, or the native plant"
            )
        if self._many is None or self._many.threads != self.threads:
            self._many = EngineTrajectories(
                self.model, self.states, self.written.actuators, self.threads
            )
        return self._many

    def _applied(self, state: LoopStates, fixed: LoopInputs) -> tuple[np.ndarray, np.ndarray]:
        """Return the inputs (batch, nu) and our forces (batch, nv) of a step from a state."""
        inputs = {**state, **fixed}
        if self.drive is not None:  # MuJoCo holds inputs over a step: those in its middle
            inputs["drive"] = self.drive(state["drive"], state["held"], self.clock.dt / 2)
        u, force, _ = self.forces(*self._inputs(inputs))
        return u, force

    def observed(self, kept: LoopStates, first: int, count: int, every: int) -> Arrays:
        """Return what MuJoCo's contacts do at rows of states."""
        if self.contacts is None:
            return {}
        varying = self.varying(first, count, every)
        times = varying.pop("time").tolist()
        rows = np.full((len(times), *self.contacts.shape), np.nan)
        with mujoco_warnings():
            for k in range(len(rows)):
                state = {name: values[k] for name, values in kept.items()}
                if not (np.isfinite(state["x"]).all() and np.isfinite(state["v"]).all()):
                    continue
                now = {name: values[k] for name, values in varying.items()}
                self._set(state, self.seen)
                now |= {"time": times[k], "h": self.clock.dt}
                self._apply(self.seen, state, {**self.constants, **now})
                mujoco.mj_forward(self.model, self.seen)
                rows[k] = self.contacts.values(self.model, self.seen)
        return self.contacts.arrays(rows)

    def _set(self, state: LoopStates, data: Any) -> None:
        mujoco.mj_resetData(self.model, data)
        self.states.set(data, state["x"], state["v"])

    def _apply(self, data: Any, state: LoopStates, fixed: LoopInputs) -> LoopStates:
        """Set inputs and our forces for a step from a state; return it with its new command."""
        dt = self.clock.dt
        state = self.control(state, fixed)
        inputs = {**state, **fixed}
        if self.drive is not None:  # MuJoCo holds inputs over a step: those in its middle
            inputs["drive"] = self.drive(state["drive"], state["held"], dt / 2)
        u, force, drag = self.forces(*self._inputs(inputs))
        if self.written.actuators:
            data.ctrl[:] = u
        data.qfrc_applied[:] = self.states.force(data, force)
        if self.friction is not None or (self.drags and drag.any()):
            data.qfrc_applied[:] += self._resistance(data, drag)
        return state

    def _resistance(self, data: Any, drag: np.ndarray) -> np.ndarray:
        """Return what resists at the end of the step, on MuJoCo's velocities."""
        turned = np.zeros((self.model.nv, self.model.nv))
        if self.drags:
            turned = self.states.force(data, self.states.force(data, drag).T)
        if self.friction is None:
            return resisting_force(self.model, data, turned, self.clock.dt)
        friction, parameters = self.friction, self._parameters
        joints = self.states.state(data)[1], self.states.force(data, np.eye(self.loop.machine.nv))
        return resisting_force(
            self.model, data, turned, self.clock.dt, lambda v: friction(v, parameters), joints
        )

    def _step(self, state: LoopStates, fixed: LoopInputs) -> LoopStates:
        state = self._apply(self.data, state, fixed)
        mujoco.mj_step(self.model, self.data)
        x, v = self.states.state(self.data)
        following = {**state, "x": x, "v": v}
        if any(self._warnings.tolist()) and self._warnings[BAD].any():
            # It would go on with other values in their place: what it says of them ends the run.
            following |= {name: np.full_like(following[name], np.nan) for name in ("x", "v")}
        if self.drive is not None:
            following["drive"] = self.drive(state["drive"], state["held"], self.clock.dt)
        if "touch" in state and self.contacts is not None:
            following["touch"] = self.contacts.wrenches(self.model, self.data)
        return following


def prepare(model: Any, dt: float, integrator: Integrator, *, limits: bool) -> None:
    """Set step, integrator and switches; equality constraints as stiff as the step allows."""
    if isinstance(integrator, RungeKuttaMuntheKaas4):
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    elif isinstance(integrator, SemiImplicitEuler):
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    elif integrator is SDIRK2:
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    else:
        raise SimulationError(
            'MuJoCo has the integrators "rk4", "euler" and "implicit" (its `implicitfast`)'
        )
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
