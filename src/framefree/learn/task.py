"""What is to be learned in rounds, and from which motions: the contract of the loop of learning.

To have a machine of your own learn in rounds (`rounds.py`), subclass `LearningTask` and give

1. ``name`` and ``machine``: what is known of the machine, without what is to be learned;
2. ``motions`` and ``held_out``: names of motions to learn from, and of others that only judge;
3. ``states(motion)``: states (n, nx), (n, nv) through which a motion is to lead;
4. ``run(motion, model, progress)``: follow a motion with the law that knows a model, or none, and
   return the record. On a real machine this is where it moves;
5. ``samples(run)``: what the record tells, as samples of one motion. Records are read from disk
   again when learning is continued, so that only t, x, v, u and signals may be used;
6. ``learn(samples)``: a model from all samples so far;
7. ``tracking_error(motion, run)``: how far the machine was from the motion, m;
8. ``features(samples, model)``: what the unknown depends on (rows, k), in numbers that no change of
   frames alters: how far motions are apart from data is measured in these;
9. ``settings``: plain values that must be the same for learning to be continued.

`SimulatedTask` is all of this for machines that are simulated.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import Law
from framefree.control.references import JointReference, Reference
from framefree.identify import Recording
from framefree.learn.errors import LearnError
from framefree.learn.learned import CURRENT
from framefree.learn.measured import measured_samples
from framefree.learn.model import WrenchModel
from framefree.learn.samples import Samples
from framefree.learn.symmetry import Symmetry, Trivial
from framefree.learn.trust import invariants_of
from framefree.machine import Machine
from framefree.simulate import Run, simulate

LOOKED_AT = 100
"""States of a motion by which its distance from the data is judged."""


class LearningTask(ABC):
    """Something to learn in rounds; see the contract at the top of this file."""

    name: str
    machine: Machine

    @property
    @abstractmethod
    def motion_names(self) -> tuple[str, ...]:
        """Motions to learn from."""

    @property
    @abstractmethod
    def held_out_names(self) -> tuple[str, ...]:
        """Motions that only judge."""

    @abstractmethod
    def states(self, motion: str) -> tuple[np.ndarray, np.ndarray]:
        """Return x and v along a motion as it is to be, (n, nx) and (n, nv)."""

    @abstractmethod
    def run(self, motion: str, model: Any | None, progress: Any = None) -> Run:
        """Follow a motion with the law that knows a model, or none."""

    @abstractmethod
    def samples(self, run: Run) -> Samples:
        """Return what a record tells."""

    @abstractmethod
    def learn(self, samples: Samples) -> Any:
        """Return a model from all samples so far."""

    @abstractmethod
    def tracking_error(self, motion: str, run: Run) -> float:
        """Return how far the machine was from the motion, m."""

    @abstractmethod
    def features(self, samples: Samples, model: Any | None) -> np.ndarray:
        """Return what the unknown depends on (rows, k), whatever the frame."""

    @property
    def settings(self) -> dict[str, Any]:
        """Plain values that must be the same for learning to be continued."""
        return {}


@dataclass(frozen=True, eq=False)
class SimulatedTask(LearningTask):
    """Learning with a simulated machine whose law does not know all that acts on it.

    Parameters
    ----------
    name : str
    machine : Machine
        What is known.
    true_machine : Machine
        What is simulated: the same machine with what is to be learned.
    law : callable
        From a machine to the law that is made for it; it gets `machine`, with the model added.
    motions, held_out : mapping of str to JointReference
        Motions to learn from, the first round's first; and others that only judge.
    model : callable
        From samples to a model, as ``lambda samples: learn(samples, library=...).model``.
    symmetry : Symmetry
        Of the bodies, for the distance of motions from the data.
    reference : callable, optional
        From a motion to what the law follows, such as `BodyPoses`; default the motion itself.
    duration, dt : float
        Of a run, s.
    every : int
        Steps from row to row of the record.
    window : float
        Of the local polynomials that differentiate the record, s.
    spacing : int
        Rows from sample to sample.
    settled : float
        From when on tracking errors count, s.
    plant : str
        As in `simulate`.
    """

    name: str
    machine: Machine
    true_machine: Machine
    law: Callable[[Machine], Law]
    motions: Mapping[str, JointReference]
    held_out: Mapping[str, JointReference]
    model: Callable[[Samples], WrenchModel]
    symmetry: Symmetry = field(default_factory=Trivial)
    reference: Callable[[JointReference], Reference] | None = None
    duration: float = 10.0
    dt: float = 2e-3
    every: int = 5
    window: float = 0.2
    spacing: int = 10
    settled: float = 2.0
    plant: str = "native"

    def __post_init__(self) -> None:
        if not self.motions or not self.held_out:
            raise LearnError("a task needs motions to learn from, and others that are held out")
        if both := set(self.motions) & set(self.held_out):
            raise LearnError(f"motions cannot be learned from and held out: {sorted(both)}")
        if not 0 <= self.settled < self.duration:
            raise LearnError(
                f"`settled` must lie between 0 and the duration of a run, {self.duration:g} s, got "
                f"{self.settled:g} s"
            )

    @property
    def motion_names(self) -> tuple[str, ...]:
        """Motions to learn from."""
        return tuple(self.motions)

    @property
    def held_out_names(self) -> tuple[str, ...]:
        """Motions that only judge."""
        return tuple(self.held_out)

    @property
    def settings(self) -> dict[str, Any]:
        """Names of motions, a hash of where they lead, and all numbers."""
        names = ("duration", "dt", "every", "window", "spacing", "settled", "plant")
        plain = {name: getattr(self, name) for name in names}
        motions = {"motions": list(self.motions), "held_out": list(self.held_out)}
        states = [np.hstack(self.states(name)) for name in (*self.motions, *self.held_out)]
        led = hashlib.sha256(np.round(states, 6).tobytes()).hexdigest()[:16]
        return {**plain, **motions, "motions_hash": led, "symmetry": self.symmetry.parts()}

    def states(self, motion: str) -> tuple[np.ndarray, np.ndarray]:
        """Return x and v of the motion at even times."""
        return self._states_at(motion, np.linspace(0.0, self.duration, LOOKED_AT))

    def run(self, motion: str, model: Any | None, progress: Any = None) -> Run:
        """Simulate the true machine under the law, from the motion's first state."""
        known = self.machine if model is None else model.added_to(self.machine)
        path = self._motion(motion)
        x, v = self._states_at(motion, np.zeros(1))
        return simulate(
            self.true_machine,
            self.law(known),
            path if self.reference is None else self.reference(path),
            x[0],
            v[0],
            duration=self.duration,
            dt=self.dt,
            every=self.every,
            plant=self.plant,
            progress=progress,
        )

    def samples(self, run: Run) -> Samples:
        """Return samples of the record, differentiated by local polynomials."""
        recording = Recording(run.t, run.x, u=run.u)
        return measured_samples(self.machine, recording, window=self.window, every=self.spacing)

    def learn(self, samples: Samples) -> WrenchModel:
        """Return a model from all samples so far."""
        return self.model(samples)

    def tracking_error(self, motion: str, run: Run) -> float:
        """Return the root mean square distance of a body from its pose once settled, m.

        Turns count with the body's radius of gyration, so that no frame matters.
        """
        late = run.t >= self.settled
        x, _ = self._states_at(motion, run.t[late])
        apart = self.machine.difference(x, run.x[late])
        zero = np.zeros((len(x), self.machine.nv))
        there = Samples.of_states(self.machine, x, zero, zero)
        distances = np.einsum("nij,ni->nj", there.factor, there.along(apart))
        return float(np.sqrt(np.mean(np.sum(distances**2, axis=1)) / len(there.bodies)))

    def features(self, samples: Samples, model: Any | None) -> np.ndarray:
        """Return the invariants of what every body meets (rows, k)."""
        current = [0.0, 0.0, 0.0]
        if model is not None and set(CURRENT) <= set(model.names):
            current = [model.value(name) for name in CURRENT]
        return invariants_of(self.symmetry, samples, current)

    def _motion(self, name: str) -> JointReference:
        known = {**self.motions, **self.held_out}
        if name not in known:
            raise LearnError(f"`{self.name}` has no motion `{name}`; it has: {', '.join(known)}")
        return known[name]

    def _states_at(self, motion: str, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x, v = self._functions[motion].map(len(times))(times[None])
        return np.array(x).T, np.array(v).T

    @cached_property
    def _functions(self) -> "_MotionFunctions":
        return _MotionFunctions(self._motion)


class _MotionFunctions(dict[str, ca.Function]):
    """From t to x and v, made when first asked for."""

    def __init__(self, motion: Callable[[str], JointReference]) -> None:
        super().__init__()
        self._motion = motion

    def __missing__(self, name: str) -> ca.Function:
        t = ca.SX.sym("t")
        signals = self._motion(name).at(t)
        x, v = (ca.densify(ca.SX(signals[key])) for key in ("x", "v"))
        self[name] = ca.Function("motion", [t], [x, v])
        return self[name]
