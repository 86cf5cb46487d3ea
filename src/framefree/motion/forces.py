"""Forces that a machine has by itself: springs, dampers, interactions, tendons, friction, fluid.

They are the same for all formulations.

Bodies enter by their poses (4x4, seen from the world) and body twists, in the machine's order.
All wrenches returned here *act on* the bodies, in body axes; joint forces and energies have the
signs of

    M a + c + resistance = force + J^T wrenches,     power = d/dt (kinetic + potential)
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import casadi as ca

from framefree.geometry import se3
from framefree.machine import Frame, Machine, PairForce
from framefree.machine.values import constant, constant_pose
from framefree.motion import tendons
from framefree.motion.balls import WorldWrenches, on_a_ball
from framefree.motion.spatial import Inertia, Matrix, SpatialWrench, Step, Twist


class Bodies:
    """Poses and twists of all bodies, and of frames on them, at one state and time."""

    def __init__(
        self,
        machine: Machine,
        poses: Sequence[Matrix],
        twists: Sequence[Matrix],
        time: Matrix = 0,
    ) -> None:
        self.machine, self.poses, self.twists, self.time = machine, poses, twists, time

    def pose(self, frame: Frame) -> Matrix:
        """Pose of a frame seen from the world."""
        index = self.machine.body_index[frame.body]
        on_body = constant_pose(frame.pose)
        return on_body if index < 0 else se3.compose(self.poses[index], on_body)

    def twist(self, frame: Frame) -> Matrix:
        """Twist of a frame in its own axes."""
        index = self.machine.body_index[frame.body]
        if index < 0:
            return ca.SX(6, 1)
        return ca.vertcat(*_on_body(frame).twist_into(Twist.of(self.twists[index])))

    def relative(self, part: Any) -> tuple[Frame, Frame, Matrix]:
        """Return the frames a and b of a part that joins two frames, and G_ab."""
        a, b = self.machine.frame(part.frame_a), self.machine.frame(part.frame_b)
        return a, b, se3.compose(se3.inverse(self.pose(a)), self.pose(b))

    def relative_twist(self, a: Frame, b: Frame, G_ab: Matrix) -> Matrix:
        """Return xi_ab, the twist of b relative to a in b's axes."""
        step = Step(se3.rotation(G_ab), se3.position(G_ab))
        carried = step.twist_into(Twist.of(ca.densify(ca.SX(self.twist(a)))))
        return self.twist(b) - ca.vertcat(*carried)


def body_wrenches(bodies: Bodies, left_out: Sequence[PairForce] = ()) -> list[Matrix | None]:
    """Wrench (6) that all of these exert on every body; None where nothing does.

    Without the interactions that are left out.
    """
    total: list[Matrix | None] = [None] * len(bodies.machine.bodies)
    for frame, wrench in (
        pair for kind in (_conservative, _lossy, _of_tendons) for pair in kind(bodies)
    ):
        _add(bodies.machine, total, frame, wrench)
    acting = [force for force in bodies.machine.interactions if force not in left_out]
    for force in acting:
        if not on_a_ball(force):
            at = pair_motion(bodies, force)
            for frame, wrench in _pair(at.a, at.b, at.pose, -at.wrench):
                _add(bodies.machine, total, frame, wrench)
    return _with_balls(bodies, total, [force for force in acting if on_a_ball(force)])


def newton_slopes(bodies: Bodies, v: Matrix) -> tuple[list[PairForce], Matrix, Matrix]:
    """Return the interactions that know slopes for Newton's method, and these slopes.

    Of the forces (nv) by x and by v, along the velocities v.
    """
    found, by_x, by_v = [], ca.SX(v.shape[0], v.shape[0]), ca.SX(v.shape[0], v.shape[0])
    for force in bodies.machine.interactions:
        a, b, G = bodies.relative(force)
        xi = bodies.relative_twist(a, b, G)
        slopes = force.newton_slopes(G, xi, bodies.time)
        if slopes is not None:
            found.append(force)
            J = ca.jacobian(xi, v)
            by_x += J.T @ slopes[0] @ J
            by_v += J.T @ slopes[1] @ J
    return found, by_x, by_v


def drag(bodies: Bodies, v: Matrix) -> Matrix | None:
    """Return how strongly interactions resist other velocities v (nv x nv); None if none does."""
    total = None
    for force in bodies.machine.interactions:
        a, b, G = bodies.relative(force)
        xi = bodies.relative_twist(a, b, G)
        C = force.drag(G, xi, bodies.time)
        if C is not None:
            J = ca.jacobian(xi, v)
            total = J.T @ C @ J + (0 if total is None else total)
    return total


class PairMotion(NamedTuple):
    """How the two frames of an interaction lie and move, and what acts on frame b."""

    a: Frame
    b: Frame
    pose: Matrix
    twist: Matrix
    wrench: Matrix


def pair_motion(bodies: Bodies, force: PairForce) -> PairMotion:
    """Return an interaction at a state."""
    a, b, G = bodies.relative(force)
    xi = bodies.relative_twist(a, b, G)
    wrench = ca.densify(ca.SX(force.wrench_at(G, xi, bodies.time)))
    return PairMotion(a, b, G, xi, wrench)


def _with_balls(
    bodies: Bodies, total: list[Matrix | None], balls: Sequence[Any]
) -> list[Matrix | None]:
    """Add what contacts with balls do to the bodies."""
    if not balls:
        return total
    wrenches = WorldWrenches(bodies)
    for contact in balls:
        wrenches.add_contact(contact)
    return [_sum(known, wrenches.in_body_axes(i)) for i, known in enumerate(total)]


def _sum(one: Matrix | None, other: Matrix | None) -> Matrix | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


def interaction_power(bodies: Bodies) -> Matrix:
    """Power (W) that interactions give beside what changes their energy: xi . w + dV/dt."""
    given = ca.SX(0)
    for force in bodies.machine.interactions:
        at = pair_motion(bodies, force)
        given += ca.dot(at.twist, at.wrench)
        given += force.energy_rate(at.pose, at.twist, bodies.time)
    return given


def interaction_power_about_rest(bodies: Bodies) -> Matrix:
    """Power (W) of what interactions exert beyond what they exert at rest in the same place."""
    given = ca.SX(0)
    for force in bodies.machine.interactions:
        at = pair_motion(bodies, force)
        still = force.wrench_at(at.pose, ca.SX(6, 1), bodies.time)
        given += ca.dot(at.twist, at.wrench - still)
    return given


def _conservative(bodies: Bodies) -> Iterator[tuple[Frame, Matrix]]:
    machine = bodies.machine
    for spring in machine.springs:
        a, b, G = bodies.relative(spring)
        yield from _pair(a, b, G, spring.wrench(G))
    for body in _immersed(machine):
        frame = machine.frame(body.frame)
        R = se3.rotation(bodies.pose(frame))
        yield frame, -machine.fluid.buoyancy(body, R, machine.gravity)


def _lossy(bodies: Bodies) -> Iterator[tuple[Frame, Matrix]]:
    machine = bodies.machine
    for damper in machine.dampers:
        a, b, G = bodies.relative(damper)
        yield from _pair(a, b, G, damper.wrench(bodies.relative_twist(a, b, G)))
    for body in _immersed(machine):
        frame = machine.frame(body.frame)
        G, xi = bodies.pose(frame), bodies.twist(frame)
        drag = body.drag(machine.fluid.relative_twist(G, xi, bodies.time), machine.fluid)
        yield frame, -(drag + machine.fluid.added_mass_bias(body, G, xi, bodies.time))


def _of_tendons(bodies: Bodies) -> Iterator[tuple[Frame, Matrix]]:
    """Yield what the tendons over frames do to them."""
    for tendon in bodies.machine.tendons:
        if tendon.frames and tendons.acts(tendon):
            at = tendons.over_frames(bodies, tendon)
            force = tendons.resistance(tendon, at)
            yield from ((frame, -force * wrench) for frame, wrench in at.on_frames)


def _pair(a: Frame, b: Frame, G_ab: Matrix, resisting: Matrix) -> Iterator[tuple[Frame, Matrix]]:
    """Frame b feels minus the resisting wrench, frame a its reaction."""
    yield b, -resisting
    step = Step(se3.rotation(G_ab), se3.position(G_ab))
    yield a, ca.vertcat(*step.wrench_out(SpatialWrench.of(resisting)))


def _add(machine: Machine, total: list[Matrix | None], frame: Frame, wrench: Matrix) -> None:
    index = machine.body_index[frame.body]
    if index < 0:
        return
    on_body = ca.vertcat(*_on_body(frame).wrench_out(SpatialWrench.of(wrench)))
    total[index] = on_body if total[index] is None else total[index] + on_body


def added_masses(machine: Machine) -> list[Matrix | None]:
    """Return the added mass (6x6) of every body in its own frame; None where there is none."""
    total: list[Matrix | None] = [None] * len(machine.bodies)
    for body in _immersed(machine):
        frame = machine.frame(body.frame)
        index = machine.body_index[frame.body]
        if index >= 0:
            inertia = Inertia.of(ca.SX(constant(body.added_mass)))
            added = _on_body(frame).inertia_out(inertia).matrix
            total[index] = added if total[index] is None else total[index] + added
    return total


def joint_resistance(machine: Machine, x: Matrix, v: Matrix) -> Matrix:
    """Springs and friction of joints, and of tendons over them (nv); it stands on the left."""
    parts = []
    for joint in machine.joints:
        q, rate = x[machine.x_slice[joint.name], :], v[machine.v_slice[joint.name], :]
        force = joint.damping_force(rate)
        if joint.has_spring:
            force += joint.spring_force(q)
        if joint.has_friction:
            force += joint.friction_force(rate)
        parts.append(force)
    total = ca.SX(ca.vertcat(*parts)) if parts else ca.SX(0, 1)
    return total + tendon_resistance(machine, x, v)


def tendon_resistance(machine: Machine, x: Matrix, v: Matrix) -> Matrix:
    """Springs and friction of tendons over joints, as joint forces (nv) that stand on the left."""
    total = ca.SX(v.shape[0], 1)
    for tendon in machine.tendons:
        if tendon.coordinates and tendons.acts(tendon):
            at = tendons.over_joints(machine, tendon, x, v)
            total += at.on_joints * tendons.resistance(tendon, at)
    return total


def potential(bodies: Bodies, x: Matrix) -> Matrix:
    """Potential energy (J) of gravity, springs, interactions, tendons and buoyancy."""
    machine = bodies.machine
    total = ca.SX(0)
    for body, G in zip(machine.bodies, bodies.poses, strict=True):
        moments = body.moments
        weighted = se3.rotation(G) @ moments.first + moments.total * se3.position(G)
        total -= ca.dot(ca.SX(machine.gravity), weighted)
    for spring in machine.springs:
        total += spring.potential(bodies.relative(spring)[2])
    for force in machine.interactions:
        if force.stores:
            total += force.energy_at(bodies.relative(force)[2], bodies.time)
    for body in _immersed(machine):
        G = bodies.pose(machine.frame(body.frame))
        total += machine.fluid.buoyancy_potential(body, G, machine.gravity)
    for joint in machine.joints:
        if joint.has_spring:
            total += joint.spring_potential(x[machine.x_slice[joint.name], :])
    for tendon in machine.tendons:
        if tendon.has_spring:
            at = tendons.motion(tendon, bodies, x, ca.SX(machine.nv, 1))
            total += tendon.spring_potential(at.length)
    return total


def dissipation(bodies: Bodies, x: Matrix, v: Matrix) -> Matrix:
    """Power (W) turned into heat by dampers, interactions, friction and drag (in the fluid)."""
    machine = bodies.machine
    lost = _joint_losses(machine, v) + _tendon_losses(bodies, x, v)
    for damper in machine.dampers:
        xi = bodies.relative_twist(*bodies.relative(damper))
        lost += ca.dot(xi, damper.wrench(xi))
    for force in machine.interactions:
        at = pair_motion(bodies, force)
        lost += force.dissipation_at(at.pose, at.twist, bodies.time)
    for body in _immersed(machine):
        frame = machine.frame(body.frame)
        G = bodies.pose(frame)
        xi = machine.fluid.relative_twist(G, bodies.twist(frame), bodies.time)
        lost += ca.dot(xi, body.drag(xi, machine.fluid))
    return lost


def passive_power(bodies: Bodies, x: Matrix, v: Matrix) -> Matrix:
    """Power (W) that friction, dampers, interactions and a moving fluid give to the machine."""
    given = interaction_power(bodies) - _joint_losses(bodies.machine, v)
    given -= _tendon_losses(bodies, x, v)
    for frame, wrench in _lossy(bodies):
        given += ca.dot(bodies.twist(frame), wrench)
    return given


def _joint_losses(machine: Machine, v: Matrix) -> Matrix:
    lost = ca.SX(0)
    for joint in machine.joints:
        rate = v[machine.v_slice[joint.name], :]
        lost += ca.dot(rate, joint.damping_force(rate))
        if joint.has_friction:
            lost += ca.dot(rate, joint.friction_force(rate))
    return lost


def _tendon_losses(bodies: Bodies, x: Matrix, v: Matrix) -> Matrix:
    lost = ca.SX(0)
    for tendon in bodies.machine.tendons:
        if tendon.lossy:
            at = tendons.motion(tendon, bodies, x, v)
            lost += at.rate * tendon.lost_force(at.length, at.rate)
    return lost


def _immersed(machine: Machine) -> tuple[Any, ...]:
    return machine.fluid.immersed if machine.fluid is not None else ()


def _on_body(frame: Frame) -> Step:
    pose = constant_pose(frame.pose)
    return Step(se3.rotation(pose), se3.position(pose))


def momentum(bodies: Bodies) -> tuple[Matrix, Matrix, Matrix]:
    """Return momenta in world axes (3 each): linear, angular about the origin and the mass center.

    Of the bodies alone: rotors and the fluid's added mass do not count.
    """
    total, weighted, mass = SpatialWrench.zero(), ca.SX(3, 1), ca.SX(0)
    for body, G, xi in zip(bodies.machine.bodies, bodies.poses, bodies.twists, strict=True):
        moments, R, r = body.moments, se3.rotation(G), se3.position(G)
        own = SpatialWrench.of(ca.SX(constant(moments.matrix6)) @ xi)
        total = total.plus(Step(R, r).wrench_out(own))
        weighted += R @ moments.first + moments.total * r
        mass += moments.total
    return total.force, total.moment, total.moment - ca.cross(weighted / mass, total.force)
