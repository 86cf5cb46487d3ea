"""Prototypes that a machine can follow: found, or said not to exist.

A machine with fewer inputs than velocities follows a prototype only where the matching conditions
hold (`framefree.control.prototype.tuning.matching`). `matched_prototype` looks for parameters on
pairs of frames that fulfil them about rest, with positive inertia and stiffness and with damping
that brings everything to rest:

1. what no input reaches must be at rest by itself, or be a motion that nothing holds anyway;
2. a semidefinite program tells whether there is a matched prototype at all (`existence`);
3. the one that costs least is found by `search`, and laid onto the pairs by `pairs`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg

from framefree.control.law import ControlError
from framefree.control.prototype.law import PrototypeControl
from framefree.control.prototype.matched import search
from framefree.control.prototype.matched.existence import NoPrototypeProof, exists, proof
from framefree.control.prototype.matched.pairs import NUMBERS, named_pairs, on_pairs, pair_forms
from framefree.control.prototype.matched.problem import MatchingProblem
from framefree.control.prototype.parameters import KINDS, Pair
from framefree.control.prototype.rest import RestDynamics, rest_dynamics
from framefree.control.prototype.tuning import Matching, matching
from framefree.control.shared.gains import positive
from framefree.geometry import Moments
from framefree.machine import WORLD, Machine

UNREACHED = 1e-8
"""Share of the size of A below which inputs do not reach a direction of the state."""
NEUTRAL = 1e-6
"""Size of an eigenvalue, in units of the rate, that counts as zero."""


class NoPrototypeError(ControlError):
    """There is no matched prototype, or none was found.

    Attributes
    ----------
    proof : NoPrototypeProof or None
        Numbers that prove that there is none; None where the message says why, or where the search
        did not find one although there may be some.
    """

    def __init__(self, message: str, proof: NoPrototypeProof | None = None) -> None:
        super().__init__(message)
        self.proof = proof


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
        return PrototypeControl(self.machine, **self.parameters, **options)

    @cached_property
    def matching(self) -> Matching:
        """How well the conditions hold, and the poles, from the law itself."""
        return matching(self.law(approach="body"), self.x)

    def __str__(self) -> str:
        poles = ", ".join(f"{pole:.3g}" for pole in self.matching.poles if pole.imag >= 0)
        left = f"; not reached: {', '.join(self.left)}" if self.left else ""
        return f"matched to {self.matching.error:.1e}; poles {poles} 1/s{left}"


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
    left = _left(rest, leave)
    _check_reach(rest, left, rate)
    kept = np.setdiff1d(np.arange(machine.nv), left)
    seen = _without(rest, kept, left)
    if not exists(seen):
        raise NoPrototypeError(_none_words(rest), proof(seen))
    candidates = _Candidates(rest, seen, chosen, kept, left, rate)
    for damped in (chosen, *((pair,) for pair in reversed(chosen) if pair[0] == WORLD)):
        found = candidates.prototype(damped, poles)
        if found is not None:
            return found
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
        """Return the prototype, if there is one that is positive also away from rest."""
        machine = self.rest.machine
        chosen = np.repeat([pair in damped for pair in self.pairs], NUMBERS)
        inertia, others = self._allowed(np.full(len(chosen), True))
        forms = inertia, self._allowed(chosen)[1], others
        problem = MatchingProblem.of(self.seen, forms, self.rate)
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
        try:
            found.law(approach="body")
        except ControlError:
            return None
        return found

    def _allowed(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the forms (k, n, n) of inertia, and of others, that spare what is left.

        Inertia must let what is left be carried along as in the machine, and counts without it;
        damping and stiffness must be zero there.
        """
        forms, left, kept = self.forms[chosen], self.left, self.kept
        square = forms[:, kept][:, :, kept]
        if not len(left):
            return square, square
        carried = _carried(self.rest, kept, left)
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
            carried, own = _carried(self.rest, kept, left), self.rest.M[np.ix_(left, left)]
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


def _without(rest: RestDynamics, kept: np.ndarray, left: np.ndarray) -> RestDynamics:
    """Return the dynamics of some of the velocities, where the others have no force on them."""
    square = np.ix_(kept, kept)
    M = rest.M[square]
    if len(left):
        M = M - rest.M[np.ix_(kept, left)] @ _carried(rest, kept, left)
    return replace(rest, M=M, D=rest.D[square], K=rest.K[square], B=rest.B[kept])


def _carried(rest: RestDynamics, kept: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Return M_ll^-1 M_lk: minus how what is left is carried along by the others."""
    return np.linalg.solve(rest.M[np.ix_(left, left)], rest.M[np.ix_(left, kept)])


def _left(rest: RestDynamics, leave: Sequence[str]) -> np.ndarray:
    """Return the places of velocities to be left, on which neither inputs nor forces may act."""
    names, scale = rest.machine.v_names, np.sqrt(np.diag(rest.M))
    unknown = [name for name in leave if name not in names]
    if unknown:
        raise ControlError(
            f"`leave` names `{unknown[0]}`, which is no velocity of `{rest.machine.name}`; it has "
            + ", ".join(f"`{name}`" for name in names)
        )
    D, K = (np.abs(X) / np.outer(scale, scale) for X in (rest.D, rest.K))
    B = np.abs(rest.B) / scale[:, None]
    held = (D + K + D.T + K.T).max(axis=1) / max(1.0, float(K.max()), float(D.max()))
    pushed = np.maximum(held, B.max(axis=1) / float(B.max()))
    left = np.array(sorted(names.index(name) for name in leave), int)
    for k in left:
        if pushed[k] > UNREACHED:
            raise ControlError(f"`{names[k]}` cannot be left as it is: forces act on it")
    return left


def _check_reach(rest: RestDynamics, left: np.ndarray, rate: float) -> None:
    """Refuse motions that no input reaches and that do not come to rest by themselves."""
    kept = np.setdiff1d(np.arange(len(rest.M)), left)
    seen = _without(rest, kept, left)
    n, back = len(kept), np.linalg.inv(np.linalg.cholesky(seen.M))
    K, D = back @ seen.K @ back.T / rate**2, back @ seen.D @ back.T / rate
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-K, -D]])
    B = np.vstack([np.zeros((n, seen.reached.shape[1])), np.linalg.qr(back @ seen.reached)[0]])
    unreached = scipy.linalg.null_space(_krylov(A, B).T)
    if not unreached.shape[1]:
        return
    values, vectors = np.linalg.eig((unreached.T @ A @ unreached).T)
    for value, vector in zip(values, vectors.T, strict=True):
        if value.real >= -NEUTRAL:
            sizes = np.maximum(*(np.abs(back.T @ part) for part in np.split(unreached @ vector, 2)))
            names = [rest.machine.v_names[k] for k in kept[sizes > sizes.max() / 3]]
            raise NoPrototypeError(_unreached_words(rest, rate * complex(value), rate, names))


def _krylov(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of all that inputs reach: the columns of B, A B, A A B, ..."""
    size = UNREACHED * max(1.0, float(np.linalg.norm(A, 2)))
    basis = block = scipy.linalg.orth(B)
    while block.shape[1]:
        block = A @ block
        for _ in range(2):
            block = block - basis @ (basis.T @ block)
        U, sizes, _ = np.linalg.svd(block, full_matrices=False)
        block = U[:, sizes > size]
        basis = np.hstack([basis, block])
    return basis


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


def _unreached_words(rest: RestDynamics, value: complex, rate: float, names: Sequence[str]) -> str:
    motion = ", ".join(f"`{name}`" for name in names)
    words = (
        f"`{rest.machine.name}` has no prototype that brings it to rest: no input reaches the "
        f"motion of {motion}"
    )
    if abs(value) < NEUTRAL * rate:
        return (
            f"{words}, which nothing holds; an actuator or a spring there would, or `leave` it "
            "as it is"
        )
    imag = abs(value.imag)
    real = value.real if abs(value.real) > NEUTRAL * abs(value) else 0.0
    written = f"{real:.3g} +- {imag:.3g}i" if imag > 1e-6 * abs(value) else f"{real:.3g}"
    return f"{words} with the eigenvalue {written} 1/s; an actuator there, or friction, would help"


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
