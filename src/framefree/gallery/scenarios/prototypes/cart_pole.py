"""The scenario `cart-pole`."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from framefree.control.attraction import Attraction, attraction
from framefree.control.prototype.matched import MatchedPrototype, matched_prototype
from framefree.control.references import Hold
from framefree.errors import FramefreeError
from framefree.gallery.machines.balancing import cart_pole
from framefree.gallery.shared.metrics import PoledScenario
from framefree.gallery.shared.scenario import Outcome, Promise
from framefree.look.report import Animation, Figure, Line
from framefree.simulate import Run, simulate
from framefree.simulate.attraction import RunsFromStarts, confirmed
from framefree.simulate.measures import settling_time

BEYOND = 3.0
"""Starts of the second batch lie within so many times the region, in every direction."""


@dataclass(frozen=True)
class CartPole(PoledScenario):
    """A pole on a cart is caught from 20 degrees by a prototype that a solver finds.

    Two velocities, one input. The solver finds inertia, damping and stiffness between the pole and
    the world that a motor on the cart can imitate: the matching conditions hold, and small errors
    move as those of the prototype do. How far from upright the law catches the pole is estimated by
    a level set of a Lyapunov function, and confirmed by runs from random starts inside.

    `angle_deg` is where the pole is let go, `rate` (1/s) how fast errors should decay, `starts` how
    many runs confirm the region.

    Parameters
    ----------
    angle_deg : float
        Where the pole is let go, degrees from upright.
    rate : float
        How fast errors should decay, 1/s.
    starts : int
        Runs from random starts that confirm the region.
    duration : float
        How long to simulate, s.
    seed : int
        Of the random starts.
    plant : str
        "native" or "mujoco".

    Metrics
    -------
    end_error
        Largest error in the end, in m, rad, m/s or rad/s.
    settling_s
        Time after which the pole stays within 1 degree of upright.
    largest_force_n
        Largest force of the motor.
    cart_travel_m
        How far the cart goes.
    region_level
        Level of the Lyapunov function that bounds the region.
    region_*
        How far from rest the region reaches along one coordinate or velocity alone.
    start_in_region
        V at the start, by the level of the region: below 1 means inside.
    starts
        Number of random starts in the region.
    starts_home
        How many of them come to rest.
    largest_rise_of_v
        Largest rise of V along a run, by the level.
    beyond_starts
        Number of starts outside of the region.
    beyond_home_share
        Share of those that come to rest all the same.
    """

    name: ClassVar[str] = "cart-pole"

    angle_deg: float = 20.0
    rate: float = 1.5
    starts: int = 10_000
    duration: float = 8.0
    seed: int = 0
    plant: str = "native"

    def run(self, progress: bool | None = None) -> Outcome:
        """Find the prototype, catch the pole, and confirm from where it is caught."""
        if self.starts < 1:
            raise FramefreeError(f"`starts` must be at least 1, got {self.starts}")
        machine = cart_pole()
        found = matched_prototype(machine, self.rate)
        law = found.law(approach="body")
        region = attraction(law, seed=self.seed)
        x0 = np.array([0.0, np.deg2rad(self.angle_deg)])
        caught = simulate(
            machine,
            law,
            Hold(machine, found.x),
            x0,
            np.zeros(2),
            duration=self.duration,
            dt=1e-3,
            plant=self.plant,
            record=("energy",),
            progress=progress,
        )
        steps = {"duration": self.duration, "dt": 4e-3, "progress": progress}
        inside = confirmed(region, self.starts, seed=self.seed + 1, **steps)
        x, v = region.starts(max(1, self.starts // 5), self.seed + 2)
        around = confirmed(region, (BEYOND * x, BEYOND * v), **steps)
        return Outcome(
            runs={"caught": caught},
            metrics=_metrics(found, region, caught, inside, around, x0),
            promises=_promises(found, region, caught, inside, x0),
            figures=_figures(region, caught, inside, around),
            animations=(Animation("The pole is caught", caught, trails=("tip",)),),
            notes=(
                f"{region}.",
                f"The region is what {region.rays} random rays say, less a tenth: no proof. Of "
                f"{len(inside.home)} random starts in it {int(inside.home.sum())} came to rest.",
            ),
        )


def _end(run: Run) -> float:
    """Return the largest error at the end: m, rad, m/s or rad/s."""
    return float(np.abs(np.concatenate([run.x[-1], run.v[-1]])).max())


def _metrics(
    found: MatchedPrototype,
    region: Attraction,
    caught: Run,
    inside: RunsFromStarts,
    around: RunsFromStarts,
    x0: np.ndarray,
) -> dict[str, float]:
    matching, reach = found.matching, region.reach
    beyond = around.first > 1
    return {
        "matching_error": matching.error,
        "slowest_pole": float(np.real(matching.poles).max()),
        "end_error": _end(caught),
        "settling_s": settling_time(caught.t, np.rad2deg(np.abs(caught.x[:, 1])), 1.0),
        "largest_force_n": float(np.abs(caught.u).max()),
        "cart_travel_m": float(np.abs(caught.x[:, 0]).max()),
        "region_level": region.level,
        "region_hinge_deg": float(np.rad2deg(reach["hinge"])),
        "region_slide_m": reach["slide"],
        "region_hinge_rate_deg_s": float(np.rad2deg(reach["hinge rate"])),
        "region_slide_rate_m_s": reach["slide rate"],
        "start_in_region": float(region.value(x0, np.zeros(2))[0]),
        "starts": len(inside.first),
        "starts_home": int(inside.home.sum()),
        "largest_rise_of_v": inside.risen,
        "beyond_starts": int(beyond.sum()),
        "beyond_home_share": float(around.home[beyond].mean()) if beyond.any() else np.nan,
    }


def _promises(
    found: MatchedPrototype,
    region: Attraction,
    caught: Run,
    inside: RunsFromStarts,
    x0: np.ndarray,
) -> tuple[Promise, ...]:
    lost = len(inside.home) - int(inside.home.sum())
    start = float(region.value(x0, np.zeros(2))[0])
    slowest = float(np.real(found.matching.poles).max())
    return (
        Promise("all matching conditions hold, error", found.matching.error, 1e-9),
        Promise.at_least("all small errors decay, the slowest at", -slowest, 0.1, "1/s"),
        Promise("cart and pole are at rest in the end", _end(caught), 1e-3, "m, rad, m/s, rad/s"),
        Promise.share("the start lies in the region: V by its level", start),
        Promise("starts in the region that do not come to rest", float(lost), 0.0),
        Promise("along no run does V rise, by its level", inside.risen, 1e-6),
    )


def _figures(
    region: Attraction, caught: Run, inside: RunsFromStarts, around: RunsFromStarts
) -> tuple[Figure, ...]:
    t = caught.t
    return (
        Figure.over_time(
            "The pole is caught", "angle (deg)", t, {"hinge": np.rad2deg(caught.x[:, 1])}
        ),
        Figure.over_time("Way of the cart", "position (m)", t, {"cart": caught.x[:, 0]}),
        Figure.over_time("Force of the motor", "force (N)", t, {"motor": caught.u[:, 0]}),
        Figure.over_time(
            "Lyapunov function",
            "V by its level",
            t,
            {"V": np.maximum(region.value(caught.x, caught.v), 1e-14)},
            logarithmic=True,
        ),
        _map(region, inside, around),
    )


def _map(region: Attraction, inside: RunsFromStarts, around: RunsFromStarts) -> Figure:
    """Return starts by angle and rate of the pole, and the region with the cart at rest."""
    turn = np.linspace(0, 2 * np.pi, 181)
    hinge = region.P[1::2, 1::2]
    edge = np.linalg.solve(np.linalg.cholesky(hinge).T, [np.cos(turn), np.sin(turn)])
    edge = np.rad2deg(np.sqrt(region.level) * edge)

    def shown(name: str, runs: RunsFromStarts, chosen: np.ndarray) -> Line:
        places = np.flatnonzero(chosen)[:1500]
        x, v = runs.run.x[places, 0, 1], runs.run.v[places, 0, 1]
        return Line(name, np.rad2deg(x), np.rad2deg(v), markers=True)

    outside = around.first > 1
    return Figure(
        "From where the pole is caught",
        "angle (deg)",
        "rate (deg/s)",
        (
            shown("outside, falls", around, outside & ~around.home),
            shown("outside, is caught", around, outside & around.home),
            shown("inside, is caught", inside, inside.home),
            Line("region with the cart in its place", edge[0], edge[1], dashed=True),
        ),
        caption="Random starts, also of the cart's place and speed, by angle and rate of the pole. "
        "The region is an estimate on the safe side: many starts outside are caught as well.",
    )
