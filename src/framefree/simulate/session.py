"""A loop that runs in real time, slower or faster, while numbers of it are set from outside.

    session = LiveSession(machine, law, reference, live=numbers)
    session.start()                      # a thread of its own; nobody who looks on can stop it
    session.set({"handle.x": 0.4})       # acts from the next piece on
    session.pause(); session.step(); session.reset(); run = session.run()

Time is kept by whole steps of the compiled loop: at every turn, and as soon as a number is set, as
many are made as wall time asks for. Where the machine is too slow for that, what is missed is given
up and counted (`slipped`).
"""

import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from framefree.control.law import AnyLaw
from framefree.control.references.base import Reference
from framefree.errors import FramefreeError
from framefree.machine import Machine
from framefree.machine.parameters import Parameters
from framefree.simulate.arguments import checked_law, checked_parts
from framefree.simulate.disturbances import Disturbance
from framefree.simulate.observe import RECORDED
from framefree.simulate.options import SimulationOptions
from framefree.simulate.record import Recorder
from framefree.simulate.run import Run
from framefree.simulate.runners.base import LoopStates
from framefree.simulate.segment import Segment
from framefree.simulate.storage import Arrays
from framefree.simulate.timekeeping import Pace

SWITCH = 5e-4
"""Time after which a thread of Python lets another one go on while a loop runs live, s."""
TURN = 0.01
"""Wall time from one turn of the loop to the next, s."""
ROW = 0.01
"""Simulated time from one recorded row to the next, s."""
ROWS_AT_FIRST = 6000
FOREVER = 1e9
"""Length of a run without an end, s."""
MOST_BYTES = 1 << 30
"""What a record may take; it ends there, and the loop goes on."""

Feed = Callable[[float, float], Mapping[str, float]]
"""From the time now and the length of the next piece (s) to values of live numbers."""


class LiveSession:
    """A machine under a law in real time; see the top of this file.

    Parameters
    ----------
    machine, law, reference, x0, v0, control_dt, disturbances, limits, integrator :
        As in `simulate`.
    live : Parameters, optional
        Numbers that are set while it runs; law, reference and disturbances may be expressions of
        their symbols.
    dt : float
        Step of the integrator, s.
    feeds : iterable of callable
        Asked before every piece for values of live numbers: filters of what people do.
    parameters : mapping or (n,), optional
        Values of the machine's tunable numbers; `set` changes them by their names too.

    Attributes
    ----------
    answered : callable
        Called in the thread of the loop as soon as steps were made with numbers that were set.
    """

    def __init__(
        self,
        machine: Machine,
        law: AnyLaw | None = None,
        reference: Reference | None = None,
        x0: Any = None,
        v0: Any = None,
        *,
        live: Parameters | None = None,
        dt: float = 1e-3,
        control_dt: float | None = None,
        disturbances: Disturbance | Iterable[Disturbance] = (),
        limits: bool = True,
        integrator: Any = None,
        feeds: Iterable[Feed] = (),
        parameters: Any = None,
    ) -> None:
        self.machine, self.feeds = machine, tuple(feeds)
        self.live = Parameters() if live is None else live
        ratio = max(round((control_dt or dt) / dt), 1)
        every = max(round(ROW / (ratio * dt)), 1) * ratio
        options = SimulationOptions(
            duration=FOREVER,
            dt=dt,
            plant="native",
            formulation=None,
            integrator=integrator,
            control_dt=control_dt,
            disturbances=checked_parts("disturbances", disturbances, Disturbance),
            limits=limits,
            lag=None,
            noise=None,
            sensors=(),
            estimator=(),
            observer=None,
            delay=0,
            predict=False,
            seed=0,
            u0=None,
            every=every,
            events=(),
            record=RECORDED,
            threads=1,
            live=self.live,
        )
        law = checked_law(machine, law, reference)
        scene, _ = options.first_scene(machine, law, reference, (x0, v0), (parameters, None))
        self.options = options.with_integrator(scene)
        self._scene = scene
        self._lock = threading.RLock()
        # Whoever sets a number waits for this lock alone, never for the steps of a turn.
        self._asking = threading.Lock()
        self._wanted: dict[str, float] = {}
        self.values = self.live.values()
        self.parameters = np.array(scene.parameters)
        self.segment = Segment(self.options, scene, self._recorder())
        self._state = self.segment.start()
        self._step = 0
        self.pace = Pace()
        self.recording, self.paused = True, False
        self.failure = ""
        self.count = 0
        """How often numbers were set, up to the state that is shown."""
        self._asked = 0
        self._thread: threading.Thread | None = None
        self._end, self._woken = threading.Event(), threading.Event()
        self.answered: Callable[[], object] = lambda: None
        self._begin_record()

    # ------------------------------------------------------------------ from outside

    def set(self, values: Mapping[str, float]) -> None:
        """Set live numbers, or tunable numbers of the machine, by name.

        They act from the next step on: a loop that runs is woken for that.
        """
        known = (*self.live.names, *self.machine.parameters.names)
        for name in values:
            if name not in known:
                listed = ", ".join(f"`{one}`" for one in known) or "none"
                raise FramefreeError(f"there is no live number `{name}`; there are: {listed}")
        with self._asking:
            self._wanted |= {name: float(value) for name, value in values.items()}
            self._asked += 1
        self._woken.set()

    def pause(self) -> None:
        """Hold time."""
        self.paused = True

    def resume(self) -> None:
        """Let time go on from where it is."""
        with self._lock:
            self.pace.restart(self.time)
            self.paused = False

    def set_speed(self, speed: float) -> None:
        """Let simulated time run so many times as fast as that of the clock."""
        if not (np.isfinite(speed) and speed > 0):
            raise FramefreeError(f"`speed` must be positive, got {speed!r}")
        with self._lock:
            self.pace.restart(self.time, speed)

    def step(self, count: int = 1) -> None:
        """Make single steps of the loop, with time held."""
        self.pause()
        with self._lock:
            self._advance(count)

    def reset(self) -> None:
        """Begin anew from the first state, with the numbers as they are now."""
        with self._lock:
            self._state = self.segment.start()
            self._step, self.failure = 0, ""
            self.pace.restart(0.0)
            self._begin_record()

    def record(self, wanted: bool) -> None:
        """Begin a new record, or end the one that goes on."""
        with self._lock:
            self.recording = wanted
            if wanted:
                self._begin_record()

    def run(self) -> Run:
        """Return what was recorded as an ordinary run.

        Live numbers are among its signals, by their names, as they were at each row.
        """
        with self._lock:
            recorder = self.segment.recorder
            run = recorder.close("finished", self.machine)
            meta = {
                **run.meta,
                "live": dict(zip(self.live.names, self.values.tolist(), strict=True)),
            }
            meta["parameters"] = self.parameters.tolist()
            return replace(run, meta=meta)

    @property
    def time(self) -> float:
        """Simulated time, s."""
        return self.segment.clock.time(self._step)

    def observed(self) -> tuple[float, Arrays, int]:
        """Return the time, all channels of one row, and how often numbers were set until then."""
        with self._lock:
            state, step, count = self._state, self._step, self.count
        return self.segment.clock.time(step), self.segment.observed(state, step), count

    def state(self) -> tuple[float, LoopStates, int]:
        """Return the time, the states of the loop, and how often numbers were set until then."""
        with self._lock:
            return self.time, self._state, self.count

    # ------------------------------------------------------------------ running

    def start(self) -> "LiveSession":
        """Run in a thread of its own until `stop`."""
        self._end.clear()
        # Threads of Python wait for each other this long, several times a turn: with the usual 5 ms
        # a page that is busy sending would make the loop late.
        self._switch = sys.getswitchinterval()
        sys.setswitchinterval(min(self._switch, SWITCH))
        self.pace.restart(self.time)
        self._thread = threading.Thread(target=self._turns, name="framefree-live", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """End the thread."""
        self._end.set()
        self._woken.set()
        if self._thread is not None:
            self._thread.join(timeout=5.0)
            sys.setswitchinterval(self._switch)
            self._thread = None

    def advance(self, seconds: float) -> None:
        """Move on by simulated time at once, without a clock: for scripts and tests."""
        with self._lock:
            self._advance(max(round(seconds / self._length), 0))

    def _turns(self) -> None:
        turn = perf_counter()
        while not self._end.is_set():
            self._catch_up()
            turn = max(turn + TURN, perf_counter() - TURN)
            while (wait := turn - perf_counter()) > 0 and not self._end.is_set():
                if self._woken.wait(wait):
                    self._answer()
            self.pace.woke(perf_counter() - turn)

    def _answer(self) -> None:
        """Make a step with the numbers that were set, as soon as time asks for one."""
        self._woken.clear()
        self._end.wait(min(self.pace.until_due(self.time, self._length), TURN))
        self._catch_up(whole=False)

    def _catch_up(self, whole: bool = True) -> None:
        """Make the steps that are due; whole pieces end at a recorded row."""
        if self.paused or self.failure:
            return
        with self._lock:
            count, steps = self.count, self.pace.due(self.time, self._length)
            self._advance(steps - (self._step + steps) % self.options.spacing if whole else steps)
        if self.count != count:
            self.answered()

    @property
    def _length(self) -> float:
        """Simulated time of one step of the loop, s."""
        return self.segment.clock.stride * self.options.dt

    def _advance(self, count: int) -> None:
        """Make steps of the loop, a recorded row at a time."""
        while count > 0 and not self.failure:
            piece = min(count, self.options.spacing - self._step % self.options.spacing)
            self._take_numbers(piece)
            try:
                self._move(piece)
            except FramefreeError as error:
                self.failure = str(error)
            count -= piece

    def _take_numbers(self, piece: int) -> None:
        """Let what was set from outside act from here on."""
        seconds = piece * self._length
        with self._asking:
            changes = dict(self._wanted)
            self._wanted.clear()
            self.count = self._asked
        for feed in self.feeds:
            changes |= feed(self.time, seconds)
        if not changes:
            return
        for numbers, values in (
            (self.live, self.values),
            (self.machine.parameters, self.parameters),
        ):
            for name in changes.keys() & set(numbers.names):
                values[numbers.names.index(name)] = changes[name]
        self.segment.tune(self.values.copy(), parameters=self.parameters.copy())

    def _move(self, piece: int) -> None:
        rows = self.segment.runner.advance(self._state, self._step, piece, piece)
        if not all(np.isfinite(array).all() for array in rows.final.values()):
            raise FramefreeError(
                f"at {self.time:.6g} s the state is not finite any more: reset, and pull less, or "
                "choose other gains"
            )
        if self.recording and self._step % self.options.spacing == 0:
            self.segment.keep(rows.kept, self._step)
            self._rows += 1
            if self._rows * self._width > MOST_BYTES:
                self.recording = False
        self._state, self._step = rows.final, self._step + piece

    # ------------------------------------------------------------------ records

    def _recorder(self) -> Recorder:
        meta = self.options.meta(self._scene)
        return Recorder(meta, None, None, ROWS_AT_FIRST)

    def _begin_record(self) -> None:
        segment = self.segment
        segment.recorder = self._recorder()
        segment.recorder.begin([*segment.observer.channels, *segment.runner.channels])
        self._rows = 0
        self._width = 8 * sum(channel.size for channel in segment.observer.channels)
