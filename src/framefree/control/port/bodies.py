"""What the port laws do with one body and the joint that carries it.

The laws are sweeps over the bodies (`sweeps.py`) made of the steps here, each a function of one
body's constants and of what its neighbours hand over, in the axes of its link. A step is plain
arithmetic on casadi matrices: a `tape` runs it at once, or traces it once for all alike bodies.

Velocities that the joints allow are found by elimination, from the tips inwards, as in
`framefree.motion.maximal.graph`: with loads h_i on the bodies and the wrench w_i that joint i
passes from its parent p,

    M_i nu_i = h_i + w_i - sum_children X_c^T w_c,      nu_i = X_i nu_p + S_i y_i
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca

from framefree.geometry import se3
from framefree.machine import Joint
from framefree.motion.maximal.graph import Factor, Given
from framefree.motion.maximal.joints import directions, dual_rate
from framefree.motion.spatial import Inertia, Matrix, Step, Twist, Wrench, solve_symmetric
from framefree.motion.tree.coriolis import BODY_FACTORS
from framefree.motion.tree.links import Link


class Pose(NamedTuple):
    """Pose of a link seen from the world."""

    R: Matrix
    r: Matrix

    @property
    def matrix(self) -> Matrix:
        """The same as 4x4."""
        return se3.pose(self.R, self.r)


class Placed(NamedTuple):
    """A link at a state: its step from the parent, its pose and its twist."""

    step: Step
    pose: Pose
    twist: Twist


@dataclass(frozen=True)
class BodyMath:
    """A body with its joint: constants, and the steps of the laws.

    Attributes
    ----------
    link : Link
        With its own places of x and v: they begin at 0.
    joint : Joint
    inertia : Inertia
        In link axes, added mass included.
    damping : Matrix
        Kd (6x6) of the law, in link axes.
    gravity : (3,)
    """

    link: Link
    joint: Joint
    inertia: Inertia
    damping: Matrix
    gravity: Matrix

    @property
    def on_body(self) -> Step:
        """Pose of the body's frame on the link's."""
        return Step(se3.rotation(self.link.to_body), se3.position(self.link.to_body))

    @property
    def rotors(self) -> bool:
        """Whether a rotor turns with the joint."""
        return not self.link.armature.is_zero()

    # ------------------------------------------------------------------ state

    def place(self, x: Matrix, v: Matrix, parent: Placed | None) -> tuple[Step, Pose, Twist]:
        """Return where the link is and how it moves: what `Placed` holds."""
        step = self.link.step(x)
        joint = Twist.of(self.link.subspace(x) @ v)
        if parent is None:
            return step, Pose(step.rotation, step.r), Twist.of(joint.vector)
        R, r = parent.pose
        twist = step.twist_into(parent.twist).plus(joint)
        return step, Pose(R @ step.rotation, r + R @ step.r), twist

    def body_pose(self, placed: Placed) -> Matrix:
        """Return the pose (4x4) of the body's frame."""
        return se3.compose(placed.pose.matrix, self.link.to_body)

    def body_twist(self, twist: Twist) -> Matrix:
        """Return a twist (6) of the link in body axes."""
        return self.on_body.twist_into(twist).vector

    def to_link(self, wrench: Matrix) -> Matrix:
        """Return a wrench (6) on the body's frame in link axes."""
        return self.on_body.wrench_out(Wrench.of(wrench)).vector

    def twist_to_link(self, twist: Matrix) -> Matrix:
        """Return a twist (6) of the body's frame in link axes."""
        G = se3.inverse(self.link.to_body)
        return Step(se3.rotation(G), se3.position(G)).twist_into(Twist.of(twist)).vector

    def known(self, placed: Placed, passive: Matrix | None) -> Matrix:
        """Return what acts beside joints and port: weight, gyroscopic wrench, and `passive` (6)."""
        rigid = self.link.inertia
        g = placed.pose.R.T @ self.gravity
        load = rigid.times(Twist(g, ca.SX(3, 1)))
        load = load.minus(placed.twist.cross_wrench(rigid.times(placed.twist))).vector
        return load if passive is None else load + passive

    # ------------------------------------------------------------------ elimination

    def factor(self, x: Matrix, placed: Placed, carried: Matrix | None) -> tuple[Factor, Matrix]:
        """Eliminate the body; return also what its parent feels of its inertia (6x6)."""
        M = self.inertia if carried is None else self.inertia.plus(Inertia.of(carried))
        factor = Factor.of(directions(self.link, x), self.link.armature, M.matrix)
        return factor, placed.step.inertia_out(Inertia.of(factor.shown)).matrix

    def mobility(self, placed: Placed, factor: Factor, parent: Matrix | None) -> Matrix:
        """Return the velocity of the link per wrench on it (6x6), the rest following."""
        S, W, N = factor.directions
        own = S @ solve_symmetric(factor.D, S.T)
        if parent is None:
            return own
        carried = ca.vertcat(*placed.step.twist_into(Twist.of(parent)))
        carried = ca.vertcat(*placed.step.twist_into(Twist.of(carried.T)))
        spread = (N - S @ factor.Kz) @ N.T
        if factor.Ky is not None:
            spread = spread + S @ factor.Ky @ W.T
        return own + spread @ carried @ spread.T

    def inward(
        self,
        placed: Placed,
        factor: Factor,
        load: Matrix | None,
        carried: Matrix | None,
        drive: Matrix | None,
        bias: Matrix | None,
    ) -> tuple[Given, Matrix]:
        """Eliminate the body from the right side; return also the load (6) on its parent."""
        total = ca.SX(6, 1) if load is None else load
        total = total if carried is None else total + carried
        drive = ca.SX(self.link.kind.nv, 1) if drive is None else drive
        given = factor.inward(total, drive, bias)
        passed = placed.step.wrench_out(Wrench.of(given.passed)).vector
        return given._replace(passed=ca.SX(6, 1)), passed

    def inward_offset(self, *values: Any) -> tuple[Given, Matrix]:
        """Return the same with what `outward_twist` needs alone."""
        given, passed = self.inward(*values)
        return given._replace(blocked=ca.SX(*given.blocked.shape)), passed

    def outward(
        self,
        placed: Placed,
        factor: Factor,
        given: Any,
        parent: Matrix | None,
        drive: Matrix | None,
        bias: Matrix | None,
    ) -> tuple[Matrix, Matrix, Matrix]:
        """Return twist (6), joint rate (nv) and joint wrench (6) of the solution."""
        carried = ca.SX(6, 1)
        if parent is not None:
            carried = placed.step.twist_into(Twist.of(parent)).vector
        carried = carried if bias is None else carried + bias
        drive = ca.SX(self.link.kind.nv, 1) if drive is None else drive
        return factor.outward(carried, given, drive)

    def outward_twist(self, *values: Any) -> Matrix:
        """Return the twist (6) alone."""
        return self.outward(*values)[0]

    # ------------------------------------------------------------------ rates

    def rotor_momentum(
        self, x: Matrix, v: Matrix, placed: Placed, own: Any, parent: Any
    ) -> tuple[Matrix, Matrix]:
        """Return ``A W^T (nu - X nu_p)`` (nv) of wished velocities, and its rate.

        `own` and `parent` hold a twist (6) and its rate; parent None is the world.
        """
        W, joint = directions(self.link, x).W, Twist.of(self.link.subspace(x) @ v)
        relative, rate = own
        if parent is not None:
            carried = placed.step.twist_into(Twist.of(parent[0]))
            relative = relative - carried.vector
            rate = rate - placed.step.twist_into(Twist.of(parent[1])).vector
            rate = rate + joint.cross(carried).vector
        found = W.T @ rate
        if not self.link.constant_subspace:
            found = found + dual_rate(self.link, x, v).T @ relative
        return self.link.armature @ (W.T @ relative), self.link.armature @ found

    def turning(
        self,
        x: Matrix,
        v: Matrix,
        placed: Placed,
        rate: Matrix,
        wrench: Matrix,
        parent: Matrix | None,
    ) -> tuple[Matrix | None, Matrix, Matrix | None]:
        """Differentiate the joint: bias (6), load (6) on the parent, drive (nv).

        d/dt (X nu_p + S y) = X dnu_p + S dy + bias,     bias = -ad_(S v) X nu_p + dS y
        -d/dt (X^T w) = -X^T dw + load,                  load = X^T ad_(S v)^T w
        d/dt (S^T w) = S^T dw - drive,                   drive = -dS^T w
        """
        joint = Twist.of(self.link.subspace(x) @ v)
        load = Wrench.zero().minus(joint.cross_wrench(Wrench.of(wrench)))
        bias = drive = None
        if parent is not None:
            bias = placed.step.twist_into(Twist.of(parent)).cross(joint).vector
        if not self.link.constant_subspace:
            dS = self.link.subspace_rate(x, v)
            drive, along = -dS.T @ wrench, dS @ rate
            bias = along if bias is None else bias + along
        return bias, placed.step.wrench_out(load).vector, drive

    # ------------------------------------------------------------------ command

    def command(
        self, placed: Placed, known: Matrix, desired: Matrix, rate: Matrix
    ) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """Return port wrench and s (6 each, body axes), 1/2 s^T M s, and s^T Kd s.

            tau = M dnu_r - known - Gam(xi) s - Kd s

        which is M dnu_r + Gam(xi) nu_r - F_gJ - Kd s, because known + Gam(xi) xi = F_gJ.
        """
        M, xi = self.inertia.matrix, placed.twist.vector
        s = xi - desired
        braked = self.damping @ s
        tau = M @ rate - known - BODY_FACTORS["skew"](M, xi) @ s - braked
        on_body = Step(*_inverse(self.on_body)).wrench_out(Wrench.of(tau)).vector
        return on_body, self.body_twist(Twist.of(s)), ca.dot(s, M @ s) / 2, ca.dot(s, braked)

    def joint_command(self, x: Matrix, v: Matrix, desired: Matrix, rate: Matrix) -> Any:
        """Return force (nv) of the joint for rotors and passive forces, and the rotors' part of V.

        The force is ``A dy_r`` and what overcomes spring, damping and friction of the joint.
        """
        joint = self.joint
        force = ca.SX(joint.damping_force(v))
        if joint.has_spring:
            force += joint.spring_force(x)
        if joint.has_friction:
            force += joint.friction_force(v)
        gap = v - desired
        return force + self.link.armature @ rate, ca.dot(gap, self.link.armature @ gap) / 2

    def spread(self, x: Matrix, placed: Placed, force: Matrix) -> tuple[Matrix, Matrix]:
        """Return the wrenches of a joint force on the body and on its parent's link (6 each)."""
        wrench = Wrench.of(ca.densify(directions(self.link, x).W @ force))
        on_body = Step(*_inverse(self.on_body)).wrench_out(wrench).vector
        return on_body, -placed.step.wrench_out(wrench).vector

    def to_body(self, wrench: Matrix) -> Matrix:
        """Return a wrench (6) on the link in body axes."""
        return Step(*_inverse(self.on_body)).wrench_out(Wrench.of(wrench)).vector

    def gather(
        self, x: Matrix, placed: Placed, tau: Matrix, carried: Matrix | None
    ) -> tuple[Matrix, Matrix]:
        """Return the joint force (nv) that amounts to all wrenches further out, and those inwards.

        ``T^T tau`` body by body; tau in body axes, `carried` in link axes.
        """
        wrench = self.to_link(tau)
        wrench = wrench if carried is None else wrench + carried
        force = self.link.subspace(x).T @ wrench
        return ca.densify(force), placed.step.wrench_out(Wrench.of(wrench)).vector


def _inverse(step: Step) -> tuple[Matrix, Matrix]:
    R = step.rotation.T
    return R, -(R @ step.r)


def add(body: BodyMath, a: Any, b: Any) -> Any:
    """Return a sum, of matrices."""
    return a + b
