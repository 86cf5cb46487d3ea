"""Training of networks: quasi-Newton steps on JAX gradients, stopped on held-out motions.

    loss = mean_n |L_n^-1 (y_n - sum_b J_b^T P_b c(i_b; weights))|^2 / scale + decay |weights|^2

The network's invariants i and its polynomial wrenches P do not depend on the weights: they are
computed once by compiled kernels, and so is their projection. What JAX differentiates is the plain
network in between. These networks are small (2 x 32) and the samples few: limited-memory BFGS over
all samples at once needs some hundreds of gradients. After every few steps the loss on motions that
were held out is taken; the best weights are kept, and training stops when they stay the best.

Needs the extra `learn` (JAX).
"""

import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from framefree.errors import FramefreeError
from framefree.learn.errors import LearnError
from framefree.learn.network import flat, unflat


@dataclass(frozen=True)
class Training:
    """How a network is trained.

    Parameters
    ----------
    hidden : tuple of int
        Sizes of the hidden layers.
    steps : int
        Most steps.
    patience : int
        Steps without a better loss on held-out motions after which it stops.
    decay : float
        Weight of the squared weights in the loss.
    held : float
        Share of motions held out.
    seed : int
        Of first weights and of the choice of motions.
    progress : callable (step, loss, held-out loss), optional
    """

    hidden: tuple[int, ...] = (32, 32)
    steps: int = 600
    patience: int = 100
    decay: float = 1e-6
    held: float = 0.2
    seed: int = 0
    progress: Callable[[int, float, float], Any] | None = None

    def __post_init__(self) -> None:
        if not self.hidden or min(self.hidden) < 1 or self.steps < 1 or self.patience < 1:
            raise LearnError("`hidden`, `steps` and `patience` must be positive")
        if not 0 < self.held < 1 or self.decay < 0:
            raise LearnError("`held` must lie between 0 and 1, and `decay` must not be negative")


@dataclass(frozen=True)
class Lesson:
    """What a network is to learn.

    Attributes
    ----------
    inputs : (n, bodies, i)
        What the first layer takes.
    maps : (n, m, bodies, k)
        Whitened T^T of what each of the k outputs stands for.
    labels : (n, m)
        Whitened.
    """

    inputs: np.ndarray
    maps: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True)
class Trained:
    """Weights, and how they came about.

    Attributes
    ----------
    layers : tuple of (W, b)
    history : (steps, 3)
        Step, loss and loss on held-out motions.
    best : int
        Step of the weights that were kept.
    seconds : float
    """

    layers: tuple[tuple[np.ndarray, np.ndarray], ...]
    history: np.ndarray
    best: int
    seconds: float


@dataclass
class _HeldOut:
    """Follows the loss on held-out motions."""

    held: Callable[[np.ndarray], float]
    training: Training
    best: float = np.inf
    kept: np.ndarray | None = None
    at: int = 0
    step: int = 0
    rows: list[tuple[int, float, float]] = field(default_factory=list)

    def look(self, weights: np.ndarray, loss: float) -> None:
        held = self.held(weights)
        self.rows.append((self.step, loss, held))
        if self.training.progress is not None:
            self.training.progress(self.step, loss, held)
        if held < self.best:
            self.best, self.kept, self.at = held, np.array(weights), self.step
        if self.step - self.at >= self.training.patience:
            raise StopIteration


EVERY = 5
"""Steps from one look at held-out motions to the next."""


def train(lesson: Lesson, held: Lesson, training: Training) -> Trained:
    """Train a network.

    Raises
    ------
    LearnError
        If the loss is not a number.
    """
    jax = jax_library()
    from scipy.optimize import minimize

    start = time.perf_counter()
    shape = (lesson.inputs.shape[-1], *training.hidden, lesson.maps.shape[-1])
    first = initial_layers(shape, np.random.default_rng(training.seed))
    with double_precision(jax):
        loss, slope = _losses(jax, first, lesson, training.decay)
        watch = _HeldOut(_losses(jax, first, held, 0.0)[0], training)

        def step(weights: np.ndarray) -> None:
            watch.step += 1
            if watch.step % EVERY == 0:
                watch.look(weights, float(loss(weights)))

        watch.look(flat(first), float(loss(flat(first))))
        if not np.isfinite(watch.best):
            raise LearnError("the loss of the first weights is not a number: check the samples")
        options = {"maxiter": training.steps, "maxcor": 20, "maxfun": 2 * training.steps}
        minimize(slope, flat(first), jac=True, method="L-BFGS-B", callback=step, options=options)
    assert watch.kept is not None
    layers = unflat(watch.kept, first)
    return Trained(layers, np.array(watch.rows), watch.at, time.perf_counter() - start)


def initial_layers(
    sizes: tuple[int, ...], rng: np.random.Generator
) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Return random layers; the last is zero, so that training begins at no wrench at all."""
    layers = []
    for k, (rows, columns) in enumerate(zip(sizes[1:], sizes[:-1], strict=True)):
        last = k + 2 == len(sizes)
        W = rng.normal(size=(rows, columns)) * (0.0 if last else 1 / np.sqrt(columns))
        b = np.zeros(rows) if last else 0.3 * rng.normal(size=rows)
        layers.append((W, b))
    return tuple(layers)


def network_values(layers: Any, inputs: Any, tanh: Callable[[Any], Any]) -> Any:
    """Return the last layer's values (..., k) at inputs (..., i): NumPy or JAX arrays."""
    h = inputs
    for k, (W, b) in enumerate(layers):
        h = h @ W.T + b
        if k + 1 < len(layers):
            h = tanh(h)
    return h


def _losses(jax: Any, like: Any, lesson: Lesson, decay: float) -> tuple[Callable, Callable]:
    """Return the loss, and the loss with its slope, as functions of all weights in one row."""
    jnp = jax.numpy
    n, m = lesson.labels.shape
    scale = float(np.mean(lesson.labels**2)) or 1.0
    inputs, labels = jnp.asarray(lesson.inputs), jnp.asarray(lesson.labels)
    maps = jnp.asarray(lesson.maps.reshape(n, m, -1))

    def loss(weights: Any) -> Any:
        c = network_values(unflat(weights, like), inputs, jnp.tanh)
        predicted = (maps @ c.reshape(n, -1, 1))[..., 0]
        return jnp.mean((predicted - labels) ** 2) / scale + decay * jnp.sum(weights**2)

    compiled = jax.jit(loss)
    slopes = jax.jit(jax.value_and_grad(loss))

    def value(weights: np.ndarray) -> float:
        return float(compiled(weights))

    def with_slope(weights: np.ndarray) -> tuple[float, np.ndarray]:
        result, slope = slopes(weights)
        return float(result), np.asarray(slope, float)

    return value, with_slope


def jax_library() -> Any:
    """Return JAX, or say how it is installed."""
    try:
        import jax
        import jax.numpy
    except ImportError as error:
        raise FramefreeError(
            "networks need JAX, which is not installed; install it with: pip install "
            '"framefree[learn]"'
        ) from error
    return jax


@contextmanager
def double_precision(jax: Any) -> Any:
    """Compute in float64 inside, whatever the setting outside."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)
