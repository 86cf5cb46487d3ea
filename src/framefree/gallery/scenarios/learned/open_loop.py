"""What models predict at states that they have not seen: the open-loop side of `learned-chain`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from framefree.gallery.scenarios.learned.fluid_chain import (
    LENGTH,
    Swimming,
    TrueFluid,
    swimmer,
    swimming_samples,
)
from framefree.geometry import quaternion, so3
from framefree.learn import (
    BasisFit,
    Learned,
    RodLibrary,
    Samples,
    Trained,
    Training,
    fit_basis,
    learn,
    noisy,
)
from framefree.learn.plain import WorldNetwork, learn_world_network

NOISE = 0.03
"""Noise of the labels, share of their size."""
MOTIONS = 20
TESTED = 1000
FEATURES = ("velocity", "rate")
"""What the network looks at: gravity enters by the basis."""
YAW, ROLL = 2.0, 1.2
"""rad, by which tests are turned about the vertical and rolled about the first rod's axis."""


def about(axis: int, angle: float) -> tuple[float, float, float, float]:
    """Return the quaternion of a turn about a world axis."""
    return tuple(np.array(quaternion.exp(angle * np.eye(3)[axis])).ravel())  # type: ignore


STYLES: dict[str, Swimming] = {
    "plane": Swimming(),
    "yaw": Swimming(turn=about(2, YAW)),
    "rolled": Swimming(turn=about(0, ROLL)),
    "space": Swimming(space=True),
}
"""Motions in the plane and at the heading of the training, turned, rolled, and in space."""


@dataclass(frozen=True)
class FluidLessons:
    """Samples, models and their errors.

    Parameters
    ----------
    samples, few, plain : int
        Samples to learn from: all, few, and those of the plain network.
    seed : int
    tell : callable, optional
        Told what is being done.
    """

    samples: int
    few: int
    plain: int
    seed: int
    tell: Callable[[str], Any] = lambda words: None

    fluid = TrueFluid()

    def data(self, count: int, fluid: TrueFluid | None = None, motions: int = MOTIONS) -> Samples:
        """Return noisy samples of motions in one plane and at one heading."""
        clean = swimming_samples(
            swimmer(), STYLES["plane"], fluid or self.fluid, count=count, motions=motions,
            seed=self.seed,
        )  # fmt: skip
        return noisy(clean, NOISE, self.seed)

    def unseen(self, style: str, fluid: TrueFluid | None = None, bodies: int = 5) -> Samples:
        """Return samples of other motions, without noise."""
        seed = self.seed + 90 + list(STYLES).index(style)
        return swimming_samples(
            swimmer(bodies), STYLES[style], fluid or self.fluid, count=TESTED, seed=seed
        )

    @cached_property
    def tests(self) -> dict[str, Samples]:
        """Samples to judge by, of motions that were not learned from."""
        tests = {style: self.unseen(style) for style in STYLES}
        return tests | {"ten_rods": self.unseen("space", bodies=10)}

    @property
    def training(self) -> Training:
        """How networks are trained."""
        return Training(hidden=(32, 32), decay=1e-5, seed=self.seed)

    def learned(self, count: int) -> Learned:
        """Return a basis with a network on what it leaves."""
        self.tell(f"learning from {count} samples")
        return learn(
            self.data(count), library=RodLibrary(LENGTH), training=self.training, features=FEATURES
        )

    @cached_property
    def full(self) -> Learned:
        """Learned from all samples."""
        return self.learned(self.samples)

    @cached_property
    def from_few(self) -> Learned:
        """Learned from few samples."""
        return self.learned(self.few)

    @cached_property
    def network(self) -> Learned:
        """A network without a basis, with the current that the basis found."""
        self.tell("learning a network alone")
        return learn(
            self.data(self.samples), symmetry=RodLibrary(LENGTH).symmetry, training=self.training,
            current=self.full.model.current,
        )  # fmt: skip

    @cached_property
    def worlds(self) -> dict[int, WorldNetwork]:
        """Plain networks in world axes, by how many samples they were learned from."""
        return {count: network for count, (network, _) in self._trained_worlds.items()}

    @cached_property
    def _trained_worlds(self) -> dict[int, tuple[WorldNetwork, Trained]]:
        counts = sorted({self.few, self.samples, self.plain})
        networks = {}
        for count in counts:
            self.tell(f"learning a plain network from {count} samples")
            networks[count] = learn_world_network(self.data(count), self.training)
        return networks

    @property
    def training_seconds(self) -> float:
        """Longest time that training of a network took, s."""
        ours = [one.trained for one in (self.full, self.from_few, self.network)]
        plain = [trained for _, trained in self._trained_worlds.values()]
        return max(one.seconds for one in (*ours, *plain) if one is not None)

    @cached_property
    def in_span(self) -> tuple[BasisFit, float]:
        """A basis that spans the fluid, learned from 50 samples, and its error in space."""
        fluid = TrueFluid(crisis=False)
        fit = fit_basis(RodLibrary(LENGTH), self.data(50, fluid, motions=10))
        return fit, self.unseen("space", fluid).error(fit.model)

    def data_factor(self, errors: dict[int, float], wanted: float) -> tuple[float, bool]:
        """Return how many times the samples of ours plain networks need, and if they got there.

        If none does, it is that of the most that were tried: a lower bound.
        """
        enough = [count for count, error in errors.items() if error <= wanted]
        return (min(enough) / self.few, True) if enough else (max(errors) / self.few, False)


def turned_samples(samples: Samples, R: np.ndarray, bodies: int = 5) -> Samples:
    """Return the same experiment in a world that is turned by R, gravity and all."""
    machine = swimmer(bodies, gravity=R @ np.array([0.0, 0.0, -9.81]))
    q = np.array(quaternion.from_rotation(R)).ravel()
    x = samples.x.copy()
    x[:, :3] = x[:, :3] @ R.T
    x[:, 3:7] = np.array([np.array(quaternion.product(q, one)).ravel() for one in x[:, 3:7]])
    return Samples.of_states(machine, x, samples.v, samples.labels, motion=samples.motion)


def rotation_factors(loop: FluidLessons) -> tuple[dict[str, float], float]:
    """Return error ratios of turned to unturned experiments, of our models and the plain one."""
    test = loop.tests["plane"]
    models: dict[str, Any] = {
        "basis": loop.full.basis.model,  # type: ignore[union-attr]
        "network": loop.network.model,
        "both": loop.full.model,
    }
    world = loop.worlds[loop.samples]
    ratios, plain = dict.fromkeys(models, 1.0), 1.0
    for turn in ([0, 0, YAW], [0.4, -1.3, 0.8], [ROLL, 0, 0]):
        R = np.array(so3.exp(np.array(turn, float)))
        there = turned_samples(test, R)
        for name, model in models.items():
            ratio = there.error(model.turned(R)) / test.error(model)
            ratios[name] = max(ratios[name], ratio, 1 / ratio)
        plain = max(plain, there.error(world.turned(R)) / test.error(world))
    return ratios, plain
