"""The crane's tracking as a closed loop that campaigns run in batches."""

from collections.abc import Callable
from typing import Any

import numpy as np

from framefree.campaign import Simulations
from framefree.control.robust import RobustControl, ultimate_bound
from framefree.gallery.machines.crane import STROKE, closed_form
from framefree.gallery.scenarios.series_parallel.crane_parts import (
    COORDINATES,
    UNITS,
    chosen,
    first_state,
    joint_path,
    weakened,
)
from framefree.gallery.scenarios.series_parallel.crane_task import CraneTask
from framefree.simulate import Pulse, Run

ROWS = 20
"""Steps from one recorded row to the next."""
ANGLES = (0.0, 1.2)
"""rad, of the boom, over which the bound looks at the mass matrix."""


def crane_loop(task: CraneTask, model: Any, kappa: float, name: str) -> Simulations:
    """Return tracking under our gains with a share of their kappa.

    Promised is what the proof gives for the whole kappa and the uncertainty stated before any run:
    that in the second half |s| stays within its bound. It holds where kappa exceeds what is not
    known, and breaks where a share of it does not.
    """
    sound = RobustControl(model, **task.gains)
    law = RobustControl(model, **weakened(task.gains, kappa))
    machine = task.form.machine
    x0, v0 = first_state(machine, task.start)
    metrics: dict[str, Any] = {
        f"rmse_{one}_{UNITS[one]}": _rmse(k) for k, one in enumerate(COORDINATES)
    }
    metrics["sliding_share"] = _sliding(_bound(task, sound))
    return Simulations(
        metrics,
        machine,
        law,
        joint_path(model),
        x0,
        v0,
        options={
            "duration": task.duration,
            "dt": task.dt,
            "every": ROWS,
            "formulation": closed_form,
            "plant": task.plant,
            "disturbances": (Pulse("tip", task.push, 10.0, 1.0, axes="frame"),),
            "record": (),
        },
        promises={"sliding_share": 1.0},
        name=name,
    )


def _bound(task: CraneTask, law: RobustControl) -> np.ndarray:
    """Return the bounds (3,) on |s| under sound gains."""
    grid = np.meshgrid(np.linspace(*ANGLES, 9), np.linspace(0.0, STROKE, 9))
    q = np.column_stack([np.zeros(81), grid[0].ravel(), grid[1].ravel()])
    mass = np.asarray(law.embedded.kernel("mass")(q))
    stated = task.stated_uncertainty(law.embedded)
    return ultimate_bound(law.Lambda, law.K, law.kappa, law.eps, stated, mass).s


def _rmse(which: int) -> Callable[[Run], np.ndarray]:
    def rmse(run: Run) -> np.ndarray:
        assert run.machine is not None
        place = chosen(run.machine)[which]
        name = COORDINATES[which]
        wanted = run.reference["x"][..., _reference_names(run).index(name)]
        return np.sqrt(((run.x[..., place] - wanted) ** 2).mean(axis=1))

    return rmse


def _reference_names(run: Run) -> tuple[str, ...]:
    return next(c.entries for c in run.channels if c.key == ("reference", "x"))


def _sliding(bound: np.ndarray) -> Callable[[Run], np.ndarray]:
    def share(run: Run) -> np.ndarray:
        late = np.abs(run["s"][:, len(run.t) // 2 :])
        return (late / bound).max(axis=(1, 2))

    return share
