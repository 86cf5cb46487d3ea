"""A law that takes a correction, as its field `unknown`."""

from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import casadi as ca
import numpy as np

from framefree.control.law import ControlError, Law, Timing
from framefree.control.shared.model import Model
from framefree.control.unknown.correction import (
    Correction,
    CorrectionChange,
    CorrectionForce,
    ReferenceMotion,
)

Matrix = Any


class CorrectedLaw(Law):
    """Base of laws, dataclasses with a field `unknown`, whose memory is that of a correction."""

    unknown: Correction | None

    @cached_property
    def model(self) -> Model:
        """The law's machine in independent velocities."""
        return Model(self.machine)

    def check_unknown(self) -> None:
        """Refuse a correction that does not fit the machine."""
        if self.unknown is None:
            return
        if not isinstance(self.unknown, Correction):
            raise ControlError(
                f"`unknown` of {self.name} must be an IntegralAction, a MomentumObserver or an "
                f"Adaptation, got {self.unknown!r}"
            )
        self.unknown.check(self.model)

    @property
    def memory(self) -> np.ndarray:
        """States of the correction."""
        return np.zeros(0 if self.unknown is None else self.unknown.size(self.model))

    def first_memory(self, x: Matrix, v: Matrix) -> Matrix:
        """Return the correction's first states."""
        if self.unknown is None:
            return ca.SX(0, 1)
        return self.unknown.first_memory(self.model, x, v)

    def timed(self, timing: Timing) -> Self:
        """Return the law for a control period and a delay."""
        if self.unknown is None:
            return self
        return replace(self, unknown=self.unknown.timed(timing))  # type: ignore[type-var]

    def meet(
        self, x: Matrix, v: Matrix, memory: Matrix, wanted: ReferenceMotion
    ) -> CorrectionForce:
        """Return the correction at a state; none has no force and no states."""
        if self.unknown is None:
            nothing = CorrectionChange(ca.SX(0, 1), ca.SX(0, 1), ca.SX(0), ca.SX(0), {})
            return CorrectionForce(ca.SX(self.model.n, 1), lambda s, u: nothing)
        return self.unknown.meet(self.model, x, v, memory, wanted)
