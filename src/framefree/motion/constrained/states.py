"""Constraints at states in numbers: solve, report, project, assemble. For one state at a time."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from framefree.machine import MachineError
from framefree.machine.tree import unknown
from framefree.motion.constrained.carrier import Carrier
from framefree.motion.constrained.project import (
    CLOSED,
    ClosureError,
    Projection,
    position,
    velocity,
    weight_root,
)
from framefree.motion.constrained.report import (
    UNDETERMINED,
    Report,
    report,
    undetermined_multipliers,
    without_noise,
)
from framefree.motion.constrained.rows import Closed
from framefree.motion.constrained.solve import Solution, solve
from framefree.motion.equations import Equations


def numbers(
    equations: Equations, name: str, parameters: Any = None, **inputs: Any
) -> list[np.ndarray]:
    """Return the outputs of a quantity at one state, by the graph interpreter, not compiled.

    Inputs that the quantity does not have are left out.
    """
    function, shapes = equations.functions.traced(name)
    if "parameters" in function.name_in():
        inputs["parameters"] = equations.machine.parameters.values(parameters)
    results = function(**{key: inputs[key] for key in function.name_in()})
    return [np.asarray(results[key].full()).reshape(shapes[key]) for key in function.name_out()]


class ConstrainedStates(Equations):
    """What `Constrained` does with one state in numbers.

    Everywhere t is the time (s) and `parameters` holds values of the machine's tunable numbers, by
    default their defaults.
    """

    base: Equations
    carrier: Carrier
    labels: tuple[str, ...]
    closed: list[Closed]

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
    ) -> Solution:
        """Return the acceleration at one state with its rank and residual, ranks found by SVD.

        `method` is "udwadia-kalaba", "gauss" or "kkt".
        """
        (M,) = numbers(self, "mass", parameters, x=x)
        (bias,) = numbers(self, "bias", parameters, x=x, v=v)
        A, b, _, _, _, size = numbers(self, "constraint", parameters, x=x, v=v, t=t)
        return solve(M, np.asarray(force) - bias, without_noise(A, size), b, method)

    def report(self, x: Any, v: Any, t: float = 0.0, *, parameters: Any = None) -> Report:
        """Return what is redundant, contradicting or not unique at one state."""
        (M,) = numbers(self, "mass", parameters, x=x)
        A, b, phi, eta, _, size = numbers(self, "constraint", parameters, x=x, v=v, t=t)
        A = without_noise(A, size)
        joints = np.ones((len(self.machine.joints), 6), dtype=bool)
        loops = np.ones((len(self.closed), 6), dtype=bool)
        for idle in undetermined_multipliers(A).T:
            given = {"x": x, "multipliers": idle, "t": t}
            for mask, wrench in zip(
                (joints, loops),
                numbers(self, "wrench_of_multipliers", parameters, **given),
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
        parameters: Any = None,
    ) -> Projection:
        """Return the state nearest to (x, v) that meets the constraints.

        Parameters
        ----------
        x, v : (nx,), (nv,)
            One state; without v the machine is at rest.
        t : float
        weight : "mass" or "unit"
            Metric in which it is nearest.
        hold : sequence of str
            Joints, or single velocities as in `machine.v_names`, whose coordinates stay.
        parameters

        Raises
        ------
        ClosureError
            If the constraints cannot be met from here, with the rows that are not.
        """
        if weight not in ("mass", "unit"):
            raise MachineError(f'`weight` must be "mass" or "unit", got {weight!r}')
        nv = self.carrier.nv
        x, v = np.asarray(x, float), np.zeros(nv) if v is None else np.asarray(v, float)

        def root(at: np.ndarray, free: Sequence[int]) -> np.ndarray:
            M = numbers(self, "mass", parameters, x=at)[0] if weight == "mass" else np.eye(nv)
            return weight_root(M[np.ix_(free, free)])

        def errors_of_x(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            found = numbers(self, "constraint", parameters, x=at, v=np.zeros(nv), t=t)
            return found[2], found[4]

        def errors_of_v(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            A, _, _, eta, _, size = numbers(self, "constraint", parameters, x=x, v=at, t=t)
            return eta, without_noise(A, size)

        free = self._free(hold)
        metric = partial(root, free=free)
        x, position_error, steps = position(x, errors_of_x, metric, self.integrate, free)
        if position_error > CLOSED:
            raise self._not_closed(errors_of_x(x)[0])
        v, velocity_error = velocity(v, errors_of_v, root(x, range(nv)))
        return Projection(x, v, position_error, velocity_error, steps)

    def assemble(
        self,
        x: Any = None,
        t: float = 0.0,
        *,
        hold: Sequence[str] = (),
        tries: int = 20,
        parameters: Any = None,
    ) -> np.ndarray:
        """Return a configuration that meets the constraints, near x (by default the neutral one).

        If none can be reached from x, further starts around it are tried; held coordinates (see
        `project`) keep their values in all of them.
        """
        if x is None and self.carrier.nx != self.machine.nx:
            raise MachineError(f"`x` is needed to assemble the {self.base.name} formulation")
        first = start = self.machine.neutral() if x is None else np.asarray(x, float)
        rng, moving = np.random.default_rng(0), np.zeros(self.carrier.nv)
        moving[self._free(hold)] = 1.0
        close = partial(self.project, t=t, weight="unit", hold=hold, parameters=parameters)
        for attempt in range(1, tries):
            try:
                return close(start).x
            except ClosureError:
                stray = moving * rng.normal(size=self.carrier.nv) * (attempt / tries)
                start = self.integrate(first, stray)
        return close(start).x

    def _free(self, hold: Sequence[str]) -> list[int]:
        held = set()
        # Other formulations have velocities of their own; joints are known to the tree alone.
        names = getattr(self.base, "v_names", self.machine.v_names)
        joints = self.machine.v_slice if names == self.machine.v_names else {}
        for name in hold:
            if name in joints:
                held |= set(range(joints[name].start, joints[name].stop))
            elif name in names:
                held.add(names.index(name))
            else:
                raise MachineError(unknown("coordinate to hold:", name, (*joints, *names)))
        return [k for k in range(self.carrier.nv) if k not in held]

    def _not_closed(self, phi: np.ndarray) -> ClosureError:
        errors = {
            label: abs(float(value))
            for label, value in zip(self.labels, phi, strict=True)
            if not abs(value) <= CLOSED
        }
        listed = ", ".join(f"`{name}` by {value:.3g}" for name, value in errors.items())
        return ClosureError(f"these constraints cannot be met from here: {listed}", errors)
