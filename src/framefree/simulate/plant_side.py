"""The plant's side of the control loop: drive, actuators, disturbances, dynamics, projection."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca

from framefree.machine import Machine
from framefree.motion import Equations, State
from framefree.motion.groups import Extended
from framefree.motion.load import Load
from framefree.simulate.actuation import Drive, actuate
from framefree.simulate.disturbances import Disturbance, Moment
from framefree.simulate.integrators import DormandPrince, ExplicitIntegrator, Integrator

Matrix = Any
Rates = Callable[[Moment, Matrix, Matrix], Matrix]
"""From a moment, x and a column that begins with v to the rates of that column."""


@dataclass(frozen=True)
class PlantSide:
    """A plant behind its drive.

    Attributes
    ----------
    plant : Equations
    drive : Drive or None
    disturbances : tuple of Disturbance
    limits : bool
        Whether forces of motors and joints stay within their limits.
    """

    plant: Equations
    drive: Drive | None
    disturbances: tuple[Disturbance, ...]
    limits: bool

    @property
    def machine(self) -> Machine:
        """The plant's machine."""
        return self.plant.machine

    # ------------------------------------------------------------------ rates

    def load(self, state: State, moment: Moment, z: Matrix, command: Matrix) -> tuple[Load, Matrix]:
        """Return what acts on the machine, and the inputs u, at a state z of the drive."""
        u = command if self.drive is None else self.drive.u(z, command)
        load = Load(self.machine)
        actuate(load, state, u, limits=self.limits)
        self._disturb(load, state, moment)
        return load, u

    def disturbed(self, state: State, moment: Moment) -> Load:
        """Return what disturbances alone do to the machine."""
        load = Load(self.machine)
        self._disturb(load, state, moment)
        return load

    def _disturb(self, load: Load, state: State, moment: Moment) -> None:
        for disturbance in self.disturbances:
            disturbance.add(load, state, moment)

    def rates(self, state: State, moment: Moment, z: Matrix, command: Matrix) -> Matrix:
        """Return the rates of v and of the drive."""
        load, _ = self.load(state, moment, z, command)
        moving = [] if self.drive is None else [self.drive.rate(z, command)]
        return ca.densify(ca.vertcat(state.forward(load), *moving))

    # ------------------------------------------------------------------ steps

    def _split(self, column: Matrix) -> tuple[Matrix, Matrix]:
        """Return v and what integrators move with it in one column."""
        n = self.plant.sizes["v"]
        return column[:n, :], column[n:, :]

    def advance(
        self,
        integrator: ExplicitIntegrator,
        rates: Rates,
        t: Matrix,
        h: Matrix,
        x: Matrix,
        column: Matrix,
    ) -> tuple[Matrix, Matrix]:
        """Return x and column after one step of the integrator, on the constraints."""
        dynamics = self._dynamics(integrator, rates, t, h)
        x, column = integrator.step(dynamics, self.group, t, x, column, h)
        return self.projected(integrator, t + h, x, column)

    def advance_with_error(
        self,
        integrator: DormandPrince,
        rates: Rates,
        t: Matrix,
        h: Matrix,
        x: Matrix,
        column: Matrix,
    ) -> tuple[Matrix, Matrix, Matrix]:
        """Return x and column after a step, and its largest relative error."""
        dynamics = self._dynamics(integrator, rates, t, h)
        x, moved, error_x, error_v = integrator.step_with_error(
            dynamics, self.group, t, x, column, h
        )
        scale = 1 + ca.fmax(ca.fabs(column), ca.fabs(moved))
        error = ca.mmax(ca.fabs(ca.vertcat(0, error_x, error_v / scale)))
        return *self.projected(integrator, t + h, x, moved), error

    @property
    def group(self) -> Extended:
        """The group of x, moved by the first part of the column (v, drive)."""
        return Extended(self.plant.group, self.plant.sizes["v"])

    def _dynamics(
        self, integrator: Integrator, rates: Rates, start: Matrix, h: Matrix
    ) -> Callable[..., Matrix]:
        """Return the function of (t, x, column) that an integrator wants, for one step."""
        project = self.plant.keeps and integrator.on_constraints

        def dynamics(t: Matrix, x: Matrix, column: Matrix) -> Matrix:
            if project:
                v, rest = self._split(column)
                x, v = self.plant.restore(x, v, t, 1)
                column = ca.vertcat(v, rest)
            return rates(Moment(t, start, h), x, column)

        return dynamics

    def projected(
        self, integrator: Integrator, t: Matrix, x: Matrix, column: Matrix
    ) -> tuple[Matrix, Matrix]:
        """Return x and (v, drive) brought back onto the constraints after a step."""
        if not self.plant.keeps:
            return x, column
        v, rest = self._split(column)
        # A round squares the error that a step leaves: one is enough for a small error, and three
        # for that of low orders near a singular position.
        x, v = self.plant.restore(x, v, t, 1 if integrator.order >= 4 else 3)
        return x, ca.vertcat(v, rest)
