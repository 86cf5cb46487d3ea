"""Closing constraints from one start or from several, within the limits of joints."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import Any

import numpy as np

from framefree.motion.constrained.limits import CoordinateLimits
from framefree.motion.constrained.project import (
    ClosureError,
    position,
    velocity,
    weight_root,
)
from framefree.motion.constrained.report import without_noise
from framefree.motion.constrained.scales import velocity_units
from framefree.motion.equations import Equations

ROUNDED = 1e-5
"""Gaps, m or rad, that are probably rounding errors of a file."""

Reached = tuple[np.ndarray, float, int]
"""A configuration on the constraints, its largest error, and the number of steps to it."""


def numbers(
    equations: Equations, name: str, parameters: Any = None, **inputs: Any
) -> list[np.ndarray]:
    """Return the outputs of a quantity at one state, by the graph interpreter, not compiled.

    Inputs that the quantity does not have are left out.
    """
    return equations.numbers(name, parameters, **inputs)


class Closing:
    """Brings configurations onto the constraints of one time, by velocities that are free.

    Parameters
    ----------
    equations : ConstrainedStates
    t : float
    weight : "mass" or "unit"
        Metric in which steps are shortest.
    free : sequence of int
        Velocities that may move.
    parameters
        Values of the machine's tunable numbers.
    """

    def __init__(
        self, equations: Any, t: float, weight: str, free: Sequence[int], parameters: Any
    ) -> None:
        self.equations, self.t, self.weight = equations, t, weight
        self.free, self.parameters = list(free), parameters

    @cached_property
    def limits(self) -> CoordinateLimits:
        """Limits of the coordinates that may move."""
        return CoordinateLimits(self.equations.machine, self.free)

    # ------------------------------------------------------------------ one start

    def from_start(self, x: np.ndarray, free: Sequence[int] | None = None) -> Reached:
        """Return the closed configuration that is reached from x by the velocities in `free`."""
        free = self.free if free is None else list(free)
        # Masses that differ by orders make steps so uneven that they may end before the loop is
        # closed; plain steps from the same start then do.
        weights = ("mass", "unit") if self.weight == "mass" else ("unit",)
        for weight in weights:
            result = self._by_steps(x, free, weight)
            phi = self._errors(result[0])[0]
            if (np.abs(phi) <= self.equations.tolerances).all():
                return result
        raise self._not_closed(phi)

    def _by_steps(self, x: np.ndarray, free: list[int], weight: str) -> Reached:
        return position(
            x,
            self._errors,
            lambda at: self._root(at, free, weight),
            self.equations.integrate,
            free,
            rank=self.equations.rank_tolerance,
        )

    def velocity(self, x: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the nearest velocity that the constraints allow at x, and its largest error."""

        def errors(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            A, _, _, eta, _, size = self._constraint(x, at)
            return eta, without_noise(A, size, rank)

        rank = self.equations.rank_tolerance
        return velocity(v, errors, self._root(x, range(len(v)), self.weight), rank=rank)

    def _constraint(self, x: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
        return numbers(self.equations, "constraint", self.parameters, x=x, v=v, t=self.t)

    def _errors(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        _, _, phi, _, gradient, _ = self._constraint(x, np.zeros(self.equations.sizes["v"]))
        return phi, gradient

    def _root(self, x: np.ndarray, free: Sequence[int], weight: str) -> np.ndarray:
        if weight == "unit":
            return np.eye(len(free))
        (M,) = numbers(self.equations, "mass", self.parameters, x=x)
        return weight_root(M[np.ix_(free, free)])

    # ------------------------------------------------------------------ several starts

    def within_limits(self, x: np.ndarray, outside: np.ndarray, tries: int = 20) -> Reached:
        """Return the configuration within limits that is nearest to x, of those that are reached.

        `outside` is a closed configuration that is not within limits.
        """
        starts = self.limits.starts(x, np.random.default_rng(0), tries)
        reached: list[tuple[float, Reached]] = []
        for start in chain([self.limits.unwound(outside), outside], starts):
            try:
                result = self.kept_within(start)
            except ClosureError:
                continue
            way = self.equations.machine.difference(x, result[0])
            reached.append((float(np.linalg.norm(way)), result))
        if not reached:
            raise self._beyond(outside)
        return min(reached, key=lambda pair: pair[0])[1]

    def anywhere(self, x: np.ndarray, tries: int, *, limits: bool) -> Reached:
        """Return the first configuration that is reached, and is within limits, of several starts.

        They lie around x, ever farther away, and in the ranges of the joints.
        """
        problem, outside = None, None
        for start in islice(self._around(x, tries, limits=limits), 2 * tries if limits else tries):
            try:
                result = self.kept_within(start) if limits else self.from_start(start)
            except BeyondLimits as error:
                outside = outside or error
            except ClosureError as error:
                problem = problem or error
            else:
                return result
        raise outside or problem or ClosureError("there is no start to close from", {})

    def _around(self, x: np.ndarray, tries: int, *, limits: bool) -> Iterator[np.ndarray]:
        rng, moving = np.random.default_rng(0), np.zeros(self.equations.sizes["v"])
        moving[self.free] = 1.0
        if limits:
            moving *= velocity_units(self.equations.machine)
        inside = self.limits.starts(x, np.random.default_rng(1), tries) if limits else iter(())
        yield x
        for attempt in range(1, tries):
            yield self.equations.integrate(
                x, moving * rng.normal(size=len(moving)) * attempt / tries
            )
            yield from islice(inside, 1)

    def kept_within(self, x: np.ndarray) -> Reached:
        """Return what is reached from x, coordinates that would leave their limits held there."""
        free, names = list(self.free), self.equations.machine.v_names
        first = result = self.from_start(x, free)
        while beyond := self.limits.beyond(result[0]):
            free = [k for k in free if names[k] not in beyond]
            try:
                result = self.from_start(self.limits.clipped(result[0]), free)
            except ClosureError:
                raise self._beyond(first[0]) from None
        return result

    # ------------------------------------------------------------------ refusals

    def _not_closed(self, phi: np.ndarray) -> ClosureError:
        errors = {
            label: abs(float(value))
            for label, value, tolerance in zip(
                self.equations.labels, phi, self.equations.tolerances, strict=True
            )
            if not abs(value) <= tolerance
        }
        listed = ", ".join(f"`{name}` by {value:.3g}" for name, value in errors.items())
        hint = (
            "; if the numbers of a loop are rounded, give it a `tolerance`"
            if max(errors.values(), default=1.0) <= ROUNDED
            else ""
        )
        return ClosureError(f"these constraints cannot be met from here: {listed}{hint}", errors)

    def _beyond(self, x: np.ndarray) -> "BeyondLimits":
        errors = self.limits.beyond(x)
        listed = ", ".join(f"`{name}` by {value:.3g}" for name, value in errors.items())
        return BeyondLimits(
            f"the constraints are met only beyond the limits of joints: {listed}; start from "
            "another configuration, widen the limits, or leave them out of account with "
            "`limits=False`",
            errors,
        )


class BeyondLimits(ClosureError):
    """Constraints could be met only beyond the limits of joints; `errors` names these."""
