"""What the port laws do with one body and the joint that carries it.

The laws are sweeps over the bodies (`sweeps.py`) made of the steps here and of those of
`framefree.motion.loops`: functions of one body's constants and of what its neighbours hand over, in
the axes of its link. The constant matrix of the law, `body.own`, is Kd (6x6) in body axes.
"""

from typing import Any, NamedTuple

import casadi as ca

from framefree.motion.body_factors import BODY_FACTORS
from framefree.motion.elimination import BodyFactor, EliminatedLoad, directions, dual_rate
from framefree.motion.loops import BodyMath, LinkPose
from framefree.motion.spatial import Inertia, Matrix, SpatialWrench, Step, Twist, solve_symmetric


class PlacedLink(NamedTuple):
    """A link at a state: its step from the parent, its pose and its twist."""

    step: Step
    pose: LinkPose
    twist: Twist


def place(
    body: BodyMath, x: Matrix, v: Matrix, parent: PlacedLink | None
) -> tuple[Step, LinkPose, Twist]:
    """Return where the link is and how it moves: what `PlacedLink` holds."""
    step = body.link.step(x)
    joint = Twist.of(body.link.subspace(x) @ v)
    if parent is None:
        return step, LinkPose(step.rotation, step.r), Twist.of(joint.vector)
    R, r = parent.pose
    twist = step.twist_into(parent.twist).plus(joint)
    return step, LinkPose(R @ step.rotation, r + R @ step.r), twist


# ------------------------------------------------------------------ elimination


def factor(
    body: BodyMath, x: Matrix, step: Step, carried: Matrix | None, added: Matrix | None
) -> tuple[BodyFactor, Matrix]:
    """Eliminate the body with an inertia (6x6) `added` to its own; see `BodyMath.factor`."""
    if added is not None:
        carried = added if carried is None else carried + added
    return body.factor(x, step, carried)


def mobility(
    body: BodyMath, placed: PlacedLink, factor: BodyFactor, parent: Matrix | None
) -> Matrix:
    """Return the velocity of the link per wrench on it (6x6), the rest following."""
    S = factor.directions.S
    own = S @ solve_symmetric(factor.D, S.T)
    if parent is None:
        return own
    carried = ca.vertcat(*placed.step.twist_into(Twist.of(parent)))
    carried = ca.vertcat(*placed.step.twist_into(Twist.of(carried.T)))
    spread = _spread(factor)
    return own + spread @ carried @ spread.T


def carried_velocity(
    body: BodyMath, placed: PlacedLink, factor: BodyFactor, parent: Matrix
) -> Matrix:
    """Return the velocities (6 x k) of a link on which nothing acts, for those of its parent's."""
    return _spread(factor) @ placed.step.twist_into(Twist.of(parent)).vector


def _spread(factor: BodyFactor) -> Matrix:
    """Return how a link moves (6x6) with what its joint would give it if it were locked."""
    S, W, N = factor.directions
    spread = (N - S @ factor.Kz) @ N.T
    return spread if factor.Ky is None else spread + S @ factor.Ky @ W.T


def inward_offset(body: BodyMath, *values: Any) -> tuple[EliminatedLoad, Matrix]:
    """Eliminate the body from a right side, with what `outward_twist` needs alone."""
    load, passed = body.inward(*values)
    return load._replace(blocked=ca.SX(*load.blocked.shape)), passed


def outward(
    body: BodyMath,
    step: Step,
    factor: BodyFactor,
    load: EliminatedLoad,
    parent: Matrix | None,
    drive: Matrix | None,
    bias: Matrix | None,
) -> tuple[Matrix, Matrix, Matrix]:
    """Return twist (6), joint rate (nv) and joint wrench (6) of the solution."""
    drive = ca.SX(body.link.kind.nv, 1) if drive is None else drive
    return factor.outward(body.carried(step, parent, bias), load, drive)


def outward_twist(body: BodyMath, *values: Any) -> Matrix:
    """Return the twist (6) alone."""
    return outward(body, *values)[0]


# ------------------------------------------------------------------ rates


def rotor_momentum(
    body: BodyMath, x: Matrix, v: Matrix, placed: PlacedLink, own: Any, parent: Any
) -> tuple[Matrix, Matrix]:
    """Return ``A W^T (nu - X nu_p)`` (nv) of desired velocities, and its rate.

    `own` and `parent` hold a twist (6) and its rate; parent None is the world.
    """
    W, joint = directions(body.link, x).W, Twist.of(body.link.subspace(x) @ v)
    relative, rate = own
    if parent is not None:
        carried = placed.step.twist_into(Twist.of(parent[0]))
        relative = relative - carried.vector
        rate = rate - placed.step.twist_into(Twist.of(parent[1])).vector
        rate = rate + joint.cross(carried).vector
    change = W.T @ rate
    if not body.link.constant_subspace:
        change = change + dual_rate(body.link, x, v).T @ relative
    return body.link.armature @ (W.T @ relative), body.link.armature @ change


def turning(
    body: BodyMath,
    x: Matrix,
    v: Matrix,
    placed: PlacedLink,
    rate: Matrix,
    wrench: Matrix,
    parent: Matrix | None,
) -> tuple[Matrix | None, Matrix, Matrix | None]:
    """Differentiate the joint: bias (6), load (6) on the parent, drive (nv).

    d/dt (X nu_p + S y) = X dnu_p + S dy + bias,     bias = -ad_(S v) X nu_p + dS y
    -d/dt (X^T w) = -X^T dw + load,                  load = X^T ad_(S v)^T w
    d/dt (S^T w) = S^T dw - drive,                   drive = -dS^T w
    """
    joint = Twist.of(body.link.subspace(x) @ v)
    load = SpatialWrench.zero().minus(joint.cross_wrench(SpatialWrench.of(wrench)))
    bias = drive = None
    if parent is not None:
        bias = placed.step.twist_into(Twist.of(parent)).cross(joint).vector
    if not body.link.constant_subspace:
        dS = body.link.subspace_rate(x, v)
        drive, along = -dS.T @ wrench, dS @ rate
        bias = along if bias is None else bias + along
    return bias, placed.step.wrench_out(load).vector, drive


# ------------------------------------------------------------------ command


def command(
    body: BodyMath, placed: PlacedLink, known: Matrix, desired: Matrix, rate: Matrix
) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Return port wrench and s (6 each, body axes), 1/2 s^T M s, and s^T Kd s.

        tau = M dnu_r - known - Gam(xi) s - Kd s

    which is M dnu_r + Gam(xi) nu_r - F_gJ - Kd s, because known + Gam(xi) xi = F_gJ.
    """
    M, xi = body.inertia.matrix, placed.twist.vector
    s = xi - desired
    braked = body.on_body.inertia_out(Inertia.of(body.own)).matrix @ s
    tau = M @ rate - known - BODY_FACTORS["skew"](M, xi) @ s - braked
    twist = body.body_twist(Twist.of(s))
    return body.to_body(tau), twist, ca.dot(s, M @ s) / 2, ca.dot(s, braked)


def joint_command(body: BodyMath, x: Matrix, v: Matrix, desired: Matrix, rate: Matrix) -> Any:
    """Return force (nv) of the joint for rotors and passive forces, and the rotors' part of V.

    The force is ``A dy_r`` and what overcomes spring, damping and friction of the joint.
    """
    gap, force = v - desired, body.resistance(x, v)
    return force + body.link.armature @ rate, ca.dot(gap, body.link.armature @ gap) / 2


def spread(body: BodyMath, x: Matrix, placed: PlacedLink, force: Matrix) -> tuple[Matrix, Matrix]:
    """Return the wrenches of a joint force on the body and on its parent's link (6 each)."""
    wrench = ca.densify(directions(body.link, x).W @ force)
    return body.to_body(wrench), -placed.step.wrench_out(SpatialWrench.of(wrench)).vector


def gather(
    body: BodyMath, x: Matrix, placed: PlacedLink, tau: Matrix, carried: Matrix | None
) -> tuple[Matrix, Matrix]:
    """Return the joint force (nv) that amounts to all wrenches further out, and those inwards.

    ``T^T tau`` body by body; tau in body axes, `carried` in link axes.
    """
    wrench = body.to_link(tau)
    wrench = wrench if carried is None else wrench + carried
    force = body.link.subspace(x).T @ wrench
    return ca.densify(force), placed.step.wrench_out(SpatialWrench.of(wrench)).vector
