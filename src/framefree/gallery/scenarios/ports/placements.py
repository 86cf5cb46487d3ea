"""The ball of `chain-reach` elsewhere: seeded places and start poses, all run as one batch.

A placement is feasible: neither the chain at its start nor the last rod on the path that it is to
follow comes nearer to the ball than 3 cm, and the chain floats, so that it can go round the ball.
Other placements start inside of it.
"""

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from framefree.control.port import Avoidance, EndEffectorControl, Sphere
from framefree.control.references.base import Reference
from framefree.gallery.machines.chains import chain
from framefree.gallery.scenarios.ports.chain_measures import body_poses, rods_to_ball
from framefree.gallery.shared.scenario import Promise
from framefree.geometry import quaternion
from framefree.look.report import Figure
from framefree.machine import Frame, Machine
from framefree.simulate import Run, simulate

CLEAR = 0.03
"""How far the ball is at least from the start and from the path, m."""
NEAR = 0.08
"""How far it is at most from the start, m."""
DEEP = 0.1
"""How far rods may be inside at the start, m."""
BEND = 0.35
"""Deviation of the joints' angles, rad."""
HALF, RADIUS, BALL = 0.2, 0.03, 0.15
AXES = tuple(f"ball.pose.{axis}" for axis in "xyz")
STEPS = 10
"""Steps from one recorded row to the next."""


@dataclass(frozen=True)
class Placements:
    """Many places of the ball, and starts of the chain with the same pose of its end.

    Attributes
    ----------
    bodies : int
    count, inside : int
        How many are feasible, and how many start inside of the ball.
    first : (nx,)
        The start that is varied.
    reference : Reference
        What the end follows.
    duration, dt, settled : float
        s; from `settled` on the end must be there.
    seed : int
    """

    bodies: int
    count: int
    inside: int
    first: np.ndarray
    reference: Reference
    duration: float
    dt: float
    settled: float
    seed: int = 0

    @cached_property
    def machine(self) -> Machine:
        """The chain, with a ball whose place is a tunable number."""
        frames = [Frame("stage", "world"), Frame("ball", "world")]
        return chain(self.bodies, radius=RADIUS, frames=frames).tunable(*AXES)

    def law(self, avoiding: bool) -> EndEffectorControl:
        """Return law III; of its avoidance nothing is chosen but the rods' radius."""
        avoidance = Avoidance([Sphere((0, 0, 0), BALL, frame="ball")], radius=RADIUS)
        own = avoidance if avoiding else None
        return EndEffectorControl(self.machine, rate=5.0, turn_rate=5.0, avoidance=own)

    @cached_property
    def _path(self) -> np.ndarray:
        """Poses (n, 4, 4) of the last rod where its end is on the path."""
        t = ca.SX.sym("t")
        pose = ca.Function("pose", [t], [self.reference.at(t)["end.pose"]])
        times = np.linspace(0, self.duration, 600)
        to_body = np.linalg.inv(np.asarray(self.machine.frame("end").pose))
        return np.array([pose(time).full() for time in times]) @ to_body

    @cached_property
    def scenes(self) -> tuple[np.ndarray, np.ndarray]:
        """Starts (n, nx) and places of the ball (n, 3): feasible ones, then those inside."""
        rng, numeric = np.random.default_rng(self.seed), self.machine.numeric
        starts, balls = [], []
        while len(starts) < self.count + self.inside:
            x = self._start(rng)
            rods = body_poses(numeric, x[None])[0]
            ball = rods[rng.integers(self.bodies), :3, 3] + 0.3 * rng.normal(size=3)
            gap = rods_to_ball(rods, ball, BALL, HALF, RADIUS).min()
            clear = CLEAR <= gap <= NEAR if len(starts) < self.count else -DEEP <= gap <= -0.005
            if clear and rods_to_ball(self._path, ball, BALL, HALF, RADIUS).min() >= CLEAR:
                starts.append(x)
                balls.append(ball)
        return np.array(starts), np.array(balls)

    def _start(self, rng: np.random.Generator) -> np.ndarray:
        """Return a configuration bent at random, whose end is where that of the first is."""
        numeric, steps = self.machine.numeric, np.zeros(self.machine.nv)
        steps[6:] = BEND * rng.normal(size=len(steps) - 6)
        x = numeric.integrate(self.first, steps)
        poses = body_poses(numeric, np.array([self.first, x]))
        base = poses[0, -1] @ np.linalg.inv(poses[1, -1]) @ poses[1, 0]
        x[:3] = base[:3, 3]
        x[3:7] = quaternion.from_rotation(ca.DM(base[:3, :3])).full().ravel()
        return x

    @cached_property
    def run(self) -> Run:
        """All placements together."""
        return self._simulated(len(self.scenes[0]), avoiding=True)

    def _simulated(self, count: int, avoiding: bool) -> Run:
        starts, balls = (part[:count] for part in self.scenes)
        return simulate(
            self.machine,
            self.law(avoiding),
            self.reference,
            starts,
            duration=self.duration,
            dt=self.dt,
            every=STEPS,
            parameters=balls,
            record=(),
            threads=2,
            progress=False,
        )

    # ------------------------------------------------------------------ what came of it

    @cached_property
    def _measured(self) -> tuple[np.ndarray, np.ndarray]:
        return self._distances(self.run)

    def _distances(self, run: Run) -> tuple[np.ndarray, np.ndarray]:
        """Return distances (n, rows, rods) to the ball, and errors (n, rows) of the end, m."""
        balls = self.scenes[1][: len(run.x)]
        shape = (*run.x.shape[:2], self.bodies, 4, 4)
        rods = body_poses(self.machine.numeric, run.x.reshape(-1, self.machine.nx)).reshape(shape)
        gaps = rods_to_ball(rods, balls[:, None, None], BALL, HALF, RADIUS)
        ends = rods[:, :, -1] @ np.asarray(self.machine.frame("end").pose)
        errors = np.linalg.norm(ends[..., :3, 3] - run["end.pose"][..., :3, 3], axis=-1)
        return gaps, errors

    @cached_property
    def metrics(self) -> dict[str, float]:
        """How many are as they should be, and the worst of them."""
        gaps, errors = self._measured
        clear, late = gaps.min(axis=(1, 2)), errors[:, self.run.t > self.settled].max(axis=1)
        n, good = self.count, (clear >= 0) & (late < 1e-3)
        plain = self._distances(self._simulated(n, avoiding=False))[0].min(axis=(1, 2))
        metrics = {
            "placements_ok": int(good[:n].sum()),
            "placements_clear_without_avoidance": int((plain >= 0).sum()),
            "placements_clearance_min_m": float(clear[:n].min(initial=np.inf)),
            "placements_end_error_max_m": float(late[:n].max(initial=0.0)),
        }
        if self.inside:
            drops = [self._drop(gap) for gap in gaps[n:]]
            metrics |= {
                "inside_ok": sum(drop == 0 for drop in drops),
                "inside_depth_max_m": float(-gaps[n:, 0].min()),
                "inside_return_max_m": float(max(drops)),
            }
        return metrics

    @staticmethod
    def _drop(gaps: np.ndarray) -> float:
        """Return by how much a rod that starts inside goes back in a step, inf if it stays in."""
        worst = 0.0
        for gap in gaps.T[gaps[0] < 0]:
            if not (gap > 0).any():
                return np.inf
            steps = np.diff(gap[: int(np.argmax(gap > 0)) + 1])
            worst = max(worst, float(-steps.min()))
        return worst

    def promises(self) -> tuple[Promise, ...]:
        """Return what must hold."""
        m, n = self.metrics, self.count
        promises = [
            Promise("placements that fail", n - m["placements_ok"], 0),
            Promise(
                "placements that are clear without avoidance: not all",
                m["placements_clear_without_avoidance"],
                n - 1,
            ),
            Promise.of(
                m,
                "placements_clearance_min_m",
                "in no placement the ball is touched",
                0.0,
                least=True,
            ),
            Promise.of(
                m, "placements_end_error_max_m", "in all placements the end is on its path", 1e-3
            ),
        ]
        if self.inside:
            lost = self.inside - m["inside_ok"]
            promises.append(Promise("starts inside that do not lead straight out", lost, 0))
        return tuple(promises)

    def figures(self) -> tuple[Figure, ...]:
        """Return how near the chains come, and how those that start inside leave."""
        gaps, t = self._measured[0].min(axis=2), self.run.t
        shares = {"nearest of all": 0, "one in ten is nearer": 10, "half of them are nearer": 50}
        figures = [
            Figure.over_time(
                f"{self.count} places of the ball: distance of the chain", "distance (m)", t,
                {
                    word: np.percentile(gaps[: self.count], share, axis=0)
                    for word, share in shares.items()
                },
            )
        ]  # fmt: skip
        if self.inside:
            early = t < 2
            values = {f"start {k + 1}": gap[early] for k, gap in enumerate(gaps[self.count :])}
            title = "Starts inside of the ball: distance of the chain"
            figures.append(Figure.over_time(title, "distance (m)", t[early], values))
        return tuple(figures)
