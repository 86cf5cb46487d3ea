"""Runs that break off: which value was not finite first, and why, most likely."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from framefree.simulate.columns import Channel
from framefree.simulate.errors import SimulationError
from framefree.simulate.storage import Arrays

SENSELESS = 1e12
"""Velocities (m/s, rad/s) that hint at a division by next to nothing."""


class FirstProblem(NamedTuple):
    """The first row that has values that are not finite, and the first such value."""

    row: int
    trajectory: int | None
    quantity: str
    group: str = "state"


def first_problem(
    arrays: Arrays, channels: Sequence[Channel], batch: int | None
) -> FirstProblem | None:
    """Return where recorded rows stop being finite, or None.

    Of several values in a row, the reference comes before the inputs, and these and what the law
    says before the velocity, which each may have spoiled; signals may be NaN by intent only in rows
    that are added later.
    """
    axis = 0 if batch is None else 1
    bad: list[tuple[int, int, int | None, str, str]] = []
    order = {"u": 1, "x": 2, "v": 3}
    for channel in channels:
        values = arrays[channel.key]
        flat = values.reshape(*values.shape[: axis + 1], channel.size)
        wrong = ~np.isfinite(flat)
        if not wrong.any():
            continue
        if batch is None:
            row = int(np.argmax(wrong.any(axis=1)))
            entry, which = int(np.argmax(wrong[row])), None
        else:
            row = int(np.argmax(wrong.any(axis=(0, 2))))
            which = int(np.argmax(wrong[:, row].any(axis=1)))
            entry = int(np.argmax(wrong[which, row]))
        rank = 0 if channel.group == "reference" else order.get(channel.name, 4)
        bad.append((row, rank, which, channel.columns[entry], channel.group))
    if not bad:
        return None
    row, _, which, name, group = min(bad, key=lambda item: item[:2])
    return FirstProblem(row, which, name, group)


def first_problems(
    arrays: Arrays, channels: Sequence[Channel], left_out: np.ndarray
) -> list[FirstProblem]:
    """Return where each of many trajectories stops being finite, the earliest first.

    `left_out` (batch,) marks those that have ended before.
    """
    wrong = np.zeros_like(left_out)
    for channel in channels:
        values = arrays[channel.key]
        wrong |= ~np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
    found: list[FirstProblem] = []
    for trajectory in np.flatnonzero(wrong & ~left_out).tolist():
        one = {key: array[trajectory] for key, array in arrays.items()}
        problem = first_problem(one, channels, None)
        if problem is not None:
            found.append(problem._replace(trajectory=trajectory))
    return sorted(found, key=lambda problem: problem.row)


def likely_cause(
    problem: FirstProblem, good: dict[str, np.ndarray] | None, bad: dict[str, np.ndarray], dt: float
) -> str:
    """Say why values stopped being finite, from the last good row and the first bad one.

    Rows hold "x", "v" and "u".
    """
    if problem.group == "reference":
        return "the reference is not defined at this time"
    state_is_finite = np.isfinite(bad["x"]).all() and np.isfinite(bad["v"]).all()
    rows = [bad["v"]] if good is None else [good["v"], bad["v"]]
    fastest = max(np.abs(v[np.isfinite(v)]).max(initial=0.0) for v in rows)
    if fastest * dt > 1.0:
        singular = (
            "; or the law was singular a moment before, where the machine cannot move as asked (of "
            "port laws the signal `task_mobility` is next to zero there)"
        )
        return (
            f"the step of {dt:g} s is too long for velocities of {fastest:.3g}: the loop, or the "
            'integrator, is unstable; take a shorter step, "adaptive", or lower gains'
        ) + (singular if fastest > SENSELESS else "")
    if state_is_finite and not np.isfinite(bad["u"]).all():
        return "the law gave an input that is not finite at a finite state: it is singular there"
    if state_is_finite:
        return "this signal is not defined at this state, which is itself finite"
    if good is None:
        return "the equations of motion are not finite at the first state"
    return (
        "the acceleration is not finite at the last good state: the mass matrix is singular there, "
        "or a closed chain passes a position in which its independent velocities do not determine "
        "the others"
    )


def not_finite(
    problem: FirstProblem,
    time: float,
    good: dict[str, np.ndarray] | None,
    bad: dict[str, np.ndarray],
    dt: float,
    contact: str,
) -> SimulationError:
    """Return the error of a run whose values stop being finite.

    `contact` says which contact may be the cause (`blamed_contact`); empty if none.
    """
    cause = likely_cause(problem, good, bad, dt) + contact
    return SimulationError(
        f"at {time:.9g} s `{problem.quantity}`{_of(problem)} is not finite; most likely {cause}",
        time=time,
        quantity=problem.quantity,
        state=None if good is None else (good["x"], good["v"]),
        cause=cause,
    )


def not_converged(
    problem: FirstProblem,
    time: float,
    good: dict[str, np.ndarray],
    dt: float,
    shorter: float,
    contact: str,
) -> SimulationError:
    """Return the error of an implicit step for which equations were not solved."""
    cause = (
        "forces change too fast within the step: a law with high gains that is evaluated all the "
        "time, or an impact"
    ) + contact
    return SimulationError(
        f"the step of {dt:g} s to {time:.9g} s{_of(problem)} has not converged; a step of "
        f"{shorter:g} s would do. Most likely {cause}",
        time=time,
        quantity="step",
        state=(good["x"], good["v"]),
        cause=cause,
    )


def too_short(time: float, x: np.ndarray, v: np.ndarray, contact: str) -> SimulationError:
    """Return the error of an adaptive integrator that finds no step short enough."""
    cause = (
        "the acceleration jumps or grows without bound here: friction or limits that switch, a "
        "singular position, or an unstable loop"
    ) + contact
    return SimulationError(
        f"at {time:.9g} s no step is short enough for the tolerance; most likely {cause}",
        time=time,
        quantity="step",
        state=(x, v),
        cause=cause,
    )


def _of(problem: FirstProblem) -> str:
    return "" if problem.trajectory is None else f" of trajectory {problem.trajectory}"
