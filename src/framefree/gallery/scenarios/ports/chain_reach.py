"""The scenario `chain-reach`."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from framefree.errors import FramefreeError
from framefree.gallery.scenarios.ports.chain_measures import (
    frame_errors,
    rod_clearance,
    violations_of_s,
)
from framefree.gallery.scenarios.ports.chain_pictures import followed, traced
from framefree.gallery.scenarios.ports.placements import Placements
from framefree.gallery.scenarios.ports.reach_setting import HALF, RADIUS, SETTLED, ReachSetting
from framefree.gallery.shared.figures import positive
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.look.report import Animation, Figure, Line
from framefree.simulate import Pulse, Run, simulate
from framefree.simulate.measures import rate, rate_error, rms, settling_time

RECOVERY = 2.0
RETURNED = 1e-3
LEAST = ("clearance", "task_mobility")
PRINTED = (
    "The printed law sets the reference velocity of all bodies but the last to that of avoidance "
    "alone, as if they were not joined to it. The joints then drag at the end body: it stays "
    "centimetres off. The law used here asks all bodies to move along (errata E0-11)."
)


@dataclass(frozen=True)
class ChainReach(Scenario):
    """The end of a floating chain follows a pose while the rest keeps clear of an obstacle.

    Law III by a virtual port: a wrench on every body, commanded so that the end body moves as asked
    and the motion that is left keeps the others away from a ball. Two pulses disturb it. The same
    run without avoidance shows what the ball would feel, and with the reference velocity as printed
    in [Eslami2025, eq. 41], which ignores the joints, how far the end then stays off.

    A push that lasts and that the law does not know leaves the end decimetres off; with an observer
    of unknown forces (`framefree.control.MomentumObserver`) it comes back to its path. On MuJoCo
    the law is sampled: wrenches that are held in the axes of bodies turn with them for a period,
    and with a push to hold, thin rods are some tenths of a degree off about their axes.

    Parameters
    ----------
    push : float
        Force upwards that lasts, N.
    push_body : str
        The body that feels it: "first", "last" or a name.
    observer : bool
        Whether the law observes unknown forces and sets as much against them.
    placements : int
        How many seeded places of the ball and starts of the short chain are run beside, without
        pulses, and a tenth as many that start inside of the ball.
    seed : int
        Of these places and starts.
    short : int
        Number of rods of the short chain; 0 leaves it out.
    long : int
        Number of rods of the long chain; 0 leaves it out.
    duration : float
        How long to simulate, s.
    dt : float
        Step of the integrator, s.
    plant : str
        "native" or "mujoco".

    Metrics
    -------
    *end_position_max_m
        Largest distance of the end from its path after the start, pulses left out; without
        a prefix the worse of both chains.
    *ignoring_joints_end_position_rms_m
        The same under the law as printed, which ignores the joints, root of the mean
        square.
    *ignoring_joints_end_attitude_rms_deg
        The end's angle from its attitude under that law, root of the mean square.
    *end_position_rms_m
        Distance of the end from its path, root of the mean square, pulses and 2 s after
        them left out.
    *end_attitude_rms_deg
        Angle of the end from its attitude, likewise.
    *clearance_min_without_avoidance_m
        The least distance of a rod from the ball without avoidance; negative is inside.
    placements_clearance_min_m
        Least distance from the ball in all placements.
    *clearance_min_m
        Least distance of a rod from the ball; negative is inside.
    *return_time_s
        Longest time after a pulse until the end is back within 1 mm.
    *js_max
        Largest |J s|: how far velocity errors s violate the joints, m/s.
    *task_mobility_min
        Least mobility of the end: 0 would be a singular position.
    *lyapunov_rate_error
        By how much the rate of V misses the one that the law states, before the first
        pulse, relative.
    placements_ok
        Placements of the ball in which all goes well.
    placements_clear_without_avoidance
        Placements in which the chain does not touch even without avoidance.
    placements_end_error_max_m
        Largest distance of the end from its path in all placements.
    inside_ok
        Starts inside of the ball that lead straight out.
    inside_depth_max_m
        How deep these start.
    inside_return_max_m
        By how much one goes back in while it leaves.
    """

    name: ClassVar[str] = "chain-reach"

    short: int = 5
    long: int = 12
    duration: float = 12.0
    dt: float = 1e-3
    push: float = 0.0
    push_body: str = "first"
    observer: bool = False
    placements: int = 0
    seed: int = 0
    plant: str = "native"

    def run(self, progress: bool | None = None) -> Outcome:
        """Simulate a short and a long chain (0 leaves one out)."""
        if not (self.short or self.long) or self.placements < 0:
            raise FramefreeError(
                f"`{self.name}` needs a short or a long chain, and 0 or more `placements`"
            )
        cases = {
            name: _ReachCase(self, ReachSetting(bodies), name, progress)
            for name, bodies in (("short", self.short), ("long", self.long))
            if bodies
        }
        metrics: dict[str, Any] = {}
        for name, case in cases.items():
            metrics |= {f"{name}_{key}": value for key, value in case.metrics.items()}
        for key in next(iter(cases.values())).metrics:
            values = [case.metrics[key] for case in cases.values() if key in case.metrics]
            metrics[key] = min(values) if key.startswith(LEAST) else max(values)
        runs = {f"{n}_{key}": run for n, c in cases.items() for key, run in c.runs.items()}
        parts: list[Any] = [*cases.values()]
        if self.placements:
            parts.append(self._placed)
            metrics |= self._placed.metrics
        return Outcome(
            runs,
            metrics,
            tuple(promise for part in parts for promise in part.promises()),
            tuple(figure for part in parts for figure in part.figures()),
            tuple(animation for case in cases.values() for animation in case.animations()),
            notes=() if self.observer else (PRINTED,),
        )

    @cached_property
    def _placed(self) -> Placements:
        """The ball elsewhere."""
        setting = ReachSetting(self.short or 5)
        return Placements(
            setting.bodies,
            self.placements,
            self.placements // 10,
            setting.start,
            setting.reference,
            self.duration,
            self.dt,
            SETTLED,
            self.seed,
        )


@dataclass
class _ReachCase:
    """One chain: its runs, and what they show."""

    scenario: ChainReach
    setting: ReachSetting
    label: str
    progress: bool | None
    runs: dict[str, Run] = field(init=False)

    def __post_init__(self) -> None:
        laws = {"avoiding": {}, "plain": {"avoiding": False}}
        if self.label == "short" and not self.scenario.observer:
            laws["printed"] = {"ignore_joints": True}
        self.runs = {key: self._simulated(**options) for key, options in laws.items()}

    def _simulated(self, **options: bool) -> Run:
        s, scenario = self.setting, self.scenario
        return simulate(
            s.machine,
            s.law(**options, observer=scenario.observer),
            s.reference,
            s.start,
            duration=scenario.duration,
            dt=scenario.dt,
            plant=scenario.plant,
            every=2,
            disturbances=(*s.pulses, *self._persistent),
            record=("energy",),
            progress=self.progress,
        )

    @property
    def _persistent(self) -> tuple[Pulse, ...]:
        push, body = self.scenario.push, self.setting.pushed(self.scenario.push_body)
        return (Pulse(body, (0, 0, push, 0, 0, 0)),) if push else ()

    # ------------------------------------------------------------------ figures of the runs

    @cached_property
    def _errors(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        return {key: frame_errors(run, "end") for key, run in self.runs.items()}

    @cached_property
    def _clearances(self) -> dict[str, np.ndarray]:
        obstacle = self.setting.obstacle
        return {
            key: rod_clearance(run, obstacle, HALF, RADIUS).min(axis=1)
            for key, run in self.runs.items()
        }

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """Return errors after the transient, clearance, and how V falls before the first pulse."""
        run, t = self.runs["avoiding"], self.runs["avoiding"].t
        gap, angle = self._errors["avoiding"]
        steady = t > SETTLED
        for pulse in self.setting.pulses:
            steady &= (t < pulse.start) | (t > pulse.stop + RECOVERY)
        before = t < self.setting.pulses[0].start - 1e-9
        calm = t > SETTLED
        for pulse in self.setting.pulses:
            calm &= (t < pulse.start) | (t > pulse.stop)
        metrics = {
            "end_position_max_m": float(gap[calm].max()),
            "end_position_rms_m": rms(gap[steady]),
            "end_attitude_rms_deg": rms(angle[steady]),
            "clearance_min_m": float(self._clearances["avoiding"].min()),
            "clearance_min_without_avoidance_m": float(self._clearances["plain"].min()),
            "return_time_s": self._return_time(t, gap),
            "js_max": float(violations_of_s(run).max()),
            "task_mobility_min": float(run["task_mobility"].min()),
            "lyapunov_rate_error": rate_error(t[before], run["V"][before], run["V_rate"][before]),
        }
        if "printed" in self.runs:
            gap, angle = self._errors["printed"]
            metrics["ignoring_joints_end_position_rms_m"] = rms(gap[steady])
            metrics["ignoring_joints_end_attitude_rms_deg"] = rms(angle[steady])
        return metrics

    def _return_time(self, t: np.ndarray, gap: np.ndarray) -> float:
        """Return the longest time from the end of a pulse until the end is back within 1 mm."""
        pulses = self.setting.pulses
        ends = [*(pulse.start for pulse in pulses[1:]), np.inf]
        times = []
        for pulse, end in zip(pulses, ends, strict=True):
            rows = (t >= pulse.stop) & (t < end)
            if rows.any():
                times.append(settling_time(t[rows], gap[rows], RETURNED) - pulse.stop)
        return float(max(times, default=0.0))

    def promises(self) -> tuple[Promise, ...]:
        """Return what must hold."""
        m, n = self.metrics, self.setting.bodies
        promises = [
            Promise.at_least(
                f"{n} bodies: none touches the ball, distance", m["clearance_min_m"], 0.0, "m"
            ),
            Promise.at_least(
                f"{n} bodies: they keep farther away than without avoidance, by",
                m["clearance_min_m"] - m["clearance_min_without_avoidance_m"],
                0.0,
                "m",
            ),
            Promise(f"{n} bodies: velocity errors s fit the joints", m["js_max"], 1e-10, "m/s"),
        ]
        pushed, back = bool(self.scenario.push), m["return_time_s"]
        promises += [
            Promise(
                f"{n} bodies: the end keeps to its path, rms", m["end_position_rms_m"], 1e-3, "m"
            ),
            Promise(f"{n} bodies: the end is back within 1 mm after a pulse", back, 2.0, "s"),
        ]
        if self.scenario.plant == "native" or not pushed:
            error = m["end_attitude_rms_deg"]
            promises.append(
                Promise(f"{n} bodies: the end keeps its attitude, rms", error, 0.1, "°")
            )
        if self.scenario.observer:
            largest = m["end_position_max_m"]
            promises.append(
                Promise(
                    f"{n} bodies: from 3 s on the end is on its path, outside the pulses",
                    largest,
                    1e-3,
                    "m",
                )
            )
        if self.scenario.plant == "native" and not pushed:
            error = m["lyapunov_rate_error"]
            words = f"{n} bodies: V falls as the law states, relative error"
            promises.append(Promise(words, error, 1e-6))
        if "ignoring_joints_end_position_rms_m" in m:
            promises.append(
                Promise.at_least(
                    f"{n} bodies: under the printed law, which ignores the joints, it stays off",
                    m["ignoring_joints_end_position_rms_m"],
                    0.01,
                    "m",
                )
            )
        return tuple(promises)

    def figures(self) -> tuple[Figure, ...]:
        """Return errors, clearance and Lyapunov function."""
        n, run, t = self.setting.bodies, self.runs["avoiding"], self.runs["avoiding"].t
        words = {"avoiding": "this law", "printed": "joints ignored"}
        shown = {key: word for key, word in words.items() if key in self.runs}
        V, stated = run["V"], run["V_rate"]
        return (
            *self._observed(),
            self._trace(),
            *followed(f"{n} bodies", run, "end"),
            Figure.over_time(
                f"{n} bodies: position error of the end", "error (m)", t,
                {word: positive(self._errors[key][0]) for key, word in shown.items()},
                logarithmic=True, caption="Pulses at 6 s and 9 s push it off; it returns.",
            ),
            Figure.over_time(
                f"{n} bodies: attitude error of the end", "error (deg)", t,
                {word: positive(self._errors[key][1]) for key, word in shown.items()},
                logarithmic=True,
            ),
            Figure.over_time(
                f"{n} bodies: distance to the obstacle", "distance (m)", t,
                {
                    "with avoidance": self._clearances["avoiding"],
                    "without": self._clearances["plain"],
                    "contact *": np.zeros_like(t),
                },
            ),
            Figure(
                f"{n} bodies: Lyapunov function", "time (s)", "-dV/dt (W)",
                (
                    Line("stated: s' Kd s", t, positive(stated)),
                    Line("measured", t[2:-2], positive(rate(t, V)), dashed=True),
                ),
                "Differences of the recorded V beside what the law states; they part only while a "
                "pulse acts, and where V is zero but for rounding.",
                logarithmic=True,
            ),
            Figure.over_time(
                f"{n} bodies: port command", "largest force (N), moment (Nm)", t,
                {
                    "force": np.abs(run.u.reshape(len(t), -1, 6)[..., :3]).max(axis=(1, 2)),
                    "moment": np.abs(run.u.reshape(len(t), -1, 6)[..., 3:]).max(axis=(1, 2)),
                },
            ),
        )  # fmt: skip

    def _trace(self) -> Figure:
        run = self.runs["avoiding"]
        return traced(
            f"{self.setting.bodies} bodies: trace of the whole motion",
            run,
            {"end": run["end.pose"][:, :3, 3]},
            frames=("end",),
            balls=(self.setting.obstacle,),
            caption="Ways of all bodies and of the end, with the path that it follows dashed.",
        )

    def _observed(self) -> tuple[Figure, ...]:
        if not self.scenario.observer:
            return ()
        run = self.runs["avoiding"]
        force = {axis: run["unknown_wrench"][:, i] for i, axis in enumerate("xyz")}
        return (
            Figure.over_time(
                f"{self.setting.bodies} bodies: what the observer takes for a push on the last",
                "force in the world (N)", run.t, force,
                caption="Pulses on other bodies show too, as what would do the same to the motion.",
            ),
        )  # fmt: skip

    def animations(self) -> tuple[Animation, ...]:
        """Return the chain in motion."""
        ball = self.setting.obstacle
        n, desired = self.setting.bodies, self.runs["avoiding"]["end.pose"][::20, :3, 3]
        titles = {"avoiding": "this law", "plain": "without avoidance", "printed": "joints ignored"}
        return tuple(
            Animation(
                f"{n} bodies: {titles[key]}",
                run,
                trails=("end",),
                paths={"path to follow": desired},
                spheres=((ball.center, ball.radius),),
            )
            for key, run in self.runs.items()
        )
