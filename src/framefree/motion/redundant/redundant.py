"""The redundant formulation: any coordinates x with phi(x) = 0, minimal velocities v.

    dx/dt = A(x) v,      M_ij a^j + Gamma_ijk v^j v^k + d_i V + dR/dv^i = force_i

The only things asked for are the coordinates and the poses; body Jacobians come by differentiation,
wed(J_i) = G^-1 d_i G. It applies to every machine without loops and to every `BodySystem` that a
user writes down, and serves to derive, compare and check; `tree` is the fast one.
"""

import casadi as ca

from framefree.geometry import se3
from framefree.machine import Machine, MachineError
from framefree.machine.values import constant_pose
from framefree.motion import forces
from framefree.motion.equations import Equations, EquationsError, Output, Quantity
from framefree.motion.redundant.coordinates import linearised, velocity_deviation
from framefree.motion.redundant.lagrange import Lagrange, LagrangianSystem
from framefree.motion.redundant.routes import ROUTES, projection
from framefree.motion.redundant.state import RedundantModel, RedundantState
from framefree.motion.redundant.system import BodySystem
from framefree.motion.spatial import Matrix, Step, Wrench, solve_symmetric
from framefree.motion.tree import inputs

Outputs = dict[str, Output]


class Redundant(Equations):
    """Equations of motion of bodies in redundant coordinates.

    Beside what every formulation has, as casadi functions and kernels:

    - ``constraint(x)``, ``rate_matrix(x)``: phi and A;
    - ``commutation(x)`` [k, i, j] and ``connection(x)`` [i, j, k]: gamma^k_ij and Gamma_ijk, nv^3
      numbers each, for small systems;
    - ``damping(x)``: D of the dampers; ``stiffness_force(x)``: all of d_i V but gravity;
    - ``hessian(x)``: covariant Hessian of the potential energy;
    - ``hamiltonian(x, p)`` and ``hamilton(x, p, force)``: dx/dt and dp/dt;
    - ``linearisation(x, v, a)``: f0, f1, f2 with
      d(force) = f0 eps + f1 d(eps)/dt + f2 d2(eps)/dt2 for x (+) eps(t) near a motion;
    - ``forward_derivatives(x, v, force)``, ``inverse_derivatives(x, v, a)``;
    - ``inverse:ROUTE(x, v, a)`` by one of the `ROUTES`.
    """

    name = "redundant"

    def __init__(self, machine: Machine | BodySystem) -> None:
        if machine.loops or machine.couplings:
            raise MachineError(
                f"the redundant formulation does not apply to `{machine.name}`: it has loops or "
                'couplings; use "constrained", "embedded" or "maximal", or give a `BodySystem` '
                "with coordinates that close them"
            )
        super().__init__(machine)  # type: ignore[arg-type]
        self.model = RedundantModel(machine)
        self.coordinates = self.model.coordinates
        nv = machine.nv
        self.sizes = {"x": machine.nx, "v": nv, "a": nv, "force": nv, "p": nv}
        self.quantities = {
            "mass": Quantity(("x",), self._mass),
            "bias": Quantity(("x", "v"), self._bias),
            "coriolis": Quantity(("x", "v"), self._coriolis),
            "gravity": Quantity(("x",), self._gravity),
            "forward": Quantity(("x", "v", "force"), self._forward),
            "inverse": Quantity(("x", "v", "a"), self._inverse),
            "body_pose": Quantity(("x",), self._body_pose),
            "body_velocity": Quantity(("x", "v"), self._body_velocity),
            "body_acceleration": Quantity(("x", "v", "a"), self._body_acceleration),
            "energy": Quantity(("x", "v"), self._energy),
            "dissipation": Quantity(("x", "v"), self._dissipation),
            "momentum": Quantity(("x", "v"), self._momentum),
            "joint_wrench": Quantity(("x", "v", "force"), self._joint_wrench),
            "power": Quantity(("x", "v", "force"), self._power),
            "constraint": Quantity(("x",), self._constraint),
            "rate_matrix": Quantity(("x",), self._rate_matrix),
            "commutation": Quantity(("x",), self._commutation),
            "connection": Quantity(("x",), self._connection),
            "damping": Quantity(("x",), self._damping),
            "stiffness_force": Quantity(("x",), self._stiffness_force),
            "hessian": Quantity(("x",), self._hessian),
            "hamiltonian": Quantity(("x", "p"), self._hamiltonian),
            "hamilton": Quantity(("x", "p", "force"), self._hamilton),
            "linearisation": Quantity(("x", "v", "a"), self._linearisation),
            "inverse_derivatives": Quantity(("x", "v", "a"), self._inverse_derivatives),
            "forward_derivatives": Quantity(("x", "v", "force"), self._forward_derivatives),
        }
        if isinstance(machine, Machine):
            self.quantities["input_matrix"] = Quantity(("x",), self._input_matrix)
            self.quantities["input_bias"] = Quantity(("x", "v"), self._input_bias)

    def quantity(self, name: str) -> Quantity:
        """Return the recipe of a quantity, `jacobian:FRAME` and `inverse:ROUTE` included."""
        kind, _, which = name.partition(":")
        if kind == "inverse" and which:
            return Quantity(("x", "v", "a"), lambda x, v, a: self._inverse(x, v, a, which))
        if kind == "jacobian":
            return Quantity(("x",), lambda x: self._jacobian(which, x, None, 0))
        if kind == "jacobian_rate":
            return Quantity(("x", "v"), lambda x, v: self._jacobian(which, x, v, 1))
        if kind == "frame_pose":
            return Quantity(("x",), lambda x: self._frame_pose(which, x))
        return super().quantity(name)

    # Each method below gives the named outputs of one quantity for symbols of its inputs.

    def _mass(self, x: Matrix) -> Outputs:
        return {"mass": self._square(self.model.at(x).mass)}

    def _bias(self, x: Matrix, v: Matrix) -> Outputs:
        return {"bias": self._vector(_inverse(self.model.at(x, v), ca.SX(v.shape[0], 1)))}

    def _coriolis(self, x: Matrix, v: Matrix) -> Outputs:
        state = self.model.at(x, v)
        return {"coriolis": self._square(state.tangent.connection_matrix(state.metric, v))}

    def _gravity(self, x: Matrix) -> Outputs:
        return {"gravity": self._vector(self.model.at(x).gravity_force)}

    def _forward(self, x: Matrix, v: Matrix, force: Matrix) -> Outputs:
        return {"a": self._vector(_forward(self.model.at(x, v), force))}

    def _inverse(self, x: Matrix, v: Matrix, a: Matrix, route: str = "projection") -> Outputs:
        if route not in ROUTES:
            raise EquationsError(f"`{route}` is no route; choose one of: {', '.join(ROUTES)}")
        return {"force": self._vector(_inverse(self.model.at(x, v), a, route))}

    def _body_pose(self, x: Matrix) -> Outputs:
        rows = [ca.vec(ca.densify(G).T).T for G in self.model.at(x).poses]
        return {"pose": Output(_rows(rows, 16), (len(rows), 4, 4))}

    def _body_velocity(self, x: Matrix, v: Matrix) -> Outputs:
        rows = [xi.T for xi in self.model.at(x, v).twists]
        return {"velocity": Output(_rows(rows, 6), (len(rows), 6))}

    def _body_acceleration(self, x: Matrix, v: Matrix, a: Matrix) -> Outputs:
        rows = [xi.T for xi in self.model.at(x, v).accelerations(a)]
        return {"acceleration": Output(_rows(rows, 6), (len(rows), 6))}

    def _jacobian(self, frame: str, x: Matrix, v: Matrix | None, which: int) -> Outputs:
        jacobian = self.model.at(x, v).jacobian(frame)[which]
        return {"jacobian": Output(jacobian, (6, self.machine.nv))}

    def _frame_pose(self, frame: str, x: Matrix) -> Outputs:
        return {"pose": Output(self.model.at(x).frame_pose(frame), (4, 4))}

    def _energy(self, x: Matrix, v: Matrix) -> Outputs:
        state = self.model.at(x, v)
        return {"kinetic": Output(state.kinetic, ()), "potential": Output(state.potential, ())}

    def _dissipation(self, x: Matrix, v: Matrix) -> Outputs:
        return {"dissipation": Output(self.model.at(x, v).dissipation, ())}

    def _power(self, x: Matrix, v: Matrix, force: Matrix) -> Outputs:
        return {"power": Output(ca.dot(v, force) + self.model.at(x, v).passive_power, ())}

    def _momentum(self, x: Matrix, v: Matrix) -> Outputs:
        names = ("linear", "angular", "centroidal")
        values = forces.momentum(self.model.at(x, v).bodies)
        return {name: Output(value, (3,)) for name, value in zip(names, values, strict=True)}

    def _joint_wrench(self, x: Matrix, v: Matrix, force: Matrix) -> Outputs:
        """Return what carries each body: of a machine in joint axes, else in the body's own."""
        if self.model.has_loops:
            raise EquationsError(
                f"the poses of `{self.machine.name}` close loops: the wrenches between its bodies "
                "are not unique"
            )
        state = self.model.at(x, v)
        wrenches = state.joint_wrenches(_forward(state, force))
        if isinstance(self.machine, Machine):
            wrenches = [
                _in_frame(joint.child_pose, wrench)
                for joint, wrench in zip(self.machine.joints, wrenches, strict=True)
            ]
        rows = [wrench.T for wrench in wrenches]
        return {"wrench": Output(_rows(rows, 6), (len(rows), 6))}

    def _input_matrix(self, x: Matrix) -> Outputs:
        B = inputs.input_matrix(self.model.at(x))  # type: ignore[arg-type]
        return {"B": Output(B, (self.machine.nv, self.machine.nu))}

    def _input_bias(self, x: Matrix, v: Matrix) -> Outputs:
        return {"bias": self._vector(inputs.input_bias(self.model.at(x, v)))}  # type: ignore[arg-type]

    # ------------------------------------------------------------------ what only this one has

    def _constraint(self, x: Matrix) -> Outputs:
        phi = self.coordinates.residual(x)
        return {"constraint": Output(phi, (phi.shape[0],))}

    def _rate_matrix(self, x: Matrix) -> Outputs:
        return {"rate_matrix": Output(self.coordinates.rate(x), (self.sizes["x"], self.sizes["v"]))}

    def _commutation(self, x: Matrix) -> Outputs:
        return {"commutation": self._cube(self.coordinates.at(x).commutation)}

    def _connection(self, x: Matrix) -> Outputs:
        state = self.model.at(x)
        return {"connection": self._cube(state.tangent.connection(state.metric))}

    def _damping(self, x: Matrix) -> Outputs:
        return {"damping": self._square(self.model.at(x).damping)}

    def _stiffness_force(self, x: Matrix) -> Outputs:
        state = self.model.at(x)
        force = state.tangent.gradient(state.potential) - state.gravity_force
        return {"force": self._vector(force)}

    def _hessian(self, x: Matrix) -> Outputs:
        state = self.model.at(x)
        return {"hessian": self._square(state.tangent.hessian(state.potential, state.mass))}

    def _hamiltonian(self, x: Matrix, p: Matrix) -> Outputs:
        state = self.model.at(x)
        kinetic = ca.dot(p, solve_symmetric(state.mass, p)) / 2
        return {"hamiltonian": Output(kinetic + state.potential, ())}

    def _hamilton(self, x: Matrix, p: Matrix, force: Matrix) -> Outputs:
        v = ca.SX.sym("v", p.shape[0])
        state = self.model.at(x, v)
        # The same as -gamma^k_ij v^j p_k - d_i H + force - dR/dv, and right for added mass too.
        p_rate = (
            force - _inverse(state, ca.SX(v.shape[0], 1)) + state.tangent.rate(state.mass, v) @ v
        )
        p_rate = ca.substitute(p_rate, v, solve_symmetric(state.mass, p))
        x_rate = state.tangent.A @ solve_symmetric(state.mass, p)
        return {"x_rate": Output(x_rate, (self.sizes["x"],)), "p_rate": self._vector(p_rate)}

    # ------------------------------------------------------------------ derivatives

    def _inverse_derivatives(self, x: Matrix, v: Matrix, a: Matrix) -> Outputs:
        slopes = _slopes(self.model.at(x, v), a)
        names = ("dforce_dx", "dforce_dv", "dforce_da")
        return {name: self._square(slope) for name, slope in zip(names, slopes, strict=True)}

    def _forward_derivatives(self, x: Matrix, v: Matrix, force: Matrix) -> Outputs:
        state = self.model.at(x, v)
        a = ca.SX.sym("a", v.shape[0])
        by_x, by_v, mass = _slopes(state, a)
        right = ca.horzcat(-by_x, -by_v, ca.SX.eye(v.shape[0]))
        right = ca.substitute(right, a, _forward(state, force))
        solved = ca.horzsplit(solve_symmetric(mass, right), max(v.shape[0], 1))
        names = ("da_dx", "da_dv", "da_dforce")
        return {name: self._square(slope) for name, slope in zip(names, solved, strict=True)}

    def _linearisation(self, x: Matrix, v: Matrix, a: Matrix) -> Outputs:
        state = self.model.at(x, v)
        found = linearised(_slopes(state, a), *velocity_deviation(state.tangent, v, a))
        return {name: self._square(value) for name, value in found._asdict().items()}

    def _vector(self, value: Matrix) -> Output:
        return Output(value, (self.sizes["v"],))

    def _square(self, value: Matrix) -> Output:
        return Output(value, (self.sizes["v"], self.sizes["v"]))

    def _cube(self, matrices: list[Matrix]) -> Output:
        """Return nv square matrices as an array, the first index theirs."""
        nv = self.sizes["v"]
        rows = [ca.vec(ca.densify(matrix).T).T for matrix in matrices]
        return Output(_rows(rows, nv * nv), (nv, nv, nv))


def redundant(subject: Machine | BodySystem | LagrangianSystem) -> Equations:
    """Return the redundant formulation of a machine, a system of bodies, or a Lagrangian."""
    return Lagrange(subject) if isinstance(subject, LagrangianSystem) else Redundant(subject)


def _inverse(state: RedundantState, a: Matrix, route: str = "projection") -> Matrix:
    return ROUTES[route](state, a) + state.extra_inertia(a)


def _forward(state: RedundantState, force: Matrix) -> Matrix:
    zero = ca.SX(force.shape[0], 1)
    return state.forward(force, projection(state, zero) + state.extra_inertia(zero))


def _slopes(state: RedundantState, a: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Return d_i f, df/dv, df/da of the force f(x, v, a); v is a symbol."""
    force = _inverse(state, a)
    return state.tangent.along(force), ca.jacobian(force, state.v), state.mass


def _in_frame(pose: Matrix, wrench: Matrix) -> Matrix:
    """Return a body's wrench seen from a frame on it."""
    back = se3.inverse(constant_pose(pose))
    step = Step(se3.rotation(back), se3.position(back))
    return step.wrench_out(Wrench.of(wrench)).vector


def _rows(rows: list[Matrix], width: int) -> Matrix:
    return ca.vertcat(*rows) if rows else ca.SX(0, width)
