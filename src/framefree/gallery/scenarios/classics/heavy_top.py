"""The scenario `heavy-top`."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from framefree.gallery.machines.classics import heavy_top
from framefree.gallery.scenarios.classics.closed_forms import lagrange_top
from framefree.gallery.shared.metrics import ConservativeScenario
from framefree.gallery.shared.rotations import angle_between
from framefree.gallery.shared.scenario import Outcome, Promise
from framefree.geometry import batch
from framefree.look.report import Animation, Figure, Line
from framefree.machine import Machine
from framefree.simulate import Run, simulate

# Time in s; attitude (wxyz), center of mass in m, and force of the pivot on the top in N. The start
# is that of [Bruels2010] with the precession as in [Exudyn], whose published attitude at
# 0.2 s these continue: integrated by a method of eighth order to 1e-13.
PUBLISHED = np.array([
    (0.05, -0.81466605, -0.049181315, -0.56836187, 0.1042363,
     0.22574112, 0.97343198, -0.03835518, -181.1628, -314.9602, -292.1120),
    (0.1, 0.33182291, 0.17733806, 0.91497516, -0.14582601,
     0.42129666, 0.89457197, -0.1491647, -361.0560, -295.3932, -212.2672),
    (0.2, -0.70827915, 0.43878109, 0.5457284, 0.089399753,
     0.60555056, 0.59895768, -0.52398303, -640.2364, -148.6277, 136.9293),
    (0.5, 0.58456062, -0.7006629, 0.38432575, 0.14019308,
     -0.7024683, -0.021165185, -0.71140026, 523.2812, 404.2062, 357.3362),
    (1.0, 0.73294398, -0.27828572, 0.53182461, -0.32017614,
     0.17334396, 0.64008859, -0.74849079, -517.6007, -396.8431, 404.5749),
    (1.5, 0.0046925805, -0.61224137, 0.79065227, 0.0027343879,
     -0.96816572, 0.25030606, -0.0014220839, 305.2521, -100.1278, -316.3528),
    (2.0, 0.12294714, -0.49107989, 0.35043003, -0.78798689,
     -0.15041682, -0.72416559, -0.67302227, -260.7352, 613.6127, 309.7166),
])  # fmt: skip


@dataclass(frozen=True)
class HeavyTop(ConservativeScenario):
    """A spinning top on a pivot, against its closed form and published numbers.

    The benchmark of the literature on integrators: a disc of 15 kg on a rod of 1 m, let go with its
    axis horizontal, a fast spin and a slow turn about the vertical against the sense that gravity
    asks for. It precesses and nutates, and at the bottom of every swing its axis passes the
    vertical so closely that the angle of precession jumps by half a turn: Euler angles about the
    vertical fail there, attitudes on the group do not notice.

    Parameters
    ----------
    dt : float
        Step of the integrator, s.
    duration : float
        How long to simulate, s.
    spin : float
        First rate about the top's own axis, rad/s.
    precession : float
        First rate about the vertical, rad/s.
    plant : str
        "native" or "mujoco".
    long_steps : int
        Steps of the long run that shows whether the energy drifts.
    long_dt : float
        Step of that run, s.

    Metrics
    -------
    attitude_error_rad
        Largest angle between the attitude and that of the closed form.
    center_error_m
        Largest distance of the center of mass from the closed form.
    vertical_momentum_drift_nms
        Largest change of the angular momentum about the vertical.
    spin_momentum_drift_nms
        Largest change of the angular momentum about the top's own axis.
    lowest_center_m
        Lowest height of the center of mass in the closed form.
    closest_to_vertical_deg
        How near the axis comes to hanging straight down, where Euler angles fail.
    largest_reaction_n
        Largest force of the pivot on the top.
    published_times
        Number of moments at which published numbers were compared.
    published_attitude_error_rad
        Largest angle to the published attitudes.
    published_center_error_m
        Largest difference to the published positions of the center.
    published_reaction_error_n
        Largest difference to the published forces of the pivot.
    long_steps
        Steps of the long run.
    midpoint_energy_error_*_half_j
        Largest error of the energy in one half of the long run by the midpoint rule.
    rk4_energy_error_j
        The same of Runge-Kutta 4 over the whole long run: it drifts.
    """

    name: ClassVar[str] = "heavy-top"

    duration: float = 2.0
    dt: float = 5e-5
    spin: float = 150.0
    precession: float = -4.61538
    plant: str = "native"
    long_steps: int = 1_000_000
    long_dt: float = 1e-3

    def run(self, progress: bool | None = None) -> Outcome:
        """Simulate the top in short steps, and a million long ones by two integrators."""
        machine = heavy_top()
        first = np.array([0.0, self.spin, self.precession])
        run = simulate(
            machine,
            v0=first,
            duration=self.duration,
            dt=self.dt,
            every=max(1, round(1e-3 / self.dt)),
            plant=self.plant,
            record=("energy", "momentum", "joint_wrench"),
            progress=progress,
        )
        long = {
            integrator: simulate(
                machine,
                v0=first,
                duration=self.long_steps * self.long_dt,
                dt=self.long_dt,
                integrator=integrator,
                every=max(1, self.long_steps // 1000),
                record=("energy",),
                progress=progress,
            )
            for integrator in ("midpoint", "rk4")
        }
        motion = _TopMotion(machine, run, self.spin, self.precession)
        drift = _halves(long["midpoint"])
        return Outcome(
            runs={"top": run, "million_steps": long["midpoint"]},
            metrics={**motion.metrics(), **self._long_metrics(long)},
            promises=(
                *motion.promises(),
                Promise(
                    f"over {self.long_steps:,} steps the energy error of the midpoint rule does "
                    "not grow: its second half, against 1.2 times the first",
                    drift[1],
                    1.2 * drift[0],
                    "J",
                ),
            ),
            figures=(*motion.figures(), _long_figure(long, self.long_steps)),
            animations=(
                Animation(
                    "The top in motion",
                    run,
                    trails=("center",),
                    caption="The disc swings down, dips below the pivot and comes back up to the "
                    "height from which it was let go.",
                ),
            ),
            notes=motion.notes(),
        )

    def _long_metrics(self, long: dict[str, Run]) -> dict[str, float | int]:
        first, second = _halves(long["midpoint"])
        return {
            "long_steps": self.long_steps,
            "midpoint_energy_error_first_half_j": first,
            "midpoint_energy_error_second_half_j": second,
            "rk4_energy_error_j": max(_halves(long["rk4"])),
        }


class _TopMotion:
    """The run beside its closed form and the published numbers."""

    def __init__(self, machine: Machine, run: Run, spin: float, precession: float) -> None:
        inertia = np.asarray(machine.bodies[0].moments.moment)
        center = np.asarray(machine.frame("center").pose)[:3, 3]
        mass, g = float(machine.bodies[0].moments.total), -float(machine.gravity[2])
        self.run, self.t = run, run.t
        self.rotation = batch.rotation(run.x)
        self.exact = lagrange_top(
            run.t, spin, precession, inertia[1, 1], inertia[0, 0], mass * g * center[1]
        )
        self.center, self.exact_center = self.rotation @ center, self.exact @ center
        self.attitude_error = angle_between(self.rotation, self.exact)
        force = run["joint_wrench"][:, 0, :3]
        self.reaction = np.einsum("nij,nj->ni", self.rotation, force)
        self.spin_momentum = inertia[1, 1] * run.v[:, 1]
        self.vertical = run["angular_momentum"][:, 2]
        self.rows = self._published() if (spin, precession) == (150.0, -4.61538) else []

    def _published(self) -> list[tuple[int, np.ndarray]]:
        """Rows of the run at times of the table."""
        nearest = [(int(np.argmin(np.abs(self.t - row[0]))), row) for row in PUBLISHED]
        return [(k, row) for k, row in nearest if abs(self.t[k] - row[0]) < 1e-9]

    def _drift(self, values: np.ndarray) -> float:
        return float(np.abs(values - values[0]).max())

    def metrics(self) -> dict[str, float | int]:
        """Return errors, conserved quantities, and what the top does."""
        lowest = float(self.exact_center[:, 2].min())
        tilt = np.linalg.norm(self.center[:, :2], axis=1)[self.center[:, 2] < 0]
        metrics: dict[str, float | int] = {
            "attitude_error_rad": float(self.attitude_error.max()),
            "center_error_m": float(np.linalg.norm(self.center - self.exact_center, axis=1).max()),
            "energy_drift_j": self._drift(self.run.energy),
            "vertical_momentum_drift_nms": self._drift(self.vertical),
            "spin_momentum_drift_nms": self._drift(self.spin_momentum),
            "lowest_center_m": lowest,
            "closest_to_vertical_deg": float(np.rad2deg(np.arcsin(min(tilt.min(initial=1), 1)))),
            "largest_reaction_n": float(np.linalg.norm(self.reaction, axis=1).max()),
        }
        if self.rows:
            metrics |= self._published_errors()
        return metrics

    def _published_errors(self) -> dict[str, float | int]:
        attitude = [
            angle_between(self.rotation[k], batch.rotation(row[1:5])) for k, row in self.rows
        ]
        center = [np.abs(self.center[k] - row[5:8]).max() for k, row in self.rows]
        force = [np.abs(self.reaction[k] - row[8:]).max() for k, row in self.rows]
        return {
            "published_times": len(self.rows),
            "published_attitude_error_rad": float(np.max(attitude)),
            "published_center_error_m": float(np.max(center)),
            "published_reaction_error_n": float(np.max(force)),
        }

    def promises(self) -> tuple[Promise, ...]:
        """Return what must hold of the run in short steps."""
        m = self.metrics()
        bounds = {
            "attitude_error_rad": ("the attitude keeps to the closed form", 1e-6),
            "center_error_m": ("the center of mass keeps to the closed form", 1e-6),
            "published_attitude_error_rad": ("published attitudes are met", 1e-6),
            "published_center_error_m": ("published positions are met", 1e-6),
            "published_reaction_error_n": ("published forces of the pivot are met", 1e-3),
            "energy_drift_j": ("the energy of 5.4 kJ is kept", 1e-5),
            "vertical_momentum_drift_nms": ("the momentum about the vertical is kept", 1e-6),
        }
        return tuple(
            Promise.of(m, key, text, bound) for key, (text, bound) in bounds.items() if key in m
        )

    def notes(self) -> tuple[str, ...]:
        """Return paragraphs for the report."""
        deg = self.metrics()["closest_to_vertical_deg"]
        texts = [
            "A symmetric top on a fixed point is one of the few rotating bodies whose motion is "
            "known: the height of its axis is an elliptic function of Jacobi, its other angles are "
            "integrals of it. The dashed lines are that closed form; it shares no code with the "
            "simulation.",
            f"On this run the recorded axis comes within {deg:.2g} degrees of the vertical.",
        ]
        if not self.rows:
            texts.append(
                "The published numbers hold for another start or other times and are left out."
            )
        return tuple(texts)

    def figures(self) -> tuple[Figure, ...]:
        """Return path, height, forces, conserved quantities and errors."""
        t, c = self.t, self.center
        marks = np.array([row for _, row in self.rows]).reshape(-1, 11)
        published = "published"
        path = [
            Line("center of mass", c[:, 0], c[:, 1]),
            Line("closed form", self.exact_center[:, 0], self.exact_center[:, 1], dashed=True),
        ]
        height = [
            Line("height of the center", t, c[:, 2]),
            Line("closed form", t, self.exact_center[:, 2], dashed=True),
        ]
        forces = [Line(f"{a}", t, self.reaction[:, i]) for i, a in enumerate("xyz")]
        if len(marks):
            path.append(Line(published, marks[:, 5], marks[:, 6], markers=True))
            height.append(Line(published, marks[:, 0], marks[:, 7], markers=True))
            forces += [
                Line(f"{a}, {published}", marks[:, 0], marks[:, 8 + i], markers=True)
                for i, a in enumerate("xyz")
            ]
        return (
            Figure(
                "Path of the center of mass, seen from above", "x (m)", "y (m)", tuple(path),
                "Petals of nutation turn with the precession and pass the vertical.", equal=True,
            ),
            Figure(
                "Nutation", "time (s)", "height above the pivot (m)", tuple(height),
                "The disc falls almost to the lowest point and returns to where it started.",
            ),
            Figure(
                "Force of the pivot on the top", "time (s)", "force (N)", tuple(forces),
                "The top weighs 147 N; the pivot carries several times that.",
            ),
            Figure.over_time(
                "Angle of precession", "angle (turns)", t,
                {
                    "simulated": _precession_turns(c),
                    "closed form *": _precession_turns(self.exact_center),
                },
                caption="Half a turn within a millisecond whenever the axis passes the vertical.",
            ),
            self._conserved(),
            Figure.over_time(
                "Error against the closed form", "error (rad, m)", t,
                {
                    "attitude": self.attitude_error,
                    "center": np.linalg.norm(c - self.exact_center, axis=1),
                },
                logarithmic=True,
            ),
        )  # fmt: skip

    def _conserved(self) -> Figure:
        def relative(values: np.ndarray) -> np.ndarray:
            return np.abs(values / values[0] - 1)

        return Figure.over_time(
            "What must not change", "relative change", self.t,
            {
                "energy": relative(self.run.energy),
                "momentum about the vertical": relative(self.vertical),
                "momentum about the axis of the top": relative(self.spin_momentum),
            },
            logarithmic=True,
            caption="Energy, and the two momenta about axes that gravity does not turn.",
        )  # fmt: skip


def _precession_turns(center: np.ndarray) -> np.ndarray:
    """Return the angle of the center about the vertical, in turns from its start."""
    return np.unwrap(np.arctan2(center[:, 1], center[:, 0])) / (2 * np.pi) - 0.25


def _halves(run: Run) -> tuple[float, float]:
    """Return the largest energy error (J) in the first and in the second half of a run."""
    error = np.abs(run.energy - run.energy[0])
    half = len(error) // 2
    return float(error[:half].max()), float(error[half:].max())


def _long_figure(long: dict[str, Run], steps: int) -> Figure:
    names = {"midpoint": "implicit midpoint", "rk4": "Runge-Kutta 4"}
    lines = [
        Line(names[key], run.t, np.abs(run.energy - run.energy[0])) for key, run in long.items()
    ]
    return Figure(
        "Energy over very many steps", "time (s)", "energy error (J)", tuple(lines),
        f"The midpoint rule's error stays where it was after the first of {steps:,} steps; "
        "that of Runge-Kutta 4, far smaller at first, grows with time.",
        logarithmic=True,
    )  # fmt: skip
