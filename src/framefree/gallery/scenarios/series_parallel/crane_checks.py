"""Checks of the crane that need no tracking: published values, other formulations, the law."""

import numpy as np

from framefree.control.robust import RobustControl
from framefree.gallery.machines.crane import closed_form, crane_state
from framefree.gallery.scenarios.series_parallel.crane_parts import (
    COORDINATES,
    PRINTED_GAINS,
    PUSH,
    chosen,
    joint_path,
)
from framefree.machine import Machine
from framefree.motion import equations
from framefree.motion.embedded import Embedded
from framefree.simulate import simulate

# Per row: (phi, theta, delta); Gamma 11, 12, 13, 22, 23, 33; gravity force; force of 25 N at the
# tip; tip position. Computed for the document's parameters by others than us.
CHECKS = (
    ((0, 0, 0.1),
     (352.20566572346485, -0.02994885948516997, -0.11692648240320935,
      437.26995761799583, 447.3154627774238, 1638.6410728862975),
     (0, -1818.8429584581347, -333.36707750653363),
     (-1.8602938905922934, -56.25, -215.97969886241557),
     (2.25, -0.07500000000000012, -1.7783134832984429)),
    ((0, 0.7853981633974483, 0.1),
     (354.667206145345, 0.2995578181190765, -0.08112912283211854,
      437.26995761799583, 447.31546277742405, 1638.6410728862975),
     (0, -1715.5171099514173, -2092.3615776652164),
     (-1.14969827319712, -56.25, -215.97969886241555),
     (2.9941117777099597, -0.07499999999999998, 0.3938687376295038)),
    ((0.5, 1.0, 0.05),
     (257.3393665546768, 0.3611140390783409, -0.07228510443117667,
      386.28333325238145, 303.6390490330876, 1328.732595744681),
     (0, -1428.6889146666651, -1898.8015807540792),
     (-1.134665729715305, -46.04591836734694, -194.48665533052608),
     (2.3815770257256625, 1.2155994143593576, 0.6786318579194646)),
    ((-1.2, 0.8, 0.15),
     (388.5495898949128, 0.30955266151165917, -0.0674344409162424,
      493.3432362530947, 659.2469421923586, 2204.1328941176466),
     (0, -1774.2708727307304, -2811.8059094845594),
     (-0.7538697544337793, -67.47448979591836, -250.4897164340598),
     (1.0985691697885422, -3.032664242189492, 0.8365844437363528)),
)  # fmt: skip


def published_error(model: Embedded) -> float:
    """Return the largest error against `CHECKS`, each quantity relative to its largest entry."""
    largest = 0.0
    for q, upper, gravity, push, tip in CHECKS:
        x = np.array(q, float)
        J = model.jacobian(x, "tip")
        place = np.asarray(model.kernel("frame_pose:tip")(x))[:3, 3]
        pairs = (
            (np.asarray(model.mass(x))[np.triu_indices(3)], upper),
            (-np.asarray(model.gravity(x)), gravity),
            (J.T @ PUSH, push),
            (place, tip),
        )
        for value, expected in pairs:
            gap = np.abs(value - np.array(expected)).max()
            largest = max(largest, float(gap / np.abs(expected).max()))
    return largest


def formulation_error(plant: Machine, count: int = 20, seed: int = 0) -> float:
    """Return how far accelerations of three ways to close the loop are apart, relative.

    The triangle in closed form, the loop solved for its dependent joints, the loop as a constraint.
    """
    rng = np.random.default_rng(seed)
    low, high = (-3.0, -0.5, 0.0), (3.0, 1.4, 0.2)
    q = rng.uniform(low, high, (count, 3))
    qd, force = rng.normal(size=(count, 3)) * (1, 1, 0.2), rng.normal(size=(count, 3)) * 1000
    x, v = crane_state(plant, q, qd)
    places, joint_force = chosen(plant), np.zeros((count, plant.nv))
    joint_force[:, places] = force
    closed = closed_form(plant).forward(q, qd, force)
    solved = Embedded(plant, independent=COORDINATES, start=x[0]).forward(x, qd, force)
    constrained = equations(plant, "constrained").kernel("forward")(x, v, joint_force)
    scale = np.abs(closed).max(axis=1)
    gaps = [np.abs(a - closed).max(axis=1) for a in (solved, np.asarray(constrained)[:, places])]
    return float((np.array(gaps) / scale).max())


def nominal_rise(model: Machine, *, printed: bool, count: int = 64, seed: int = 1) -> float:
    """Return the largest rise of V from row to row, in W, where the model knows everything.

    Many runs of the model itself, from random states off the path, with the document's gains.
    """
    rng = np.random.default_rng(seed)
    q = rng.uniform((-1, 0.2, 0.03), (1, 1.2, 0.17), (count, 3))
    x, v = crane_state(model, q, rng.normal(size=(count, 3)) * (1.5, 1.0, 0.15))
    law = RobustControl(model, **PRINTED_GAINS, printed=printed)
    run = simulate(
        model, law, joint_path(model), x, v, duration=0.1, dt=1e-4, every=10,
        formulation=law.embedded, record=(), progress=False,
    )  # fmt: skip
    return float((np.diff(run["V"], axis=1) / np.diff(run.t)).max())
