"""Equations of motion from a Lagrangian L(x, v, t) in redundant coordinates.

    d/dt dL/dv^i + gamma^k_ij v^j dL/dv^k - d_i L + dR/dv^i = force_i,      dx/dt = A(x) v

L may depend on time, and have terms linear in the velocities: for
L = 1/2 M_ij v^i v^j + b_i v^i + c with M, b, c functions of (x, t) the equations read, where the
source misses the terms of b that turn (errata E4-5, E4-6),

    M_ij a^j + Gamma_ijk v^j v^k + (dM_ij/dt + d_j b_i - d_i b_j + gamma^k_ij b_k) v^j
        + db_i/dt - d_i c = force_i
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

import casadi as ca

from framefree.machine import WORLD, MachineError
from framefree.machine.parameters import Parameters
from framefree.motion.equations import Equations, EquationsError
from framefree.motion.load import Load
from framefree.motion.outputs import Outputs, Recipe, cube, matrix, scalar, vector
from framefree.motion.quantities import ENERGIES, INPUTS, SLOPES
from framefree.motion.redundant.coordinates import Coordinates
from framefree.motion.redundant.evaluated import EvaluatedState
from framefree.motion.redundant.system import System
from framefree.motion.spatial import Matrix, solve_symmetric
from framefree.motion.state import InJointCoordinates, Jacobian, State
from framefree.motion.tangent import Tangent


@dataclass(frozen=True, eq=False)
class LagrangianSystem(System):
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
    actuators : sequence of JointForce
        On the joint `q`, which stands for all velocities.
    """

    name: str
    coordinates: Coordinates
    lagrangian: Callable[[Matrix, Matrix, Matrix], Matrix]
    rayleigh: Callable[[Matrix, Matrix, Matrix], Matrix] | None = None
    parameters: Parameters = field(default_factory=Parameters)
    actuators: Sequence[Any] = ()

    bodies: ClassVar[tuple] = ()
    frames: ClassVar[tuple] = ()
    springs: ClassVar[tuple] = ()
    dampers: ClassVar[tuple] = ()
    tendons: ClassVar[tuple] = ()
    interactions: ClassVar[tuple] = ()
    timed: ClassVar[bool] = False
    fluid: ClassVar[None] = None
    gravity: ClassVar[tuple[float, ...]] = (0.0, 0.0, -9.81)
    body_index: ClassVar[Mapping[str, int]] = MappingProxyType({WORLD: -1})

    def __post_init__(self) -> None:
        x, v = ca.SX.sym("x", self.coordinates.nx), ca.SX.sym("v", self.coordinates.nv)
        for name in ("lagrangian", "rayleigh"):
            law = getattr(self, name)
            shape = (1, 1) if law is None else ca.SX(law(x, v, ca.SX.sym("t"))).shape
            if shape != (1, 1):
                raise MachineError(f"`{name}` of `{self.name}` must be a scalar, got {shape}")


class LagrangianState(InJointCoordinates):
    """A symbolic state (x, v, t) of a `LagrangianSystem`; x and v are symbols."""

    equations: "Lagrange"

    def __init__(self, equations: "Lagrange", x: Matrix, v: Matrix, t: Matrix) -> None:
        system = equations.system
        self.equations = equations
        self.x, self.v, self.t = x, v, t
        self.tangent: Tangent = system.coordinates.at(x)
        self.lagrangian = ca.SX(system.lagrangian(x, v, t))
        self._p = ca.gradient(self.lagrangian, v)
        R = ca.SX(0) if system.rayleigh is None else ca.SX(system.rayleigh(x, v, t))
        self.resistance = ca.gradient(R, v)

    @cached_property
    def mass(self) -> Matrix:
        """d2L/dv2 (nv x nv)."""
        return ca.jacobian(self._p, self.v)

    @cached_property
    def bias(self) -> Matrix:
        """Force (nv) at zero acceleration."""
        p_rate = self.tangent.rate(self._p, self.v) + ca.jacobian(self._p, self.t)
        return p_rate - self.conserved + self.resistance

    def inverse(self, a: Matrix) -> Matrix:
        """Return the force (nv) for an acceleration a."""
        return self.mass @ a + self.bias

    @property
    def conserved(self) -> Matrix:
        """The part of dp/dt that the Lagrangian gives: d_i L - gamma^k_ij v^j p_k."""
        turned = self.tangent.bracket_force(self.v, self._p)
        return self.tangent.gradient(self.lagrangian) - turned

    @property
    def momentum(self) -> dict[str, Matrix]:
        """P = dL/dv (nv)."""
        return {"momentum": self._p}

    @property
    def kinetic(self) -> Matrix:
        """``1/2 v . M v``."""
        return ca.dot(self.v, self.mass @ self.v) / 2

    @property
    def energy(self) -> Matrix:
        """``p . v - L``, which a Lagrangian without time keeps."""
        return ca.dot(self._p, self.v) - self.lagrangian

    @property
    def potential(self) -> Matrix:
        """The rest of the energy."""
        return self.energy - self.kinetic

    @property
    def dissipation(self) -> Matrix:
        """Power (W) lost."""
        return ca.dot(self.v, self.resistance)

    def power(self, load: Load) -> Matrix:
        """Return d/dt of the energy (W) under a load."""
        given = ca.dot(self.v, self.generalised(load) - self.resistance)
        return given - ca.jacobian(self.lagrangian, self.t)

    @property
    def coriolis(self) -> Matrix:
        """``C_ij = Gamma_ijk v^k`` of the metric M."""
        return self.tangent.connection_matrix(self.mass, self.v)

    # ------------------------------------------------------------------ no bodies, no joints

    @property
    def poses(self) -> list[Matrix]:
        """None: a Lagrangian knows no bodies."""
        return []

    def jacobian(self, frame: str) -> Jacobian:
        """Refuse: a Lagrangian knows no frames."""
        raise MachineError(f"`{self.machine.name}` is given by a Lagrangian: it has no frames")


X = ("x",)

QUADRATIC = ("mass", "coriolis", "connection", "hessian", "hamiltonian", "hamilton")
"""What exists only for Lagrangians that are quadratic in the velocities."""


class Lagrange(Equations):
    """Equations of motion of a `LagrangianSystem`.

    Beside what every formulation has, but for bodies and frames, there are ``phi(x)`` and
    ``commutation(x)``; and for L quadratic in v ``connection(x)``, ``hessian(x)`` of the potential
    -L(x, 0, t), ``hamiltonian(x, p)``, ``hamilton(x, p, force)``. `momentum` is p = dL/dv. Where L
    depends on time, t is the last input everywhere. Where M depends on the velocities, `mass` and
    what rests on it are not offered, and `velocity_mass(x, v)` is.

    ``power`` is d/dt of p . v - L: v . force less what is dissipated, less dL/dt at rest of x, v.
    """

    name = "redundant"
    offers = (
        *("bias", "forward", "inverse", "rate_matrix", "joint_state"),
        *ENERGIES,
        *INPUTS,
        *SLOPES,
    )

    def __init__(self, system: LagrangianSystem) -> None:
        super().__init__(system)  # type: ignore[arg-type]
        self.system, self.coordinates = system, system.coordinates
        self.group = self.coordinates.group
        self.keeps = self.coordinates.constraint is not None
        self.x_names, self.v_names = system.x_names, system.v_names
        nv = system.nv
        self.sizes = {
            "x": system.nx,
            **dict.fromkeys(("v", "a", "force", "joint_force", "p"), nv),
            "u": system.nu,
            "t": 1,
        }
        if not self.coordinates.check().integrable:
            raise MachineError(
                f"A of `{system.name}` is not integrable: its velocities obey constraints that are "
                "not on x. Lagrange's equations do not hold in such velocities; give all "
                "velocities that phi allows, and the constraint as a `Nonholonomic` of "
                '`framefree.equations(..., "constrained", base=...)`'
            )
        symbols = ca.SX.sym("x", system.nx), ca.SX.sym("v", nv), ca.SX.sym("t")
        L = ca.SX(system.lagrangian(*symbols))
        R = ca.SX(0) if system.rayleigh is None else ca.SX(system.rayleigh(*symbols))
        self.rheonomic = ca.depends_on(ca.vertcat(L, R), symbols[2])
        self.quadratic = not ca.depends_on(ca.hessian(L, symbols[1])[0], symbols[1])
        self.own = {
            "phi": Recipe(X, lambda state: {"phi": vector(self.coordinates.residual(state.x))}),
            "commutation": Recipe(X, self._commutation),
            "velocity_mass": Recipe(("x", "v"), lambda state: {"mass": matrix(state.mass)}),
        }
        if self.quadratic:
            self.offers = ("mass", "coriolis", *self.offers)
            self.own |= {
                "connection": Recipe(X, self._connection),
                "hessian": Recipe(X, self._hessian),
                "hamiltonian": Recipe(("x", "p"), self._hamiltonian),
                "hamilton": Recipe(("x", "p", "force"), self._hamilton),
            }

    # ------------------------------------------------------------------ the contract

    def at(self, x: Matrix, v: Matrix | None = None, t: Any = 0) -> State:
        """Return a state; without v the system is at rest."""
        velocity = ca.SX.zeros(self.system.nv) if v is None else ca.SX(v)
        values = [ca.densify(value) for value in (ca.SX(x), velocity, ca.SX(t))]
        if all(value.is_valid_input() for value in values):
            return LagrangianState(self, *values)
        symbols = [ca.SX.sym(name, one.shape[0]) for name, one in zip("xvt", values, strict=True)]
        return EvaluatedState(LagrangianState(self, *symbols), symbols, values)

    def rate_matrix(self, x: Matrix) -> Matrix:
        """Return A (nx x nv) with dx/dt = A v."""
        return ca.SX(self.coordinates.rate(x))

    def restore(self, x: Matrix, v: Matrix, t: Matrix, rounds: int) -> tuple[Matrix, Matrix]:
        """Return a symbolic state brought back onto phi = 0."""
        return self.coordinates.restore(x, rounds), v

    def takes_time(self, name: str) -> bool:
        """Tell whether a quantity depends on time: all that the Lagrangian enters, if it does."""
        return self.rheonomic and name not in ("phi", "commutation", "rate_matrix")

    # ------------------------------------------------------------------ quantities of its own

    def own_recipe(self, name: str) -> Recipe | None:
        """Return a quantity of its own; refuse those that a Lagrangian like this has not."""
        if not self.quadratic and name in QUADRATIC:
            raise EquationsError(
                f"the Lagrangian of `{self.system.name}` is not quadratic in the velocities, so "
                f"that it has no `{name}` in closed form"
            )
        return super().own_recipe(name)

    def _at_symbols(self, state: State) -> LagrangianState:
        """Return the same state with symbols for velocities and time where it has none."""
        v, t = ca.SX(state.v), ca.SX(state.t)
        v = v if v.is_valid_input() else ca.SX.sym("v", self.system.nv)
        return LagrangianState(self, state.x, v, t if t.is_valid_input() else ca.SX.sym("t"))

    def _commutation(self, state: State) -> Outputs:
        state = self._at_symbols(state)
        return {"commutation": cube(state.tangent.commutation, self.system.nv)}

    def _connection(self, state: State) -> Outputs:
        state = self._at_symbols(state)
        return {"connection": cube(state.tangent.connection(state.mass), self.system.nv)}

    def _hessian(self, state: State) -> Outputs:
        state = self._at_symbols(state)
        potential = -ca.substitute(state.lagrangian, state.v, ca.SX.zeros(self.system.nv))
        return {"hessian": matrix(state.tangent.hessian(potential, state.mass))}

    def _hamiltonian(self, state: State, p: Matrix) -> Outputs:
        state = self._at_symbols(state)
        H = ca.substitute(state.energy, state.v, _velocity(state, p))
        return {"hamiltonian": scalar(H)}

    def _hamilton(self, state: State, p: Matrix, force: Matrix) -> Outputs:
        state = self._at_symbols(state)
        v = _velocity(state, p)
        p_rate = ca.substitute(state.conserved + force - state.resistance, state.v, v)
        return {"x_rate": vector(state.tangent.A @ v), "p_rate": vector(p_rate)}


def _velocity(state: LagrangianState, p: Matrix) -> Matrix:
    """Return v with p = M v + b."""
    b = ca.substitute(state._p, state.v, ca.SX.zeros(state.v.shape[0]))
    return solve_symmetric(state.mass, p - b)
