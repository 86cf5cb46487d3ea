"""The scenario `tricopter-load`."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from framefree.control.law import Command, Law
from framefree.control.prototype import PrototypeControl
from framefree.control.prototype.feasible import feasibility
from framefree.control.prototype.tuning import matching
from framefree.control.references import Hold, JointPath, Reference
from framefree.control.references.flat_curves import Moves
from framefree.gallery.machines import multicopters
from framefree.gallery.machines.multicopter_load import (
    LOAD_INERTIA,
    LOAD_MASS,
    OSCILLATION,
    ROD,
    tricopter_and_load,
    tricopter_with_load,
)
from framefree.gallery.scenarios.prototypes.flights import errors
from framefree.gallery.shared.metrics import PoledScenario
from framefree.gallery.shared.scenario import Outcome, Promise
from framefree.geometry import Moments
from framefree.look.report import Animation, Figure
from framefree.machine import Machine
from framefree.motion import equations
from framefree.simulate import Run, simulate
from framefree.simulate.measures import rate_error, rms, settling_time

Matrix = Any


def moves(machine: Machine) -> JointPath:
    """Return moves of the load's center of oscillation, and how craft and rod move then."""
    way = Moves(
        (0.0, 0.0, 1.0),
        ((1.0, 2.5, (1.5, 0.0, 1.2)), (5.0, 2.0, (0.0, 0.0, 1.0))),
    )

    def path(t: Matrix) -> Matrix:
        symbol = ca.SX.sym("s")
        twice = ca.jacobian(ca.jacobian(way.at(symbol), symbol), symbol)
        pull = ca.substitute(twice, symbol, t) + ca.DM([0, 0, 9.81])
        z = pull / ca.sqrt(ca.sumsqr(pull))
        swing = ca.vertcat(1 + z[2], -z[1], z[0], 0) / ca.sqrt(2 * (1 + z[2]))
        return ca.vertcat(way.at(t) + OSCILLATION * z, ca.DM([1, 0, 0, 0]), swing)

    return JointPath(machine, path, times=way.times)


def gains() -> list[dict[str, Moments]]:
    """Return a prototype with the machine's own inertia, and gravity's own stiffness on the rod.

    The inputs push the craft only. What the load feels must then be what it feels anyway: its
    inertia, and a potential m g L (1 - cos) on its attitude. Springs and dampers are the craft's.
    """
    body = Moments.of(1.251, (0, 0, 0), np.diag([0.0192, 0.0192, 0.0308]))
    load = Moments.of_body(LOAD_MASS, (0, 0, -ROD), LOAD_INERTIA * np.eye(3))
    hanging = LOAD_MASS * 9.81 * ROD
    rod = Moments.of(0.0, (0, 0, 0), hanging * np.diag([1.0, 1.0, 0.0]))
    damping = Moments.of(6.0, (0, 0, 0), np.diag([0.3, 0.3, 0.25]))
    stiffness = Moments.of(8.0, (0, 0, 0), np.diag([1.7, 1.7, 0.7]))
    return [{"body": body, "load": load}, {"body": damping}, {"body": stiffness, "load": rod}]


class OfModel(Reference):
    """A reference of the law's own model, whose joints are not those of the machine."""

    def __init__(self, reference: Reference) -> None:
        self.reference, self.times = reference, reference.times
        self.units = {f"model.{name}": unit for name, unit in reference.units.items()}

    def at(self, t: Matrix) -> dict[str, Matrix]:
        """Return its signals, named "model.x", "model.v", "model.a"."""
        return {f"model.{name}": value for name, value in self.reference.at(t).items()}


@dataclass(frozen=True)
class LoadCarrierLaw(Law):
    """Tracking of craft and load, and below it loops for tilts and speeds.

    Parameters
    ----------
    machine : Machine
        All eight bodies.
    tracking : PrototypeControl
        Of the model with two bodies and six components of thrust.
    speed_rate : float
        1/s, with which motors bring propellers to their speeds.
    """

    machine: Machine
    tracking: PrototypeControl
    speed_rate: float = 60.0

    needs = ("model.x", "model.v", "model.a")
    units = PrototypeControl.units

    @property
    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """Rows and columns of the reference signals by name: those of the model."""
        return {f"model.{name}": shape for name, shape in self.tracking.shapes.items()}

    @cached_property
    def _model(self) -> Machine:
        return self.tracking.machine

    def control(
        self, t: Matrix, x: Matrix, v: Matrix, reference: Mapping[str, Matrix], memory: Matrix
    ) -> Command:
        """Return tilts of the servos and torques of the motors."""
        own, names = self.machine, ("base", "ball")
        x_model = ca.vertcat(*(x[own.x_slice[name]] for name in names))
        v_model = ca.vertcat(*(v[own.v_slice[name]] for name in names))
        followed = {name.removeprefix("model."): reference[name] for name in self.needs}
        command = self.tracking.control(t, x_model, v_model, followed, memory)
        u = ca.SX(own.nu, 1)
        kF, kT = multicopters.THRUST_COEFFICIENT, multicopters.TORQUE_COEFFICIENT
        for k, spin in enumerate(multicopters.TRICOPTER_SPINS, start=1):
            pair = command.u[self._model.u_slice[f"propeller{k}"]]
            sine, cosine = pair[0], ca.fmax(pair[1], 0.1)
            thrust = ca.fmin(ca.sqrt(sine**2 + cosine**2), 7.0)
            u[own.u_slice[f"servo{k}"]] = ca.atan2(sine, cosine)
            speed = spin * v[own.v_slice[f"spin{k}"]]
            faster = self.speed_rate * (ca.sqrt(thrust / kF) - speed)
            torque = kT * speed * ca.fabs(speed) + multicopters.ROTOR_INERTIA * faster
            u[own.u_slice[f"motor{k}"]] = spin * torque
        return Command(u, command.signals)


@dataclass(frozen=True)
class TricopterLoad(PoledScenario):
    """A tricopter carries a load on a rod from place to place.

    The plant has eight bodies: craft, three arms turned by servos, three spinning propellers, and
    the load on a ball joint. The law knows two of them, and no dynamics of servos and motors. Six
    inputs, nine velocities: the load swings, and is brought to rest through the craft.

    Parameters
    ----------
    approach : str
        How the prototype is imitated: "particle", "body" or "energy".
    duration : float
        How long to simulate, s.
    plant : str
        "native" or "mujoco".

    Metrics
    -------
    load_rms_position_m
        Distance of the load from its way, root of the mean square.
    settling_s
        Time after which the swinging load stays within 5 cm of rest.
    """

    name: ClassVar[str] = "tricopter-load"

    approach: str = "particle"
    duration: float = 10.0
    plant: str = "native"

    def run(self, progress: bool | None = None) -> Outcome:
        """Simulate the moves at 200 Hz, and an ideal craft from a swinging load."""
        model, machine = tricopter_and_load(), tricopter_with_load()
        tracking = PrototypeControl(model, *gains(), approach=self.approach)
        reference = moves(model)
        run = self._moved(machine, LoadCarrierLaw(machine, tracking), model, reference, progress)
        swinging = self._swinging(model, tracking, reference, progress)
        off = _errors(machine, model, run)
        missing = feasibility(model, reference, np.linspace(0, self.duration, 101))
        linear = matching(tracking, _first(reference))
        return Outcome(
            runs={"carried": run, "swinging": swinging},
            metrics={
                "rms_position_m": rms(off["position"]),
                "rms_attitude_deg": rms(off["attitude"]),
                "rms_heading_deg": rms(off["heading"]),
                "load_rms_position_m": rms(off["load"]),
                "settling_s": settling_time(swinging.t, _load_error(model, swinging), 0.05),
                "energy_rate_error": rate_error(swinging.t, swinging["W"], -swinging["W_loss"]),
                "model_energy_rate_error": rate_error(
                    swinging.t, swinging["W"], swinging["W_rate"]
                ),
                "reference_missing_force_n": missing.largest_force,
                "matching_error": linear.error,
                "slowest_pole": float(np.real(linear.poles).max()),
            },
            promises=(
                Promise("the load keeps to its way, rms", rms(off["load"]), 0.03, "m"),
                Promise("no force is missing on the reference", missing.largest_force, 1e-9, "N"),
                Promise("all matching conditions hold at hover, error", linear.error, 1e-9),
                Promise(
                    "at rest the error energy falls by what the dampers take, relative error",
                    rate_error(swinging.t, swinging["W"], -swinging["W_loss"]),
                    1e-6,
                ),
            ),
            figures=_figures(run, off, swinging),
            animations=(
                Animation("The load is carried", run, trails=("body", "weight")),
                Animation("A swinging load comes to rest", swinging, trails=("weight",)),
            ),
            notes=(
                "The prototype leaves to the load what is its own, inertia and gravity, and so is "
                "matched: about a place it moves exactly so, and its error energy falls by what "
                "the craft's dampers take. They take it from the load, too, whose swing moves the "
                "craft.",
            ),
        )

    def _moved(
        self,
        machine: Machine,
        law: LoadCarrierLaw,
        model: Machine,
        reference: JointPath,
        progress: Any,
    ) -> Run:
        """Return the run of the whole machine, from hovering on the reference."""
        at = _first(reference)
        hover = feasibility(model, reference, [0.0]).u[0]
        x, v = machine.neutral(), np.zeros(machine.nv)
        for name in ("base", "ball"):
            x[machine.x_slice[name]] = at[model.x_slice[name]]
        for k, spin in enumerate(multicopters.TRICOPTER_SPINS, start=1):
            sine, cosine = hover[model.u_slice[f"propeller{k}"]]
            x[machine.x_slice[f"tilt{k}"]] = np.arctan2(sine, cosine)
            speed = np.sqrt(np.hypot(sine, cosine) / multicopters.THRUST_COEFFICIENT)
            v[machine.v_slice[f"spin{k}"]] = spin * speed
        return simulate(
            machine,
            law,
            OfModel(reference),
            x,
            v,
            duration=self.duration,
            dt=1e-3,
            control_dt=5e-3,
            plant=self.plant,
            record=("energy",),
            progress=progress,
        )

    def _swinging(
        self, model: Machine, law: PrototypeControl, reference: JointPath, progress: Any
    ) -> Run:
        """Return the run of the model at a place, its load let go from 40 degrees."""
        at = _first(reference)
        first = np.array(at)
        half = np.deg2rad(40.0) / 2
        first[model.x_slice["ball"]] = [np.cos(half), 0.0, np.sin(half), 0.0]
        return simulate(
            model,
            law,
            Hold(model, at),
            first,
            np.zeros(model.nv),
            duration=self.duration,
            dt=1e-3,
            limits=False,
            record=("energy",),
            progress=progress,
        )


def _first(reference: JointPath) -> np.ndarray:
    return np.array(reference.function(0.0)[0]).ravel()


def _weights(machine: Machine, x: np.ndarray) -> np.ndarray:
    """Return the positions (n, 3) of the load's center of oscillation."""
    return equations(machine, "tree").kernel("frame_pose:weight")(x)[:, :3, 3]


def _load_error(machine: Machine, run: Run) -> np.ndarray:
    x_R = np.ascontiguousarray(np.broadcast_to(run.reference["x"], (len(run.t), machine.nx)))
    return np.linalg.norm(_weights(machine, run.x) - _weights(machine, x_R), axis=1)


def _errors(machine: Machine, model: Machine, run: Run) -> dict[str, np.ndarray]:
    """Return errors of the craft, as the flights have them, and of the load (m)."""
    x_R = run.reference["model.x"]
    craft = errors(run.x[:, machine.x_slice["base"]], x_R[:, model.x_slice["base"]])
    gap = _weights(machine, run.x) - _weights(model, x_R)
    return {**craft, "load": np.linalg.norm(gap, axis=1)}


def _figures(run: Run, off: dict[str, np.ndarray], swinging: Run) -> tuple[Figure, ...]:
    tilts = {
        n: np.rad2deg(u)
        for n, u in zip(("first", "second", "third"), run.u[:, 0::2].T, strict=True)
    }
    return (
        Figure.over_time(
            "Errors of position",
            "error (m)",
            run.t,
            {"craft": off["position"], "load": off["load"]},
        ),
        Figure.over_time(
            "Errors of attitude",
            "error (deg)",
            run.t,
            {"attitude": off["attitude"], "heading": off["heading"]},
        ),
        Figure.over_time("Commanded tilts of the arms", "tilt (deg)", run.t, tilts),
        Figure.over_time(
            "Error energy of a swinging load",
            "energy (J)",
            swinging.t,
            {"W": np.maximum(swinging["W"], 1e-14)},
            logarithmic=True,
        ),
    )
