"""Control by tasks within limits of torque, position and velocity, through a quadratic program."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import NumericCommand, NumericLaw
from framefree.control.shared.gains import positive
from framefree.control.tasks.assembly import Assembly
from framefree.control.tasks.held import HeldObject
from framefree.control.tasks.law import LawOfTasks
from framefree.control.tasks.solvers.base import Level, TaskProblem
from framefree.control.tasks.solvers.proxqp import AccelerationBounds, ProxQp
from framefree.kernel import Kernel, compile
from framefree.machine import Machine

_SHAPES = {"pose": (4, 4), "twist": (6, 1), "acceleration": (6, 1)}


@dataclass(frozen=True)
class LimitedTaskControl(LawOfTasks, NumericLaw):
    """Tasks of a machine within its limits: the first level holds, the others give way.

    Inputs stay within those of the actuators. A joint approaches the limits of its position and
    velocity no faster than at a rate k,

        a >= -2 k v - k^2 (x - lower),    a <= k (velocity_limit - v)

    and likewise on the other side, so that one which is within them stays there. Signals are those
    of `TaskControl`, `relaxed`: 1 where the limits left no room for the first level, and `solved`:
    0 where the solver has not reached its accuracy.

    Parameters
    ----------
    machine : Machine
        The model.
    levels : sequence of sequences of Task
        The most important first.
    solver : ProxQp
        With the weight of the levels after the first.
    held : HeldObject, optional
    joint_limits : bool
        Whether positions and velocities are limited.
    approach : float
        k, 1/s.
    """

    machine: Machine
    levels: Any
    solver: ProxQp = field(default_factory=ProxQp)
    held: HeldObject | None = None
    joint_limits: bool = True
    approach: float = 20.0

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self.approach, "approach")

    @property
    def memory(self) -> np.ndarray:
        """Where the solver starts from: nowhere."""
        rows = self._ports["exact_b"] + self._ports["b0"]
        return np.zeros(self.machine.nv + rows + len(self._bounded[0]) + len(self._stopped))

    @property
    def signals(self) -> Mapping[str, tuple[int, ...]]:
        """Shapes of all signals."""
        return {**self._signals, "relaxed": (), "solved": ()}

    def command(
        self,
        t: float,
        x: np.ndarray,
        v: np.ndarray,
        reference: Mapping[str, np.ndarray],
        memory: np.ndarray,
    ) -> NumericCommand:
        """Return the inputs at a state."""
        arguments = [x, v, *(reference[name] for name in self.needs)]
        parts = dict(zip(self._ports, self._problem(*arguments), strict=True))
        levels = tuple(Level(parts[f"A{k}"], parts[f"b{k}"]) for k in range(len(self.levels)))
        exact = Level(parts["exact_A"], parts["exact_b"]) if len(parts["exact_b"]) else None
        problem = TaskProblem(parts["M"], parts["Q"], levels, exact)
        result = self.solver.solve(problem, self._bounds(x, v, parts), memory)
        outputs = self._outcome(*arguments, result.answer.a)
        signals = dict(zip(("u", *self._signals), outputs, strict=True))
        u = signals.pop("u")
        signals |= {"relaxed": float(result.relaxed), "solved": float(result.solved)}
        return NumericCommand(u, signals, result.memory)

    # ------------------------------------------------------------------ limits

    def _bounds(
        self, x: np.ndarray, v: np.ndarray, parts: dict[str, np.ndarray]
    ) -> AccelerationBounds:
        """Return the limits as rows of the acceleration."""
        chosen, (lower, upper) = self._bounded
        C, c = parts["input_A"][chosen], parts["input_b"][chosen]
        rows, (low, high) = self._stopped, self._stops(x, v)
        return AccelerationBounds(
            np.vstack([C, np.eye(self.machine.nv)[rows]]),
            np.concatenate([lower - c, low]),
            np.concatenate([upper - c, high]),
            np.arange(len(chosen) + len(rows)) < len(chosen),
        )

    @cached_property
    def _bounded(self) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
        """Inputs that have limits, and these."""
        lower, upper = self.machine.input_limits
        chosen = np.flatnonzero(np.isfinite(lower) | np.isfinite(upper))
        return chosen, (lower[chosen], upper[chosen])

    @cached_property
    def _joints(self) -> tuple[np.ndarray, ...]:
        """Velocity and coordinate of joints with one of each, and their limits."""
        machine, rows = self.machine, []
        for joint in machine.joints:
            if joint.nx == joint.nv == 1 and self.joint_limits:
                limits = joint.lower[0], joint.upper[0], joint.velocity_limit[0]
                if np.isfinite(limits).any():
                    at = machine.v_slice[joint.name].start, machine.x_slice[joint.name].start
                    rows.append((*at, *limits))
        columns = np.array(rows, float).reshape(-1, 5).T
        return (columns[0].astype(int), columns[1].astype(int), *columns[2:])

    @property
    def _stopped(self) -> np.ndarray:
        return self._joints[0]

    def _stops(self, x: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the least and greatest acceleration of the joints that have limits."""
        at_v, at_x, lower, upper, speed = self._joints
        k, q, rate = self.approach, x[at_x], v[at_v]
        # Outside of its limits a joint comes back no faster than it may move.
        slowest, fastest = -k * (speed + rate), k * (speed - rate)
        low = np.clip(-2 * k * rate - k * k * (q - lower), slowest, fastest)
        high = np.clip(-2 * k * rate + k * k * (upper - q), slowest, fastest)
        return low, high

    # ------------------------------------------------------------------ compiled parts

    @cached_property
    def _symbols(self) -> list[Any]:
        shapes = [_SHAPES[name.rpartition(".")[2]] for name in self.needs]
        references = [ca.SX.sym(f"r{k}", *shape) for k, shape in enumerate(shapes)]
        return [ca.SX.sym("x", self.machine.nx), ca.SX.sym("v", self.machine.nv), *references]

    @cached_property
    def _assembly(self) -> Assembly:
        x, v, *references = self._symbols
        named = dict(zip(self.needs, references, strict=True))
        return Assembly(self.machine, self.levels, self.held, x, v, named)

    @cached_property
    def _outputs(self) -> dict[str, Any]:
        parts, n = self._assembly, self.machine.nv
        problem = parts.problem(exact=True)
        exact = problem.exact or Level(ca.SX(0, n), ca.SX(0, 1))
        inputs = parts.input_rows
        outputs = {"M": problem.M, "Q": problem.Q}
        for k, level in enumerate(problem.levels):
            outputs |= {f"A{k}": level.A, f"b{k}": level.b}
        outputs |= {"exact_A": exact.A, "exact_b": exact.b}
        outputs |= {"input_A": inputs.A, "input_b": inputs.b}
        return {name: ca.densify(ca.SX(value)) for name, value in outputs.items()}

    @cached_property
    def _ports(self) -> dict[str, int]:
        return {name: value.shape[0] for name, value in self._outputs.items()}

    @cached_property
    def _problem(self) -> Kernel:
        return compile(ca.Function("problem", self._symbols, list(self._outputs.values())))

    @cached_property
    def _result(self) -> tuple[Any, dict[str, Any], Any]:
        """Inputs and signals at an acceleration, and that acceleration."""
        a = ca.SX.sym("a", self.machine.nv)
        inputs = self._assembly.inputs(a)
        return inputs.u, {**self._assembly.signals(a), **inputs.signals}, a

    @property
    def _signals(self) -> dict[str, tuple[int, ...]]:
        return {name: (value.shape[0],) for name, value in self._result[1].items()}

    @cached_property
    def _outcome(self) -> Kernel:
        u, signals, a = self._result
        outputs = [ca.densify(ca.SX(value)) for value in (u, *signals.values())]
        return compile(ca.Function("outcome", [*self._symbols, a], outputs))
