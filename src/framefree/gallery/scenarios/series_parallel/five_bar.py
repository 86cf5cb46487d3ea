"""The scenario `five-bar`."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from framefree.control.references.joints import JointSpline
from framefree.control.robust import RobustControl, Robustness, assess
from framefree.gallery.machines.five_bar import COORDINATES, five_bar, five_bar_at
from framefree.gallery.scenarios.series_parallel.inertia_shares import share_figures
from framefree.gallery.shared.metrics import RobustScenario
from framefree.gallery.shared.scenario import Outcome, Promise
from framefree.look.report import Animation, Figure, Line
from framefree.machine import Machine
from framefree.motion.embedded import Embedded
from framefree.simulate import Run, simulate
from framefree.simulate.measures import rms
from framefree.solve import inverse_kinematics

MIDDLE, RADIUS, PERIOD = (0.0, 0.42), 0.08, 4.0
"""Middle (x, z) and radius of the tip's circle, m, and its time, s."""
KNOT, OVER = 0.1, 1.0
"""Time between points for which joints are found, and how long before and after the run, s."""
GAINS: dict[str, Any] = {"Lambda": 4.0, "K": 2.0, "kappa": 6.0, "eps": 0.02}


@dataclass(frozen=True)
class FiveBar(RobustScenario):
    """A five-bar carries a load its controller does not know round a circle.

    Two motors on the ground move one tip through two elbows. The law is that of the crane, and
    nothing in it is particular to either: minimal coordinates are the two motor angles, the elbows
    follow from the loop, which is solved rather than given in closed form. The circle is given for
    the tip; inverse kinematics finds the joints. The motors are 0.1 rad off at the start.

    Parameters
    ----------
    duration : float
        How long to simulate, s.
    dt : float
        Step of the integrator, s.
    load_kg : float
        Load at the tip that the law does not know, kg.

    Metrics
    -------
    rmse_*
        Error of a motor angle, root of the mean square.
    steady_error_max
        Largest size of both motors' errors in the second half, rad.
    tip_error_late_max_m
        Largest distance of the tip from its circle in the second half.
    loop_error_m
        Largest gap of the loop.
    """

    name: ClassVar[str] = "five-bar"

    duration: float = 8.0
    dt: float = 2.5e-4
    load_kg: float = 1.0

    def run(self, progress: bool | None = None) -> Outcome:
        """Follow the circle with the load."""
        plant, model = five_bar(self.load_kg), five_bar()
        law, path = RobustControl(model, **GAINS), self._path(model)
        law.check(path, np.linspace(0.0, min(self.duration, PERIOD), 60))
        form = Embedded(plant, independent=COORDINATES, start=five_bar_at(plant, MIDDLE))
        run = simulate(
            plant, law, path, self._start(form), np.zeros(plant.nv), duration=self.duration,
            dt=self.dt, every=max(1, round(1e-3 / self.dt)), formulation=form, record=("energy",),
            progress=progress,
        )  # fmt: skip
        qd = np.ascontiguousarray(run.v[:, law.places[1]])
        robustness = assess(law, run, acceleration=form.forward(run.x, qd, run.u))
        tip = np.asarray(form.kernel("frame_pose:tip")(run.x))[:, [0, 2], 3]
        metrics = self._metrics(run, robustness, tip, form)
        circle = np.zeros((101, 3))
        circle[:, [0, 2]] = wanted(np.linspace(0, PERIOD, 101))
        return Outcome(
            runs={"five_bar": run},
            metrics=metrics,
            promises=_promises(metrics),
            figures=(*_figures(run, robustness, tip), *share_figures(form, run)),
            animations=(Animation("The five-bar", run, trails=("tip",), paths={"circle": circle}),),
        )

    def _path(self, model: Machine) -> JointSpline:
        times = np.arange(-OVER, self.duration + OVER + KNOT, KNOT)
        points = np.zeros((len(times), 3))
        points[:, [0, 2]] = wanted(times)
        postures = inverse_kinematics(model, {"tip": points}, five_bar_at(model, MIDDLE))
        return JointSpline(model, postures.x, times)

    def _start(self, form: Embedded) -> np.ndarray:
        """Return a configuration off the circle, loop closed."""
        x = five_bar_at(form.machine, wanted(np.zeros(1))[0])
        x[[form.machine.x_names.index(name) for name in COORDINATES]] += (0.1, -0.1)
        return form.close(x)

    def _metrics(
        self, run: Run, robustness: Robustness, tip: np.ndarray, form: Embedded
    ) -> dict[str, Any]:
        gap = np.linalg.norm(tip - wanted(run.t), axis=1)
        late = run.t >= self.duration / 2
        opening = np.asarray(form.kernel("closure")(run.x)[1])
        e = run["e"]
        return {
            "rmse_left_rad": rms(e[:, 0]),
            "rmse_right_rad": rms(e[:, 1]),
            "ultimate_bound": robustness.bound.size,
            "steady_error_max": float(np.linalg.norm(e[late], axis=1).max()),
            "tip_rmse_m": rms(gap),
            "tip_error_late_max_m": float(gap[late].max()),
            "uncertainty_over_kappa": float((robustness.dbar / robustness.kappa).max()),
            "lyapunov_over_level": robustness.V_left,
            "error_over_envelope": robustness.e_left,
            "loop_error_m": float(np.abs(opening).max()),
        }


def wanted(t: np.ndarray) -> np.ndarray:
    """Return where the tip should be, (rows, 2): x and z in m."""
    angle = 2 * np.pi * np.asarray(t) / PERIOD
    return np.array(MIDDLE) + RADIUS * np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def _promises(m: dict[str, Any]) -> tuple[Promise, ...]:
    return (
        Promise.share("kappa exceeds the uncertainty met", m["uncertainty_over_kappa"], 1 - 1e-9),
        Promise.share("V stays below its level", m["lyapunov_over_level"], 1 + 1e-9),
        Promise.share(
            "errors stay within the bound of the proof", m["error_over_envelope"], 1 + 1e-9
        ),
        Promise(
            "in the second half errors are within the ultimate bound",
            m["steady_error_max"],
            m["ultimate_bound"],
            "rad",
        ),
        Promise.of(m, "tip_error_late_max_m", "the tip is on its circle in the second half", 2e-3),
        Promise.of(m, "loop_error_m", "the loop stays closed", 1e-9),
    )


def _figures(run: Run, robustness: Robustness, tip: np.ndarray) -> tuple[Figure, ...]:
    t, e = run.t, run["e"]
    circle = wanted(np.linspace(0, PERIOD, 200))
    names = robustness.coordinates
    first = robustness.entered or 0
    envelope = np.full_like(e, np.nan)
    envelope[first:] = robustness.bound.envelope(t[first:], e[first], GAINS["Lambda"] * np.ones(2))
    sizes = {}
    for i, name in enumerate(names):
        sizes[name] = np.where(e[:, i] != 0, np.abs(e[:, i]), np.nan)
        sizes[f"{name} bound *"] = envelope[:, i]
    return (
        Figure(
            "Path of the tip", "x (m)", "z (m)",
            (
                Line("tip", tip[:, 0], tip[:, 1]),
                Line("circle", circle[:, 0], circle[:, 1], dashed=True),
            ),
            equal=True,
        ),
        Figure.over_time(
            "Errors of the motor angles", "size of the error (rad)", t, sizes, logarithmic=True,
            caption="Dashed: what the proof allows with the uncertainty that this run met.",
        ),
        Figure.over_time(
            "What the model does not know", "d / kappa", robustness.t,
            {name: robustness.d[:, i] / robustness.kappa[i] for i, name in enumerate(names)},
            caption="The weight and inertia of the load over the force set against them.",
        ),
        Figure.over_time(
            "Motors", "torque (Nm)", t, {name: run.u[:, i] for i, name in enumerate(names)}
        ),
    )  # fmt: skip
