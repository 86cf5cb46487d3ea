"""The balance of forces at zero acceleration, its slopes, and the small motions about it.

With multipliers lam of all constraints (loops, couplings and the user's rows) a state (x, v) under
inputs u has no acceleration where

    f = bias(x, v) - B(x) u - input_bias(x, v) - A(x, v)^T lam = 0,      phi(x) = 0,
    eta(x, v) = 0,      b(x, v) = 0            (from A a = b at a = 0)

and keeps having none if f does not change along the motion: (df/dx) v = A^T d(lam)/dt. Slopes by x
are taken on the tangent space, x (+) eps.

Small motions (eps, dv) obey the constraints to first order: d(phi) = 0 and d(eta) = 0. Rows without
a position error, such as those of rolling, leave eps free; rows for accelerations only leave
dv free, too.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import casadi as ca
import numpy as np

from framefree.machine import Machine
from framefree.machine.units import Units
from framefree.motion.constrained import Constrained
from framefree.motion.constrained.report import without_noise
from framefree.motion.constrained.solve import ConstrainedSolution, gauss, null_space
from framefree.motion.equations import Equations
from framefree.motion.tree.derivatives import deviation
from framefree.solve.errors import SolveError
from framefree.solve.kinematics import constrained

Matrix = Any
Point = tuple[np.ndarray, ...]
"""x, v, u, lam and d(lam)/dt."""


@dataclass(frozen=True)
class SmallMotions:
    """Small motions about a state without acceleration.

    Attributes
    ----------
    A : (n, n)
        d/dt y = A y with (eps, dv) = basis y: deviations of x and v that the constraints allow.
        With r free velocities and no nonholonomic constraint n = 2 r.
    basis : (2 nv, n)
    rates : (2 nv, n)
        d/dt (eps, dv) = rates y. This is basis A y unless the basis itself changes in time, which
        it does not where the motion looks the same at all times.
    """

    A: np.ndarray
    basis: np.ndarray
    rates: np.ndarray


class Balance:
    """Forces, constraints and their slopes at states of a machine without tunable numbers.

    Parameters
    ----------
    system : Machine or Constrained
        A machine with its loops and couplings, or equations with further constraints.
    """

    def __init__(self, system: Machine | Constrained) -> None:
        self.equations = constrained(system) if isinstance(system, Machine) else system
        self.machine = machine = self.equations.machine
        self.units = Units.of(machine.tree)
        self.tree: Equations = self.equations.base
        self.rows = len(self.equations.labels)
        nv, nu = machine.nv, machine.nu
        self.sizes = {"x": machine.nx, "v": nv, "u": nu, "lam": self.rows, "rate": self.rows}

    def split(self, z: np.ndarray) -> Point:
        """Return x, v, u, lam and d(lam)/dt of a column of all of them."""
        return tuple(np.split(z, np.cumsum(list(self.sizes.values()))[:-1]))

    # ------------------------------------------------------------------ expressions

    @cached_property
    def _symbols(self) -> dict[str, Matrix]:
        return {name: ca.SX.sym(name, size) for name, size in self.sizes.items()}

    @cached_property
    def _constraint(self) -> dict[str, Matrix]:
        s = self._symbols
        outputs = self.equations.quantity("constraint").trace(x=s["x"], v=s["v"])
        return {name: ca.SX(output.value) for name, output in outputs.items()}

    @cached_property
    def _load(self) -> Matrix:
        """The joint force (nv) of actuators and constraints."""
        s = self._symbols
        B = self._of_tree("input_matrix", *self.tree.quantity("input_matrix").inputs)
        return (
            B @ s["u"] + self._of_tree("input_bias", "x", "v") + self._constraint["A"].T @ s["lam"]
        )

    def _of_tree(self, name: str, *inputs: str) -> Matrix:
        symbols = {key: self._symbols[key] for key in inputs}
        (output,) = self.tree.quantity(name).trace(**symbols).values()
        return ca.SX(output.value)

    @cached_property
    def _f(self) -> Matrix:
        return self._of_tree("bias", "x", "v") - self._load

    @cached_property
    def _tangent(self) -> Matrix:
        return ca.SX(self.machine.rate_matrix(self._symbols["x"]))

    def _by_x(self, value: Matrix) -> Matrix:
        return ca.jacobian(value, self._symbols["x"]) @ self._tangent

    @cached_property
    def _f_slopes(self) -> tuple[Matrix, Matrix]:
        """Slopes (nv x nv) of f by x and by v; those of the bias in closed form."""
        s = self._symbols
        still = ca.SX.zeros(self.machine.nv)
        passive = self.tree.quantity("inverse_derivatives").trace(x=s["x"], v=s["v"], a=still)
        by_x, by_v = (ca.SX(passive[name].value) for name in ("dforce_dx", "dforce_dv"))
        return by_x - self._by_x(self._load), by_v - ca.jacobian(self._load, s["v"])

    def _function(self, *outputs: Matrix) -> ca.Function:
        dense = [ca.densify(ca.SX(value)) for value in outputs]
        return ca.Function("balance", list(self._symbols.values()), dense)

    # ------------------------------------------------------------------ residuals

    @cached_property
    def at_rest(self) -> ca.Function:
        """From a point to f and phi, and their slopes by x, v, u, lam and d(lam)/dt."""
        by_x, by_v = self._f_slopes
        s, rows = self._symbols, self._constraint
        others = [ca.jacobian(self._f, s[name]) for name in ("u", "lam", "rate")]
        zero = [ca.SX(self.rows, self.sizes[name]) for name in ("v", "u", "lam", "rate")]
        slopes = ca.blockcat([[by_x, by_v, *others], [rows["gradient"], *zero]])
        return self._function(ca.vertcat(self._f, rows["position"]), slopes)

    @cached_property
    def in_motion(self) -> ca.Function:
        """The same with A v, b, and the rate of f along the motion, as further rows."""
        s, rows = self._symbols, self._constraint
        drift = ca.jtimes(self._f, s["x"], self._tangent @ s["v"]) - rows["A"].T @ s["rate"]
        more = ca.vertcat(rows["velocity"], rows["b"], drift)
        values = [ca.jacobian(more, s[name]) for name in ("v", "u", "lam", "rate")]
        r, J = self.at_rest(*s.values())
        slopes = ca.vertcat(J, ca.horzcat(self._by_x(more), *values))
        return self._function(ca.vertcat(r, more), slopes)

    # ------------------------------------------------------------------ in numbers

    def force(self, x: np.ndarray, v: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return the joint forces (nv) of the actuators."""
        at = (x, v)[: len(self.tree.quantity("input_matrix").inputs)]
        B = self.tree.functions["input_matrix"](*at).full().reshape(self.machine.nv, -1)
        return B @ u + self.tree.functions["input_bias"](x, v).full().ravel()

    def acceleration(self, x: np.ndarray, v: np.ndarray, u: np.ndarray) -> ConstrainedSolution:
        """Return the acceleration with its constraint forces, ranks found by SVD."""
        return self.equations.solve(x, v, self.force(x, v, u))

    def mass(self, x: np.ndarray) -> np.ndarray:
        """Return M (nv, nv)."""
        return self.tree.functions["mass"](x).full()

    def errors(self, x: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the errors phi and eta (rows,) of the constraints."""
        _, _, phi, eta, _, _ = self.equations.numbers("constraint", x=x, v=v)
        return phi, eta

    def gravity(self, x: np.ndarray) -> np.ndarray:
        """Return the force (nv,) that holds the machine against gravity."""
        return self.tree.functions["gravity"](x).full().ravel()

    @cached_property
    def _slopes(self) -> ca.Function:
        s, rows = self._symbols, self._constraint
        W, _ = deviation(self.machine, s["x"], s["v"], ca.SX(self.machine.nv, 1))
        outputs = [self._f, *self._f_slopes, self._of_tree("mass", "x"), W, rows["A"], rows["size"]]
        eta, b = rows["velocity"], rows["b"]
        outputs += [rows["gradient"], self._by_x(eta), ca.jacobian(eta, s["v"])]
        return self._function(*outputs, self._by_x(b), ca.jacobian(b, s["v"]))

    def slopes(
        self, x: np.ndarray, v: np.ndarray, u: np.ndarray, lam: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """Return f, its slopes by x and v, M, W, A; slopes of phi by x, of eta and b by x and v."""
        outputs = [value.full() for value in self._slopes(x, v, u, lam, np.zeros(self.rows))]
        f, by_x, by_v, M, W, A, size, phi_x, eta_x, eta_v, *b_slopes = outputs
        size = size.ravel()
        kept = (
            without_noise(A, size),
            without_noise(phi_x, size),
            eta_x,
            without_noise(eta_v, size),
        )
        return (f.ravel(), by_x, by_v, M, W, *kept, *b_slopes)


def small_motions(balance: Balance, x: np.ndarray, v: np.ndarray, u: np.ndarray) -> SmallMotions:
    """Return the small motions about a state without acceleration, inputs held."""
    lam = balance.acceleration(x, v, u).multipliers
    _, f_x, f_v, M, W, A, phi_x, eta_x, eta_v, b_x, b_v = balance.slopes(x, v, u, lam)
    basis = null_space(np.block([[phi_x, np.zeros_like(phi_x)], [eta_x, eta_v]]))
    eps, dv = np.split(basis, 2)
    a = gauss(M, -(f_x @ eps + f_v @ dv), A, b_x @ eps + b_v @ dv)
    rates = np.vstack([dv - W @ eps, a])
    return SmallMotions(basis.T @ rates, basis, rates)


def balance_of(system: Machine | Equations, parameters: Any = None) -> Balance:
    """Return the balance of a machine or of equations, made once for each.

    Raises
    ------
    SolveError
        For equations in other coordinates than the joints', with tunable numbers, or with
        constraints that depend on time: nothing is steady under these.
    """
    if isinstance(system, Machine):
        return _balance(system.with_parameters(parameters))
    if not isinstance(system, Equations):
        raise SolveError(f"a Machine or Equations are needed, got {type(system).__name__}")
    if len(system.machine.parameters):
        raise SolveError(
            "equations with tunable numbers cannot be balanced: derive them from "
            "`machine.with_parameters(...)`"
        )
    if system.name == "tree":
        return _balance(system.machine)
    if not isinstance(system, Constrained) or system.base.name != "tree":
        raise SolveError(
            f"the {system.name} formulation has coordinates of its own; give the machine, or its "
            "equations in the formulation `tree` or `constrained`"
        )
    if system.rheonomic:
        raise SolveError("a constraint depends on time, so that no state can be steady")
    return _balance(system)


@lru_cache(maxsize=8)
def _balance(system: Machine | Constrained) -> Balance:
    return Balance(system)
