"""Solids and poses of animations: closed surfaces, the right sizes, the machine's own motion."""

import base64
from dataclasses import replace

import numpy as np
import pytest
from simulate_machines import free_body, pendulum, swinging

from framefree.geometry import Moments, so3
from framefree.look.picture import body_poses as drawn_poses
from framefree.look.report import Animation, ReportError
from framefree.look.report import mesh as meshes
from framefree.look.report.scene import as_position_and_wxyz, body_poses, scene
from framefree.look.report.style import joints_on, solids_of, ties
from framefree.machine import (
    Body,
    Damper,
    Frame,
    Free,
    Joint,
    Loop,
    Machine,
    Revolute,
    Spherical,
    Spring,
)
from framefree.machine.shape import Shape
from framefree.simulate import simulate

TYPES = {"f4": "<f4", "f8": "<f8", "i2": "<i2", "u2": "<u2", "u4": "<u4"}


def unpacked(data, *shape):
    return np.frombuffer(base64.b64decode(data["bdata"]), TYPES[data["dtype"]]).reshape(*shape)


def moments_of(solid):
    """Volume, center and second moment of a closed surface, by tetrahedra from the origin."""
    a, b, c = (solid.points[solid.triangles[:, k]] for k in range(3))
    volumes = np.einsum("ij,ij->i", a, np.cross(b, c)) / 6
    center = np.einsum("n,nj->j", volumes, (a + b + c) / 4) / volumes.sum()
    corners = np.stack([a, b, c, np.zeros_like(a)], axis=1)
    sums = corners.sum(axis=1)
    second = np.einsum("nki,nkj->nij", corners, corners) + np.einsum("ni,nj->nij", sums, sums)
    return volumes.sum(), center, np.einsum("n,nij->ij", volumes / 20, second)


@pytest.mark.parametrize("seed", range(8))
def test_ellipsoids_have_the_inertia_of_their_body(seed):
    rng = np.random.default_rng(seed)
    R = np.array(so3.exp(rng.normal(size=3)))
    half = rng.uniform(0.3, 1.0, size=3)
    mass, center = rng.uniform(1, 5), rng.normal(size=3)
    second = mass / 5 * R @ np.diag(half**2) @ R.T
    inertia = np.trace(second) * np.eye(3) - second
    solid = meshes.inertia_ellipsoid(0, Moments.of_body(mass, center, inertia), (0.2, 0.4, 0.6))
    volume, at, around = moments_of(solid)
    around -= volume * np.outer(at, at)
    assert volume == pytest.approx(4 / 3 * np.pi * half.prod(), rel=0.06)
    np.testing.assert_allclose(at, center, atol=1e-9)
    np.testing.assert_allclose(mass * around / volume, second, atol=0.05 * np.trace(second))


def test_octants_of_an_ellipsoid_differ():
    body = free_body().bodies[0]
    solid = meshes.inertia_ellipsoid(0, body.moments, (0.2, 0.4, 0.6))
    colors, counts = np.unique(solid.colors, axis=0, return_counts=True)
    assert len(colors) == 2
    assert abs(counts[0] - counts[1]) <= 2


@pytest.mark.parametrize("seed", range(5))
def test_bones_reach_from_point_to_point(seed):
    rng = np.random.default_rng(seed)
    start, end = rng.normal(size=(2, 3))
    length = np.linalg.norm(end - start)
    solid = meshes.bone(0, start, end, 0.05, (1, 0, 0))
    volume, center, _ = moments_of(solid)
    area = 10 * np.sin(2 * np.pi / 20) * 0.05**2  # of a polygon of twenty corners
    assert volume == pytest.approx(area * length)
    np.testing.assert_allclose(center, (start + end) / 2, atol=1e-9)


def test_shared_corners_keep_the_surface_closed():
    flat = meshes.solid(0, meshes.ellipsoid(np.ones(3)), np.eye(4), (1, 0, 0))
    smooth = meshes.ball(0, (0, 0, 0), 1.0, (1, 0, 0))
    assert len(smooth.points) < len(flat.points) / 3
    assert moments_of(smooth)[0] == pytest.approx(moments_of(flat)[0])


def test_shapes_are_drawn_where_they_are():
    machine = pendulum(2)
    box = Shape("tip", "box", (0.2, 0.1, 0.3), pose=(0, 0, 0.05), color=(0.1, 0.2, 0.3, 0.5))
    (solid,) = [s for s in solids_of(replace(machine, geometry=(box,)), 1.0) if s.opacity < 1]
    assert solid.body == 1
    volume, center, _ = moments_of(solid)
    assert volume == pytest.approx(0.2 * 0.1 * 0.3)
    np.testing.assert_allclose(center, (0, 0, -0.45), atol=1e-12)


def test_bodies_without_shapes_get_bones_beside_those_that_have():
    machine = replace(pendulum(2), geometry=(Shape("rod0", "sphere", 0.1),))
    assert {solid.body for solid in solids_of(machine, 1.0)} == {0, 1}


def test_joints_of_a_body_are_where_it_is_joined():
    machine = pendulum(2)
    np.testing.assert_allclose(joints_on(machine, 0), [(0, 0, 0), (0, 0, -0.5)])
    np.testing.assert_allclose(joints_on(machine, 1), [(0, 0, 0), (0, 0, -0.5)])


@pytest.mark.parametrize("kinds", [None, [Spherical(), Spherical(), Spherical()]])
def test_poses_are_those_of_the_machine(kinds):
    machine = pendulum(3, driven=False, kinds=kinds)
    x = machine.random(np.random.default_rng(0), 5)
    for row, poses in zip(x, body_poses(machine, x), strict=True):
        for body, pose in zip(machine.bodies, poses, strict=True):
            np.testing.assert_allclose(pose, drawn_poses(machine, row)[body.name], atol=1e-12)


def test_quaternions_are_wxyz():
    pose = np.eye(4)
    pose[:3, :3] = so3.exp([0, 0, 0.6])
    pose[:3, 3] = 1, 2, 3
    expected = [1, 2, 3, np.cos(0.3), 0, 0, np.sin(0.3)]
    np.testing.assert_allclose(as_position_and_wxyz(pose[None])[0], expected, atol=1e-12)


def test_a_scene_holds_the_motion_of_the_run():
    machine = pendulum(2)
    x, v = swinging(machine)
    run = simulate(machine, x0=x, v0=v, duration=1.0, dt=1e-3)
    path = np.random.default_rng(0).normal(size=(7, 3)) * 3
    data = scene(Animation("a", run, trails=("tip",), paths={"p": path}))
    times = unpacked(data["times"], -1)
    poses = unpacked(data["poses"], len(times), 2, 7)
    rows = np.searchsorted(run.t, times - 1e-6)
    expected = as_position_and_wxyz(body_poses(machine, run.x[rows]))
    np.testing.assert_allclose(poses, expected, atol=1e-6)
    assert times[0] == 0
    assert times[-1] == 1
    trail = unpacked(data["trails"][0]["points"], -1, 3)
    tips = [(drawn_poses(machine, row)["rod1"] @ [0, 0, -0.5, 1])[:3] for row in run.x[rows]]
    np.testing.assert_allclose(trail, tips, atol=1e-6)
    for points in (trail, path):
        for axis, (low, high) in enumerate(data["ranges"]):
            assert low <= points[:, axis].min()
            assert points[:, axis].max() <= high
    widths = [high - low for low, high in data["ranges"]]
    np.testing.assert_allclose(np.divide(data["aspect"], widths) * max(widths), 1)


def test_meshes_of_a_scene_point_at_what_is_there():
    machine = pendulum(3, driven=False)
    run = simulate(machine, duration=0.1, dt=1e-2)
    data = scene(Animation("a", run, spheres=(((1, 0, 0), 0.2),)))
    assert [mesh["opacity"] for mesh in data["meshes"]] == [1.0, 0.3]
    for mesh in data["meshes"]:
        points = unpacked(mesh["points"], -1, 3)
        triangles = unpacked(mesh["triangles"], -1, 3)
        owner = unpacked(mesh["owner"], -1)
        colors = unpacked(mesh["color"], -1)
        assert len(owner) == len(points)
        assert len(colors) == len(triangles)
        assert triangles.max() == len(points) - 1
        assert colors.max() == len(mesh["palette"]) - 1
        assert -1 <= owner.min() <= owner.max() <= 2


def test_fast_turns_get_more_moments_within_bounds():
    machine = free_body()
    slow, fast = (
        simulate(machine, v0=[0, 0, 0, 0, 0, w], duration=10.0, dt=1e-3) for w in (0.1, 30.0)
    )
    sizes = [len(unpacked(scene(Animation("a", run))["times"], -1)) for run in (slow, fast)]
    assert sizes[0] == 200
    assert 800 <= sizes[1] <= 1500


def test_loops_springs_and_free_bodies_are_shown():
    body = Moments.of_body(1.0, (0, 0, 0), 0.1 * np.eye(3))
    machine = Machine(
        [Body("a", body), Body("b", body)],
        [
            Joint("ja", Free(), "world", "a"),
            Joint("jb", Free(), "world", "b"),
        ],
        springs=[Spring("s", "world", "a", Moments.of_body(5.0, (0, 0, 0), np.eye(3)))],
        loops=[Loop("rod", "distance", "a", "b", length=1.0)],
    )
    x0 = [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0]
    run = simulate(machine, x0=x0, duration=0.02, dt=1e-2)
    data = scene(Animation("a", run))
    assert [tie[::2] for tie in data["ties"]] == [[-1, 0], [0, 1]]


def test_no_ellipsoid_is_far_larger_than_the_bones_around_it():
    """Inertias of model files are often too large: a shoulder would hide the whole arm."""
    light, heavy = (Moments.of_body(1.0, (0, 0, 0), moment * np.eye(3)) for moment in (1e-3, 1.0))
    bodies = [Body("shoulder", heavy), Body("upper", light), Body("lower", light)]
    places = {"shoulder": ("world", 0.0), "upper": ("shoulder", 0.0), "lower": ("upper", 0.3)}
    joints = [
        Joint(f"j{name}", Revolute("y"), parent, name, parent_pose=(0, 0, at))
        for name, (parent, at) in places.items()
    ]
    machine = Machine(bodies, joints, frames=[Frame("tip", "lower", (0, 0, 0.3))]).numeric
    sizes = {s.body: np.ptp(s.points, axis=0).max() for s in solids_of(machine, 0.6)}
    assert max(sizes.values()) < 0.4
    alone = Machine([bodies[0]], [joints[0]]).numeric  # its ellipsoid is all that there is to see
    assert max(np.ptp(s.points, axis=0).max() for s in solids_of(alone, 0.6)) > 1.0


def test_drag_ties_a_body_to_no_place():
    """A line from a craft to the origin would show a rope where there is none."""
    body = Moments.of_body(1.0, (0, 0, 0), 0.1 * np.eye(3))
    machine = Machine(
        [Body("a", body), Body("b", body)],
        [Joint("ja", Free(), "world", "a"), Joint("jb", Free(), "world", "b")],
        dampers=[Damper("drag", "world", "a", np.eye(6)), Damper("oil", "a", "b", np.eye(6))],
    )
    assert [tie[::2] for tie in ties(machine)] == [(0, 1)]


def test_tunable_machines_are_drawn_with_the_values_of_the_run():
    machine = pendulum(2).tunable("rod1.mass")
    run = simulate(machine, duration=0.01, dt=1e-2, parameters={"rod1.mass": 4.0})
    assert scene(Animation("a", run))["bodies"] == ["rod0", "rod1"]


def test_what_cannot_be_shown_is_refused_by_name(swing_run):
    with pytest.raises(ReportError, match="`moving` cannot be shown"):
        scene(Animation("moving", replace(swing_run, machine=None)))
    with pytest.raises(ReportError, match=r"the path `p` must be points \(n, 3\), got \(3,\)"):
        scene(Animation("a", swing_run, paths={"p": np.zeros(3)}))
    with pytest.raises(ReportError, match="no finite state"):
        scene(Animation("a", replace(swing_run, x=np.full_like(swing_run.x, np.nan))))
