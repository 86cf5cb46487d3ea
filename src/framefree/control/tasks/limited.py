"""Control by tasks in strict order, within limits of torque, position, speed and acceleration."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from framefree.control.law import (
    AnyLaw,
    ControlError,
    LawBlocks,
    NumericCommand,
    NumericLaw,
    Timing,
)
from framefree.control.qp.hierarchy import TOLERANCE
from framefree.control.qp.lexicographic import PARTS, program
from framefree.control.shared.gains import positive
from framefree.control.shared.held_resistance import resists
from framefree.control.shared.limits import clipped
from framefree.control.tasks.assembly import Assembly
from framefree.control.tasks.bounds import BoundedProblem, JointLimits
from framefree.control.tasks.ceiling import FASTEST, approach, check_fastest, widened
from framefree.control.tasks.held import HeldObject
from framefree.control.tasks.law import LawOfTasks
from framefree.control.tasks.solvers.proxqp import ProxQp
from framefree.control.tasks.standing import Standing
from framefree.kernel import Kernel, compile
from framefree.kernel.loops import Block, Calls
from framefree.machine import Machine

DAMPED_ABOVE = 100.0
"""Default of `damped_above`, m/s^2: levels that ask for less are met exactly, never damped."""


@dataclass(frozen=True)
class LimitedTaskControl(LawOfTasks, NumericLaw):
    """Tasks of a machine within its limits, each level as far as those above it leave room.

    Limits come first: inputs within those of the actuators, then joints within theirs
    (`framefree.control.tasks.bounds.JointLimits`), then the tasks. Each level misses what it asks
    for by as little as can be, and no level gives way to one below it
    (`framefree.control.qp.lexicographic`). Where no limit is active this is `StrictPriority`.
    Barriers among the tasks are inequalities.

    Where the rows of a level become dependent, as in a stretched arm, they may ask for any
    acceleration. Limits of all joint speeds bound it, and nothing else is done. Where a joint has
    none, it keeps below the speed `fastest` as below a limit, and a level that asks for more than
    `damped_above` is damped, so that joints come to rest in singular positions; `damped` tells the
    largest share of what was asked for that this adds to the residual. With less the level is
    exact, however dependent its rows are.

    A machine that stands has `contacts`: the forces of the ground are found with the acceleration,
    inside of the friction cones, and stand above joint limits and tasks in the order. What a task
    asks for so cannot make a foot slip. Of every contact CONTACT.force records the force at each of
    its points (axes of the ground, N), CONTACT.normal the sum of the normal forces, CONTACT.cone
    the largest share |f_t| / (mu f_n) of the friction that is used, CONTACT.speed at which the law
    sees it move (m/s); `unloaded` has an entry for each contact: 1 where it cannot be held still,
    or carries no more than its least force though it may (`unloaded_contacts` tells which, when).

    Signals are those of `TaskControl`, and of the program: `slack` of every row (`row_names`), what
    it misses; `multiplier` of every row, at the first level that it holds back; of every level
    (`level_names`) `missed`, the length of what it misses, and `damped`; `certificate`, the
    largest relative error of all conditions of optimality; `steps` of the solver; `relaxed`: 1
    where the limits left no room for the first level of tasks; `solved`: 0 where the steps did not
    suffice.

    Parameters
    ----------
    machine : Machine
        The model.
    levels : sequence of sequences of Task
        The most important first.
    solver : ProxQp, optional
        A second opinion in place of the compiled method; it has no damping and no multipliers.
    held : HeldObject, optional
    joint_limits : bool
        Whether positions and velocities are limited.
    approach : float
        k, 1/s.
    acceleration_limit : float
        Of every joint, rad/s^2 or m/s^2; with `joint_limits`.
    damped_above : float
        Acceleration of the machine, m/s^2, in the mean of squares over its mass and relative to
        joints that keep their speeds, above which levels with rows that are nearly dependent are
        damped; infinite for never. Less where joints move faster than 0.4 of `fastest`.
    fastest : float
        Speed, rad/s or m/s, that driven joints without a limit of their own (all of them without
        `joint_limits`) are not made to exceed; infinite for none.
    period : float
        Control period, s, over which feedback of grasp wrenches adds up, in which speeds may change
        at once, and over which motors make up for damping and friction of joints, as far as their
        limits allow (`framefree.control.shared.held_resistance`); `simulate` sets it.
    contacts : sequence of ContactFrame
        Frames that stand, by which a base without a drive is carried. The machine must not have
        compliant contacts of its own.
    """

    machine: Machine
    levels: Any
    solver: ProxQp | None = None
    held: HeldObject | None = None
    joint_limits: bool = True
    approach: float = 20.0
    acceleration_limit: float = np.inf
    damped_above: float = DAMPED_ABOVE
    fastest: float = FASTEST
    period: float | None = field(default=None, repr=False)
    contacts: Any = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.solver is None or isinstance(self.solver, ProxQp)):
            raise ControlError(f"`solver` must be ProxQp(), or None, got {self.solver!r}")
        positive(self.approach, "approach")
        if np.isnan(self.damped_above) or self.damped_above < 0:
            raise ControlError(f"`damped_above` must not be negative, got {self.damped_above:g}")
        check_fastest(self.fastest)
        if self.acceleration_limit != np.inf:
            positive(self.acceleration_limit, "acceleration_limit")

    @property
    def memory(self) -> np.ndarray:
        """Where the solver starts from: the latest variables and which rows were at bounds.

        What feedback of grasp wrenches has added up follows.
        """
        return np.zeros(self._solver_memory + self._feedback_size)

    @property
    def _solver_memory(self) -> int:
        return self.machine_size + len(self.row_names)

    @property
    def _feedback_size(self) -> int:
        return 0 if self.held is None else self.held.memory_size

    def timed(self, timing: Timing) -> AnyLaw:
        """Return the law for a control period."""
        return self if timing.period == self.period else replace(self, period=timing.period)

    @property
    def machine_size(self) -> int:
        """Number of variables: independent accelerations, and forces of contacts."""
        return self._problem.n

    @property
    def row_names(self) -> tuple[str, ...]:
        """Names of all rows in order."""
        return tuple(label for level in self._problem.levels for label in level.labels)

    @property
    def level_names(self) -> tuple[str, ...]:
        """Names of all levels in order; of the last, motion that is left is nearest to free."""
        return (*(level.name for level in self._problem.levels), "least constraint")

    @property
    def signals(self) -> Mapping[str, tuple[int, ...]]:
        """Shapes of all signals."""
        return {name: (value.shape[0],) for name, value in self._outcome_parts[1].items()}

    tunable: ClassVar[bool] = True

    @property
    def native(self) -> bool:
        """Whether the law is part of the compiled step of a loop: not with a second opinion."""
        return self.solver is None

    def command(
        self,
        t: float,
        x: np.ndarray,
        v: np.ndarray,
        reference: Mapping[str, np.ndarray],
        memory: np.ndarray,
        parameters: Any = None,
    ) -> NumericCommand:
        """Return the inputs at a state."""
        n, end, own = self.machine_size, self._solver_memory, self.machine.parameters
        inputs = [x, v, *(reference[name] for name in (*self.needs, *self.measures))]
        if self._feedback_size:
            inputs.append(memory[end:])
        if len(own):
            inputs.append(own.values(parameters))
        if self.solver is not None:
            return self._second_opinion(inputs)
        u, *signals, following = self._solver_kernel(*inputs, memory[:n], memory[n:end])
        return NumericCommand(u, dict(zip(self.signals, signals, strict=True)), following)

    def _second_opinion(self, inputs: list[np.ndarray]) -> NumericCommand:
        solver: Any = self.solver
        m, levels = len(self.row_names), len(self.level_names)
        Y, lower, upper, *_ = self._rows_kernel(*inputs)
        Y = Y.reshape(m, -1)[:, : self.machine_size]
        found = solver.solve(Y, lower, upper, self._problem.ends)
        info = np.zeros((levels, PARTS))
        info[:, 3] = 0.0 if found.solved else -1.0
        for k, (a, b) in enumerate(zip((0, *self._problem.ends), self._problem.ends, strict=False)):
            info[k, 0] = np.linalg.norm(found.slack[a:b])
            info[k, 3] = info[k, 3] if info[k, 0] > 1e-6 else max(info[k, 3], 1.0)
        arguments = (found.z, found.slack, np.zeros(levels * m), np.zeros(m), info.ravel(), [0.0])
        u, *signals, following = self._outcome_kernel(*inputs, *arguments)
        return NumericCommand(u, dict(zip(self.signals, signals, strict=True)), following)

    # ------------------------------------------------------------------ native calls

    @property
    def instead(self) -> str:
        """Say which law can be compiled."""
        return "the same law without `solver` can: its own method is compiled"

    def write(
        self, calls: Calls, inputs: LawBlocks, column: Block, *, signals: bool = True
    ) -> None:
        """Append calls that write u, all signals in order and memory to a block."""
        names = (*self.needs, *self.measures)
        values = [inputs.x, inputs.v, *(inputs.reference[name] for name in names)]
        values += [inputs.memory[self._solver_memory :]] if self._feedback_size else []
        values += [] if inputs.parameters is None else [inputs.parameters]
        solved = self._write_solution(calls, values, *self._start(inputs.memory))
        last = self._outcome if signals else self._inputs_alone
        used = solved if signals else [solved[0], solved[3]]
        ends = np.cumsum([0, *(last.numel_out(k) for k in range(last.n_out()))]).tolist()
        calls.call(last, [*values, *used], [column[a:b] for a, b in pairwise(ends)])

    def _start(self, memory: Block) -> tuple[Block, Block]:
        """Return the blocks of variables and status of before."""
        n = self.machine_size
        return memory[:n], memory[n : self._solver_memory]

    def _write_solution(
        self, calls: Calls, values: list[Block], start: Block, status: Block
    ) -> list[Block]:
        """Append rows and the levels in order; return the blocks of the solver's results."""
        one = self._procedure
        rows = [calls.block(one.layout.parts[k]) for k in one.inputs[:7]]
        calls.call(self._rows, values, rows)
        solved = [calls.block(one.layout.parts[name]) for name in one.outputs]
        calls.call(one, [*rows, start, status], solved)
        return solved

    @property
    def _sizes_out(self) -> list[int]:
        return [self._outcome.numel_out(k) for k in range(self._outcome.n_out())]

    @cached_property
    def _solver_kernel(self) -> Kernel:
        """The law as one kernel: x, v, references, variables and status of before, to all."""
        calls = Calls("limited_tasks")
        values = [
            calls.input(name, (a, b) if b > 1 else (a,)) for name, (a, b) in self._shapes.items()
        ]
        start = calls.input("start", (self.machine_size,))
        status = calls.input("status", (len(self.row_names),))
        solved = self._write_solution(calls, values, start, status)
        names = self._outcome.name_out()
        pairs = zip(names, self._sizes_out, strict=True)
        outputs = [calls.output(name, (size,)) for name, size in pairs]
        calls.call(self._outcome, [*values, *solved], outputs)
        return calls.compile()

    @cached_property
    def _procedure(self) -> Any:
        problem = self._problem
        return program(
            "levels", problem.n, problem.ends, damps=self._damps, exact=problem.exact,
            tolerance=TOLERANCE,
        )  # fmt: skip

    @property
    def _damps(self) -> bool:
        """Whether levels may be damped: where no limits bound all speeds."""
        bounded = self.joint_limits and all(
            np.isfinite(joint.velocity_limit).all() for joint in self.machine.joints
        )
        return not bounded and bool(np.isfinite(self.damped_above))

    @cached_property
    def _shapes(self) -> dict[str, tuple[int, int]]:
        """Shapes of state, references, readings and tunable numbers, by the names of inputs."""
        shapes = {"x": (self.machine.nx, 1), "v": (self.machine.nv, 1)}
        for k, name in enumerate(self.needs):
            shapes[f"reference_{k}"] = self.shapes[name]
        shapes |= {f"measured_{k}": (6, 1) for k in range(len(self.measures))}
        if self._feedback_size:
            shapes["feedback"] = (self._feedback_size, 1)
        if len(self.machine.parameters):
            shapes["parameters"] = (len(self.machine.parameters), 1)
        return shapes

    @cached_property
    def _symbols(self) -> dict[str, Any]:
        """Columns of symbols; of matrices row by row, as NumPy has them."""
        symbols = {name: ca.SX.sym(name, a * b) for name, (a, b) in self._shapes.items()}
        if "parameters" in symbols:
            symbols["parameters"] = self.machine.parameters.symbols
        return symbols

    @cached_property
    def _problem(self) -> BoundedProblem:
        shaped = [ca.reshape(self._symbols[name], b, a).T for name, (a, b) in self._shapes.items()]
        named = dict(zip((*self.needs, *self.measures), shaped[2:], strict=False))
        x, v, feedback = *shaped[:2], self._symbols.get("feedback")
        parts = Assembly(self.machine, self.levels, self.held, x, v, named, feedback, self.period)
        limits = JointLimits(
            self.approach, self.acceleration_limit, self.joint_limits, self.fastest, self.period
        )
        standing = None
        if self.contacts:
            standing = Standing(self.contacts, parts.frames, parts.state, named)
        return BoundedProblem(parts, self.machine, self.levels, limits, standing)

    def _function(self, name: str, more: dict[str, Any], outputs: dict[str, Any]) -> ca.Function:
        inputs = {**self._symbols, **more}
        dense = [ca.densify(ca.SX(value)) for value in outputs.values()]
        return ca.Function(name, list(inputs.values()), dense, list(inputs), list(outputs))

    @cached_property
    def _rows(self) -> ca.Function:
        """Rows, bounds, rest and how far from it is far, as the routine wants them."""
        problem = self._problem
        Y, lower, upper = problem.rows()
        width = -(-problem.n // 4) * 4
        wide = ca.horzcat(Y, ca.SX(Y.shape[0], width - problem.n))
        outputs = {"Y": ca.vec(wide.T), "lower": lower, "upper": upper}
        return self._function("rows", {}, {**outputs, **self._damping(width)})

    def _damping(self, width: int) -> dict[str, Any]:
        """Return where damping pulls to, and when: nothing of it where there is none."""
        problem, empty = self._problem, ca.SX(width, 1)
        if not self._damps:
            return {"rest": empty, "still": empty, "farthest": ca.SX(0), "threshold": ca.SX(0)}
        hurry = problem.hurry(self.machine, self.fastest)
        mass = sum(float(body.moments.total) for body in self.machine.bodies)
        padding = ca.SX(width - problem.n, 1)
        return {
            "rest": ca.vertcat(problem.rest(approach(self.period)), padding),
            "still": ca.vertcat(problem.still(), padding),
            "farthest": self.damped_above * np.sqrt(mass) * (1 - hurry),
            "threshold": widened(problem.asked, hurry),
        }

    @cached_property
    def _rows_kernel(self) -> Kernel:
        shapes = {name: (a, b) for name, (a, b) in self._shapes.items() if b > 1}
        return compile(self._rows, shapes=shapes)

    @cached_property
    def _outcome_parts(self) -> tuple[Any, dict[str, Any], Any, dict[str, Any]]:
        """Inputs, signals, memory, and the results of the solver that they are made of."""
        problem, m, levels = self._problem, len(self.row_names), len(self.level_names)
        sizes = {"solution": problem.n, "slack": m, "multipliers": levels * m}
        sizes |= {"status": m, "level_info": levels * PARTS, "steps": 1}
        results = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
        a, driven = (
            find(results["solution"]) for find in (problem.acceleration, problem.motor_acceleration)
        )
        inputs = problem.parts.inputs(a, driven)
        u = clipped(self.machine, inputs.u) if resists(self.machine) else inputs.u
        info = ca.reshape(results["level_info"], PARTS, levels)
        verdicts = info[3, :].T
        by_level = ca.reshape(results["multipliers"], m, levels)
        strongest = by_level[:, 0]
        for k in range(1, levels):
            strongest = ca.if_else(strongest == 0, by_level[:, k], strongest)
        signals = {**problem.parts.signals(a, driven), **inputs.signals, "slack": results["slack"]}
        if problem.standing is not None:
            p, slack = results["solution"][problem.parts.n :], ca.vertsplit(results["slack"])
            missed = dict(zip(self.row_names, slack, strict=True))
            signals |= {**problem.standing.signals(p, missed), "acceleration": a}
        signals |= {"multiplier": strongest, "missed": info[0, :].T, "damped": info[2, :].T}
        signals |= {"certificate": ca.mmax(info[1, :].T), "steps": results["steps"]}
        first = min(problem.first_task, levels - 1)
        signals |= {"relaxed": verdicts[first] == 0, "solved": ca.mmin(verdicts) >= 0}
        memory = ca.vertcat(results["solution"], results["status"])
        if problem.parts.grip is not None and self._feedback_size:
            rate = problem.parts.grip.rate
            memory = ca.vertcat(memory, self._symbols["feedback"] + (self.period or 0.0) * rate)
        return u, signals, memory, results

    @cached_property
    def _outcome(self) -> ca.Function:
        u, signals, memory, results = self._outcome_parts
        outputs = {"u": u, **{f"s{k}": value for k, value in enumerate(signals.values())}}
        return self._function("outcome", results, {**outputs, "memory": memory})

    @cached_property
    def _inputs_alone(self) -> ca.Function:
        """From state and solution to u and memory."""
        u, _, memory, results = self._outcome_parts
        used = {name: results[name] for name in ("solution", "status")}
        return self._function("inputs", used, {"u": u, "memory": memory})

    @cached_property
    def _outcome_kernel(self) -> Kernel:
        shapes = {name: (a, b) for name, (a, b) in self._shapes.items() if b > 1}
        return compile(self._outcome, shapes=shapes)
