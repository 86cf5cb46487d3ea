"""The closed loop as casadi functions: law, limits, drive, disturbances, dynamics, step.

    measure --> law --> limits --> delay --> hold --> drive --> actuators --> dynamics
       ^                                                          disturbances ^    |
       +----------------------------------------------------------------------------+

The law is evaluated at every stage of the integrator (`ratio` 0), or once in `ratio` steps, its
command held in between. Everything that one step hands to the next is a named state of the loop:

    x, v      coordinates and velocities of the plant
    drive     state of the drive behind the commands
    memory    what the law remembers
    pipe      commands on their way, the oldest first
    held      the command that acts; only where it is needed again: for predictions, and where
              one step of the loop is one of the integrator; then also
    count     steps since it began to act
    told      what a law in numbers has said, which is a `NumericLaw` that runners ask
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import AnyLaw, Command, Law, NumericLaw
from framefree.control.references.base import Reference
from framefree.machine import Machine
from framefree.motion import Equations, State
from framefree.motion.groups import Extended
from framefree.motion.load import Load
from framefree.simulate.actuation import Drive, actuate, limited
from framefree.simulate.correspondence import Correspondence
from framefree.simulate.disturbances import Disturbance, Moment
from framefree.simulate.errors import SimulationError
from framefree.simulate.integrators import DormandPrince, Integrator
from framefree.simulate.numeric import Told
from framefree.simulate.predict import Predictor

Matrix = Any
Symbols = dict[str, Matrix]


@dataclass(frozen=True)
class Loop:
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
    predictor : Predictor or None
        What moves a measurement ahead before the law is told; time and reference go with it.
    noisy : bool
        Whether there is an input `noise` (2 nv) that is added to what the law measures.
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
    symbols: Symbols = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "symbols", self._make_symbols())
        if self.told is not None:
            self.told.check(self.ratio)

    # ------------------------------------------------------------------ states and inputs

    @property
    def machine(self) -> Machine:
        """The plant's machine."""
        return self.plant.machine

    def start(self, x: np.ndarray, v: np.ndarray, u: np.ndarray) -> dict[str, np.ndarray]:
        """Return the first values of all states; x and v are the plant's own, u the inputs."""
        values = {
            "x": x,
            "v": v,
            "drive": np.zeros(0) if self.drive is None else self.drive.start(u),
            "memory": np.zeros(0) if self.law is None else np.asarray(self.law.memory, float),
            "pipe": np.tile(u, self.delay),
            "held": u,
            "count": np.zeros(1),
            "told": np.zeros(0 if self.told is None else self.told.size),
        }
        return {name: values[name] for name in self.states}

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the states of the loop, but for those that it does without."""
        names = ("x", "v", "drive", "memory", "pipe", "held", "count", "told")
        return tuple(name for name in names if name in self.symbols)

    def _make_symbols(self) -> Symbols:
        machine, law = self.machine, self.law
        nu, gated = machine.nu, self.ratio > 0 and self.gated
        keeps = gated or self.predictor is not None
        sizes = {
            "x": self.plant.sizes["x"],
            "v": self.plant.sizes["v"],
            "drive": 0 if self.drive is None else len(self.drive.start(np.zeros(nu))),
            "memory": 0 if law is None else len(law.memory),
            "pipe": nu * self.delay,
            "held": nu if keeps else 0,
            "count": 1 if gated else 0,
            "told": 0 if self.told is None else self.told.size,
            "noise": 2 * machine.nv if self.noisy else 0,
        }
        symbols = {n: ca.SX.sym(n, size) for n, size in sizes.items() if size or n in ("x", "v")}
        symbols |= {"time": ca.SX.sym("time"), "h": ca.SX.sym("h")}
        if len(machine.parameters):
            symbols["parameters"] = machine.parameters.symbols
        if law is not None and len(law.machine.parameters) and not self._shared_parameters:
            symbols["law_parameters"] = law.machine.parameters.symbols
        return symbols

    @property
    def _shared_parameters(self) -> bool:
        return self.law is not None and self.law.machine.parameters is self.machine.parameters

    def given(self, name: str) -> Matrix:
        """Return the symbol of a state or input; empty where the loop does without."""
        return self.symbols.get(name, ca.SX(0, 1))

    # ------------------------------------------------------------------ the law

    @cached_property
    def correspondence(self) -> Correspondence | None:
        """Which joints and actuators of the plant are those of the law's machine."""
        return None if self.law is None else Correspondence(self.machine, self.law.machine)

    @cached_property
    def told(self) -> Told | None:
        """How a law in numbers tells what it has found."""
        return Told(self.law) if isinstance(self.law, NumericLaw) else None

    def references(self, t: Matrix) -> dict[str, Matrix]:
        """Return the reference at a time."""
        return {} if self.reference is None else self.reference.at(t)

    def seen(
        self, t: Matrix, x: Matrix, v: Matrix, *, ahead: bool = False
    ) -> tuple[Matrix, Matrix, Matrix, dict[str, Matrix]]:
        """Return time, state and reference as the law sees them, at a measured state of the joints.

        With `ahead`, the state is first predicted, where the loop has a predictor.
        """
        law, same = self.law, self.correspondence
        if law is None or same is None:
            raise SimulationError("there is no law that could see anything")
        x, v = same.x(x), same.v(v)
        if ahead and self.predictor is not None:
            t = t + self.predictor.lead
            pending = self.given("drive"), self.given("pipe"), self.given("held")
            x, v = self.predictor(x, v, *pending)
        reference = self.references(t)
        for name in law.needs:
            if name not in reference:
                known = ", ".join(f"`{key}`" for key in reference) or "none"
                raise SimulationError(
                    f"the law {law.name} needs a reference `{name}`; given: {known}"
                )
        _check_sizes(law, reference)
        return t, x, v, reference

    def command(
        self, t: Matrix, x: Matrix, v: Matrix, memory: Matrix, *, ahead: bool = False
    ) -> Command:
        """Return the law's command for the plant, limited; arguments as for `seen`."""
        law, same = self.law, self.correspondence
        if law is None or same is None:
            return Command(ca.SX(self.machine.nu, 1))
        seen = self.seen(t, x, v, ahead=ahead)
        if self.told is not None:
            found = self.told.command(self.given("told"))
        elif isinstance(law, Law):
            found = law.control(*seen, memory)
        else:
            raise SimulationError(f"`law` must be a Law or a NumericLaw, got {law!r}")
        u = ca.densify(ca.SX(found.u))
        if u.shape != (law.machine.nu, 1):
            raise SimulationError(
                f"the law {law.name} must give {law.machine.nu} inputs, got shape {u.shape}"
            )
        command = same.u(u)
        if self.limits:
            command = limited(self.machine, command)
        return Command(command, found.signals, memory if found.memory is None else found.memory)

    def measured(self, state: State) -> tuple[Matrix, Matrix]:
        """Return what the law is told of the joints."""
        if not self.noisy:
            return state.joint_x, state.joint_v
        noise, nv = self.given("noise"), self.machine.nv
        return self.machine.integrate(state.joint_x, noise[:nv, :]), state.joint_v + noise[nv:, :]

    def controller(self, state: State) -> tuple[dict[str, Matrix], Command]:
        """Return what a control period begins with: held, pipe and memory; and the new command."""
        s = self.symbols
        made = self.command(s["time"], *self.measured(state), self.given("memory"), ahead=True)
        queue = ca.vertcat(self.given("pipe"), made.u)
        nu = self.machine.nu
        begun = {"held": queue[:nu, :], "pipe": queue[nu:, :], "memory": made.memory}
        return {name: begun[name] for name in begun if name == "held" or name in s}, made

    def applied(self, state: State) -> tuple[Matrix, Command]:
        """Return the command that acts at a state of the loop, and what the law says there."""
        begun, made = self.controller(state)
        if not self.ratio:
            return made.u, made
        if not self.gated:
            return begun["held"], made
        return ca.if_else(self.symbols["count"] < 0.5, begun["held"], self.given("held")), made

    # ------------------------------------------------------------------ dynamics

    def load(self, state: State, moment: Moment, z: Matrix, command: Matrix) -> tuple[Load, Matrix]:
        """Return what acts on the machine, and the inputs u."""
        u = command if self.drive is None else self.drive.u(z, command)
        load = Load(self.machine)
        actuate(load, self.machine, state.joint_x, state.joint_v, u, limits=self.limits)
        for disturbance in self.disturbances:
            disturbance.add(load, self.machine, lambda: state.poses, moment)
        return load, u

    @cached_property
    def _rates(self) -> ca.Function:
        """Rates of v and of the drive, from time, state, and the command or the law's memory."""
        t, start, h = ca.SX.sym("t"), ca.SX.sym("start"), ca.SX.sym("h")
        n, memory = self.plant.sizes["v"], self.given("memory")
        x = self.symbols["x"]
        column = ca.SX.sym("column", n + self.given("drive").shape[0])
        v, z = column[:n, :], column[n:, :]
        command = held = ca.SX.sym("command", self.machine.nu if self.ratio else 0)
        state = self.plant.at(x, v, t)
        if not self.ratio:
            command = self.command(t, state.joint_x, state.joint_v, memory).u
        load, _ = self.load(state, Moment(t, start, h), z, command)
        rates = [state.forward(load)]
        if self.drive is not None:
            rates.append(self.drive.rate(z, command))
        inputs = [t, start, h, x, column, held, memory, *self._parameters]
        return ca.Function("rates", inputs, [ca.densify(ca.vertcat(*rates))])

    @property
    def _parameters(self) -> list[Matrix]:
        names = ("parameters", "law_parameters")
        return [self.symbols[name] for name in names if name in self.symbols]

    def _dynamics(
        self, integrator: Integrator, start: Matrix, h: Matrix, command: Matrix
    ) -> Callable[..., Matrix]:
        """Return the function of (t, x, column) that an integrator wants, for one step."""
        memory, n = self.given("memory"), self.plant.sizes["v"]
        project = self.plant.keeps and integrator.on_constraints

        def rates(t: Matrix, x: Matrix, column: Matrix) -> Matrix:
            if project:
                x, v = self.plant.restore(x, column[:n, :], t, 1)
                column = ca.vertcat(v, column[n:, :])
            return self._rates(t, start, h, x, column, command, memory, *self._parameters)

        return rates

    # ------------------------------------------------------------------ steps

    def step(self, integrator: Integrator) -> ca.Function:
        """Return one step of the loop: from all states to their next values."""
        s, following = self.symbols, {}
        state = self.plant.at(s["x"], s["v"], s["time"])
        if self.ratio:
            begun, _ = self.controller(state)
            command, periods = begun["held"], 1
            if self.gated:
                first = s["count"] < 0.5
                begun = {k: ca.if_else(first, new, self.given(k)) for k, new in begun.items()}
                command = begun["held"]
                following["count"] = ca.fmod(s["count"] + 1, self.ratio)
            else:
                periods = self.ratio
            following |= {name: value for name, value in begun.items() if name in s}
        else:
            command, periods = ca.SX(0, 1), 1
            if "memory" in s:
                made = self.command(s["time"], state.joint_x, state.joint_v, s["memory"])
                following["memory"] = made.memory
        x, column = s["x"], ca.vertcat(s["v"], self.given("drive"))
        for k in range(periods):
            t = s["time"] + k * s["h"]
            x, column = self._advance(integrator, t, s["h"], x, column, command)
        following |= self._split(x, column)
        if self.told is not None:
            following["told"] = s["told"]
        return self._function("step", {f"{name}_next": following[name] for name in self.states})

    def _advance(
        self, integrator: Integrator, t: Matrix, h: Matrix, x: Matrix, column: Matrix, command: Any
    ) -> tuple[Matrix, Matrix]:
        """Return x and (v, drive) after one step of the integrator, on the constraints."""
        group = Extended(self.plant.group, self.plant.sizes["v"])
        x, column = integrator.step(
            self._dynamics(integrator, t, h, command), group, t, x, column, h
        )
        return self._projected(integrator, t + h, x, column)

    def _projected(
        self, integrator: Integrator, t: Matrix, x: Matrix, column: Matrix
    ) -> tuple[Matrix, Matrix]:
        if not self.plant.keeps:
            return x, column
        n = self.plant.sizes["v"]
        # A round squares the error that a step leaves: one is enough for a small error, and three
        # for that of low orders near a singular position.
        x, v = self.plant.restore(x, column[:n, :], t, 1 if integrator.order >= 4 else 3)
        return x, ca.vertcat(v, column[n:, :])

    def _split(self, x: Matrix, column: Matrix) -> dict[str, Matrix]:
        n = self.plant.sizes["v"]
        found = {"x": x, "v": column[:n, :], "drive": column[n:, :]}
        return {name: value for name, value in found.items() if name in self.symbols}

    def trial(self, integrator: DormandPrince) -> ca.Function:
        """Return a step of x, v and drive with the command held, and its largest relative error."""
        s = self.symbols
        column = ca.vertcat(s["v"], self.given("drive"))
        dynamics = self._dynamics(integrator, s["time"], s["h"], self.given("held"))
        group = Extended(self.plant.group, self.plant.sizes["v"])
        x, moved, error_x, error_v = integrator.step_with_error(
            dynamics, group, s["time"], s["x"], column, s["h"]
        )
        scale = 1 + ca.fmax(ca.fabs(column), ca.fabs(moved))
        error = ca.mmax(ca.fabs(ca.vertcat(0, error_x, error_v / scale)))
        x, moved = self._projected(integrator, s["time"] + s["h"], x, moved)
        outputs = {f"{name}_next": value for name, value in self._split(x, moved).items()}
        return self._function("trial", {**outputs, "error": error})

    def control(self) -> ca.Function:
        """Return what happens at the beginning of a control period: held, pipe, memory."""
        s = self.symbols
        begun, _ = self.controller(self.plant.at(s["x"], s["v"], s["time"]))
        return self._function("control", {f"{k}_next": begun[k] for k in begun if k in s})

    def question(self) -> ca.Function:
        """Return what a law in numbers is asked: time, x, v, and its references in their order."""
        s = self.symbols
        state = self.plant.at(s["x"], s["v"], s["time"])
        t, x, v, reference = self.seen(s["time"], *self.measured(state), ahead=True)
        return self._function(
            "question", {"t": t, "x_seen": x, "v_seen": v, **_numbered(reference)}
        )

    def _function(self, name: str, outputs: dict[str, Matrix]) -> ca.Function:
        dense = [ca.densify(ca.SX(value)) for value in outputs.values()]
        symbols = list(self.symbols.values())
        return ca.Function(name, symbols, dense, list(self.symbols), list(outputs))


def _numbered(reference: dict[str, Matrix]) -> dict[str, Matrix]:
    """Return references under names that functions may have."""
    return {f"reference_{k}": value for k, value in enumerate(reference.values())}


def _check_sizes(law: AnyLaw, reference: dict[str, Matrix]) -> None:
    """Refuse references of joints that are not those of the law's machine."""
    for name, size in {"x": law.machine.nx, "v": law.machine.nv, "a": law.machine.nv}.items():
        if name in law.needs and ca.SX(reference[name]).shape != (size, 1):
            raise SimulationError(
                f"the reference `{name}` of the law {law.name} must have {size} entries, as its "
                f"machine has, got shape {ca.SX(reference[name]).shape}"
            )
