"""Training by predictions over many steps: Adam on random pieces, judged by held-out flights.

    loss = mean over steps, quantities and pieces of  |error| / (mean error of constant velocity)

the latter at the last step, so that metres and radians count alike and no unit matters. Norms and
not their squares count: commands that were logged late spoil some pieces. Pieces are many and
alike, so each step takes a few hundred of them at random [Kingma2015]; the rate falls to zero along
half a cosine. Of the weights along the way those are kept that predict held-out flights best.
"""

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from framefree.learn.errors import LearnError
from framefree.learn.flight.model import LEAST, RESIDUALS, UNITS, Propellers, first_weights
from framefree.learn.flight.pieces import FlightPieces
from framefree.learn.flight.prediction import (
    FlightModel,
    FlightMotion,
    constant_velocity,
    prediction_errors,
)
from framefree.learn.training import Training

BATCH, WARM = 512, 20
"""Pieces in a step, and steps until the largest rate of the weights is reached."""
MOMENTA = (0.9, 0.99)
EVERY = 50
"""Steps from one look at held-out flights to the next."""
LOW = 1e-9
SOFT = 1e-3
"""Share of the usual error below which a norm is smooth."""


@dataclass(frozen=True)
class FittedFlight:
    """A model of flights, and how it came about.

    Attributes
    ----------
    model : FlightModel
    history : (looks, 3)
        Step, loss and loss on held-out flights.
    seconds : float
    """

    model: FlightModel
    history: np.ndarray
    seconds: float


def fit_flights(
    kind: str, pieces: FlightPieces, propellers: Propellers, training: Training
) -> FittedFlight:
    """Learn a model of flights from pieces of them.

    Parameters
    ----------
    kind : "physics", "symmetric" or "world"
    pieces : FlightPieces
        Of two flights or more.
    propellers : Propellers
    training : Training
        `patience` counts steps, as `steps` does.
    """
    if kind not in RESIDUALS:
        known = ", ".join(f"`{one}`" for one in RESIDUALS)
        raise LearnError(f"`{kind}` is not a model of flights; choose one of {known}")
    start = time.perf_counter()
    taken, held = pieces.split(training.held, training.seed)
    coasting = constant_velocity(taken), FlightMotion.of(taken)
    scale = prediction_errors(*coasting, taken.steps)
    early = prediction_errors(*coasting, max(1, taken.steps // 5))
    if not (scale > 0).all():
        raise LearnError("velocities do not change in any of the flights: nothing to learn")
    reach = taken.dt * max(1, taken.steps // 5)
    model = FlightModel(
        propellers,
        kind,
        first_weights(kind, taken.inputs.shape[2], training.hidden, training.seed),
        units=(early[1] / reach, early[3] / reach),
    )
    model = replace(model, scales=_feature_scales(model, taken))
    weights, history = _descended(model, taken, held, scale, training)
    return FittedFlight(replace(model, weights=weights), history, time.perf_counter() - start)


def _feature_scales(model: FlightModel, pieces: FlightPieces) -> dict[str, Any]:
    """Return means and widths of features; vectors and odd numbers are not shifted."""
    body = np.einsum("nji,nj->ni", pieces.rotation[:, 0], pieces.velocity[:, 0])
    channels = model.propellers.channels(jnp.asarray(pieces.inputs[:, 0]))
    features = RESIDUALS[model.kind].features(
        jnp.asarray(pieces.rotation[:, 0]), jnp.asarray(body), jnp.asarray(pieces.rate[:, 0]),
        channels,
    )  # fmt: skip
    scales = {}
    for name, given in features.items():
        value = np.asarray(given, float)
        if name == "even":
            scales[name] = value.mean(axis=0), np.maximum(value.std(axis=0), LOW)
        else:
            size = np.sqrt(np.mean(value**2, axis=0))
            if name == "vectors":
                size = np.sqrt(np.mean(size**2, axis=1, keepdims=True))
            scales[name] = 0.0, np.maximum(size, LOW)
    return scales


def _descended(
    model: FlightModel, taken: FlightPieces, held: FlightPieces, scale: np.ndarray,
    training: Training,
) -> tuple[Any, np.ndarray]:  # fmt: skip
    """Return the weights that predict held-out flights best, and the history."""
    loss = _loss(model, scale, taken.dt)
    slopes = jax.jit(jax.value_and_grad(lambda w, *of: loss(w, *of) + _decay(w, training.decay)))
    optimiser = _optimiser(RESIDUALS[model.kind].rate, training.steps)
    judge, move = jax.jit(loss), jax.jit(partial(_moved, optimiser))
    rng = np.random.default_rng(training.seed)
    weights = jax.tree.map(lambda one: jnp.asarray(one, jnp.float32), dict(model.weights))
    momenta = optimiser.init(weights)
    lesson, exam = _arrays(taken), _arrays(held, every=max(1, len(held) // 1000))
    best, kept, at, history = np.inf, weights, 0, []
    recent = []
    for step in range(1, training.steps + 1):
        rows = rng.choice(len(taken), min(BATCH, len(taken)), replace=False)
        value, slope = slopes(weights, *_some(lesson, rows))
        recent.append(value)
        weights, momenta = move(weights, momenta, slope)
        if step % EVERY == 0 or step == training.steps:
            judged, mean = float(judge(weights, *exam)), float(np.mean(recent))
            history.append((step, mean, judged))
            recent = []
            if training.progress is not None:
                training.progress(step, mean, judged)
            if not np.isfinite(judged):
                raise LearnError(f"predictions are not numbers after {step} steps of training")
            if judged < best:
                best, kept, at = judged, weights, step
            if step - at >= training.patience:
                break
    return jax.tree.map(lambda one: np.asarray(one, float), kept), np.array(history)


def _arrays(pieces: FlightPieces, every: int = 1) -> tuple[FlightMotion, np.ndarray]:
    """Return motion and inputs with steps in front, in single precision."""
    motion = FlightMotion.of(pieces)
    turned = (np.asarray(one[::every].swapaxes(0, 1), np.float32) for one in motion)
    return FlightMotion(*turned), np.asarray(pieces.inputs[::every].swapaxes(0, 1), np.float32)


def _some(lesson: Any, rows: np.ndarray) -> Any:
    """Return some pieces of a lesson."""
    return jax.tree.map(lambda one: one[:, rows], lesson)


def _loss(model: FlightModel, scale: np.ndarray, dt: float) -> Any:
    def loss(weights: Any, motion: FlightMotion, inputs: Any) -> Any:
        first = FlightMotion(*(one[0] for one in motion))
        there = FlightMotion(*(one[1:] for one in motion))
        here = model.rollout(weights, first, inputs, dt)
        E = jnp.einsum("snji,snjk->snik", here.rotation, there.rotation)
        # The sine of the missing angle: predictions are never half a turn away.
        missing = [E[..., 2, 1] - E[..., 1, 2], E[..., 0, 2] - E[..., 2, 0],
                   E[..., 1, 0] - E[..., 0, 1]]  # fmt: skip
        gaps = (
            here.position - there.position,
            here.velocity - there.velocity,
            jnp.stack(missing, axis=-1) / 2,
            here.rate - there.rate,
        )
        norms = [
            jnp.mean(jnp.sqrt(jnp.sum((gap / float(size)) ** 2, axis=-1) + SOFT**2))
            for gap, size in zip(gaps, scale, strict=True)
        ]
        return sum(norms) / len(norms)

    return loss


def _decay(weights: Any, decay: float) -> Any:
    return decay * sum(jnp.sum(W**2) for W, _ in weights["layers"])


def _optimiser(largest: float, steps: int) -> Any:
    """Return Adam [Kingma2015] with a rate that rises over `WARM` steps and falls to zero."""

    def rate(before: Any) -> Any:
        step = before + 1
        return largest * jnp.minimum(1.0, step / WARM) * (1 + jnp.cos(jnp.pi * step / steps)) / 2

    return optax.adam(rate, *MOMENTA)


def _moved(optimiser: Any, weights: Any, momenta: Any, slope: Any) -> tuple[Any, Any]:
    """Return weights and momenta after one step, within bounds."""
    change, momenta = optimiser.update(slope, momenta)
    weights = optax.apply_updates(weights, change)
    numbers = weights["physics"]
    possible = jnp.maximum(numbers, jnp.asarray(LEAST / UNITS, numbers.dtype))
    return {**weights, "physics": possible}, momenta
