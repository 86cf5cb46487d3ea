"""Boxes, cylinders, capsules and disks on each other: depth, energy, and that nothing jumps."""

from functools import lru_cache

import casadi as ca
import numpy as np
import pytest

from framefree.geometry import se3
from framefree.machine import Contact, ContactShape
from framefree.machine.contact_pairs import PAIRS
from framefree.machine.contact_pairs.base import ROUNDED, THIN

SIZES = {
    "sphere": (0.3,),
    "capsule": (0.2, 0.5),
    "cylinder": (0.3, 0.4),
    "disk": (0.3,),
    "box": (0.4, 0.5, 0.6),
}
MANY = [
    ("box", "capsule"),
    ("box", "box"),
    ("cylinder", "capsule"),
    ("disk", "capsule"),
    pytest.param(("box", "cylinder"), marks=pytest.mark.slow),
    pytest.param(("cylinder", "cylinder"), marks=pytest.mark.slow),
    pytest.param(("box", "disk"), marks=pytest.mark.slow),
]
"""Pairs with many places; the larger ones are slow to derive."""


def name(kinds):
    return "-".join(kinds)


def pose(xi):
    return np.array(se3.exp(xi))


def contact(a, b, **numbers):
    fields = {"stiffness": 1e4, "damping": 0.4, "friction": 0.7, "slip_speed": 0.05} | numbers
    shapes = ContactShape(a, SIZES[a]), ContactShape(b, SIZES[b])
    return Contact("touch", "world", "body", *shapes, **fields)


@lru_cache
def function(kinds):
    part = contact(*kinds)
    G, xi = ca.SX.sym("G", 4, 4), ca.SX.sym("xi", 6)
    outputs = [part.depth_at(G), part.energy_at(G, 0), part.wrench_at(G, xi, 0)]
    return ca.Function("f", [G, xi], [*outputs, part.dissipation_at(G, xi, 0)])


def poses(kinds, rng, count, low=0.0, high=0.03):
    """Random poses with a small overlap, some of them nearly aligned."""
    f, found = function(kinds), []
    turned = np.array([[0, 0, 1.0], [1, 0, 0], [0, 1, 0]])
    while len(found) < count:
        G = pose(rng.normal(size=6) * [0.4, 0.4, 0.4, 2, 2, 2])
        if len(found) % 2:
            near = pose(np.concatenate([np.zeros(3), 0.02 * rng.normal(size=3)]))[:3, :3]
            G[:3, :3] = near @ (np.eye(3) if len(found) % 4 == 1 else turned)
        if low < float(f(G, np.zeros(6))[0]) < high:
            found.append(G)
    return found


@pytest.mark.parametrize("kinds", MANY, ids=name)
def test_energy_is_exact(kinds):
    """twist . wrench = -dV/dt - dissipation, with dV/dt by differences and dissipation >= 0."""
    rng, f = np.random.default_rng(0), function(kinds)
    errors = []
    for G in poses(kinds, rng, 40):
        twist = rng.normal(size=6)
        _, _, wrench, lost = (np.array(value).ravel() for value in f(G, twist))
        assert lost[0] >= 0
        h = 1e-6
        ends = [float(f(G @ pose(s * h * twist), twist)[1]) for s in (1, -1)]
        balance = wrench @ twist + (ends[0] - ends[1]) / (2 * h) + lost[0]
        errors.append(abs(balance) / (np.abs(wrench * twist).max() + lost[0] + 1e-9))
    # Differences over a kink, where shapes begin to touch, are off by more.
    assert np.quantile(errors, 0.9) < 1e-6
    assert max(errors) < 1e-3


@pytest.mark.parametrize("kinds", MANY, ids=name)
def test_energy_does_not_jump(kinds):
    """Along a motion the energy changes by the work of the wrench, also between the places."""
    rng, f = np.random.default_rng(2), function(kinds)
    steps = 200
    for G in poses(kinds, rng, 8, 0.002, 0.02):
        twist = rng.normal(size=6) * [0.01, 0.01, 0.01, 0.02, 0.02, 0.02]
        path = [G @ pose((k / steps - 0.5) * twist) for k in range(steps + 1)]
        V = np.array([float(f(at, np.zeros(6))[1]) for at in path])
        work = np.array([float(ca.dot(f(at, np.zeros(6))[2], twist)) for at in path]) / steps
        error = np.abs(np.diff(V) + (work[1:] + work[:-1]) / 2)
        assert error.max() < 0.02 * V.max()


@pytest.mark.parametrize("kinds", MANY, ids=name)
def test_the_other_order_is_the_same_contact(kinds):
    rng, part = np.random.default_rng(3), contact(*kinds)
    other = Contact(
        "touch",
        "world",
        "body",
        part.shape_b,
        part.shape_a,
        **{n: getattr(part, n) for n in ("stiffness", "damping", "friction", "slip_speed")},
    )
    if part.shape_a.kind == part.shape_b.kind:
        pytest.skip("boxes and cylinders choose the first shape in ties")
    for G in poses(kinds, rng, 3):
        twist = rng.normal(size=6)
        wrench = np.array(ca.DM(part.wrench_at(G, twist, 0))).ravel()
        back = np.linalg.inv(G)
        back_twist = -np.array(se3.adjoint(G)) @ twist
        other_wrench = np.array(ca.DM(other.wrench_at(back, back_twist, 0))).ravel()
        # The wrench on a, seen from b: Ad_G^T, and it is the reaction.
        expected = -np.array(se3.adjoint(G)).T @ other_wrench
        np.testing.assert_allclose(wrench, expected, atol=1e-7 * np.abs(wrench).max() + 1e-12)


def test_depths_of_known_places():
    rest = np.eye(4)
    rest[2, 3] = 0.6 - 0.002
    assert float(ca.DM(contact("box", "box").depth_at(rest))) == pytest.approx(0.002)
    rest[2, 3] = 0.3 + 0.2 - 0.003
    assert float(ca.DM(contact("box", "cylinder").depth_at(rest))) == pytest.approx(0.003)
    beside = np.eye(4)
    beside[0, 3] = 0.6 - 0.004
    found = contact("cylinder", "cylinder").depth_at(beside)
    assert float(ca.DM(found)) == pytest.approx(0.004, abs=1e-6)
    thick = np.eye(4)
    thick[2, 3] = 0.3 + THIN * 0.3 - 0.001
    assert float(ca.DM(contact("box", "disk").depth_at(thick))) == pytest.approx(0.001)


def test_two_bars_that_cross_touch_in_the_corners_of_what_they_share():
    """None of their corners is in the other: the edges carry, in four places."""
    bars = ContactShape("box", (1.0, 0.1, 0.1)), ContactShape("box", (0.1, 1.0, 0.1))
    part = Contact("touch", "world", "body", *bars, stiffness=1e4, exponent=1)
    G = np.eye(4)
    G[2, 3] = 0.1 - 1e-4
    places = [p for p in part.places(G) if float(ca.DM(p.share)) > 0 and float(ca.DM(p.depth)) > 0]
    at = sorted(tuple(np.round(np.array(ca.DM(p.point)).ravel()[:2], 9)) for p in places)
    assert at == [(-0.05, -0.05), (-0.05, 0.05), (0.05, -0.05), (0.05, 0.05)]
    wrench = np.array(ca.DM(part.wrench_at(G, np.zeros(6), 0))).ravel()
    np.testing.assert_allclose(wrench, [0, 0, 4.0, 0, 0, 0], atol=1e-9)


@pytest.mark.parametrize("kinds", MANY, ids=name)
def test_gaps_and_depths_are_those_of_mujoco(kinds):
    mujoco = pytest.importorskip("mujoco")
    rng, f = np.random.default_rng(4), function(kinds)
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><option ccd_tolerance="1e-9" ccd_iterations="500"/><worldbody>'
        f"<geom {geom(kinds[0], kinds[1])}/><body><freejoint/>"
        f'<geom {geom(kinds[1], kinds[0])} mass="1"/></body>'
        "</worldbody></mujoco>"
    )
    data = mujoco.MjData(model)

    def distance(G):
        data.qpos[:3] = G[:3, 3]
        mujoco.mju_mat2Quat(data.qpos[3:7], G[:3, :3].ravel())
        mujoco.mj_kinematics(model, data)
        return mujoco.mj_geomDistance(model, data, 0, 1, 10.0, None)

    errors = []
    while len(errors) < 60:
        G = pose(rng.normal(size=6) * [0, 0, 0, 2, 2, 2])
        way, aside = rng.normal(size=3), 0.15 * rng.normal(size=3)
        target, ends = rng.uniform(-0.01, 0.0), [0.0, 2.0]
        for _ in range(40):
            G[:3, 3] = aside + way / np.linalg.norm(way) * np.mean(ends)
            ends[int(distance(G) >= target)] = np.mean(ends)
        if abs(distance(G) - target) < 1e-4:
            errors.append(abs(-float(f(G, np.zeros(6))[0]) - distance(G)))
    # Corners that meet a capsule are rounded.
    assert np.quantile(errors, 0.95) < 2 * ROUNDED * 0.2
    assert np.median(errors) < 1e-5


def geom(kind, other):
    size = SIZES[kind]
    if kind == "box":
        return 'type="box" size="{} {} {}"'.format(*np.array(size) / 2)
    if kind == "disk":
        half = 1e-6 if other == "capsule" else THIN * size[0]
        return f'type="cylinder" size="{size[0]} {half}"'
    return f'type="{kind}" size="{size[0]} {size[1] / 2}"'


def test_every_pair_of_shapes_but_two_half_spaces_touches():
    kinds = [*SIZES, "half_space"]
    for a in kinds:
        for b in kinds:
            assert (a, b) in PAIRS or (b, a) in PAIRS or a == b == "half_space"
