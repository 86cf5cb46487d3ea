"""The run again, with all that its loop remembers: what test-benches are made of."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from framefree.export.errors import ExportError
from framefree.simulate.integrators import ExplicitIntegrator, Integrator
from framefree.simulate.loop import ControlLoop
from framefree.simulate.options import SimulationOptions
from framefree.simulate.record import Recorder
from framefree.simulate.run import Run
from framefree.simulate.segment import Segment

STEPS = 10_000
"""Most steps of a run that go into a test-bench."""


@dataclass(frozen=True)
class LoopRecord:
    """States and inputs of a loop at consecutive steps.

    Attributes
    ----------
    values : dict of str to (rows, n)
        By the names of the loop's symbols; "time" is (rows, 1).
    """

    values: Mapping[str, np.ndarray]

    @property
    def rows(self) -> int:
        """Number of steps."""
        return len(self.values["time"])


class RecordedLoop:
    """The control loop of a run, ready to be exported.

    Until the first event: what comes after it has another machine, law or reference.

    Parameters
    ----------
    run : Run
        One that was made in this process. Of many trajectories the first is taken.
    """

    def __init__(self, run: Run) -> None:
        if run.setup is None:
            raise ExportError(
                "a run that was loaded from a file has no law and no machine to export: "
                "simulate it again"
            )
        options, scene = run.setup
        if run.batch is not None:
            first = {
                name: np.array(np.atleast_2d(getattr(scene, name))[0])
                for name in ("x", "v", "parameters", "law_parameters")
            }
            scene = replace(scene, **first)
            seed = options.seed
            options = replace(options, seed=seed[0] if isinstance(seed, tuple) else seed)
        self.options: SimulationOptions = options
        self.scene = scene
        self.name = scene.machine.name

    @cached_property
    def segment(self) -> Segment:
        """What runs the loop."""
        recorder = Recorder(self.options.meta(self.scene), None, None, 1)
        return Segment(self.options, self.scene, recorder)

    @property
    def loop(self) -> ControlLoop:
        """Plant, law and what lies between them."""
        return self.segment.loop

    @cached_property
    def start(self) -> dict[str, np.ndarray]:
        """First values of all states of the loop."""
        return self.segment.start()

    @property
    def constants(self) -> dict[str, np.ndarray]:
        """Values of the tunable numbers."""
        values = {"parameters": self.scene.parameters, "law_parameters": self.scene.law_parameters}
        return {name: values[name] for name in values if name in self.loop.symbols}

    @property
    def period(self) -> float:
        """Time of a step of the law, s: the control period, or the integrator's step."""
        return max(self.options.ratio, 1) * self.options.dt

    @property
    def steps(self) -> int:
        """Steps of the loop until the run, or its first part, ends."""
        return next(iter(self.options.schedule()))[0]

    def explicit(self, what: str) -> ExplicitIntegrator:
        """Return the integrator of our own plant; refuse where there is none of fixed step."""
        options = self.options
        if options.plant != "native":
            raise ExportError(
                f"the {what} of this run is MuJoCo's; C holds our own equations: leave out "
                "`--plant mujoco`"
            )
        method = options.method
        if isinstance(method, ExplicitIntegrator):
            return method
        known = "implicit" if isinstance(method, Integrator) else "adaptive"
        raise ExportError(
            f"the {what} of this run has an {known} integrator, which is not exported; choose a "
            'run with "rk4", "midpoint" or "euler" (`--run KEY`)'
        )

    def record(self, most: int = STEPS, *, on: bool = False) -> LoopRecord:
        """Return states and inputs of the loop where control periods begin.

        At most so many of the run, or of its part before the first event; where it goes `on`, so
        many in any case: the loop runs on beyond the end, as long as its numbers are finite.
        """
        stride = self.options.ratio if self.options.gated and self.options.ratio > 1 else 1
        count = most * stride if on else min(self.steps, most * stride)
        segment, state, kept, step = self.segment, self.start, [], 0
        while step < count:
            part = min(count - step, 2000 * stride)
            rows = segment.runner.advance(state, step, part, stride)
            kept.append(rows.kept)
            state, step = rows.final, step + part
        values = {name: np.concatenate([one[name] for one in kept]) for name in self.start}
        varying = segment.runner.varying(0, count, stride)
        values["time"] = varying["time"][:, None]
        if "noise" in varying:
            values["noise"] = varying["noise"]
        rows_ = len(values["time"])
        values["h"] = np.full((rows_, 1), self.options.dt)
        for name, value in self.constants.items():
            values[name] = np.broadcast_to(value, (rows_, len(value)))
        finite = np.all([np.isfinite(one).all(axis=1) for one in values.values()], axis=0)
        end = rows_ if finite.all() else int(np.argmin(finite))
        return LoopRecord({name: np.ascontiguousarray(one[:end]) for name, one in values.items()})
