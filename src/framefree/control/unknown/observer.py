"""Observer of unknown forces by momentum [DeLuca2005]: no acceleration is measured.

With the momentum p = M v of the velocities v (n), and M_dot = C + C^T for the skew C,

    dp/dt = force + h(x, v) + d,      h = M_dot v - inverse(x, v, 0) = C^T v - passive
    q' = force + h + r,    q(0) = p(0),     r = K (p - q)
    dr/dt = K (d - r)

so r follows the unknown force d like a filter of first order. With |dd/dt_i| <= c_i,

    |r_i - d_i| <= |d_i(0)| exp(-K_i t) + c_i / K_i            (`MomentumObserver.bound`)

What is constant is seldom d: a push in the world turns in the axes of a body that spins, and a
wrench w at a frame, d = S(x)^T w, turns with the machine. `UnknownForce` says what is constant, and
its turning is told to the observer,

    q' = force + h + r - K^-1 (dS/dt)^T L r,      L S^T = I,      dr/dt = K (d - r) + (dS/dt)^T L r

so that for constant w, with e = r - d,  de/dt = -(K - (dS/dt)^T L) e: no lag is left. Forces at
ball and free joints are so held in the axes of the world, where the bound above is one on their
rates there. For a wrench at a frame, L r is the one whose accelerations come nearest to those of r
(Gauss); where S does not have full rank, only part of w is seen (`UnknownForce.rank`).

A sampled law has the integral of q' by the trapezoidal rule, with what held inputs give at either
end: what inputs on bodies do to the joints changes as these turn. It counts the commands that act,
with a delay of m periods that of m periods ago: otherwise r would show the delay as a force.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError, Timing
from framefree.control.shared.gains import positive, vector_gain
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
from framefree.motion.constrained.algebra import MassFactor, RowSpace

Matrix = Any


@dataclass(frozen=True)
class MomentumObserver(Correction):
    """Observes unknown forces on any machine; see the top of this file.

    Records `unknown` (n), the force r on the velocities, and for a frame `unknown_wrench` (6).

    Parameters
    ----------
    gain : float or (n,)
        K, 1/s: pace at which r follows.
    unknown : UnknownForce
        What is taken as constant.
    acts : bool
        Whether the law sets -r against it; otherwise r is recorded only.
    timing : Timing
        Of the loop; `simulate` fills it in.
    """

    gain: Any = 20.0
    unknown: UnknownForce = field(default_factory=UnknownForce)
    acts: bool = True
    timing: Timing = field(default_factory=Timing)

    def check(self, model: Model) -> None:
        """Raise `ControlError` if the gain does not fit the machine or the control period."""
        most = self._gain(model).max(initial=0.0) * self.timing.period
        if most >= 1:
            raise ControlError(
                f"an observer with a gain of {self._gain(model).max():g}/s needs control periods "
                f"shorter than {1 / self._gain(model).max():g} s, got {self.timing.period:g} s"
            )

    def _gain(self, model: Model) -> np.ndarray:
        return vector_gain(self.gain, model.n, "gain", "MomentumObserver", of=model.v_names)

    def timed(self, timing: Timing) -> "MomentumObserver":
        """Return the observer for a control period and a delay."""
        return replace(self, timing=timing)

    def bound(self, t: Any, first: Any, rate: Any) -> np.ndarray:
        """Return the bound (rows, n) on |r - d| at times t since the start.

        Parameters
        ----------
        t : (rows,)
        first : (n,)
            |d| at the start, r being 0.
        rate : (n,)
            Largest |dd/dt|, N/s and Nm/s.
        """
        first, rate = (positive(value, "bound", zero=True) for value in (first, rate))
        K = np.asarray(self.gain, float)
        decay = np.exp(-np.multiply.outer(np.asarray(t, float), K * np.ones_like(first)))
        return first * decay + rate / K * (1 - decay)

    # ------------------------------------------------------------------ states

    def size(self, model: Model) -> int:
        """Return the number of states: q; of a sampled law also its inputs from the last on."""
        return model.n + model.machine.nu * self._held

    def first_memory(self, model: Model, x: Matrix, v: Matrix) -> Matrix:
        """Return q = p(0), so that r starts at zero."""
        p, h, *_ = self._terms(model, x, v)
        ahead = ca.SX(model.machine.nu * self._held, 1)
        acted = given_force(model, x, v, ahead[: model.machine.nu]) if self._held else 0
        return ca.vertcat(p - self.timing.period / 2 * (h + acted), ahead)

    @property
    def _held(self) -> int:
        """Inputs in memory: those that acted until now, and those on their way."""
        return 1 + self.timing.delay if self.timing.period else 0

    def meet(
        self, model: Model, x: Matrix, v: Matrix, memory: Matrix, wanted: ReferenceMotion | None
    ) -> CorrectionForce:
        """Return what is observed at a state."""
        n, nu, half = model.n, model.machine.nu, self.timing.period / 2
        K = ca.DM(self._gain(model))
        p, h, *turning = self._terms(model, x, v)
        q, queue = memory[:n, :], memory[n:, :]
        if self._held:
            # Of the step that ended here, the trapezoidal rule counts half here, r and c too.
            q = q + half * (given_force(model, x, v, queue[:nu, :]) + h)
        carried, seen = _turning(self.unknown, turning)
        r = K * (p - q) / (1 + half * K)
        r = r + half * carried(r) / (1 + half * K)
        gone = r - carried(r) / K
        signals = {"unknown": r, **seen(r)}

        def change(s: Matrix, u: Matrix) -> CorrectionChange:
            following = ca.vertcat(queue, u)[nu:, :] if self._held else queue
            acting = following[:nu, :] if self._held else u
            rate = given_force(model, x, v, acting) + h + gone
            rate = ca.vertcat(rate / 2 if self._held else rate, ca.SX(*queue.shape))
            memory = ca.vertcat(q + half * gone, following)
            return CorrectionChange(rate, memory, ca.SX(0), ca.SX(0), signals)

        return CorrectionForce(-r if self.acts else ca.SX(n, 1), change)

    def _terms(self, model: Model, x: Matrix, v: Matrix) -> tuple[Matrix, ...]:
        """Return p and h; where S is not constant, also S, its rate and M."""

        def terms(state: ModelState) -> list[Matrix]:
            x, held = state.tree.x, ca.SX.sym("held", model.n)
            x_rate = model.machine.rate_matrix(x) @ state.tree.v
            M_rate = ca.jtimes(state.mass @ held, x, x_rate)
            turned = ca.substitute(M_rate, held, state.v)
            made = [state.mass @ state.v, turned - state.inverse(ca.SX(model.n, 1))]
            S = self.unknown.directions(state)
            if not S.is_constant():
                S = ca.densify(S)
                made += [S, ca.reshape(ca.jtimes(ca.vec(S), x, x_rate), *S.shape), state.mass]
            return made

        return at_symbols(model, terms)(x, v)


def _turning(unknown: UnknownForce, terms: list[Matrix]) -> tuple[Any, Any]:
    """Return, as functions of r, (dS/dt)^T L r (n), and what a frame feels of it, to record."""
    if not terms:
        return lambda r: ca.SX(r.shape[0], 1), lambda r: {}
    S, S_rate, M = terms
    if unknown.frame is None:
        return lambda r: S_rate.T @ (S @ r), lambda r: {}
    # The wrench (6) whose accelerations come nearest to those of r.
    sizes = ca.repmat(ca.sumsqr(S), S.shape[0], 1)
    rows = RowSpace(S, sizes, MassFactor(M))
    return (
        lambda r: S_rate.T @ rows.multipliers(r),
        lambda r: {"unknown_wrench": rows.multipliers(r)},
    )
