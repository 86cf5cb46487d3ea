"""Predictions of recorded flights of a Crazyflie [NanoBench], by models of four kinds.

From a measured state, and with the recorded commands, half a second is predicted: 50 rows, from
every 10th row in flight on. What counts is the mean norm of the error over all beginnings.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from framefree.errors import FramefreeError
from framefree.gallery.machines import multicopters
from framefree.gallery.shared import nano_records
from framefree.learn import Training
from framefree.learn.flight.pieces import (
    STRIDE,
    FlightPieces,
    RecordedFlight,
    flight_pieces,
    usual_command,
)
from framefree.learn.training import jax_library

if TYPE_CHECKING:
    from framefree.learn.flight.fitting import FittedFlight
    from framefree.learn.flight.prediction import FlightMotion

LAGS = (0.02, 0.08, 0.4)
"""s: that of the motors, and two by which commands show what the vehicle was trimmed to."""
EVERY = 10
"""Rows from one beginning to the next."""
AHEAD = (10, 50)
"""Rows at which errors are told."""
UNITS = ("position_m", "velocity_m_s", "attitude_rad", "rate_rad_s")
TURNS = (37.0, 90.0, 180.0)
"""Degree, by which the test flights are turned about the vertical."""
KINDS = ("physics", "world", "symmetric")
"""What is trained, in the order of the table."""


@dataclass(frozen=True)
class NanoLessons:
    """Models of recorded flights, judged on others.

    Parameters
    ----------
    folder : Path
        With files train_NAME.npz and test_NAME.npz.
    steps : int
        Of training.
    seed : int
    """

    folder: Path
    steps: int
    seed: int

    @cached_property
    def read(self) -> dict[str, tuple[list[nano_records.Flight], dict[str, str]]]:
        """Flights that can be used and why others cannot, to learn from ("train") and to judge."""
        jax_library()
        result = {}
        for part in ("train", "test"):
            flights, left_out = nano_records.flights(self.folder, f"{part}_*.npz")
            if not flights:
                raise FramefreeError(
                    f"`{self.folder}` holds no file {part}_*.npz that can be used; left out: "
                    + (_listed(left_out) or "none")
                )
            result[part] = (flights, left_out)
        return result

    @property
    def left_out(self) -> dict[str, str]:
        """Why files were left out, by name."""
        return {name: why for _, left_out in self.read.values() for name, why in left_out.items()}

    def pieces(self, part: str) -> FlightPieces:
        """Return the pieces of the flights to learn from, or of those that judge."""
        flights = {name: [_recorded(one) for one in self.read[name][0]] for name in self.read}
        return flight_pieces(
            flights[part],
            period=nano_records.PERIOD,
            usual=usual_command(flights["train"]),
            lags=LAGS,
            rows=nano_records.STEPS,
            every=EVERY,
        )

    @cached_property
    def test(self) -> FlightPieces:
        """Pieces that judge."""
        return self.pieces("test")

    @cached_property
    def fitted(self) -> dict[str, "FittedFlight"]:
        """All models by kind."""
        from framefree.learn.flight.fitting import fit_flights
        from framefree.learn.flight.model import Propellers

        machine = multicopters.crazyflie()
        places = np.array([np.asarray(frame.pose)[:2, 3] for frame in machine.frames])
        propellers = Propellers(places, np.array(multicopters.CRAZYFLIE_SPINS, float))
        taught = self.pieces("train")
        training = Training(
            steps=self.steps, patience=self.steps, decay=1e-5, held=0.15, seed=self.seed
        )
        return {kind: fit_flights(kind, taught, propellers, training) for kind in KINDS}

    @cached_property
    def predicted(self) -> dict[str, "FlightMotion"]:
        """Predictions of the test pieces by every model, and by constant velocity."""
        from framefree.learn.flight.prediction import constant_velocity

        known = {kind: one.model.predict(self.test) for kind, one in self.fitted.items()}
        return {"constant_velocity": constant_velocity(self.test), **known}

    def errors(self, kind: str, rows: int) -> np.ndarray:
        """Return mean errors (4,) of a model so many rows ahead."""
        return _errors(self.predicted[kind], self.test, rows)

    def turned_errors(self, kind: str) -> np.ndarray:
        """Return errors (turns, 4) at the end of predictions of test flights that are turned."""
        model, result = self.fitted[kind].model, []
        for turn in TURNS:
            turned = self.test.turned(about_vertical(np.deg2rad(turn)))
            result.append(_errors(model.predict(turned), turned, AHEAD[-1]))
        return np.array(result)

    def metrics(self) -> dict[str, Any]:
        """Return all that is told."""
        left_out, metrics = self.left_out, {}
        for kind in self.predicted:
            prefix = "" if kind == "symmetric" else f"{kind}_"
            for rows in AHEAD:
                named = zip(UNITS, self.errors(kind, rows), strict=True)
                metrics |= {f"{prefix}h{rows}_{unit}": float(error) for unit, error in named}
        for kind, word in (("symmetric", ""), ("world", "_world")):
            there, here = self.turned_errors(kind), self.errors(kind, AHEAD[-1])
            worst = zip(UNITS, there.max(axis=0), strict=True)
            prefix = "" if kind == "symmetric" else f"{kind}_"
            metrics |= {f"{prefix}turned_h50_{unit}": float(error) for unit, error in worst}
            metrics[f"rotation_factor{word}"] = float(np.maximum(there / here, here / there).max())
        for kind, one in self.fitted.items():
            metrics[f"training_{kind}_s"] = one.seconds
        metrics["physics_at_bounds"] = ", ".join(self.fitted["physics"].model.at_bounds) or "none"
        for part, (flights, dropped) in self.read.items():
            metrics |= {f"{part}_files_used": len(flights), f"{part}_files_left_out": len(dropped)}
        return metrics | {
            "test_pieces": len(self.test),
            "files_left_out": len(left_out),
            "files_left_out_names": ", ".join(left_out) or "none",
        }

    def notes(self) -> tuple[str, ...]:
        """Return which files were left out, and why."""
        count = sum(len(flights) + len(left) for flights, left in self.read.values())
        return (f"{len(self.left_out)} of {count} files were left out: {_listed(self.left_out)}.",)


def about_vertical(angle: float) -> np.ndarray:
    """Return the turn (3, 3) about z."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def _recorded(flight: nano_records.Flight) -> RecordedFlight:
    return RecordedFlight(
        flight.position, flight.velocity, flight.wxyz, flight.rate, flight.voltage
    )


def _errors(predicted: Any, pieces: FlightPieces, rows: int) -> np.ndarray:
    from framefree.learn.flight.prediction import FlightMotion, prediction_errors

    return prediction_errors(predicted, FlightMotion.of(pieces), rows // STRIDE)


def _listed(left_out: Mapping[str, str]) -> str:
    return "; ".join(f"{name} ({why})" for name, why in left_out.items())
