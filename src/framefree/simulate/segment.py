"""A piece of a run in which machine, law and reference stay the same."""

from collections.abc import Callable
from dataclasses import replace
from time import monotonic
from typing import Any

import numpy as np

from framefree.motion import ClosureError
from framefree.motion.constrained import Constrained
from framefree.motion.constrained.scales import velocity_units
from framefree.simulate.errors import SimulationError
from framefree.simulate.events import Scene
from framefree.simulate.failure import (
    FirstProblem,
    first_problem,
    first_problems,
    not_converged,
    not_finite,
    too_short,
)
from framefree.simulate.first_states import first_states
from framefree.simulate.integrators.base import ExplicitIntegrator, Integrator
from framefree.simulate.making import LoopMaker
from framefree.simulate.noise import NoiseSource
from framefree.simulate.observe import FROM_ALL_FORCES, Observer
from framefree.simulate.options import SimulationOptions
from framefree.simulate.record import Recorder
from framefree.simulate.runners.adaptive import StepTooSmall
from framefree.simulate.runners.base import LoopStates
from framefree.simulate.storage import Arrays
from framefree.simulate.touching import (
    blamed_contact,
    check_first,
    warn_of_steps,
)
from framefree.simulate.user_rows import rows_for_mujoco

SECONDS = 0.2
"""Wall time after which Python has its turn: progress, interrupts, records."""
MEMORY = 1 << 28
"""Bytes that the rows of one piece may take."""
DRIFT = 1e-2
"""How far (rad, longest links of the machine, and these per s) MuJoCo's loops may have opened."""


class Segment:
    """Runs a scene and records it.

    Parameters
    ----------
    options : SimulationOptions
    scene : Scene
    recorder : Recorder
    previous : Segment, optional
        Whose compiled code serves again if only numbers have changed.
    """

    def __init__(
        self,
        options: SimulationOptions,
        scene: Scene,
        recorder: Recorder,
        previous: "Segment | None" = None,
    ) -> None:
        self.options, self.scene, self.recorder = options, scene, recorder
        self.batch = recorder.batch
        self.clock = options.clock
        self._maker = LoopMaker(options, scene)
        self._live = np.zeros(0) if options.live is None else options.live.values()
        self._same_bodies = previous is not None and (
            previous.scene.machine.body_index == scene.machine.body_index
        )
        self._same_law = previous is not None and previous.scene.law is scene.law
        if previous is not None and _same(previous.scene, scene):
            self.loop, self.observer = previous.loop, previous.observer
            self.runner = previous.runner
            self.runner.set_constants(self._constants())
            if previous.options is not options or previous.batch != self.batch:
                self.runner.noise, self.runner.clock = self._noise(), self.clock
                self.runner.threads = options.threads
        else:
            self.loop = self._maker.loop()
            # Wrenches in joints follow from all forces, those of an engine's contacts too.
            unknown = FROM_ALL_FORCES if options.contacts else ()
            self.observer = Observer(self.loop, options.record, unknown)
            self.runner = self._maker.runner(
                self.loop, self._constants(), self._noise(), recorder.meta
            )
        self._latest: tuple[int, LoopStates] | None = None
        self._pace = 1e-4  # wall time of a step, s; measured as the run goes on

    # ------------------------------------------------------------------ first state

    def _noise(self) -> NoiseSource | None:
        """Return the noise of the sensors, or of the state that the law sees."""
        options, estimation = self.options, self.loop.estimation
        if estimation is not None and estimation.sensors is not None:
            return NoiseSource(estimation.sensors.deviations, options.seed, self.batch)
        if options.noise is None:
            return None
        return NoiseSource(options.noise.scale(self.scene.machine), options.seed, self.batch)

    def _constants(self) -> LoopStates:
        values = {"parameters": self.scene.parameters, "law_parameters": self.scene.law_parameters}
        many = [one.numbers for one in self.options.disturbances if one.numbers is not None]
        if many:
            values["disturbance_numbers"] = np.concatenate(many, axis=1)
        values["live"] = self._live
        return {name: values[name] for name in values if name in self.loop.symbols}

    def tune(self, live: np.ndarray | None = None, **parameters: np.ndarray) -> None:
        """Take other values of live numbers, of `parameters` or of `law_parameters`."""
        self._live = self._live if live is None else live
        self.scene = replace(self.scene, **parameters) if parameters else self.scene
        self.runner.set_constants(self._constants())

    def start(self, before: LoopStates | None = None) -> LoopStates:
        """Return the first state of the loop; of a segment before, all that does not change."""
        scene, plant = self.scene, self.loop.plant
        if before is None:
            ours = not self.options.contacts
            x = np.asarray(scene.x, float)
            check_first(scene.machine, x, scene.parameters, compliant=ours)
            method = self.options.method
            if isinstance(method, Integrator) and ours:
                explicit = isinstance(method, ExplicitIntegrator)
                warn_of_steps(scene.machine, scene.parameters, self.clock.dt, explicit=explicit)
        u = self.options.inputs_before(scene.machine)
        try:
            if self.batch is None:
                x, v = plant.start(scene.x, scene.v, scene.parameters)
            else:
                shape = (self.batch, np.shape(scene.parameters)[-1])
                values = np.broadcast_to(scene.parameters, shape)
                pairs = [plant.start(*row) for row in zip(scene.x, scene.v, values, strict=True)]
                x, v = (np.array([pair[i] for pair in pairs]) for i in range(2))
        except ClosureError as error:
            raise SimulationError(str(error)) from None
        x, v = np.asarray(x, float), np.asarray(v, float)
        first = first_states(self.loop, x, v, u, self._constants())
        if self.batch is not None:
            first = {k: np.broadcast_to(a, (self.batch, a.shape[-1])) for k, a in first.items()}
        kept = (
            "drive",
            "pipe",
            "held",
            "count",
            *(("touch",) if self._same_bodies else ()),
            *(("memory", "estimate") if self._same_law else ()),
        )
        return first | {k: before[k] for k in kept if before is not None and k in before}

    # ------------------------------------------------------------------ running

    def run(
        self,
        state: LoopStates,
        first: int,
        last: int,
        interrupted: Callable[[], bool],
        report: Callable[[float], object],
    ) -> tuple[LoopStates, int]:
        """Run from one step of the loop to another; return the state and the step reached."""
        self.recorder.begin([*self.observer.channels, *self.runner.channels])
        step = first
        while step < last and not interrupted():
            count = self._piece(last - step)
            begin = monotonic()
            try:
                rows = self.runner.advance(state, step, count, self.options.spacing)
            except StepTooSmall as error:
                raise self._stuck(error, step) from None
            self._keep(rows.kept, step, count)
            state, step = rows.final, step + count
            self._pace = max((monotonic() - begin) / count, 1e-9)
            report(self.clock.time(step))
        return state, step

    def keep(self, kept: LoopStates, step: int) -> None:
        """Record one row of states, that of a step."""
        self._keep({name: array[..., :1, :] for name, array in kept.items()}, step, 1)

    def keep_last(self, state: LoopStates, step: int) -> None:
        """Record the last state of a run."""
        state = self.runner.ready(state, step)
        self.keep({name: array[..., None, :] for name, array in state.items()}, step)

    def observed(self, state: LoopStates, step: int) -> Arrays:
        """Return all channels at one state of the loop, with an axis for its single row."""
        return self._observed({k: a[..., None, :] for k, a in state.items()}, step, 1, 1)

    def joint_state(self, state: LoopStates, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Return configuration and velocity of the machine's joints."""
        rows = self.observed(state, step)
        return rows["state", "x"][..., 0, :], rows["state", "v"][..., 0, :]

    def state_at_event(
        self, state: LoopStates, step: int
    ) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
        """Return the state of the joints on the constraints, and how far it was off them.

        Our own plants are on them; MuJoCo's loops, which are soft, open a little as it goes.
        """
        x, v = self.joint_state(state, step)
        if self.recorder.ended.any():
            # Those that have ended go on as copies of one that has not; nothing of them is kept.
            alive = int(np.argmin(self.recorder.ended))
            x[self.recorder.ended], v[self.recorder.ended] = x[alive], v[alive]
        if self.options.plant != "mujoco":
            return x, v, {}
        machine, units = self.scene.machine, velocity_units(self.scene.machine)
        rows = rows_for_mujoco(self._maker.formulation)
        equations = self._maker.formulation if rows else Constrained(machine)
        near = equations.project(
            x, v, self.clock.time(step), limits=False, parameters=self.scene.parameters
        )
        drift = {
            "drift_x": float(np.abs(machine.difference(x, near.x) / units).max(initial=0.0)),
            "drift_v": float(np.abs((near.v - v) / units).max(initial=0.0)),
        }
        if max(drift.values()) > DRIFT:
            raise SimulationError(
                f"at {self.clock.time(step):.9g} s, at an event, MuJoCo's state is "
                f"{max(drift.values()):.3g} off the constraints of `{machine.name}` (rad, or "
                "lengths of its longest link, or these per s): take a shorter step, which makes "
                "its loops stiffer"
            )
        return near.x, near.v, drift

    def _piece(self, left: int) -> int:
        """Return how many steps to make before Python has its turn."""
        width = sum(symbol.shape[0] for symbol in self.loop.symbols.values())
        width += sum(channel.size for channel in self.observer.channels)
        most = max(MEMORY // (8 * width * (self.batch or 1)), 1)
        count = min(int(SECONDS / self._pace), most)
        spacing = self.options.spacing
        return min(max(count // spacing, 1) * spacing, left)

    # ------------------------------------------------------------------ recording

    def _keep(self, kept: LoopStates, first: int, count: int) -> None:
        spacing = self.options.spacing
        values = self._observed(kept, first, count, spacing)
        times = self.clock.times(first, count, spacing)
        if self.batch is not None:
            problem = self._end_trajectories(kept, first, values, times)
        else:
            problem = first_problem(values, self.observer.channels, None)
        if problem is None:
            self.recorder.add(times, values)
            self._set_latest(kept, first, len(times))
            return
        good = _rows(values, slice(0, problem.row), self.batch)
        self.recorder.add(times[: problem.row], good)
        self._set_latest(kept, first, problem.row)
        raise self._failure(problem, values, times)

    def _set_latest(self, kept: LoopStates, first: int, row: int) -> None:
        """Keep the state before a row as the latest that is good."""
        if row:
            before = {name: array[..., row - 1, :] for name, array in kept.items()}
            self._latest = first + (row - 1) * self.options.spacing, before

    def _end_trajectories(
        self, kept: LoopStates, first: int, values: Arrays, times: np.ndarray
    ) -> FirstProblem | None:
        """End those of many trajectories that are not finite; return a problem if none is left.

        From there on their rows are NaN. No trajectory knows of the others.
        """
        ended = self.recorder.ended.copy()
        problems = first_problems(values, self.observer.channels, ended)
        if problems and ended.sum() + len(problems) == self.batch:
            return problems[0]
        if problems:
            self._set_latest(kept, first, problems[0].row)
        for k, problem in enumerate(problems):
            told = self._failure if k == 0 else self._brief_failure
            self.recorder.ends(int(problem.trajectory or 0), told(problem, values, times))
        for array in values.values():
            array[ended] = np.nan
        for problem in problems:
            for array in values.values():
                array[problem.trajectory, problem.row :] = np.nan
        return None

    def _observed(self, kept: LoopStates, first: int, count: int, every: int) -> Arrays:
        """Evaluate all channels at rows of states."""
        varying = self.runner.varying(first, count, every)
        rows = len(varying["time"])
        total = rows * (1 if self.batch is None else self.batch)
        inputs: dict[str, Any] = {"h": self.clock.dt}
        for name, array in kept.items():
            inputs[name] = np.ascontiguousarray(array).reshape(total, array.shape[-1])
        inputs["time"] = np.tile(varying["time"], total // rows)
        if "noise" in varying:
            inputs["noise"] = varying["noise"].reshape(total, -1)
        for name, value in self._constants().items():
            inputs[name] = value if value.ndim == 1 else np.repeat(value, rows, axis=0)
        values = self.observer(**inputs)
        if self.batch is None:
            return values | self.runner.observed(kept, first, count, every)
        return {k: array.reshape(self.batch, rows, *array.shape[1:]) for k, array in values.items()}

    # ------------------------------------------------------------------ breaking off

    def _brief_failure(
        self, problem: FirstProblem, values: Arrays, times: np.ndarray
    ) -> SimulationError:
        """Return the error of values that are not finite, from recorded rows alone."""
        bad, time = _row(values, problem.row, problem.trajectory), float(times[problem.row])
        good = _row(values, problem.row - 1, problem.trajectory) if problem.row else None
        contact = "" if good is None else self._contact_words(good["x"], problem.trajectory)
        return not_finite(problem, time, good, bad, self.clock.dt, contact)

    def _failure(self, problem: FirstProblem, values: Arrays, times: np.ndarray) -> SimulationError:
        """Return the error of values that are not finite, with the very step of the first."""
        bad, time = _row(values, problem.row, problem.trajectory), float(times[problem.row])
        good, shorter = None, None
        if self._latest is not None:
            step, state = self._latest
            spacing = self.options.spacing
            kept = {name: array[..., None, :] for name, array in state.items()}
            good = _row(self._observed(kept, step, 1, 1), 0, problem.trajectory)
            if spacing > 1:
                rows = self.runner.advance(state, step, spacing, 1)
                fine = self._observed(rows.kept, step, spacing, 1)
                first = self._first_of(problem.trajectory, fine)
                if first is not None and first.row > 0:
                    problem, time = first, self.clock.time(step + first.row)
                    bad = _row(fine, first.row, first.trajectory)
                    good = _row(fine, first.row - 1, first.trajectory)
                    step += first.row - 1
                    state = {k: array[..., first.row - 1, :] for k, array in rows.kept.items()}
            shorter = self.runner.shorter_step(state, step, problem.trajectory)
        contact = "" if good is None else self._contact_words(good["x"], problem.trajectory)
        if shorter is not None and good is not None:
            return not_converged(problem, time, good, self.clock.dt, shorter, contact)
        return not_finite(problem, time, good, bad, self.clock.dt, contact)

    def _first_of(self, trajectory: int | None, values: Arrays) -> FirstProblem | None:
        """Return where one trajectory stops being finite."""
        if trajectory is None:
            return first_problem(values, self.observer.channels, None)
        one = {key: array[trajectory] for key, array in values.items()}
        problem = first_problem(one, self.observer.channels, None)
        return None if problem is None else problem._replace(trajectory=trajectory)

    def _contact_words(self, x: np.ndarray, trajectory: int | None) -> str:
        """Say which contact may be the cause of a run that breaks off after x; empty if none."""
        parameters = self.scene.parameters
        if np.ndim(parameters) > 1 and trajectory is not None:
            parameters = parameters[trajectory]
        return blamed_contact(self._maker.plant_machine, x, parameters, self.clock.dt)

    def _stuck(self, error: StepTooSmall, first: int) -> SimulationError:
        """Record what an adaptive integrator has done before it found no step short enough."""
        state = error.state
        if error.rows:
            kept = {name: np.stack([row[name] for row in error.rows]) for name in state}
            count = (len(error.rows) - 1) * self.options.spacing + 1
            self._keep(kept, first, count)
        x, v = self.joint_state(state, first)
        return too_short(float(error.time or 0.0), x, v, self._contact_words(x, None))


def _same(a: Scene, b: Scene) -> bool:
    return a.machine is b.machine and a.law is b.law and a.reference is b.reference


def _rows(values: Arrays, rows: slice, batch: int | None) -> Arrays:
    return {k: a[rows] if batch is None else a[:, rows] for k, a in values.items()}


def _row(values: Arrays, row: int, trajectory: int | None) -> LoopStates:
    """Return x, v and u of a row."""
    states = {name: values["state", name] for name in ("x", "v", "u")}
    return {k: a[row] if trajectory is None else a[trajectory, row] for k, a in states.items()}
