"""The control loop as casadi functions, one step of which is the page `ControlLoop.step`.

    measure --> estimate --> law --> limit --> delay --> hold --> drive --> actuators --> dynamics
       ^                                                             disturbances ^          |
       +------------------------------------------------------------------------------------+

The law is evaluated at every stage of the integrator (`ratio` 0), or once in `ratio` steps, its
command held in between. Everything that one step hands to the next is a named state of the loop:

    x, v         coordinates and velocities of the plant
    drive        state of the drive behind the commands
    memory       what the law remembers; it moves with x and v where the law gives its rate
    estimate     what sensors, estimators and observer remember
    pipe         commands on their way, the oldest first
    held         the command that acts; only where it is needed again: for predictions, estimates,
                 and where one step of the loop is one of the integrator; then also
    count        steps since it began to act
    touch        wrenches of contacts that an engine solves itself, over the step before, on all
                 bodies in their own axes; only where sensors may feel them
    law_output   the command of a law in numbers, which runners evaluate in Python, or natively
                 (`native_law.py`)

`law_side.py` holds what comes before the delay, `plant_side.py` what comes after the hold.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.law import AnyLaw, Command
from framefree.control.references.base import Reference
from framefree.machine import Machine
from framefree.machine.parameters import Parameters
from framefree.motion import Equations, State
from framefree.motion.load import Load
from framefree.simulate.actuation import Drive
from framefree.simulate.disturbances import Disturbance, Moment
from framefree.simulate.errors import SimulationError
from framefree.simulate.estimation import Estimated, Estimation
from framefree.simulate.integrators import DormandPrince, ExplicitIntegrator
from framefree.simulate.law_side import LawInputs, LawSide, Pending
from framefree.simulate.plant_forces import PlantForces
from framefree.simulate.plant_side import PlantSide
from framefree.simulate.predict import Predictor

Matrix = Any
Symbols = dict[str, Matrix]


class Decision(NamedTuple):
    """What the law's side makes of a state: the command, and what it was made from."""

    command: Command
    estimated: Estimated | None


@dataclass(frozen=True)
class ControlLoop:
    """A plant, a law and what lies between them; see the top of this file.

    Attributes
    ----------
    plant : Equations
    law : Law, NumericLaw or None
    reference : Reference or None
    disturbances : tuple of Disturbance
    limits : bool
        Whether commands and forces stay within their limits.
    drive : Drive or None
    ratio : int
        Steps of the integrator in a control period; 0 where the law is evaluated at every stage.
    delay : int
        Control periods from a measurement to the use of its command.
    gated : bool
        Whether one step of the loop is one of the integrator although the law is evaluated once in
        several; otherwise it is a control period.
    noisy : bool
        Whether there is an input `noise` (2 nv) that is added to what the law measures.
    predictor : Predictor or None
        What moves a measurement ahead before the law sees it; time and reference go with it.
    estimation : Estimation or None
        Sensors, estimators and observer between the plant and the law.
    touched : bool
        Whether an engine solves contacts that our equations do not know.
    live : Parameters or None
        Numbers that somebody sets while the loop runs: law, reference and disturbances may be
        expressions of their symbols.
    """

    plant: Equations
    law: AnyLaw | None = None
    reference: Reference | None = None
    disturbances: tuple[Disturbance, ...] = ()
    limits: bool = True
    drive: Drive | None = None
    ratio: int = 0
    delay: int = 0
    gated: bool = False
    noisy: bool = False
    predictor: Predictor | None = None
    estimation: Estimation | None = None
    touched: bool = False
    live: Parameters | None = None
    symbols: Symbols = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not (self.law is None or isinstance(self.law, AnyLaw)):
            raise SimulationError(f"`law` must be a Law or a NumericLaw, got {self.law!r}")
        object.__setattr__(self, "symbols", self._make_symbols())

    # ------------------------------------------------------------------ one step

    def step(self, integrator: ExplicitIntegrator) -> ca.Function:
        """Return one step of the loop: from all states to their next values.

        That of an implicit integrator is `framefree.simulate.implicit.implicit_step`.
        """
        s = self.symbols
        following, acting, steps = self.begin_step()
        x, column = s["x"], self.column
        for k in range(steps):  # drive, actuators, disturbances, dynamics
            x, column = self.plant_side.advance(
                integrator, self._rates(acting), s["time"] + k * s["h"], s["h"], x, column
            )
        following["x"] = x
        following |= self.split(column)
        if not self.ratio and "memory" in s:
            following["memory"] += self.jump
        following["law_output"] = self.symbol("law_output")
        return self._function("step", {f"{name}_next": following[name] for name in self.states})

    def begin_step(self) -> tuple[dict[str, Matrix], Matrix, int]:
        """Return the law's states after a step, the command that acts, and steps of the plant."""
        s = self.symbols
        if self.ratio:
            state = self.plant.at(s["x"], s["v"], s["time"])
            decision = self.decide(state)  # measure, estimate, law, limit
            following = self.transmit(decision)  # delay, hold
            return following, following["held"], 1 if self.gated else self.ratio
        return {}, ca.SX(0, 1), 1

    # ------------------------------------------------------------------ the law's side

    def decide(self, state: State) -> Decision:
        """Return what the law does at the beginning of a control period, and what it knows then."""
        inputs, estimated = self._law_inputs(state)
        memory, output = self.symbol("memory"), self.symbol("law_output")
        return Decision(self.law_side.command(inputs, memory, output), estimated)

    def _law_inputs(self, state: State) -> tuple[LawInputs, Estimated | None]:
        side, s = self.law_side, self.symbols
        noise = None if self._has_sensors else s.get("noise")
        measured = side.measure(s["time"], state.joint_x, state.joint_v, noise)
        estimated = None
        if self.estimation is not None:
            estimated = self.estimation(
                s["estimate"],
                state,
                self.forces_on(
                    state, s["time"], self.symbol("drive"), self.symbol("held"), s.get("touch")
                ),
                (measured.x, measured.v),
                self.symbol("noise"),
                self.symbol("drive"),
                self.symbol("held"),
            )
        return side.estimate(measured, self._pending, estimated), estimated

    def forces_on(
        self, state: State, t: Matrix, drive: Matrix, held: Matrix, touch: Matrix | None = None
    ) -> PlantForces:
        """Return what acts on the plant as a control period begins."""
        side, moment = self.plant_side, Moment(t, t, self.symbols["h"])
        return PlantForces(
            state,
            lambda: side.load(state, moment, drive, held)[0],
            lambda: side.disturbed(state, moment),
            ca.SX(0, 1) if touch is None else touch,
        )

    def command_at(self, t: Matrix, state: State, memory: Matrix) -> Command:
        """Return the command of a law that is evaluated all the time, at a state as it is."""
        side = self.law_side
        inputs = side.estimate(side.measure(t, state.joint_x, state.joint_v, None), None)
        return side.command(inputs, memory, self.symbol("law_output"))

    def transmit(self, decision: Decision) -> dict[str, Matrix]:
        """Return held, pipe, memory and count: a command is sent where a control period begins."""
        sent = self._sent(decision)
        if not self.gated:
            return sent
        first = self.symbols["count"] < 0.5
        kept = {name: ca.if_else(first, new, self.symbol(name)) for name, new in sent.items()}
        return {**kept, "count": ca.fmod(self.symbols["count"] + 1, self.ratio)}

    def _sent(self, decision: Decision) -> dict[str, Matrix]:
        """Return held, pipe and memory where a command is sent; held even if it is no state."""
        command, estimated = decision
        nu, queue = self.machine.nu, ca.vertcat(self.symbol("pipe"), command.u)
        memory = command.memory_after(self.symbol("memory"), self.ratio * self.symbols["h"])
        sent = {"held": queue[:nu, :], "pipe": queue[nu:, :], "memory": memory}
        if estimated is not None:
            sent["estimate"] = estimated.memory
        return {name: sent[name] for name in sent if name == "held" or name in self.symbols}

    @property
    def jump(self) -> Matrix:
        """By how much an evaluation changes the memory of a law evaluated all the time."""
        s = self.symbols
        state, memory = self.plant.at(s["x"], s["v"], s["time"]), s["memory"]
        return self.command_at(s["time"], state, memory).memory_after(memory, 0) - memory

    def acting(self, state: State) -> tuple[Matrix, Decision]:
        """Return the command that acts at a state of the loop, and what the law's side makes."""
        decision = self.decide(state)
        return (self.transmit(decision)["held"] if self.ratio else decision.command.u), decision

    @property
    def _pending(self) -> Pending:
        return Pending(self.symbol("drive"), self.symbol("pipe"), self.symbol("held"))

    # ------------------------------------------------------------------ the plant's side

    @property
    def column(self) -> Matrix:
        """What the integrator moves beside x: v, drive, and the memory that moves with them."""
        moving = ca.SX(0, 1) if self._commanded else self.symbol("memory")
        return ca.vertcat(self.symbols["v"], self.symbol("drive"), moving)

    def split(self, column: Matrix) -> dict[str, Matrix]:
        """Return the parts of such a column by name."""
        ends = np.cumsum([self.symbol(name).shape[0] for name in ("v", "drive")]).tolist()
        parts = {"v": column[: ends[0], :], "drive": column[ends[0] : ends[1], :]}
        return parts if self._commanded else {**parts, "memory": column[ends[1] :, :]}

    @property
    def _commanded(self) -> bool:
        """Whether the plant moves under a command that is known, not one that follows the state."""
        return bool(self.ratio) or self.law_side.output is not None

    def _rates(self, command: Matrix) -> Any:
        """Return the rates of a column under a command, or under the law where none is held."""

        def rates(moment: Moment, x: Matrix, column: Matrix) -> Matrix:
            return self.rates_function(*moment, x, column, command, *self.parameters)

        return rates

    @cached_property
    def rates_function(self) -> ca.Function:
        """The rates of a column at a moment, x and a column, under a command and parameters."""
        moment = Moment(ca.SX.sym("t"), ca.SX.sym("start"), ca.SX.sym("h"))
        x, column = self.symbols["x"], ca.SX.sym("column", self.column.shape[0])
        parts = self.split(column)
        acting = held = ca.SX.sym("command", self.machine.nu if self._commanded else 0)
        state = self.plant.at(x, parts["v"], moment.t)
        rates = []
        if not self._commanded:
            command = self.command_at(moment.t, state, parts["memory"])
            acting, size = command.u, parts["memory"].shape[0]
            rates = [ca.SX(size, 1) if command.rate is None else command.rate]
        rates = [self.plant_side.rates(state, moment, parts["drive"], acting), *rates]
        inputs = [*moment, x, column, held, *self.parameters]
        return ca.Function("rates", inputs, [ca.densify(ca.vertcat(*rates))])

    @property
    def parameter_names(self) -> list[str]:
        """Names of the inputs that hold tunable numbers."""
        names = ("parameters", "law_parameters", "disturbance_numbers", "live")
        return [name for name in names if name in self.symbols]

    @property
    def parameters(self) -> list[Matrix]:
        """Their symbols."""
        return [self.symbols[name] for name in self.parameter_names]

    # ------------------------------------------------------------------ parts of a step

    def trial(self, integrator: DormandPrince) -> ca.Function:
        """Return a step of x and column with the command held, and its largest relative error."""
        s = self.symbols
        x, column, error = self.plant_side.advance_with_error(
            integrator, self._rates(self.symbol("held")), s["time"], s["h"], s["x"], self.column
        )
        moved = {"x": x, **self.split(column)}
        if "memory" in moved and "memory" in s:
            moved["memory"] += self.jump
        outputs = {f"{name}_next": moved[name] for name in moved if name in s}
        return self._function("trial", {**outputs, "error": error})

    def control(self) -> ca.Function:
        """Return what happens at the beginning of a control period: held, pipe, memory."""
        s = self.symbols
        sent = self._sent(self.decide(self.plant.at(s["x"], s["v"], s["time"])))
        return self._function("control", {f"{k}_next": sent[k] for k in sent if k in s})

    def law_inputs(self) -> ca.Function:
        """Return what a law in numbers is evaluated at: t, x, v, and its references in order."""
        s = self.symbols
        inputs, _ = self._law_inputs(self.plant.at(s["x"], s["v"], s["time"]))
        return self._function("law_inputs", self._named_inputs(inputs))

    def law_inputs_at(self) -> ca.Function:
        """Return the same as a function of a time, a state and parameters, as they are."""
        s, side = self.symbols, self.law_side
        state = self.plant.at(s["x"], s["v"], s["time"])
        measured = side.measure(s["time"], state.joint_x, state.joint_v, None)
        outputs = self._named_inputs(side.estimate(measured, None))
        symbols = [s["time"], s["x"], s["v"], *self.parameters]
        dense = [ca.densify(ca.SX(value)) for value in outputs.values()]
        return ca.Function("law_inputs", symbols, dense)

    def _named_inputs(self, inputs: LawInputs) -> dict[str, Matrix]:
        references = {
            f"reference_{k}": inputs.reference[n] for k, n in enumerate(self.reference_names)
        }
        return {"t": inputs.t, "x_law": inputs.x, "v_law": inputs.v, **references}

    def command_of_output(self) -> ca.Function:
        """Return the command for the plant's inputs in the output of a law in numbers."""
        output = self.symbol("law_output")
        return ca.Function("command", [output], [ca.densify(self.law_side.command_of(output).u)])

    @property
    def reference_names(self) -> tuple[str, ...]:
        """Names of all reference signals that the law gets, estimates among them."""
        names = tuple(self.law_side.references(ca.SX(0)))
        observed = self.estimation is not None and self.estimation.observer is not None
        if self.law is None:
            return names
        return (*names, *(self.law.takes if observed else ()), *self.law.measures)

    def _function(self, name: str, outputs: dict[str, Matrix]) -> ca.Function:
        dense = [ca.densify(ca.SX(value)) for value in outputs.values()]
        symbols = list(self.symbols.values())
        return ca.Function(name, symbols, dense, list(self.symbols), list(outputs))

    # ------------------------------------------------------------------ states and inputs

    @property
    def machine(self) -> Machine:
        """The plant's machine."""
        return self.plant.machine

    @cached_property
    def law_side(self) -> LawSide:
        """What comes before the delay."""
        return LawSide(self.machine, self.law, self.reference, self.limits, self.predictor)

    @cached_property
    def plant_side(self) -> PlantSide:
        """What comes after the hold."""
        return PlantSide(self.plant, self.drive, self._acting_disturbances, self.limits)

    @property
    def _acting_disturbances(self) -> tuple[Disturbance, ...]:
        """The disturbances, by symbols where their numbers differ among trajectories."""
        numbers, first, acting = self.symbol("disturbance_numbers"), 0, []
        for one in self.disturbances:
            count = 0 if one.numbers is None else one.numbers.shape[1]
            acting.append(one.with_numbers(numbers[first : first + count]) if count else one)
            first += count
        return tuple(acting)

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the states of the loop, but for those that it does without."""
        names = ("x", "v", "drive", "memory", "estimate", "pipe", "held", "count", "touch")
        names += ("law_output",)
        return tuple(name for name in names if name in self.symbols)

    def symbol(self, name: str) -> Matrix:
        """Return the symbol of a state or input; empty where the loop does without."""
        return self.symbols.get(name, ca.SX(0, 1))

    @property
    def _has_sensors(self) -> bool:
        return self.estimation is not None and self.estimation.sensors is not None

    @property
    def _noise_size(self) -> int:
        estimation: Any = self.estimation
        if self._has_sensors:
            return len(estimation.sensors.deviations)
        return 2 * self.machine.nv if self.noisy else 0

    @property
    def _estimate_size(self) -> int:
        sizes = self.plant.sizes
        x, v, t = ca.SX.sym("x", sizes["x"]), ca.SX.sym("v", sizes["v"]), ca.SX.sym("t")
        drives = 0 if self.drive is None else len(self.drive.start(np.zeros(self.machine.nu)))
        estimation: Any = self.estimation
        state, z = self.plant.at(x, v, t), ca.SX(drives, 1)
        # Sizes do not depend on what acts.
        acting = PlantForces(
            state, lambda: Load(self.machine), lambda: Load(self.machine), ca.SX(0, 1)
        )
        return estimation.first_memory(state, acting, z).shape[0]

    def _make_symbols(self) -> Symbols:
        machine, law, output = self.machine, self.law, self.law_side.output
        nu, gated = machine.nu, self.ratio > 0 and self.gated
        keeps = gated or self.predictor is not None or self.estimation is not None
        sizes = {
            "x": self.plant.sizes["x"],
            "v": self.plant.sizes["v"],
            "drive": 0 if self.drive is None else len(self.drive.start(np.zeros(nu))),
            "memory": 0 if law is None else len(law.memory),
            "estimate": 0 if self.estimation is None else self._estimate_size,
            "pipe": nu * self.delay,
            "held": nu if keeps else 0,
            "count": 1 if gated else 0,
            "touch": 6 * len(machine.bodies) if self.touched and self._has_sensors else 0,
            "law_output": 0 if output is None else output.size,
            "noise": self._noise_size,
        }
        symbols = {n: ca.SX.sym(n, size) for n, size in sizes.items() if size or n in ("x", "v")}
        symbols |= {"time": ca.SX.sym("time"), "h": ca.SX.sym("h")}
        if len(machine.parameters):
            symbols["parameters"] = machine.parameters.symbols
        shared = law is not None and law.machine.parameters is machine.parameters
        if law is not None and len(law.machine.parameters) and not shared:
            symbols["law_parameters"] = law.machine.parameters.symbols
        many = [one.numbers for one in self.disturbances if one.numbers is not None]
        if many:
            count = sum(numbers.shape[1] for numbers in many)
            symbols["disturbance_numbers"] = ca.SX.sym("disturbance_numbers", count)
        if self.live is not None and len(self.live):
            symbols["live"] = self.live.symbols
        return symbols
