"""Prototypes that a machine can follow: found, or said not to exist.

A machine with fewer inputs than velocities follows a prototype only where the matching conditions
hold (`framefree.control.prototype.tuning.matching`). `matched_prototype` looks for parameters on
pairs of frames that fulfil them about rest, with positive inertia and stiffness and with damping
that brings everything to rest:

1. what no input reaches must be at rest by itself, or be a motion that nothing holds anyway;
2. a semidefinite program tells whether there is a matched prototype at all (`existence`);
3. the one that costs least is found by `search`, and laid onto the pairs by `pairs`.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg

from framefree.control.law import ControlError
from framefree.control.prototype.law import PrototypeControl
from framefree.control.prototype.matched import search
from framefree.control.prototype.matched.existence import NoPrototypeError, exists, proof
from framefree.control.prototype.matched.pairs import (
    NUMBERS,
    named_pairs,
    on_pairs,
    pair_forms,
    pair_springs,
)
from framefree.control.prototype.matched.problem import MatchingProblem
from framefree.control.prototype.matched.reach import (
    carried_along,
    check_reach,
    left_velocities,
    without,
)
from framefree.control.prototype.parameters import KINDS, Pair
from framefree.control.prototype.rest import RestDynamics, rest_dynamics
from framefree.control.prototype.tuning import Matching, matching
from framefree.control.shared.gains import positive
from framefree.errors import FramefreeWarning
from framefree.geometry import Moments
from framefree.machine import WORLD, Machine


@dataclass(frozen=True, eq=False)
class MatchedPrototype:
    """Parameters of a prototype that a machine follows, to first order about rest.

    Attributes
    ----------
    machine : Machine
    x : (nx,)
        Where it rests.
    inertia, damping, stiffness : mapping of (frame a, frame b) to Moments
        As `PrototypeControl` takes them.
    left : tuple of str
        Velocities that no input reaches and nothing holds; they are not brought to rest.

    Notes
    -----
    Where errors must decay more slowly than the machine swings by itself, springs between frames
    may have to be negative: then inertia and stiffness are positive about rest, and not
    `everywhere`. How far from rest the law works is told by `framefree.control.attraction`.
    """

    machine: Machine
    x: np.ndarray
    inertia: Mapping[Pair, Moments]
    damping: Mapping[Pair, Moments]
    stiffness: Mapping[Pair, Moments]
    left: tuple[str, ...] = ()

    @property
    def parameters(self) -> dict[str, Any]:
        """Arguments of `PrototypeControl`."""
        return {kind: getattr(self, kind) for kind in KINDS}

    def law(self, **options: Any) -> PrototypeControl:
        """Return the law with these parameters; `options` are others of `PrototypeControl`."""
        near = None if self.everywhere else self.x
        return PrototypeControl(self.machine, **self.parameters, **{"near": near, **options})

    @cached_property
    def everywhere(self) -> bool:
        """Whether inertia, damping and stiffness are positive at every configuration."""
        return self._accepted(None)

    def _accepted(self, near: Any) -> bool:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FramefreeWarning)
                PrototypeControl(self.machine, **self.parameters, approach="body", near=near)
        except ControlError:
            return False
        return True

    @cached_property
    def matching(self) -> Matching:
        """How well the conditions hold, and the poles, from the law itself."""
        return matching(self.law(approach="body"), self.x)

    @property
    def slowest(self) -> float:
        """Real part (1/s) of the slowest pole, without those of what is left as it is."""
        growth = np.sort(np.real(self.matching.poles))
        return float(growth[: len(growth) - 2 * len(self.left)][-1])

    def __str__(self) -> str:
        poles = ", ".join(f"{pole:.3g}" for pole in self.matching.poles if pole.imag >= 0)
        left = f"; not reached: {', '.join(self.left)}" if self.left else ""
        where = "" if self.everywhere else "; positive about rest only"
        return f"matched to {self.matching.error:.1e}; poles {poles} 1/s{left}{where}"


def matched_prototype(
    machine: Machine,
    rate: float,
    x_R: Any = None,
    *,
    pairs: Sequence[Any] | None = None,
    poles: Any = None,
    leave: Sequence[str] = (),
    without_damping: bool = False,
) -> MatchedPrototype:
    """Return a prototype that a machine follows about rest at x_R.

    Parameters
    ----------
    machine : Machine
        With actuators, without loops or couplings.
    rate : float
        How fast errors should decay, 1/s: about where the poles lie.
    x_R : (nx,), optional
        An equilibrium under inputs within their limits, by default neutral.
    pairs : sequence of frame or (frame a, frame b), optional
        That may have parameters; by default every body seen from the world and, of up to six
        bodies, all from each other, else neighbours.
    poles : (2 nv,), optional
        Coefficients of the characteristic polynomial, lowest first without the highest, which is
        one (`tuning.characteristic`): for machines with one input, instead of the poles that cost
        least at this rate. Every stable polynomial can be had where no friction acts on what the
        input does not reach.
    leave : sequence of str
        Names of velocities that no input reaches and nothing holds, such as the spin of a load
        about its rod: these are left as they are. Others of this kind are an error.
    without_damping : bool
        Match as if the machine had no friction where inputs do not reach. The conditions then do
        not hold, and its friction may help or harm: see the poles of `MatchedPrototype.matching`.

    Raises
    ------
    NoPrototypeError
        Where there is none, with the reason, or where none was found on these pairs.
    """
    positive(rate, "rate", "a matched prototype")
    rest = rest_dynamics(machine, x_R)
    if without_damping:
        rest = replace(rest, D=_reached_damping(rest))
    chosen = named_pairs(machine, pairs)
    left = left_velocities(rest, leave)
    check_reach(rest, left, rate)
    kept = np.setdiff1d(np.arange(machine.nv), left)
    seen = without(rest, kept, left)
    if not exists(seen):
        raise NoPrototypeError(_none_words(rest), proof(seen))
    candidates = _Candidates(rest, seen, chosen, kept, left, rate)
    local = []
    for damped in (chosen, *((pair,) for pair in reversed(chosen) if pair[0] == WORLD)):
        found = candidates.prototype(damped, poles)
        if found is not None and found.everywhere:
            return found
        local += [] if found is None else [found]
    if local:
        return min(local, key=lambda found: found.slowest)
    raise NoPrototypeError(_not_found_words(machine, chosen, poles))


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Matched prototypes of one machine on the same pairs, with damping on some of them."""

    rest: RestDynamics
    seen: RestDynamics
    pairs: tuple[Pair, ...]
    kept: np.ndarray
    left: np.ndarray
    rate: float

    @cached_property
    def forms(self) -> np.ndarray:
        return pair_forms(self.rest.machine, self.rest.x, self.pairs)

    def prototype(self, damped: Sequence[Pair], poles: Any) -> MatchedPrototype | None:
        """Return the prototype, if there is one that is positive about rest at least."""
        machine = self.rest.machine
        chosen = np.repeat([pair in damped for pair in self.pairs], NUMBERS)
        inertia, others = self._allowed(np.full(len(chosen), True))
        forms = inertia, self._allowed(chosen)[1], others
        springs = pair_springs(machine, self.forms)[:, self.kept][:, :, self.kept]
        problem = MatchingProblem.of(self.seen, forms, springs, self.rate)
        if poles is None:
            theta = search.solve_problem(problem)
        else:
            theta = search.from_feedback(problem, _placed(problem, poles))
        if theta is None:
            return None
        numbers = {}
        for kind, form, power in zip(KINDS, problem.forms(theta), (0, 1, 2), strict=True):
            whole = self._whole(problem.in_units(form, power), kind)
            where = damped if kind == "damping" else self.pairs
            own = self.forms[chosen] if kind == "damping" else self.forms
            numbers[kind] = on_pairs(machine, where, own, whole)
        names = tuple(machine.v_names[k] for k in self.left)
        found = MatchedPrototype(machine, self.rest.x, **numbers, left=names)
        return found if found._accepted(found.x) else None

    def _allowed(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the forms (k, n, n) of inertia, and of others, that spare what is left.

        Inertia must let what is left be carried along as in the machine, and counts without it;
        damping and stiffness must be zero there.
        """
        forms, left, kept = self.forms[chosen], self.left, self.kept
        square = forms[:, kept][:, :, kept]
        if not len(left):
            return square, square
        carried = carried_along(self.rest, kept, left)
        own, coupling = forms[:, left][:, :, left], forms[:, left][:, :, kept]
        free = _null_rows(coupling - own @ carried)
        inertia = np.tensordot(free, square - carried.T @ own @ carried, 1)
        return inertia, np.tensordot(_null_rows(np.concatenate([coupling, own], 2)), square, 1)

    def _whole(self, form: np.ndarray, kind: str) -> np.ndarray:
        """Return a form of all velocities from that of those that are kept."""
        kept, left, nv = self.kept, self.left, len(self.rest.M)
        whole = np.zeros((nv, nv))
        whole[np.ix_(kept, kept)] = form
        if kind == "inertia" and len(left):
            carried, own = carried_along(self.rest, kept, left), self.rest.M[np.ix_(left, left)]
            whole[np.ix_(left, left)] = own
            whole[np.ix_(left, kept)] = own @ carried
            whole[np.ix_(kept, left)] = (own @ carried).T
            whole[np.ix_(kept, kept)] += carried.T @ own @ carried
        return whole


def _null_rows(forms: np.ndarray) -> np.ndarray:
    """Return combinations (k, m) of forms (m, ...) that are zero."""
    return scipy.linalg.null_space(forms.reshape(len(forms), -1).T, rcond=1e-10).T


def _reached_damping(rest: RestDynamics) -> np.ndarray:
    """Return the damping without what acts where no input reaches."""
    return rest.D - rest.across.T @ (rest.across @ rest.D)


def _placed(problem: MatchingProblem, poles: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return A_K and A_D with one characteristic polynomial, by Ackermann's formula."""
    n, count = problem.n, problem.B.shape[1]
    if count != 1:
        raise ControlError(
            f"`poles` can be chosen for machines with one input, this one has {count}; give a "
            "`rate` alone"
        )
    given = np.asarray(poles, float)
    if given.shape not in ((2 * n,), (2 * n + 1,)) or not np.isfinite(given).all():
        raise ControlError(
            f"`poles` must be {2 * n} coefficients, lowest first, got shape {given.shape}"
        )
    wanted = given[: 2 * n] / problem.rate ** np.arange(2 * n, 0, -1)
    roots = np.roots([1.0, *wanted[::-1]])
    if not roots.real.max() < 0:
        worst = problem.rate * roots[roots.real.argmax()]
        raise ControlError(f"`poles` must be those of a stable polynomial; a root is {worst:.4g}")
    A = problem.closed_loop(problem.K, problem.D)
    B = np.vstack([np.zeros((n, 1)), problem.B])
    powers = [np.eye(2 * n)]
    for _ in range(2 * n):
        powers.append(A @ powers[-1])
    reach = np.hstack([power @ B for power in powers[:-1]])
    polynomial = powers[-1] + sum(c * power for c, power in zip(wanted, powers, strict=False))
    F = np.linalg.solve(reach.T, np.eye(2 * n)[-1]) @ polynomial
    closed = A - B @ F[None]
    return -closed[n:, :n], -closed[n:, n:]


# ---------------------------------------------------------------------- words


def _none_words(rest: RestDynamics) -> str:
    name = rest.machine.name
    words = f"`{name}` has no matched prototype with positive inertia and stiffness"
    damping = float(np.abs(rest.across @ rest.D).max(initial=0.0))
    if damping and exists(replace(rest, D=_reached_damping(rest))):
        return (
            f"{words}: friction of {damping:.3g} N s/m or Nm s/rad acts where no input reaches and "
            "against what would have to hold the machine; `without_damping=True` matches as if it "
            "were not there"
        )
    return f"{words}; `proof` of this error has the numbers that prove it"


def _not_found_words(machine: Machine, pairs: Sequence[Pair], poles: Any) -> str:
    shown = ", ".join(f"(`{a}`, `{b}`)" for a, b in pairs)
    if poles is not None:
        return (
            f"no prototype of `{machine.name}` on {shown} has these poles; more pairs, or a `rate` "
            "alone, leave more freedom"
        )
    return (
        f"`{machine.name}` has matched prototypes with general inertia, but none was found on "
        f"{shown}; give more pairs, or another `rate`"
    )
