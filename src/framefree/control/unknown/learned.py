"""Learned wrenches in a law: set against what they stand for, and adapted while the law runs.

The equations of a law's model, velocities v (n), lack a wrench on every body,

    M dv/dt + C v + (passive forces) = force + d,     d = sum_b J_b^T f(z_b; c)

which a learned model gives as one function f of what a body meets, with coefficients c
(`LearnedWrench`). The law adds -d(c). With `rates`, some of the coefficients move,

    dc/dt = gain (Phi^T s - prediction Y_f^T e_f),     Phi = dd/dc

    V = (that of the law) + sum (c - c*)^2 / (2 gain),     eps = d* - d(c) - Phi (c* - c)
    dV/dt = (as the law states it) + s^T eps - prediction e_f . Y_f (c - c*) - (what bounds cut off)

where d* is the true force and c* the true coefficients: eps is what lies outside the span of Phi,
and of second order in numbers that d is not linear in, such as a current. It is known, and counted,
in an experiment where `truth` is given; in use V_rate leaves it out and V is not recorded.

Prediction errors are those of the momentum p, filtered at a pace so that no acceleration is needed,

    p' = force + h + d:     e_f = (force + h + d(c) - Phi c)_f + Phi_f c - pace (p - p_f)

with Y_f = Phi_f; of constant coefficients and a linear d, e_f = Y_f (c - c*).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import casadi as ca
import numpy as np

from framefree.control.law import ControlError, Timing
from framefree.control.shared.gains import positive
from framefree.control.shared.model import Model, ModelState
from framefree.control.unknown.correction import (
    Correction,
    CorrectionChange,
    CorrectionForce,
    ReferenceMotion,
    UnknownForce,
    at_symbols,
    given_force,
)
from framefree.control.unknown.together import CorrectionsTogether
from framefree.geometry import se3
from framefree.machine import Interaction, Machine
from framefree.machine.tree import unknown as unknown_name

Matrix = Any


class LearnedWrench(Protocol):
    """What a model of the wrench on a body has; `framefree.learn` makes such models.

    Attributes
    ----------
    names : sequence of str
        Of its coefficients, and
    coefficients : (k,)
        their values.
    inputs : int
        Number of commands that it takes: 0 in laws.
    """

    @property
    def names(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def coefficients(self) -> np.ndarray: ...  # noqa: D102
    @property
    def inputs(self) -> int: ...  # noqa: D102

    def function(self) -> ca.Function:
        """Return (twist, rotation, down, inputs, position, numbers) -> wrench (6), body axes."""
        ...


class LearnedPart(Protocol):
    """What a law can be assisted by: learned wrenches, contacts, friction in joints."""

    def added_to(self, machine: Machine, bodies: Sequence[str] | None = None) -> Machine:
        """Return the machine with what was learned among its own parts."""
        ...


def bodies_of(machine: Machine, bodies: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of bodies that a model is for: by default of all that have mass."""
    if bodies is None:
        return tuple(body.name for body in machine.bodies if not body.massless)
    return tuple(machine.body(name).name for name in bodies)


def wrench_on(
    model: LearnedWrench, machine: Machine, pose: Matrix, twist: Matrix, numbers: Matrix
) -> Matrix:
    """Return the wrench (6) of a model on a body at a pose and with a body twist."""
    if model.inputs:
        raise ControlError(
            f"the learned model takes {model.inputs} commands: a law cannot use it, because its "
            "own commands follow from the wrench"
        )
    R = se3.rotation(pose)
    gravity = np.asarray(machine.gravity, float)
    size = float(np.linalg.norm(gravity))
    down = R.T @ ca.DM(gravity / size if size else gravity)
    return model.function()(twist, R, down, ca.SX(0, 1), se3.position(pose), numbers)


def learned_interactions(
    model: LearnedWrench, machine: Machine, bodies: Sequence[str] | None = None
) -> tuple[Interaction, ...]:
    """Return a model as parts of a machine, one for each body: laws compensate, plants feel them.

    Their parameters are the coefficients of the model: "learned.body1.numbers.0" and so on. A
    machine that has a learned model on one of the bodies already is refused.
    """
    numeric, values = machine.numeric, np.asarray(model.coefficients, float)

    def wrench(pose: Matrix, twist: Matrix, numbers: Matrix) -> Matrix:
        return wrench_on(model, numeric, pose, twist, numbers)

    def fixed(pose: Matrix, twist: Matrix) -> Matrix:
        return wrench_on(model, numeric, pose, twist, ca.SX(0, 1))

    law, given = (wrench, {"numbers": values}) if values.size else (fixed, {})
    known = {part.name for part in machine.interactions}
    taken = [name for name in bodies_of(machine, bodies) if f"learned.{name}" in known]
    if taken:
        raise ControlError(
            f"`{machine.name}` has a learned model on body `{taken[0]}` already: give it the other "
            "one instead"
        )
    return tuple(
        Interaction(f"learned.{name}", "world", name, law, parameters=given)
        for name in bodies_of(machine, bodies)
    )


def Assisted(law: Any, model: LearnedPart, bodies: Sequence[str] | None = None) -> Any:
    """Return a law that counts a learned model among what acts on its machine.

    Every law of ours sets against passive forces what they take; what was learned is one of them.
    The law's V and its rate are those of the machine as the law now believes it.

    Parameters
    ----------
    law : Law
        Port laws, passivity, computed torque, prototype laws; one with a machine.
    model : LearnedPart
    bodies : sequence of str, optional
        Bodies that it is for; by default those of the model, or all that have mass.
    """
    return replace(law, machine=model.added_to(law.machine, bodies))


def Adaptive(law: Any, model: LearnedWrench, gain: Any, **options: Any) -> Any:
    """Return a law with a learned model whose coefficients adapt: see `LearnedAdaptation`.

    What the law's `unknown` has already, such as an `Adaptation` to a payload, stays beside it.
    """
    if not any(one.name == "unknown" for one in getattr(law, "__dataclass_fields__", {}).values()):
        raise ControlError(
            f"{law.name} has no Lyapunov function to adapt by: take a port law or PassivityControl"
        )
    own = LearnedAdaptation(model, gain, **options)
    return replace(
        law, unknown=own if law.unknown is None else CorrectionsTogether((law.unknown, own))
    )


class _Prediction(NamedTuple):
    """What prediction errors need: the slope Phi (n x moving) itself, momentum and h (n)."""

    Phi: Matrix
    p: Matrix
    h: Matrix


@dataclass(frozen=True, eq=False)
class LearnedAdaptation(Correction):
    """A learned model in a law, with coefficients that adapt; see the top of this file.

    Records `coefficients` (k), in the model's order, and `unknown` (n), the force d(c).

    Parameters
    ----------
    model : LearnedWrench
    gain : number or mapping of str to number
        Rates of the coefficients by power per unit of them; by name or by the beginning of names up
        to a point ("current"). What is not named does not adapt.
    bodies : sequence of str, optional
        Bodies that the model is for; by default all that have mass.
    first : mapping of str to number
        First estimates, where they are not the model's.
    bounds : mapping of str to (low, high)
        By name or beginning of names.
    prediction, filter : float
        Weight of prediction errors (0: none), and pace of their filter, 1/s.
    truth : LearnedWrench, optional
        The true wrench, for the record of V in an experiment; coefficients with the same names are
        the true ones.
    timing : Timing
        Of the loop; `simulate` fills it in.
    """

    model: Any
    gain: Any = field(default_factory=dict)
    bodies: Any = None
    first: Mapping[str, float] = field(default_factory=dict)
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    prediction: float = 0.0
    filter: float = 10.0
    truth: Any = None
    unknown: UnknownForce = field(default_factory=UnknownForce)
    timing: Timing = field(default_factory=Timing)

    def __post_init__(self) -> None:
        positive(self.filter, "filter", "LearnedAdaptation")
        positive(self.prediction, "prediction", "LearnedAdaptation", zero=True)
        low, high = self.limits
        if ((self.first_estimate < low) | (self.first_estimate > high)).any():
            raise ControlError("first estimates of coefficients must lie within their `bounds`")
        if not self.gains.any() and self.prediction:
            raise ControlError("prediction errors move coefficients: give some of them a `gain`")

    def check(self, model: Model) -> None:
        """Raise `ControlError` where a body is none of the machine's."""
        bodies_of(model.machine, self.bodies)

    # ------------------------------------------------------------------ the coefficients

    def _by_name(self, given: Any, what: str, default: Any) -> list[Any]:
        """Return what is given for each coefficient, by name or beginning of names."""
        names = list(self.model.names)
        if not isinstance(given, Mapping):
            return [given] * len(names)
        groups = {name.partition(".")[0] for name in names}
        for key in given:
            if key not in names and key not in groups:
                raise ControlError(f"`{what}`: {unknown_name('coefficient', key, names)}")
        return [given.get(name, given.get(name.partition(".")[0], default)) for name in names]

    @cached_property
    def gains(self) -> np.ndarray:
        """Gains (k,) of all coefficients; 0 where they do not adapt."""
        values = self._by_name(self.gain, "gain", 0.0)
        return positive(np.array(values, float), "gain", "LearnedAdaptation", zero=True)

    @cached_property
    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds (k,)."""
        pairs = np.array(self._by_name(self.bounds, "bounds", (-np.inf, np.inf)), float)
        return pairs.reshape(-1, 2)[:, 0], pairs.reshape(-1, 2)[:, 1]

    @cached_property
    def first_estimate(self) -> np.ndarray:
        """Coefficients (k,) at the start."""
        own = dict(zip(self.model.names, np.asarray(self.model.coefficients), strict=True))
        for key in self.first:
            if key not in own:
                raise ControlError(f"`first`: {unknown_name('coefficient', key, list(own))}")
        return np.array([self.first.get(name, value) for name, value in own.items()], float)

    @cached_property
    def true_coefficients(self) -> np.ndarray:
        """c* (k,): the truth's where it has them, else the model's own."""
        known = {}
        if self.truth is not None:
            known = dict(zip(self.truth.names, np.asarray(self.truth.coefficients), strict=True))
        own = zip(self.model.names, np.asarray(self.model.coefficients), strict=True)
        return np.array([known.get(name, value) for name, value in own], float)

    @property
    def _moving(self) -> list[int]:
        return np.flatnonzero(self.gains > 0).tolist()

    # ------------------------------------------------------------------ states

    def size(self, model: Model) -> int:
        """Return the number of states: coefficients, and filters of prediction errors."""
        k, n = len(self.gains), model.n
        return k + (n * len(self._moving) + 2 * n if self.prediction else 0)

    def first_memory(self, model: Model, x: Matrix, v: Matrix) -> Matrix:
        """Return the first estimates; filters start where they see no error."""
        first = ca.DM(self.first_estimate)
        if not self.prediction:
            return first
        p = self._prediction_terms(model, x, v, first).p
        return ca.vertcat(first, ca.SX(model.n * len(self._moving) + model.n, 1), p)

    def timed(self, timing: Timing) -> "LearnedAdaptation":
        """Return the same for a control period and a delay."""
        return replace(self, timing=timing)

    def meet(
        self, model: Model, x: Matrix, v: Matrix, memory: Matrix, wanted: ReferenceMotion
    ) -> CorrectionForce:
        """Return what the model gives at a state, and how its coefficients move."""
        k, moving = len(self.gains), self._moving
        c, filters = memory[:k, :], memory[k:, :]
        d = self._model_force(model, x, v, c)

        def change(s: Matrix, u: Matrix) -> CorrectionChange:
            e, Y_f, filter_rate = self._predicted(model, x, v, c, d, u, filters)
            off = (c - ca.DM(self.true_coefficients))[moving]
            slope, along = self._slopes(model, x, v, c, s, off)
            drive = slope - self.prediction * (Y_f.T @ e)
            rate, following = self._moved(c, drive)
            V, extra = None, ca.SX(0)
            if self.truth is not None:
                gain = ca.DM(self.gains[moving])
                V = ca.sumsqr(off / ca.sqrt(gain)) / 2
                left = self._true_force(model, x, v) - d + along
                cut = ca.dot(off, rate[moving] / gain - drive)
                extra = ca.dot(s, left) - self.prediction * ca.dot(e, Y_f @ off) + cut
            signals = {"coefficients": c, "unknown": d}
            if self.prediction:
                signals["prediction_error"] = e
            rate = ca.SX(k, 1) if self.timing.period else rate
            return CorrectionChange(
                ca.vertcat(rate, filter_rate), ca.vertcat(following, filters), V, extra, signals
            )

        return CorrectionForce(-d, change)

    def _moved(self, c: Matrix, drive: Matrix) -> tuple[Matrix, Matrix]:
        """Return the rate (k) of the coefficients, and their next value if the law is sampled."""
        moving = self._moving
        low, high = (ca.DM(one[moving]) for one in self.limits)
        free, own = ca.DM(self.gains[moving]) * drive, c[moving]
        stuck = ca.logic_or(ca.logic_and(own <= low, free < 0), ca.logic_and(own >= high, free > 0))
        rate, following = ca.SX(*c.shape), ca.SX(c)
        rate[moving] = ca.if_else(stuck, 0, free)
        if self.timing.period:
            following[moving] = ca.fmin(ca.fmax(own + self.timing.period * free, low), high)
        return rate, following

    def _predicted(
        self, model: Model, x: Matrix, v: Matrix, c: Matrix, d: Matrix, u: Matrix, filters: Matrix
    ) -> tuple[Matrix, Matrix, Matrix]:
        """Return e_f (n), Y_f (n x moving) and the rate of the filters."""
        n, m = model.n, len(self._moving)
        if not self.prediction:
            return ca.SX(n, 1), ca.SX(n, m), ca.SX(0, 1)
        Phi, p, h = self._prediction_terms(model, x, v, c)
        pace, own = self.filter, c[self._moving]
        Y_f = ca.reshape(filters[: n * m], n, m)
        rest, p_f = filters[n * m : n * m + n], filters[n * m + n :]
        known = given_force(model, x, v, u) + h + d - Phi @ own
        e = rest + Y_f @ own - pace * (p - p_f)
        rate = pace * ca.vertcat(ca.vec(Phi - Y_f), known - rest, p - p_f)
        return e, Y_f, rate

    # ------------------------------------------------------------------ forces

    def _force(self, state: ModelState, wrench: Any, numbers: Matrix) -> Matrix:
        machine, total = state.model.machine, ca.SX(state.model.n, 1)
        for name in bodies_of(machine, self.bodies):
            i = machine.body_index[name]
            J = state.jacobian(name).value
            w = wrench_on(
                wrench, machine.numeric, state.tree.poses[i], state.tree.twists[i], numbers
            )
            total = total + J.T @ w
        return total

    def _true_force(self, model: Model, x: Matrix, v: Matrix) -> Matrix:
        true = ca.DM(np.asarray(self.truth.coefficients, float))
        return at_symbols(model, lambda state: [self._force(state, self.truth, true)])(x, v)[0]

    def _model_force(self, model: Model, x: Matrix, v: Matrix, c: Matrix) -> Matrix:
        """Return d(c) (n)."""
        symbols = ca.SX.sym("c", len(self.gains))
        own = at_symbols(model, lambda state: [self._force(state, self.model, symbols)], symbols)
        return own(x, v, c)[0]

    def _slopes(
        self, model: Model, x: Matrix, v: Matrix, c: Matrix, s: Matrix, off: Matrix
    ) -> tuple[Matrix, Matrix]:
        """Return Phi^T s (moving) and Phi off (n), without Phi: it may have many columns."""
        symbols, moving = ca.SX.sym("c", len(self.gains)), self._moving
        force, along = ca.SX.sym("s", model.n), ca.SX.sym("off", len(moving))
        direction = ca.SX(*symbols.shape)
        direction[moving] = along

        def slopes(state: ModelState) -> list[Matrix]:
            d = self._force(state, self.model, symbols)
            back = ca.jtimes(d, symbols, force, True)
            return [back[moving], ca.jtimes(d, symbols, direction)]

        return at_symbols(model, slopes, symbols, force, along)(x, v, c, s, off)  # type: ignore

    def _prediction_terms(self, model: Model, x: Matrix, v: Matrix, c: Matrix) -> _Prediction:
        """Return Phi, the momentum p and h: p' = force + h + d."""
        symbols = ca.SX.sym("c", len(self.gains))
        columns = ca.DM.eye(len(self.gains))[:, self._moving]

        def terms(state: ModelState) -> list[Matrix]:
            held = ca.SX.sym("held", model.n)
            x_rate = model.machine.rate_matrix(state.tree.x) @ state.tree.v
            M_rate = ca.jtimes(state.mass @ held, state.tree.x, x_rate)
            turned = ca.substitute(M_rate, held, state.v)
            Phi = ca.jtimes(self._force(state, self.model, symbols), symbols, columns)
            return [Phi, state.mass @ state.v, turned - state.inverse(ca.SX(model.n, 1))]

        return _Prediction(*at_symbols(model, terms, symbols)(x, v, c))
