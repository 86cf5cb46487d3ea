"""What turns and moves a craft with propellers: physics linear in twelve numbers, and a network.

In body axes, with velocity v, rate w, the direction d of up, and the lagging inputs y_j of the
propellers at places r_k (along unit arms) with spins c_k,

    t_j = mean_k y_jk,    b_j = mean_k y_jk r_k,    q_j = mean_k c_k y_jk        (lift, lean, twist)

    a = -g + (-h v_x, -h v_y, T_0 + T_1 (t_1 - 1) + T_2 (t_1 - 1)^2 - h_z v_z)
    alpha = E (b_1y, -b_1x, 0) - E_z q_1 e_z - D (w_x, w_y, 0) - D_z w_z e_z + trim

are the physics. The network adds to both. `SymmetricResidual` is made of what a quarter turn, and
every mirror, takes into itself: with w' = (w_y, -w_x), the vectors across the axis

    v, w', d, b_1, b_2 - b_1, b_3 - b_2, ...     (all true vectors: a mirror reflects each)

and the numbers w_z, q_1, q_2 - q_1, ... that change sign when propellers change places (`C4`),

    a_xy = sum c_k(i) vector_k,   a_z = c(i),
    alpha' = sum c_k(i) vector_k,   alpha_z = sum c_k(i) odd_k

with coefficients c, a plain network of invariants i: their scalar products, squares of the odd
numbers, v_z, d_z and the t_j. Whatever its weights are, f(g z) = g f(z), and no heading of the
world is preferred. `WorldResidual` is the plain network beside it: R, R v, w and all inputs as
they are, forces in world axes.

All functions are JAX, over arrays with pieces in front.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from framefree.learn.training import initial_layers, network_values

GRAVITY = 9.81
_PHYSICS = (
    # name, first value, unit of the search and least value, in SI units
    ("thrust", GRAVITY, GRAVITY, 0.0),
    ("thrust_slope", GRAVITY, GRAVITY, 0.0),
    ("thrust_curvature", 0.0, GRAVITY, -np.inf),
    ("drag_across", 0.3, 1.0, 0.0),
    ("drag_along", 0.3, 1.0, 0.0),
    ("lean_effect", 20.0, 20.0, 0.0),
    ("twist_effect", 20.0, 20.0, 0.0),
    ("damping_across", 1.0, 1.0, 0.0),
    ("damping_along", 1.0, 1.0, 0.0),
    *((f"trim_{axis}", 0.0, 1.0, -np.inf) for axis in "xyz"),
)
PHYSICS = tuple(name for name, *_ in _PHYSICS)
"""Names of the numbers of the physics: m/s^2, 1/s, rad/s^2."""
FIRST, UNITS, LEAST = (np.array([row[k] for row in _PHYSICS]) for k in (1, 2, 3))
"""First values, units of the search and least values. Without these a fit makes use of the
controller that flew: it takes commands against a gust for what turned the craft that way."""

Array = Any


@dataclass(frozen=True, eq=False)
class Propellers:
    """Where propellers are, and how they spin.

    Parameters
    ----------
    places : (k, 2)
        In the plane across the axis, of any length: their mean length is one here.
    spins : (k,)
        +1 or -1.
    """

    places: np.ndarray
    spins: np.ndarray

    def channels(self, y: Array) -> tuple[Array, Array, Array]:
        """Return t (..., lags), b (..., lags, 2) and q (..., lags) of inputs (..., lags, k)."""
        kind = y.dtype
        arms = self.places / np.linalg.norm(self.places, axis=1).mean() / len(self.places)
        spins = jnp.asarray(self.spins / len(self.spins), kind)
        return y.mean(axis=-1), y @ jnp.asarray(arms, kind), y @ spins


def physics(numbers: Array, v: Array, w: Array, channels: Any) -> tuple[Array, Array]:
    """Return specific force and angular acceleration (n, 3), in body axes; numbers in `UNITS`."""
    p = dict(zip(PHYSICS, jnp.moveaxis(numbers * jnp.asarray(UNITS, v.dtype), -1, 0), strict=True))
    t, b, q = (one[:, 0] for one in channels)
    lift = p["thrust"] + p["thrust_slope"] * (t - 1) + p["thrust_curvature"] * (t - 1) ** 2
    across = -p["drag_across"] * v[:, :2]
    force = jnp.concatenate([across, (lift - p["drag_along"] * v[:, 2])[:, None]], axis=1)
    turning = jnp.stack(
        [
            p["lean_effect"] * b[:, 1] - p["damping_across"] * w[:, 0] + p["trim_x"],
            -p["lean_effect"] * b[:, 0] - p["damping_across"] * w[:, 1] + p["trim_y"],
            -p["twist_effect"] * q - p["damping_along"] * w[:, 2] + p["trim_z"],
        ],
        axis=1,
    )
    return force, turning


class NoResidual:
    """Physics alone."""

    trims = True
    """Whether the physics have a trim, which no symmetry has."""
    rate = 0.03
    """Largest rate of training: a few numbers bear more than a network."""

    def sizes(self, lags: int) -> tuple[int, int] | None:
        """Return the numbers of inputs and outputs of the network; None for none."""
        return None

    def features(self, R: Array, v: Array, w: Array, channels: Any) -> dict[str, Array]:
        """Return what the network is made of, by kind; see `scales`."""
        return {}

    def accelerations(
        self, layers: Any, features: Mapping[str, Array], R: Array
    ) -> tuple[Array, Array]:
        """Return what is added to force and turning, in units of `FlightModel`, body axes."""
        return jnp.zeros(3), jnp.zeros(3)


class SymmetricResidual(NoResidual):
    """Invariant coefficients times vectors that turn along; see the top of this file."""

    trims, rate = False, 4e-3

    def sizes(self, lags: int) -> tuple[int, int]:
        """Return the numbers of invariants and of coefficients."""
        vectors, odd, even = 3 + lags, 1 + lags, 2 + lags
        return even + odd + vectors * (vectors + 1) // 2, 2 * vectors + 1 + odd

    def features(self, R: Array, v: Array, w: Array, channels: Any) -> dict[str, Array]:
        """Return vectors (n, m, 2), numbers that change sign, and numbers that do not."""
        (t, b, q), up = channels, R[:, 2]
        turned = jnp.stack([w[:, 1], -w[:, 0]], axis=1)
        vectors = jnp.stack([v[:, :2], turned, up[:, :2]], axis=1)
        return {
            "vectors": jnp.concatenate([vectors, _differences(b)], axis=1),
            "odd": jnp.concatenate([w[:, 2:], _differences(q)], axis=1),
            "even": jnp.concatenate([v[:, 2:], up[:, 2:], _differences(t)], axis=1),
        }

    def accelerations(
        self, layers: Any, features: Mapping[str, Array], R: Array
    ) -> tuple[Array, Array]:
        """Return coefficients times vectors and odd numbers."""
        vectors, odd, even = (features[name] for name in ("vectors", "odd", "even"))
        m = vectors.shape[1]
        products = jnp.einsum("nki,nli->nkl", vectors, vectors)[(slice(None), *np.triu_indices(m))]
        invariants = jnp.concatenate(
            [even, odd**2 / (1 + odd**2), products / jnp.sqrt(9 + products**2)], axis=1
        )
        c = network_values(layers, invariants, jnp.tanh)
        across = jnp.einsum("nk,nki->ni", c[:, :m], vectors)
        turned = jnp.einsum("nk,nki->ni", c[:, m : 2 * m], vectors)
        about = jnp.sum(c[:, 2 * m + 1 :] * odd, axis=1)
        force = jnp.concatenate([across, c[:, 2 * m : 2 * m + 1]], axis=1)
        return force, jnp.stack([-turned[:, 1], turned[:, 0], about], axis=1)


class WorldResidual(NoResidual):
    """A plain network in world axes, for comparison."""

    rate = 4e-3

    def sizes(self, lags: int) -> tuple[int, int]:
        """Return 15 and all channels of all lags, and 6."""
        return 15 + 4 * lags, 6

    def features(self, R: Array, v: Array, w: Array, channels: Any) -> dict[str, Array]:
        """Return everything in one row."""
        t, b, q = (_differences(one) for one in channels)
        n = len(v)
        moved = jnp.einsum("nij,nj->ni", R, v)
        row = [R.reshape(n, 9), moved, w, t, b.reshape(n, -1), q]
        return {"even": jnp.concatenate(row, axis=1)}

    def accelerations(
        self, layers: Any, features: Mapping[str, Array], R: Array
    ) -> tuple[Array, Array]:
        """Return the network's six outputs, the first three turned into body axes."""
        c = network_values(layers, features["even"], jnp.tanh)
        return jnp.einsum("nji,nj->ni", R, c[:, :3]), c[:, 3:]


RESIDUALS = {
    "physics": NoResidual(),
    "symmetric": SymmetricResidual(),
    "world": WorldResidual(),
}


def _differences(values: Array) -> Array:
    """Return values of the shortest lag, and by how much each longer one differs from the last."""
    return jnp.concatenate([values[:, :1], jnp.diff(values, axis=1)], axis=1)


def first_weights(kind: str, lags: int, hidden: tuple[int, ...], seed: int) -> dict[str, Any]:
    """Return where training begins: nominal physics and a network that adds nothing."""
    sizes = RESIDUALS[kind].sizes(lags)
    layers = ()
    if sizes is not None:
        rng = np.random.default_rng(seed)
        layers = initial_layers((sizes[0], *hidden, sizes[1]), rng)
    return {"physics": FIRST / UNITS, "layers": layers}
