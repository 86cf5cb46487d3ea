"""Whether a craft comes back from large first errors within its limits, and what to change if not.

Far from its reference nothing is proved for a craft with few inputs and limits: it is tried, from
many random first errors, and what brings back those that were lost is tried too.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from framefree.control.prototype.bounded import BoundedErrors
from framefree.control.prototype.law import PrototypeControl
from framefree.control.references import Hold
from framefree.control.references.thrust import flying_joint
from framefree.simulate.errors import SimulationError
from framefree.simulate.simulation import simulate

HOME = 0.02
"""Share of the largest first error of position, and rad, within which a craft is back."""


@dataclass(frozen=True)
class FirstErrors:
    """How large random first errors are: each is evenly spread up to these.

    Parameters
    ----------
    place, speed : float
        m and m/s, along each axis.
    angle : float
        rad, of the turn about a random axis.
    rate : float
        rad/s, about each axis.
    """

    place: float = 5.0
    speed: float = 3.0
    angle: float = np.deg2rad(150.0)
    rate: float = 5.0

    def draw(self, law: PrototypeControl, x_R: np.ndarray, count: int, seed: int) -> Any:
        """Return starts x (count, nx) and v (count, nv) about rest at x_R."""
        machine, rng = law.machine.numeric, np.random.default_rng(seed)
        own = machine.v_slice[flying_joint(machine).name]
        axes = rng.normal(size=(count, 3))
        axes *= rng.uniform(0, self.angle, (count, 1)) / np.linalg.norm(axes, axis=1)[:, None]
        shift, v0 = np.zeros((count, machine.nv)), np.zeros((count, machine.nv))
        shift[:, own.start + 3 : own.stop] = axes
        x0 = machine.integrate(np.tile(x_R, (count, 1)), shift)
        at = machine.x_slice[flying_joint(machine).name]
        x0[:, at.start : at.start + 3] += rng.uniform(-self.place, self.place, (count, 3))
        v0[:, own.start : own.start + 3] = rng.uniform(-self.speed, self.speed, (count, 3))
        v0[:, own.start + 3 : own.stop] = rng.uniform(-self.rate, self.rate, (count, 3))
        return x0, v0


@dataclass(frozen=True, eq=False)
class Recovery:
    """Which first errors a law brings its craft back from.

    Attributes
    ----------
    x0, v0 : (count, nx), (count, nv)
    returned : (count,) of bool
    farthest : (count,)
        Largest distance from the reference, m.
    advice : str
        What to change, with how many of the lost ones then come back; empty where none is lost.
    """

    x0: np.ndarray
    v0: np.ndarray
    returned: np.ndarray
    farthest: np.ndarray
    advice: str


def recovery(
    law: PrototypeControl,
    errors: FirstErrors | None = None,
    *,
    count: int = 100,
    duration: float = 15.0,
    dt: float = 5e-3,
    x_R: Any = None,
    seed: int = 1,
    **options: Any,
) -> Recovery:
    """Fly from random first errors about rest, within all limits, and advise where some are lost.

    Parameters
    ----------
    law : PrototypeControl
        Of a craft on a free joint.
    errors : FirstErrors, optional
    count, duration, dt, seed :
        Flights, and s. A craft that is on its way back after `duration` counts as lost.
    x_R : (nx,), optional
        Where it hovers, by default neutral.
    options
        Others of `simulate`.
    """
    errors = FirstErrors() if errors is None else errors
    x_R = law.machine.numeric.neutral() if x_R is None else np.asarray(x_R, float)
    x0, v0 = errors.draw(law, x_R, count, seed)

    def flown(law: PrototypeControl, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _flown(
            law, x_R, (x0[chosen], v0[chosen]), errors, duration=duration, dt=dt, **options
        )

    returned, farthest = flown(law, np.ones(count, bool))
    advice, lost = [], ~returned
    for change, value in (("limits", True), ("bounded", BoundedErrors())):
        if not lost.any() or getattr(law, change):
            continue
        law = replace(law, **{change: value})
        again, _ = flown(law, lost)
        also = "with it, " if advice else ""
        advice.append(
            f"{also}`{change}={value}` brings back {int(again.sum())} of {int(lost.sum())}"
        )
        lost[np.flatnonzero(lost)[again]] = False
    if lost.any():
        advice.append(
            f"{int(lost.sum())} are lost all the same: their first errors, the frequencies of the "
            "prototype or its speed and acceleration of approach do not go with the input limits, "
            "or more time is needed"
        )
    return Recovery(x0, v0, returned, farthest, "; ".join(advice))


def _flown(
    law: PrototypeControl,
    x_R: np.ndarray,
    starts: tuple[np.ndarray, np.ndarray],
    errors: FirstErrors,
    **options: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """Return which flights came back, and how far each was away."""
    machine = law.machine.numeric
    at, along = (part[flying_joint(machine).name] for part in (machine.x_slice, machine.v_slice))
    try:
        run = simulate(
            law.machine, law, Hold(law.machine, x_R), *starts, every=10, record=(), **options
        )
    except SimulationError as error:
        if error.run is None:
            raise
        run = error.run
    away = np.linalg.norm(run.x[:, :, at][..., :3] - x_R[at][:3], axis=-1)
    turned = machine.difference(np.tile(x_R, (len(run.x), 1)), run.x[:, -1])[:, along][:, 3:]
    home = (away[:, -1] < HOME * errors.place) & (np.linalg.norm(turned, axis=1) < HOME)
    return home & (run.status == "finished"), away.max(axis=1)
