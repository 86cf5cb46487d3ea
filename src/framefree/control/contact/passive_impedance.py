"""Impedance of a frame whose energy is counted: a passivity margin that holds for sampled control.

`Impedance` is passive as long as it is evaluated all the time. A law that is sampled every T and
whose command acts k periods late is not [Colgate1997]: its springs and dampers give energy, the
more the stiffer the world is. Here the energy is counted [Hannaford2002] where it is exact. A force
tau that is held over a period does the work tau . (q' - q) on the joints, whatever happens in it.
With P = 1/2 e . K e of the spring, the weight's potential U of the model, and d the damping that
the joints surely have,

    A' = min(A - tau . dq + U(q') - U(q) + dq . d dq / T + (reference), P + margin),  dq = q' - q

is what the law may still give. The damping counts because the joints turn at least that much into
heat in a period (by Cauchy's inequality); `reference` is what a moving reference puts into the
spring and the damper. The force of spring, damper and null space is scaled down by s so that, at
any joint speeds within `speed`, what it can do before it is counted does not exceed A:

    s T sum |tau_i| speed_i + (the same of commands on their way) + (weight) <= A

So A stays positive, and with it, for every two moments t1 < t2, the work of the machine on what it
touches is limited, whatever that is:

    work(t1, t2) <= 1/2 v . M v + P + margin  at t1,  + what the reference supplied

The kinetic energy is that of the machine. Saturation does not matter, since forces count as they
act. `overdraft` is how far A ever was below zero: 0 while joints stay within `speed`, and as long
as damping of the joints, or the margin, makes up for the held weight, which does the work
-1/2 dq . U'' dq (2 k + 1) too much in each period. The margin that holds is `margin + overdraft`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from framefree.control.impedance import Impedance
from framefree.control.law import Command, ControlError, Law, Timing
from framefree.control.shared.allocation import UNITS
from framefree.control.shared.frame_error import FrameError, frame_error, frame_signals
from framefree.control.shared.gains import vector_gain
from framefree.control.shared.limits import clipped
from framefree.machine import Machine
from framefree.machine.part import set_field

Matrix = Any


@dataclass(frozen=True, eq=False)
class PassiveImpedance(Law):
    """A spring and a damper to the reference of a frame, with a margin of passivity in joules.

    The frame keeps the inertia that the machine has there. Needs references "FRAME.pose" and
    "FRAME.twist". Signals: `e` (6), `V`, `V_rate`, `energy_left` (A), `scale` (s), `overdraft`,
    `supplied`, `unrealised`.

    Parameters
    ----------
    machine : Machine
        Without loops, on plain joints (hinges and sliders), with motors whose force depends on
        their inputs alone.
    frame : str
    stiffness, damping, null_damping, null_stiffness, posture, singular :
        See `Impedance`.
    margin : float
        J: energy that the law may give beyond what is stored, at any time again.
    speed : number or (nv,), optional
        Speeds that no joint exceeds, rad/s or m/s; by default the `velocity_limit` of each joint.
    joint_damping : number or (nv,)
        d, N s/m or Nm s/rad: damping that the joints of the plant surely have.
    period, delay : float, int
        As the loop has them; `simulate` sets them.
    """

    machine: Machine
    frame: str
    stiffness: Any
    damping: Any
    margin: float
    speed: Any = None
    joint_damping: Any = 0.0
    null_damping: Any = None
    null_stiffness: Any = None
    posture: Any = None
    singular: float = 0.02
    period: float = 0.0
    delay: int = 0

    units: ClassVar[Mapping[str, str]] = {
        "e": "m, rad",
        "V": "J",
        "V_rate": "W",
        "energy_left": "J",
        "overdraft": "J",
        "supplied": "J",
        **UNITS,
    }

    def __post_init__(self) -> None:
        machine = self.machine
        self._check_machine()
        if not (np.ndim(self.margin) == 0 and 0 < self.margin < np.inf):
            raise ControlError(f"`margin` must be a positive number, J, got {self.margin!r}")
        nv, names = machine.nv, machine.v_names
        if self.speed is None:
            set_field(self, "speed", self._speed_limits())
        set_field(self, "speed", vector_gain(self.speed, nv, "speed", of=names))
        damping = vector_gain(self.joint_damping, nv, "joint_damping", zero=True, of=names)
        set_field(self, "joint_damping", damping)
        self.inner  # noqa: B018  its own checks

    def _speed_limits(self) -> np.ndarray:
        machine = self.machine
        limits = np.concatenate([np.abs(joint.velocity_limit) for joint in machine.joints])
        open_ended = [n for n, v in zip(machine.v_names, limits, strict=True) if not np.isfinite(v)]
        if open_ended:
            raise ControlError(
                "the margin holds for joint speeds within a bound: give `speed`, or a "
                f"`velocity_limit` to {', '.join(f'`{name}`' for name in open_ended)}"
            )
        return limits

    def _check_machine(self) -> None:
        machine = self.machine
        if machine.closed:
            raise ControlError(
                f"PassiveImpedance needs a machine without loops and couplings; `{machine.name}` "
                "has some"
            )
        other = [joint.name for joint in machine.joints if not joint.kind.vector]
        if other:
            raise ControlError(
                "PassiveImpedance needs plain joints, on which a held force does the work "
                f"tau . (q' - q); not so on {', '.join(f'`{name}`' for name in other)}"
            )
        x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
        state, u = self.inner.model.at(x, v), ca.SX.sym("u", machine.nu)
        given = self.inner.allocation.given(state.tree, u)
        if ca.depends_on(given, ca.vertcat(x, v)):
            raise ControlError(
                f"PassiveImpedance needs motors whose force is held over a period; on "
                f"`{machine.name}` it depends on position or velocity"
            )

    @cached_property
    def inner(self) -> Impedance:
        """The impedance without a count of its energy."""
        return Impedance(
            self.machine, self.frame, self.stiffness, self.damping,
            null_damping=self.null_damping, null_stiffness=self.null_stiffness,
            posture=self.posture, singular=self.singular,
        )  # fmt: skip

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the reference signals."""
        return frame_signals(self.frame)[:2]

    def timed(self, timing: Timing) -> "PassiveImpedance":
        """Return the law for a control period and a delay."""
        return replace(self, period=timing.period, delay=timing.delay)

    # ------------------------------------------------------------------ memory

    @cached_property
    def _sizes(self) -> dict[str, int]:
        """What is remembered: numbers of each."""
        nv, commands = self.machine.nv, self.delay + 1
        return {
            "begun": 1, "left": 1, "overdraft": 1, "supplied": 1, "potential": 1,
            "x": self.machine.nx, "forces": nv * commands, "reserved": commands, "pose": 16,
        }  # fmt: skip

    @property
    def memory(self) -> np.ndarray:
        """Nothing yet."""
        return np.zeros(sum(self._sizes.values()))

    def _remembered(self, memory: Matrix) -> dict[str, Matrix]:
        ends = np.cumsum([0, *self._sizes.values()]).tolist()
        return dict(zip(self._sizes, ca.vertsplit(ca.SX(memory), ends), strict=True))

    # ------------------------------------------------------------------ the law

    def control(
        self, t: Matrix, x: Matrix, v: Matrix, reference: Mapping[str, Matrix], memory: Matrix
    ) -> Command:
        """Return the inputs within what may be given, and the count."""
        inner, allocation = self.inner, self.inner.allocation
        state = inner.model.at(x, v, t)
        full = inner.control(t, x, v, reference, ca.SX(0, 1))
        holding = clipped(self.machine, allocation(state, state.holding).u)
        wanted = clipped(self.machine, full.u)
        known = self._remembered(memory)
        count = self._counted(state, reference, known)
        whole = allocation.given(state.tree, wanted)
        acting = whole - allocation.given(state.tree, holding)
        at_most = self.period * ca.dot(ca.fabs(acting), ca.DM(self.speed))
        free = count["left"] - ca.sum1(known["reserved"][1:, :]) - self._weight_slip(state)
        scale = ca.if_else(at_most > 0, ca.fmin(ca.fmax(free / at_most, 0), 1), 1)
        u = holding + scale * (wanted - holding)
        force = allocation.given(state.tree, u)
        signals = {
            "e": full.signals["e"],
            "V": full.signals["V"],
            "V_rate": full.signals["V_rate"] - ca.dot(v, whole - force),
            "energy_left": count["left"],
            "scale": scale,
            "overdraft": count["overdraft"],
            "supplied": count["supplied"],
            "unrealised": full.signals["unrealised"] + whole - force,
        }
        following = {
            **count,
            "begun": ca.SX(1),
            "x": x,
            "forces": ca.vertcat(known["forces"][self.machine.nv :, :], force),
            "reserved": ca.vertcat(known["reserved"][1:, :], scale * at_most),
            "pose": ca.vec(ca.SX(reference[self.needs[0]])),
        }
        return Command(u, signals, ca.vertcat(*(following[name] for name in self._sizes)))

    def _counted(
        self, state: Any, reference: Mapping[str, Matrix], known: dict[str, Matrix]
    ) -> dict[str, Matrix]:
        """Return what is left after the last period, and what the count remembers."""
        T, error = self.period, frame_error(state.frame(self.frame), self.frame, reference)
        spring = self._spring(error.e)
        moved = self._supplied(state, error, reference, known)
        potential, dq = state.tree.potential, state.tree.x - known["x"]
        work = ca.dot(known["forces"][: self.machine.nv, :], dq)
        heat = ca.dot(dq, ca.DM(self.joint_damping) * dq) / T if T else ca.SX(0)
        most = spring + self.margin
        left = known["left"] - work + potential - known["potential"] + heat + moved
        begun = known["begun"] > 0
        left = ca.if_else(ca.logic_and(begun, T > 0), ca.fmin(left, most), most)
        return {
            "left": left,
            "overdraft": ca.fmax(known["overdraft"], -left),
            "supplied": known["supplied"] + ca.if_else(begun, moved, 0),
            "potential": potential,
        }

    def _supplied(
        self, state: Any, error: FrameError, reference: Mapping[str, Matrix], known: dict
    ) -> Matrix:
        """Return what the motion of the reference put into spring and damper in the last period.

        The spring's share is the mean of that at the places of the frame before and after.
        """
        pose, twist = self.needs
        poses = ca.reshape(known["pose"], 4, 4), reference[pose]
        before = self.inner.model.at(known["x"], ca.SX(self.machine.nv, 1))
        share = self.period * ca.dot(error.y_d, ca.DM(self.inner.damping) @ error.y)
        for E in (before.frame(self.frame), state.frame(self.frame)):
            old, new = (
                self._spring(frame_error(E, self.frame, {pose: G, twist: ca.SX(6, 1)}).e)
                for G in poses
            )
            share += (new - old) / 2
        return share

    def _spring(self, e: Matrix) -> Matrix:
        return ca.dot(e, ca.DM(self.inner.stiffness) @ e) / 2

    def _weight_slip(self, state: Any) -> Matrix:
        """Return the work (J) that a held weight may do too much until the next count."""
        slope = ca.fabs(ca.jacobian(state.holding, state.tree.x))
        way = self.period * ca.DM(self.speed)
        return (self.delay + 0.5) * ca.dot(way, slope @ way)
