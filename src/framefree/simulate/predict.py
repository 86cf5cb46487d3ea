"""Predicting the state over a known delay and lag, for a law that acts where things will be."""

from dataclasses import dataclass
from typing import Any

import casadi as ca

from framefree.control.shared.correspondence import Correspondence
from framefree.machine import Machine
from framefree.motion.groups import Extended
from framefree.motion.load import Load
from framefree.simulate.actuation import Drive, actuate
from framefree.simulate.errors import SimulationError
from framefree.simulate.integrators import RungeKuttaMuntheKaas4
from framefree.simulate.plants import native_plant

Matrix = Any


@dataclass(frozen=True)
class Predictor:
    """Moves a state of the law's machine ahead, under the commands that are on their way.

    Commands in the pipe act for a control period each; what is left of the time goes by under the
    newest of them. The state of the drive is taken as known.

    Attributes
    ----------
    plant, model : Machine
        The plant, whose inputs commands are, and the law's machine, whose equations predict.
    drive : Drive or None
    limits : bool
    period : float
        Control period, s.
    lead : float
        Time to predict, s.
    """

    plant: Machine
    model: Machine
    drive: Drive | None
    limits: bool
    period: float
    lead: float

    def __call__(
        self, x: Matrix, v: Matrix, z: Matrix, pipe: Matrix, held: Matrix, force: Matrix = None
    ) -> Any:
        """Return x and v of the model after `lead`; `held` acts where the pipe is empty.

        `force` (nv) is one on the velocities that the model itself does not know.
        """
        nu = self.plant.nu
        column = ca.vertcat(v, z)
        for place, h in self.steps(pipe.shape[0] // max(nu, 1)):
            command = held if place is None else pipe[place * nu : (place + 1) * nu]
            x, column = self.moved(x, column, command, h, force)
        return x, column[: self.model.nv, :]

    def steps(self, waiting: int) -> list[tuple[int | None, float]]:
        """Return the place in the pipe and the duration of every command that acts meanwhile.

        `waiting` is how many commands are in the pipe; without any, place None is the one held.
        """
        steps, left, place = [], self.lead, 0 if waiting else None
        while left > 1e-9 * self.period:
            h = min(self.period, left)
            steps.append((place, h))
            left -= h
            place = None if place is None else min(place + 1, waiting - 1)
        return steps

    def moved(
        self, x: Matrix, column: Matrix, command: Matrix, h: Matrix, force: Matrix
    ) -> tuple[Matrix, Matrix]:
        """Return the state after one step of fourth order."""
        system, n = native_plant(self.model, None), self.model.nv
        known = Correspondence(self.plant, self.model, SimulationError)

        def rates(t: Matrix, x: Matrix, column: Matrix) -> Matrix:
            state, z = system.at(x, column[:n, :], t), column[n:, :]
            u = command if self.drive is None else self.drive.u(z, command)
            load = Load(self.model, force=force)
            actuate(load, state, known.u_of_model(u), limits=self.limits)
            moving = [] if self.drive is None else [self.drive.rate(z, command)]
            return ca.vertcat(state.forward(load), *moving)

        group = Extended(system.group, n)
        return RungeKuttaMuntheKaas4().step(rates, group, ca.SX(0), x, column, h)
