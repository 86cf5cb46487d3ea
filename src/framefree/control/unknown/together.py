"""Several corrections in one law, such as a learned model that adapts and a body that adapts.

The loop M ds/dt + C s + K s = (what each leaves) is linear in what the corrections leave: their
forces add up, and so do their parts of V and of its stated rate. Each has its own states.
"""

from dataclasses import dataclass, field
from typing import Any

import casadi as ca

from framefree.control.law import ControlError, Timing
from framefree.control.shared.model import Model
from framefree.control.unknown.correction import (
    Correction,
    CorrectionChange,
    CorrectionForce,
    ReferenceMotion,
    UnknownForce,
)

Matrix = Any


@dataclass(frozen=True, eq=False)
class CorrectionsTogether(Correction):
    """Corrections that act side by side; see the top of this file.

    Parameters
    ----------
    parts : tuple of Correction
        Their signals must have different names. Prediction errors (`prediction`) of one would be
        blind to what the others estimate, and are refused.
    """

    parts: tuple[Correction, ...]
    unknown: UnknownForce = field(default_factory=UnknownForce)

    def check(self, model: Model) -> None:
        """Raise `ControlError` where a part does not fit the machine, or the others."""
        for part in self.parts:
            part.check(model)
            if getattr(part, "prediction", 0.0):
                raise ControlError(
                    f"`prediction` of {type(part).__name__} must be 0 beside other corrections: "
                    "its prediction knows nothing of what they estimate"
                )

    def size(self, model: Model) -> int:
        """Return the number of all states."""
        return sum(part.size(model) for part in self.parts)

    def first_memory(self, model: Model, x: Matrix, v: Matrix) -> Matrix:
        """Return the first states of all parts."""
        return ca.vertcat(*(ca.SX(part.first_memory(model, x, v)) for part in self.parts))

    def timed(self, timing: Timing) -> "CorrectionsTogether":
        """Return the same for a control period and a delay."""
        return CorrectionsTogether(tuple(part.timed(timing) for part in self.parts))

    def meet(
        self, model: Model, x: Matrix, v: Matrix, memory: Matrix, wanted: ReferenceMotion
    ) -> CorrectionForce:
        """Return the sum of all parts at a state."""
        met, at = [], 0
        for part in self.parts:
            size = part.size(model)
            met.append(part.meet(model, x, v, memory[at : at + size, :], wanted))
            at += size

        def change(s: Matrix, u: Matrix) -> CorrectionChange:
            made = [one.change(s, u) for one in met]
            signals: dict[str, Matrix] = {}
            for one in made:
                if signals.keys() & one.signals.keys():
                    twice = ", ".join(f"`{name}`" for name in signals.keys() & one.signals.keys())
                    raise ControlError(f"two corrections of one law both record {twice}")
                signals |= one.signals
            parts_of_V = [one.V for one in made]
            return CorrectionChange(
                ca.vertcat(*(one.rate for one in made)),
                ca.vertcat(*(one.memory for one in made)),
                None if any(V is None for V in parts_of_V) else sum(parts_of_V, ca.SX(0)),
                sum((one.V_rate for one in made), ca.SX(0)),
                signals,
            )

        return CorrectionForce(sum((one.force for one in met), ca.SX(model.n, 1)), change)
