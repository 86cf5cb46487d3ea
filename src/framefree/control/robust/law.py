"""Tracking in minimal coordinates that withstands bounded uncertainty [Dastranj2026].

With e = q - q_d, s = de/dt + Lambda e, qd_r = dq_d/dt - Lambda e and qdd_r its rate,

    Q_a = Gamma qdd_r + C(q, qd) qd_r - Q_e - K s - kappa sat(s / eps)
    Gamma ds/dt + C s = -K s - kappa sat(s / eps) + d,      V = 1/2 s^T Gamma s
    dV/dt = -s^T K s - s^T kappa sat(s / eps) - s^T unrealised + s^T d

where Q_e is what acts besides the drives (gravity, springs, friction), `unrealised` what the drives
do not give of Q_a, and d what the model does not know. The document prints h = C qd in the place of
C qd_r; its proof then fails by s^T C s (errata E2-6). `printed` keeps that variant.

With `growth` the kappa_i are states that grow with the uncertainty met, from `kappa` on,

    dkappa_i/dt = growth_i max(|s_i| - eps_i, 0),      V gets sum kappa_i^2 / (2 growth_i)
    dV/dt = -s^T K s - sum kappa_i min(s_i^2 / eps_i, eps_i) - s^T unrealised + s^T d

Where |d_i| <= dbar_i, unknown, V with (kappa_i - dbar_i)^2 in the place of kappa_i^2 has
dV/dt <= -s^T K s + sum dbar_i eps_i: s comes into a layer about as wide as eps without a bound
on d being told, and kappa stays bounded.
"""

from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from framefree.control.law import Command, ControlError, Law
from framefree.control.references.base import Reference
from framefree.control.shared.allocation import UNITS, Allocation
from framefree.control.shared.gains import vector_gain
from framefree.control.shared.model import ActuatedState, Model
from framefree.kernel import Kernel, compile
from framefree.machine import Continuous, Machine
from framefree.machine.part import set_field
from framefree.motion import ClosureError
from framefree.motion.embedded import Embedded, follow
from framefree.motion.embedded.maps import Solved
from framefree.motion.embedded.state import EmbeddedState

Matrix = Any


@dataclass(frozen=True)
class RobustControl(Law):
    """The robust law of any machine in minimal coordinates, closed loops and couplings included.

    Needs references "x", "v" and "a" of the machine's joints, of which only the independent ones
    are read: a reference need not close the loops.

    Signals, of the independent velocities in their order (`coordinates`): `e`, `s`; `V`; `V_rate`,
    what dV/dt is without uncertainty; `force`, the generalised force asked for, and `unrealised`,
    what the actuators do not give of it; and where loops are solved `margin`. What a run tells of
    the uncertainty: `assess`.

    Parameters
    ----------
    machine : Machine
        The model. The plant may have bodies more; joints are matched by name.
    Lambda, K, kappa, eps : float or (n,)
        Pace of the error (1/s), damping (Nm s/rad, N s/m), largest force against uncertainty (Nm,
        N) and width of the layer in which it changes sign (rad/s, m/s), one a coordinate; all
        positive but for kappa, which may be 0.
    printed : bool
        Whether the law is that of the document, with h instead of C qd_r.
    growth : float or (n,)
        How fast kappa grows where s leaves the layer, N/m and Nm/rad; 0 keeps it as it is. Then
        `kappa` is recorded.
    least_margin : float
        Where loops are solved: how far, of 1, they must be from a position in which the dependent
        joints do not follow from the others. Nearer than that the law gives no finite inputs, and a
        simulation stops; `check` refuses such references beforehand.
    equations : Embedded, optional
        Of the machine, where the default choice of minimal coordinates is not wanted. By default
        the driven joints are independent, as far as they determine the others.
    start : (nx,), optional
        A configuration of all joints near which the loops close, where the neutral one does not
        serve: minimal coordinates are chosen there. Not with `equations`.

    Attributes
    ----------
    embedded : Embedded
        The equations in use.
    """

    machine: Machine
    Lambda: Any = 1.0
    K: Any = 30.0
    kappa: Any = 50.0
    eps: Any = 1e-4
    printed: bool = False
    least_margin: float = 0.01
    growth: Any = 0.0
    equations: InitVar[Embedded | None] = None
    start: InitVar[Any] = None
    embedded: Embedded = field(init=False, repr=False, compare=False)

    needs: ClassVar[tuple[str, ...]] = ("x", "v", "a")
    units: ClassVar[Mapping[str, str]] = {"V": "J", "V_rate": "W", **UNITS}

    def __post_init__(self, equations: Embedded | None, start: Any) -> None:
        if equations is not None and equations.machine is not self.machine:
            raise ControlError("`equations` of RobustControl must be those of its machine")
        if equations is not None and start is not None:
            raise ControlError(
                "RobustControl takes `start` to choose equations by itself: give it to "
                "`Embedded(machine, start=...)` where you give `equations`"
            )
        set_field(self, "embedded", equations or self._chosen_equations(start))
        self._check_coordinates()
        names = self.coordinates
        for name in ("Lambda", "K", "kappa", "eps", "growth"):
            value, zero = getattr(self, name), name in ("kappa", "growth")
            gain = vector_gain(value, len(names), name, self.name, zero=zero, of=names)
            set_field(self, name, gain)
        if np.any(self.growth) and not np.all(self.growth):
            raise ControlError("`growth` of RobustControl must be 0 or positive everywhere")
        self._check_inputs()

    def _chosen_equations(self, start: Any) -> Embedded:
        """Return equations whose minimal coordinates are those of driven joints."""
        try:
            return Embedded(self.machine, independent="driven", start=start)
        except ClosureError as error:
            where = "`start`" if start is not None else "the neutral configuration"
            raise ControlError(
                f"RobustControl finds no minimal coordinates of `{self.machine.name}` from "
                f"{where}: {error}. Give `start`, a configuration near which the loops close, or "
                "`equations`"
            ) from None

    # ------------------------------------------------------------------ coordinates

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the independent velocities."""
        return self.embedded.v_names

    @cached_property
    def places(self) -> tuple[list[int], list[int]]:
        """Where the independent coordinates and velocities stand in x and v of the machine."""
        names = [self.machine.x_names.index(name) for name in self.coordinates]
        return names, list(self.embedded.map.independent or ())

    def reduced(self, x: Matrix, v: Matrix) -> tuple[Matrix, Matrix]:
        """Return the state in the model's minimal coordinates, of casadi columns."""
        # Where loops are solved, minimal configurations are those of the whole tree.
        chosen, moving = self.places
        return (x if self._solved else x[chosen, :]), v[moving, :]

    @property
    def _solved(self) -> bool:
        return isinstance(self.embedded.map, Solved)

    def _check_coordinates(self) -> None:
        if self.embedded.map.independent is None:
            raise ControlError(
                "the minimal coordinates of RobustControl must be coordinates of the machine's "
                f"joints, got: {', '.join(self.embedded.v_names)}"
            )
        for joint in self.machine.joints:
            used = set(joint.v_names) & set(self.embedded.v_names)
            if used and not joint.kind.vector:
                remedy = (
                    '; make it Revolute, in a URDF type="revolute" with limits'
                    if isinstance(joint.kind, Continuous)
                    else ""
                )
                raise ControlError(
                    f"joint `{joint.name}` is {type(joint.kind).__name__}: the error q - q_d of "
                    f"RobustControl needs plain coordinates at the independent joints{remedy}"
                )

    def _check_inputs(self) -> None:
        x, v = ca.SX.sym("x", self.machine.nx), ca.SX.sym("v", self.machine.nv)
        B = ca.SX(self._actuated(self.embedded.at(*self.reduced(x, v))).B)
        rank, n = ca.sprank(B) if B.nnz() else 0, len(self.coordinates)
        if rank < n:
            raise ControlError(
                f"the actuators of `{self.machine.name}` reach {rank} of its {n} independent "
                f"velocities ({', '.join(self.coordinates)}): RobustControl needs all"
            )

    # ------------------------------------------------------------------ the law

    def control(
        self, t: Matrix, x: Matrix, v: Matrix, reference: Mapping[str, Matrix], memory: Matrix
    ) -> Command:
        """Return the inputs at a state."""
        chosen, moving = self.places
        q, qd = x[chosen, :], v[moving, :]
        q_d, qd_d = reference["x"][chosen, :], reference["v"][moving, :]
        qdd_d = reference["a"][moving, :]
        gain = {name: ca.DM(getattr(self, name)) for name in ("Lambda", "K", "kappa", "eps")}
        gain["kappa"] = memory if self.adapts else gain["kappa"]
        e, e_rate = q - q_d, qd - qd_d
        s = e_rate + gain["Lambda"] * e
        state = self.embedded.at(*self.reduced(x, v))
        C = state.coriolis
        pushed = gain["K"] * s + gain["kappa"] * ca.fmax(ca.fmin(s / gain["eps"], 1), -1)
        # The model's inverse dynamics hold C qd; with qd = qd_r + s what is too much is C s.
        force = state.inverse(qdd_d - gain["Lambda"] * e_rate) - pushed
        V_rate = -ca.dot(s, pushed)
        if self.printed:
            V_rate += ca.dot(s, C @ s)
        else:
            force -= C @ s
        signals: dict[str, Matrix] = {"e": e, "s": s, "V": ca.dot(s, state.mass @ s) / 2}
        signals["force"] = force
        if self._solved:
            signals["margin"] = state.chart.margin
            force = force / (state.chart.margin > self.least_margin)
        inputs = self.allocation(self._actuated(state), force, state.mass)
        signals["V_rate"] = V_rate - ca.dot(s, inputs.unrealised)
        signals |= inputs.signals
        if not self.adapts:
            return Command(inputs.u, signals)
        growth = ca.DM(self.growth)
        rate = growth * ca.fmax(ca.fabs(s) - gain["eps"], 0)
        signals["V"] += ca.dot(memory, memory / growth) / 2
        signals["V_rate"] += ca.dot(memory, rate / growth)
        return Command(inputs.u, {**signals, "kappa": memory}, memory, rate)

    @property
    def adapts(self) -> bool:
        """Whether kappa grows."""
        return bool(np.any(self.growth))

    @property
    def memory(self) -> np.ndarray:
        """First kappa, where it grows."""
        return np.array(self.kappa) if self.adapts else np.zeros(0)

    @cached_property
    def allocation(self) -> Allocation:
        """From generalised forces to inputs of least norm."""
        return Allocation(Model(self.machine.tree))

    def _actuated(self, state: EmbeddedState) -> ActuatedState:
        return ActuatedState(state.tree, state.chart.E)

    # ------------------------------------------------------------------ in numbers

    @cached_property
    def _uncertainty(self) -> Kernel:
        machine = self.machine
        n = len(self.coordinates)
        symbols = {
            "x": ca.SX.sym("x", machine.nx),
            "v": ca.SX.sym("v", machine.nv),
            "a": ca.SX.sym("a", n),
            "u": ca.SX.sym("u", machine.nu),
        }
        state = self.embedded.at(*self.reduced(symbols["x"], symbols["v"]))
        actuated = self._actuated(state)
        d = state.inverse(symbols["a"]) - actuated.B @ symbols["u"] - actuated.input_bias
        if len(machine.parameters):
            symbols["parameters"] = machine.parameters.symbols
        outputs = [ca.densify(d), ca.densify(state.mass)]
        function = ca.Function("d", list(symbols.values()), outputs, list(symbols), ["d", "mass"])
        return compile(function, shapes={"d": (n,), "mass": (n, n)})

    def uncertainty(
        self, x: Any, v: Any, a: Any, u: Any, parameters: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return what the model does not know, d, and its mass matrix Gamma.

            d = Gamma a + h - Q_e - Q_a     at the acceleration that was seen

        Parameters
        ----------
        x : (nx,) or (rows, nx)
        v : (nv,) or (rows, nv)
            Of the model's joints.
        a : (n,) or (rows, n)
            Accelerations of the independent velocities.
        u : (nu,) or (rows, nu)
        parameters : optional
            Values of the model's tunable numbers, one vector or one a row; default the defaults.
        """
        arguments = [np.ascontiguousarray(value, dtype=float) for value in (x, v, a, u)]
        if len(self.machine.parameters):
            many = np.ndim(parameters) == 2
            values = parameters if many else self.machine.parameters.values(parameters)
            arguments.append(np.ascontiguousarray(values))
        d, mass = self._uncertainty(*arguments)
        return d, mass

    def check(self, reference: Reference, times: Any, parameters: Any = None) -> None:
        """Refuse a reference that takes the machine through a position its loops are singular in.

        Every position is closed from the one before it, so times must be dense enough.

        Raises
        ------
        SingularError
            Naming the loop.
        ClosureError
            Where the loops cannot be closed at all.
        """
        t = ca.SX.sym("t")
        path = ca.Function("x", [t], [ca.densify(ca.SX(reference.at(t)["x"]))])
        x = path(ca.DM(np.asarray(times, float)).T).full().T
        follow(self.embedded, x, parameters)
