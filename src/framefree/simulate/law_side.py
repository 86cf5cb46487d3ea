"""The law's side of the control loop: measure, estimate, law, limit.

The law has a machine of its own, its model. What is measured of the plant's joints is taken to
those of the model, moved ahead in time where there is a predictor, and handed to the law together
with the reference; its inputs are taken back to the plant's actuators and limited.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca

from framefree.control.law import UNKNOWN_FORCE, AnyLaw, Command, NumericLaw
from framefree.control.law_program import checked_reference, unfollowed_time
from framefree.control.references.base import Reference
from framefree.control.shared.correspondence import Correspondence
from framefree.machine import Machine
from framefree.simulate.actuation import limited
from framefree.simulate.errors import SimulationError
from framefree.simulate.estimation import Estimated
from framefree.simulate.law_output import LawOutput
from framefree.simulate.predict import Predictor

Matrix = Any


class Measurement(NamedTuple):
    """Time, and coordinates and velocities of the plant's joints as they are measured."""

    t: Matrix
    x: Matrix
    v: Matrix


class LawInputs(NamedTuple):
    """What a law is evaluated at: time, state of its own machine, and reference."""

    t: Matrix
    x: Matrix
    v: Matrix
    reference: dict[str, Matrix]


class Pending(NamedTuple):
    """Commands that will act whatever the law does now, and the state of the drive."""

    drive: Matrix
    pipe: Matrix
    held: Matrix


@dataclass(frozen=True)
class LawSide:
    """A law in the loop; see the top of this file.

    Attributes
    ----------
    machine : Machine
        The plant's.
    law : AnyLaw or None
    reference : Reference or None
    limits : bool
        Whether commands stay within the limits of the inputs.
    predictor : Predictor or None
    """

    machine: Machine
    law: AnyLaw | None
    reference: Reference | None
    limits: bool
    predictor: Predictor | None

    @cached_property
    def correspondence(self) -> Correspondence:
        """Which joints and actuators of the plant are those of the law's machine."""
        model = self.machine if self.law is None else self.law.machine
        return Correspondence(self.machine, model, SimulationError)

    @cached_property
    def output(self) -> LawOutput | None:
        """How a law in numbers hands over its command; None for one that is an expression."""
        return LawOutput(self.law) if isinstance(self.law, NumericLaw) else None

    def references(self, t: Matrix) -> dict[str, Matrix]:
        """Return the reference at a time."""
        return {} if self.reference is None else self.reference.at(t)

    # ------------------------------------------------------------------ what the law sees

    def measure(self, t: Matrix, x: Matrix, v: Matrix, noise: Matrix | None) -> Measurement:
        """Return what is measured of the joints; noise (2 nv) is added if there is any."""
        if noise is None:
            return Measurement(t, x, v)
        nv = self.machine.nv
        return Measurement(t, self.machine.integrate(x, noise[:nv, :]), v + noise[nv:, :])

    def estimate(
        self,
        measured: Measurement,
        pending: Pending | None,
        estimated: Estimated | None = None,
    ) -> LawInputs:
        """Return the law's inputs; with a predictor, those after what is pending has acted.

        What is `estimated` replaces what is measured; an unknown force acts in the prediction too.
        """
        t, x, v = measured
        x, v, force = self.correspondence.x(x), self.correspondence.v(v), None
        if estimated is not None:
            x, v, force = estimated.x, estimated.v, estimated.force
        if pending is not None and self.predictor is not None:
            t = t + self.predictor.lead
            x, v = self.predictor(x, v, *pending, force)
        readings = {} if estimated is None else estimated.readings
        reference = {**self._checked_reference(t), **readings}
        if force is not None and self.law is not None and UNKNOWN_FORCE in self.law.takes:
            reference = {**reference, UNKNOWN_FORCE: force}
        return LawInputs(t, x, v, reference)

    def _checked_reference(self, t: Matrix) -> dict[str, Matrix]:
        """Return the reference at a time; refuse one that is not what the law reads."""
        reference = self.references(t)
        if self.law is not None:
            checked_reference(self.law, reference, SimulationError)
        return reference

    def first_memory(self, x: Matrix, v: Matrix) -> Matrix:
        """Return the law's memory at the first state of the plant's joints."""
        if self.law is None:
            return ca.SX(0, 1)
        known = self.correspondence
        return self.law.first_memory(known.x(x), known.v(v))

    # ------------------------------------------------------------------ what it says

    def command(self, inputs: LawInputs, memory: Matrix, output: Matrix) -> Command:
        """Return the law's command for the plant's inputs, limited.

        `output` is the column in which a law in numbers has handed its command over.
        """
        law: Any = self.law
        if law is None:
            return Command(ca.SX(self.machine.nu, 1))
        words = unfollowed_time(law)
        if words:
            raise SimulationError(words)
        if self.output is not None:
            return self.command_of(output)
        made = law.control(*inputs, memory)
        if not isinstance(made, Command):
            raise SimulationError(
                f"`control` of the law {law.name} must return a `framefree.control.Command(u, "
                f"signals)`, got {type(made).__name__}"
            )
        return self._for_plant(made)

    def command_of(self, output: Matrix) -> Command:
        """Return the command for the plant's inputs in the output of a law in numbers, limited."""
        reader: Any = self.output
        return self._for_plant(reader.command(output))

    def _for_plant(self, made: Command) -> Command:
        law: Any = self.law
        u = ca.densify(ca.SX(made.u))
        if u.shape != (law.machine.nu, 1):
            raise SimulationError(
                f"the law {law.name} must give {law.machine.nu} inputs, got shape {u.shape}"
            )
        u = self.correspondence.u(u)
        if self.limits:
            u = limited(self.machine, u)
        return made._replace(u=u)
