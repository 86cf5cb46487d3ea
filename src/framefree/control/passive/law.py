"""The passivity law on any base: what its variants share [Slotine1987, From2010].

With v = N w + drift (`framefree.control.passive.freedom`), reference velocities w_r, s = w - w_r,

    v_r = N w_r + drift,     s_v = v - v_r = N s
    f   = N^T (M dv_r/dt + C(x, v) v_r + D v_r + ...) - damping(s) - pull
    V   = 1/2 s^T N^T M N s + Ph
    dV/dt = -s . damping(s) - s_v^T D s_v - loss - s . unrealised

where pull and loss come from the potential Ph of what is followed, unrealised is what the actuators
do not give of f (`framefree.control.shared.allocation`), and C is one of the skew forms.
With another C the stated rate is wrong by 1/2 s_v^T (dM/dt - 2C) s_v. Fluid, gravity, springs and
friction are those of the machine; in a current, D and added mass act on relative velocities.
Against what it does not know a law takes a correction (`framefree.control.unknown`): V gets its
part, and what is left of an unknown force, d - d_estimated, adds s_v . (d - d_estimated) to dV/dt.

To add a law, subclass `PassiveLaw` and give ``needs``, ``symbols`` and ``follow``; ``first_own``
and ``own_rate`` where what is followed has states of its own, which are kept in the law's memory.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.law import Command, ControlError
from framefree.control.passive.freedom import Freedom, Whole
from framefree.control.shared.allocation import UNITS, Allocation
from framefree.control.shared.gains import vector_gain
from framefree.control.shared.input_map import rank
from framefree.control.shared.model import ActuatedState, at_configurations
from framefree.control.unknown.corrected import CorrectedLaw
from framefree.control.unknown.correction import UNITS as CORRECTION_UNITS
from framefree.control.unknown.correction import (
    Correction,
    ReferenceMotion,
    stated,
)
from framefree.machine import Machine, MachineError
from framefree.machine.part import set_field
from framefree.motion.spatial import Matrix
from framefree.motion.tree import Tree
from framefree.motion.tree.state import TreeState
from framefree.motion.velocity_terms import FORMS, coriolis_times, drag_times

DRAG = ("wanted", "met")


class CommandedState(NamedTuple):
    """A symbolic state beside its reference, as `PassiveLaw.follow` gets it.

    Attributes
    ----------
    state : TreeState
    N : (nv, n)
    drift : (nv)
        A symbol of its own, as its rate is known.
    reference : dict of str to matrix
    own : column
        States of the law's own, a symbol, too.
    """

    state: TreeState
    N: Matrix
    drift: Matrix
    reference: Mapping[str, Matrix]
    own: Matrix


class ReferenceVelocity(NamedTuple):
    """What the commanded velocities are to be, and the potential that draws them there.

    Attributes
    ----------
    velocity : (n)
        w_r.
    pull : (n)
        Gradient of the potential in w.
    potential, loss : scalar
        Ph (J), and what dV/dt has of it (W).
    signals : dict of str to matrix
    """

    velocity: Matrix
    pull: Matrix
    potential: Matrix
    loss: Matrix
    signals: Mapping[str, Matrix]


@dataclass(frozen=True, eq=False)
class PassiveLaw(CorrectedLaw):
    """Base of the passivity laws; see the top of this file.

    Signals: `V`, `V_rate` as stated, `s` (n), `force` (n) as asked for, `unrealised` (n), and what
    the variants add.

    Parameters
    ----------
    machine : Machine
    K : float or (n,)
        Damping of s: N s/m, Nm s/rad, one for every velocity that is commanded.
    freedom : Freedom
        Which velocities these are; default all.
    form : "skew", "kirchhoff" or "adjoint"
        The Coriolis matrix. The last is not skew and is there for comparison.
    drag : "wanted" or "met"
        Whether drag is made up for at v_r, so that what is left of it damps s, or at v, so that
        nothing is left; V is smooth then although quadratic drag is not.
    within_limits : bool
        Whether inputs are shared out within their limits; the force then keeps its direction where
        they cannot give all of it (`framefree.control.shared.direction`). Otherwise they are those
        of least norm, and the plant cuts what is too large.
    unknown : Correction, optional
        How what is not known is met: `IntegralAction`, `MomentumObserver` or `Adaptation`.
    """

    machine: Machine
    K: Any = 20.0
    freedom: Freedom = field(default_factory=Whole)
    form: str = "skew"
    drag: str = "wanted"
    within_limits: bool = False
    unknown: Correction | None = field(default=None, kw_only=True)

    units: ClassVar[Mapping[str, str]] = {"V": "J", "V_rate": "W", **UNITS, **CORRECTION_UNITS}

    def __post_init__(self) -> None:
        if self.machine.closed:
            raise ControlError(f"{self.name} needs a machine without loops and couplings")
        for name, known in (("form", FORMS), ("drag", DRAG)):
            if getattr(self, name) not in known:
                raise ControlError(
                    f"`{name}` of {self.name} must be one of {', '.join(known)}, "
                    f"got {getattr(self, name)!r}"
                )
        if not isinstance(self.freedom, Freedom):
            raise ControlError(
                f"`freedom` of {self.name} must be a Freedom such as Whole(), got {self.freedom!r}"
            )
        try:
            self.freedom.check(self.machine)
        except MachineError as error:
            raise ControlError(f"{type(self.freedom).__name__}: {error}") from None
        set_field(self, "K", self.gain("K"))
        self._check_inputs()
        self.check_unknown()

    @property
    def measures(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the sensors that tell how the base moves."""
        return self.freedom.measures

    # ------------------------------------------------------------------ coordinates and gains

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints that are commanded."""
        return self.freedom.independent(self.machine)

    @cached_property
    def places(self) -> list[int]:
        """Where w stands in v."""
        return self.freedom.commanded(self.machine)

    @cached_property
    def joint_places(self) -> list[int]:
        """Where all velocities of the joints stand in v that have any of w."""
        slices = [self.machine.v_slice[name] for name in self.joints]
        return [k for place in slices for k in range(place.start, place.stop)]

    @cached_property
    def places_in_joints(self) -> list[int]:
        """Where w stands among those."""
        return [self.joint_places.index(k) for k in self.places]

    @property
    def velocities(self) -> tuple[str, ...]:
        """Names of the velocities w that are commanded."""
        return tuple(self.machine.v_names[k] for k in self.places)

    def gain(self, name: str, *, zero: bool = False) -> np.ndarray:
        """Return a gain as (n,); raise where it is not positive or has another size."""
        names = self.velocities
        return vector_gain(getattr(self, name), len(names), name, self.name, zero=zero, of=names)

    def _check_inputs(self) -> None:
        machine, n = self.machine, len(self.places)
        x, rng = ca.SX.sym("x", machine.nx), np.random.default_rng(0)
        state = self._tree.at(x)
        B = ActuatedState(state, self.freedom.basis(state)).B
        samples = at_configurations(machine, x, B, machine.numeric.random(rng, 3))
        reached = min(map(rank, samples))
        if reached < n:
            raise ControlError(
                f"the actuators of `{machine.name}` reach {reached} of the {n} velocities that "
                f"{self.name} commands: it needs all, or a `freedom` that says which of them only "
                "follow, such as Underactuated()"
            )

    @cached_property
    def allocation(self) -> Allocation:
        """From forces on the commanded velocities to inputs."""
        return Allocation(self.model, limits="direction" if self.within_limits else False)

    @cached_property
    def _tree(self) -> Tree:
        return Tree(self.machine.tree)

    # ------------------------------------------------------------------ what variants give

    @abstractmethod
    def symbols(self) -> dict[str, tuple[Matrix, Matrix]]:
        """Return a symbol and its rate for every reference signal of `needs`."""

    @abstractmethod
    def follow(self, at: CommandedState) -> ReferenceVelocity:
        """Return what is followed at a state; its rate comes by differentiation."""

    def damping(self, at: CommandedState, s: Matrix) -> Matrix:
        """Return K s (n)."""
        return ca.DM(self.K) * s

    @property
    def first_own(self) -> np.ndarray:
        """First values of the states that what is followed has of its own; none by default."""
        return np.zeros(0)

    def own_rate(self, at: CommandedState) -> Matrix:
        """Return their rates at a state."""
        return ca.SX(0, 1)

    @property
    def memory(self) -> np.ndarray:
        """States of the law's own, then those of a correction."""
        return np.concatenate([self.first_own, super().memory])

    def first_memory(self, x: Matrix, v: Matrix) -> Matrix:
        """Return their first values."""
        return ca.vertcat(ca.DM(self.first_own), super().first_memory(x, v))

    # ------------------------------------------------------------------ the law

    def control(
        self, t: Matrix, x: Matrix, v: Matrix, reference: Mapping[str, Matrix], memory: Matrix
    ) -> Command:
        """Return the inputs at a state."""
        function, names = self.traced
        arguments = [x, v, *(reference[name] for name in (*self.needs, *self.measures))]
        arguments += [memory] if len(self.memory) else []
        if len(self.machine.parameters):
            arguments.append(self.machine.parameters.symbols)
        u, *values = function(*arguments)
        signals = dict(zip(names, values, strict=False))
        return Command(u, signals, *values[len(names) :])

    @cached_property
    def traced(self) -> tuple[ca.Function, tuple[str, ...]]:
        """From x, v and the reference signals to u and the signals, with their names.

        Readings of sensors come after the references, then the memory; its next value and its rate
        come after the signals.
        """
        machine = self.machine
        x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
        symbols = self.symbols()
        memory = ca.SX.sym("memory", len(self.memory))
        sizes = self.freedom.sizes(machine)
        measured = {name: ca.SX.sym(name, sizes[name]) for name in self.measures}
        state = self._tree.at(x, v)
        u, signals, following = self._traced(state, symbols, measured, memory)
        inputs = [x, v, *(symbols[name][0] for name in self.needs), *measured.values()]
        values = [u, *signals.values()]
        if len(self.memory):
            inputs.append(memory)
            values += following
        if len(machine.parameters):
            inputs.append(machine.parameters.symbols)
        outputs = [ca.densify(ca.SX(value)) for value in values]
        return ca.Function("law", inputs, outputs), tuple(signals)

    def _traced(
        self,
        state: TreeState,
        symbols: dict[str, tuple[Matrix, Matrix]],
        measured: Mapping[str, Matrix],
        memory: Matrix,
    ) -> tuple[Matrix, dict[str, Matrix], list[Matrix]]:
        machine, x, v = self.machine, state.x, state.v
        N = ca.SX(self.freedom.basis(state))
        x_rate = machine.rate_matrix(x) @ v
        N_rate = ca.reshape(ca.jtimes(ca.vec(ca.densify(N)), x, x_rate), *N.shape)
        drift, drift_rate = self.freedom.drift(state, N, measured) or (ca.SX(machine.nv, 1),) * 2
        held = ca.SX.sym("drift", machine.nv)
        own, rest = ca.vertsplit(memory, [0, len(self.first_own), len(self.memory)])
        at = CommandedState(state, N, held, {name: pair[0] for name, pair in symbols.items()}, own)
        followed, own_rate = self.follow(at), self.own_rate(at)
        w_r = ca.densify(ca.SX(followed.velocity))
        moving = [(x, x_rate), (held, drift_rate), *symbols.values(), (own, own_rate)]
        w_r_rate = sum(
            (ca.jtimes(w_r, ca.vec(one), ca.vec(rate)) for one, rate in moving), ca.SX(0)
        )
        w_r, w_r_rate, pull, potential, loss, *further = ca.substitute(
            [w_r, w_r_rate, *map(ca.SX, followed[1:4]), *map(ca.SX, followed.signals.values())],
            [held],
            [ca.densify(drift)],
        )
        s = v[self.places, :] - w_r
        s_v = N @ s
        damping = self.damping(at, s)
        dv_r = N @ w_r_rate + N_rate @ w_r + drift_rate
        D_s = drag_times(state, s_v) if self.drag == "wanted" else ca.SX(machine.nv, 1)
        full = state.inverse(dv_r) - coriolis_times(state, self.form, s_v) - D_s
        met = self.meet(x, v, rest, ReferenceMotion(N @ w_r + drift, dv_r))
        force = N.T @ (full + met.force) - damping - pull
        inputs = self.allocation(ActuatedState(state, N), force)
        change = met.change(s_v, inputs.u)
        V_rate = -ca.dot(s, damping) - ca.dot(s_v, D_s) - loss - ca.dot(s, inputs.unrealised)
        signals = {
            **stated(ca.dot(s_v, state.mass @ s_v) / 2 + potential, V_rate, change),
            "s": s,
            "force": force,
            **inputs.signals,
            **dict(zip(followed.signals, further, strict=True)),
            **change.signals,
        }
        following = [ca.vertcat(own, change.memory), ca.vertcat(own_rate, change.rate)]
        return inputs.u, signals, following
