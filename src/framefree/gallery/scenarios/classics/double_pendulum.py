"""The scenario `double-pendulum`."""

from collections.abc import Callable
from dataclasses import dataclass
from math import cos, sin
from typing import Any, ClassVar

import numpy as np

from framefree.certify.pinocchio_model import pinocchio_model
from framefree.gallery.machines.classics import double_pendulum
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.look.report import Animation, Figure, Line
from framefree.machine import Machine
from framefree.machine.formats.mjcf_engine import mujoco_warnings
from framefree.machine.formats.write_mjcf import to_mjcf
from framefree.simulate import Adaptive, Run, simulate
from framefree.simulate.integrators import INTEGRATORS

APART = 1e-9
"""Distance (rad) of neighbours at the start."""
NEIGHBOURS = 8


@dataclass(frozen=True)
class DoublePendulum(Scenario):
    """Chaos, tracked together with MuJoCo, Pinocchio and the textbook's equations.

    Two rods let go from above the horizontal. Neighbours that start a billionth of a radian apart
    part ways within seconds, and so do two programs that differ in the last digit. How long they
    stay together tells how little they differ.

    Parameters
    ----------
    dt : float
        Step of the integrator, s.
    duration : float
        How long to simulate, s.
    shoulder : float
        First angle of the upper rod from hanging, rad.
    elbow : float
        First angle of the lower rod from the upper one, rad.
    tolerance : float
        Of the integrator that chooses its steps.

    Metrics
    -------
    textbook_error_rad
        Largest difference of a joint angle to the textbook's equations, integrated by
        SciPy.
    mujoco_error_rad
        Largest difference of a joint angle to MuJoCo with the same steps.
    pinocchio_error_rad
        Largest difference of a joint angle to Pinocchio with the same steps.
    shared_energy_drift_j
        How far the energy moves in the steps that all programs share.
    accurate_energy_drift_j
        How far the energy moves with the integrator that chooses its steps.
    neighbours_apart_at_start_rad
        How far neighbours are from the run at first.
    neighbours_apart_at_end_rad
        How far they are from it in the end, in the mean.
    growth_of_differences_per_s
        Rate at which neighbours come apart: differences grow by e in one over it.
    """

    name: ClassVar[str] = "double-pendulum"

    duration: float = 10.0
    dt: float = 5e-4
    shoulder: float = 2.0
    elbow: float = 0.5
    tolerance: float = 1e-12

    def run(self, progress: bool | None = None) -> Outcome:
        """Simulate in steps that all programs share, accurately, and with neighbours."""
        machine = double_pendulum()
        x0 = np.array([self.shoulder, self.elbow])
        every = max(1, round(0.01 / self.dt))
        common: dict[str, Any] = {"duration": self.duration, "progress": progress}
        options = {"dt": self.dt, "every": every, **common}
        shared = simulate(machine, x0=x0, record=("energy", "joint_wrench"), **options)
        accurate = simulate(
            machine,
            x0=x0,
            dt=every * self.dt,
            integrator=Adaptive(self.tolerance),
            record=("energy",),
            **common,
        )
        turns = 2 * np.pi * np.arange(NEIGHBOURS) / NEIGHBOURS
        around = x0 + APART * np.stack([np.cos(turns), np.sin(turns)], axis=1)
        near = simulate(machine, x0=around, record=(), **options)
        peers, notes = _peers(machine, shared, self.dt)
        comparison = _Comparison(shared, accurate, near, _textbook(x0, shared.t), peers)
        return Outcome(
            runs={"pendulum": shared, "accurate": accurate, "neighbours": near},
            metrics=comparison.metrics(),
            promises=comparison.promises(),
            figures=comparison.figures(),
            animations=(
                Animation(
                    "The pendulum in motion",
                    shared,
                    trails=("tip",),
                    caption="The tip writes a curve that never repeats.",
                ),
            ),
            notes=(*_NOTES, *notes),
        )


_NOTES = (
    "MuJoCo and Pinocchio take the same steps of Runge-Kutta 4 from the same start, so that they "
    "differ from us by rounding alone: 1e-16 at first, and whatever chaos makes of it. The "
    "textbook's Lagrange equations are integrated by SciPy's method of eighth order to 1e-13 and "
    "compared with our adaptive integrator.",
)


def _textbook(x0: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Joint angles (n, 2) by Lagrange's equations for two uniform rods of unit length and mass.

    In the angles a, b of the rods from the vertical (for points in place of rods see
    [Landau1976, sec. 5, problem 1]):

        4/3 a'' + 1/2 cos(a - b) b'' + 1/2 sin(a - b) b'^2 + 3/2 g sin(a) = 0
        1/3 b'' + 1/2 cos(a - b) a'' - 1/2 sin(a - b) a'^2 + 1/2 g sin(b) = 0
    """
    from scipy.integrate import solve_ivp  # loads slowly

    def rates(_: float, y: np.ndarray) -> tuple[float, ...]:
        a, b, p, q = y.tolist()
        c, s = cos(a - b) / 2, sin(a - b) / 2
        first = -s * q * q - 1.5 * 9.81 * sin(a)
        second = s * p * p - 0.5 * 9.81 * sin(b)
        det = 4 / 9 - c * c
        return p, q, (first / 3 - c * second) / det, (4 / 3 * second - c * first) / det

    start = [x0[0], x0[0] + x0[1], 0.0, 0.0]
    angles = solve_ivp(
        rates, (0.0, t[-1]), start, t_eval=t, method="DOP853", rtol=1e-13, atol=1e-13
    ).y
    return np.stack([angles[0], angles[1] - angles[0]], axis=1)


def _peers(machine: Machine, run: Run, dt: float) -> tuple[dict[str, np.ndarray], list[str]]:
    """Joint angles (n, 2) by other engines with the same steps, and notes on those not here."""
    peers, notes = {}, []
    every, steps = round(run.t[1] / dt), round(run.t[-1] / dt)
    engines: dict[str, tuple[Callable[..., np.ndarray], str]] = {
        "MuJoCo": (_by_mujoco, "models"),
        "Pinocchio": (_by_pinocchio, "peers"),
    }
    for name, (engine, extra) in engines.items():
        try:
            peers[name] = engine(machine, run.x[0], dt, steps)[::every]
        except ImportError:
            notes.append(
                f"{name} is not installed, so the comparison with it is left out; "
                f'it comes with: pip install "framefree[{extra}]"'
            )
    return peers, notes


def _by_mujoco(machine: Machine, x0: np.ndarray, dt: float, steps: int) -> np.ndarray:
    import mujoco

    from framefree.simulate.runners.mujoco import prepare

    model = mujoco.MjModel.from_xml_string(to_mjcf(machine))
    prepare(model, dt, INTEGRATORS["rk4"], limits=False)
    data = mujoco.MjData(model)
    data.qpos[:] = x0
    angles = np.empty((steps + 1, 2))
    with mujoco_warnings():
        for k in range(steps):
            angles[k] = data.qpos
            mujoco.mj_step(model, data)
    angles[steps] = data.qpos
    return angles


def _by_pinocchio(machine: Machine, x0: np.ndarray, dt: float, steps: int) -> np.ndarray:
    import pinocchio as pin

    model = pinocchio_model(pin, machine)
    data, force = model.createData(), np.zeros(2)

    def acceleration(x: np.ndarray, v: np.ndarray) -> np.ndarray:
        return pin.aba(model, data, x, v, force).copy()

    x, v, angles = x0.copy(), np.zeros(2), np.empty((steps + 1, 2))
    for k in range(steps):
        angles[k] = x
        a1 = acceleration(x, v)
        v2 = v + dt / 2 * a1
        a2 = acceleration(x + dt / 2 * v, v2)
        v3 = v + dt / 2 * a2
        a3 = acceleration(x + dt / 2 * v2, v3)
        v4 = v + dt * a3
        a4 = acceleration(x + dt * v3, v4)
        x, v = x + dt / 6 * (v + 2 * (v2 + v3) + v4), v + dt / 6 * (a1 + 2 * (a2 + a3) + a4)
    angles[steps] = x
    return angles


class _Comparison:
    """Our runs beside those of others."""

    def __init__(
        self,
        shared: Run,
        accurate: Run,
        near: Run,
        textbook: np.ndarray,
        peers: dict[str, np.ndarray],
    ) -> None:
        self.t, self.shared, self.accurate = shared.t, shared, accurate
        self.gaps = {name: _largest(shared.x - x) for name, x in peers.items()}
        self.textbook_gap = _largest(accurate.x - textbook)
        self.apart = np.linalg.norm(near.x - shared.x, axis=2).mean(axis=0)

    @property
    def growth(self) -> float:
        """Rate (1/s) at which neighbours part, from the start until they are 1 mrad apart."""
        close = np.cumprod(self.apart < 1e-3).astype(bool)
        return float(np.polyfit(self.t[close], np.log(self.apart[close]), 1)[0])

    def metrics(self) -> dict[str, float | int]:
        """Return how far apart everything came."""
        energy = {"shared": self.shared.energy, "accurate": self.accurate.energy}
        return {
            "textbook_error_rad": float(self.textbook_gap.max()),
            **{f"{name.lower()}_error_rad": float(gap.max()) for name, gap in self.gaps.items()},
            **{f"{name}_energy_drift_j": float(np.ptp(e)) for name, e in energy.items()},
            "neighbours_apart_at_start_rad": float(self.apart[0]),
            "neighbours_apart_at_end_rad": float(self.apart[-1]),
            "growth_of_differences_per_s": self.growth,
        }

    def promises(self) -> tuple[Promise, ...]:
        """Return what must hold, in shares of what neighbours come apart from 1e-9 rad."""
        share = self.apart / self.apart[0]  # what chaos makes of a unit
        promises = [
            Promise(
                "the difference to the textbook's equations is rounding, grown as differences of "
                "neighbours grow: divided by that growth",
                float((self.textbook_gap / share).max()),
                1e-11,
                "rad",
            ),
            Promise(
                "the integrator that chooses its steps keeps the energy",
                float(np.ptp(self.accurate.energy)),
                1e-8,
                "J",
            ),
        ]
        promises += [
            Promise(
                f"the difference to {name} is rounding, divided by the growth of neighbours",
                float((gap / share).max()),
                1e-13,
                "rad",
            )
            for name, gap in self.gaps.items()
        ]
        return tuple(promises)

    def figures(self) -> tuple[Figure, ...]:
        """Return angles, path of the tip, differences and energy."""
        t, x = self.t, self.shared.x
        a, b = x[:, 0], x.sum(axis=1)
        differences = {
            "textbook": self.textbook_gap,
            **self.gaps,
            "neighbours 1e-9 rad away *": self.apart,
        }
        energy = {
            "Runge-Kutta 4": np.abs(self.shared.energy - self.shared.energy[0]),
            "adaptive": np.abs(self.accurate.energy - self.accurate.energy[0]),
        }
        return (
            Figure(
                "Path of the tip", "x (m)", "z (m)",
                (Line("tip", np.sin(a) + np.sin(b), -np.cos(a) - np.cos(b)),), equal=True,
            ),
            Figure.over_time(
                "Joint angles", "angle (rad)", t, {"shoulder": x[:, 0], "elbow": x[:, 1]}
            ),
            Figure.over_time(
                "Differences that chaos lets grow", "difference (rad)", t, differences,
                logarithmic=True,
                caption="All grow at one rate; what matters is how low a line starts.",
            ),
            Figure.over_time(
                "Energy", "error (J)", t, energy, logarithmic=True,
            ),
        )  # fmt: skip


def _largest(gap: np.ndarray) -> np.ndarray:
    return np.abs(gap).max(axis=1)
