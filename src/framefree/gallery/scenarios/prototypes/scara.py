"""The scenario `scara`."""

from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from framefree.control.prototype import PrototypeControl
from framefree.control.prototype.transport import by_errors
from framefree.control.references import JointPath
from framefree.control.references.flat_curves import Moves
from framefree.gallery.machines.scara import scara
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.geometry import Moments
from framefree.look.report import Animation, Figure, Line
from framefree.machine import Machine
from framefree.simulate import Run, simulate
from framefree.simulate.measures import rate_error, rms, settling_time

FIRST, SECOND = 0.3, 0.2

# t; joint angles in degrees, with gains at the joints and with gains at the tool [Konz2024, ch. 4].
PUBLISHED = np.array([
    (0.5, 8.553, 60.045, -9.851, 73.714),
    (1.0, 37.100, 6.720, 1.642, 59.528),
    (2.0, 78.840, -103.046, 2.161, 107.658),
    (2.5, 131.340, -137.736, 48.599, 138.616),
    (3.0, 177.735, -107.373, 100.752, 107.525),
    (5.0, 174.734, -54.315, 132.136, 54.315),
])  # fmt: skip
PUBLISHED_ENERGY = {"joints": 41.632, "tool": 42.076}


def line(machine: Machine) -> JointPath:
    """Return the straight way of the tool over 0.8 m, with the elbow to one side."""
    way = Moves((0.4, 0.2), ((1.0, 3.0, (-0.4, 0.2)),), degree=5)

    def path(t: Any) -> list[Any]:
        x, y = ca.vertsplit(way.at(t))
        cosine = (x * x + y * y - FIRST**2 - SECOND**2) / (2 * FIRST * SECOND)
        elbow = -ca.acos(cosine)
        inner = ca.atan2(SECOND * ca.sin(elbow), FIRST + SECOND * ca.cos(elbow))
        return [ca.atan2(y, x) - inner, elbow]

    return JointPath(machine, path, times=way.times)


def tool(x: Any) -> Any:
    """Return the tool's position (2), m, of joint angles (casadi column)."""
    both = x[0] + x[1]
    return ca.vertcat(
        FIRST * ca.cos(x[0]) + SECOND * ca.cos(both), FIRST * ca.sin(x[0]) + SECOND * ca.sin(both)
    )


def joint_gains() -> list[dict]:
    """Return 1 kg m^2, 8 Nm s and 16 Nm across each joint."""
    pairs = (("world", "link1"), ("link1", "link2"))
    flat = np.diag([0.5, 0.5, 0.0])
    return [{p: Moments(0.0, np.zeros(3), k * flat) for p in pairs} for k in (1.0, 8.0, 16.0)]


def tool_gains() -> list[dict]:
    """Return 160 kg, 1280 N s/m and 2560 N/m at the tool."""
    point = np.zeros(3), np.zeros((3, 3))
    return [{"tool": Moments(k, *point)} for k in (160.0, 1280.0, 2560.0)]


@dataclass(frozen=True)
class Scara(Scenario):
    """A two-joint arm draws a line, with a prototype at its joints and one at its tool.

    The arm begins with its elbow on the other side. Gains at the joints bring it over, on a detour
    of the tool; gains at the tool bring the tool to the line at once and leave the elbow where it
    is. Both have all the proof there is: with a transport map the error energy falls by what the
    dampers take.

    Parameters
    ----------
    dt : float
        Step of the integrator, s.
    duration : float
        How long to simulate, s.

    Metrics
    -------
    rms_position_m
        Error of the tool with gains at the tool, root of the mean square.
    joints_rms_position_m
        The same with gains at the joints.
    joints_settling_s
        Time after which the tool stays within 1 mm of the line, gains at the joints.
    settling_s
        Time after which the tool stays within 1 mm of the line, gains at the tool.
    published_difference_deg
        Largest difference to the published joint angles.
    *_first_energy_j
        Error energy at first, for each choice of gains.
    """

    name: ClassVar[str] = "scara"

    dt: float = 5e-4
    duration: float = 5.0

    def run(self, progress: bool | None = None) -> Outcome:
        """Simulate both prototypes by the energy approach, with ideal motors."""
        machine = scara()
        carried = by_errors(machine, lambda x, x_R: tool(x) - tool(x_R))
        laws = {
            "joints": PrototypeControl(machine, *joint_gains(), approach="energy"),
            "tool": PrototypeControl(machine, *tool_gains(), approach="energy", transport=carried),
        }
        reference = line(machine)
        runs = {
            name: simulate(
                machine,
                law,
                reference,
                np.deg2rad([-30.0, 90.0]),
                np.zeros(2),
                duration=self.duration,
                dt=self.dt,
                record=("energy",),
                progress=progress,
            )
            for name, law in laws.items()
        }
        places = {name: _places(run.x) for name, run in runs.items()}
        wanted = _places(runs["tool"].reference["x"])
        off = {name: np.linalg.norm(place - wanted, axis=1) for name, place in places.items()}
        wrong = {name: rate_error(r.t, r["W"], -r["W_loss"]) for name, r in runs.items()}
        difference = _difference(runs)
        t = runs["tool"].t
        return Outcome(
            runs=runs,
            metrics={
                "rms_position_m": rms(off["tool"]),
                "joints_rms_position_m": rms(off["joints"]),
                "settling_s": settling_time(t, off["tool"], 1e-3),
                "joints_settling_s": settling_time(t, off["joints"], 1e-3),
                "energy_rate_error": max(wrong.values()),
                "published_difference_deg": difference,
                **{f"{name}_first_energy_j": float(run["W"][0]) for name, run in runs.items()},
            },
            promises=(
                Promise("the error energy falls by what the dampers take, relative error",
                        max(wrong.values()), 1e-6),
                Promise("published angles are met to their digits", difference, 6e-4, "°"),
                *(
                    Promise(f"the published first energy is met, gains at the {name}",
                            abs(float(runs[name]["W"][0]) - value), 6e-4, "J")
                    for name, value in PUBLISHED_ENERGY.items()
                ),
            ),
            figures=(
                Figure(
                    "Ways of the tool",
                    "x (m)",
                    "y (m)",
                    (
                        *(Line(f"gains at the {n}", p[:, 0], p[:, 1]) for n, p in places.items()),
                        Line("reference", wanted[:, 0], wanted[:, 1], dashed=True),
                    ),
                    equal=True,
                ),
                Figure.over_time("Error of the tool", "error (m)", t, off),
                Figure.over_time(
                    "Elbow",
                    "angle (deg)",
                    t,
                    {
                        **{name: np.rad2deg(run.x[:, 1]) for name, run in runs.items()},
                        "reference*": np.rad2deg(runs["tool"].reference["x"][:, 1]),
                    },
                ),
                Figure.over_time(
                    "Error energy",
                    "energy (J)",
                    t,
                    {name: np.maximum(run["W"], 1e-14) for name, run in runs.items()},
                    logarithmic=True,
                ),
            ),
            animations=tuple(
                Animation(f"Gains at the {name}", run, trails=("tool",))
                for name, run in runs.items()
            ),
        )  # fmt: skip


def _places(x: np.ndarray) -> np.ndarray:
    both = x[:, 0] + x[:, 1]
    return np.column_stack([
        FIRST * np.cos(x[:, 0]) + SECOND * np.cos(both),
        FIRST * np.sin(x[:, 0]) + SECOND * np.sin(both),
    ])  # fmt: skip


def _difference(runs: dict[str, Run]) -> float:
    """Return the largest difference from the published angles, degrees."""
    t = runs["tool"].t
    rows = PUBLISHED[PUBLISHED[:, 0] <= t[-1] + 1e-9]
    at = [int(np.argmin(np.abs(t - time))) for time in rows[:, 0]]
    angles = np.column_stack([np.rad2deg(runs[name].x[at]) for name in ("joints", "tool")])
    return float(np.abs(angles - rows[:, 1:]).max(initial=0.0))
