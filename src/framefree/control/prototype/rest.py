"""Small motions of a machine about rest, with its inputs: what a matched prototype must agree with.

About rest at x_R under inputs u, deviations eps of x (along the velocities) obey

    M eps'' + D eps' + K eps = B du

where K holds what the change of B with x does to the inputs that hold the machine. Of these, rows
that no input reaches, B_perp^T (M, D, K), cannot be changed by any law.
"""

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.machine import Machine
from framefree.machine.units import Units
from framefree.motion import actuation, equations

RESTING = 1e-6
"""Share of the acceleration in free fall up to which a machine counts as held at rest."""
REACHED = 1e-9
"""Share of the largest singular value of B below which a direction has no input."""


@dataclass(frozen=True, eq=False)
class RestDynamics:
    """Linear dynamics of a machine about rest.

    Attributes
    ----------
    machine : Machine
    x : (nx,)
        Where it rests.
    u : (nu,)
        Inputs that hold it there.
    M, D, K : (nv, nv)
        Inertia, damping and stiffness; K need not be symmetric.
    B : (nv, nu)
    """

    machine: Machine
    x: np.ndarray
    u: np.ndarray
    M: np.ndarray
    D: np.ndarray
    K: np.ndarray
    B: np.ndarray

    @property
    def reached(self) -> np.ndarray:
        """Orthonormal basis (nv, p) of the forces that inputs give."""
        return self._split[0]

    @property
    def across(self) -> np.ndarray:
        """Orthonormal rows B_perp^T (nv - p, nv), zero on every force that inputs give."""
        return self._split[1].T

    @property
    def _split(self) -> tuple[np.ndarray, np.ndarray]:
        U, sizes, _ = np.linalg.svd(self.B)
        rank = int((sizes > REACHED * sizes.max(initial=0.0)).sum())
        return U[:, :rank], U[:, rank:]


def rest_dynamics(machine: Machine, x_R: Any = None, u: Any = None) -> RestDynamics:
    """Return the small motions of a machine about rest at x_R, by default neutral.

    Parameters
    ----------
    machine : Machine
        Without loops or couplings.
    x_R : (nx,), optional
    u : (nu,), optional
        Inputs that hold it; by default the smallest that do.

    Raises
    ------
    ControlError
        If no inputs hold the machine there, or only inputs beyond their limits.
    """
    if machine.closed:
        raise ControlError(
            f"matching conditions are those of free velocities; `{machine.name}` has loops"
        )
    nv, nu = machine.nv, machine.nu
    x_R = machine.numeric.neutral() if x_R is None else np.asarray(x_R, float)
    eps, v, command = ca.SX.sym("eps", nv), ca.SX.sym("v", nv), ca.SX.sym("u", nu)
    x = machine.integrate(ca.SX(ca.DM(x_R)), eps)
    state = equations(machine.tree).at(x, v)
    B = actuation.input_matrix(state)
    needed = state.inverse(ca.SX(nv, 1)) - actuation.input_bias(state)
    left = needed - B @ command
    outputs = [needed, B, state.mass, ca.jacobian(left, v), ca.jacobian(left, eps)]
    parameters = [machine.parameters.symbols] if len(machine.parameters) else []
    values = [machine.parameters.defaults] if parameters else []
    dense = [ca.densify(ca.SX(output)) for output in outputs]
    function = ca.Function("rest", [eps, v, command, *parameters], dense)
    still = np.zeros(nv)
    f, B, M, *_ = (np.array(value) for value in function(still, still, np.zeros(nu), *values))
    held = np.linalg.lstsq(B, f.ravel(), rcond=None)[0] if u is None else np.asarray(u, float)
    *_, D, K = (np.array(value) for value in function(still, still, held, *values))
    check_rest(machine, x_R, np.linalg.solve(M, B @ held - f.ravel()), held)
    return RestDynamics(machine, x_R, held, M, D, K, B)


def check_rest(machine: Machine, x_R: np.ndarray, a: np.ndarray, u: np.ndarray) -> None:
    """Raise an error unless inputs u within their limits leave no acceleration a at rest at x_R."""
    machine = machine.numeric
    units = Units.of(machine)
    # What gravity alone would cause is the measure; without gravity, the machine's own unit.
    share = np.abs(a) / (units.velocity / units.time**2)
    worst = int(share.argmax())
    where = f"at rest at x_R = {np.array2string(x_R, precision=4)}"
    if not share[worst] <= RESTING:
        raise ControlError(
            f"matching is about rest, but under the law `{machine.v_names[worst]}` accelerates by "
            f"{a[worst]:.4g} {where}"
        )
    lower, upper = machine.input_limits
    beyond = (u < lower - RESTING * np.abs(u)) | (u > upper + RESTING * np.abs(u))
    if beyond.any():
        k = int(beyond.argmax())
        raise ControlError(
            f"matching is about rest, but {where} input `{machine.u_names[k]}` would be "
            f"{u[k]:.4g}, beyond its limits"
        )
