"""Adaptation: numbers of the model that are not known are estimated while the law runs.

With F(pi) = M a_r + C v_r + ... what the model needs for the law's reference motion, numbers pi of
the model as estimated, pi* as they are, and Y = dF/dpi [Slotine1987],

    M ds/dt + C s + K s = F(pi) - F(pi*) = Y (pi - pi*) + eps
    bodies:    dP/dt = -(1/cost) P U P             (`natural.py`: matrix4 stays positive definite)
    others:    dpi/dt = -gain Y^T s                within `bounds`, where the rate would leave them
    V = 1/2 s^T M* s + (law's potential) + sum cost d(P* | P) + sum (pi - pi*)^2 / (2 gain)
    dV/dt = (rate as the law states it) + s^T eps - (what is cut off at the bounds, not negative)

Forces are linear in moments, friction, damping, drag, stiffness: eps = 0. In a current they are
not, eps is of second order in its error, and Y is the slope at the estimate. Unrealised force is in
the law's stated rate as ever. With `prediction` the errors of a prediction drive the numbers too
(composite adaptation): momentum p = W pi + ..., dp/dt = force + h, filtered alike at the pace
`filter` so that no acceleration is needed,

    Y_f = pace W - z,   dz/dt = pace (pace W + dh/dpi - z),   e_f = Y_f pi - (filtered force)
    Y^T s -> Y^T s + prediction Y_f^T e_f,     dV/dt gets -prediction e_f . e_f

where the model has the right form and the numbers do not jump. Numbers converge to the true ones
only under excitation: what adapts is good for s, not an identification.

V contains M* and pi*: it is recorded where `truth` is given, as in an experiment. In use V_rate is
still right, and the law records no V.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.law import ControlError, Timing
from framefree.control.shared.gains import positive
from framefree.control.shared.model import Model
from framefree.control.unknown import natural
from framefree.control.unknown.correction import (
    Correction,
    CorrectionChange,
    CorrectionForce,
    ReferenceMotion,
    UnknownForce,
    given_force,
)
from framefree.machine import Machine
from framefree.motion.actuation import input_bias, input_matrix
from framefree.motion.regressor import TEN, body_paths
from framefree.motion.state import State
from framefree.motion.tree import Tree
from framefree.motion.unknowns import unknown_paths
from framefree.motion.velocity_terms import coriolis_times

Matrix = Any

NOT_NEGATIVE = ("mass", "damping", "friction", "armature", "stiffness", "linear_drag",
                "quadratic_drag")  # fmt: skip
"""Numbers whose paths have one of these words are kept from 0 on, unless `bounds` say other."""


class Numbers(NamedTuple):
    """The numbers that adapt.

    Attributes
    ----------
    machine : Machine
        The law's, with these numbers as symbols.
    bodies : list of list of int
        Places of the ten numbers of bodies that adapt as a whole.
    others : list of int
        Places of the others.
    lower, upper, gains : (len(others),)
    """

    machine: Machine
    bodies: list[list[int]]
    others: list[int]
    lower: np.ndarray
    upper: np.ndarray
    gains: np.ndarray


@dataclass(frozen=True, eq=False)
class Adaptation(Correction):
    """Adapts numbers of the law's model; see the top of this file.

    Records `numbers` (k), in the order of `paths(machine)`.

    Parameters
    ----------
    unknown_numbers : sequence of str
        What is not known, by the words of `framefree.motion.unknowns`: a body, "friction",
        "damping", "drag", "fluid.current.x", ...
    cost : float
        Of bodies, J: the larger, the slower.
    gain : float or mapping of str to float
        Of other numbers, by word or path: rate of the number by power per unit of it.
    first : mapping of str to float
        First estimates by path; by default those of the law's machine.
    bounds : mapping of str to (low, high)
        Of numbers other than whole bodies, by path.
    largest : LargestBody or (mass, reach), optional
        What no body that adapts exceeds. Where actuators saturate, V may rise, and estimates could
        grow beyond all bounds without one.
    prediction, filter : float
        Weight of prediction errors (0: none), and pace of their filter, 1/s.
    truth : Machine, optional
        With the true numbers: for the record of V in an experiment.
    timing : Timing
        Of the loop; `simulate` fills it in.
    """

    unknown_numbers: tuple[str, ...]
    cost: float = 1.0
    gain: Any = 1.0
    first: Mapping[str, float] = field(default_factory=dict)
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    largest: Any = None
    prediction: float = 0.0
    filter: float = 10.0
    truth: Machine | None = None
    unknown: UnknownForce = field(default_factory=UnknownForce)
    timing: Timing = field(default_factory=Timing)

    def __post_init__(self) -> None:
        given: Any = self.unknown_numbers
        words = (given,) if isinstance(given, str) else given
        if not (isinstance(words, Iterable) and all(isinstance(word, str) for word in words)):
            raise ControlError(
                "`unknown_numbers` of Adaptation must be names of numbers of the machine, such as "
                f"('hand.mass',), got {given!r}"
            )
        object.__setattr__(self, "unknown_numbers", tuple(words))
        positive(self.cost, "cost", "Adaptation")
        positive(self.filter, "filter", "Adaptation")
        positive(self.prediction, "prediction", "Adaptation", zero=True)
        if self.largest is not None:
            size = positive(self.largest, "largest", "Adaptation").tolist()
            object.__setattr__(self, "largest", natural.LargestBody(*size))

    # ------------------------------------------------------------------ the numbers

    def paths(self, machine: Machine) -> tuple[str, ...]:
        """Return the paths of the numbers that adapt."""
        return unknown_paths(machine, self.unknown_numbers)

    def numbers(self, machine: Machine) -> Numbers:
        """Return the numbers of a law's machine."""
        known = self._known
        if id(machine) not in known:
            known[id(machine)] = (machine, self._numbers(machine))
        return known[id(machine)][1]

    @cached_property
    def _known(self) -> dict[int, Any]:
        return {}

    def _numbers(self, machine: Machine) -> Numbers:
        if len(machine.parameters):
            raise ControlError("an adapting law needs a machine without tunable numbers")
        paths = self.paths(machine)
        bodies = []
        for body in machine.bodies:
            for names in (body_paths(body.name), body_paths(f"body:{body.name}")):
                if set(names) <= set(paths):
                    bodies.append([paths.index(name) for name in names])
        whole = {place for places in bodies for place in places}
        others = [k for k in range(len(paths)) if k not in whole]
        limits = [self._bounds(paths[k]) for k in others]
        return Numbers(
            machine.tunable(*paths), bodies, others,
            np.array([low for low, _ in limits]), np.array([high for _, high in limits]),
            np.array([self._gain_of(machine, paths[k]) for k in others]),
        )  # fmt: skip

    def _bounds(self, path: str) -> tuple[float, float]:
        least = 0.0 if set(path.split(".")) & set(NOT_NEGATIVE) else -np.inf
        return tuple(map(float, self.bounds.get(path, (least, np.inf))))  # type: ignore[return-value]

    def _gain_of(self, machine: Machine, path: str) -> float:
        if not isinstance(self.gain, Mapping):
            return float(positive(self.gain, "gain", "Adaptation"))
        for word, value in self.gain.items():
            if path in unknown_paths(machine, [word]):
                return float(positive(value, "gain", f"`{word}`"))
        raise ControlError(f"`gain` of Adaptation has none for `{path}`")

    def start(self, machine: Machine) -> np.ndarray:
        """Return the first estimates (k,)."""
        return self.numbers(machine).machine.parameters.values(self.first)

    def true(self, machine: Machine) -> np.ndarray:
        """Return the true numbers (k,), as `truth` has them."""
        assert self.truth is not None
        return np.array(self.truth.tunable(*self.paths(machine)).parameters.defaults)

    def check(self, model: Model) -> None:
        """Raise `ControlError` if numbers or first estimates cannot be those of the machine."""
        machine, numbers = model.machine, self.numbers(model.machine)
        if machine.closed:
            raise ControlError("Adaptation needs a machine without loops and couplings")
        for places in numbers.bodies:
            values = self.start(machine)[places]
            if np.linalg.eigvalsh(ca.DM(natural.matrix4(ca.SX(values))).full()).min() <= 0:
                name = numbers.machine.parameters.names[places[0]].removesuffix(f".{TEN[0]}")
                raise ControlError(
                    f"the first estimate of `{name}` must be a body with mass in all directions "
                    "(matrix4 positive definite): natural adaptation cannot begin at its border"
                )
        state = Tree(numbers.machine).at(ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv))
        acting = ca.horzcat(input_matrix(state), input_bias(state))
        if ca.depends_on(acting, numbers.machine.parameters.symbols):
            raise ControlError("Adaptation cannot have gains of actuators among its numbers")
        if self.prediction and self.timing.delay:
            raise ControlError("`prediction` of Adaptation cannot have a delay in the loop")

    def timed(self, timing: Timing) -> "Adaptation":
        """Return the same for a control period and a delay."""
        return replace(self, timing=timing)

    # ------------------------------------------------------------------ states

    def size(self, model: Model) -> int:
        """Return the number of states: the numbers, and those of the filter."""
        k = len(self.numbers(model.machine).machine.parameters)
        return k + (model.n * (k + 1) if self.prediction else 0)

    def first_memory(self, model: Model, x: Matrix, v: Matrix) -> Matrix:
        """Return the first estimates, and the filter at rest."""
        start = ca.DM(self.start(model.machine))
        if not self.prediction:
            return start
        terms = self._prediction_terms(model)(x, v)
        return ca.vertcat(start, self.filter * ca.vec(terms[0]), self.filter * terms[1])

    # ------------------------------------------------------------------ the law's side

    def meet(
        self, model: Model, x: Matrix, v: Matrix, memory: Matrix, wanted: ReferenceMotion
    ) -> CorrectionForce:
        """Return what the estimates add to the force of the law's own numbers."""
        machine = model.machine
        numbers = self.numbers(machine)
        k = len(numbers.machine.parameters)
        estimate = memory[:k, :]
        needed = _needed(numbers.machine)
        motion = [x, v, *map(ca.densify, map(ca.SX, wanted))]
        own = ca.DM(numbers.machine.parameters.defaults)
        at_estimate = needed(*motion, estimate)

        def change(s: Matrix, u: Matrix) -> CorrectionChange:
            slope = slope_function(numbers.machine)(*motion, estimate, s)
            predicted = self._predicted(model, x, v, memory, u)
            drive = slope + predicted.slope
            rate, following = self._moved(numbers, estimate, drive)
            rate = ca.vertcat(rate, predicted.rate)
            V, extra = None, ca.SX(0)
            if self.truth is not None:
                true = ca.DM(self.true(machine))
                V = self._V(numbers, x, s, estimate, true)
                miss = at_estimate - needed(*motion, true)
                extra = ca.dot(s, miss) - ca.dot(slope, estimate - true)
            signals = {"numbers": estimate, **predicted.signals}
            following = ca.vertcat(following, memory[k:, :])
            return CorrectionChange(rate, following, V, extra - predicted.lost, signals)

        return CorrectionForce(at_estimate - needed(*motion, own), change)

    def _moved(self, numbers: Numbers, estimate: Matrix, slope: Matrix) -> tuple[Matrix, Matrix]:
        """Return the rate of the numbers, and what they become at this evaluation.

        A sampled law steps bodies itself, so that they stay bodies; and others up to their bounds.
        """
        period, rate, following = self.timing.period, ca.SX(*estimate.shape), ca.SX(estimate)
        for places in numbers.bodies:
            own = estimate[places], slope[places], self.cost, self.largest
            if period:
                following[places] = natural.step(*own, period)
            else:
                rate[places] = natural.rate(*own)
        others = numbers.others
        if others:
            free, values = -ca.DM(numbers.gains) * slope[others], estimate[others]
            lower, upper = ca.DM(numbers.lower), ca.DM(numbers.upper)
            if period:
                following[others] = ca.fmin(ca.fmax(values + period * free, lower), upper)
            else:
                below = ca.logic_and(values <= lower, free < 0)
                above = ca.logic_and(values >= upper, free > 0)
                rate[others] = ca.if_else(ca.logic_or(below, above), 0, free)
        return rate, following

    def _V(self, numbers: Numbers, x: Matrix, s: Matrix, estimate: Matrix, true: Matrix) -> Matrix:
        """Return what V has more than that of the law with its own numbers."""
        mass = _mass(numbers.machine)
        own = ca.DM(numbers.machine.parameters.defaults)
        V = ca.dot(s, (mass(x, true) - mass(x, own)) @ s) / 2
        for places in numbers.bodies:
            V += self.cost * natural.divergence(true[places], estimate[places])
        if numbers.others:
            gap = (estimate - true)[numbers.others]
            V += ca.dot(gap, gap / ca.DM(numbers.gains)) / 2
        return V

    # ------------------------------------------------------------------ prediction

    def _prediction_terms(self, model: Model) -> ca.Function:
        """Return W, p - W pi, dh/dpi and h - dh/dpi pi, for p = M v and dp/dt = force + h."""
        machine = self.numbers(model.machine).machine
        x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
        held, pi = ca.SX.sym("held", machine.nv), machine.parameters.symbols
        state = Tree(machine).at(x, v)
        turned = ca.jtimes(state.mass @ held, x, machine.rate_matrix(x) @ v)
        p = state.mass @ v
        h = ca.substitute(turned, held, v) - state.inverse(ca.SX(machine.nv, 1))
        outputs = []
        for value in (p, h):
            Y = ca.jacobian(value, pi)
            if ca.depends_on(Y, pi):
                raise ControlError(
                    "`prediction` of Adaptation needs numbers in which forces are linear, got: "
                    + ", ".join(machine.parameters.names)
                )
            outputs += [Y, ca.substitute(value, pi, ca.SX.zeros(pi.shape[0]))]
        return ca.Function("prediction", [x, v], [ca.densify(value) for value in outputs])

    def _predicted(
        self, model: Model, x: Matrix, v: Matrix, memory: Matrix, u: Matrix
    ) -> "_Predicted":
        k = len(self.numbers(model.machine).machine.parameters)
        if not self.prediction:
            return _Predicted(ca.SX(k, 1), ca.SX(0, 1), ca.SX(0), {})
        n, pace = model.n, self.filter
        W, p, H, h = self._prediction_terms(model)(x, v)
        z = ca.reshape(memory[k : k + n * k, :], n, k)
        rest = memory[k + n * k :, :]
        Y_f = pace * W - z
        error = Y_f @ memory[:k, :] + pace * p - rest
        filtered = pace * p + h + given_force(model, x, v, u) - rest
        rate = ca.vertcat(ca.vec(pace * (pace * W + H - z)), pace * filtered)
        lost = self.prediction * ca.dot(error, error)
        slope = self.prediction * (Y_f.T @ error)
        return _Predicted(slope, rate, lost, {"prediction_error": error})


class _Predicted(NamedTuple):
    """What prediction errors drive: slope (k), rate of the filter, loss of V, signals."""

    slope: Matrix
    rate: Matrix
    lost: Matrix
    signals: dict[str, Matrix]


# ------------------------------------------------------------------ the model's force


def _symbols(machine: Machine) -> list[Matrix]:
    names = ("v", "v_r", "a_r")
    return [ca.SX.sym("x", machine.nx), *(ca.SX.sym(name, machine.nv) for name in names)]


def _force(state: State, v_r: Matrix, a_r: Matrix) -> Matrix:
    """Return F: what a passivity law that meets drag at v needs of the model."""
    return state.inverse(a_r) - coriolis_times(state, "skew", state.v - v_r)


def _needed(machine: Machine) -> ca.Function:
    """Return F as a function of x, v, v_r, a_r and the numbers."""
    x, v, v_r, a_r = _symbols(machine)
    pi = machine.parameters.symbols
    F = ca.densify(_force(Tree(machine).at(x, v), v_r, a_r))
    return ca.Function("needed", [x, v, v_r, a_r, pi], [F])


def slope_function(machine: Machine) -> ca.Function:
    """Return Y^T s (k) at x, v, v_r, a_r, numbers and s."""
    symbols, pi, s = _symbols(machine), machine.parameters.symbols, ca.SX.sym("s", machine.nv)
    F = _needed(machine)(*symbols, pi)
    return ca.Function("slope", [*symbols, pi, s], [ca.densify(ca.jtimes(F, pi, s, True))])


def _mass(machine: Machine) -> ca.Function:
    """Return M as a function of x and the numbers."""
    x = ca.SX.sym("x", machine.nx)
    mass = Tree(machine).at(x).mass
    return ca.Function("mass", [x, machine.parameters.symbols], [ca.densify(mass)])
