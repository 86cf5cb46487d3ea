"""The scenario `chain-free`."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from framefree.gallery.machines.chains import chain
from framefree.gallery.scenarios.ports.chain_measures import (
    body_momenta,
    body_poses,
    joint_forces,
    tree_joint_forces,
)
from framefree.gallery.scenarios.ports.chain_pictures import traced
from framefree.gallery.shared.figures import positive
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.look.report import Animation, Figure, Line
from framefree.machine import Machine
from framefree.simulate import Pulse, Run, simulate

RECORD = ("energy", "momentum", "joint_wrench", "constraint")


@dataclass(frozen=True)
class ChainFree(Scenario):
    """A floating chain of rods, pushed twice: momentum, joints and joint forces.

    Rods joined by flexible ball joints float at rest, their weight compensated. A moment acts on
    the first for a while, later a force on the second: the open-loop validation of [Eslami2025,
    sec. 4.1]. In between and afterwards nothing acts from outside, so that momentum must stay what
    it is; while something acts, it must change by exactly the impulse, and the moment of it.

    The document also asks that joint forces stay near zero while a moment acts. That holds for a
    moment about the axis of a straight chain only: two short runs show both (errata E0-12).

    Parameters
    ----------
    bodies : int
        Number of rods.
    duration : float
        How long to simulate, s.
    dt : float
        Step of the integrator, s.
    moment : float
        Size of the moment on the first rod, Nm.
    force : float
        Size of the force on the second rod, N.
    stiffness : float
        Of the springs in the joints, Nm/rad.

    Metrics
    -------
    momentum_drift
        Largest change of momentum while nothing acts, by the sum of the bodies' momenta.
    impulse_error
        Largest relative error of the change of momentum over a pulse.
    impulse_moment_error
        The same of angular momentum.
    joint_violation_m
        How far joints come apart.
    momentum_sum_peak_ns
        Largest sum of the sizes of the bodies' momenta.
    angular_momentum_sum_peak_nms
        The same of angular momenta.
    joint_force_peak_n
        Largest force in a joint.
    joint_force_tree_error
        Largest relative difference of joint forces to those of the tree formulation.
    axial_moment_joint_force_n
        Largest joint force under a moment about the chain's axis.
    crosswise_moment_joint_force_n
        Largest joint force under a moment across it.
    """

    name: ClassVar[str] = "chain-free"

    bodies: int = 5
    duration: float = 60.0
    dt: float = 5e-4
    moment: float = 0.4
    force: float = 2.0
    stiffness: float = 1.0

    def run(self, progress: bool | None = None) -> Outcome:
        """Push the chain, and compare joint forces with those of the tree formulation."""
        machine = chain(self.bodies, gravity=None, port="none", stiffness=self.stiffness)
        pulses = (
            Pulse("body1", np.array([0, 0, 0, 0.1, 0.5, 1.0]) * self.moment, 0.5, 0.5),
            Pulse("body2", np.array([0, 0.5, 1.0, 0, 0, 0]) * self.force, 2.0, 0.5),
        )
        runs = {
            "chain": self._pushed(machine, pulses, self.duration, 1e-2, "maximal", progress),
            "maximal": self._pushed(machine, pulses, 4.0, self.dt, "maximal", progress),
        }
        turned = {
            axis: self._turned(machine, direction, progress)
            for axis, direction in {"along": (1, 0, 0), "across": (0, 0, 1)}.items()
        }
        momentum = _Momentum(machine, runs["chain"], runs["maximal"], pulses)
        metrics = momentum.metrics() | self._force_metrics(runs["maximal"], pulses, turned)
        return Outcome(
            {"chain": runs["chain"]},
            metrics,
            self._promises(metrics),
            (
                traced(
                    "Trace of the motion in the first 4 s",
                    runs["maximal"],
                    caption="Ways of the rods' mass centers, under the moment and then the force.",
                ),
                *momentum.figures(),
                *_force_figures(runs["maximal"], turned),
            ),
            (
                Animation(
                    "The chain in motion",
                    runs["chain"],
                    trails=("body1", "end"),
                    caption="A moment turns the first rod, then a force takes the chain along.",
                ),
            ),
            notes=(
                "Joint forces in the document have the wrong sign (errata E0-2). Here the wrench "
                "of a joint is what the parent exerts on the child; a hanging chain at rest shows "
                "the weights below each joint, pointing up.",
            ),
        )

    def _pushed(
        self,
        machine: Machine,
        pulses: tuple[Pulse, ...],
        duration: float,
        every: float,
        formulation: str,
        progress: bool | None,
    ) -> Run:
        return simulate(
            machine,
            duration=duration,
            dt=self.dt,
            every=max(1, round(every / self.dt)),
            formulation=formulation,
            disturbances=pulses,
            record=RECORD,
            progress=progress,
        )

    def _turned(self, machine: Machine, axis: tuple[int, ...], progress: bool | None) -> Run:
        moment = np.concatenate([np.zeros(3), np.multiply(axis, self.moment)])
        pulse = Pulse("body1", moment, 0.0, 0.5)
        return self._pushed(machine, (pulse,), 0.5, self.dt, "maximal", progress)

    def _force_metrics(
        self, run: Run, pulses: tuple[Pulse, ...], turned: dict[str, Run]
    ) -> dict[str, float]:
        maximal, tree = run["joint_wrench"][..., :3], tree_joint_forces(run, pulses)
        return {
            "joint_force_peak_n": float(joint_forces(run).max()),
            "joint_force_tree_error": float(np.abs(maximal - tree).max() / np.abs(tree).max()),
            "axial_moment_joint_force_n": float(joint_forces(turned["along"]).max()),
            "crosswise_moment_joint_force_n": float(joint_forces(turned["across"]).max()),
        }

    def _promises(self, m: dict[str, float]) -> tuple[Promise, ...]:
        return (
            Promise(
                "momentum stays while nothing acts, by the bodies' momenta",
                m["momentum_drift"],
                1e-10,
            ),
            Promise(
                "pulses change momentum by their impulse, relative error", m["impulse_error"], 1e-9
            ),
            Promise(
                "and angular momentum by its moment, relative error",
                m["impulse_moment_error"],
                1e-8,
            ),
            Promise.of(m, "joint_violation_m", "joints stay together", 1e-10),
            Promise(
                "joint forces are those of the tree form, relative error",
                m["joint_force_tree_error"],
                1e-9,
            ),
            Promise.of(
                m,
                "axial_moment_joint_force_n",
                "a moment about the chain's axis leaves joint forces at zero",
                1e-9,
            ),
            Promise.of(
                m,
                "crosswise_moment_joint_force_n",
                "a moment across it does not",
                0.01,
                least=True,
            ),
        )


class _Momentum:
    """Momenta of the long run, and of a finely recorded one while the pulses act."""

    def __init__(self, machine: Machine, run: Run, fine: Run, pulses: tuple[Pulse, ...]) -> None:
        self.machine, self.run, self.fine, self.pulses = machine, run, fine, pulses
        self.sums = {
            name: float(np.linalg.norm(each, axis=2).sum(axis=1).max())
            for name, each in zip(("linear", "angular"), body_momenta(run), strict=True)
        }

    def metrics(self) -> dict[str, float]:
        """Return drifts, errors of impulses, and how far joints came apart."""
        (start1, stop1), (start2, stop2) = (pulse.times for pulse in self.pulses)
        t, edge = self.run.t, 1e-9
        quiet = (t < start1 + edge, (t > stop1 - edge) & (t < start2 + edge), t > stop2 - edge)
        drift = max(
            float(np.abs(self.run[f"{name}_momentum"][rows] - value[rows][0]).max(initial=0.0))
            / scale
            for name, scale in self.sums.items()
            for value in (self.run[f"{name}_momentum"],)
            for rows in quiet
            if rows.any()
        )
        linear, angular = self._impulse_errors()
        return {
            "momentum_drift": drift,
            "impulse_error": linear,
            "impulse_moment_error": angular,
            "joint_violation_m": float(self.run["joints_apart"].max()),
            "momentum_sum_peak_ns": self.sums["linear"],
            "angular_momentum_sum_peak_nms": self.sums["angular"],
        }

    def _impulse_errors(self) -> tuple[float, float]:
        """Return relative errors of the changes of momentum over both pulses."""
        run, linear, angular = self.fine, [], []
        G = body_poses(self.machine, run.x)
        for pulse in self.pulses:
            first, last = (int(np.argmin(np.abs(run.t - time))) for time in pulse.times)
            force, moment = pulse.size[:3], pulse.size[3:]
            r = G[first : last + 1, self.machine.body_index[pulse.target], :3, 3]
            t = run.t[first : last + 1]
            turning = _simpson(t, np.cross(r, force)) + moment * pulse.duration
            changes = [
                run[f"{name}_momentum"][last] - run[f"{name}_momentum"][first]
                for name in ("linear", "angular")
            ]
            scale = np.linalg.norm(pulse.size) * pulse.duration
            linear.append(np.abs(changes[0] - force * pulse.duration).max() / scale)
            angular.append(np.abs(changes[1] - turning).max() / scale)
        return float(max(linear)), float(max(angular))

    def figures(self) -> tuple[Figure, ...]:
        """Return momenta, their drift and joint violation."""
        run = self.run
        shown = run.t <= 10.0
        t = run.t[shown]
        return (
            Figure.over_time(
                "Total linear momentum", "momentum (N s)", t,
                {a: run["linear_momentum"][shown, i] for i, a in enumerate("xyz")},
                caption="It changes while the force acts, and only then.",
            ),
            Figure.over_time(
                "Total angular momentum about the world's origin", "momentum (Nm s)", t,
                {a: run["angular_momentum"][shown, i] for i, a in enumerate("xyz")},
                caption="The moment changes it, and so does the force, which has a lever.",
            ),
            Figure.over_time(
                "How far joints are apart", "distance (m)", run.t,
                {"largest of all joints": positive(run["joints_apart"])},
                logarithmic=True,
            ),
        )  # fmt: skip


def _simpson(t: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the integral of y (n, 3) over equal steps; n odd."""
    h = (t[-1] - t[0]) / (len(t) - 1)
    return h / 3 * (y[0] + y[-1] + 4 * y[1:-1:2].sum(axis=0) + 2 * y[2:-1:2].sum(axis=0))


def _force_figures(run: Run, turned: dict[str, Run]) -> tuple[Figure, ...]:
    names = [joint.name for joint in run.machine.joints] if run.machine is not None else []
    sizes = joint_forces(run)
    words = {"along": "about the chain's axis", "across": "across it"}
    return (
        Figure.over_time(
            "Force in the joints", "force (N)", run.t,
            {name: sizes[:, i] for i, name in enumerate(names) if name != "base"},
            caption="The moment (0.5 to 1 s) acts through the joints too: it bends the chain.",
        ),
        Figure(
            "A pure moment on the first rod", "time (s)", "largest joint force (N)",
            tuple(
                Line(words[key], one.t, joint_forces(one).max(axis=1))
                for key, one in turned.items()
            ),
            "About the axis no joint carries a force; across it they do.",
        ),
    )  # fmt: skip
