"""Constraints at states in numbers: solve, report, project, assemble. For one state at a time."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from framefree.machine import MachineError
from framefree.machine.tree import unknown
from framefree.motion.constrained.closing import Closing, numbers
from framefree.motion.constrained.project import Projection
from framefree.motion.constrained.report import (
    UNDETERMINED,
    Report,
    report,
    undetermined_multipliers,
    without_noise,
)
from framefree.motion.constrained.rows import Closed
from framefree.motion.constrained.solve import ConstrainedSolution, solve
from framefree.motion.equations import Equations


class ConstrainedStates(Equations):
    """What `Constrained` does with one state in numbers.

    Everywhere t is the time (s) and `parameters` holds values of the machine's tunable numbers, by
    default their defaults.
    """

    base: Equations
    labels: tuple[str, ...]
    closed: list[Closed]
    tolerances: np.ndarray
    rank_tolerance: float

    def integrate(self, x: Any, dv: Any) -> Any:
        """Move x by dv on the groups of the coordinates."""
        raise NotImplementedError

    def solve(
        self,
        x: Any,
        v: Any,
        force: Any,
        t: float = 0.0,
        *,
        method: str = "udwadia-kalaba",
        parameters: Any = None,
    ) -> ConstrainedSolution:
        """Return the acceleration at one state with its rank and residual, ranks found by SVD.

        `method` is "udwadia-kalaba", "gauss" or "kkt".
        """
        (M,) = numbers(self, "mass", parameters, x=x)
        (bias,) = numbers(self, "bias", parameters, x=x, v=v, t=t)
        A, b, _, _, _, size = numbers(self, "constraint", parameters, x=x, v=v, t=t)
        return solve(
            M, np.asarray(force) - bias, without_noise(A, size, self.rank_tolerance), b, method
        )

    def report(self, x: Any, v: Any, t: float = 0.0, *, parameters: Any = None) -> Report:
        """Return what is redundant, contradicting or not unique at one state."""
        (M,) = numbers(self, "mass", parameters, x=x)
        A, b, phi, eta, _, size = numbers(self, "constraint", parameters, x=x, v=v, t=t)
        A = without_noise(A, size, self.rank_tolerance)
        joints = np.ones((len(self.machine.joints), 6), dtype=bool)
        loops = np.ones((len(self.closed), 6), dtype=bool)
        lengths = np.linalg.norm(A, axis=1)
        for idle in undetermined_multipliers(A).T / np.where(lengths > 0, lengths, 1.0):
            inputs = {"x": x, "multipliers": idle, "t": t}
            for mask, wrench in zip(
                (joints, loops),
                numbers(self, "wrench_of_multipliers", parameters, **inputs),
                strict=True,
            ):
                mask &= np.abs(wrench) <= UNDETERMINED
        return report(self.labels, M, A, b, (phi, eta), (joints, loops))

    def project(
        self,
        x: Any,
        v: Any = None,
        t: float = 0.0,
        *,
        weight: str = "mass",
        hold: Sequence[str] = (),
        limits: bool = True,
        tries: int = 20,
        parameters: Any = None,
    ) -> Projection:
        """Return the state nearest to (x, v) that meets the constraints.

        Parameters
        ----------
        x, v : (nx,), (nv,)
            One state; without v the machine is at rest.
        t : float
        weight : "mass" or "unit"
            Metric in which steps towards it are shortest. Where steps in the metric of masses do
            not arrive, plain ones are taken.
        hold : sequence of str
            Joints, or single velocities as in `machine.v_names`, whose coordinates stay.
        limits : bool
            Whether the coordinates that move must end within the limits of their joints. Where the
            nearest state is beyond them, further starts are tried.
        tries : int
            How many of them; with 0 coordinates that would leave their limits are held there, and
            nothing else is tried, so that x stays on its branch.
        parameters

        Raises
        ------
        ClosureError
            If the constraints cannot be met from here, with the rows that are not; or only beyond
            limits of joints, with these.
        """
        if weight not in ("mass", "unit"):
            raise MachineError(f'`weight` must be "mass" or "unit", got {weight!r}')
        x, closing = np.asarray(x, float), Closing(self, t, weight, self._free(hold), parameters)
        nearest = closing.from_start(x)
        if limits and self._limited and closing.limits.beyond(nearest[0]):
            nearest = (
                closing.within_limits(x, nearest[0], tries) if tries else closing.kept_within(x)
            )
        x, position_error, steps = nearest
        v = np.zeros(self.sizes["v"]) if v is None else np.asarray(v, float)
        v, velocity_error = closing.velocity(x, v)
        return Projection(x, v, position_error, velocity_error, steps)

    def assemble(
        self,
        x: Any = None,
        t: float = 0.0,
        *,
        hold: Sequence[str] = (),
        tries: int = 20,
        limits: bool = True,
        parameters: Any = None,
    ) -> np.ndarray:
        """Return a configuration that meets the constraints, near x (by default the neutral one).

        If none can be reached from x, or none within the limits of the joints (unless `limits` is
        False), further starts around it are tried; held coordinates (see `project`) keep their
        values in all of them.
        """
        if x is None and self.sizes["x"] != self.machine.nx:
            raise MachineError(f"`x` is needed to assemble the {self.base.name} formulation")
        start = self.machine.neutral() if x is None else np.asarray(x, float)
        closing = Closing(self, t, "unit", self._free(hold), parameters)
        return closing.anywhere(start, tries, limits=limits and self._limited)[0]

    @property
    def _limited(self) -> bool:
        """Whether x holds the coordinates of the joints, which have limits."""
        return self.sizes["x"] == self.machine.nx

    def _free(self, hold: Sequence[str]) -> list[int]:
        held = set()
        # Other formulations have velocities of their own; joints are known to the tree alone.
        names = self.v_names
        joints = self.machine.v_slice if names == self.machine.v_names else {}
        for name in hold:
            if name in joints:
                held |= set(range(joints[name].start, joints[name].stop))
            elif name in names:
                held.add(names.index(name))
            else:
                raise MachineError(unknown("coordinate to hold:", name, (*joints, *names)))
        return [k for k in range(self.sizes["v"]) if k not in held]
