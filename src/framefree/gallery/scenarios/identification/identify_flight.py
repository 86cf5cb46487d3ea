"""The scenario `identify-flight`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from framefree.errors import FramefreeError
from framefree.gallery.machines import multicopters
from framefree.gallery.scenarios.identification import nano_flight, nano_turning, quad_flight
from framefree.gallery.shared import nano_records
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.identify import Fit, fit
from framefree.identify.shooting import shoot
from framefree.look.report import Figure, Line
from framefree.look.report.identified import prediction_figures

QUAD, NANO = "quad_validation.npz", "train_*.npz"
TRAINING, TEST = (92.0, 135.0), (70.0, 90.0)
"""Stretches of the quadcopter's log, s; the second is the one that was published."""


@dataclass(frozen=True)
class IdentifyFlight(Scenario):
    """Two real vehicles are identified from recorded flights, and judged on flights not used.

    The quadcopter, whose log has propeller speeds: gains of thrust, roll, pitch and yaw (mass and
    inertia over thrust), drag, rotors and a constant wrench, from 43 s of flight; residuals by axis
    on the 20 s that were published, beside those of the published model with its trim fitted to the
    same 43 s. The Crazyflie, whose log has motor commands and battery only: thrust against voltage,
    lag, drag and moments by shooting over half seconds; predictions of half a second on flights of
    other shapes. The records are not part of this software: without them nothing is done.

    Parameters
    ----------
    data : str
        Folder of the records: one with the folders `flight` and `nanobench`, or one of these.
    cutoff : float
        Of the filter on both sides, Hz, for the quadcopter.
    every : int
        Rows from the beginning of one prediction to the next, in flights of the Crazyflie that are
        used; a tenth of that in those that judge.

    Metrics
    -------
    quad_*_published
        Share of the variation that the published model leaves unexplained on the stretch
        not used.
    quad_*_identified
        The same of the identified model.
    quad_mass_over_thrust_coefficient
        Mass over thrust coefficient, the only ratio of both that a flight tells.
    quad_delay_s
        Delay of the inputs that was found.
    quad_inertia_*
        Moment of inertia of the quadcopter about this axis, kg m^2, or its deviation.
    quad_*
        A parameter of the identified quadcopter.
    nano_flights_*
        Number of recorded flights of the Crazyflie that were used, left out, or that judge.
    nano_constant_velocity_h*
        Error so many hundredths of a second ahead, predicted by constant velocity.
    nano_h*
        Error so many hundredths of a second ahead on flights not used, predicted by the
        model.
    nano_inertia_*
        Moment of inertia of the Crazyflie about this axis, kg m^2, or its deviation.
    nano_turning_lag_s
        Lag of the moments that was found.
    nano_turning_*_not_explained
        Share of the turning above 3 Hz that is left unexplained on flights not used.
    nano_*_at_bound
        Whether this parameter ends at its bound, so that the data do not tell it.
    nano_*_deviation
        Standard deviation of this parameter.
    nano_*
        A parameter of the identified Crazyflie.
    """

    name: ClassVar[str] = "identify-flight"
    extras: ClassVar[tuple[str, ...]] = ("identify",)

    data: str = ""
    cutoff: float = 8.0
    every: int = 200

    def run(self, progress: bool | None = None) -> Outcome:
        """Identify both vehicles, as far as their records are at hand."""
        if not self.data:
            note = "Skipped: no records were given (`--set data=DIR`)."
            return Outcome({}, {"skipped": True}, (), notes=(note,))
        folder = Path(self.data)
        if not folder.is_dir():
            raise FramefreeError(f"there is no folder `{folder}` of recorded flights")
        metrics: dict[str, Any] = {"skipped": False}
        promises: list[Promise] = []
        figures: list[Figure] = []
        notes: list[str] = []
        quad = next((p for p in (folder / "flight" / QUAD, folder / QUAD) if p.is_file()), None)
        nano = next((p for p in (folder / "nanobench", folder) if any(p.glob(NANO))), None)
        if quad is None and nano is None:
            raise FramefreeError(f"`{folder}` holds neither {QUAD} nor {NANO}")
        for part, place in ((self._quad, quad), (self._nano, nano)):
            if place is not None:
                for kept, more in zip(
                    (promises, figures, notes), part(place, metrics), strict=True
                ):
                    kept.extend(more)
        return Outcome({}, metrics, tuple(promises), tuple(figures), notes=tuple(notes))

    # ------------------------------------------------------------------ the quadcopter

    def _quad(self, path: Path, metrics: dict[str, Any]) -> tuple[list, list, list]:
        used = quad_flight.recordings(path, *TRAINING)
        test = quad_flight.recordings(path, *TEST)
        fits: dict[bool, Fit] = {}
        for published, unknown in ((True, quad_flight.BIAS), (False, quad_flight.UNKNOWN)):
            machine = quad_flight.model(published=published)
            fits[published] = fit(
                machine, used[published], unknown, cutoff=self.cutoff, whiten=False,
                test=[test[published]],
            )  # fmt: skip
        before, after = (quad_flight.residual_shares(fits[k], test[k]) for k in (True, False))
        for axis in quad_flight.AXES:
            metrics[f"quad_{axis}_published"] = before[axis]
            metrics[f"quad_{axis}_identified"] = after[axis]
        mean = [float(np.mean([*one.values()])) for one in (before, after)]
        metrics |= {"quad_mean_published": mean[0], "quad_mean_identified": mean[1]}
        metrics |= _of_quad(fits[False])
        promise = Promise.share(
            "quadcopter: on the stretch not used less is left unexplained than by the published "
            "model", mean[1] / mean[0],
        )  # fmt: skip
        words = ", ".join(
            f"{axis.replace('_', ' ')} {before[axis]:.2f} to {after[axis]:.2f}"
            for axis in quad_flight.AXES
        )
        note = (
            f"Quadcopter, share of the variation that is not explained on {TEST[0]:g} to "
            f"{TEST[1]:g} s, which was not used: {words}. Slow moments of the air, which the "
            "controller holds against, remain in roll and pitch; yaw varies least."
        )
        figures = prediction_figures({"not used": fits[False].test})
        return [promise], list(figures), [note]

    # ------------------------------------------------------------------ the Crazyflie

    def _nano(self, folder: Path, metrics: dict[str, Any]) -> tuple[list, list, list]:
        used, left_out = nano_records.flights(folder, NANO)
        others, left_out_others = nano_records.flights(folder, "test_*.npz")
        dropped, dropped_others = len(left_out), len(left_out_others)
        pieces = nano_flight.pieces(used, self.every)
        judged = nano_flight.pieces(others, max(1, self.every // 10))
        model, scales = nano_flight.model(), nano_flight.SCALES
        bounds = nano_flight.LEAST / scales, nano_flight.MOST / scales
        found = shoot(model, pieces, nano_flight.FIRST / scales, sigma_y=nano_flight.SIGMA_Y,
                      sigma_z=nano_flight.SIGMA_Z, bounds=bounds)  # fmt: skip
        names = (nano_flight.NAMES, found.value * scales, found.deviation * scales)
        held = [name for name, free in zip(nano_flight.NAMES, found.free, strict=True) if not free]
        for name, value, deviation in zip(*names, strict=True):
            metrics[f"nano_{name}"] = float(value)
            metrics[f"nano_{name}_at_bound"] = name in held
            if name not in held:
                metrics[f"nano_{name}_deviation"] = float(deviation)
        told = nano_turning.turning(used, others)
        metrics |= {"nano_turning_lag_s": told.lag}
        for i, axis in enumerate("xy"):
            metrics[f"nano_inertia_{axis}_kg_m2"] = float(told.inertia[i])
            metrics[f"nano_inertia_{axis}_kg_m2_deviation"] = float(told.deviation[i])
            metrics[f"nano_turning_{axis}_not_explained"] = float(told.unexplained[i])
        y, _ = model.predict(judged.z, judged.u, found.value)
        coasting = nano_flight.constant_velocity(judged)
        for h in (10, 50):
            for name, error in nano_flight.errors(y, judged.y, h).items():
                metrics[f"nano_h{h}_{name}"] = error
            for name, error in nano_flight.errors(coasting, judged.y, h).items():
                metrics[f"nano_constant_velocity_h{h}_{name}"] = error
        metrics |= {"nano_flights_used": len(used), "nano_flights_dropped": dropped,
                    "nano_flights_judging": len(others),
                    "nano_flights_judging_dropped": dropped_others}  # fmt: skip
        share = metrics["nano_h50_position_m"] / metrics["nano_constant_velocity_h50_position_m"]
        promise = Promise.share(
            "Crazyflie: the position half a second ahead, on flights not used, is predicted better "
            "than by constant velocity", share, 0.6,
        )  # fmt: skip
        left = np.sqrt(((y - judged.y) ** 2).mean(axis=0))
        t = np.arange(1, nano_records.STEPS + 1) * nano_records.PERIOD
        lines = [Line(f"{what} {axis}", t, left[:, 3 * k + i])
                 for k, what in enumerate(("position (m)", "velocity (m/s)", "attitude (rad)",
                                           "rate (rad/s)"))
                 for i, axis in enumerate("xyz")]  # fmt: skip
        figure = Figure("Crazyflie: rms errors of predictions, by axis", "time ahead (s)",
                        "error", tuple(lines), logarithmic=True)  # fmt: skip
        note = (
            f"Crazyflie: {dropped} of {len(used) + dropped} flights to use and {dropped_others} of "
            f"{len(others) + dropped_others} to judge could not be aligned. Commands at 100 Hz "
            f"explain {100 * metrics['nano_roll_effect']:.1f} and "
            f"{100 * metrics['nano_pitch_effect']:.1f} percent of the roll and pitch moments that "
            "thrusts on their arms would make, with one constant moment for all flights; their "
            "trims differ, so these shares are no property of the vehicle. Above 3 Hz, where trims "
            f"do not matter, they leave {100 * told.unexplained.mean():.0f} percent of the turning "
            f"of flights not used, with a lag of {1e3 * told.lag:.0f} ms and inertia of "
            f"{1e6 * told.inertia[0]:.1f} and {1e6 * told.inertia[1]:.1f} kg mm^2. Held "
            f"by their bounds, and so not identified: {', '.join(held) or 'none'}."
        )
        return [promise], [figure], [note]


def _of_quad(found: Fit) -> dict[str, float]:
    """Return what the identified gains mean, with standard deviations."""
    gains = dict(zip(found.names, found.value, strict=True))
    spread = dict(zip(found.base.labels, found.deviation, strict=True))
    machine = multicopters.quadcopter()
    moments = machine.bodies[0].moments
    inertia = np.diag(moments.moment)
    result = {
        "quad_mass_over_thrust_coefficient": moments.total
        / multicopters.THRUST_COEFFICIENT / gains["thrust.gain"],
        "quad_delay_s": found.delay,
    }  # fmt: skip
    for i, word in enumerate(("roll", "pitch", "yaw")):
        gain, name = f"{word}.gain", f"quad_inertia_{'xyz'[i]}_kg_m2"
        result[name] = float(inertia[i] / gains[gain])
        result[f"{name}_deviation"] = result[name] * spread[gain] / gains[gain]
    for axis in "xyz":
        path = f"fluid.body.linear_drag.{axis}"
        result[f"quad_drag_{axis}_n_s_m"] = gains[path]
        result[f"quad_drag_{axis}_n_s_m_deviation"] = spread[path]
    return {name: float(value) for name, value in result.items()}
