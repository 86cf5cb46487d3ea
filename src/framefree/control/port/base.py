"""What the port laws have in common.

For all three, with a reference velocity nu_r that the joints allow (J nu_r = 0) and s = nu - nu_r,

    tau_c = M dnu_r + Cor(nu) nu_r - F_gJ - Kd s,     V = 1/2 s^T M s,     dV/dt = -s^T Kd s

[Eslami2025, eq. 24 and 33, corrected: errata E0-4, E0-8, E0-9 and E0-11]. dnu_r is the total time
derivative of nu_r. Against what they do not know the laws take a correction
(`framefree.control.unknown`), which acts on the joints' velocities. To add a law, subclass
`PortLaw` and give `ask`: loads, drives and task whose solution is nu_r, with their rates
(`sweeps.py`). Loops and couplings are rows of J like joints; what they leave is found in
`closed.py`.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from framefree.control.law import AnyLaw, Command, ControlError, LawBlocks, Timing
from framefree.control.port.bodies import rotor_momentum
from framefree.control.port.closed import ClosedChain
from framefree.control.port.command import (
    CommandTotal,
    PortCommand,
    joint_forces,
    port_wrenches,
)
from framefree.control.port.damping import body_dampings
from framefree.control.port.jointless import jointless_velocity
from framefree.control.port.realise import VirtualPort
from framefree.control.port.sweeps import (
    BodyChain,
    LoadWithRate,
    VelocityRequest,
)
from framefree.control.port.swept import SweptPortLaw, sweepable
from framefree.control.shared.allocation import UNITS, Allocated
from framefree.control.shared.model import Model
from framefree.control.unknown.corrected import CorrectedLaw
from framefree.control.unknown.correction import UNITS as CORRECTION_UNITS
from framefree.control.unknown.correction import Correction, ReferenceMotion, stated
from framefree.kernel.loops import Block, Calls
from framefree.machine import Machine
from framefree.machine.part import set_field
from framefree.motion.loops import (
    DirectTape,
    LoopTape,
)
from framefree.motion.spatial import Matrix
from framefree.motion.tree import Tree


@dataclass(frozen=True, eq=False)
class PortLaw(CorrectedLaw):
    """Base of the port laws; see the top of this file.

    Signals: `V`, `V_rate` as stated, `s` (bodies, 6) in body axes, and `unrealised` (nv), the joint
    forces that the actuators do not give; `V_rate` counts them.

    Parameters
    ----------
    machine : Machine
        The model.
    damping : float, (6,), (6, 6), (N, 6, 6), (6N,), (6N, 6N), or mapping of str to the first three
        Kd in body axes: for every body alike, for each of N bodies, over all of them as one
        symmetric matrix, or by body, with the others' under "". A number is a rate in 1/s:
        Kd = damping M.
    floor : float
        Share of a body's largest moment of inertia below which Kd = damping M does not take that
        about any axis: a thin rod resists hardly any moment about itself, and what is learned or
        observed of that moment would spin it away. 0 leaves M as it is.
    ignore_joints : bool
        Whether the reference velocity is found as if there were no joints, M^-1 in place of Phi_c.
        That is what is wrong with the laws printed in [Eslami2025] (errata E0-8, E0-9, E0-11); all
        else, errors of poses among it, is as here. For comparison only: V does not fall as stated.
    unknown : Correction, optional
        How what is not known is met: `IntegralAction`, `MomentumObserver` or `Adaptation`.
    independent : sequence of str, optional
        Of a machine with loops or couplings, the velocities that the others follow from; by default
        they are chosen, joints with actuators first (`framefree.control.shared.model`).
    """

    machine: Machine
    damping: Any = 10.0
    ignore_joints: bool = False
    unknown: Correction | None = field(default=None, kw_only=True)
    floor: float = field(default=0.0, kw_only=True)
    independent: Sequence[str] | None = field(default=None, kw_only=True)

    units: ClassVar[Mapping[str, str]] = {"V": "J", "V_rate": "W", **UNITS, **CORRECTION_UNITS}

    def __post_init__(self) -> None:
        set_field(self, "port", VirtualPort(self.machine, self.independent))
        kd = body_dampings(self.machine, self.damping, self.floor)
        set_field(self, "kd", kd)
        set_field(self, "dampings", kd.own)
        if self.ignore_joints and any(np.any(joint.armature) for joint in self.machine.joints):
            raise ControlError("`ignore_joints` knows no rotors: it needs armature 0")
        self.check_unknown()

    @abstractmethod
    def ask(self, chain: BodyChain, reference: Mapping[str, Any]) -> VelocityRequest:
        """Return what the reference velocity is to do, from the reference signals."""

    def body_key(self, body: str) -> Any:
        """Return what bodies must have in common to share code, as far as this law is concerned."""
        return None

    def timed(self, timing: Timing) -> AnyLaw:
        """Return the law; that of a long machine in a compiled step as loops over its bodies."""
        long = timing.native and self.unknown is None and not self.coupled
        long = long and sweepable(self.machine)
        return SweptPortLaw(self) if long else super().timed(timing)

    @property
    def coupled(self) -> bool:
        """Whether gains have blocks between bodies: then each feels errors of many others."""
        return bool(self.kd.between)  # type: ignore[attr-defined]

    @property
    def model(self) -> Model:
        """The law's machine in independent velocities."""
        return self.port.model  # type: ignore[attr-defined]

    @property
    def signal_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of all signals by name."""
        machine = self.machine
        return {"V": (), "V_rate": (), "s": (len(machine.bodies), 6), "unrealised": (self.model.n,)}

    def control(
        self, t: Matrix, x: Matrix, v: Matrix, reference: Mapping[str, Matrix], memory: Matrix
    ) -> Command:
        """Return the inputs at a state."""
        machine = self.machine
        chain = self._chain(x, v)
        asked = self.command(chain, {name: ca.SX(reference[name]) for name in self.needs})
        chosen = self.model.chosen
        w_r, dw_r = (ca.vertcat(*one.rates)[chosen, :] for one in asked.reference[:2])
        met = self.meet(x, v, memory, ReferenceMotion(w_r, dw_r))
        further = ca.SX(machine.nv, 1)
        further[chosen, :] = met.force
        asked = asked.with_joint_force(machine, further)
        inputs = self._inputs(chain, x, v, asked)
        sigma = v[chosen, :] - w_r
        change = met.change(sigma, inputs.u)
        signals = {
            **stated(asked.V, -asked.lost - ca.dot(sigma, inputs.unrealised), change),
            "s": ca.horzcat(*asked.s).T,
            **inputs.signals,
            **change.signals,
        }
        signals = {**signals, **self.signals(chain, asked)}
        return Command(inputs.u, signals, change.memory, change.rate)

    def _chain(self, x: Matrix, v: Matrix) -> BodyChain:
        """Return the bodies at a state of the joints."""
        machine = self.machine
        tape = DirectTape(Tree(machine.tree), self.dampings)  # type: ignore[attr-defined]
        names = [joint.name for joint in machine.joints]
        own_x = [x[machine.x_slice[name], :] for name in names]
        own_v = [v[machine.v_slice[name], :] for name in names]
        if not machine.closed:
            return BodyChain(tape, own_x, own_v)
        return ClosedChain(tape, own_x, own_v, self.model.at(x, v))

    def signals(self, chain: BodyChain, asked: PortCommand) -> dict[str, Matrix]:
        """Return further signals of a law."""
        return {}

    def command(self, chain: BodyChain, signals: Mapping[str, Any]) -> PortCommand:
        """Return the port command of the bodies on a tape."""
        ask = self.ask(chain, signals)
        total = CommandTotal(chain, self.machine)
        if self.ignore_joints:
            desired = jointless_velocity(chain, ask)
            for i in range(chain.count):
                total.add(i, desired)
        else:
            desired = chain.nearest(ask, total.add)
        total.couple(self.kd)  # type: ignore[attr-defined]
        return PortCommand(total.wrenches, total.s, total.joints, total.V, total.lost, desired)

    # ------------------------------------------------------------------ inputs

    def _inputs(self, chain: BodyChain, x: Matrix, v: Matrix, asked: PortCommand) -> Allocated:
        port: VirtualPort = self.port  # type: ignore[attr-defined]
        if port.full:
            u = port.inputs_of_bodies(port_wrenches(chain, asked))
            return Allocated(u, ca.SX(self.model.n, 1))
        return port.inputs_of_joints(x, v, ca.vertcat(*joint_forces(chain, asked)))

    def write_inputs(
        self, calls: Calls, chain: BodyChain, inputs: LawBlocks, asked: PortCommand
    ) -> list[Block]:
        """Append calls that find inputs; return the blocks of u, V_rate and `unrealised`."""
        tape: Any = chain.tape
        port: VirtualPort = self.port  # type: ignore[attr-defined]
        lost = calls.block(1)
        tape.write_into(lost, [asked.lost])
        if port.full:
            values, sizes = [port_wrenches(chain, asked)], [6 * chain.count]
        else:
            values = [joint_forces(chain, asked), asked.reference.velocity.rates]
            sizes = [self.machine.nv] * 2
        blocks = [calls.block(size) for size in sizes]
        for block, parts in zip(blocks, values, strict=True):
            tape.write_into(block, parts)
        given = [inputs.x, inputs.v, lost, *blocks]
        function = self._inputs_function
        outputs = [calls.block(function.numel_out(k)) for k in range(function.n_out())]
        calls.call(function, given, outputs)
        return outputs

    @cached_property
    def _inputs_function(self) -> ca.Function:
        """From x, v, s^T Kd s and what the bodies need to u, V_rate and `unrealised`."""
        port: VirtualPort = self.port  # type: ignore[attr-defined]
        machine, lost = self.machine, ca.SX.sym("lost")
        x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
        if port.full:
            tau = ca.SX.sym("tau", 6 * len(machine.bodies))
            u = port.inputs_of_bodies(ca.vertsplit(tau, 6))
            given, outputs = [tau], [u, -lost, ca.SX(machine.nv, 1)]
        else:
            force, v_r = ca.SX.sym("force", machine.nv), ca.SX.sym("v_r", machine.nv)
            found = port.inputs_of_joints(x, v, force)
            rate = -lost - ca.dot(v - v_r, found.unrealised)
            given, outputs = [force, v_r], [found.u, rate, found.unrealised]
        dense = [ca.densify(ca.SX(value)) for value in outputs]
        return ca.Function("inputs", [x, v, lost, *given], dense)


def rotor_drives(
    chain: BodyChain, machine: Machine, desired: list[Any]
) -> list[LoadWithRate | None]:
    """Return the momenta of rotors at desired twists: pairs of twist (6, link axes) and rate."""
    drives: list[LoadWithRate | None] = []
    for i, parent in enumerate(chain.parents):
        armature = machine.joints[i].armature
        if not (isinstance(armature, ca.SX) or np.any(armature)):
            drives.append(None)
            continue
        above = None if parent < 0 else desired[parent]
        pair = chain.tape.call(
            rotor_momentum, i, chain.x[i], chain.v[i], chain.placed[i], desired[i], above
        )
        drives.append(LoadWithRate(*pair))
    return drives


def looped(law: PortLaw, shapes: Mapping[str, tuple[int, int]]) -> Any:
    """Return a law for a long machine as a kernel that loops over its bodies.

    Parameters
    ----------
    law : PortLaw
    shapes : dict
        Rows and columns of every reference signal that it needs.

    Returns
    -------
    Kernel
        From x (nx), v (nv) and the reference signals (matrices by columns) to `tau` (6N, wrenches
        on the bodies in body axes), `V` and `V_rate`.
    """
    machine = law.machine
    if machine.closed:
        raise ControlError(
            f"a law as a loop over bodies needs a tree of bodies; `{machine.name}` has loops or "
            "couplings"
        )
    if len(machine.parameters):
        raise ControlError("a law as a loop over bodies needs a machine without tunable numbers")
    if law.coupled:
        raise ControlError("a law as a loop over bodies needs gains without blocks between bodies")
    if law.unknown is not None:
        raise ControlError("a law as a loop over bodies cannot have a correction (`unknown`)")
    keys = [law.body_key(body.name) for body in machine.bodies]
    tape = LoopTape("port_law", Tree(machine), law.dampings, keys)  # type: ignore[attr-defined]
    x, v = tape.input("x", (machine.nx,)), tape.input("v", (machine.nv,))
    signals = {}
    for name in law.needs:
        rows, columns = shapes[name]
        block = tape.input(name.replace(".", "_"), (rows * columns,))
        signals[name] = tape.value(block, rows, columns)
    joints = machine.joints
    own_x = [tape.value(x[machine.x_slice[joint.name]], joint.nx, 1) for joint in joints]
    own_v = [tape.value(v[machine.v_slice[joint.name]], joint.nv, 1) for joint in joints]
    chain = BodyChain(tape, own_x, own_v)
    asked = law.command(chain, signals)
    tape.output("tau", (6 * chain.count,), port_wrenches(chain, asked))
    tape.output("V", (1,), [asked.V])
    tape.output("V_rate", (1,), [tape.shared("negative", _negative, asked.lost)])
    return tape.calls.compile()


def _negative(value: Matrix) -> Matrix:
    return -value
