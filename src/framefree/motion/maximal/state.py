"""One symbolic state of the maximal formulation, with all that is derived from it, on demand."""

from collections.abc import Sequence
from functools import cached_property

import casadi as ca

from framefree.geometry import se3
from framefree.machine.values import constant
from framefree.motion import forces
from framefree.motion.maximal.graph import Connection, Elimination, Solution
from framefree.motion.maximal.kinematics import Kinematics, MaximalModel, stack
from framefree.motion.maximal.rows import Rows
from framefree.motion.spatial import Matrix, Twist, Wrench
from framefree.motion.tree import recursion
from framefree.motion.tree.coriolis import BODY_FACTORS


class MaximalState:
    """A state (x, v) of a `MaximalModel`. Everything is computed when first asked for."""

    def __init__(self, model: MaximalModel, x: Matrix, v: Matrix) -> None:
        self.model, self.machine, self.links = model, model.machine, model.links
        self.x, self.v = x, v
        self.at = Kinematics(model, x, v)
        self.rows = Rows(self.at)

    # ------------------------------------------------------------------ loads

    @cached_property
    def gravity_wrenches(self) -> list[Matrix]:
        """Weight of every body, in body axes."""
        g = ca.SX(constant(self.machine.gravity))
        return [
            ca.SX(body.moments.matrix6) @ ca.vertcat(se3.rotation(G).T @ g, ca.SX(3, 1))
            for body, G in zip(self.machine.bodies, self.at.poses, strict=True)
        ]

    @cached_property
    def gyroscopic_wrenches(self) -> list[Matrix]:
        """``ad_xi^T M xi`` of every body, in body axes; that of added mass counts as passive."""
        found = []
        for body, xi in zip(self.machine.bodies, self.at.twists, strict=True):
            momentum = ca.SX(body.moments.matrix6) @ xi
            found.append(-Twist.of(xi).cross_wrench(Wrench.of(momentum)).vector)
        return found

    @cached_property
    def passive_wrenches(self) -> list[Matrix]:
        """What springs, dampers and fluid exert on every body, in body axes."""
        return [
            ca.SX(6, 1) if wrench is None else ca.SX(wrench)
            for wrench in forces.body_wrenches(self.at.bodies)
        ]

    @cached_property
    def known_wrenches(self) -> list[Matrix]:
        """Everything that acts on the bodies beside joints and port, in body axes."""
        parts = (self.gravity_wrenches, self.gyroscopic_wrenches, self.passive_wrenches)
        return [sum(wrenches, ca.SX(6, 1)) for wrenches in zip(*parts, strict=True)]

    @cached_property
    def resistance(self) -> Matrix:
        """Passive joint forces (nv) that stand on the left: springs, damping, friction."""
        return forces.joint_resistance(self.machine, self.at.joint_x, self.at.joint_v)

    # ------------------------------------------------------------------ solving

    @cached_property
    def system(self) -> Elimination:
        """The KKT system of this configuration."""
        connections = [
            Connection(link.parent, link.v, step, d, inertia, link.armature)
            for link, step, d, inertia in zip(
                self.links, self.at.steps, self.at.directions, self.model.tree.inertias, strict=True
            )
        ]
        return Elimination(connections, self.rows.border)

    def solve(self, force: Matrix, joint_force: Matrix) -> Solution:
        """Solve for wrenches on the bodies (6N) and motor forces (nv)."""
        wrenches = [
            w + known for w, known in zip(self.at.split(force), self.known_wrenches, strict=True)
        ]
        return self.system.solve(
            self.at.to_links(wrenches), joint_force - self.resistance, self.at.biases
        )

    def respond(self, force: Matrix) -> Matrix:
        """Return ``Phi_c force`` (6N x k): acceleration for wrenches alone, nothing else acting."""
        drive = ca.SX(self.machine.nv, force.shape[1])
        return self.at.of_links(
            self.system.solve(self.at.to_links(self.at.split(force)), drive, None).accelerations
        )

    def joint_forces(self, acceleration: Matrix, force: Matrix) -> tuple[Matrix, list[Matrix]]:
        """Motor forces (nv) for body accelerations, and joint wrenches in link axes."""
        a = [
            step.twist_into(Twist.of(one)).vector
            for step, one in zip(self.model.on_body, self.at.split(acceleration), strict=True)
        ]
        wrenches = self.at.to_links(
            [w + known for w, known in zip(self.at.split(force), self.known_wrenches, strict=True)]
        )
        inertias = self.model.tree.inertias
        needed = [
            Wrench.of(inertia.times(Twist.of(one)).vector - wrench)
            for inertia, one, wrench in zip(inertias, a, wrenches, strict=True)
        ]
        passed = recursion.over_parents(
            self.links, needed, lambda i, w: self.at.steps[i].wrench_out(w), Wrench.plus
        )
        motors = []
        for i, link in enumerate(self.links):
            rate = self.at.directions[i].W.T @ (a[i] - self._carried_over(i, a) - self.at.biases[i])
            motors.append(self.at.directions[i].S.T @ passed[i].vector + link.armature @ rate)
        return stack(motors) + self.resistance, [wrench.vector for wrench in passed]

    def _carried_over(self, i: int, accelerations: Sequence[Matrix]) -> Matrix:
        parent = self.links[i].parent
        if parent < 0:
            return ca.SX(6, 1)
        return self.at.steps[i].twist_into(Twist.of(accelerations[parent])).vector

    # ------------------------------------------------------------------ matrices in body axes

    @cached_property
    def armature(self) -> Matrix:
        """Rotor inertias (nv x nv), diagonal."""
        return ca.diagcat(*(link.armature for link in self.links))

    @cached_property
    def mass(self) -> Matrix:
        """M (6N x 6N): bodies, and rotors G^T A G."""
        rotors = self.rows.rate_rows.T @ self.armature @ self.rows.rate_rows
        return ca.diagcat(*self.model.inertias) + rotors

    @cached_property
    def coriolis(self) -> Matrix:
        """C (6N x 6N) with dM/dt - 2C skew: Gam(xi_b) of the bodies, rotors G^T A dG/dt."""
        bodies = [
            BODY_FACTORS["skew"](M, xi)
            for M, xi in zip(self.model.inertias, self.at.twists, strict=True)
        ]
        return (
            ca.diagcat(*bodies) + self.rows.rate_rows.T @ self.armature @ self.rows.rate_rows_rate
        )

    @cached_property
    def stacked_jacobian(self) -> Matrix:
        """T (6N x nv) with v = T (joint rates), in body axes."""
        nv = self.machine.nv
        found: list[Matrix] = []
        for i, link in enumerate(self.links):
            T = ca.SX(6, nv)
            if link.parent >= 0:
                T = ca.vertcat(*self.at.steps[i].twist_into(Twist.of(found[link.parent])))
            T[:, link.v] = self.at.directions[i].S
            found.append(T)
        return self.at.of_links(found)

    # ------------------------------------------------------------------ energy

    @cached_property
    def kinetic(self) -> Matrix:
        """Kinetic energy (J), of rotors and added mass too."""
        total = ca.dot(self.at.joint_v, self.armature @ self.at.joint_v)
        for M, xi in zip(self.model.inertias, self.at.twists, strict=True):
            total += ca.dot(xi, M @ xi)
        return total / 2
