"""How a scene becomes a loop that is simulated: plant, law, drives and estimates, and its steps."""

from functools import cached_property
from typing import Any

from framefree.control.law import Timing
from framefree.control.shared.correspondence import Correspondence
from framefree.motion import Equations
from framefree.simulate.actuation import drive_of
from framefree.simulate.errors import SimulationError
from framefree.simulate.estimation import Estimation
from framefree.simulate.events import Scene
from framefree.simulate.integrators.base import ExplicitIntegrator
from framefree.simulate.law_output import LawOutput
from framefree.simulate.loop import ControlLoop
from framefree.simulate.noise import NoiseSource
from framefree.simulate.options import SimulationOptions
from framefree.simulate.plants import native_plant
from framefree.simulate.predict import Predictor
from framefree.simulate.runners import (
    Adaptive,
    AdaptiveRunner,
    PythonLawRunner,
    RolloutRunner,
    Runner,
)
from framefree.simulate.runners.base import Clock, LoopStates
from framefree.simulate.sensors import SensorArray
from framefree.simulate.touching import without_contacts
from framefree.simulate.user_rows import rows_for_mujoco

_Common = tuple[ControlLoop, Clock, LoopStates, NoiseSource | None]


class LoopMaker:
    """Makes the loop of a scene, and what runs it.

    Parameters
    ----------
    options : SimulationOptions
    scene : Scene
    """

    def __init__(self, options: SimulationOptions, scene: Scene) -> None:
        self.options, self.scene = options, scene

    def loop(self) -> ControlLoop:
        """Return the loop."""
        options, scene = self.options, self.scene
        # MuJoCo has a formulation of its own; rows of the user are added to it.
        formulation = self.formulation
        if options.plant == "mujoco":
            formulation = formulation if rows_for_mujoco(formulation) else None
        known = (scene.machine, self.plant_machine)
        if isinstance(formulation, Equations) and all(formulation.machine is not m for m in known):
            raise SimulationError(
                "`formulation` belongs to another machine; where an event changes the machine it "
                "must be given by name, or as a function from a machine to its equations"
            )
        if isinstance(options.formulation, Equations) and options.stops is not None:
            raise SimulationError(
                "`stops` are added to the plant's own equations: give `formulation` by its name"
            )
        return ControlLoop(
            native_plant(self.plant_machine, formulation),
            None if scene.law is None else scene.law.timed(self.timing),
            scene.reference,
            options.disturbances,
            options.limits,
            drive_of(scene.machine, options.drive),
            options.ratio,
            options.delay,
            options.gated,
            options.noise is not None,
            self._predictor(),
            self._estimation(),
            bool(options.contacts),
            options.live,
        )

    @cached_property
    def formulation(self) -> Any:
        """What the user has given as formulation; made for this machine where it is a function."""
        given = self.options.formulation
        if not callable(given):
            return given
        made = given(self.plant_machine)
        if not isinstance(made, Equations):
            raise SimulationError(
                "the function given as `formulation` must return the equations of a machine, got "
                f"{type(made).__name__}"
            )
        return made

    @cached_property
    def plant_machine(self) -> Any:
        """The machine whose forces are ours: with stops, without contacts where MuJoCo has them."""
        machine = self.scene.machine
        machine = without_contacts(machine) if self.options.contacts else machine
        return machine if self.options.stops is None else self.options.stops.on(machine)

    @property
    def timing(self) -> Timing:
        """When the law is evaluated and when its commands act."""
        options = self.options
        period = options.ratio * options.dt
        ahead = round(options.lead / period) if period else 0
        explicit = isinstance(options.method, ExplicitIntegrator)
        native = not options.stepwise and (period > 0 or explicit)
        return Timing(period, max(options.delay - ahead, 0), native)

    def _predictor(self) -> Predictor | None:
        options, scene = self.options, self.scene
        if options.lead == 0 or scene.law is None:
            return None
        period = max(options.ratio, 1) * options.dt
        return Predictor(
            scene.machine,
            scene.law.machine,
            drive_of(scene.machine, options.drive),
            options.limits,
            period,
            options.lead,
        )

    def _estimation(self) -> Estimation | None:
        options, scene = self.options, self.scene
        measures = () if scene.law is None else scene.law.measures
        if not any((options.sensors, options.estimator, options.observer, measures)):
            return None
        model = scene.machine if scene.law is None else scene.law.machine
        return Estimation(
            Correspondence(scene.machine, model, SimulationError),
            SensorArray(scene.machine, options.sensors) if options.sensors else None,
            options.estimator,
            options.observer,
            drive_of(scene.machine, options.drive),
            options.ratio * options.dt,
            measures,
        )

    def runner(
        self,
        loop: ControlLoop,
        constants: LoopStates,
        noise: NoiseSource | None,
        meta: dict[str, Any],
    ) -> Runner:
        """Return what makes steps of the loop; what an engine says of itself goes into `meta`."""
        output, common = loop.law_side.output, (loop, self.options.clock, constants, noise)
        if output is None or self._runs_natively(output):
            return self._stepping_runner(common, meta)
        output.check(self.options.ratio)
        return PythonLawRunner(self._stepping_runner(common, meta), output)

    def _runs_natively(self, output: LawOutput) -> bool:
        """Tell whether a law in numbers is part of the compiled step."""
        options, method = self.options, self.options.method
        stepwise = options.plant == "mujoco" or isinstance(method, Adaptive)
        if not output.law.native or stepwise:
            return False
        if not options.ratio and not isinstance(method, ExplicitIntegrator):
            raise SimulationError(
                f"the law {output.law.name} is solved by iterations, of which an implicit step "
                "knows no slopes: give `control_dt`, or an explicit integrator"
            )
        return True

    def _stepping_runner(self, common: _Common, meta: dict[str, Any]) -> Runner:
        options, method = self.options, self.options.method
        explicit = options.plant == "native" and isinstance(method, ExplicitIntegrator)
        if options.precision == "single" and not explicit:
            raise SimulationError(
                '`precision="single"` is for the native plant and explicit integrators of fixed '
                'step ("euler", "rk4"); here it is '
                + ("MuJoCo" if options.plant == "mujoco" else f"`{type(method).__name__}`")
            )
        if options.plant == "mujoco":
            rows = self.formulation if rows_for_mujoco(self.formulation) else None
            touching = self.scene.machine if options.contacts else None
            settings = options.contacts if isinstance(options.contacts, dict) else None
            runner = _mujoco_runner()(*common, method, rows, touching, settings)
            runner.threads = options.threads
            meta["applied_by_us"] = runner.applied_by_us
            if runner.contacts is not None:
                meta["contacts"] = runner.contacts.settings
            return runner
        if isinstance(method, Adaptive):
            jumps = [time for part in options.disturbances for time in part.times]
            jumps += [] if self.scene.reference is None else self.scene.reference.times
            return AdaptiveRunner(*common, method, jumps)
        return RolloutRunner(*common, method, options.threads, options.precision)


def _mujoco_runner() -> Any:
    # An optional dependency.
    try:
        from framefree.simulate.runners.mujoco import MujocoRunner
    except ImportError as error:
        if error.name != "mujoco":
            raise
        raise SimulationError(
            "MuJoCo is not installed: install `framefree[models]`, or the package `mujoco`"
        ) from None
    return MujocoRunner
