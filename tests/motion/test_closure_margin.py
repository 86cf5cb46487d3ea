"""How well independent coordinates determine the others: true at degenerate points, in any unit."""

from dataclasses import replace

import numpy as np
import pytest
from constrained_machines import (
    at,
    closed_state,
    crane,
    crane_elbow,
    four_bar_state,
    n_four_bar,
    random_closed,
    rod,
)

from framefree.geometry import so3
from framefree.machine import (
    Continuous,
    Frame,
    Free,
    Joint,
    Loop,
    Machine,
    Prismatic,
    Revolute,
    Spherical,
)
from framefree.motion.constrained import Constrained
from framefree.motion.constrained.scales import scales, velocity_units
from framefree.motion.constrained.solve import numerical_rank
from framefree.motion.constrained.states import numbers
from framefree.motion.embedded import Embedded
from framefree.motion.embedded.choice import SingularError, margin
from framefree.motion.embedded.follow import follow
from framefree.motion.embedded.maps import SINGULAR

PLAIN = (Revolute, Continuous, Prismatic, Spherical, Free)
UNITS = (1e-3, 1.0, 1e3)
TILT = np.array(so3.exp(np.array([0.3, -0.7, 0.4])))


def scaled(machine, size):
    """The same machine with all lengths times `size`."""

    def longer(pose):
        pose = np.array(pose, float)
        pose[:3, 3] *= size
        return pose

    def joint(old):
        lengths = {"parent_pose": longer(old.parent_pose), "child_pose": longer(old.child_pose)}
        straight = isinstance(old.kind, Prismatic)
        more = {"lower": size * old.lower, "upper": size * old.upper} if straight else {}
        return replace(old, **lengths, **more)

    def loop(old):
        length = None if old.length is None else size * old.length
        return replace(old, rest=longer(old.rest), length=length)

    return Machine(
        machine.bodies,
        [joint(old) for old in machine.joints],
        [replace(frame, pose=longer(frame.pose)) for frame in machine.frames],
        loops=[loop(old) for old in machine.loops],
        couplings=machine.couplings,
    )


def lengths_times(machine, x, size):
    """Coordinates x with all lengths among them times `size`."""
    x = np.array(x, float)
    for joint in machine.joints:
        lengths = {Prismatic: 1, Free: 3}.get(type(joint.kind), 0)
        x[machine.x_slice[joint.name]][:lengths] *= size
    return x


def margins(eom, x):
    """The margin in numbers and in the compiled graph."""
    dependent = [k for k in range(eom.machine.nv) if k not in eom.map.independent]
    return margin(eom.rows(x), dependent), float(eom.kernel("closure")(x)[0])


def assert_refused(eom, x):
    """A degenerate configuration is refused in numbers, and not finite in the graph."""
    in_numbers, in_graph = margins(eom, x)
    assert in_numbers < SINGULAR
    assert in_graph < SINGULAR
    with pytest.raises(SingularError):
        eom.close(x)
    n = eom.sizes["v"]
    assert not np.isfinite(eom.forward(x, np.zeros(n), np.zeros(n))).all()


# ------------------------------------------------ exactly at degenerate points


@pytest.mark.parametrize("size", UNITS)
@pytest.mark.parametrize("kind", ["hinge", "ball"])
@pytest.mark.parametrize("count", [1, 3])
def test_folded_four_bars_are_refused(count, kind, size):
    world = np.eye(4)
    world[:3, :3] = TILT
    machine = scaled(n_four_bar(count, kind, world), size)
    x, _ = four_bar_state(machine, 0.3, 0.0)
    eom = Embedded(machine, independent=("p0",), start=x)
    assert min(margins(eom, x)) > 0.05
    for angle in (0.0, np.pi):
        flat = np.array([angle if name[0] == "p" else -angle for name in machine.x_names])
        assert_refused(eom, flat)


@pytest.mark.parametrize("size", UNITS)
def test_a_rod_without_length_is_refused(size):
    """The column of the joint it turns about is a rounding error and nothing else."""
    machine = scaled(crane(True), size)
    eom = Embedded(machine, independent=("phi", "theta", "delta"), start=_crane(machine, 0.1, size))
    dependent = [machine.v_names.index(name) for name in ("zeta", "beta")]
    assert min(margins(eom, _crane(machine, 0.1, size))) > 0.05
    rng = np.random.default_rng(0)
    for noise in (0.0, 1e-16, 1e-15, 1e-15, 1e-15):
        x = _crane(machine, -0.425, size)
        x += noise * velocity_units(machine) * rng.normal(size=machine.nx)
        A = numbers(eom.constrained, "constraint", x=x, v=np.zeros(machine.nv))[0][:, dependent]
        assert np.linalg.norm(A, axis=0).min() < 1e-12 * size
        assert_refused(eom, x)


def _crane(machine, delta, size):
    x = np.zeros(machine.nx)
    zeta = crane_elbow(delta)
    values = {"phi": 0.4, "theta": -0.3, "delta": delta * size, "zeta": zeta, "beta": zeta / 2}
    for name, value in values.items():
        x[machine.x_names.index(name)] = value
    return x


@pytest.mark.parametrize("size", UNITS)
def test_parallel_linkages_with_more_rods_than_needed(size):
    """Redundant rows of a third rod change neither the freedom nor the margin's meaning."""
    machine = scaled(three_parallel_rods(), size)
    x = np.array([0.7, 0.7, 0.7, -0.7])
    eom = Embedded(machine, start=x)
    assert eom.sizes["v"] == 1
    assert min(margins(eom, x)) > 0.05
    assert_refused(Embedded(machine, independent=("rod0",), start=x), np.zeros(4))


def three_parallel_rods():
    """A platform on three parallel rods: a four-bar with a rod that is redundant."""
    bodies = [rod(f"rod{i}") for i in range(3)]
    joints = [
        Joint(f"rod{i}", Revolute("z"), "world", f"rod{i}", parent_pose=at(0.5 * i, 0))
        for i in range(3)
    ]
    bodies.append(rod("platform"))
    joints.append(Joint("platform", Revolute("z"), "rod0", "platform", parent_pose=at(1, 0)))
    frames = [Frame(f"top{i}", f"rod{i}", at(1, 0)) for i in (1, 2)]
    frames += [Frame(f"pin{i}", "platform", at(0.5 * i, 0)) for i in (1, 2)]
    loops = [Loop(f"loop{i}", "hinge", f"top{i}", f"pin{i}", axis="z") for i in (1, 2)]
    return Machine(bodies, joints, frames, loops=loops, name="parallel")


# ------------------------------------------------ close to them, and far away


@pytest.mark.parametrize("size", UNITS)
@pytest.mark.parametrize("kind", ["hinge", "ball"])
def test_the_margin_falls_with_the_distance_to_a_fold(kind, size):
    machine = scaled(n_four_bar(1, kind), size)
    eom = Embedded(machine, independent=("p0",), start=four_bar_state(machine, 0.3, 0.0)[0])
    measured = []
    for distance in (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5):
        x, _ = four_bar_state(machine, np.pi / 2 - distance, 0.0)
        measured.append(margins(eom, x))
    ratio = np.array(measured)[1:] / np.array([1e-1, 1e-2, 1e-3, 1e-4, 1e-5])[:, None]
    assert (ratio > 0.1).all()
    assert (ratio < 1.5).all()
    assert_refused(eom, four_bar_state(machine, np.pi / 2 - 1e-8, 0.0)[0])


@pytest.mark.parametrize("seed", range(8))
def test_margins_do_not_depend_on_units(seed):
    rng = np.random.default_rng(seed)
    machine, x = random_closed(rng)
    while not all(isinstance(joint.kind, PLAIN) for joint in machine.joints):
        machine, x = random_closed(rng)
    x, _ = closed_state(rng, Constrained(machine), x)
    names = Embedded(machine, start=x).v_names
    measured = []
    for size in UNITS:
        there = lengths_times(machine, x, size)
        eom = Embedded(scaled(machine, size), independent=names, start=there)
        measured.append(margins(eom, there))
    assert np.allclose(measured, measured[0], rtol=1e-6)


def test_a_path_through_a_fold_is_refused_in_every_unit():
    for size in UNITS:
        machine = scaled(n_four_bar(1), size)
        eom = Embedded(machine, independent=("p0",), start=four_bar_state(machine, 0.3, 0.0)[0])
        angles = np.linspace(0.3, 2.0, 40)
        path = np.array([four_bar_state(machine, angle, 0.0)[0] for angle in angles])
        with pytest.raises(SingularError, match="l0"):
            follow(eom, path)
        assert np.allclose(follow(eom, path[:20]), path[:20], atol=1e-9)


# ------------------------------------------------ ranks


@pytest.mark.parametrize("count", [1, 2, 4, 5, 6, 8, 11, 16])
@pytest.mark.parametrize("kind", ["hinge", "ball"])
def test_four_bars_in_a_row_have_one_freedom(count, kind):
    """From the flat neutral position too, in which half of the rows are lost."""
    eom = Embedded(n_four_bar(count, kind))
    assert eom.sizes["v"] == 1
    dependent = [k for k in range(eom.machine.nv) if k not in eom.map.independent]
    x = four_bar_state(eom.machine, 0.4, 0.0)[0]
    assert margin(eom.rows(x), dependent) > 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_four_bars_of_other_lengths_in_a_row(seed):
    rng = np.random.default_rng(seed)
    for count in (2, 6, 10):
        eom = Embedded(general_four_bars(rng, count))
        assert eom.sizes["v"] == 1


def general_four_bars(rng, count):
    """Four-bars in a row with links of random lengths that can be assembled."""
    machine = n_four_bar(count)
    places = np.concatenate([[0], np.cumsum(rng.uniform(0.8, 1.5, size=count))])
    joints, frames = [], []
    tops = {f"v{i}": rng.uniform(0.7, 1.0) for i in range(count + 1)}
    for joint in machine.joints:
        i = int(joint.name[1:])
        pose = at(places[i], 0) if joint.name[0] == "p" else at(tops[f"v{i}"], 0)
        joints.append(replace(joint, parent_pose=pose))
    for frame in machine.frames:
        i = int(frame.body[1:])
        level = np.hypot(places[min(i + 1, count)] - places[i], 0.1)
        frames.append(replace(frame, pose=at(tops.get(frame.body, level), 0)))
    return replace(machine, joints=joints, frames=frames)


@pytest.mark.parametrize("seed", range(10))
def test_the_freedom_is_that_of_generic_closed_configurations(seed):
    rng = np.random.default_rng(100 + seed)
    machine, x = random_closed(rng)
    constrained = Constrained(machine)
    eom = Embedded(machine, start=x)
    ranks = []
    for _ in range(4):
        near, _ = closed_state(rng, constrained, x, spread=0.3)
        A = numbers(constrained, "constraint", x=near, v=np.zeros(machine.nv))[0]
        lengths = np.linalg.norm(A, axis=1, keepdims=True)
        values = np.linalg.svd(A / np.where(lengths > 1e-12, lengths, np.inf), compute_uv=False)
        ranks.append(int((values > 1e-8 * values[0]).sum()))
    assert eom.sizes["v"] == machine.nv - max(ranks)


def test_sizes_of_rows_and_columns():
    machine = crane(True)
    rows, columns = scales(machine)
    assert len(rows) == sum(loop.size for loop in machine.loops)
    assert columns.shape == (machine.nv,)
    assert velocity_units(machine)[machine.v_names.index("zeta")] == 1.0
    assert velocity_units(machine)[machine.v_names.index("delta")] == 2.0
    # The loop's own links count, not the boom that carries it.
    assert columns[machine.v_names.index("zeta")] < 0.6
    assert columns[machine.v_names.index("delta")] == 1.0
    assert numerical_rank(Embedded(machine).rows(_crane(machine, 0.1, 1.0)), SINGULAR) == 2
