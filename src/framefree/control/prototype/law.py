"""Tracking control by a prototype: the machine is made to move like another, stable one."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from framefree.control.law import UNKNOWN_FORCE, Command, ControlError, Law
from framefree.control.prototype import template
from framefree.control.prototype import transport as maps
from framefree.control.prototype.bounded import BoundedErrors
from framefree.control.prototype.hover import what_drifts, what_stands_aside
from framefree.control.prototype.integral import PrototypeIntegral, largest_factor
from framefree.control.prototype.kinematics import relative_kinematics
from framefree.control.prototype.kinetics import Kinetics
from framefree.control.prototype.lean import Lean
from framefree.control.prototype.parameters import KINDS, PairParameters, collected
from framefree.control.prototype.template import Template, TrackedMotion, TrackedPair
from framefree.control.shared.allocation import UNITS, Allocation
from framefree.control.shared.model import Model, at_configurations
from framefree.errors import FramefreeWarning
from framefree.geometry import se3
from framefree.machine import Machine
from framefree.machine.part import set_field
from framefree.machine.values import numbers
from framefree.motion import Equations, actuation, equations
from framefree.motion.constrained import Constrained
from framefree.motion.spatial import solve_symmetric

Matrix = Any

APPROACHES = ("particle", "body", "energy")
_SAMPLES = 4


@dataclass(frozen=True)
class PrototypeControl(Law):
    """Follow a reference the way a prototype would: a machine of springs and dampers about it.

    The prototype moves like the machine but has inertia, damping and stiffness of its own, chosen
    for every pair of frames that matters: frames seen from the world, or from each other. Its
    motion M_bar a + b_bar = 0 is what the closed loop should be. The inputs are those whose
    accelerations come closest to it, in the metric M_bar: exactly, where the machine is fully
    actuated [Konz2024, ch. 4].

    Parameters
    ----------
    machine : Machine
        With actuators. Where it has loops or couplings, accelerations are those that they allow,
        and the reference must keep them too.
    inertia, damping, stiffness : mapping of frame, or (frame a, frame b), to Moments
        Given in the axes of frame b; a frame alone is seen from the world. kg, N s/m, N/m. All
        motions of the machine need inertia. `prototype.tuning` finds such parameters from
        frequencies and damping ratios, as in ``free_body(...).on("body")``; its `matching` tells
        how well a machine with few inputs can do.
    approach : "particle", "body" or "energy", optional
        What counts as error of velocity and acceleration. All three agree where the reference
        rests. By default "energy" where a transport map is known, else "body", with a warning that
        says why.

        - particle: of every point, in the world: straight ways, no proof for turning references;
        - body: of every pair's pose; autonomous, with a proof, for a single free body;
        - energy: of the whole velocity, carried by a transport map; a proof for every reference.
    transport : callable (x, x_R) -> (nv, nv), optional
        Transport map of the energy approach; needed where `transport.by_joints` has none.
    limits : bool
        Whether inputs stay within all limits of the machine (`InputLimits`): the nearest of those,
        in the same metric. Otherwise the plant cuts what is too large.
    lean : bool
        Whether the reference of a free body with fewer inputs than velocities leans against what of
        an unknown force no input can match; see `framefree.control.prototype.lean`.
    integral : PrototypeIntegral, optional
        Integral action against a constant force that nobody knows, for fully actuated machines
        without loops; see `framefree.control.prototype.integral`.
    bounded : BoundedErrors, optional
        For craft that fly: errors of position far beyond what inputs can do are felt only as far as
        speed and acceleration allow, so that inclinations stay small; W is that of the errors felt.
    near : (nx,), optional
        Configuration about which inertia, damping and stiffness must be positive; by default
        everywhere. Parameters that are matched about rest (`matched_prototype`) may be so there
        alone, and W is then an energy near it only.

    Notes
    -----
    Signals: "W" error energy; "W_rate" its rate as the model has it under what its actuators give,
    within their limits; "W_loss" what the prototype's dampers take, which is -W_rate where W is a
    Lyapunov function; "matching_force" (nv) M_bar a + b_bar, by which the machine differs from its
    prototype; "gauss" half its square in the metric 1/M_bar: what is left of Gauss's constraint;
    "unrealised" (nv) the joint forces that lack for the prototype's accelerations.

    Where an unknown force is observed (`ForceObserver`) the law counts it to its machine. With
    integral action also "V" and its stated rate "V_rate", and "integral_force" (nv).
    """

    machine: Machine
    inertia: Mapping[Any, Any]
    damping: Mapping[Any, Any]
    stiffness: Mapping[Any, Any]
    approach: Any = None
    transport: maps.Transport | None = None
    limits: bool = False
    lean: bool = True
    integral: PrototypeIntegral | None = None
    bounded: BoundedErrors | None = None
    near: Any = None

    needs = ("x", "v", "a")
    takes = (UNKNOWN_FORCE,)
    follows_time = True
    units: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "W": "J",
            "W_rate": "W",
            "W_loss": "W",
            "gauss": "N m/s^2",
            "V": "J",
            "V_rate": "W",
            "integral_force": "N, Nm",
            **UNITS,
        }
    )

    def __post_init__(self) -> None:
        machine = self.machine
        if self.approach not in (None, *APPROACHES):
            raise ControlError(
                f"`approach` must be one of {', '.join(APPROACHES)}, got {self.approach!r}"
            )
        if not machine.nu:
            raise ControlError(f"`{machine.name}` has no actuators")
        own_map = self.transport is not None and not machine.closed
        no_map = None if own_map else maps.missing_map(machine, self.pairs)
        chosen_body = self.approach is None and no_map is not None
        if self.approach is None:
            set_field(self, "approach", "energy" if no_map is None else "body")
        if self.approach == "energy" and no_map is not None:
            raise ControlError(f'{no_map}; or choose the approach "body" or "particle"')
        self._check_definite()
        self._check_transport()
        if not self._moves():
            raise ControlError(f"no input of `{machine.name}` moves anything")
        if self.integral is not None:
            self._check_integral(self.integral)
        if self.bounded is not None:
            self.bounded.check(machine, self.pairs)
        if not machine.closed and self.allocation.unactuated:
            forms = self._forms_at_rest()
            aside = what_stands_aside(machine, self.pairs, forms)
            for words in (aside, what_drifts(machine, *forms)):
                if words:
                    warnings.warn(words, FramefreeWarning, stacklevel=3)
        if chosen_body:
            warnings.warn(
                "PrototypeControl takes the body approach, without a proof for moving references, "
                f"because {no_map}. Name an `approach` to choose it yourself",
                FramefreeWarning,
                stacklevel=3,
            )

    # ------------------------------------------------------------------ what is known beforehand

    @cached_property
    def pairs(self) -> tuple[PairParameters, ...]:
        """All parameters by pair of frames."""
        pairs = collected(self.machine, {kind: getattr(self, kind) for kind in KINDS})
        if not any(pair.inertia is not None for pair in pairs):
            raise ControlError("a prototype needs `inertia` for at least one frame")
        return pairs

    @cached_property
    def _carried(self) -> maps.Transport | None:
        if self.approach != "energy":
            return None
        return self.transport or maps.by_joints(self.machine, self.pairs)

    @cached_property
    def _model(self) -> Equations:
        return equations(self.machine.tree)

    @cached_property
    def allocation(self) -> Allocation:
        """From wanted accelerations to inputs, within limits if wanted."""
        return Allocation(Model(self.machine.tree), limits=self.limits)

    @cached_property
    def _constrained(self) -> Constrained:
        return Constrained(self.machine)

    def _sampled(self, x: Matrix, *values: Matrix, near: Any = None) -> list[np.ndarray]:
        """Return numbers of functions of x alone at a few configurations, or at one."""
        machine, rng = self.machine, np.random.default_rng(4)
        if near is not None:
            places = [numbers(near, (machine.nx,), "`near` of a prototype")]
        elif machine.closed:
            values_of = machine.parameters.defaults if len(machine.parameters) else None
            places = [self._constrained.assemble(parameters=values_of)]
        else:
            places = machine.numeric.random(rng, _SAMPLES)
        return [np.array(at_configurations(machine, x, value, places)) for value in values]

    def _moves(self) -> bool:
        x = ca.SX.sym("x", self.machine.nx)
        (B,) = self._sampled(x, actuation.input_matrix(self._model.at(x)))
        return bool(np.abs(B).max() > 0)

    @cached_property
    def _forms(self) -> tuple[Matrix, list[Matrix]]:
        """Return x, and the prototype's inertia, damping and stiffness (nv x nv) there."""
        x, rest = ca.SX.sym("x", self.machine.nx), ca.SX(self.machine.nv, 1)
        sides = self._sides(x, rest, x, rest)
        return x, [template.projected(sides, kind) for kind in KINDS]

    def _forms_at_rest(self) -> list[np.ndarray]:
        x, forms = self._forms
        neutral = [self.machine.numeric.neutral()]
        return [np.array(at_configurations(self.machine, x, f, neutral))[0] for f in forms]

    def _check_definite(self) -> None:
        """Refuse parameters that leave motions without inertia, or that drive the machine off."""
        x, forms = self._forms
        for name, samples in zip(KINDS, self._sampled(x, *forms, near=self.near), strict=True):
            scaled = np.array([_scaled(one) for one in samples])
            lowest = np.linalg.eigvalsh(scaled)[:, 0].min()
            if lowest < -1e-9:
                raise ControlError(
                    f"the {name} of the prototype is not positive semidefinite: its lowest "
                    f"eigenvalue is {lowest:.3g} of its diagonal"
                )
            if name == "inertia" and lowest < 1e-10:
                raise ControlError(self._singular(samples))

    def _singular(self, samples: np.ndarray) -> str:
        ranks = [np.linalg.matrix_rank(_scaled(one), tol=1e-10) for one in samples]
        frames = ", ".join(f"(`{p.a}`, `{p.b}`)" for p in self.pairs if p.inertia is not None)
        return (
            f"the inertia of the prototype is singular: that of {frames} gives rank "
            f"{min(ranks)} for {self.machine.nv} velocities, so that some motions of "
            f"`{self.machine.name}` would be left without inertia; add inertia (and damping and "
            "stiffness) across joints"
        )

    def _check_transport(self) -> None:
        """Refuse a transport map that does not carry the potential."""
        if self._carried is None:
            return
        machine = self.machine
        x, x_R = ca.SX.sym("x", machine.nx), ca.SX.sym("x_R", machine.nx)
        rest = ca.SX(machine.nv, 1)
        Psi, _ = maps.with_rate(machine, self._carried, (x, rest), (x_R, rest))
        motion = TrackedMotion(rest, rest, rest)
        push, push_R = ca.SX(machine.nv, 1), ca.SX(machine.nv, 1)
        for side in self._sides(x, rest, x_R, rest):
            e = side.moving(motion)
            push += side.now.J.T @ e.pull
            push_R -= side.reference.J.T @ (se3.adjoint(e.G_ER).T @ e.pull)
        values = ca.horzcat(push_R + Psi.T @ push, push, push_R)
        rng = np.random.default_rng(5)
        states = np.hstack([machine.numeric.random(rng, _SAMPLES) for _ in range(2)])
        for sample in at_configurations(machine, ca.vertcat(x, x_R), values, states):
            left, *sizes = np.abs(sample).max(axis=0)
            if not left <= 1e-8 * max(*sizes, 1e-300):
                raise ControlError(
                    "`transport` does not carry the potential: d_R V + Psi^T dV must be zero, but "
                    f"is {left:.3g} where dV is {sizes[0]:.3g}"
                )

    def _check_integral(self, integral: PrototypeIntegral) -> None:
        """Refuse integral action where V would not be positive, or would not fall."""
        machine = self.machine
        if machine.closed:
            raise ControlError(
                f"`{machine.name}` has loops or couplings: no integral action is known"
            )
        self.allocation.require_full("integral action")
        integral.gains(machine.nv)
        _ = integral.stored(ca.DM.zeros(machine.nv))
        x, forms = self._forms
        samples = self._sampled(x, *forms)
        times = integral.times(machine.nv)
        most = min(largest_factor(M, D, K, times) for M, D, K in zip(*samples, strict=True))
        if not most > 1:
            raise ControlError(
                f"the times of integral action must be below {most:.3g} of what is given for these "
                "gains: beyond, V does not fall near the reference"
            )

    # ------------------------------------------------------------------ the law

    @property
    def memory(self) -> np.ndarray:
        """The integrated force, from zero on."""
        return np.zeros(0 if self.integral is None else self.machine.nv)

    def _sides(self, x: Matrix, v: Matrix, x_R: Matrix, v_R: Matrix) -> tuple[TrackedPair, ...]:
        now, reference = self._model.at(x, v), self._model.at(x_R, v_R)
        return tuple(
            TrackedPair(
                pair,
                relative_kinematics(now, pair.a, pair.b),
                relative_kinematics(reference, pair.a, pair.b),
            )
            for pair in self.pairs
        )

    def template(self, x: Matrix, v: Matrix, reference: Mapping[str, Matrix]) -> Template:
        """Return the desired closed loop at a state and a reference, as casadi expressions."""
        x_R, v_R, a_R = (reference[name] for name in ("x", "v", "a"))
        sides, motion = self._sides(x, v, x_R, v_R), TrackedMotion(v, v_R, a_R)
        if self._carried is None:
            return {"particle": template.particle, "body": template.body}[self.approach](
                sides, motion
            )
        carried = maps.with_rate(self.machine, self._carried, (x, v), (x_R, v_R))
        return template.energy(sides, motion, *carried)

    @cached_property
    def _leaning(self) -> Lean | None:
        """What leans the reference against an unknown force, where that is of use."""
        if not self.lean or self.machine.closed or not self.allocation.unactuated:
            return None
        leaning = Lean(self._model)
        return None if leaning.joint is None else leaning

    def kinetics(self, x: Matrix, v: Matrix, force: Matrix = None, t: Matrix = 0) -> Kinetics:
        """Return M, b and B of the machine at a state, and the rows of its loops.

        `force` (nv) is one that acts beside those of the machine, `t` (s) the time, which moves
        fluids and interactions.
        """
        state = self._model.at(x, v, t)
        own = state.inverse(ca.SX(self.machine.nv, 1))
        own = own if force is None else own - force
        parts = state, own, actuation.input_matrix(state), actuation.input_bias(state)
        if not self.machine.closed:
            return Kinetics(*parts)
        rows = self._constrained.quantity("constraint").trace(x=x, v=v)
        A, c = (ca.SX(rows[name].value) for name in ("A", "b"))
        return Kinetics(*parts, A, c)

    def control(
        self, t: Matrix, x: Matrix, v: Matrix, reference: Mapping[str, Matrix], memory: Matrix
    ) -> Command:
        """Return the inputs nearest to the template's accelerations."""
        force = reference.get(UNKNOWN_FORCE)
        if force is not None and self._leaning is not None:
            reference = self._leaning(reference, force, t)
        if self.bounded is not None:
            reference = self.bounded.reference(self.machine, self.pairs, (x, v), reference)
        if self.integral is not None:
            force = memory if force is None else force + memory
        plant, wanted = self.kinetics(x, v, force, t), self.template(x, v, reference)
        u = plant.nearest(self.allocation, wanted.M, wanted.b)
        a = plant.accelerations(self.allocation.given(plant.state, u))
        left = ca.densify(wanted.M @ a + wanted.b)
        signals = {
            "W": wanted.W,
            "W_rate": wanted.rate(a),
            "W_loss": wanted.loss,
            "gauss": ca.dot(left, solve_symmetric(wanted.M, left)) / 2,
            "matching_force": left,
            "unrealised": plant.missing(wanted.M, left),
        }
        if self.integral is None:
            return Command(ca.densify(u), signals)
        integral = self.integral
        mixed, mixed_rate = self._mixed(x, v, a, *(reference[name] for name in ("x", "v", "a")))
        signals |= {
            "V": wanted.W + mixed + integral.stored(memory),
            "V_rate": wanted.rate(a) + mixed_rate,
            "integral_force": memory,
        }
        times = ca.DM(integral.times(self.machine.nv))
        pull = solve_symmetric(plant.M, wanted.momentum + times * wanted.gradient)
        rate = ca.DM(integral.gains(self.machine.nv)) * pull
        return Command(ca.densify(u), signals, rate=ca.densify(rate))

    def _mixed(self, *motion: Matrix) -> tuple[Matrix, Matrix]:
        """Return v_E . T g and its rate at x, v, a and those of the reference."""
        parameters = [self.machine.parameters.symbols] if len(self.machine.parameters) else []
        return self._mixed_function(*motion, *parameters)

    @cached_property
    def _mixed_function(self) -> ca.Function:
        machine, integral = self.machine, self.integral
        sizes = (machine.nx, machine.nv, machine.nv)
        times = ca.DM(np.zeros(machine.nv) if integral is None else integral.times(machine.nv))
        own = [ca.SX.sym(name, n) for name, n in zip("xva", sizes, strict=True)]
        theirs = [ca.SX.sym(f"{name}_R", n) for name, n in zip("xva", sizes, strict=True)]
        wanted = self.template(own[0], own[1], dict(zip("xva", theirs, strict=True)))
        value = ca.dot(solve_symmetric(wanted.M, wanted.momentum), times * wanted.gradient)
        rate = ca.SX(0)
        for x, v, a in (own, theirs):
            rate += ca.jtimes(value, x, machine.rate_matrix(x) @ v) + ca.jtimes(value, v, a)
        parameters = [machine.parameters.symbols] if len(machine.parameters) else []
        return ca.Function("mixed", [*own, *theirs, *parameters], [value, rate])


def _scaled(matrix: np.ndarray) -> np.ndarray:
    """Return a matrix scaled to a unit diagonal, where that is not zero."""
    scale = np.sqrt(np.abs(np.diag(matrix)))
    scale[scale < 1e-12 * max(scale.max(initial=0.0), 1e-300)] = 1.0
    return matrix / np.outer(scale, scale)
