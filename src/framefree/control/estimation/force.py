"""An observer of the forces that a model does not know, by momentum.

The momentum p = M v grows by what the model knows, and by the unknown force f. Told the inputs that
acted over a control period T, and with its estimate r of f, the model predicts the velocity v_p
after it; what lacks of the momentum corrects the estimate,

    r <- r + (1 - exp(-K T)) M (v - v_p)/T

which is the momentum observer dr/dt = K (f - r), sampled: a constant force is approached as
exp(-K t), and one whose rate of change is at most c is missed by at most c/K in the long run. White
noise of the velocity with deviation s leaves about K M s in the estimate, not M s/T: what one
period adds the next takes away again.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.shared.gains import vector_gain
from framefree.control.shared.model import Model
from framefree.control.unknown.correction import UnknownForce
from framefree.machine import Machine
from framefree.machine.part import set_field
from framefree.motion import Equations, equations
from framefree.motion.actuation import input_bias, input_matrix

Matrix = Any


class ObservedForce(NamedTuple):
    """Estimate (nv) of the unknown force on the velocities, and the observer's next memory."""

    force: Matrix
    memory: Matrix


@dataclass(frozen=True)
class ForceObserver:
    """Observe the force and moment on a body in flight, or any forces on a machine's velocities.

    Parameters
    ----------
    machine : Machine
        The law's model, without loops or couplings.
    rate : number or (nv,)
        K, 1/s: how fast the estimate follows.
    axes : "own" or "world"
        Axes in which the unknown wrench on a free joint is taken to be constant: the body's own
        (a center of mass that is off, a bent arm) or the world's (wind); see `UnknownForce`.
    """

    machine: Machine
    rate: Any = 2.0
    axes: str = "own"

    def __post_init__(self) -> None:
        machine = self.machine
        set_field(self, "rate", vector_gain(self.rate, machine.nv, "rate"))
        UnknownForce(axes=self.axes)  # refuses axes that there are not
        if machine.closed:
            raise ControlError(
                f"`{machine.name}` has loops or couplings: their forces cannot be told from "
                "unknown ones by the momentum of all joints"
            )

    @property
    def memory(self) -> np.ndarray:
        """First memory: whether there was a period before; x and v then; r."""
        machine = self.machine
        return np.concatenate([[0.0], machine.neutral(), np.zeros(2 * machine.nv)])

    def update(
        self, memory: Matrix, x: Matrix, v: Matrix, inputs: tuple[Matrix, Matrix], period: float
    ) -> ObservedForce:
        """Return the estimate at a state.

        `inputs` (nu each) are those at the beginning and at the end of the period that ends now.
        """
        machine = self.machine
        ends = np.cumsum([0, 1, machine.nx, machine.nv, machine.nv]).tolist()
        begun, x_before, v_before, r = ca.vertsplit(memory, ends)
        expected = self._predicted(x_before, v_before, r, inputs, period)
        missed = self._momentum(x, v - expected, *self._parameters) / period
        gain = begun * ca.DM(-np.expm1(-self.rate * period))
        turn = self._turn(x)
        r = r + gain * (turn @ missed)
        return ObservedForce(turn.T @ r, ca.vertcat(1, x, v, r))

    def _predicted(
        self, x: Matrix, v: Matrix, r: Matrix, inputs: tuple[Matrix, Matrix], h: float
    ) -> Matrix:
        """Return the velocity after a period, by Runge and Kutta's rule of fourth order."""
        begin, end = inputs
        middle = (begin + end) / 2
        stages: list[Matrix] = []
        at, moving = x, v
        for share, u in ((0.5, begin), (0.5, middle), (1.0, middle), (0.0, end)):
            stages.append(self._acceleration(at, moving, u, r, *self._parameters))
            at = self.machine.integrate(x, share * h * moving)
            moving = v + share * h * stages[-1]
        k1, k2, k3, k4 = stages
        return v + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    @cached_property
    def _equations(self) -> Equations:
        return equations(self.machine)

    @property
    def _parameters(self) -> list[Matrix]:
        return [self.machine.parameters.symbols] if len(self.machine.parameters) else []

    @cached_property
    def _acceleration(self) -> ca.Function:
        """From x, v, inputs u and the estimate r to the model's accelerations."""
        sizes = (self.machine.nx, self.machine.nv, self.machine.nu, self.machine.nv)
        x, v, u, r = (ca.SX.sym(name, n) for name, n in zip("xvur", sizes, strict=True))
        state = self._equations.at(x, v)
        force = input_matrix(state) @ u + input_bias(state) + self._turn(x).T @ r
        a = ca.densify(state.accelerate(ca.densify(force)))
        return ca.Function("acceleration", [x, v, u, r, *self._parameters], [a])

    @cached_property
    def _momentum(self) -> ca.Function:
        """From x and a velocity to M v."""
        x, v = ca.SX.sym("x", self.machine.nx), ca.SX.sym("v", self.machine.nv)
        p = ca.densify(self._equations.at(x, ca.SX(self.machine.nv, 1)).mass @ v)
        return ca.Function("momentum", [x, v, *self._parameters], [p])

    def _turn(self, x: Matrix) -> Matrix:
        """Return the matrix (nv x nv) from forces on the velocities to the axes of r."""
        rest = ca.SX(self.machine.nv, 1)
        return UnknownForce(axes=self.axes).directions(self._model.at(x, rest))

    @cached_property
    def _model(self) -> Model:
        return Model(self.machine)
