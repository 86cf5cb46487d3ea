"""Findings on the mass matrix: its eigenvalues by search and by proof, condition and margin.

With d1 I <= M <= d2 I a constant estimate Mhat = 2 d1 d2 / (d1 + d2) I has the least worst error,
|M^-1 Mhat - I| <= (d2 - d1) / (d2 + d1), the margin.
"""

from collections.abc import Iterator

import numpy as np

from framefree.certify.confirm import confirm
from framefree.certify.mass_search import REACH, MassBounds, closed_search, search
from framefree.certify.proof import proved_bounds
from framefree.certify.report import Finding, Verdict
from framefree.certify.slides import unbounded_slides
from framefree.certify.subject import Subject
from framefree.machine.units import SINGULAR

ILL = 1e8
QUICKLY, CONFIRMED = 20_000, 1_000_000
"""Random configurations at which the bounds are tried."""
MANY = 16
"""Number of velocities up to which the test of definiteness is compiled."""


ROUNDING = 1e-13
"""Error of a measured eigenvalue of M, relative to the largest."""


def mass_bounds(subject: Subject, thorough: bool = False) -> Iterator[Finding]:
    """Give the eigenvalues of M by search and by proof, and the worst condition number."""
    bounds = closed_search(subject) if subject.closed else search(subject)
    if bounds is None:
        for name, meaning in _MEANINGS.items():
            yield Finding.skipped(name, meaning, "no configuration was found that closes all loops")
        return
    yield from _findings(subject, bounds, thorough)


def _findings(subject: Subject, bounds: MassBounds, thorough: bool) -> Iterator[Finding]:
    how = f"found, not proved: {subject.samples} configurations, {bounds.searches} local searches"
    if subject.closed:
        how = "found, not proved: random configurations, along what loops and couplings allow"
    if subject.length is not None:
        how += f"; linear velocities in units of {subject.length:g} m/s"
    yield _smallest(subject, bounds, how)
    yield _largest(subject, bounds, how)
    if not subject.closed:
        yield _class(subject)
        yield from _proved(subject, bounds, thorough)
        yield _confirmed(subject, bounds, CONFIRMED if thorough else QUICKLY)
    yield _margin(bounds)
    name = "mass_condition"
    yield Finding(
        name,
        Verdict.PASS if bounds.condition <= ILL else Verdict.WARN,
        _MEANINGS[name],
        bounds.condition,
        ILL,
        remedy="accelerations lose this many digits; make the light bodies at the tips heavier, "
        "or fix their joints",
    )


def _class(subject: Subject) -> Finding:
    """Tell whether M is bounded by the kind of machine, whatever its numbers are."""
    name, slides = "unbounded_slides", unbounded_slides(subject.open)
    words = (
        f"`{slide.coordinate}` across the axis of `{slide.turning}`, which carries it"
        for slide in slides
    )
    return Finding(
        name,
        Verdict.WARN if slides else Verdict.PASS,
        _MEANINGS[name],
        len(slides),
        0,
        note="; ".join(words),
        remedy="give them limits: proofs that need a bound on M hold only within them",
    )


def _proved(subject: Subject, bounds: MassBounds, thorough: bool) -> Iterator[Finding]:
    """Give the bounds that hold at every configuration; what was measured must lie within."""
    proved = proved_bounds(subject.open, subject.scale, thorough=thorough)
    sides = (
        ("min", proved.low, proved.reason_low, proved.how_low, bounds.smallest, 1),
        ("max", proved.high, proved.reason_high, proved.how_high, bounds.largest, -1),
    )
    for which, value, reason, how, extreme, sign in sides:
        name = f"mass_eigenvalue_{which}_proved"
        if value is None:
            yield Finding.skipped(name, _MEANINGS[name], f"no proof: {reason}")
            continue
        rounding = ROUNDING * bounds.largest.value
        within = sign * value <= sign * extreme.value * (1 + sign * 1e-9) + rounding
        yield Finding(
            name,
            Verdict.PASS if within else Verdict.FAIL,
            _MEANINGS[name],
            value,
            note=how if within else f"but an eigenvalue of {extreme.value:.6g} was measured",
            remedy="this is an error of framefree: please report it with the file",
        )


def _confirmed(subject: Subject, bounds: MassBounds, states: int) -> Finding:
    name = "mass_bounds_outside"
    low, high = bounds.smallest.value, bounds.largest.value
    if subject.open.nv > MANY or not low > 0:
        why = (
            "M is singular" if not low > 0 else f"more than {MANY} velocities take long to compile"
        )
        return Finding.skipped(name, _MEANINGS[name], why)
    rounding = ROUNDING * high
    outside = confirm(
        subject.bare,
        low * (1 - 1e-9) - rounding,
        high * (1 + 1e-9),
        states=states,
        seed=subject.seed + 6,
        scale=subject.scale,
        units=subject.units,
    )
    return Finding(
        name,
        Verdict.PASS if not outside.below + outside.above else Verdict.WARN,
        _MEANINGS[name],
        outside.below + outside.above,
        0,
        note=f"{states} random configurations",
        remedy="the search missed these: give it more `samples`",
        x=None if outside.x is None else tuple(outside.x.tolist()),
    )


def _margin(bounds: MassBounds) -> Finding:
    low, high = bounds.smallest.value, bounds.largest.value
    name = "mass_margin"
    if not bounds.bounded:
        reason = "M is singular" if bounds.definite <= SINGULAR else "M is unbounded"
        return Finding.skipped(name, _MEANINGS[name], reason)
    return Finding(
        name,
        Verdict.PASS,
        _MEANINGS[name],
        (high - low) / (high + low),
        note=f"attained by the constant matrix {2 * low * high / (low + high):.4g} I",
    )


def _smallest(subject: Subject, bounds: MassBounds, how: str) -> Finding:
    name, extreme = "mass_eigenvalue_min", bounds.smallest
    worst = subject.open.v_names[int(np.abs(extreme.u).argmax())]
    note, verdict = f"{how}; mostly along velocity `{worst}`", Verdict.PASS
    remedy = (
        f"give what `{worst}` moves an inertia, or its joint an armature; if the eigenvalue "
        "is negative, correct impossible inertias"
    )
    if bounds.vanishing:
        names = _listed(bounds.vanishing)
        note, verdict = f"tends to zero along {names}; {_within(subject)}", Verdict.WARN
        remedy = f"give {names} limits: proofs that need a bound on M hold only within them"
    if not bounds.definite > SINGULAR:
        note, verdict = f"{note}; M is singular up to rounding", Verdict.FAIL
    return Finding(
        name,
        verdict,
        _MEANINGS[name],
        extreme.value,
        0.0,
        note=note,
        remedy=remedy,
        at_least=True,
        x=tuple(extreme.x.tolist()),
    )


def _largest(subject: Subject, bounds: MassBounds, how: str) -> Finding:
    name, names = "mass_eigenvalue_max", _listed(bounds.growing)
    verdict = Verdict.WARN if bounds.growing else Verdict.PASS
    return Finding(
        name,
        verdict if np.isfinite(bounds.largest.value) else Verdict.FAIL,
        _MEANINGS[name],
        bounds.largest.value,
        note=f"unbounded along {names}; {_within(subject)}" if bounds.growing else how,
        remedy=f"give {names} limits: proofs that need a bound on M hold only within them",
        x=tuple(bounds.largest.x.tolist()),
    )


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _within(subject: Subject) -> str:
    return f"this is within {REACH * subject.units.length:.3g} m of the samples"


_MEANINGS = {
    "unbounded_slides": "joints that slide without limits across an axis that carries them turning "
    "about it: with none, M is bounded at all configurations by the kind of the machine",
    "mass_eigenvalue_min_proved": "no eigenvalue of M is smaller than this, at any configuration",
    "mass_eigenvalue_max_proved": "no eigenvalue of M is larger than this, at any configuration",
    "mass_bounds_outside": "random configurations at which M leaves the bounds that were found",
    "mass_margin": "(d2 - d1)/(d2 + d1): worst relative error of the best constant estimate of M, "
    "which computed-torque proofs need below 1",
    "mass_eigenvalue_min": "smallest eigenvalue of M (kg, kg m^2): above zero, every motion has "
    "energy and accelerations are unique",
    "mass_eigenvalue_max": "largest eigenvalue of M (kg, kg m^2) over all configurations",
    "mass_condition": "largest condition number of M: digits that accelerations lose",
}
