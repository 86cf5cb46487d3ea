"""What a port law commands, added up body by body."""

from typing import Any, NamedTuple

import casadi as ca

from framefree.control.port.bodies import command, gather, joint_command, spread
from framefree.control.port.body_gains import BodyGains
from framefree.control.port.realise import has_joint_part
from framefree.control.port.sweeps import BodyChain, NearestVelocity
from framefree.machine import Machine
from framefree.motion.loops import BodyMath, inwards, passive_wrenches, summed
from framefree.motion.spatial import Matrix


class PortCommand(NamedTuple):
    """What a port law commands, body by body.

    Attributes
    ----------
    wrenches, s : list of (6)
        tau_c and nu - nu_r in body axes.
    joint_forces : list of (nv) or None
        What rotors, springs, damping and friction of the joints need beside.
    V, lost : scalars
        Lyapunov function, and s^T Kd s.
    reference : NearestVelocity
    """

    wrenches: list[Any]
    s: list[Any]
    joint_forces: list[Any]
    V: Any
    lost: Any
    reference: NearestVelocity

    def with_joint_force(self, machine: Machine, force: Matrix) -> "PortCommand":
        """Return the command with a further force (nv) on the joints."""
        if not force.nnz():
            return self
        total = list(self.joint_forces)
        for i, joint in enumerate(machine.joints):
            if joint.nv:
                own = force[machine.v_slice[joint.name], :]
                total[i] = own if total[i] is None else total[i] + own
        return self._replace(joint_forces=total)


class CommandTotal:
    """Adds up a command body by body."""

    def __init__(self, chain: BodyChain, machine: Machine) -> None:
        self.chain, self.machine = chain, machine
        self.passive = passive_wrenches(
            chain.tape,
            machine,
            chain.placed,
            lambda link: (link.pose.matrix, link.twist.vector),
            [link.to_body for link in chain.tape.model.links],
        )
        self.wrenches: list[Any] = []
        self.s: list[Any] = []
        self.joints: list[Any] = []
        self.V: Any = None
        self.lost: Any = None

    def add(self, i: int, desired: NearestVelocity) -> None:
        """Take in body i."""
        chain, tape = self.chain, self.chain.tape
        known = tape.call(
            BodyMath.known, i, chain.placed[i].pose, chain.placed[i].twist, self.passive[i]
        )
        twist, rate = desired.velocity.twists[i], desired.rate.twists[i]
        tau, s, own, lost = tape.call(command, i, chain.placed[i], known, twist, rate)
        tape.forget(known, self.passive[i])
        force = None
        if has_joint_part(self.machine, i):
            rates = desired.velocity.rates[i], desired.rate.rates[i]
            force, more = tape.call(joint_command, i, chain.x[i], chain.v[i], *rates)
            own = summed(tape, own, more)
        self.V, self.lost = summed(tape, self.V, own), summed(tape, self.lost, lost)
        self.wrenches.append(tau)
        self.s.append(s)
        self.joints.append(force)

    def couple(self, kd: BodyGains) -> None:
        """Take in what bodies feel of the errors of others, where Kd has blocks between them."""
        if not kd.between:
            return
        for i, more in enumerate(kd.cross_terms(self.s)):
            if more is not None:
                self.wrenches[i] = self.wrenches[i] - more
                self.lost = self.lost + ca.dot(self.s[i], more)


def joint_forces(chain: BodyChain, asked: PortCommand) -> list[Any]:
    """Return ``T^T tau_c`` of a command, joint by joint (nv each)."""
    force: list[Any] = [None] * chain.count

    def visit(i: int, carried: Any) -> Any:
        force[i], passed = chain.tape.call(
            gather, i, chain.x[i], chain.placed[i], asked.wrenches[i], carried
        )
        return (passed,)

    inwards(chain.tape, visit)
    pairs = zip(force, asked.joint_forces, strict=True)
    return [summed(chain.tape, own, further) for own, further in pairs]


def port_wrenches(chain: BodyChain, asked: PortCommand) -> list[Any]:
    """Return the command as wrenches on the bodies alone (6 each, body axes)."""
    tape, total = chain.tape, list(asked.wrenches)
    for i, force in enumerate(asked.joint_forces):
        if force is None:
            continue
        own, back = tape.call(spread, i, chain.x[i], chain.placed[i], force)
        total[i] = summed(tape, total[i], own)
        parent = chain.parents[i]
        if parent >= 0:
            on_body = tape.call(BodyMath.to_body, parent, back)
            total[parent] = summed(tape, total[parent], on_body)
    return total
