"""What a law adds to its force against what nobody told it about.

The equations of motion in the velocities w (n) of the law's model are

    M dw/dt + C w + (passive forces) = force + d,       d = S(x)^T z

with an unknown z that is taken as constant: `UnknownForce` says what z is and in which axes it is
constant. A correction has states of its own, which the loop integrates with the law's memory
(`framefree.control.law`), and gives a force -S^T z_estimated.

To add a correction, subclass `Correction` and give ``size``, ``first_memory`` and ``meet``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import casadi as ca
import numpy as np

from framefree.control.law import ControlError, Timing
from framefree.control.shared.allocation import Allocation
from framefree.control.shared.input_map import rank
from framefree.control.shared.model import Model, ModelState, at_configurations
from framefree.geometry import se3
from framefree.machine import Free, Machine, Planar, Spherical
from framefree.machine.values import constant_pose

Matrix = Any

AXES = ("world", "own")
SAMPLES = 8
UNITS = {"unknown": "N, Nm", "unknown_wrench": "N, Nm"}
"""Units of what corrections record."""


@dataclass(frozen=True)
class UnknownForce:
    """Which unknown force there is, and in which frame it is taken as constant.

    Parameters
    ----------
    frame : str, optional
        A frame or a body on which a wrench (6) acts, at its origin. Without one, z are the forces
        (n) on the velocities themselves: joint forces, and a wrench at a free joint.
    axes : "world" or "own"
        Axes in which z is constant. A weight or a push keeps its direction in the world; a thruster
        that is off keeps it on the body, in the "own" axes of the frame or of the velocities.
        Forces at joints with one axis are the same in both; those at ball and free joints are
        turned to the axes of the world, those at planar joints to those of their parent.
    """

    frame: str | None = None
    axes: str = "world"

    def __post_init__(self) -> None:
        if self.axes not in AXES:
            raise ControlError(f"`axes` must be one of {', '.join(AXES)}, got {self.axes!r}")

    def size(self, model: Model) -> int:
        """Return how many numbers z has."""
        if self.frame is None:
            return model.n
        model.machine.frame(self.frame)
        return 6

    def directions(self, state: ModelState) -> Matrix:
        """Return S (k x n): z acts on the velocities as S^T z."""
        if self.frame is None:
            return ca.SX.eye(state.model.n) if self.axes == "own" else _turned(state)
        J = state.jacobian(self.frame).value
        if self.axes == "own":
            return J
        R = se3.rotation(state.tree.frame_pose(self.frame))
        return ca.vertcat(R @ J[:3, :], R @ J[3:, :])

    def rank(self, machine: Machine) -> int:
        """Return how many of the numbers z can be told from the motion; at random states the least.

        A wrench is felt through S^T alone: of the six numbers at the end of an arm with three
        joints, three combinations are seen.
        """
        model = Model(machine)
        x = ca.SX.sym("x", machine.nx)
        S = self.directions(model.at(x, ca.SX(machine.nv, 1)))
        return min(map(rank, at_configurations(machine, x, S, model.samples(SAMPLES))))


def _turned(state: ModelState) -> Matrix:
    """Return the rotation (n x n) of forces on velocities to axes that do not turn with a joint."""
    blocks = []
    for joint, chosen in state.model.joints:
        if isinstance(joint.kind, Free | Spherical):
            G = state.tree.poses[state.model.machine.body_index[joint.child]]
            R = se3.rotation(G) @ se3.rotation(constant_pose(joint.child_pose))
            blocks += [R] * (len(chosen) // 3)
        elif isinstance(joint.kind, Planar):
            c, s = ca.vertsplit(state.tree.x[state.model.machine.x_slice[joint.name]][2:4])
            blocks += [ca.blockcat([[c, -s], [s, c]]), ca.SX(1)]
        else:
            blocks.append(ca.SX.eye(len(chosen)))
    return ca.diagcat(*blocks)


class ReferenceMotion(NamedTuple):
    """Velocity v_r and acceleration a_r (n) of a passivity law: s = v - v_r."""

    velocity: Matrix
    acceleration: Matrix


class CorrectionChange(NamedTuple):
    """How a correction goes on, and what it adds to what the law states.

    Attributes
    ----------
    rate, memory : columns
        Rate of its memory, and what it becomes at this evaluation, as in `Command`.
    V, V_rate : scalars
        Its part of the law's Lyapunov function and of the stated rate. V is None where the law
        cannot know its V: then it does not record it.
    signals : mapping of str to matrix
    """

    rate: Matrix
    memory: Matrix
    V: Matrix | None
    V_rate: Matrix
    signals: Mapping[str, Matrix]


class CorrectionForce(NamedTuple):
    """A correction at a state.

    Attributes
    ----------
    force : (n)
        What the law adds to the force that it asks for.
    change : callable
        From the law's velocity error s (n) and its inputs u (nu) to the `CorrectionChange`.
    """

    force: Matrix
    change: Callable[[Matrix, Matrix], CorrectionChange]


class Correction(ABC):
    """Base of all corrections; see the top of this file."""

    unknown: UnknownForce

    def check(self, model: Model) -> None:  # noqa: B027, most fit every machine
        """Raise `ControlError` if it does not fit the law's machine."""

    @abstractmethod
    def size(self, model: Model) -> int:
        """Return the number of its states."""

    def first_memory(self, model: Model, x: Matrix, v: Matrix) -> Matrix:
        """Return its states at the first state of the joints."""
        return ca.DM(np.zeros(self.size(model)))

    @abstractmethod
    def meet(
        self, model: Model, x: Matrix, v: Matrix, memory: Matrix, wanted: ReferenceMotion
    ) -> CorrectionForce:
        """Return the correction at a state of the joints, and the reference motion of the law."""

    def timed(self, timing: Timing) -> Self:
        """Return the correction for a control period and a delay."""
        return self


def stated(V: Matrix, V_rate: Matrix, change: CorrectionChange) -> dict[str, Matrix]:
    """Return the signals "V" and "V_rate" of a law with its correction."""
    signals = {"V_rate": V_rate + change.V_rate}
    return signals if change.V is None else {"V": V + change.V, **signals}


def given_force(model: Model, x: Matrix, v: Matrix, u: Matrix) -> Matrix:
    """Return the force (n) on the model's velocities that its actuators give at inputs u (nu)."""
    state = model.at(x, v)
    return state.reduced(Allocation(model).given(state.tree, u))


def at_symbols(
    model: Model, outputs: Callable[[ModelState], list[Matrix]], *further: Matrix
) -> Callable[..., tuple[Matrix, ...]]:
    """Return a function of x and v (of the joints) that may differentiate: they are symbols.

    `further` are symbols that the outputs depend on beside, and further arguments.
    """
    machine = model.machine
    x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    parameters = [machine.parameters.symbols] if len(machine.parameters) else []
    values = [ca.densify(ca.SX(value)) for value in outputs(model.at(x, v))]
    function = ca.Function("at_symbols", [x, v, *further, *parameters], values)

    def evaluate(*arguments: Matrix) -> tuple[Matrix, ...]:
        made = function(*arguments, *parameters)
        return made if isinstance(made, tuple) else (made,)

    return evaluate
