"""Equations of motion from a Lagrangian L(x, v, t) in redundant coordinates.

    d/dt dL/dv^i + gamma^k_ij v^j dL/dv^k - d_i L + dR/dv^i = force_i,      dx/dt = A(x) v

L may depend on time, and have terms linear in the velocities: for
L = 1/2 M_ij v^i v^j + b_i v^i + c with M, b, c functions of (x, t) the equations read, where the
source misses the terms of b that turn (errata E4-5, E4-6),

    M_ij a^j + Gamma_ijk v^j v^k + (dM_ij/dt + d_j b_i - d_i b_j + gamma^k_ij b_k) v^j
        + db_i/dt - d_i c = force_i
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import casadi as ca

from framefree.machine import MachineError
from framefree.machine.parameters import Parameters
from framefree.motion.equations import Equations, EquationsError, Output, Quantity
from framefree.motion.redundant.coordinates import (
    Coordinates,
    Tangent,
    linearised,
    velocity_deviation,
)
from framefree.motion.spatial import Matrix, solve_symmetric

Outputs = dict[str, Output]


@dataclass(frozen=True)
class LagrangianSystem:
    """Coordinates, a Lagrangian on them, and optionally a dissipation function.

    Parameters
    ----------
    name : str
    coordinates : Coordinates
    lagrangian : callable (x, v, t) -> scalar
        L, J: casadi expressions. d2L/dv2 must be positive definite where forward dynamics is asked.
    rayleigh : callable (x, v, t) -> scalar, optional
        Dissipation function R, W: the force dR/dv resists.
    parameters : Parameters
        Tunable numbers, whose symbols stand in the functions above.
    """

    name: str
    coordinates: Coordinates
    lagrangian: Callable[[Matrix, Matrix, Matrix], Matrix]
    rayleigh: Callable[[Matrix, Matrix, Matrix], Matrix] | None = None
    parameters: Parameters = field(default_factory=Parameters)

    def __post_init__(self) -> None:
        x, v = ca.SX.sym("x", self.coordinates.nx), ca.SX.sym("v", self.coordinates.nv)
        for name in ("lagrangian", "rayleigh"):
            law = getattr(self, name)
            shape = (1, 1) if law is None else ca.SX(law(x, v, ca.SX.sym("t"))).shape
            if shape != (1, 1):
                raise MachineError(f"`{name}` of `{self.name}` must be a scalar, got {shape}")

    @property
    def nx(self) -> int:
        """Number of coordinates."""
        return self.coordinates.nx

    @property
    def nv(self) -> int:
        """Number of velocities."""
        return self.coordinates.nv


class LagrangianState:
    """A symbolic state (x, v, t) of a `LagrangianSystem`."""

    def __init__(self, system: LagrangianSystem, x: Matrix, v: Matrix, t: Matrix) -> None:
        self.x, self.v, self.t = x, v, t
        self.tangent: Tangent = system.coordinates.at(x)
        self.lagrangian = ca.SX(system.lagrangian(x, v, t))
        self.momentum = ca.gradient(self.lagrangian, v)
        self.mass = ca.jacobian(self.momentum, v)
        R = ca.SX(0) if system.rayleigh is None else ca.SX(system.rayleigh(x, v, t))
        self.resistance = ca.gradient(R, v)
        self.energy = ca.dot(self.momentum, v) - self.lagrangian

    @property
    def quadratic(self) -> bool:
        """Whether L is a polynomial of second degree in the velocities."""
        return not ca.depends_on(self.mass, self.v)

    @property
    def conserved(self) -> Matrix:
        """The part of dp/dt that the Lagrangian gives: d_i L - gamma^k_ij v^j p_k."""
        turned = self.tangent.bracket_force(self.v, self.momentum)
        return self.tangent.gradient(self.lagrangian) - turned

    @property
    def bias(self) -> Matrix:
        """Force at zero acceleration."""
        p = self.momentum
        p_rate = self.tangent.rate(p, self.v) + ca.jacobian(p, self.t)
        return p_rate - self.conserved + self.resistance

    def inverse(self, a: Matrix) -> Matrix:
        """Force for acceleration a."""
        return self.mass @ a + self.bias

    def slopes(self, a: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        """Return d_i f, df/dv, df/da of the force f(x, v, a)."""
        force = self.inverse(a)
        return self.tangent.along(force), ca.jacobian(force, self.v), self.mass


class Lagrange(Equations):
    """Equations of motion of a `LagrangianSystem`; the time t is the last input everywhere.

    - ``mass``, ``bias``, ``momentum`` (p = dL/dv), ``energy``, ``dissipation`` of (x, v, t);
    - ``forward(x, v, force, t)``, ``inverse(x, v, a, t)``, ``power(x, v, force, t)``;
    - ``forward_derivatives``, ``inverse_derivatives``, ``linearisation(x, v, a, t)``;
    - ``constraint(x)``, ``commutation(x)``; and for L quadratic in v ``connection(x, t)``,
      ``coriolis(x, v, t)``, ``hessian(x, t)`` of the potential -L(x, 0, t),
      ``hamiltonian(x, p, t)``, ``hamilton(x, p, force, t)``.

    ``power`` is d/dt of p . v - L: v . force less what is dissipated, less dL/dt at rest of x, v.
    """

    name = "redundant"

    def __init__(self, system: LagrangianSystem) -> None:
        super().__init__(system)  # type: ignore[arg-type]
        self.system, self.coordinates = system, system.coordinates
        nv = system.nv
        self.sizes = {"x": system.nx, "v": nv, "a": nv, "force": nv, "p": nv, "t": 1}
        self.quantities = {
            "mass": Quantity(("x", "v", "t"), self._mass),
            "bias": Quantity(("x", "v", "t"), self._bias),
            "forward": Quantity(("x", "v", "force", "t"), self._forward),
            "inverse": Quantity(("x", "v", "a", "t"), self._inverse),
            "momentum": Quantity(("x", "v", "t"), self._momentum),
            "energy": Quantity(("x", "v", "t"), self._energy),
            "dissipation": Quantity(("x", "v", "t"), self._dissipation),
            "power": Quantity(("x", "v", "force", "t"), self._power),
            "constraint": Quantity(("x",), self._constraint),
            "commutation": Quantity(("x",), self._commutation),
            "connection": Quantity(("x", "t"), self._connection),
            "coriolis": Quantity(("x", "v", "t"), self._coriolis),
            "hessian": Quantity(("x", "t"), self._hessian),
            "hamiltonian": Quantity(("x", "p", "t"), self._hamiltonian),
            "hamilton": Quantity(("x", "p", "force", "t"), self._hamilton),
            "linearisation": Quantity(("x", "v", "a", "t"), self._linearisation),
            "inverse_derivatives": Quantity(("x", "v", "a", "t"), self._inverse_derivatives),
            "forward_derivatives": Quantity(("x", "v", "force", "t"), self._forward_derivatives),
        }

    # Each method below gives the named outputs of one quantity for symbols of its inputs.

    def _at(self, x: Matrix, v: Matrix | None, t: Matrix) -> LagrangianState:
        symbol = ca.SX.sym("v", self.system.nv) if v is None else v
        return LagrangianState(self.system, x, symbol, t)

    def _quadratic(self, x: Matrix, v: Matrix | None, t: Matrix) -> LagrangianState:
        state = self._at(x, v, t)
        if not state.quadratic:
            raise EquationsError(
                f"the Lagrangian of `{self.system.name}` is not quadratic in the velocities, so "
                "that its momentum has no inverse in closed form, and M no metric"
            )
        return state

    def _mass(self, x: Matrix, v: Matrix, t: Matrix) -> Outputs:
        return {"mass": self._square(self._at(x, v, t).mass)}

    def _bias(self, x: Matrix, v: Matrix, t: Matrix) -> Outputs:
        return {"bias": self._vector(self._at(x, v, t).bias)}

    def _forward(self, x: Matrix, v: Matrix, force: Matrix, t: Matrix) -> Outputs:
        state = self._at(x, v, t)
        return {"a": self._vector(solve_symmetric(state.mass, force - state.bias))}

    def _inverse(self, x: Matrix, v: Matrix, a: Matrix, t: Matrix) -> Outputs:
        return {"force": self._vector(self._at(x, v, t).inverse(a))}

    def _momentum(self, x: Matrix, v: Matrix, t: Matrix) -> Outputs:
        return {"momentum": self._vector(self._at(x, v, t).momentum)}

    def _energy(self, x: Matrix, v: Matrix, t: Matrix) -> Outputs:
        state = self._at(x, v, t)
        kinetic = ca.dot(v, state.mass @ v) / 2
        return {"kinetic": Output(kinetic, ()), "potential": Output(state.energy - kinetic, ())}

    def _dissipation(self, x: Matrix, v: Matrix, t: Matrix) -> Outputs:
        return {"dissipation": Output(ca.dot(v, self._at(x, v, t).resistance), ())}

    def _power(self, x: Matrix, v: Matrix, force: Matrix, t: Matrix) -> Outputs:
        state = self._at(x, v, t)
        power = ca.dot(v, force - state.resistance) - ca.jacobian(state.lagrangian, t)
        return {"power": Output(power, ())}

    def _constraint(self, x: Matrix) -> Outputs:
        phi = self.coordinates.residual(x)
        return {"constraint": Output(phi, (phi.shape[0],))}

    def _commutation(self, x: Matrix) -> Outputs:
        return {"commutation": self._cube(self.coordinates.at(x).commutation)}

    def _connection(self, x: Matrix, t: Matrix) -> Outputs:
        state = self._quadratic(x, None, t)
        return {"connection": self._cube(state.tangent.connection(state.mass))}

    def _coriolis(self, x: Matrix, v: Matrix, t: Matrix) -> Outputs:
        state = self._quadratic(x, v, t)
        return {"coriolis": self._square(state.tangent.connection_matrix(state.mass, v))}

    def _hessian(self, x: Matrix, t: Matrix) -> Outputs:
        state = self._quadratic(x, None, t)
        potential = -ca.substitute(state.lagrangian, state.v, ca.SX.zeros(self.system.nv))
        return {"hessian": self._square(state.tangent.hessian(potential, state.mass))}

    def _hamiltonian(self, x: Matrix, p: Matrix, t: Matrix) -> Outputs:
        state = self._quadratic(x, None, t)
        H = ca.substitute(state.energy, state.v, _velocity(state, p))
        return {"hamiltonian": Output(H, ())}

    def _hamilton(self, x: Matrix, p: Matrix, force: Matrix, t: Matrix) -> Outputs:
        state = self._quadratic(x, None, t)
        v = _velocity(state, p)
        p_rate = ca.substitute(state.conserved + force - state.resistance, state.v, v)
        return {
            "x_rate": Output(state.tangent.A @ v, (self.system.nx,)),
            "p_rate": self._vector(p_rate),
        }

    def _inverse_derivatives(self, x: Matrix, v: Matrix, a: Matrix, t: Matrix) -> Outputs:
        slopes = self._at(x, v, t).slopes(a)
        names = ("dforce_dx", "dforce_dv", "dforce_da")
        return {name: self._square(slope) for name, slope in zip(names, slopes, strict=True)}

    def _forward_derivatives(self, x: Matrix, v: Matrix, force: Matrix, t: Matrix) -> Outputs:
        state = self._at(x, v, t)
        a = solve_symmetric(state.mass, force - state.bias)
        names = ("da_dx", "da_dv", "da_dforce")
        slopes = (state.tangent.along(a), ca.jacobian(a, v), ca.jacobian(a, force))
        return {name: self._square(slope) for name, slope in zip(names, slopes, strict=True)}

    def _linearisation(self, x: Matrix, v: Matrix, a: Matrix, t: Matrix) -> Outputs:
        state = self._at(x, v, t)
        found = linearised(state.slopes(a), *velocity_deviation(state.tangent, v, a))
        return {name: self._square(value) for name, value in found._asdict().items()}

    def _vector(self, value: Matrix) -> Output:
        return Output(value, (self.system.nv,))

    def _square(self, value: Matrix) -> Output:
        return Output(value, (self.system.nv, self.system.nv))

    def _cube(self, matrices: list[Matrix]) -> Output:
        nv = self.system.nv
        rows = [ca.vec(ca.densify(matrix).T).T for matrix in matrices]
        return Output(ca.vertcat(*rows) if rows else ca.SX(0, 0), (nv, nv, nv))


def _velocity(state: LagrangianState, p: Matrix) -> Matrix:
    """Return v with p = M v + b."""
    b = ca.substitute(state.momentum, state.v, ca.SX.zeros(state.v.shape[0]))
    return solve_symmetric(state.mass, p - b)
