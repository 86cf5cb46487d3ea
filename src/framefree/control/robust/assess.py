"""What a run says about its robust law: the uncertainty met, and the bound that follows."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from framefree.control.law import ControlError
from framefree.control.robust.bound import UltimateBound, ultimate_bound
from framefree.control.robust.law import RobustControl
from framefree.control.shared.gains import vector_gain
from framefree.machine import Machine


class UncertaintyWarning(UserWarning):
    """The uncertainty that a run met is not below the force meant to withstand it."""


class Recorded(Protocol):
    """What is needed of a run."""

    @property
    def machine(self) -> Machine | None: ...  # noqa: D102, as the rest of a run
    @property
    def t(self) -> np.ndarray: ...  # noqa: D102
    @property
    def x(self) -> np.ndarray: ...  # noqa: D102
    @property
    def v(self) -> np.ndarray: ...  # noqa: D102
    @property
    def u(self) -> np.ndarray: ...  # noqa: D102
    @property
    def signals(self) -> Mapping[str, np.ndarray]: ...  # noqa: D102


@dataclass(frozen=True)
class Robustness:
    """A run of a robust law, assessed.

    Attributes
    ----------
    coordinates : tuple of str
    t : (rows,)
    d : (rows, n)
        What the model did not know, Nm and N.
    dbar : (n,)
        Largest |d_i|.
    kappa : (n,)
        What the law sets against it; where it grows, at the end of the run.
    stated : (n,)
        What the bound takes for the uncertainty: dbar, or what was stated beforehand.
    bound : UltimateBound
        From `stated` and the positions of the run.
    entered : int or None
        First row from which the guarantee holds: V within its level.
    V_left : float
        Largest V after that, over its level: at most 1 if |d_i| stays within `stated`.
    e_left : float
        How much of what the bound allows the errors have used after that: the largest
        (|e_i| - |e_i(t1)| decay_i) / (bound.e_i (1 - decay_i)), decay_i = exp(-Lambda_i (t - t1)).
        At most 1 likewise; where errors only decay it is below 0.
    """

    coordinates: tuple[str, ...]
    t: np.ndarray
    d: np.ndarray
    dbar: np.ndarray
    kappa: np.ndarray
    stated: np.ndarray
    bound: UltimateBound
    entered: int | None
    V_left: float
    e_left: float

    @property
    def exceeded(self) -> tuple[str, ...]:
        """Coordinates in which kappa does not exceed the uncertainty."""
        pairs = zip(self.coordinates, self.kappa, self.dbar, strict=True)
        return tuple(name for name, kappa, dbar in pairs if kappa <= dbar)


def assess(
    law: RobustControl,
    run: Recorded,
    *,
    acceleration: Any = None,
    parameters: Any = None,
    uncertainty: Any = None,
    masses: int = 500,
) -> Robustness:
    """Measure the uncertainty that a run met, and compute the bound that follows from it.

    With `uncertainty` the bound follows from what was stated beforehand, and may be broken by a
    run that met more.

    Warns (`UncertaintyWarning`) if kappa does not exceed it: then V may rise far from the origin.

    Parameters
    ----------
    law : RobustControl
    run : Run
        One trajectory of the law, on its own or another machine.
    acceleration : (rows, n), optional
        Of the independent velocities. By default their central differences: means over two rows,
        so record densely where forces jump.
    parameters : optional
        Values of the model's tunable numbers during the run, one vector or one a row.
    uncertainty : (n,), optional
        Bounds on |d_i|, Nm and N, stated beforehand; default what the run met.
    masses : int
        Number of rows whose positions the bound looks at.
    """
    x, v, u = _of_model(law, run)
    t, moving = run.t, law.places[1]
    if acceleration is None:
        rows = slice(1, -1)
        a = (v[2:, moving] - v[:-2, moving]) / (t[2:] - t[:-2])[:, None]
        # The mean force over the same two steps, by Simpson's rule.
        u = (u[:-2] + 4 * u[1:-1] + u[2:]) / 6
    else:
        rows, a = slice(None), np.asarray(acceleration, float)
    if np.ndim(parameters) == 2:
        parameters = parameters[rows]
    d, mass = law.uncertainty(x[rows], v[rows], a, u, parameters)
    dbar = np.abs(d).max(axis=0)
    chosen = np.unique(np.linspace(0, len(mass) - 1, masses).astype(int))
    kappa = np.asarray(run.signals["kappa"])[-1] if law.adapts else law.kappa
    stated = (
        dbar
        if uncertainty is None
        else vector_gain(
            uncertainty, len(dbar), "uncertainty", "assess", zero=True, of=law.coordinates
        )
    )
    bound = ultimate_bound(law.Lambda, law.K, kappa, law.eps, stated, mass[chosen])
    kept = _kept(law, run, bound)
    result = Robustness(law.coordinates, t[rows], d, dbar, kappa, stated, bound, *kept)
    if result.exceeded:
        listed = ", ".join(
            f"`{name}`: {kappa:.4g} against {most:.4g}"
            for name, kappa, most in zip(law.coordinates, kappa, dbar, strict=True)
            if kappa <= most
        )
        warnings.warn(
            f"kappa does not exceed the uncertainty of the run ({listed}): errors may leave the "
            "boundary layer",
            UncertaintyWarning,
            stacklevel=2,
        )
    return result


def _kept(
    law: RobustControl, run: Recorded, bound: UltimateBound
) -> tuple[int | None, float, float]:
    """Return when V came below its level, and how near V and e came to their bounds since."""
    V, e = run.signals["V"], run.signals["e"].reshape(len(run.t), -1)
    there = np.ones(len(run.t), bool)
    if law.adapts:
        # The bound is that of the last kappa: it holds from where kappa has come to it.
        kappa = np.asarray(run.signals["kappa"]).reshape(len(run.t), -1)
        V = V - (kappa**2 / law.growth).sum(axis=1) / 2
        there = (kappa >= kappa[-1]).all(axis=1)
    below = np.flatnonzero((bound.V >= V) & there)
    if not len(below):
        return None, np.inf, np.inf
    first = int(below[0])
    used = bound.used(run.t[first:], e[first:], law.Lambda)
    return first, float(V[first:].max() / bound.V) if bound.V > 0 else 0.0, used


def _of_model(law: RobustControl, run: Recorded) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return x, v and u of the law's machine, by name."""
    plant, model = run.machine, law.machine
    if run.x.ndim != 2:
        raise ControlError("`assess` takes runs of one trajectory")
    if plant is None or plant is model:
        return run.x, run.v, run.u
    x, v, u = (
        [here.index(name) for name in there]
        for here, there in (
            (plant.x_names, model.x_names),
            (plant.v_names, model.v_names),
            (plant.u_names, model.u_names),
        )
    )
    return run.x[:, x], run.v[:, v], run.u[:, u]
