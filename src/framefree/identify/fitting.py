"""Fit unknown numbers of a machine to recorded motions.

1. rows Y pi = b along the motions, filtered alike on both sides (`rows`);
2. which combinations beta = B pi any motion can tell, and which these motions do (`base`);
3. beta and the delay by robust least squares, with their covariance (`regression`);
4. possible bodies that have this beta, nearest to what was known (`possible`);
5. residuals by joint, on motions that were not used too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from framefree.identify.base import BaseParameters, base_parameters
from framefree.identify.bounds import bounds_of
from framefree.identify.errors import IdentifyError
from framefree.identify.judgement import doubts_about
from framefree.identify.possible import nearest
from framefree.identify.recording import Recording
from framefree.identify.regression import Regressed, regress
from framefree.identify.rows import Prepared, UnknownModel
from framefree.identify.suspects import refuse_misread
from framefree.machine import Machine
from framefree.simulate import Run

UNKNOWN = ("bodies", "armature", "damping", "friction", "friction_asymmetry")
"""What is unknown of an arm, by default."""
CONFIDENCE = 0.99
EXCITATION = 1e-4
"""Share of the largest pivot below which data do not tell a combination that others could."""
DELAYS = 12
"""Rounds in which the delay is sought."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """Forces on one motion: as measured, and as the fitted numbers give them, filtered alike.

    Attributes
    ----------
    t : (rows,)
    measured, predicted : (rows, m)
        For a machine without loops m is nv; with loops, components along the motions they allow.
        Of inputs u both hold the part that the unknown numbers explain.
    names : tuple of str
    """

    t: np.ndarray
    measured: np.ndarray
    predicted: np.ndarray
    names: tuple[str, ...]

    @cached_property
    def error(self) -> np.ndarray:
        """Root mean square of the error of each equation, relative to that of the force (m,)."""
        size = np.sqrt((self.measured**2).mean(axis=0))
        off = np.sqrt(((self.measured - self.predicted) ** 2).mean(axis=0))
        return off / np.maximum(size, 1e-12 * max(float(size.max(initial=0.0)), 1e-300))

    @cached_property
    def unexplained(self) -> np.ndarray:
        """Standard deviation of the error, relative to that of the force (m,)."""
        spread = self.measured.std(axis=0)
        off = (self.measured - self.predicted).std(axis=0)
        return off / np.maximum(spread, 1e-12 * max(float(np.abs(self.measured).max()), 1e-300))


@dataclass(frozen=True, eq=False)
class Fit:
    """Identified numbers of a machine.

    Attributes
    ----------
    machine : Machine
        With the identified numbers; all its bodies are possible.
    names : tuple of str
        The unknown numbers, and
    value, prior : (n,)
        what they are now and were before.
    base : BaseParameters
        The combinations that some motion can tell.
    estimate, deviation : (r,)
        Of the base parameters by least squares, and standard deviations; infinite for those that
        these data do not tell, whose estimate is what was known before.
    covariance : (told, told)
        Of the base parameters that were told.
    told : (r,) of bool
    delay, delay_deviation : float
        By which forces act later than they are recorded, s.
    moved : bool
        Whether the estimates had to give way to make the bodies possible.
    training : tuple of Prediction
        Of the motions that were used.
    test : tuple of Prediction
        Of motions that were not.
    condition : float
        Of the regressor of the data in the base parameters that they tell.
    outliers : float
        Share of rows that were weighed down.
    spikes : float
        Share of recorded values that stood out from their neighbours and were replaced.
    cutoff : float or None
        Hz.
    doubts : tuple of str
        What should not be believed without a look.
    """

    machine: Machine
    names: tuple[str, ...]
    value: np.ndarray
    prior: np.ndarray
    base: BaseParameters
    estimate: np.ndarray
    deviation: np.ndarray
    covariance: np.ndarray
    told: np.ndarray
    delay: float
    delay_deviation: float
    moved: bool
    training: tuple[Prediction, ...]
    test: tuple[Prediction, ...]
    condition: float
    outliers: float
    spikes: float
    cutoff: float | None
    doubts: tuple[str, ...]
    model: UnknownModel = field(repr=False)

    @property
    def untold(self) -> tuple[str, ...]:
        """Base parameters that some motion tells but these data do not, by name."""
        return tuple(n for n, told in zip(self.base.labels, self.told, strict=True) if not told)

    @property
    def never_told(self) -> tuple[str, ...]:
        """Unknown numbers that no motion tells, not even together with others."""
        return self.base.untold

    def interval(self, confidence: float = CONFIDENCE) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper ends (r,) of the base parameters' intervals."""
        from scipy.stats import norm

        half = float(norm.ppf(0.5 + confidence / 2)) * self.deviation
        return self.estimate - half, self.estimate + half

    def covers(self, truth: np.ndarray, confidence: float = CONFIDENCE) -> np.ndarray:
        """Tell of each base parameter that was told whether its interval holds the truth (n,)."""
        low, high = self.interval(confidence)
        beta = self.base.B @ truth
        return ((low <= beta) & (beta <= high))[self.told]

    def predict(self, recording: Recording | Run, delay: float | None = None) -> Prediction:
        """Return measured and predicted forces of another motion."""
        prepared = Prepared.of(self.model, as_recording(recording), self.cutoff)
        return _prediction(prepared, self.value, self.delay if delay is None else delay)


def fit(
    machine: Machine,
    data: Recording | Run | Sequence[Recording | Run],
    unknown: Iterable[str] = UNKNOWN,
    *,
    cutoff: float | None = None,
    delay: bool | float = True,
    whiten: bool = True,
    test: Sequence[Recording | Run] = (),
) -> Fit:
    """Return a machine whose unknown numbers explain recorded motions, and how well they are known.

    Parameters
    ----------
    machine : Machine
        All that is known. Its own values of the unknown numbers stand where the data do not tell.
    data : Recording or Run, or several
    unknown : sequence of str
        Paths or words of `framefree.motion.unknowns`.
    cutoff : float, optional
        Of the low-pass filter on both sides, Hz: above what the motion holds, below what is noise.
        Without, velocities and accelerations must be given and rows are taken as they are.
    delay : bool or float
        Whether to find the time by which forces act later than they are recorded; or that time, s.
    whiten : bool
        Whether what is left is taken as noise, and made white; without, as what the model lacks.
    test : sequence of Recording or Run
        Motions on which only the prediction is judged.

    Raises
    ------
    IdentifyError
        If the data are damaged, with row and column; or tell nothing.
    """
    model = UnknownModel(machine, tuple(unknown))
    given: Sequence[Any] = data if isinstance(data, list | tuple) else [data]
    recordings = [as_recording(one) for one in given]
    prepared = [Prepared.of(model, one, cutoff) for one in recordings]
    base = _any_motion(model, prepared)
    seen = bool(delay) and isinstance(delay, bool) and cutoff is not None
    late = 0.0 if isinstance(delay, bool) else float(delay)
    told = _told_by(base, np.concatenate([one.rows(late)[0] for one in prepared]))
    late, result = _regressed(model, base, told, prepared, late, seen, whiten)
    refuse_misread(model, base.chosen[told], _kept(model, base, told), prepared, late)
    r = int(told.sum())
    estimate, deviation = base.B @ model.prior, np.full(base.rank, np.inf)
    estimate[told] = result.value[:r]
    covariance = result.covariance[:r, :r]
    deviation[told] = np.sqrt(np.diag(covariance))
    sizes = base.scale_of_numbers(model.prior)
    spread = np.diag(sizes[base.chosen] ** 2)
    spread[np.ix_(told, told)] = covariance
    possible = nearest(base.B, estimate, spread, model.prior, sizes, bounds_of(model))
    training = tuple(_prediction(one, possible.value, late) for one in prepared)
    tests = [Prepared.of(model, as_recording(one), cutoff) for one in test]
    return Fit(
        machine=model.machine.with_parameters(possible.value.tolist()),
        names=model.names,
        value=possible.value,
        prior=model.prior,
        base=base,
        estimate=estimate,
        deviation=deviation,
        covariance=covariance,
        told=told,
        delay=late,
        delay_deviation=float(np.sqrt(result.covariance[-1, -1])) if seen else 0.0,
        moved=possible.moved,
        training=training,
        test=tuple(_prediction(one, possible.value, late) for one in tests),
        condition=_condition(base, told, prepared, late),
        outliers=float(result.outliers.mean()),
        spikes=max(one.spikes for one in prepared),
        cutoff=cutoff,
        doubts=doubts_about(base, told, training, result.residual),
        model=model,
    )


def as_recording(data: Any) -> Recording:
    """Return a recording, or what a run recorded."""
    if not isinstance(data, Recording | Run):
        raise IdentifyError(f"`data` must be a Recording or a Run, or several, got {data!r}")
    return Recording.of_run(data) if isinstance(data, Run) else data


# ------------------------------------------------------------------ what can be told


def _any_motion(model: UnknownModel, prepared: Sequence[Prepared]) -> BaseParameters:
    """Return the base parameters of all motions; of a closed machine, of those recorded."""
    machine = model.machine.numeric
    if machine.closed:
        Y = np.concatenate([one.rows()[0] for one in prepared])
        return base_parameters(model.names, Y.reshape(-1, Y.shape[-1]))
    rng = np.random.default_rng(0)
    count = 40 + 6 * len(model.names) // max(machine.nv, 1)
    x = machine.random(rng, count)
    v, a = rng.normal(size=(2, count, machine.nv)) * np.array([1.0, 3.0])[:, None, None]
    by_input = prepared[0].recording.u is not None
    u = None
    if by_input:
        # Inputs have units and sizes of their own: as they were recorded, in any order.
        recorded = np.concatenate([one.recording.u for one in prepared])
        u = np.column_stack([rng.choice(column, count) for column in recorded.T])
    Y, _ = model.rows(x, v, a, np.zeros_like(v), u)
    return base_parameters(model.names, Y.reshape(-1, Y.shape[-1]))


def _told_by(base: BaseParameters, Y: np.ndarray) -> np.ndarray:
    """Tell which base parameters the data tell apart (r,)."""
    scaled = Y.reshape(-1, Y.shape[-1])[:, base.chosen]
    found = base_parameters(base.labels, scaled, base.scale[base.chosen], EXCITATION)
    told = np.zeros(base.rank, bool)
    told[found.chosen] = True
    if not told.any():
        raise IdentifyError(
            "these data tell nothing of: " + ", ".join(base.labels) + "; record a motion that "
            "moves all joints"
        )
    return told


def _condition(
    base: BaseParameters, told: np.ndarray, prepared: Sequence[Prepared], late: float
) -> float:
    Y = np.concatenate([one.rows(late)[0] for one in prepared])
    scaled = Y.reshape(-1, Y.shape[-1])[:, base.chosen[told]]
    sizes = np.linalg.svd(scaled / np.linalg.norm(scaled, axis=0), compute_uv=False)
    return float(sizes[0] / sizes[-1])


# ------------------------------------------------------------------ least squares


def _regressed(
    model: UnknownModel,
    base: BaseParameters,
    told: np.ndarray,
    prepared: Sequence[Prepared],
    late: float,
    seek: bool,
    whiten: bool,
) -> tuple[float, Regressed]:
    """Return the delay, and the regression of the base parameters that are told (and the delay)."""
    chosen = base.chosen[told]
    kept = _kept(model, base, told)
    step, result = 0.0, None
    for turn in range(DELAYS if seek else 1):
        rows = [one.rows(late) for one in prepared]
        Y = np.concatenate([one[0] for one in rows])
        b = np.concatenate([one[1] for one in rows]) - Y @ kept
        Yb = Y[:, :, chosen]
        if seek:
            if result is None:
                pi = _spread(model, base, told, regress(Yb, b, coloured=False).value)
            else:
                pi = _spread(model, base, told, result.value[:-1])
            slope = np.concatenate([one.slopes(pi, late) for one in prepared])
            Yb = np.concatenate([Yb, -slope[:, :, None]], axis=2)
        result = regress(Yb, b, coloured=prepared[0].cutoff is not None, whiten=whiten)
        if not seek:
            break
        step = float(result.value[-1])
        limit = 0.25 / float(prepared[0].cutoff or 1.0)
        late += float(np.clip(step, -limit, limit))
        if abs(step) < 1e-3 * np.sqrt(result.covariance[-1, -1]) or turn == DELAYS - 1:
            break
    assert result is not None
    return late, result


def _kept(model: UnknownModel, base: BaseParameters, told: np.ndarray) -> np.ndarray:
    """Return numbers (n) that stand for what is not told: its share of the force is known."""
    pi = np.zeros(len(model.names))
    pi[base.chosen] = np.where(told, 0.0, base.B @ model.prior)
    return pi


def _spread(
    model: UnknownModel, base: BaseParameters, told: np.ndarray, beta: np.ndarray
) -> np.ndarray:
    """Return some unknown numbers with these base parameters: the chosen ones alone."""
    pi = np.zeros(len(model.names))
    pi[base.chosen] = base.B @ model.prior
    pi[base.chosen[told]] = beta
    return pi


def _prediction(prepared: Prepared, pi: np.ndarray, late: float) -> Prediction:
    Y, b = prepared.rows(late)
    names = prepared.model.equation_names
    if b.shape[1] != len(names):
        names = tuple(f"motion {i + 1}" for i in range(b.shape[1]))
    return Prediction(prepared.t, b, Y @ pi, names)
