"""One step of the loop by an implicit integrator: a program of calls that iterate natively.

Like `ControlLoop.step`, whose page this is, but for the integrator: each of its stages is an
equation, solved by calls of one function until it has converged. What the plant contributes is
`StageEquations`: the residual of a stage and Newton's step, with the slopes of the plant itself,
its servos and its passive forces. A command is held while a stage is solved, or follows the state
where the law is evaluated all the time; the law's own slopes are not used.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca

from framefree.kernel.loops import Block, Calls
from framefree.motion import State
from framefree.motion.load import Load
from framefree.simulate.actuation import actuate
from framefree.simulate.disturbances import Moment
from framefree.simulate.impacts import may_be_hit, resolved
from framefree.simulate.integrators import ImplicitIntegrator
from framefree.simulate.integrators.newton import (
    ImplicitStage,
    NewtonStep,
    StageState,
    iterated,
    relative_size,
    solve_unpivoted,
    solved,
)
from framefree.simulate.loop import ControlLoop
from framefree.simulate.native_law import loop_inputs, write_law

Matrix = Any


def actuator_slopes(state: State, u: Matrix, *, limits: bool) -> tuple[Matrix, Matrix]:
    """Return the slopes (nv x nv) by x and by v of the force of all actuators at held inputs.

    With `limits` they are zero where a force is at its limit. x and v of the state are symbols.
    """
    held, load = ca.SX.sym("u", state.machine.nu), Load(state.machine)
    actuate(load, state, held, limits=limits)
    force = state.generalised(load)
    slopes = [state.along(force), ca.jacobian(force, state.v)]
    by_x, by_v = ca.substitute(slopes, [held], [ca.densify(ca.SX(u))])
    return by_x, by_v


@dataclass(frozen=True)
class StageEquations:
    """The equations of a stage for the plant of a loop."""

    loop: ControlLoop

    @cached_property
    def moment(self) -> Moment:
        """Symbols of a moment in the step."""
        return Moment(ca.SX.sym("t"), ca.SX.sym("start"), ca.SX.sym("h"))

    @cached_property
    def command(self) -> Matrix:
        """Symbol of the held command."""
        return ca.SX.sym("command", self.loop.machine.nu if self.loop.ratio else 0)

    @property
    def context(self) -> list[Matrix]:
        """Symbols of all that is the same in every iteration of a stage."""
        return [*self.moment, self.command, *self.loop.parameters]

    def evaluate(self, X: Matrix, y: Matrix, rate: Matrix, share: Matrix) -> NewtonStep:
        """Return Newton's step at a state that has the rate (y - base)/share."""
        plant, n = self.loop.plant, self.loop.plant.sizes["v"]
        base, moved = y[:n, :] - share * rate[:n, :], y
        if plant.keeps:
            X, v = plant.restore(X, y[:n, :], self.moment.t, 1)
            moved = ca.vertcat(v, y[n:, :])
        return NewtonStep(*self._function(X, moved, rate, base, share, *self.context))

    @cached_property
    def _function(self) -> ca.Function:
        """Newton's step as a function of symbols, of which slopes can be taken."""
        loop, size = self.loop, self.loop.column.shape[0]
        x, column = ca.SX.sym("x", loop.plant.sizes["x"]), ca.SX.sym("column", size)
        rate, share = ca.SX.sym("rate", size), ca.SX.sym("share")
        parts, rates = loop.split(column), loop.split(rate)
        base = ca.SX.sym("base", parts["v"].shape[0])
        state, command, d = loop.plant.at(x, parts["v"], self.moment.t), self.command, []
        if not loop.ratio:
            made = loop.command_at(self.moment.t, state, parts["memory"])
            command, memory_rate = made.u, 0 if made.rate is None else made.rate
            # What a law remembers is taken as slow: no slopes.
            d = [-share * (rates["memory"] - memory_rate)]
        if loop.drive is not None:
            d = [self._drive_step(parts["drive"], rates["drive"], command, share), *d]
        load, u = loop.plant_side.load(state, self.moment, parts["drive"], command)
        step, residual = self._velocity_step(state, rates["v"], load, u, share)
        outputs = [
            ca.vertcat(step, *d),
            residual,
            relative_size(state.mass, step, parts["v"], base),
        ]
        inputs = [x, column, rate, base, share, *self.context]
        return _function("newton", inputs, outputs)

    def _velocity_step(
        self, state: Any, a: Matrix, load: Load, u: Matrix, share: Matrix
    ) -> tuple[Matrix, Matrix]:
        """Return Newton's step of v, and the residual, where v changes at a."""
        slopes = share * self._slopes(state, a, u, share)
        if state.rows is None:
            residual = share * (state.inverse(a) - state.generalised(load))
            return -solve_unpivoted(state.mass + slopes, residual), residual
        off = share * (a - state.forward(load))
        matrix = ca.SX.eye(off.shape[0]) + ca.densify(state.respond(slopes))
        return -ca.solve(matrix, off), state.mass @ off

    def _slopes(self, state: Any, a: Matrix, u: Matrix, share: Matrix) -> Matrix:
        """Return minus the slopes of all forces by the velocity, x moving along with it."""
        by_x, by_v = state.newton_slopes(a)
        K, D = actuator_slopes(state, u, limits=self.loop.limits)
        return by_v - D + share * (by_x - K)

    def _drive_step(self, z: Matrix, rate: Matrix, command: Matrix, share: Matrix) -> Matrix:
        """Return Newton's step of the state of the drive, which does not depend on v."""
        drive: Any = self.loop.drive
        symbol, held = ca.SX.sym("z", z.shape[0]), ca.SX.sym("command", command.shape[0])
        slope = ca.jacobian(drive.rate(symbol, held), symbol)
        slope = ca.substitute([slope], [symbol, held], [z, ca.densify(command)])[0]
        off = share * (rate - drive.rate(z, command))
        return -ca.solve(ca.SX.eye(z.shape[0]) - share * ca.densify(slope), ca.densify(off))


def implicit_step(loop: ControlLoop, integrator: ImplicitIntegrator) -> Calls:
    """Return one step of the loop: from all states to their next values.

    Where a stage has no solution the next x and v are NaN.
    """
    return _Program(loop, integrator).calls


class _Program:
    """Writes the calls of one step."""

    def __init__(self, loop: ControlLoop, integrator: ImplicitIntegrator) -> None:
        self.loop, self.integrator = loop, integrator
        self.group = loop.plant_side.group
        self.x = ca.SX.sym("x", loop.plant.sizes["x"])
        self.y = ca.SX.sym("y", loop.column.shape[0])
        self.h, self.start = ca.SX.sym("h"), ca.SX.sym("start")
        self.moving = self.group.velocity(self.x, self.y).shape[0]
        self.watched = may_be_hit(loop, integrator)
        self.calls = Calls("implicit_step")
        self.inputs = loop_inputs(self.calls, loop)
        output = loop.law_side.output
        if output is not None and output.law.native:
            self.inputs["law_output"] = write_law(self.calls, loop, self.inputs)
        self._write()

    def _write(self) -> None:
        loop, s = self.loop, self.loop.symbols
        following, acting, steps = loop.begin_step()
        first = [s["x"], loop.column, acting, *following.values()]
        x, y, acting, *kept = self._call(_function("begin", [*s.values()], first), self._given)
        for k in range(steps):
            later = _function("later", [s["time"], s["h"]], [s["time"] + k * s["h"]])
            (start,) = self._call(later, [self.inputs["time"], self.inputs["h"]])
            x, y = self._step(x, y, start, acting)
        values = dict(zip(following, kept, strict=True))
        symbols = {name: ca.SX.sym(name, block.size) for name, block in values.items()}
        results = {name: s[name] for name in loop.states}
        results |= {"x": self.x, **loop.split(self.y), **symbols}
        if not loop.ratio and "memory" in s:
            results["memory"] += loop.jump
        inputs = [*s.values(), self.x, self.y, *symbols.values()]
        end = _function("end", inputs, [results[name] for name in loop.states])
        outputs = [
            self.calls.output(f"{name}_next", (end.numel_out(k),))
            for k, name in enumerate(loop.states)
        ]
        self.calls.call(end, [*self._given, x, y, *kept], outputs)

    @property
    def _given(self) -> list[Block]:
        return list(self.inputs.values())

    def _step(self, x: Block, y: Block, start: Block, acting: Block) -> tuple[Block, Block]:
        """Write one step of the integrator; return the blocks of x and y after it."""
        h = self.inputs["h"]
        parameters = [self.inputs[name] for name in self.loop.parameter_names]
        rates: list[Block] = []
        flags: list[Block] = []
        kept: list[Block] = []
        for row in self.integrator.rows:
            if rates and self.watched:
                kept = self._call(self._resolved, [x, y, h, start, *rates, *parameters])
            begun = self._call(self._begin_stage(row), [x, y, h, start, *rates, *kept])
            t, known, state = begun[0], begun[1:4], begun[4:]
            moved = [self.calls.block(block.size) for block in state]
            context = [t, start, h, acting, *parameters]
            for _ in range(self.integrator.iterations):
                inputs = [x, *known, *context, *state]
                self.calls.call(self._iterate, inputs, moved, unless=state[-1])
                self.calls.call(self._copy, moved, state, unless=state[-1])
            P, A, flag = self._call(self._end_stage, [x, *known, *state])
            rates += [P, A]
            flags.append(flag)
        x, y = self._call(self._finish, [x, y, h, start, *rates, *kept, *flags])
        return x, y

    def _call(self, function: ca.Function, inputs: list[Block]) -> list[Block]:
        outputs = [self.calls.block(function.numel_out(k)) for k in range(function.n_out())]
        self.calls.call(function, inputs, outputs)
        return outputs

    # ------------------------------------------------------------------ functions

    def _rates(self, count: int) -> tuple[list[Matrix], list[Matrix], list[Matrix]]:
        """Return symbols of the rates of x and y at some stages, and all of them in turn."""
        P = [ca.SX.sym("P", self.moving) for _ in range(count)]
        A = [ca.SX.sym("A", self.y.shape[0]) for _ in range(count)]
        return P, A, [one for pair in zip(P, A, strict=True) for one in pair]

    def _weights(self, row: tuple[float, ...], count: int) -> tuple[list[Matrix], list[Matrix]]:
        """Return the weights of a row after some stages, and the symbol that they depend on.

        Where an impact is too short for the step, the last weight is that of all of them.
        """
        if not (count and self.watched):
            return list(row), []
        kept = ca.SX.sym("kept")
        alone = [*[0.0] * (len(row) - 1), sum(row)]
        pairs = zip(row, alone, strict=True)
        return [ca.if_else(kept, one, other) for one, other in pairs], [kept]

    @cached_property
    def _resolved(self) -> ca.Function:
        """The function that tells whether later stages may build upon the first."""
        (P,), (A,), rates = self._rates(1)
        parts, rate = self.loop.split(self.y), self.loop.split(A)
        state = self.loop.plant.at(self.x, parts["v"], self.start)
        own = self.integrator.rows[0][0]
        flag = resolved(self.loop, own, self.h, state, (P, rate["v"]))
        inputs = [self.x, self.y, self.h, self.start, *rates, *self.loop.parameters]
        return _function("resolved", inputs, [flag])

    def _begin_stage(self, row: tuple[float, ...]) -> ca.Function:
        """Return the function that gives the time of a stage, its known part and first state."""
        x, y, h, group = self.x, self.y, self.h, self.group
        P, A, rates = self._rates(len(row) - 1)
        weights, kept = self._weights(row, len(P))
        theta = h * _weighted(weights[:-1], P, self.moving)
        base, share = y + h * _weighted(weights[:-1], A, y.shape[0]), weights[-1] * h
        # Of the first stage nothing is known but the state; later ones go on as the one before.
        guess = base + row[-1] * h * A[-1] if A else base
        X = group.integrate(x, theta + share * group.velocity(x, guess))
        results = [self.start + sum(row) * h, theta, base, share, *StageState.first(guess, X)]
        return _function("begin_stage", [x, y, h, self.start, *rates, *kept], results)

    @cached_property
    def _stage(self) -> tuple[ImplicitStage, list[Matrix], StageState]:
        """A stage of symbols, those of its known part in order, and a state of its iteration."""
        known = [ca.SX.sym("theta", self.moving), ca.SX.sym("base", self.y.shape[0])]
        known = [self.x, *known, ca.SX.sym("share")]
        return (
            ImplicitStage(self.group, *known),
            known,
            StageState.symbols(self.y.shape[0], self.x.shape[0]),
        )

    @cached_property
    def _iterate(self) -> ca.Function:
        (stage, known, now), equations = self._stage, StageEquations(self.loop)
        following = iterated(
            stage, now, lambda X, y, rate: equations.evaluate(X, y, rate, stage.share)
        )
        return _function("iterate", [*known, *equations.context, *now], following)

    @cached_property
    def _copy(self) -> ca.Function:
        return _function("copy", self._stage[2], self._stage[2])

    @cached_property
    def _end_stage(self) -> ca.Function:
        stage, known, now = self._stage
        return _function("end_stage", [*known, *now], [*stage.rates(now.X, now.y), solved(now)])

    @cached_property
    def _finish(self) -> ca.Function:
        """The function from all stages to the state after the step."""
        x, h, side = self.x, self.h, self.loop.plant_side
        P, A, rates = self._rates(self.integrator.stages)
        weights, kept = self._weights(self.integrator.weights, len(P) - 1)
        flags = [ca.SX.sym("solved") for _ in weights]
        moved = self.group.integrate(x, h * _weighted(weights, P, self.moving))
        column = self.y + h * _weighted(weights, A, self.y.shape[0])
        results = side.projected(
            self.integrator, self.start + h, self.group.normalise(moved), column
        )
        good = ca.mmin(ca.vertcat(*flags)) > 0
        results = [ca.if_else(good, value, ca.SX(float("nan"))) for value in results]
        return _function("finish", [x, self.y, h, self.start, *rates, *kept, *flags], results)


def _function(name: str, inputs: Any, outputs: Any) -> ca.Function:
    return ca.Function(name, list(inputs), [ca.densify(ca.SX(value)) for value in outputs])


def _weighted(weights: Any, values: list[Matrix], size: int) -> Matrix:
    pairs = zip(weights, values, strict=True)
    return sum((weight * value for weight, value in pairs), ca.SX.zeros(size))
