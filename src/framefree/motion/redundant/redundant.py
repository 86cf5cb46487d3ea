"""The redundant formulation: any coordinates x with phi(x) = 0, minimal velocities v.

    dx/dt = A(x) v,      M_ij a^j + Gamma_ijk v^j v^k + d_i V + dR/dv^i = force_i

The only things asked for are the coordinates and the poses; body Jacobians come by differentiation,
wed(J_i) = G^-1 d_i G. It applies to every machine without loops and to every `BodySystem` that a
user writes down, and serves to derive, compare and check; `tree` is the fast one.
"""

from functools import partial
from typing import Any

import casadi as ca

from framefree.machine import Machine, MachineError
from framefree.machine.values import constant
from framefree.motion import forces
from framefree.motion.body_shares import SHARES
from framefree.motion.equations import Equations, EquationsError
from framefree.motion.groups import CoordinateGroup, JointGroup
from framefree.motion.outputs import Outputs, Recipe, cube, matrix, scalar, vector
from framefree.motion.redundant.coordinates import Coordinates
from framefree.motion.redundant.evaluated import at_expressions
from framefree.motion.redundant.routes import NEEDS_INTEGRABLE, ROUTES
from framefree.motion.redundant.state import RedundantState
from framefree.motion.redundant.system import BodySystem, machine_poses, ways
from framefree.motion.spatial import Matrix, solve_symmetric
from framefree.motion.state import State
from framefree.motion.tree import Tree

X, XV, XVA = ("x",), ("x", "v"), ("x", "v", "a")

CALCULUS = ("commutation", "connection", "hessian")
"""What exists only where the directions of v belong to coordinates."""


class Redundant(Equations):
    """Equations of motion of bodies in redundant coordinates.

    Parameters
    ----------
    machine : Machine or BodySystem
        The coordinates of a `BodySystem` are checked here: phi, A and their ranks at several
        configurations. Where A is not integrable (a rolling wheel), what rests on integrable
        coordinates is not offered: see `CALCULUS` and `routes.NEEDS_INTEGRABLE`.

    Notes
    -----
    Beside what every formulation has, as casadi functions and kernels:

    - ``phi(x)``: what must be zero;
    - ``commutation(x)`` [k, i, j] and ``connection(x)`` [i, j, k]: gamma^k_ij and Gamma_ijk, nv^3
      numbers each, for small systems;
    - ``damping(x)``: D of the dampers; ``stiffness_force(x)``: all of d_i V but gravity;
    - ``hessian(x)``: covariant Hessian of the potential energy;
    - ``hamiltonian(x, p)`` and ``hamilton(x, p, force)``: dx/dt and dp/dt;
    - ``inverse:ROUTE(x, v, a)`` by one of the `ROUTES`.
    """

    name = "redundant"
    offers = Tree.offers

    def __init__(self, machine: Machine | BodySystem) -> None:
        if machine.closed:
            raise MachineError(
                f"the redundant formulation does not apply to `{machine.name}`: it has loops or "
                'couplings; use "constrained", "embedded" or "maximal", or give a `BodySystem` '
                "with coordinates that close them"
            )
        super().__init__(machine)  # type: ignore[arg-type]
        self.coordinates, poses, self.group = _described(machine)
        self.ways = ways(machine.bodies, machine.body_index, poses)
        self.integrable = isinstance(machine, Machine) or self.coordinates.check().integrable
        self.keeps = isinstance(self.group, CoordinateGroup)
        self.x_names, self.v_names = machine.x_names, machine.v_names
        self.sizes = {
            "x": machine.nx,
            **dict.fromkeys(("v", "a", "v_r", "a_r", "force", "joint_force", "p"), machine.nv),
            "u": machine.nu,
        }
        self.gravity_vector: Matrix = ca.SX(constant(machine.gravity))
        self.inertias = [ca.SX(constant(body.moments.matrix6)) for body in machine.bodies]
        self.added_masses = forces.added_masses(machine)  # type: ignore[arg-type]
        rotors = ca.vertcat(ca.SX(0, 1), *(constant(joint.armature) for joint in machine.joints))
        self.armature = ca.diag(rotors) if machine.joints else ca.SX(machine.nv, machine.nv)
        if len(poses) > len(self.ways):
            # The poses close loops: the wrenches between bodies are not unique.
            self.offers = tuple(name for name in self.offers if name != "joint_wrench")
        if not isinstance(machine, Machine):
            # Shares count rotors and friction to the body that a joint moves; here no joint does.
            self.offers = tuple(name for name in self.offers if name not in SHARES)
        self.own = {
            "phi": Recipe(X, self._phi),
            "commutation": Recipe(X, self._commutation),
            "connection": Recipe(X, self._connection),
            "hessian": Recipe(X, self._hessian),
            "damping": Recipe(X, lambda state: {"damping": matrix(state.damping)}),
            "stiffness_force": Recipe(X, self._stiffness_force),
            "hamiltonian": Recipe(("x", "p"), self._hamiltonian),
            "hamilton": Recipe(("x", "p", "force"), self._hamilton),
        }
        self.moving = isinstance(machine, BodySystem) and machine.rheonomic
        self.rheonomic = self.rheonomic or self.moving
        self.sizes["t"] = 1
        if self.moving:
            self.own = {"phi": self.own["phi"], "damping": self.own["damping"]}
        elif not self.integrable:
            self.own = {name: made for name, made in self.own.items() if name not in CALCULUS}
            moving = ("linearisation", "state_matrices")
            self.offers = tuple(name for name in self.offers if name not in moving)

    # ------------------------------------------------------------------ the contract

    def at(self, x: Matrix, v: Matrix | None = None, t: Any = 0) -> State:
        """Return the state (x, v); without v the bodies are at rest."""
        v = ca.SX(self.coordinates.nv, 1) if v is None else v
        return at_expressions(partial(RedundantState, self), x, v, t, timed=self.moving)

    def rate_matrix(self, x: Matrix) -> Matrix:
        """Return A (nx x nv) with dx/dt = A v."""
        return ca.SX(self.coordinates.rate(x))

    def takes_time(self, name: str) -> bool:
        """Tell whether a quantity depends on time: all do where poses move by themselves."""
        return self.moving or super().takes_time(name)

    def restore(self, x: Matrix, v: Matrix, t: Matrix, rounds: int) -> tuple[Matrix, Matrix]:
        """Return a symbolic state brought back onto phi = 0."""
        return self.coordinates.restore(x, rounds), v

    # ------------------------------------------------------------------ quantities of its own

    def own_recipe(self, name: str) -> Recipe | None:
        """Return a quantity of its own, `inverse:ROUTE` included."""
        kind, _, which = name.partition(":")
        if kind == "inverse" and which:
            return Recipe(XVA, lambda state, a: self._inverse(which, state, a))
        return super().own_recipe(name)

    def _inverse(self, route: str, state: RedundantState, a: Matrix) -> Outputs:
        every = self.integrable and not self.moving
        known = [name for name in ROUTES if every or name not in NEEDS_INTEGRABLE]
        if route not in known:
            why = " where A is not integrable or poses move by themselves"
            why = why if route in ROUTES else ""
            raise EquationsError(f"`{route}` is no route{why}; choose one of: {', '.join(known)}")
        return {"force": vector(ROUTES[route](state, a) + state.extra_inertia(a))}

    def _phi(self, state: RedundantState) -> Outputs:
        return {"phi": vector(self.coordinates.residual(state.x))}

    def _commutation(self, state: RedundantState) -> Outputs:
        return {"commutation": cube(state.tangent.commutation, self.coordinates.nv)}

    def _connection(self, state: RedundantState) -> Outputs:
        return {"connection": cube(state.tangent.connection(state.metric), self.coordinates.nv)}

    def _stiffness_force(self, state: RedundantState) -> Outputs:
        force = state.tangent.gradient(state.potential) - state.gravity_force
        return {"force": vector(force)}

    def _hessian(self, state: RedundantState) -> Outputs:
        return {"hessian": matrix(state.tangent.hessian(state.potential, state.mass))}

    def _hamiltonian(self, state: RedundantState, p: Matrix) -> Outputs:
        kinetic = ca.dot(p, solve_symmetric(state.mass, p)) / 2
        return {"hamiltonian": scalar(kinetic + state.potential)}

    def _hamilton(self, state: RedundantState, p: Matrix, force: Matrix) -> Outputs:
        v = ca.SX.sym("v", p.shape[0])
        moving = RedundantState(self, state.x, v, state.t)
        # The same as -gamma^k_ij v^j p_k - d_i H + force - dR/dv, and right for added mass too.
        p_rate = force - moving.bias + moving.tangent.rate(moving.mass, v) @ v
        velocity = solve_symmetric(state.mass, p)
        p_rate = ca.substitute(p_rate, v, velocity)
        return {"x_rate": vector(state.tangent.A @ velocity), "p_rate": vector(p_rate)}


def _described(machine: Machine | BodySystem) -> tuple[Coordinates, list, Any]:
    """Return coordinates, relative poses and group of a machine or a user's system."""
    if isinstance(machine, BodySystem):
        return machine.coordinates, list(machine.poses), machine.coordinates.group
    return Coordinates.of_machine(machine), machine_poses(machine), JointGroup(machine)
