"""What single precision loses: in every step, and in the closed loop."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from framefree.export.bench_c import SINGLE_LIMIT
from framefree.export.block import BlockPort, StepBlock, split_columns
from framefree.export.compiler import CompiledBlock
from framefree.export.controller import Controller
from framefree.export.errors import ExportError
from framefree.export.exporting import ExportedPart, named_results, stacked
from framefree.export.struct_c import BlockInC
from framefree.kernel import compile
from framefree.simulate.loop import ControlLoop

SHARE, FLOOR = 0.01, 1e-5
"""How much a tracking error may change: a share of it, or rad or m where it is smaller."""


@dataclass(frozen=True)
class PrecisionReport:
    """What single precision loses.

    Attributes
    ----------
    step : float
        Largest difference of an output in one step from recorded memory, as a share of its span.
    worst : str
        Of which output.
    steps : int
        How many were compared.
    loop : ClosedLoopLoss or None
        Of the closed loop, where a law is exported.
    """

    step: float
    worst: str
    steps: int
    loop: "ClosedLoopLoss | None" = None

    def text(self) -> str:
        """Return the report in words."""
        words = (
            f"Single precision: {self.steps} steps, each from its recorded memory, differ from "
            f"double precision by at most {self.step:.2g} of the recorded span ({self.worst})."
        )
        return words if self.loop is None else f"{words} {self.loop.text()}"


@dataclass(frozen=True)
class ClosedLoopLoss:
    """Tracking errors of a loop with the law in double and in single precision.

    Attributes
    ----------
    double, single : dict of str to float
        rms errors by the names of velocities (rad, m); empty without a reference of joints.
    apart : float
        Largest difference of the two motions (rad, m).
    span : float
        How far the motion in double precision goes (rad, m).
    rounded : float or None
        Largest difference of two motions with the law in double precision, one of which has what
        goes into the law rounded to single. None where single precision keeps the loop.
    """

    double: Mapping[str, float]
    single: Mapping[str, float]
    apart: float
    span: float
    rounded: float | None = None

    @property
    def changes(self) -> dict[str, float]:
        """By how much each error differs."""
        return {name: abs(self.single[name] - self.double[name]) for name in self.double}

    @property
    def kept(self) -> bool:
        """Whether all errors are within 1 percent, or 1e-5 rad or m where they are smaller.

        Without errors of joints: whether the motions are as near to each other, as a share of how
        far they go.
        """
        if not self.double:
            return self.apart <= max(SHARE * self.span, FLOOR)
        return all(
            change <= max(SHARE * self.double[name], FLOOR) for name, change in self.changes.items()
        )

    def text(self) -> str:
        """Return the loss in words."""
        words = f"In the closed loop the motions are at most {self.apart:.2g} rad or m apart"
        if self.double:
            name = max(self.changes, key=lambda key: self.changes[key])
            words += (
                f"; the rms error of {name} is {self.single[name]:.4g} instead of "
                f"{self.double[name]:.4g} rad or m, the largest change"
            )
        return f"{words}.{self._warning()}"

    def _warning(self) -> str:
        if self.kept:
            return ""
        kind = "errors" if self.double else "motion"
        words = f" Single precision changes the {kind} by more than 1 percent and 1e-5 rad or m."
        if self.rounded is None:
            return words
        return (
            f"{words} With the law in double precision, and nothing but its inputs rounded, the "
            f"motions are {self.rounded:.2g} apart."
        )


def precision_report(part: ExportedPart) -> PrecisionReport:
    """Return what a part loses in single precision.

    Raises
    ------
    ExportError
        If an output of a step is off by more than 1e-4 of its recorded span.
    """
    block = CompiledBlock(BlockInC(part.block, True))
    off = _shares(part, _single_outputs(part, block))
    worst, entry = 0.0, 0
    if off.size:
        entry = int(off.max(axis=0).argmax())
        worst = float(off[:, entry].max())
    names = [f"{p.name}.{p.entry(k)}" for p in part.block.outputs for k in range(p.size)]
    label = names[entry] if names else "nothing"
    if worst > SINGLE_LIMIT:
        rounded = _shares(part, _outputs_of_rounded_inputs(part))[:, entry].max()
        raise ExportError(
            f"`--single` is refused: `{label}` differs by {worst:.2g} of its recorded span from "
            f"double precision in one step, more than {SINGLE_LIMIT:g}; rounding what goes into "
            f"the step changes it by {rounded:.2g} already"
        )
    loss = closed_loop_loss(part, block) if isinstance(part.made, Controller) else None
    return PrecisionReport(worst, label, part.steps.rows, loss)


def _single_outputs(part: ExportedPart, block: CompiledBlock) -> np.ndarray:
    """Return the outputs of every recorded step in single precision, from its recorded memory."""
    steps, ends = part.steps, _ends(part)
    outputs = np.empty_like(steps.outputs)
    for k in range(steps.rows):
        block.memory[: steps.memory.shape[1]] = steps.memory[k]
        groups = {g: steps.inputs[k, a:b] for g, (a, b) in ends.items()}
        outputs[k] = block.step(**groups)[: outputs.shape[1]]
    return outputs


def _outputs_of_rounded_inputs(part: ExportedPart) -> np.ndarray:
    """Return the outputs of every recorded step in double precision, from rounded inputs."""
    block, steps = part.block, part.steps
    given: dict[str, np.ndarray] = {}
    inputs = [BlockPort(f"{group}_{port.name}", port.size) for group, port in block.inputs]
    memory = [BlockPort(f"memory_{port.name}", port.size) for port in block.memory]
    for ports, rows in ((inputs, steps.inputs), (memory, steps.memory)):
        given |= split_columns(ports, rows.astype(np.float32).astype(float))
    values = named_results(block.program, given)
    return stacked(steps.rows, [values[f"out_{port.name}"] for port in block.outputs])


def _shares(part: ExportedPart, outputs: np.ndarray) -> np.ndarray:
    """Return how far outputs are from the recorded ones, as shares of their spans."""
    off = np.abs(outputs - part.steps.outputs) / part.steps.scales(True)[: outputs.shape[1]]
    return np.where(np.isfinite(off), off, np.inf)


def _ends(part: ExportedPart) -> dict[str, tuple[int, int]]:
    """Return first and last columns of the groups of inputs."""
    ends, at = {}, 0
    for group, ports in part.block.groups.items():
        size = sum(port.size for port in ports)
        ends[group] = (at, at + size)
        at += size
    return ends


# ---------------------------------------------------------------------- the closed loop


class ControlledRun:
    """The loop of a run with a compiled controller in the place of its law.

    Parameters
    ----------
    part : ExportedPart
        A law.
    """

    def __init__(self, part: ExportedPart) -> None:
        self.part, self.made = part, part.made
        self.recorded = part.recorded
        integrator: Any = self.recorded.explicit("plant")
        self.loop: ControlLoop = self.made.loop
        self.sense = self._sensing()
        self.move = self._moving(integrator)

    def _sensing(self) -> Any:
        """Return a kernel from the states of the loop to sensors and reference, as columns."""
        loop, made = self.loop, self.made
        columns = [
            ca.densify(
                ca.vertcat(ca.SX(0, 1), *(ca.vec(ca.SX(slot.simulated).T) for slot in slots))
            )
            for slots in (made.sensors, made.reference)
        ]
        names = ["sensors", "reference"]
        symbols = list(loop.symbols.values())
        return compile(
            ca.Function("sense", symbols, columns, list(loop.symbols), names),
            shapes={"time": (), "h": ()},
        )

    def _moving(self, integrator: Any) -> Any:
        """Return a kernel of one control period of all but the law, under a command."""
        loop, s = self.loop, self.loop.symbols
        u = ca.SX.sym("command", loop.machine.nu)
        queue = ca.vertcat(loop.symbol("pipe"), u)
        nu = loop.machine.nu
        held = queue[:nu, :]
        following: dict[str, Any] = {"held": held, "pipe": queue[nu:, :]}
        if "estimate" in s:
            count = self.made._sensor_memory
            estimation: Any = loop.estimation
            if estimation.sensors is not None:
                state = loop.plant.at(s["x"], s["v"], s["time"])
                acting = loop.forces_on(
                    state, s["time"], loop.symbol("drive"), loop.symbol("held"), s.get("touch")
                )
                kept = estimation.sensors.read(
                    s["estimate"][:count, :], state, acting, loop.symbol("noise")
                )[1]
                following["estimate"] = ca.vertcat(kept, s["estimate"][count:, :])
        n = loop.plant.sizes["v"]
        x, column = s["x"], ca.vertcat(s["v"], loop.symbol("drive"))

        def rates(moment: Any, x: Any, column: Any) -> Any:
            state = loop.plant.at(x, column[:n, :], moment.t)
            return loop.plant_side.rates(state, moment, column[n:, :], held)

        for k in range(max(loop.ratio, 1)):
            x, column = loop.plant_side.advance(
                integrator, rates, s["time"] + k * s["h"], s["h"], x, column
            )
        following |= {"x": x, "v": column[:n, :], "drive": column[n:, :]}
        outputs = {name: following.get(name, s[name]) for name in loop.states}
        dense = [ca.densify(ca.SX(value)) for value in outputs.values()]
        symbols, names = [*s.values(), u], [*s, "command"]
        function = ca.Function("move", symbols, dense, names, [f"{n}_next" for n in outputs])
        return compile(function, shapes={"time": (), "h": ()})

    def run(self, controller: "CompiledBlock | DeskController", periods: int) -> np.ndarray:
        """Return the plant's x (periods + 1, n) under a controller."""
        controller.reset()
        loop, runner = self.loop, self.recorded.segment.runner
        state = {name: np.array(value, float) for name, value in self.recorded.start.items()}
        constants = {**self.recorded.constants, "h": self.recorded.options.dt}
        stride = max(loop.ratio, 1) if loop.gated else 1
        varying = runner.varying(0, periods * stride, stride)
        motion = [state["x"]]
        for k in range(periods):
            now = {**state, **constants, "time": float(varying["time"][k])}
            if "noise" in varying:
                now["noise"] = varying["noise"][k]
            given = {name: now[name] for name in loop.symbols}
            sensors, reference = self.sense(**given)
            u = controller.step(sensors=sensors, reference=reference)[: loop.machine.nu]
            moved = self.move(**given, command=u)
            moved = moved if isinstance(moved, tuple) else (moved,)
            state = dict(zip(loop.states, moved, strict=True))
            motion.append(state["x"])
        return np.array(motion)


class DeskController:
    """A controller as the kernel of the desk, called as a compiled one is.

    Parameters
    ----------
    block : StepBlock
    rounds : bool
        Whether inputs are rounded to single precision first.
    """

    def __init__(self, block: StepBlock, rounds: bool = False) -> None:
        self.block, self.kernel, self.rounds = block, block.kernel(), rounds
        self.names = [port.name for port in self.kernel.outputs]
        self.reset()

    def reset(self) -> None:
        """Set the memory to that at the start of the run."""
        start = self.block.start
        self.memory = {f"memory_{port.name}": start[port.name] for port in self.block.memory}

    def step(self, **groups: np.ndarray) -> np.ndarray:
        """Return the outputs of one step; inputs by group, as columns."""
        given: dict[str, Any] = dict(self.memory)
        for group, ports in self.block.groups.items():
            values = groups[group].astype(np.float32) if self.rounds else groups[group]
            columns = split_columns(ports, values.astype(float))
            given |= {f"{group}_{name}": value for name, value in columns.items()}
        made = self.kernel(**{port.name: given[port.name] for port in self.kernel.inputs})
        named = dict(zip(self.names, made if isinstance(made, tuple) else (made,), strict=True))
        self.memory |= {name: named.get(f"{name}_next", old) for name, old in self.memory.items()}
        return np.concatenate([named[f"out_{port.name}"].ravel() for port in self.block.outputs])


def closed_loop_loss(part: ExportedPart, single: CompiledBlock) -> ClosedLoopLoss | None:
    """Return what the closed loop loses with a controller in single precision.

    None where the plant is MuJoCo's or has no integrator of fixed step.
    """
    try:
        loop = ControlledRun(part)
    except ExportError:
        return None
    stride = loop.loop.ratio if loop.loop.gated and loop.loop.ratio > 1 else 1
    periods = loop.recorded.steps // stride
    double, floats = loop.run(DeskController(part.block), periods), loop.run(single, periods)
    loss = ClosedLoopLoss(
        _errors(loop, double),
        _errors(loop, floats),
        _apart(loop, double, floats),
        _apart(loop, double, double[:1]),
    )
    if loss.kept:
        return loss
    rounded = loop.run(DeskController(part.block, rounds=True), periods)
    return replace(loss, rounded=_apart(loop, double, rounded))


def _apart(loop: ControlledRun, first: np.ndarray, second: np.ndarray) -> float:
    """Return the largest difference of two motions (rad, m)."""
    machine = loop.loop.machine
    if first.shape[1] != machine.nx:
        return float(np.abs(first - second).max())
    second = np.broadcast_to(second, first.shape)
    return float(np.abs(machine.difference(first, second)).max())


def _errors(loop: ControlledRun, motion: np.ndarray) -> dict[str, float]:
    """Return rms errors of joint coordinates by the names of their velocities."""
    machine, reference = loop.loop.machine, loop.loop.reference
    if reference is None:
        return {}
    times = np.arange(len(motion)) * loop.recorded.period
    signals = reference.sample(times)
    if "x" not in signals or signals["x"].shape != motion.shape or motion.shape[1] != machine.nx:
        return {}
    off = machine.difference(signals["x"], motion)
    rms = np.sqrt(np.mean(off**2, axis=0))
    return dict(zip(machine.v_names, rms.tolist(), strict=True))
