"""Predictions over many steps: a craft is advanced from a measured state by recorded inputs.

    v' = R a,  R' = R wed(w),  w' = alpha:    w+ = w + dt alpha,  v+ = v + dt R a,
    r+ = r + dt (v + v+)/2,  R+ = R exp(dt (w + w+)/2)

with a and alpha of `model.py` at the beginning of a step and at inputs of its middle.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from framefree.geometry import batch
from framefree.learn.flight.model import (
    GRAVITY,
    LEAST,
    PHYSICS,
    RESIDUALS,
    UNITS,
    Propellers,
    physics,
)
from framefree.learn.flight.pieces import FlightPieces
from framefree.learn.training import double_precision

Array = Any


class FlightMotion(NamedTuple):
    """States of pieces: arrays (pieces, rows, ...), in any order of the first two axes."""

    position: Array
    velocity: Array
    rotation: Array
    rate: Array

    @classmethod
    def of(cls, pieces: FlightPieces) -> "FlightMotion":
        """Return the measured motion."""
        return cls(pieces.position, pieces.velocity, pieces.rotation, pieces.rate)


@dataclass(frozen=True, eq=False)
class FlightModel:
    """A model of a craft in discrete time.

    Parameters
    ----------
    propellers : Propellers
    kind : "physics", "symmetric" or "world"
    weights : dict
        "physics" (12,) in units of `model.UNITS`, and "layers".
    scales : dict
        By which features are shifted and divided: name to (mean, width).
    units : (2,)
        m/s^2 and rad/s^2: of what the network adds.
    """

    propellers: Propellers
    kind: str
    weights: Mapping[str, Any]
    scales: Mapping[str, Any] = field(default_factory=dict)
    units: tuple[float, float] = (1.0, 1.0)

    @property
    def at_bounds(self) -> tuple[str, ...]:
        """Names of the numbers of the physics that are at their least values."""
        pairs = zip(PHYSICS, np.asarray(self.weights["physics"]) * UNITS <= LEAST, strict=True)
        return tuple(name for name, held in pairs if held)

    def accelerations(
        self, weights: Any, R: Array, v: Array, w: Array, y: Array
    ) -> tuple[Array, Array]:
        """Return acceleration (world axes) and angular acceleration (body axes), (n, 3) each."""
        residual = RESIDUALS[self.kind]
        body = jnp.einsum("nji,nj->ni", R, v)
        channels = self.propellers.channels(y)
        numbers = weights["physics"]
        if not residual.trims:
            numbers = numbers * jnp.asarray(_UNTRIMMED, numbers.dtype)
        force, turning = physics(numbers, body, w, channels)
        features = residual.features(R, body, w, channels)
        if self.scales:
            features = {
                name: (value - jnp.asarray(self.scales[name][0], value.dtype))
                / jnp.asarray(self.scales[name][1], value.dtype)
                for name, value in features.items()
            }
        more = residual.accelerations(weights["layers"], features, R)
        force, turning = force + self.units[0] * more[0], turning + self.units[1] * more[1]
        a = jnp.einsum("nij,nj->ni", R, force)
        return a.at[:, 2].add(-GRAVITY), turning

    def rollout(self, weights: Any, first: FlightMotion, inputs: Array, dt: float) -> FlightMotion:
        """Return predictions (steps, pieces, ...) from first states and inputs (steps, ...)."""

        def step(state: FlightMotion, y: Array) -> tuple[FlightMotion, FlightMotion]:
            r, v, R, w = state
            a, alpha = self.accelerations(weights, R, v, w, y)
            v_next, w_next = v + dt * a, w + dt * alpha
            after = FlightMotion(
                r + dt / 2 * (v + v_next), v_next, R @ _turn(dt / 2 * (w + w_next)), w_next
            )
            return after, after

        return jax.lax.scan(step, first, inputs)[1]

    @cached_property
    def _compiled(self) -> Any:
        return jax.jit(self.rollout)

    def predict(self, pieces: FlightPieces) -> FlightMotion:
        """Return predictions (pieces, steps + 1, ...), from the measured states on, in float64."""
        measured = FlightMotion.of(pieces)
        with double_precision(jax):
            first = FlightMotion(*(jnp.asarray(one[:, 0], float) for one in measured))
            weights = jax.tree.map(lambda one: jnp.asarray(one, float), dict(self.weights))
            inputs = jnp.asarray(pieces.inputs.swapaxes(0, 1), float)
            rolled = self._compiled(weights, first, inputs, pieces.dt)
            ahead = [np.asarray(one).swapaxes(0, 1) for one in rolled]
        begun = zip(measured, ahead, strict=True)
        return FlightMotion(*(np.concatenate([a[:, :1], b], axis=1) for a, b in begun))


QUANTITIES = ("position", "velocity", "attitude", "rate")
_UNTRIMMED = np.array([1.0] * 9 + [0.0] * 3)


def constant_velocity(pieces: FlightPieces) -> FlightMotion:
    """Return predictions in which velocity and rate stay what they are."""
    r, v, R, w = (one[:, :1] for one in FlightMotion.of(pieces))
    t = pieces.dt * np.arange(pieces.steps + 1)[:, None]
    same = np.ones_like(t)
    return FlightMotion(r + t * v, same * v, R @ batch.rotation_exp(t * w), same * w)


def prediction_errors(predicted: FlightMotion, measured: FlightMotion, step: int) -> np.ndarray:
    """Return mean norms (4,) of the errors at a step: m, m/s, rad, rad/s.

    That of the attitude is the angle of the rotation that is missing.
    """
    here, there = (FlightMotion(*(one[:, step] for one in both)) for both in (predicted, measured))
    missing = batch.rotation_log(here.rotation.swapaxes(-1, -2) @ there.rotation)
    gaps = (
        here.position - there.position,
        here.velocity - there.velocity,
        missing,
        here.rate - there.rate,
    )
    return np.array([np.linalg.norm(gap, axis=1).mean() for gap in gaps])


def _turn(w: Array) -> Array:
    """Return exp(wed(w)) (n, 3, 3) of small turns, by series: to rounding below 0.1 rad."""
    square = jnp.sum(w**2, axis=1)[:, None, None]
    x, y, z = (w[:, i] for i in range(3))
    zero = jnp.zeros_like(x)
    W = jnp.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=1).reshape(-1, 3, 3)
    sine = 1 - square / 6 * (1 - square / 20 * (1 - square / 42))
    cosine = 0.5 - square / 24 * (1 - square / 30 * (1 - square / 56))
    return jnp.eye(3, dtype=w.dtype) + sine * W + cosine * (W @ W)
