"""The scenario `pvtol`."""

from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from framefree.control.prototype import PrototypeControl
from framefree.control.prototype.feasible import feasibility
from framefree.control.prototype.tuning import characteristic, matching, sideways
from framefree.control.references import JointPath
from framefree.control.references.flat_curves import Moves
from framefree.gallery.machines.planar import pvtol
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.geometry import Moments
from framefree.look.report import Animation, Figure, Line
from framefree.machine import Machine
from framefree.simulate import simulate
from framefree.simulate.measures import rate_error, rms, settling_time

MASS, INERTIA, ARM, INCLINATION = 1.0, 0.017, 0.24, 20.0
EPS = INERTIA * np.tan(np.deg2rad(INCLINATION)) / (MASS * ARM)
"""m: the flat point is so far above the center of mass."""
GRAVITY = 9.81


def moves(machine: Machine) -> JointPath:
    """Return moves of the flat point, with the place and tilt of the craft that go with them."""
    way = Moves((0.0, 0.0), ((1.0, 1.2, (1.5, 0.0)), (3.5, 1.5, (-0.5, 0.8))))

    def path(t: Any) -> list[Any]:
        y = way.at(t)
        symbol = ca.SX.sym("s")
        twice = ca.jacobian(ca.jacobian(way.at(symbol), symbol), symbol)
        pull = ca.substitute(twice, symbol, t)
        tilt = ca.atan2(-pull[0], pull[1] + GRAVITY)
        across, up = y[0] + EPS * ca.sin(tilt), y[1] + EPS * (1 - ca.cos(tilt))
        return [across, up, ca.cos(tilt), ca.sin(tilt)]

    return JointPath(machine, path, times=way.times)


def parameters(poles: Any) -> list[dict[str, Moments]]:
    """Return the matched prototype with these poles of moving sideways; the craft's y is up."""
    design = sideways(MASS, poles, GRAVITY, EPS)
    flat = np.diag([0.5, 0.5, 1.0])
    return [
        {"body": Moments.of_body(MASS, (0, design.s, 0), design.inertia(EPS) * flat)},
        {"body": Moments.of_body(design.damping, (0, design.h, 0), 0 * flat)},
        {"body": Moments.of_body(design.stiffness, (0, design.h, 0), design.moment * flat)},
    ]


@dataclass(frozen=True)
class Pvtol(Scenario):
    """A craft in a vertical plane, two inclined propellers, moves and catches itself.

    Three velocities, two inputs, and thrusts that push sideways when they turn the craft. The
    prototype is matched to that: its centers of inertia, damping and stiffness stand over each
    other so that small errors move with the four poles asked for.

    Parameters
    ----------
    approach : str
        How the prototype is imitated: "particle", "body" or "energy".
    duration : float
        How long to simulate, s.
    dt : float
        Step of the integrator, s.
    slow : float
        Frequency of the slower poles, rad/s.
    fast : float
        Frequency of the faster poles, rad/s.
    damping : float
        Damping ratio of both.

    Metrics
    -------
    pole_error
        How far a pole is from the one asked for, at worst, 1/s.
    end_position_m
        Distance from the reference in the end.
    """

    name: ClassVar[str] = "pvtol"

    approach: str = "particle"
    duration: float = 7.0
    dt: float = 5e-4
    slow: float = 3.0
    fast: float = 9.0
    damping: float = 0.8

    def run(self, progress: bool | None = None) -> Outcome:
        """Simulate with ideal propellers from an error of place and tilt."""
        machine = pvtol(MASS, INERTIA, ARM, INCLINATION)
        poles = characteristic((self.slow, self.damping), (self.fast, self.damping))
        law = PrototypeControl(machine, *parameters(poles), approach=self.approach, limits=True)
        reference = moves(machine)
        linear = matching(law)
        placed = _placed(linear.poles, poles)
        first = np.array([0.4, -0.3, np.cos(0.7), np.sin(0.7)])
        run = simulate(
            machine,
            law,
            reference,
            first,
            np.zeros(3),
            duration=self.duration,
            dt=self.dt,
            record=("energy",),
            progress=progress,
        )
        x, x_R = run.x, run.reference["x"]
        off = np.linalg.norm(x[:, :2] - x_R[:, :2], axis=1)
        turn = np.rad2deg(
            np.arctan2(x[:, 3] * x_R[:, 2] - x[:, 2] * x_R[:, 3], (x[:, 2:] * x_R[:, 2:]).sum(1))
        )
        missing = feasibility(machine, reference, np.linspace(0, 7, 141)).largest_force
        return Outcome(
            runs={"pvtol": run},
            metrics={
                "rms_position_m": rms(off),
                "rms_attitude_deg": rms(turn),
                "settling_s": settling_time(run.t, off, 0.01),
                "energy_rate_error": rate_error(run.t, run["W"], -run["W_loss"]),
                "model_energy_rate_error": rate_error(run.t, run["W"], run["W_rate"]),
                "matching_error": linear.error,
                "pole_error": placed,
                "reference_missing_force_n": missing,
                "end_position_m": float(off[-1]),
            },
            promises=(
                Promise("no force is missing on the reference", missing, 1e-9, "N"),
                Promise("all matching conditions hold, error", linear.error, 1e-10),
                Promise("the poles of moving sideways are those asked for", placed, 1e-5, "1/s"),
                Promise("the craft is on its reference in the end", float(off[-1]), 1e-3, "m"),
            ),
            figures=(
                Figure(
                    "Way of the craft",
                    "y (m)",
                    "z (m)",
                    (
                        Line("flown", x[:, 0], x[:, 1]),
                        Line("reference", x_R[:, 0], x_R[:, 1], dashed=True),
                    ),
                    equal=True,
                ),
                Figure.over_time("Error of position", "error (m)", run.t, {"norm": off}),
                Figure.over_time("Error of tilt", "angle (deg)", run.t, {"tilt": turn}),
                Figure.over_time(
                    "Thrusts", "thrust (N)", run.t, {"right": run.u[:, 0], "left": run.u[:, 1]}
                ),
                Figure.over_time("Error energy", "energy (J)", run.t, {"W": run["W"]}),
            ),
            animations=(Animation("The craft in its plane", run, trails=("body",)),),
            notes=(
                "The craft cannot follow its prototype exactly: the error energy has no proof, and "
                "its measured rate is compared with that of the model (`W_rate`).",
            ),
        )


def _placed(poles: np.ndarray, wanted: np.ndarray) -> float:
    """Return how far the nearest pole is, at worst, from a root of the wanted polynomial."""
    roots = np.roots(wanted[::-1])
    return float(max(np.abs(poles - root).min() for root in roots))
