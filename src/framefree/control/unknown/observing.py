"""An observer beside any law: it records the unknown force and changes nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import Command, ControlError, Law, Timing
from framefree.control.shared.model import Model
from framefree.control.unknown.correction import UNITS
from framefree.control.unknown.observer import MomentumObserver
from framefree.machine import Machine

Matrix = Any


@dataclass(frozen=True)
class Observing(Law):
    """A law, and what a `MomentumObserver` sees of the forces that its machine does not know.

    It serves every machine, with loops and couplings too: there the unknown forces are those on the
    independent velocities (`Model`). Laws that set the observed force against the unknown one take
    the observer themselves, as `unknown`.

    Parameters
    ----------
    law : Law
    observer : MomentumObserver
    """

    law: Law
    observer: MomentumObserver = field(default_factory=MomentumObserver)

    def __post_init__(self) -> None:
        if len(self.law.memory):
            raise ControlError(f"{self.law.name} has a memory of its own: give it the observer")
        self.observer.check(self._model)

    @property
    def machine(self) -> Machine:  # type: ignore[override]
        """The law's."""
        return self.law.machine

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        """The law's reference signals."""
        return self.law.needs

    @property
    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """Rows and columns of these signals."""
        return self.law.shapes

    @property
    def units(self) -> Mapping[str, str]:  # type: ignore[override]
        """Units of the signals of both."""
        return {**self.law.units, **UNITS}

    @property
    def name(self) -> str:
        """What the law is called in records."""
        return self.law.name

    @cached_property
    def _model(self) -> Model:
        return Model(self.law.machine)

    @property
    def memory(self) -> np.ndarray:
        """States of the observer."""
        return np.zeros(self.observer.size(self._model))

    def first_memory(self, x: Matrix, v: Matrix) -> Matrix:
        """Return the observer's first states."""
        return self.observer.first_memory(self._model, x, v)

    def timed(self, timing: Timing) -> "Observing":
        """Return the same for a control period and a delay."""
        return replace(self, observer=self.observer.timed(timing))

    def control(
        self, t: Matrix, x: Matrix, v: Matrix, reference: Mapping[str, Matrix], memory: Matrix
    ) -> Command:
        """Return the law's inputs, and what is observed beside."""
        command = self.law.control(t, x, v, reference, ca.SX(0, 1))
        met = self.observer.meet(self._model, x, v, memory, None)
        change = met.change(ca.SX(self._model.n, 1), command.u)
        signals = {**command.signals, **change.signals}
        return Command(command.u, signals, change.memory, change.rate)
