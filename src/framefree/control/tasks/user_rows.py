"""Tasks that the user writes down: functions of the configuration, or of the velocity."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca

from framefree.control.law import ControlError
from framefree.control.shared.frames import Frames
from framefree.control.tasks.along import (
    following,
    rows_of_state,
    rows_of_velocity,
    signal_shapes,
)
from framefree.control.tasks.base import Task, TaskRows
from framefree.machine import Machine

Matrix = Any


class _UserRows(Task):
    """What both kinds share: rows that have names."""

    labelled: tuple[str, ...]

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the rows."""
        return self.labelled

    def _settle(self, function: Any, word: str) -> None:
        if not callable(function):
            raise ControlError(f"`{word}` of task `{self.name}` must be a function")
        given = self.labelled
        names = (given,) if isinstance(given, str) else tuple(given)
        if not names or len(set(names)) < len(names):
            raise ControlError(
                f"`labelled` of task `{self.name}` must name its rows, one different name for "
                f"each; got {given!r}"
            )
        object.__setattr__(self, "labelled", names)
        self.settle_gains()

    def _check_function(self, function: Callable[..., Any], *symbols: Matrix) -> None:
        """Refuse a function that does not give a row for every name."""
        try:
            value = function(*symbols)
            column = ca.vertcat(*value) if isinstance(value, list | tuple) else ca.SX(value)
        except (TypeError, ValueError, KeyError, IndexError, RuntimeError) as error:
            what = str(error).strip().splitlines() or [type(error).__name__]
            names = ", ".join(f"{symbol[0].name().rsplit('_', 1)[0]}" for symbol in symbols)
            raise ControlError(
                f"the function of task `{self.name}` cannot be evaluated on casadi columns "
                f"({names}): {what[0]}"
            ) from error
        if column.shape != (len(self.labelled), 1):
            raise ControlError(
                f"task `{self.name}` has {len(self.labelled)} names for its rows "
                f"({', '.join(self.labelled)}), but its function gives shape {column.shape}"
            )


@dataclass(frozen=True, eq=False)
class PositionRows(_UserRows):
    """Errors e = phi(x) of the user go to zero, or follow numbers of the reference.

    Error equation: ``d2/dt2 e + Kd d/dt e + Kp e = 0``.

    Parameters
    ----------
    phi : callable
        From the casadi column x (nx), coordinates of all joints, to the errors, one or a column.
    labelled : sequence of str
        A name for every row.
    name : str
    target : str
        Of the reference: TARGET.value and so on, see `SignalPath`; by default zero.
    Kp, Kd : float or one for every row
        1/s^2, 1/s; without Kd, critically damped.
    """

    phi: Callable[[Matrix], Any]
    labelled: Any = ("phi",)
    name: str = "rows"
    target: str = ""
    Kp: Any = 100.0
    Kd: Any = None

    def __post_init__(self) -> None:
        self._settle(self.phi, "phi")

    @property
    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """Shapes of the reference signals."""
        return signal_shapes(self.target, len(self.parts))

    def check(self, machine: Machine) -> None:
        """Refuse a function that does not fit."""
        self._check_function(self.phi, ca.SX.sym("x", machine.nx))

    def rows(self, frames: Frames, reference: Mapping[str, Matrix]) -> TaskRows:
        """Return the rows at a state."""
        return following(rows_of_state(self.phi, frames), self.target, reference)


@dataclass(frozen=True, eq=False)
class VelocityRows(_UserRows):
    """Errors s = eta(x, v) of velocity of the user go to zero, or follow the reference.

    Error equation: ``d/dt s + Kd s = 0``.

    Parameters
    ----------
    eta : callable
        From the casadi columns x (nx) and v (nv), of all joints, to the errors, one or a column.
    labelled : sequence of str
        A name for every row.
    name : str
    target : str
        Of the reference: TARGET.value, TARGET.rate; by default zero.
    Kd : float or one for every row
        1/s.
    """

    eta: Callable[[Matrix, Matrix], Any]
    labelled: Any = ("eta",)
    name: str = "velocity_rows"
    target: str = ""
    Kd: Any = 20.0
    Kp = 0.0

    def __post_init__(self) -> None:
        self._settle(self.eta, "eta")

    @property
    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """Shapes of the reference signals."""
        return dict(list(signal_shapes(self.target, len(self.parts)).items())[:2])

    def check(self, machine: Machine) -> None:
        """Refuse a function that does not fit."""
        self._check_function(self.eta, ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv))

    def rows(self, frames: Frames, reference: Mapping[str, Matrix]) -> TaskRows:
        """Return the rows at a state."""
        rows = rows_of_velocity(self.eta, frames)
        if not self.target:
            return rows
        value, rate = (ca.SX(reference[name]) for name in self.shapes)
        return rows._replace(rate=rows.rate - rate, velocity_error=rows.velocity_error - value)
