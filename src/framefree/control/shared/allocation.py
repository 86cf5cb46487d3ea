"""From wanted forces to inputs, and what of a force the plant will not get.

    B(x) u + bias(x, v) = force

With more inputs than needed u is the smallest, in a weight of its own. With fewer, the remainder is
the smallest in r . G^-1 r; with G = M, the default, these are the inputs whose accelerations come
nearest to the wanted ones (Gauss). `InputMap` takes B apart for that.

Every law records `unrealised` (n), in N and Nm: the force that it asks for less the force that its
machine's actuators give at its inputs, both as generalised forces on the velocities that the law
works in (all of the machine's, or the independent ones of a closed machine). It counts everything
that is missing: directions without actuators, limits that the allocation keeps, and what drives and
motors cut off where inputs exceed their limits (limits of inputs, of motors' forces, of the effort
of joints). A law that states V adds the power of -unrealised on its error to `V_rate`, which so is
dV/dt of the model within its limits, saturated or not.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.qp import solve_qp
from framefree.control.shared.direction import along
from framefree.control.shared.gains import vector_gain
from framefree.control.shared.input_map import InputMap, unreached
from framefree.control.shared.limits import InputLimits, clipped, cut
from framefree.control.shared.model import ActuatedState, Model, at_configurations
from framefree.machine.part import set_field
from framefree.motion.actuation import input_bias, input_matrix
from framefree.motion.constrained.algebra import MassFactor
from framefree.motion.state import State

Matrix = Any

SLACK = 1e-8
"""Weight of small inputs beside a small remainder where limits are in the way."""
ITERATIONS = 12
"""Iterations of the quadratic program of limits."""

UNITS = {"unrealised": "N, Nm"}


class Allocated(NamedTuple):
    """Inputs, and what they do not give.

    Attributes
    ----------
    u : (nu)
    unrealised : (n)
        Force asked for less force given, N and Nm; structurally zero where it always is.
    metric : (n x n) or None
        G of the allocation.
    """

    u: Matrix
    unrealised: Matrix
    metric: Matrix = None

    @property
    def size(self) -> Matrix:
        """Root of r . G^-1 r; with G = M, of twice Gauss's constraint, in kg^1/2 m/s^2."""
        r = self.unrealised
        return ca.norm_2(MassFactor(self.metric).into(r)) if r.nnz() else ca.SX(0)

    @property
    def signals(self) -> dict[str, Matrix]:
        """For a law's record."""
        return {"unrealised": self.unrealised}


@dataclass(frozen=True, eq=False)
class Allocation:
    """How the actuators of a machine give wanted forces.

    Parameters
    ----------
    model : Model
        Of the machine: ``Model(machine)``.
    weight : (nu,), optional
        Inputs are smallest in the sum of weight u^2, where there is a choice; default all 1.
    limits : bool or "direction"
        Whether inputs stay within limits. With True within all limits of the machine, see
        `InputLimits`; the remainder is then the smallest that they allow, by a quadratic program.
        With "direction" within those of the inputs; forces of inputs that act together keep their
        direction, see `framefree.control.shared.direction`. Otherwise the plant cuts what is too
        large.
    iterations : int
        Of the program, see `solve_qp`.
    """

    model: Model
    weight: Any = None
    limits: bool | str = False
    iterations: int = ITERATIONS

    def __post_init__(self) -> None:
        nu = self.model.machine.nu
        weight = np.ones(nu) if self.weight is None else self.weight
        set_field(self, "weight", vector_gain(weight, nu, "weight", alike=False))
        if self.limits not in (False, True, "direction"):
            raise ControlError(f'`limits` must be a bool or "direction", got {self.limits!r}')

    def __call__(self, state: ActuatedState, force: Matrix, metric: Matrix = None) -> Allocated:
        """Return inputs for a force (n) at a state, and what they leave unrealised.

        Parameters
        ----------
        state : ActuatedState
            Of the model, or of its tree of joints in other velocities.
        force : (n)
        metric : (n x n), optional
            G, symmetric and positive definite; default the mass matrix.
        """
        inputs = self.map(state.B, state.mass if metric is None else metric)
        wanted = force - state.input_bias
        u = self._inputs(state.tree, inputs, wanted)
        missing = wanted - inputs.B @ u if self.limits else inputs.remainder(wanted, u)
        if self.limits is not True:
            kept = clipped(self.model.machine, u)
            missing += inputs.B @ ca.sparsify(u - kept) - state.reduced(cut(state.tree, kept))
        return Allocated(u, ca.sparsify(missing), inputs.G)

    def nearest(self, state: State, B: Matrix, wanted: Matrix, metric: Matrix) -> Matrix:
        """Return inputs (nu) with B u nearest to what is wanted, whatever that is.

        Parameters
        ----------
        state : State
            At which the limits are.
        B : (n x nu)
        wanted : (n)
        metric : (n x n)
            G, symmetric and positive definite: the remainder is the smallest in r . G^-1 r.
        """
        return self._inputs(state, self.map(B, metric), wanted)

    def given(self, state: State, u: Matrix) -> Matrix:
        """Return the joint forces (nv) that the plant's actuators give at inputs of this."""
        if self.limits is not True:
            u = clipped(self.model.machine, u)
        force = input_matrix(state) @ u + input_bias(state)
        return force if self.limits is True else force + cut(state, u)

    def map(self, B: Matrix, metric: Matrix) -> InputMap:
        """Return the way from forces to inputs with this B, without limits."""
        symbols = ca.symvar(self.model.machine.parameters.symbols)
        return InputMap(B, self.weight, metric, symbols)

    def _inputs(self, state: State, inputs: InputMap, wanted: Matrix) -> Matrix:
        u, machine = inputs.least(wanted), self.model.machine
        if not self.limits or not machine.nu:
            return u
        if self.limits == "direction":
            return along(inputs.B, u, *machine.input_limits)
        return self._limited(InputLimits.at(state), inputs, u)

    def _limited(self, rows: InputLimits, inputs: InputMap, u: Matrix) -> Matrix:
        """Return the inputs within their limits that cost least more than u.

        The cost of du is that of the remainder, |B du|, and a little for du itself where inputs
        may do the same.
        """
        if not rows.C.shape[0]:
            return u
        Y = ca.densify(inputs.factor.into(inputs.B))
        H = Y.T @ Y
        if not inputs.distinct:
            size = ca.sumsqr(Y) / self.weight.sum()
            H = H + SLACK * size * ca.diag(ca.DM(self.weight))
        bounds = {"C": rows.C, "lower": rows.lower, "upper": rows.upper}
        best = solve_qp(H, -H @ u, **bounds, iterations=self.iterations)
        return ca.if_else(rows.within(u), u, best.z)

    def require_full(self, law: str) -> None:
        """Raise `ControlError` naming the joints without enough actuators.

        B is looked at in numbers, at a few configurations.
        """
        missing = self.unactuated
        if missing:
            raise ControlError(
                f"{law} needs an actuator for every velocity of `{self.model.machine.name}`; none "
                f"for {', '.join(f'`{name}`' for name in missing)}; "
                "`machine.attach(*framefree.machine.motors(machine.joints))` puts one on each joint"
            )

    @cached_property
    def unactuated(self) -> tuple[str, ...]:
        """Names of the velocities that forces cannot be given to as wanted."""
        model, machine = self.model, self.model.machine
        x = ca.SX.sym("x", machine.nx)
        B = model.at(x, ca.SX(machine.nv, 1)).B
        samples = at_configurations(machine, x, B, model.samples(3))
        # Positions in which loops are singular tell nothing.
        missing = [unreached(sample) for sample in samples if np.isfinite(sample).all()]
        fewest = min(missing, key=np.count_nonzero, default=np.zeros(model.n, bool))
        return tuple(name for name, lacks in zip(model.v_names, fewest, strict=True) if lacks)
