"""What the scenarios of the crane share: the path, the gains, and how a run is assessed."""

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.references.joints import JointPath
from framefree.control.robust import RobustControl, Robustness, assess
from framefree.errors import FramefreeError
from framefree.gallery.machines.crane import (
    COORDINATES,
    LENGTH,
    LONGER,
    arm_moments,
    crane_state,
    elbow,
)
from framefree.gallery.shared.figures import positive
from framefree.look.report import Figure, Promise
from framefree.machine import Machine
from framefree.motion.embedded import Embedded, body_values
from framefree.simulate import Run
from framefree.simulate.measures import rms

# The path, which the document leaves open: (middle, amplitude, angular frequency in rad/s) of
# phi and theta in rad and delta in m. The stroke stays within 0.05 m to 0.15 m of its 0.2 m.
PATH = ((0.0, 0.6, 0.6), (0.7, 0.25, 0.5), (0.1, 0.05, 0.7))


@dataclass(frozen=True)
class CraneStart:
    """Errors in rad, rad and m at the start, where the crane is at rest, and time to simulate."""

    error: tuple[float, float, float]
    duration: float


STARTS = {
    "near": CraneStart((0.25, -0.12, 0.035), 20.0),
    # What the document's table would amount to if it were of first errors alone, over 15 s.
    "large": CraneStart((0.68, -0.41, -0.10), 15.0),
}

GAINS: dict[str, Any] = {
    "Lambda": 1.0,
    "K": (500.0, 2000.0, 25000.0),
    "kappa": (40.0, 160.0, 380.0),
    "eps": 1e-3,
}
"""Ours: kappa above what the push of 25 N and the unknown cylinder amount to."""
LARGE_GAINS: dict[str, Any] = {
    "Lambda": (1.55, 1.5, 10.0),
    "K": (280.0, 600.0, 750.0),
    "kappa": (230.0, 820.0, 900.0),
    "eps": 1e-3,
}
"""For large first errors: kappa, which is bounded, does most of the work far off the path."""
PRINTED_GAINS: dict[str, Any] = {"Lambda": 1.0, "K": 30.0, "kappa": 50.0, "eps": 1e-4}
"""The document's."""
PUBLISHED_RMSE = (0.124, 0.074, 0.018)
"""Its Table III, rad, rad and m."""
PUSH = (0.0, -25.0, 0.0, 0.0, 0.0, 0.0)
"""The document's push at the tip, in its axes."""
UNITS = {"phi": "rad", "theta": "rad", "delta": "m"}


def weakened(gains: dict[str, Any], share: float) -> dict[str, Any]:
    """Return gains with a share of their kappa."""
    if not share > 0:
        raise FramefreeError(f"the setting `kappa` of `crane` must be positive, got {share:g}")
    return {**gains, "kappa": share * np.array(gains["kappa"])}


def coordinates_at(t: Any) -> list[Any]:
    """Return (phi, theta, delta) of the path at a time, a casadi expression or numbers."""
    sine = ca.sin if isinstance(t, ca.SX) else np.sin
    return [middle + size * sine(pace * t) for middle, size, pace in PATH]


def joint_path(model: Machine) -> JointPath:
    """Return the path as a reference of the joints of the model."""

    def configuration(t: Any) -> list[Any]:
        q = dict(zip(COORDINATES, coordinates_at(t), strict=True))
        return [elbow(q["delta"]) if name == "zeta" else q[name] for name in model.x_names]

    return JointPath(model, configuration)


def first_state(plant: Machine, start: str = "near") -> tuple[np.ndarray, np.ndarray]:
    """Return the crane at rest, off its path by the first errors."""
    return crane_state(plant, np.add(coordinates_at(0.0), STARTS[start].error))


def chosen(machine: Machine) -> list[int]:
    """Return where phi, theta and delta stand among the joints."""
    return [machine.x_names.index(name) for name in COORDINATES]


@dataclass(frozen=True)
class Tracking:
    """A run of the law, and what it met.

    Attributes
    ----------
    run : Run
    law : RobustControl
    robustness : Robustness
        With the uncertainty from the accelerations that the equations of the plant give at the
        states of the run, MuJoCo's too: `balance` tells whether it moves so.
    """

    run: Run
    law: RobustControl
    robustness: Robustness

    @classmethod
    def of(
        cls,
        run: Run,
        law: RobustControl,
        plant: Embedded,
        push: Any = None,
        parameters: tuple[np.ndarray, np.ndarray] | None = None,
        stated: Any = None,
    ) -> "Tracking":
        """Assess a run of the closed form `plant`.

        Parameters
        ----------
        push : (rows, 6), optional
            Wrench on the tip, in its axes.
        parameters : ((rows, n), (rows, n)), optional
            Values of the tunable numbers of plant and model.
        stated : (3,), optional
            Uncertainty that was stated beforehand.
        """
        places = chosen(plant.machine)
        q, qd = (np.ascontiguousarray(a[:, places]) for a in (run.x, run.v))
        own = () if parameters is None else (parameters[0],)
        force = np.array(run.u)
        if push is not None:
            J = np.asarray(plant.kernel("jacobian:tip")(q, *own))
            force += np.einsum("nij,ni->nj", J, push)
        a = plant.forward(q, qd, force, *own)
        of_model = None if parameters is None else parameters[1]
        found = assess(law, run, acceleration=a, parameters=of_model, uncertainty=stated)
        return cls(run, law, found)

    @property
    def stated(self) -> bool:
        """Whether the uncertainty was stated beforehand."""
        return self.robustness.stated is not self.robustness.dbar

    @property
    def e(self) -> np.ndarray:
        """Errors (rows, 3)."""
        return self.run["e"]

    def rmse(self, prefix: str = "") -> dict[str, float]:
        """Return the root of the mean square error of every coordinate."""
        return {
            f"{prefix}rmse_{name}_{UNITS[name]}": rms(self.e[:, i])
            for i, name in enumerate(COORDINATES)
        }

    def largest(self, start: float, stop: float) -> np.ndarray:
        """Return the largest |e_i| (3,) between two times."""
        during = (self.run.t >= start) & (self.run.t <= stop)
        return np.abs(self.e[during]).max(axis=0)

    def late(self) -> float:
        """Return the largest norm of the error in the second half of the run."""
        return float(np.linalg.norm(self.e[self.run.t >= self.run.t[-1] / 2], axis=1).max())

    def uncertainties(self) -> dict[str, float]:
        """Return kappa, and the uncertainty that was met and that was stated, Nm and N."""
        values: dict[str, float] = {}
        for i, name in enumerate(COORDINATES):
            force = "nm" if UNITS[name] == "rad" else "n"
            values |= {
                f"dbar_{name}_{force}": float(self.robustness.dbar[i]),
                f"stated_{name}_{force}": float(self.robustness.stated[i]),
                f"kappa_{name}_{force}": float(self.law.kappa[i]),
            }
        return values

    def balance(self, until: float = np.inf) -> float:
        """Return how far V is off the integral of dV/dt = V_rate + s . d, over its first value."""
        rows = self.run.t < until
        t, V = self.run.t[rows], self.run["V"][rows]
        rate = (self.run["V_rate"] + np.einsum("ni,ni->n", self.run["s"], self.robustness.d))[rows]
        change = np.concatenate([[0.0], np.cumsum((rate[1:] + rate[:-1]) / 2 * np.diff(t))])
        return float(np.abs(V - V[0] - change).max() / V[0])

    def error_figure(self, title: str, caption: str) -> Figure:
        """Return the errors over time."""
        values = {f"{n} ({UNITS[n]})": self.e[:, i] for i, n in enumerate(COORDINATES)}
        return Figure.over_time(title, "error (rad, m)", self.run.t, values, caption=caption)

    def bound_figures(
        self, V_caption: str = "Once below the dashed level, V stays there."
    ) -> tuple[Figure, ...]:
        """Return the errors beside their bound, and V beside its level."""
        t, first, bound = self.run.t, self.robustness.entered, self.robustness.bound
        sizes: dict[str, np.ndarray] = {}
        if first is not None:
            envelope = np.full_like(self.e, np.nan)
            envelope[first:] = bound.envelope(t[first:], self.e[first], self.law.Lambda)
            for i, name in enumerate(COORDINATES):
                sizes[f"{name} ({UNITS[name]})"] = positive(self.e[:, i])
                sizes[f"{name} bound *"] = envelope[:, i]
        V = self.run["V"]
        return (
            Figure.over_time(
                "Errors and their bound", "size of the error (rad, m)", t, sizes,
                caption="Dashed: what the proof allows from the time at which V has come below "
                "its level, "
                + ("for the uncertainty stated beforehand." if self.stated else "for the "
                "uncertainty that this run met."),
                logarithmic=True,
            ),
            Figure.over_time(
                "Lyapunov function", "V (J)", t,
                {"V": positive(V), "its level *": np.full_like(V, bound.V)},
                caption=V_caption,
                logarithmic=True,
            ),
        )  # fmt: skip

    def uncertainty_figure(self, title: str = "What the model does not know") -> Figure:
        """Return the uncertainty over kappa."""
        values = {
            name: self.robustness.d[:, i] / self.law.kappa[i] for i, name in enumerate(COORDINATES)
        }
        return Figure.over_time(
            title, "d / kappa", self.robustness.t, values,
            caption="Unmodelled force over the force set against it. Within -1 and 1 the errors "
            "stay in the boundary layer.",
        )  # fmt: skip


def rmse_promises(ours: Tracking) -> tuple[Promise, ...]:
    """Return that errors are at most those of the document's table."""
    return tuple(
        Promise(
            f"{name} is followed as well as in the document's table, rms", rmse, most, UNITS[name]
        )
        for name, rmse, most in zip(COORDINATES, ours.rmse().values(), PUBLISHED_RMSE, strict=True)
    )


def apart(one: Run, other: Run) -> float:
    """Return the largest difference (rad, m) of phi, theta and delta of two runs."""
    assert one.machine is not None
    return float(np.abs(one.x - other.x)[:, chosen(one.machine)].max())


def plants_agree(metrics: dict[str, Any]) -> Promise:
    """Return that both plants move alike."""
    return Promise(
        "the crane moves alike on MuJoCo and on our plant",
        metrics["plant_difference"],
        1e-3,
        "rad, m",
    )


def tip_places(equations: Embedded, q: np.ndarray) -> np.ndarray:
    """Return positions of the tip (rows, 3) at (phi, theta, delta) (rows, 3)."""
    return np.asarray(equations.kernel("frame_pose:tip")(np.ascontiguousarray(q)))[:, :3, 3]


def longer_arm() -> dict[str, float]:
    """Return the numbers of a second link 30 percent longer and heavier."""
    return body_values("arm", arm_moments(LONGER), tip=(LENGTH * LONGER, 0, 0))
