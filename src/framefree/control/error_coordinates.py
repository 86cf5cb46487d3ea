"""Which numbers the small errors of a machine are, and the states that go with them.

The errors of a tree of joints are those of all its velocities. Under loops and couplings they are
those of independent velocities w, from which the others follow, v = E(x) w: configurations move by
E eps, which keeps the loops to first order, and so do velocities E(x) (w_R + dw).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.machine import Machine
from framefree.motion import ClosureError, State, equations
from framefree.motion.embedded import Embedded

Matrix = Any

CLOSED = 1e-6
"""Largest error of loops (m, rad, and these per s) of a reference that keeps them."""


class ErrorCoordinates(ABC):
    """Errors eps of configurations and dv of velocities, `size` numbers each."""

    size: int

    @abstractmethod
    def state(self, reference: Mapping[str, Matrix], eps: Matrix, dv: Matrix, t: Matrix) -> State:
        """Return the state with these errors from a reference (x, v), at a time."""

    @abstractmethod
    def turning(self, reference: Mapping[str, Matrix]) -> Matrix:
        """Return W of d eps/dt = dv - W eps along a reference."""

    @abstractmethod
    def of(self, velocities: Matrix) -> Matrix:
        """Return the entries of velocities or accelerations of all joints (nv)."""


class TreeErrors(ErrorCoordinates):
    """Errors along all velocities of a tree of joints."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.size = machine, machine.nv

    def state(self, reference: Mapping[str, Matrix], eps: Matrix, dv: Matrix, t: Matrix) -> State:
        """Return the state with these errors from a reference (x, v), at a time."""
        x = self.machine.integrate(reference["x"], eps)
        return equations(self.machine.tree).at(x, reference["v"] + dv, t)

    def turning(self, reference: Mapping[str, Matrix]) -> Matrix:
        """Return W of d eps/dt = dv - W eps along a reference."""
        still = ca.SX(self.size, 1)
        return equations(self.machine.tree).deviation(reference["x"], reference["v"], still)[0]

    def of(self, velocities: Matrix) -> Matrix:
        """Return all entries."""
        return velocities


class ClosedErrors(ErrorCoordinates):
    """Errors along independent velocities of a machine with loops or couplings.

    Parameters
    ----------
    machine : Machine
    x, v : (nx,), (nv,)
        A state of the reference, which must keep the loops; there the velocities are chosen.
    """

    def __init__(self, machine: Machine, x: np.ndarray, v: np.ndarray) -> None:
        try:
            self.form = Embedded(machine, independent="driven", start=x)
        except ClosureError as error:
            raise ControlError(
                f"small errors of `{machine.name}` need a reference that keeps its loops: {error}"
            ) from None
        self.size = self.form.map.nv
        self._chosen = [machine.v_names.index(name) for name in self.form.v_names]
        self._places = [machine.x_names.index(name) for name in self.form.x_names]
        self._check(machine)
        self.check(x, v)

    def _check(self, machine: Machine) -> None:
        for joint in machine.joints:
            if joint.nv > 1 and not joint.kind.vector and set(joint.v_names) & self._names:
                raise ControlError(
                    f"small errors of `{machine.name}`, which has loops, are those of joints that "
                    f"are plain coordinates; `{joint.name}` is {type(joint.kind).__name__}"
                )

    @property
    def _names(self) -> set[str]:
        return set(self.form.v_names)

    def check(self, x: np.ndarray, v: np.ndarray) -> None:
        """Refuse a state of the reference that does not keep the loops."""
        closure = self.form.constrained
        values = closure.machine.parameters.values(None).tolist()
        errors = closure.numbers("constraint", values, x=x, v=v, t=0.0)
        worst = max(float(np.abs(errors[k]).max(initial=0.0)) for k in (2, 3))
        if not worst < CLOSED:
            raise ControlError(
                "small errors are those about a motion of the machine, but the reference does not "
                f"keep the loops of `{closure.machine.name}`: it is off by {worst:.3g} (m or rad, "
                "or these per s)"
            )

    def state(self, reference: Mapping[str, Matrix], eps: Matrix, dv: Matrix, t: Matrix) -> State:
        """Return the state with these errors from a reference (x, v), at a time."""
        x = self.form.map.integrate(reference["x"][self._places, :], eps)
        return self.form.at(x, self.of(reference["v"]) + dv, t)

    def turning(self, reference: Mapping[str, Matrix]) -> Matrix:
        """Return zero: these velocities commute."""
        return ca.SX(self.size, self.size)

    def of(self, velocities: Matrix) -> Matrix:
        """Return the entries of the independent velocities."""
        return velocities[self._chosen, :]
