"""From where a law brings a machine to rest: a level set of a Lyapunov function, found by samples.

About rest, errors z = (eps, v) move as dz/dt = f(z) (`ClosedLoop.about_rest`). With A the slope of
f at zero and P from (A + a)^T P + P (A + a) = -Q, V = z . P z falls near zero at least as fast as
exp(-2 a t). As far as it falls,

    dV/dt < 0    for all z with 0 < V(z) <= level,

and inputs stay within their limits, every start inside comes to rest: trajectories cannot leave.
The largest such level is searched along random rays, and again about the worst of them. That is no
proof: a place between the rays may be missed. Runs from many starts confirm it
(`framefree.simulate.attraction.confirmed`).
"""

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from scipy.linalg import solve_continuous_lyapunov

from framefree.control.closed_loop import ClosedLoop
from framefree.control.law import ControlError, Law
from framefree.kernel import compile

RADII = 48
"""Places on a ray at which V must fall, from a fiftieth of its length on."""
FARTHEST = 1e3
"""Times the first guess at which a search along rays gives up: V falls everywhere it looked."""
SHAPES, FEW = 80, 512
"""Weights Q that are tried for a large set, and rays that each is judged by."""
SLOWER = 0.05
"""Share of the slowest decay that V must have near zero."""


@dataclass(frozen=True, eq=False)
class Attraction:
    """A set of states from which a law brings a machine to rest: all with V = z . P z <= level.

    Attributes
    ----------
    loop : ClosedLoop
    x : (nx,)
        Where it comes to rest.
    P : (2 nv, 2 nv)
        Of errors z = (eps, v).
    level : float
    rays : int
        Random directions that were looked along.
    stop : str
        What ended the search for a larger level.
    """

    loop: ClosedLoop
    x: np.ndarray
    P: np.ndarray
    level: float
    rays: int
    stop: str

    def errors(self, x: Any, v: Any) -> np.ndarray:
        """Return z (..., 2 nv) of states."""
        x, v = np.atleast_2d(np.asarray(x, float)), np.atleast_2d(np.asarray(v, float))
        place = np.broadcast_to(self.x, x.shape)
        return np.hstack([self.loop.plant.numeric.difference(place, x), v])

    def value(self, x: Any, v: Any) -> np.ndarray:
        """Return V / level (n,) of states: at most one inside."""
        z = self.errors(x, v)
        return np.einsum("ni,ij,nj->n", z, self.P, z) / self.level

    @property
    def reach(self) -> dict[str, float]:
        """Largest error of each coordinate and velocity inside, alone: all others zero."""
        alone = np.sqrt(self.level / np.diag(self.P))
        names = self.loop.plant.v_names
        return dict(zip([*names, *(f"{name} rate" for name in names)], alone.tolist(), strict=True))

    def starts(self, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Return states (count, nx), (count, nv), random and evenly spread over the set."""
        rng, n = np.random.default_rng(seed), len(self.P)
        y = rng.normal(size=(count, n))
        y *= rng.random(count)[:, None] ** (1 / n) / np.linalg.norm(y, axis=1)[:, None]
        z = np.sqrt(self.level) * np.linalg.solve(np.linalg.cholesky(self.P).T, y.T).T
        place = np.broadcast_to(self.x, (count, len(self.x)))
        return self.loop.plant.numeric.integrate(place, z[:, : n // 2]), z[:, n // 2 :]

    def __str__(self) -> str:
        reach = ", ".join(f"{name} {value:.3g}" for name, value in self.reach.items())
        return (
            f"V <= {self.level:.4g} by {self.rays} rays, ended by {self.stop}; alone up to: {reach}"
        )


def attraction(
    law: Law,
    x_R: Any = None,
    *,
    limits: bool = True,
    share: float = 0.9,
    rays: int = 4096,
    seed: int = 0,
) -> Attraction:
    """Return a set of states from which a law brings its machine to rest at x_R.

    Parameters
    ----------
    law : Law
        Without memory, that follows x, v and a, such as `PrototypeControl` without `limits`.
    x_R : (nx,), optional
        By default neutral.
    limits : bool
        Whether inputs must stay within their limits: a law that is cut off is another one.
    share : float
        Of the level that rays say, which is taken: what lies between rays is not looked at.
    rays, seed : int
        Directions that are looked along, and their seed.

    Raises
    ------
    ControlError
        If the machine does not rest at x_R under the law, or small errors do not decay.
    """
    loop = ClosedLoop(law)
    machine = loop.plant.numeric
    x_R = machine.neutral() if x_R is None else np.asarray(x_R, float)
    rates = loop.about_rest(x_R)
    A = _slope(loop, rates)
    bounds = machine.input_limits if limits else None
    looked = _LevelByRays(rates, bounds, seed)
    best = looked.at(_largest(A, looked, seed), rays)
    return Attraction(loop, x_R, best.P, share * best.level, rays, best.stop)


def _slope(loop: ClosedLoop, rates: ca.Function) -> np.ndarray:
    """Return df/dz at zero, of a loop that rests there and decays."""
    z = ca.SX.sym("z", rates.numel_in(0))
    function = ca.Function("slope", [z], [rates(z)[0], ca.jacobian(rates(z)[0], z)])
    still, A = (np.array(value) for value in function(np.zeros(z.shape[0])))
    if not np.abs(still).max() < 1e-6 * (1 + np.abs(A).max()):
        raise ControlError(
            f"`{loop.plant.name}` does not rest there under the law: it accelerates by "
            f"{np.abs(still).max():.3g}"
        )
    worst = np.linalg.eigvals(A).real.max()
    if not worst < -1e-6 * np.abs(A).max():
        raise ControlError(
            f"small errors about rest do not decay: an eigenvalue has the real part {worst:.3g} 1/s"
        )
    return A


def _largest(A: np.ndarray, looked: "_LevelByRays", seed: int) -> np.ndarray:
    """Return P, among those of diagonal Q, whose level set is largest, by random steps."""
    rng, n = np.random.default_rng(seed), len(A)
    A = A - SLOWER * np.linalg.eigvals(A).real.max() * np.eye(n)
    best, weights, step = None, np.zeros(n), 1.0
    for _ in range(SHAPES):
        tried = weights + (0.0 if best is None else step) * rng.normal(size=n)
        P = solve_continuous_lyapunov(A.T, -np.diag(np.exp(tried)))
        found = looked.at((P + P.T) / 2, FEW)
        if best is None or found.volume > best.volume:
            best, weights, step = found, tried, min(1.0, 1.3 * step)
        else:
            step *= 0.93
    assert best is not None
    return best.P


@dataclass(frozen=True, eq=False)
class _Level:
    """The level up to which V falls, and what ends it."""

    P: np.ndarray
    level: float
    stop: str

    @property
    def volume(self) -> float:
        """Logarithm of the volume of the set, but for a constant."""
        if not self.level > 0:
            return -np.inf
        return (len(self.P) * np.log(self.level) - np.linalg.slogdet(self.P)[1]) / 2


class _LevelByRays:
    """Looks along random rays how far V falls, and again about the worst of them."""

    def __init__(self, rates: ca.Function, bounds: Any, seed: int) -> None:
        self._bounds, self._seed = bounds, seed
        self._kernel = compile(rates)

    def at(self, P: np.ndarray, rays: int) -> _Level:
        """Return the level of V = z . P z."""
        rng, back = np.random.default_rng(self._seed), np.linalg.inv(np.linalg.cholesky(P).T)
        directions = _unit(rng.normal(size=(rays, len(P))))
        # The first guess is where a typical error is a thousandth of its unit.
        radius = 1e-3 / float(np.abs(back).max())
        far = FARTHEST * radius * 1e3
        lengths, cut = self._lengths(P, directions @ back.T, radius)
        while lengths.min() >= radius and radius < far:
            radius *= 2
            lengths, cut = self._lengths(P, directions @ back.T, radius)
        for spread in (0.3, 0.1, 0.03, 0.01, 0.003):
            near = directions[np.argsort(lengths)[:32]]
            more = np.repeat(near, rays // 32, axis=0)
            directions = np.concatenate([near, _unit(more + spread * rng.normal(size=more.shape))])
            lengths, cut = self._lengths(P, directions @ back.T, radius)
            radius = min(radius, 1.5 * float(lengths.min()) or radius)
        worst = int(lengths.argmin())
        if lengths[worst] >= far:
            return _Level(P, float(lengths[worst]) ** 2, "the end of the rays")
        stop = "limits of inputs" if cut[worst] else "a rise of V"
        return _Level(P, float(lengths[worst]) ** 2, stop)

    def _lengths(
        self, P: np.ndarray, rays: np.ndarray, radius: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return how far V falls along rays up to a radius, and whether limits end it."""
        radii = radius * np.linspace(0.02, 1.0, RADII)
        z = (radii[:, None, None] * rays).reshape(-1, len(P))
        rate, u = self._kernel(z)
        falls = ((z @ P) * rate).sum(axis=1) < 0
        cut = np.zeros(len(z), bool)
        if self._bounds is not None:
            lower, upper = self._bounds
            cut = ((u < lower) | (u > upper)).any(axis=1)
        bad = (~(falls & np.isfinite(rate).all(axis=1)) | cut).reshape(RADII, -1)
        first = np.where(bad.any(axis=0), bad.argmax(axis=0), RADII)
        lengths = np.concatenate([[0.0], radii])[first]
        at = np.minimum(first, RADII - 1)
        return lengths, cut.reshape(RADII, -1)[at, np.arange(len(at))]


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1)[:, None]
