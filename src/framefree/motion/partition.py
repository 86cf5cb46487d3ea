"""The equations of motion as a sum over the bodies of a machine [Dastranj2026, sec. II].

With the body Jacobian J_b of body b in the velocities of the formulation, its inertia M_b (added
mass included), its twist xi_b = J_b v and Gam_b as in `framefree.motion.body_factors`:

    Gamma_b     = J_b^T M_b J_b                               sum_b Gamma_b = M
    C_b         = J_b^T (M_b dJ_b/dt + Gam_b J_b)             sum_b C_b = C
    g_b         = -J_b^T m_b (R_b^T g, c_b x R_b^T g)         sum_b g_b = gravity
    h_b         = C_b v + g_b - J_b^T w_b + r_b               sum_b h_b = bias

w_b is what springs, dampers, interactions and the fluid exert on the body; r_b are springs, damping
and friction of the joint that moves it. The rotor of that joint counts to the body as well, so that
nothing is left over. Every share has dGamma_b/dt = C_b + C_b^T, and on the numbers of a body only
its own share depends.
"""

from functools import cached_property

import casadi as ca

from framefree.geometry import se3
from framefree.machine.values import constant
from framefree.motion import forces
from framefree.motion.body_factors import BODY_FACTORS
from framefree.motion.spatial import Matrix
from framefree.motion.state import Jacobian, State


class BodyPartition:
    """What every body contributes to the equations of motion at a state, in body order.

    Parameters
    ----------
    state : State
        Of any formulation whose velocities are independent, or those of the bodies themselves.
    """

    def __init__(self, state: State) -> None:
        self.state = state

    @cached_property
    def masses(self) -> list[Matrix]:
        """``Gamma_b`` (nv x nv)."""
        parts = zip(self._inertias, self._jacobians, self._rotors, strict=True)
        return [J.value.T @ (M @ J.value) + S.T @ (rotor @ S) for M, J, (rotor, S, _) in parts]

    @cached_property
    def coriolis(self) -> list[Matrix]:
        """``C_b`` (nv x nv), with ``dGamma_b/dt = C_b + C_b^T``."""
        matrices = []
        for M, J, (rotor, S, S_rate) in zip(
            self._inertias, self._jacobians, self._rotors, strict=True
        ):
            factor = BODY_FACTORS["skew"](M, J.value @ self.state.v)
            matrices.append(J.value.T @ (M @ J.rate + factor @ J.value) + S.T @ (rotor @ S_rate))
        return matrices

    @cached_property
    def gravities(self) -> list[Matrix]:
        """``g_b`` (nv): the force that holds the body against gravity."""
        return [
            -J.value.T @ weight for J, weight in zip(self._jacobians, self._weights, strict=True)
        ]

    @cached_property
    def biases(self) -> list[Matrix]:
        """``h_b`` (nv): the body's share of the force at zero acceleration."""
        state, machine = self.state, self.state.machine
        acting = forces.body_wrenches(state.bodies)
        resistance = forces.joint_resistance(machine, state.joint_x, state.joint_v)
        shares = []
        for i, (M, J, body) in enumerate(
            zip(self._inertias, self._jacobians, machine.bodies, strict=True)
        ):
            xi = J.value @ state.v
            rigid = ca.SX(constant(body.moments.matrix6))
            # The gyroscopic wrench of added mass is among those of the fluid, which may move.
            wrench = M @ (J.rate @ state.v) - se3.little_adjoint(xi).T @ (rigid @ xi)
            wrench -= self._weights[i]
            if acting[i] is not None:
                wrench -= acting[i]
            rotor, S, S_rate = self._rotors[i]
            at_joint = rotor @ (S_rate @ state.v) + resistance[self._joint_rows[i], :]
            shares.append(J.value.T @ wrench + S.T @ at_joint)
        return shares

    @cached_property
    def kinetics(self) -> list[Matrix]:
        """Kinetic energy (J)."""
        v = self.state.v
        return [ca.dot(v, share @ v) / 2 for share in self.masses]

    # ------------------------------------------------------------------ parts

    @cached_property
    def _jacobians(self) -> list[Jacobian]:
        return [self.state.jacobian(body.name) for body in self.state.machine.bodies]

    @cached_property
    def _inertias(self) -> list[Matrix]:
        """Inertia (6x6) of every body in its own axes, added mass included."""
        machine = self.state.machine
        pairs = zip(machine.bodies, forces.added_masses(machine), strict=True)
        rigid = ((ca.SX(constant(body.moments.matrix6)), added) for body, added in pairs)
        return [M if added is None else M + added for M, added in rigid]

    @cached_property
    def _weights(self) -> list[Matrix]:
        """Wrench (6) of gravity on every body, in its axes."""
        gravity = ca.SX(constant(self.state.machine.gravity))
        return [
            ca.SX(constant(body.moments.matrix6))[:, :3] @ (se3.rotation(G).T @ gravity)
            for body, G in zip(self.state.machine.bodies, self.state.poses, strict=True)
        ]

    @cached_property
    def _joint_rows(self) -> list[list[int]]:
        """Velocities of the joint that moves every body."""
        machine = self.state.machine
        slices = (machine.v_slice[joint.name] for joint in machine.joints)
        return [list(range(s.start, s.stop)) for s in slices]

    @cached_property
    def _rotors(self) -> list[tuple[Matrix, Matrix, Matrix]]:
        """Rotor inertias of the joint of every body, its rows of the joint Jacobian, their rate."""
        state = self.state
        E, rate = state.joint_jacobian, state.joint_jacobian_rate
        return [
            (ca.diag(ca.SX(constant(joint.armature))), E[rows, :], rate[rows, :])
            for joint, rows in zip(state.machine.joints, self._joint_rows, strict=True)
        ]
