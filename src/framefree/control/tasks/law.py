"""Control by tasks: the joint acceleration that they ask for, and the inputs that give it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from framefree.control.law import AnyLaw, Command, ControlError, Law, Timing
from framefree.control.shared.allocation import UNITS
from framefree.control.shared.held_resistance import resists
from framefree.control.tasks.assembly import Assembly, Levels
from framefree.control.tasks.base import Task
from framefree.control.tasks.carried import StandingBase
from framefree.control.tasks.ceiling import FASTEST, SpeedCeiling, approach, check_fastest
from framefree.control.tasks.damped_steps import bounded_acceleration
from framefree.control.tasks.held import HeldObject
from framefree.control.tasks.solvers.base import Solver, TaskProblem
from framefree.control.tasks.solvers.udwadia_kalaba import UdwadiaKalaba
from framefree.control.tasks.standing import checked_contacts
from framefree.machine import Machine
from framefree.machine.part import set_field

Matrix = Any


class LawOfTasks(AnyLaw):
    """What laws by tasks share: levels that are checked, and what the tasks read."""

    levels: Any
    held: HeldObject | None
    contacts: Any
    units: ClassVar[Mapping[str, str]] = UNITS

    def __post_init__(self) -> None:
        set_field(self, "levels", checked_levels(self.machine, self.levels, self.held))
        tasks = [task for level in self.levels for task in level]
        set_field(self, "contacts", checked_contacts(self.machine, self.contacts, tasks))

    @property
    def contact_names(self) -> tuple[str, ...]:
        """Names of the contacts, in the order of `unloaded`."""
        return tuple(contact.name for contact in self.contacts)

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the reference signals that tasks and contacts read."""
        return tuple(self.shapes)

    @property
    def measures(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the sensors that tell grasp wrenches."""
        return () if self.held is None else self.held.measures

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        """Shapes of these signals, by name."""
        parts: list[Any] = [task for level in self.levels for task in level]
        if self.held is not None:
            parts.append(self.held)
        parts.extend(self.contacts)
        return {name: shape for part in parts for name, shape in part.shapes.items()}


@dataclass(frozen=True)
class TaskControl(LawOfTasks, Law):
    """Tasks of a machine, solved in closed form and compiled.

        M a + bias = B u    with a from the solver

    Signals: of every task TASK.error (pose), TASK.velocity_error and TASK.residual (A a - b); the
    joint forces `unrealised` (nv) that the actuators do not give; of a held object GRASP.wrench, of
    the hand on the object at the grasp, in world axes. `damped` has, of every step of the solver
    (of `StrictPriority` a level, of others all rows), the share of what it asks for that it may
    miss because joints would move too fast, and last that of the motion left free
    (`framefree.control.tasks.damped_steps`). It is zero, and the law exact, away from singular
    positions and speeds near `fastest`.

    A machine that stands has `contacts`: they do not move, above all levels, and the smallest
    forces of the ground that carry its base are found with the motion. Friction cones, and the
    least and largest forces of contacts, are inequalities, which a closed form does not take:
    `unloaded` has an entry for each contact, 1 where its force leaves them or it cannot be held
    still. `LimitedTaskControl` keeps forces inside, and says what else is recorded of contacts.

    Parameters
    ----------
    machine : Machine
        The model. Loops and couplings are obeyed: the law works in the velocities that they leave
        free (`Model`). Loops by which a held object is held are its grasps.
    levels : sequence of sequences of Task
        The most important first.
    solver : Solver
        `UdwadiaKalaba`, `Kkt`, `Weighted` or `StrictPriority`.
    held : HeldObject, optional
    feasible : bool
        Whether only accelerations are asked for that the actuators can give, above all levels;
        otherwise what they cannot give is left out at the end. Both are the same for a machine with
        a motor at every joint.
    fastest : float
        Speed, rad/s or m/s, that no driven joint is made to exceed, however singular its position
        is, how far out of reach targets are and how tasks conflict; infinite for none. This law
        does not know limits of motors: where they are too weak for what it asks for, and a run cuts
        the inputs off (`simulate(..., limits=True)`, the default), joints can exceed this speed
        several times. `LimitedTaskControl` knows them and keeps below. Nor are limits of joints
        obeyed; one that is faster counts instead.
    period : float
        Control period, s, in which speeds may change at once and over which motors make up for
        damping and friction of joints (`framefree.control.shared.held_resistance`); 0 where the law
        is evaluated all the time. `simulate`, `step` and `program(period=...)` set it. Without one
        there is neither: the law is the closed form itself.
    contacts : sequence of ContactFrame
        Frames that stand, by which a base without a drive is carried. The machine must not have
        compliant contacts of its own.
    """

    machine: Machine
    levels: Any
    solver: Solver = field(default_factory=UdwadiaKalaba)
    held: HeldObject | None = None
    feasible: bool = True
    fastest: float = FASTEST
    period: float | None = field(default=None, repr=False)
    contacts: Any = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.solver, Solver):
            raise ControlError(
                "`solver` of TaskControl must be UdwadiaKalaba(), Kkt(), Weighted() or "
                f"StrictPriority(), got {self.solver!r}"
            )
        check_fastest(self.fastest)
        if not any(self.levels):
            raise ControlError("TaskControl needs a task, `levels` has none")
        barriers = [task.name for level in self.levels for task in level if task.barrier]
        if barriers:
            raise ControlError(
                f"task `{barriers[0]}` is a barrier, an inequality, which a law in closed form "
                "does not take; use LimitedTaskControl"
            )

    def control(
        self, t: Matrix, x: Matrix, v: Matrix, reference: Mapping[str, Matrix], memory: Matrix
    ) -> Command:
        """Return the inputs at a state."""
        parts = Assembly(self.machine, self.levels, self.held, x, v, reference, memory, self.period)
        rate = None if parts.grip is None or not self.measures else parts.grip.rate
        if not self.contacts:
            a, damped = self._acceleration(parts, parts.problem(self.feasible))
            inputs, signals = parts.inputs(a), parts.signals(a)
        else:
            base = StandingBase(parts, self.contacts, reference)
            a, damped = self._acceleration(parts, base.problem(self.feasible))
            p = base.forces(a)
            driven = base.by_motors(a, p)
            inputs = parts.inputs(a, driven)
            signals = parts.signals(a, driven) | base.signals(a, p)
        return Command(inputs.u, {**signals, **inputs.signals, **damped}, rate=rate)

    def _acceleration(
        self, parts: Assembly, problem: TaskProblem
    ) -> tuple[Matrix, dict[str, Matrix]]:
        """Return the acceleration, and what is recorded of how it was damped."""
        if np.isinf(self.fastest) or self.period is None:
            return self.solver.acceleration(problem), {}
        ceiling = SpeedCeiling.of(parts, self.machine, self.fastest, self.period)
        a, damped = bounded_acceleration(self.solver, problem, ceiling)
        return a, {"damped": damped}

    def timed(self, timing: Timing) -> AnyLaw:
        """Return the law for a control period, in which joints keep below their speeds."""
        same = np.isinf(self.fastest) or approach(timing.period) == approach(self.period)
        if timing.period == self.period or (same and not resists(self.machine)):
            return self
        return replace(self, period=timing.period)

    @property
    def memory(self) -> np.ndarray:
        """What feedback of grasp wrenches has added up."""
        return np.zeros(0 if self.held is None else self.held.memory_size)


def checked_levels(machine: Machine, levels: Any, held: HeldObject | None) -> Levels:
    """Return levels of tasks as tuples; refuse what is not a task, and names that occur twice."""
    if not (held is None or isinstance(held, HeldObject)):
        raise ControlError(f"`held` must be a HeldObject, got {type(held).__name__}")
    if not isinstance(levels, Sequence) or not all(isinstance(one, Sequence) for one in levels):
        raise ControlError("`levels` must be sequences of tasks, the most important first")
    checked = tuple(tuple(level) for level in levels)
    tasks = [task for level in checked for task in level]
    for task in tasks:
        if not isinstance(task, Task):
            raise ControlError(f"`levels` must hold tasks, got {task!r}")
        task.check(machine)
    names = [task.name for task in tasks]
    for name in names:
        if not (name and isinstance(name, str)):
            raise ControlError(f"the name of a task must be a word, got {name!r}")
        if names.count(name) > 1:
            raise ControlError(f"two tasks are named `{name}`; names of tasks must differ")
    if held is not None:
        held.check(machine)
        missing = [grasp.name for grasp in held.grasps if grasp not in tasks]
        if missing:
            raise ControlError(f"the grasp `{missing[0]}` of the held body must be a task too")
    return checked
