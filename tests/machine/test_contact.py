"""Contact and point springs by themselves: geometry, forces, energy, what is refused."""

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import lsq_linear

from framefree.geometry import Moments, se3
from framefree.machine import (
    Body,
    Contact,
    ContactShape,
    Free,
    Joint,
    Machine,
    MachineError,
    PointSpring,
)
from framefree.machine.contact_pairs import PAIRS
from framefree.machine.contact_pairs.base import ALONG
from framefree.machine.contact_shape import touching

SHAPES = {
    "half_space": ContactShape("half_space"),
    "sphere": ContactShape("sphere", 0.3, (0.05, -0.02, 0.1)),
    "capsule": ContactShape("capsule", (0.2, 0.5)),
    "cylinder": ContactShape("cylinder", (0.3, 0.4)),
    "disk": ContactShape("disk", 0.3),
    "box": ContactShape("box", (0.4, 0.5, 0.6)),
}
ROUND = ("half_space", "sphere")
SIMPLE = [pair for pair in PAIRS if set(pair) & set(ROUND) or pair == ("capsule", "capsule")]
"""Pairs that touch in places without shares; the others are in test_contact_pairs."""
KINDS = [*SIMPLE, *((b, a) for a, b in SIMPLE if a != b)]


def contact(a, b, **numbers):
    fields = {"stiffness": 1e4, "damping": 0.4, "friction": 0.7, "slip_speed": 0.05} | numbers
    return Contact("touch", "world", "body", SHAPES[a], SHAPES[b], **fields)


def pose(xi):
    return np.array(se3.exp(xi))


def overlapping(part, rng):
    """Random poses in which the shapes overlap a little."""
    G, _xi = ca.SX.sym("G", 4, 4), ca.SX.sym("xi", 6)
    function = ca.Function("depth", [G], [part.depth_at(G)])
    found = []
    while len(found) < 6:
        start = pose(rng.normal(size=6))
        for scale in np.linspace(2.0, 0.0, 400):
            moved = start.copy()
            moved[:3, 3] *= scale
            if 0.01 < float(function(moved)) < 0.05:
                found.append(moved)
                break
    return found


@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
@pytest.mark.parametrize("exponent", [1, 1.5])
def test_energy_is_exact(kinds, exponent):
    """twist . wrench = -dV/dt - dissipation, with dV/dt by differences and dissipation >= 0."""
    rng, part = np.random.default_rng(0), contact(*kinds, exponent=exponent)
    G, xi = ca.SX.sym("G", 4, 4), ca.SX.sym("xi", 6)
    values = ca.Function(
        "values",
        [G, xi],
        [part.wrench_at(G, xi, 0), part.energy_at(G, 0), part.dissipation_at(G, xi, 0)],
    )
    for place in overlapping(part, rng):
        for size in (0.1, 1.0, 10.0):
            twist = size * rng.normal(size=6)
            wrench, V, lost = (np.array(v).ravel() for v in values(place, twist))
            assert V[0] > 0
            assert lost[0] >= 0
            h = 1e-6 / size
            ends = [float(values(place @ pose(s * h * twist), twist)[1]) for s in (1, -1)]
            balance = wrench @ twist + (ends[0] - ends[1]) / (2 * h) + lost[0]
            assert abs(balance) < 1e-5 * (np.abs(wrench * twist).max() + lost[0])


@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
def test_the_normal_force_acts_along_the_normal_at_the_point(kinds):
    """The depth changes as the place moves along its normal: d' = -n . (v + w x p)."""
    rng, part = np.random.default_rng(1), contact(*kinds)
    G, xi = ca.SX.sym("G", 4, 4), ca.SX.sym("xi", 6)
    outputs = []
    for place in part.places(G):
        rate = ca.jtimes(place.depth, ca.vec(G), ca.vec(G @ se3.wed(xi)))
        slope = ca.jacobian(rate, xi).T
        outputs.append(ca.vertcat(place.normal, ca.cross(place.point, place.normal)) + slope)
        if place.slope is not None:
            outputs.append(slope - place.slope)
    function = ca.Function("gap", [G, xi], outputs)
    bar = 1e-4 if {"disk", "cylinder"} & set(kinds) else 1e-9  # a rim is smooth, not sharp
    bar = ALONG**2 if set(kinds) == {"capsule"} else bar  # as are axes that become parallel
    for place in overlapping(part, rng):
        for value in function.call([place, np.zeros(6)]):
            assert np.abs(np.array(value)).max() < bar


def test_nothing_acts_apart_and_slopes_are_finite():
    for kinds in KINDS:
        part = contact(*kinds)
        G, xi = ca.SX.sym("G", 4, 4), ca.SX.sym("xi", 6)
        wrench = part.wrench_at(G, xi, 0)
        slopes = [ca.jacobian(wrench, ca.vec(G)), ca.jacobian(wrench, xi)]
        function = ca.Function("f", [G, xi], [wrench, *slopes])
        far = pose(np.array([0, 0, 3.0 if kinds[0] == "half_space" else -3.0, 0.3, 0.2, 0.1]))
        values = [np.array(v) for v in function(far, np.zeros(6))]
        assert all(np.isfinite(v).all() for v in values)
        assert not values[0].any()


def test_depths_of_known_places():
    lowest = contact("half_space", "box").places(pose(np.array([0, 0, 0.25, 0, 0, 0.4])))
    depths = np.array([float(place.depth) for place in lowest])
    assert np.allclose(np.sort(depths), [-0.55] * 4 + [0.05] * 4)
    wheel = contact("half_space", "disk").places(pose(np.array([0, 0, 0.0, np.pi / 2, 0, 0])))
    assert abs(float(wheel[0].depth) - 0.3) < 1e-12
    flat = contact("half_space", "disk").places(np.eye(4))
    assert float(flat[0].depth) == 0.0
    pair = Contact("c", "a", "b", ContactShape("sphere", 1), ContactShape("sphere", 2), 1.0)
    (place,) = pair.places(pose(np.array([2.9, 0, 0, 0, 0, 0])))
    assert np.isclose(float(place.depth), 0.1)
    assert np.allclose(np.array(ca.DM(place.point)).ravel(), [-1.95, 0, 0])


def test_two_capsules_touch_where_their_axes_are_nearest():
    """Against bounded least squares by SciPy; side by side they touch in the middle of both."""
    a, b = ContactShape("capsule", (0.1, 0.8)), ContactShape("capsule", (0.07, 0.5))
    G = ca.SX.sym("G", 4, 4)
    (place,) = touching(a, b, G)
    function = ca.Function("place", [G], [place.depth, place.point, place.normal])
    rng = np.random.default_rng(3)
    for _ in range(300):
        moved = pose(rng.normal(size=6) * [0.5, 0.5, 0.5, 1, 1, 1])
        axis = moved[:3, 2]
        tall = np.vstack([np.column_stack([[0, 0, 1.0], -axis]), ALONG * np.eye(2)])
        right = np.concatenate([moved[:3, 3], [0, 0]])
        s, t = lsq_linear(tall, right, ([-0.4, -0.25], [0.4, 0.25]), tol=1e-14).x
        way = moved[:3, 3] + t * axis - [0, 0, s]
        depth, point, normal = (np.array(part).ravel() for part in function(moved))
        assert depth[0] == pytest.approx(0.17 - np.linalg.norm(way), abs=1e-7)
        if np.linalg.norm(way) > 1e-3:
            inward = moved[:3, :3].T @ way / np.linalg.norm(way)
            np.testing.assert_allclose(normal, inward, atol=1e-5)
            expected = [0, 0, t] - (0.07 - depth[0] / 2) * inward
            np.testing.assert_allclose(point, expected, atol=1e-5)
    beside = np.eye(4)
    beside[:3, 3] = [0.16, 0.0, 0.0]
    depth, point, _ = (np.array(part).ravel() for part in function(beside))
    assert depth[0] == pytest.approx(0.01)
    np.testing.assert_allclose(point, [-0.065, 0, 0], atol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ContactShape("ball", 1), "no contact shape `ball`.*`sphere`"),
        (lambda: ContactShape("sphere", 0.0), "must be positive"),
        (lambda: ContactShape("box", (1, 2)), "is x, y, z"),
        (lambda: contact("half_space", "half_space"), "two half-spaces"),
        (lambda: contact("half_space", "sphere", stiffness=-1.0), "`stiffness`.*positive"),
        (lambda: contact("half_space", "sphere", slip_speed=0.0), "`slip_speed`.*positive"),
        (lambda: contact("half_space", "sphere", friction=np.nan), "`friction`.*finite"),
        (lambda: contact("half_space", "sphere", exponent=2), "must be 1 or 1.5"),
        (lambda: Contact("c", "world", "b", "floor", SHAPES["box"], 1.0), "must be a ContactShape"),
        (lambda: PointSpring("s", "a", "b", -1.0), "`stiffness`.*zero or more"),
        (lambda: PointSpring("s", "a", "b", 1.0, width=0.0), "`width`.*positive"),
    ],
)
def test_wrong_descriptions_are_refused(make, message):
    with pytest.raises(MachineError, match=message):
        make()


def test_plain_data_and_tunable_numbers():
    body = Body("body", Moments.of_body(1.0, (0, 0, 0), np.eye(3)))
    spring = PointSpring("spring", "world", "body", 10.0, 0.5, 1.0, (0, 0, 1))
    parts = [contact("half_space", "box"), spring]
    machine = Machine([body], [Joint("base", Free(), "world", "body")], interactions=parts)
    assert Machine.from_dict(machine.to_dict()) == machine
    tuned = machine.tunable("touch.friction", "spring.length")
    assert tuned.parameters.defaults.tolist() == [0.7, 0.5]
    assert tuned.with_parameters({"touch.friction": 0.2}).interactions[0].friction == 0.2


def test_a_point_spring_against_its_closed_form():
    part = PointSpring("s", "a", "b", 20.0, 0.5, 3.0, (0, 0, 1.0), (0.1, 0, 0))
    rng = np.random.default_rng(2)
    for _ in range(5):
        G, xi = pose(rng.normal(size=6)), rng.normal(size=6)
        d = G[:3, :3] @ [0.1, 0, 0] + G[:3, 3] - [0, 0, 1.0]
        speed = G[:3, :3] @ (xi[:3] + np.cross(xi[3:], [0.1, 0, 0]))
        L = np.linalg.norm(d)
        force = -(20 * (L - 0.5) + 3 * d @ speed / L) * d / L
        wrench = np.array(ca.DM(part.wrench_at(G, xi, 0))).ravel()
        assert np.allclose(G[:3, :3] @ wrench[:3], force, rtol=1e-9)
        assert np.allclose(wrench[3:], np.cross([0.1, 0, 0], wrench[:3]))
        assert np.isclose(float(part.energy_at(G, 0)), 10 * (L - 0.5) ** 2, rtol=1e-8)
        lost = float(part.dissipation_at(G, xi, 0))
        balance = wrench @ xi + float(part.energy_rate(G, xi, 0)) + lost
        assert abs(balance) < 1e-9 * (1 + lost)


def test_a_point_spring_of_length_zero_has_no_force():
    part = PointSpring("s", "a", "b", 20.0, 0.5, 3.0)
    G, xi = ca.SX.sym("G", 4, 4), ca.SX.sym("xi", 6)
    wrench = part.wrench_at(G, xi, 0)
    function = ca.Function("f", [G, xi], [wrench, ca.jacobian(wrench, ca.vec(G))])
    value, slope = (np.array(v) for v in function(np.eye(4), np.ones(6)))
    assert np.abs(value).max() < 1e-9
    assert np.isfinite(slope).all()
