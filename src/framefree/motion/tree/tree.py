"""The tree formulation: joint coordinates x, joint velocities v, no constraint left over.

    M a + c + (passive forces) = force,      c = sum_b J_b^T (M_b dJ_b - ad_{xi_b}^T M_b J_b) v

Accelerations, forces and the mass matrix come from recursions over the links in O(n) operations;
the closed form, a sum over bodies, is there to check them and to read.
"""

import casadi as ca

from framefree.machine import Machine, MachineError
from framefree.motion import forces
from framefree.motion.equations import Equations, Output, Quantity
from framefree.motion.linearise import linearise
from framefree.motion.spatial import Matrix
from framefree.motion.tree import coriolis, euler, inputs
from framefree.motion.tree.state import TreeModel

Outputs = dict[str, Output]


class Tree(Equations):
    """Equations of motion of a machine without loops, in its joint coordinates."""

    name = "tree"

    def __init__(self, machine: Machine) -> None:
        if machine.loops or machine.couplings:
            raise MachineError(
                f"the tree formulation does not apply to `{machine.name}`, which has loops or "
                'couplings; use "constrained", "embedded" or "maximal"'
            )
        super().__init__(machine)
        self.model = TreeModel(machine)
        nv = machine.nv
        self.sizes = {"x": machine.nx, "v": nv, "a": nv, "force": nv, "eta": nv, "eta_rate": nv}
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
            "input_matrix": Quantity(("x",), self._input_matrix),
            "input_bias": Quantity(("x", "v"), self._input_bias),
            **linearise.quantities(self.model),
        }

    def quantity(self, name: str) -> Quantity:
        """Return the recipe of a quantity: also `jacobian:FRAME`, `coriolis:NAME`, `mass:euler`.

        `mass:euler(eta)` and `coriolis:euler(eta, eta_rate)` are those in roll, pitch and yaw, see
        `framefree.motion.tree.euler`.
        """
        kind, _, which = name.partition(":")
        if name == "mass:euler":
            return Quantity(("eta",), self._euler_mass)
        if name == "coriolis:euler":
            return Quantity(("eta", "eta_rate"), self._euler_coriolis)
        if kind == "coriolis" and which:
            return Quantity(("x", "v"), lambda x, v: self._named_coriolis(which, x, v))
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
        force = self.model.at(x, v).inverse(ca.SX(v.shape[0], 1))
        return {"bias": self._vector(force)}

    def _gravity(self, x: Matrix) -> Outputs:
        return {"gravity": self._vector(self.model.at(x).gravity_force)}

    def _forward(self, x: Matrix, v: Matrix, force: Matrix) -> Outputs:
        return {"a": self._vector(self.model.at(x, v).forward(force))}

    def _inverse(self, x: Matrix, v: Matrix, a: Matrix) -> Outputs:
        return {"force": self._vector(self.model.at(x, v).inverse(a))}

    def _coriolis(self, x: Matrix, v: Matrix) -> Outputs:
        state = self.model.at(x, v)
        if any(added is not None for added in forces.added_masses(self.machine)):
            return self._named_coriolis("skew", x, v)
        rates = coriolis.subspace_rates(state.links, state.motion, x, v)
        C = coriolis.recursive(state.links, state.motion, self.model.inertias, rates)
        return {"coriolis": self._square(C)}

    def _named_coriolis(self, which: str, x: Matrix, v: Matrix) -> Outputs:
        state = self.model.at(x, v)
        if which in coriolis.BODY_FACTORS:
            C = coriolis.by_bodies(which, self.model.inertias, state.motion, state.link_jacobians)
        elif which == "printed":
            C = coriolis.printed(self.model.inertias, state.motion, state.link_jacobians)
        elif which == "quasi":
            # Rotors resist accelerations and nothing else, also those of balls that turn.
            rotors = ca.diagcat(ca.SX(0, 0), *(link.armature for link in state.links))
            C = coriolis.quasi(state.mass - rotors, x, v, self.machine.rate_matrix(x))
        elif which == "christoffel":
            self._refuse_groups()
            C = coriolis.christoffel(state.mass, x, v)
        else:
            names = ", ".join(coriolis.NAMES)
            raise MachineError(f"`{which}` is not the name of a Coriolis matrix; choose: {names}")
        return {"coriolis": self._square(C)}

    def _euler_mass(self, eta: Matrix) -> Outputs:
        T = euler.velocity_map(self.machine, eta)
        return {"mass": self._square(T.T @ self.model.at(self._euler_x(eta)).mass @ T)}

    def _euler_coriolis(self, eta: Matrix, eta_rate: Matrix) -> Outputs:
        T = euler.velocity_map(self.machine, eta)
        T_dot = ca.reshape(ca.jtimes(ca.vec(T), eta, eta_rate), *T.shape)
        x, v = self._euler_x(eta), T @ eta_rate
        C = self._coriolis(x, v)["coriolis"].value
        return {"coriolis": self._square(T.T @ (self.model.at(x).mass @ T_dot + C @ T))}

    def _euler_x(self, eta: Matrix) -> Matrix:
        return euler.configuration(self.machine, eta)

    def _refuse_groups(self) -> None:
        groups = [joint.name for joint in self.machine.joints if not joint.kind.vector]
        if groups:
            raise MachineError(
                "Christoffel symbols need coordinates with dx/dt = v; these joints have none: "
                + ", ".join(f"`{name}`" for name in groups)
            )

    def _jacobian(self, frame: str, x: Matrix, v: Matrix | None, which: int) -> Outputs:
        jacobian = self.model.at(x, v).jacobian(frame)[which]
        return {"jacobian": Output(jacobian, (6, self.machine.nv))}

    def _frame_pose(self, frame: str, x: Matrix) -> Outputs:
        return {"pose": Output(self.model.at(x).frame_pose(frame), (4, 4))}

    def _body_pose(self, x: Matrix) -> Outputs:
        rows = [ca.vec(ca.densify(G).T).T for G in self.model.at(x).poses]
        return {"pose": Output(_rows(rows, 16), (len(rows), 4, 4))}

    def _body_velocity(self, x: Matrix, v: Matrix) -> Outputs:
        rows = [xi.T for xi in self.model.at(x, v).twists]
        return {"velocity": Output(_rows(rows, 6), (len(rows), 6))}

    def _body_acceleration(self, x: Matrix, v: Matrix, a: Matrix) -> Outputs:
        rows = [xi.T for xi in self.model.at(x, v).accelerations(a)]
        return {"acceleration": Output(_rows(rows, 6), (len(rows), 6))}

    def _energy(self, x: Matrix, v: Matrix) -> Outputs:
        state = self.model.at(x, v)
        potential = forces.potential(state.bodies, x)
        return {"kinetic": Output(state.kinetic, ()), "potential": Output(potential, ())}

    def _dissipation(self, x: Matrix, v: Matrix) -> Outputs:
        return {"dissipation": Output(forces.dissipation(self.model.at(x, v).bodies, v), ())}

    def _power(self, x: Matrix, v: Matrix, force: Matrix) -> Outputs:
        passive = forces.passive_power(self.model.at(x, v).bodies, v)
        return {"power": Output(ca.dot(v, force) + passive, ())}

    def _momentum(self, x: Matrix, v: Matrix) -> Outputs:
        linear, angular, centroidal = forces.momentum(self.model.at(x, v).bodies)
        return {
            "linear": Output(linear, (3,)),
            "angular": Output(angular, (3,)),
            "centroidal": Output(centroidal, (3,)),
        }

    def _joint_wrench(self, x: Matrix, v: Matrix, force: Matrix) -> Outputs:
        state = self.model.at(x, v)
        wrenches = state.joint_wrenches(state.forward(force))
        rows = [
            ca.vertcat(link.to_joint @ wrench.force, link.to_joint @ wrench.moment).T
            for link, wrench in zip(state.links, wrenches, strict=True)
        ]
        return {"wrench": Output(_rows(rows, 6), (len(rows), 6))}

    def _input_matrix(self, x: Matrix) -> Outputs:
        B = inputs.input_matrix(self.model.at(x))
        return {"B": Output(B, (self.machine.nv, self.machine.nu))}

    def _input_bias(self, x: Matrix, v: Matrix) -> Outputs:
        return {"bias": self._vector(inputs.input_bias(self.model.at(x, v)))}

    def _vector(self, value: Matrix) -> Output:
        return Output(value, (self.machine.nv,))

    def _square(self, value: Matrix) -> Output:
        return Output(value, (self.machine.nv, self.machine.nv))


def _rows(rows: list[Matrix], width: int) -> Matrix:
    return ca.vertcat(*rows) if rows else ca.SX(0, width)
