"""The scenario `four-bar`."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from framefree.gallery.machines.classics import four_bars, four_bars_at
from framefree.gallery.scenarios.classics.closed_forms import swinging_over
from framefree.gallery.shared.metrics import ConservativeScenario
from framefree.gallery.shared.scenario import Outcome, Promise
from framefree.look.report import Animation, Figure, Line
from framefree.machine import Machine
from framefree.motion import equations
from framefree.simulate import Run, simulate

# Position (m) and velocity (m/s) of B0 after 10 s of two linkages, to which the values published
# for steps of 1 ms down to 0.125 ms converge [Gonzalez2006, problem A02], [Exudyn].
PUBLISHED_TIME = 10.0
PUBLISHED = np.array([0.3284581115, 0.9445185382, 1.4230514702, -0.4948688455])
CLEAR = 0.02
"""Where |cos| of the cranks' angle is above this, 1.1 degrees from flat, forces are compared."""


@dataclass(frozen=True)
class FourBar(ConservativeScenario):
    """Linkages that go flat twice a turn, where their constraints lose rank.

    Parallelograms of rods of 1 kg and 1 m, pushed over from upright. Whenever all rods lie on one
    line the constraints no longer tell which way the linkage may go on, and the force in the rods
    has no bound: a classic trap for software that inverts them. One angle tells the whole motion,
    and it is known in closed form.

    Parameters
    ----------
    count : int
        Number of parallelograms in the row.
    first_rate : float
        First rate of the cranks, rad/s.
    dt : float
        Step of the integrator, s.
    duration : float
        How long to simulate, s.
    drift_duration : float
        How long the second run goes on, which shows whether the loops come apart, s.
    formulation : str
        Equations of motion by which it is simulated.

    Metrics
    -------
    angle_error_rad
        Largest error of the cranks' angle against the closed form.
    flat_positions_passed
        How often all rods lay on one line, where the constraints lose rank.
    pivot_force_relative_error
        Largest error of the first pivot's force, by that force, away from flat positions.
    largest_pivot_force_n
        Largest force of the first pivot that was recorded; it has no bound where the
        linkage is flat.
    published_position_error_m
        Difference to the published position after 10 s.
    published_velocity_error_m_s
        Difference to the published velocity after 10 s.
    long_seconds_s
        Length of the second run.
    long_loop_error_m
        Largest gap of a loop in the second run.
    long_angle_error_rad
        Largest error of the angle in the second run.
    long_energy_drift_j
        Largest change of the energy in the second run.
    """

    name: ClassVar[str] = "four-bar"

    count: int = 2
    first_rate: float = 1.0
    duration: float = 10.0
    dt: float = 1e-3
    drift_duration: float = 100.0
    formulation: str = "constrained"

    def run(self, progress: bool | None = None) -> Outcome:
        """Simulate for a while with all forces, and for long with the errors of the loops."""
        machine = four_bars(self.count)
        x0, v0 = four_bars_at(machine, 0.0, self.first_rate)
        short, long = (
            simulate(
                machine,
                x0=x0,
                v0=v0,
                duration=duration,
                dt=self.dt,
                formulation=self.formulation,
                every=max(1, round(spacing / self.dt)),
                record=record,
                progress=progress,
            )
            for duration, spacing, record in (
                (self.duration, 2e-3, ("energy", "constraint", "joint_wrench")),
                (self.drift_duration, 0.1, ("energy",)),
            )
        )
        motion = _LinkageMotion(machine, short, self.first_rate)
        metrics = {**motion.metrics(), **_drift_metrics(machine, long, self.first_rate)}
        return Outcome(
            runs={"linkage": short, "long": long},
            metrics=metrics,
            promises=_promises(metrics),
            figures=(*motion.figures(), _closure_figure(machine, long)),
            animations=(
                Animation("The linkage in motion", short, trails=("B0",), caption=motion.caption),
            ),
            notes=motion.notes,
        )


class _LinkageMotion:
    """The run beside its closed form."""

    caption = "Rods that connect the cranks stay level through every flat position."
    notes = (
        "A row of n parallelograms has one degree of freedom: with the angle phi of the cranks "
        "from upright, ((n + 1)/3 + n) phi'' = ((n + 1)/2 + n) g sin(phi), an amplitude of "
        "Jacobi. The simulation knows nothing of this: it has 2n + 1 joints and 5n equations of "
        "closure, of which all but 2n are redundant always, and half of the rest when flat.",
    )

    def __init__(self, machine: Machine, run: Run, first_rate: float) -> None:
        self.machine, self.run, self.t = machine, run, run.t
        self.gravity = -float(machine.gravity[2])
        self.phi, self.rate = _exact(machine, run.t, first_rate)
        self.angle = _angle(run)
        self.angle_error = np.abs(self.angle - self.phi)
        self.tip = _tip(self.angle, -run.v[:, 0])
        self.standard = len(machine.loops) == 2 and first_rate == 1.0
        self.force, self.exact_force = self._pivot_force(), self._exact_pivot_force()

    def _pivot_force(self) -> np.ndarray:
        """Force (n, 2) of the first pivot on its crank along x and z."""
        q = self.run.x[:, 0]
        fx, fz = self.run["joint_wrench"][:, 0, (0, 2)].T
        return np.stack([np.cos(q) * fx - np.sin(q) * fz, np.sin(q) * fx + np.cos(q) * fz], axis=1)

    def _exact_pivot_force(self) -> np.ndarray:
        """Force of the pivot in closed form: moments about pivot and middle of the first rods."""
        s, c, g = np.sin(self.phi), np.cos(self.phi), self.gravity
        turn = _stiffness(self.machine) * s
        ax, az = turn * c - self.rate**2 * s, -turn * s - self.rate**2 * c  # of the crank's end
        down = (az + g) / 2  # the level rod does not turn: half its weight and inertia at each end
        along = (g * s / 2 - turn / 3 + down * s) / c
        return np.stack([ax / 2 + along, az / 2 + g + down], axis=1)

    @property
    def _clear(self) -> np.ndarray:
        return np.abs(np.cos(self.phi)) > CLEAR

    def metrics(self) -> dict[str, float | int]:
        """Return errors against the closed form and the published end."""
        energy = self.run.energy
        force = np.linalg.norm(self.force - self.exact_force, axis=1)
        force /= np.linalg.norm(self.exact_force, axis=1)
        flat = np.count_nonzero(np.diff(np.sign(np.cos(self.phi))))
        metrics: dict[str, float | int] = {
            "angle_error_rad": float(self.angle_error.max()),
            "energy_drift_j": float(np.abs(energy - energy[0]).max()),
            "flat_positions_passed": int(flat),
            "pivot_force_relative_error": float(force[self._clear].max()),
            "largest_pivot_force_n": float(np.linalg.norm(self.force, axis=1).max()),
        }
        row = int(np.argmin(np.abs(self.t - PUBLISHED_TIME)))
        if self.standard and abs(self.t[row] - PUBLISHED_TIME) < 1e-9:
            gap = np.abs(self.tip[row] - PUBLISHED)
            metrics["published_position_error_m"] = float(gap[:2].max())
            metrics["published_velocity_error_m_s"] = float(gap[2:].max())
        return metrics

    def figures(self) -> tuple[Figure, ...]:
        """Return angle, rank, forces and errors."""
        sizes = np.linalg.norm
        return (
            Figure.over_time(
                "Angle of the cranks from upright", "angle (turns)", self.t,
                {"simulated": self.angle / (2 * np.pi), "closed form *": self.phi / (2 * np.pi)},
                caption="It lingers upright, where it starts, and falls through the rest.",
            ),
            self._rank_figure(),
            Figure.over_time(
                "Force of the first pivot", "force (N)", self.t,
                {
                    "simulated": sizes(self.force, axis=1),
                    "closed form *": sizes(self.exact_force, axis=1),
                },
                logarithmic=True,
                caption="Without bound where the linkage is flat; a crank weighs 9.8 N.",
            ),
            Figure.over_time(
                "Error against the closed form", "error of the angle (rad)", self.t,
                {"angle": self.angle_error}, logarithmic=True,
            ),
        )  # fmt: skip

    def _rank_figure(self) -> Figure:
        A = equations(self.machine, "constrained").kernel("constraint")(self.run.x, self.run.v)[0]
        values = np.linalg.svd(A, compute_uv=False)
        independent = self.machine.nv - 1
        return Figure.over_time(
            "How well the loops tell the linkage where to go", "singular value", self.t,
            {
                f"smallest of the {independent} that count": values[:, independent - 1],
                "next, always redundant": values[:, independent],
            },
            logarithmic=True,
            caption="Of the constraints' matrix; twice a turn it loses half its rank.",
        )  # fmt: skip


def _stiffness(machine: Machine) -> float:
    bars, cranks = len(machine.loops), len(machine.loops) + 1
    return -float(machine.gravity[2]) * (cranks / 2 + bars) / (cranks / 3 + bars)


def _exact(machine: Machine, t: np.ndarray, first_rate: float) -> tuple[np.ndarray, np.ndarray]:
    return swinging_over(t, first_rate, _stiffness(machine))


def _angle(run: Run) -> np.ndarray:
    """Angle (n,) of the first crank from upright towards x."""
    return np.pi / 2 - np.unwrap(run.x[:, 0])


def _tip(angle: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Position and velocity (n, 4) of B0 in its plane."""
    s, c = np.sin(angle), np.cos(angle)
    return np.stack([s, c, rate * c, -rate * s], axis=1)


def _closure(machine: Machine, run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Largest errors (n,) of position and velocity of the loops, whatever the formulation."""
    rows = equations(machine, "constrained").kernel("constraint")(run.x, run.v)  # A, b, errors
    position, velocity = (np.abs(error).reshape(len(run.t), -1).max(axis=1) for error in rows[2:4])
    return position, velocity


def _drift_metrics(machine: Machine, run: Run, first_rate: float) -> dict[str, float | int]:
    position, _ = _closure(machine, run)
    error = np.abs(_angle(run) - _exact(machine, run.t, first_rate)[0])
    return {
        "long_seconds_s": float(run.t[-1]),
        "long_loop_error_m": float(position.max()),
        "long_angle_error_rad": float(error.max()),
        "long_energy_drift_j": float(np.abs(run.energy - run.energy[0]).max()),
    }


def _promises(metrics: dict[str, float | int]) -> tuple[Promise, ...]:
    seconds = metrics["long_seconds_s"]
    bounds = {
        "angle_error_rad": ("the angle keeps to the closed form", 1e-6),
        "published_position_error_m": ("the published position after 10 s is met", 1e-6),
        "published_velocity_error_m_s": ("the published velocity after 10 s is met", 1e-6),
        "pivot_force_relative_error": ("the relative error of the pivot force is small", 1e-6),
        "energy_drift_j": ("the energy of 36 J is kept", 1e-6),
        "long_loop_error_m": (f"the loops stay closed for {seconds:g} s", 1e-10),
    }
    return tuple(
        Promise.of(metrics, key, text, bound)
        for key, (text, bound) in bounds.items()
        if key in metrics
    )


def _closure_figure(machine: Machine, run: Run) -> Figure:
    position, velocity = _closure(machine, run)
    return Figure(
        "Errors of closure over a long time", "time (s)", "error (m, m/s)",
        (Line("position", run.t, position), Line("velocity", run.t, velocity)),
        "They do not grow: every step ends on the constraints.", logarithmic=True,
    )  # fmt: skip
