"""`simulate`: a machine under a law, in time."""

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Mapping
from time import monotonic
from typing import Any

from framefree.control.estimation import ForceObserver, StateEstimator
from framefree.control.law import AnyLaw
from framefree.control.references.base import Reference
from framefree.errors import FramefreeWarning
from framefree.kernel import Precision
from framefree.machine import Machine, Stops
from framefree.motion import Equations
from framefree.motion.given_machine import checked_machine
from framefree.motion.redundant import System
from framefree.simulate.arguments import (
    checked_law,
    checked_reference,
    checked_seed,
    checked_whole,
)
from framefree.simulate.describe import described
from framefree.simulate.disturbances import Disturbance
from framefree.simulate.errors import SimulationError
from framefree.simulate.events import Event, Scene
from framefree.simulate.integrators import Integrator
from framefree.simulate.noise import Noise
from framefree.simulate.observe import RECORDED
from framefree.simulate.options import SimulationOptions, checked_options
from framefree.simulate.progress import ProgressReport, interruptible, reporting
from framefree.simulate.reclosing import closed_again
from framefree.simulate.record import Recorder
from framefree.simulate.run import Run, RunSetup
from framefree.simulate.runners import Adaptive
from framefree.simulate.segment import Segment
from framefree.simulate.sensors import Sensor

STACK = 3
"""Calls from a warning to the user's own line, which calls the package."""


def simulate(
    machine: Machine | System,
    law: AnyLaw | Callable[..., Any] | None = None,
    reference: Reference | None = None,
    x0: Any = None,
    v0: Any = None,
    *,
    duration: float,
    dt: float,
    plant: str = "native",
    contacts: bool | Mapping[str, Any] = False,
    stops: bool | Stops = False,
    formulation: str | Equations | Callable[[Machine], Equations] | None = None,
    integrator: str | Integrator | Adaptive | None = None,
    control_dt: float | None = None,
    disturbances: Disturbance | Iterable[Disturbance] = (),
    limits: bool = True,
    lag: Any = None,
    noise: Noise | None = None,
    sensors: Sensor | Iterable[Sensor] = (),
    estimator: StateEstimator | Iterable[StateEstimator] = (),
    observer: ForceObserver | None = None,
    delay: int = 0,
    predict: bool | float = False,
    seed: int | Iterable[int] = 0,
    u0: Any = None,
    every: int | None = None,
    events: Event | Iterable[Event] = (),
    parameters: Any = None,
    law_parameters: Any = None,
    record: str | Iterable[str] = RECORDED,
    threads: int = 1,
    precision: Precision = "double",
    progress: bool | ProgressReport | None = None,
    out: Any = None,
    replace: bool = False,
) -> Run:
    """Simulate a machine, alone or under a control law.

    Parameters
    ----------
    machine : Machine, BodySystem or LagrangianSystem
        The plant. The law's own machine may be another: joints and actuators are matched by name.
    law : Law, NumericLaw or function, optional
        Without one, all inputs are zero. A plain function ``u = law(t, x, v)`` or
        ``u = law(t, x, v, reference)`` of NumPy arrays is evaluated in Python once a control
        period, by default at every step. A `NumericLaw` is evaluated in Python and needs
        `control_dt`; one that is `native` is part of the compiled step of the native plant.
    reference : Reference, optional
        What the law follows.
    x0, v0 : (nx,), (nv,) or (batch, nx), (batch, nv)
        First configuration and velocity, by default neutral and at rest; or many of them, which
        run together.
    duration, dt : float
        Time to simulate and step of the integrator, s. A run ends with the first whole step, or the
        first whole control period where the law is evaluated once in several steps, at or after
        `duration`; where that is later, there is a warning. An adaptive integrator takes steps up
        to dt and stops at every multiple of it.
    plant : "native" or "mujoco"
        Our own equations, or MuJoCo stepping the machine written as MJCF.
        MuJoCo takes many trajectories at once, stepped together in C, of machines without loops and
        contacts; where commands are held it moves alone from one to the next.
    contacts : bool or mapping
        Whether MuJoCo solves contacts itself, as hard ones: between geoms of the MJCF file that the
        machine was read from, and between the shapes of its `Contact` parts, whose compliant forces
        are then not applied. Without, contacts are compliant on both plants. A mapping gives
        `Contact` parts other settings of its solver: "solref", "solimp", "impratio".
    stops : bool or Stops
        Whether joints of the plant run into compliant stops at their limits; `Stops` says how stiff
        these are. Without, limits of joints are data for controllers, and nothing stops a joint.
    formulation : str, Equations, or callable, optional
        Of the native plant; by default "constrained" for a machine with loops or couplings, "tree"
        for others. A function takes a machine and returns its equations, so that events may change
        the machine: `closed_form` of the crane, for instance.
    integrator : str, Integrator or Adaptive, optional
        "rk4", "euler", "midpoint", "implicit" or "adaptive".
        By default "rk4", or "implicit" where servos, dampers or springs of the machine are too fast
        for it at this step; `run.meta["integrator_choice"]` says why. "implicit" is of second
        order, stable however stiff they are. MuJoCo has "rk4", "euler" and "implicit": its
        `implicitfast`, with dry friction of joints at the end of each step.
    control_dt : float, optional
        Control period in s, a multiple of dt, over which the command is held. Without, the law is
        evaluated at every stage of the integrator (with MuJoCo: at every step).
    disturbances : Disturbance or iterable of Disturbance
        `Pulse`, `Push`.
    limits : bool
        Whether inputs and motor forces stay within their limits.
    lag : float, (nu,) or Drive, optional
        Time constants of the inputs in s, or any other dynamics of the drives.
    noise : Noise, optional
        Of what the law measures; needs `control_dt`.
    sensors : Sensor or iterable of Sensor
        `Imu`, `PoseSensor`, `Encoders`, `ForceSensor`: sampled, noisy, biased and late as they are.
        They need `control_dt`, and a reader: an `estimator`, or a law that measures them.
    estimator : StateEstimator or iterable of StateEstimator
        `InvariantFilter`, `EncoderFilter`: from sensors to the state that the law then sees instead
        of the plant's.
    observer : ForceObserver, optional
        Observes forces that the law's machine does not know, from the state that the law sees and
        the inputs that the drives gave. Predictions count them, laws that can (`takes`) use them,
        and the signal "unknown_force" records them.
    delay : int
        Control periods from a measurement to the use of its command; needs `control_dt`.
    predict : bool or float
        Time in s by which the law is ahead: it gets the reference, and the state that its own
        machine predicts from the measurement and the commands on their way, that much later.
        True is the delay. Time constants of a lag may be added to it.
    seed : int or iterable of int
        Of the noise; of many trajectories one for each, which then has the noise that it would have
        alone.
    u0 : (nu,), optional
        Inputs before the run, where there is a lag or a delay; default zero.
    every : int, optional
        Steps from one recorded row to the next; by default one, or a control period.
    events : Event or iterable of Event
        `Grasp`, `Release`, `Change`, `SetParameters`. Those at the end of the run or after it do
        not happen; there is a warning.
    parameters, law_parameters : mapping or (n,) or (batch, n), optional
        Values of the tunable numbers of the machine, and of the law's machine where that is
        another.
    record : str or iterable of str
        What to record of the plant: "energy", "momentum", "joint_wrench", "constraint",
        "interaction", "stop", "acceleration". By default all but momentum and acceleration, as far
        as the plant has it.
    threads : int
        Number of threads among which many trajectories are split.
    precision : "double" or "single"
        Numbers that the steps of an explicit integrator on the native plant are made with. In
        single precision many trajectories take a little more than half the time, and every step
        rounds states, and time, to about seven digits; what is recorded beside states is computed
        from them in double precision.
    progress : bool or callable, optional
        Whether to show a bar, or a function to be called with the simulated time; by default a bar
        on a terminal.
    out : path, optional
        New folder (or NAME.parquet) to write to while the run goes on; see `Run.save`. It belongs
        to this run until it ends. What a run has written that was interrupted, even by force, can
        be loaded: its `status` says so.
    replace : bool
        Whether a run that is there already is replaced: when this one is finished, not before.

    Returns
    -------
    Run
        Ctrl-C ends a run early; its `status` is then "interrupted".

    Raises
    ------
    SimulationError
        If the run cannot start; or if a value is not finite, or an implicit step does not converge,
        with the time, the quantity, the last good state, the likely cause, and the run until then.
        Of many trajectories one that breaks off ends only itself: see `Run.failures`. There is an
        error where none is left.

    Examples
    --------
    >>> import framefree as ff
    >>> machine = ff.gallery.MACHINES["double-pendulum"]()
    >>> run = ff.simulate(machine, x0=[1.0, 0.5], duration=1.0, dt=1e-3)
    >>> run.x.shape
    (1001, 2)
    >>> bool(abs(run.energy - run.energy[0]).max() < 1e-6)
    True
    """
    options = {
        "duration": duration, "dt": dt, "plant": plant, "contacts": contacts, "stops": stops,
        "formulation": formulation, "integrator": integrator, "control_dt": control_dt,
        "disturbances": disturbances, "limits": limits, "lag": lag, "noise": noise,
        "sensors": sensors, "estimator": estimator, "observer": observer, "delay": delay,
        "predict": predict, "seed": seed, "u0": u0, "every": every, "events": events,
        "record": record, "threads": threads, "precision": precision,
    }  # fmt: skip
    return RepeatedSimulation(machine, law, reference, **options).run(
        x0, v0, parameters=parameters, law_parameters=law_parameters, progress=progress, out=out,
        replace=replace, stack=STACK + 1,
    )  # fmt: skip


class RepeatedSimulation:
    """A simulation that is run again and again with other numbers; its code is compiled once.

    Parameters
    ----------
    machine, law, reference, **options
        As in `simulate`, but for what `run` takes.
    """

    def __init__(
        self,
        machine: Machine | System,
        law: AnyLaw | Callable[..., Any] | None = None,
        reference: Reference | None = None,
        **options: Any,
    ) -> None:
        self.machine: Any = checked_machine(machine, SimulationError)
        self.reference = checked_reference(reference)
        plain_function = law is not None and not isinstance(law, AnyLaw)
        self.law = checked_law(self.machine, law, self.reference)
        if plain_function and options.get("control_dt") is None:
            options["control_dt"] = options.get("dt")
        self.options = checked_options(**options)
        self._segment: Segment | None = None

    def run(
        self,
        x0: Any = None,
        v0: Any = None,
        *,
        seed: int | Iterable[int] | None = None,
        disturbances: Iterable[Disturbance] | None = None,
        parameters: Any = None,
        law_parameters: Any = None,
        threads: int | None = None,
        progress: bool | ProgressReport | None = None,
        out: Any = None,
        replace: bool = False,
        stack: int = 2,
    ) -> Run:
        """Return the run from first states, with a seed and disturbances if others than before.

        All arguments are those of `simulate`; disturbances must be as many and of the same kinds
        as those before, and differ in their numbers alone. `stack` is how many calls away warnings
        point. The numbers of a run do not depend on the runs before it.
        """
        options, subject = self.options, self.machine
        if seed is not None:
            options = dataclasses.replace(options, seed=checked_seed(seed))
        if threads is not None:
            options = dataclasses.replace(options, threads=checked_whole("threads", threads, 1))
        if disturbances is not None:
            options = options.with_disturbances(disturbances)
        scene, batch = options.first_scene(
            subject, self.law, self.reference, (x0, v0), (parameters, law_parameters)
        )
        options = options.with_integrator(scene)
        for words in options.deviations:
            warnings.warn(words, FramefreeWarning, stacklevel=stack)
        recorder = Recorder(options.meta(scene), batch, out, options.rows, replace)
        begin = monotonic()
        with (
            interruptible() as interrupted,
            reporting(progress, options.duration, subject.name) as report,
        ):
            try:
                segment = Segment(options, scene, recorder, self._compiled(options))
                if not options.events:
                    self._segment = segment
                done = _simulate(segment, options, scene, recorder, interrupted, report)
            except BaseException as error:
                recorder.break_off(error, subject)
                raise
        recorder.meta["wall_seconds"] = round(monotonic() - begin, 6)
        ended = recorder.meta.get("failures", [])
        if ended:
            warnings.warn(
                f"{len(ended)} of {batch} trajectories ended early (`run.failures`); the first: "
                f"{ended[0]['message']}",
                FramefreeWarning,
                stacklevel=stack,
            )
        status = "finished" if done else "interrupted"
        return recorder.close(status, subject, RunSetup(options, scene))

    def _compiled(self, options: SimulationOptions) -> Segment | None:
        """Return a segment whose code serves a run with these options, if there is one.

        It has the integrator, which may follow from first states, and the numbers of disturbances
        that are the same for all trajectories.
        """
        before = self._segment
        if before is None or not before.runner.repeatable:
            return None
        parts = [[some.integrator, *map(_fixed, some.disturbances)] for some in
                 (options, before.options)]  # fmt: skip
        return before if described(parts[0]) == described(parts[1]) else None


def _fixed(disturbance: Disturbance) -> Any:
    """Return what of a disturbance is part of compiled code."""
    return disturbance if disturbance.numbers is None else "by trajectory"


def _simulate(
    segment: Segment,
    options: SimulationOptions,
    scene: Scene,
    recorder: Recorder,
    interrupted: Callable[[], bool],
    report: ProgressReport,
) -> bool:
    """Run one segment after the other, with events in between; return whether all were run."""
    state, step = segment.start(), 0
    for last, events in options.schedule():
        state, step = segment.run(state, step, last, interrupted, report)
        if step < last or not events:
            break
        for event in events:
            x, v, drift = segment.state_at_event(state, step)
            time = options.clock.time(step)
            scene = event.after(dataclasses.replace(scene, x=x, v=v))
            scene, jump = closed_again(scene, event.held, time)
            recorder.happened(event, time, drift | jump)
            segment = Segment(options, scene, recorder, segment)
            state = segment.start(state)
    segment.keep_last(state, step)
    return step == options.steps
