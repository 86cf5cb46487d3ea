"""The embedded formulation: the motion of the constrained one, body by body, in fewer numbers."""

from dataclasses import replace

import casadi as ca
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
    random_couplings,
)
from random_machines import random_machine, relative_error, without_forces

from framefree.machine import Continuous, Coupling, Joint, Loop, MachineError, motors
from framefree.motion.constrained import Constrained
from framefree.motion.constrained.project import ClosureError
from framefree.motion.constrained.rows import Closed, Holonomic
from framefree.motion.constrained.states import numbers
from framefree.motion.embedded import Embedded
from framefree.motion.embedded.choice import SingularError
from framefree.motion.embedded.maps import Embedding
from framefree.motion.maximal import Maximal
from framefree.motion.redundant import Redundant
from framefree.motion.tree import Tree


def value(eom, name, **inputs):
    return numbers(eom, name, **inputs)[0]


class Case:
    """A machine in both formulations, and one closed state of it."""

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        if seed % 3 == 2:
            machine = random_couplings(rng)
            x = machine.random(rng)
        else:
            machine, x = random_closed(rng)
        self.constrained = Constrained(machine)
        self.x_tree, self.v_tree = closed_state(rng, self.constrained, x)
        start = self.x_tree if machine.loops else None
        self.eom = Embedded(machine, start=start)
        self.x, self.v = self.eom.reduce(self.x_tree, self.v_tree)
        self.joint_force = 3 * rng.normal(size=machine.nv)
        self.force = value(self.eom, "generalised_force", x=self.x, joint_force=self.joint_force)
        self.a = value(self.eom, "forward", x=self.x, v=self.v, force=self.force)

    def of(self, name, **inputs):
        return value(self.eom, name, x=self.x, v=self.v, **inputs)

    def moved(self, h):
        """Minimal state a time h later, to second order."""
        x = self.eom.integrate(self.x, h * self.v + h * h / 2 * self.a)
        return {"x": x, "v": self.v + h * self.a}

    def rate(self, name, h=1e-5):
        """Time derivative of a quantity along the motion."""
        after, before = (np.array(numbers(self.eom, name, **self.moved(s))[0]) for s in (h, -h))
        return (after - before) / (2 * h)


@pytest.fixture(scope="module", params=range(6), ids=lambda seed: f"seed{seed}")
def case(request):
    return Case(request.param)


# ------------------------------------------------ against the constrained formulation


def test_bodies_accelerate_alike(case):
    tree = {"x": case.x_tree, "v": case.v_tree}
    a_tree = value(case.constrained, "forward", **tree, force=case.joint_force)
    expected = value(case.constrained, "body_acceleration", **tree, a=a_tree)
    assert relative_error(case.of("body_acceleration", a=case.a), expected) < 1e-9
    for name in ("body_velocity", "energy", "momentum", "dissipation"):
        assert relative_error(case.of(name), value(case.constrained, name, **tree)) < 1e-9
    poses = value(case.constrained, "body_pose", x=case.x_tree)
    assert relative_error(case.of("body_pose"), poses) < 1e-12


def test_joints_carry_alike(case):
    tree = {"x": case.x_tree, "v": case.v_tree, "force": case.joint_force}
    expected = value(case.constrained, "joint_wrench", **tree)
    found = case.of("joint_wrench:joint_force", joint_force=case.joint_force)
    assert relative_error(found, expected) < 1e-8
    # A force on the minimal coordinates acts at the independent joints.
    alone = np.zeros(case.eom.machine.nv)
    alone[list(case.eom.map.independent)] = case.force
    assert np.allclose(
        value(case.eom, "generalised_force", x=case.x, joint_force=alone), case.force
    )
    tree["force"] = alone
    expected = value(case.constrained, "joint_wrench", **tree)
    assert relative_error(case.of("joint_wrench", force=case.force), expected) < 1e-8
    loops = value(case.constrained, "loop_wrench", **tree)
    assert relative_error(case.of("loop_wrench", force=case.force), loops) < 1e-8


def test_power_is_that_of_the_tree(case):
    tree = {"x": case.x_tree, "v": case.v_tree, "force": case.joint_force}
    expected = value(case.constrained, "power", **tree)
    assert np.isclose(case.of("power", force=case.force), expected, rtol=1e-9, atol=1e-9)


# ------------------------------------------------ laws


def test_velocities_of_the_tree_follow_from_the_minimal_ones(case):
    x_tree, v_tree = case.eom.expand(case.x, case.v)
    assert np.allclose(x_tree, case.x_tree, atol=1e-12)
    assert np.allclose(v_tree, case.v_tree, atol=1e-9)
    A = numbers(case.constrained, "constraint", x=x_tree, v=v_tree)[0]
    E = numbers(case.eom, "tree_state", x=case.x, v=case.v)[2]
    assert np.abs(A @ E).max() < 1e-10


def test_forward_inverts_inverse(case):
    needed = case.of("inverse", a=case.a)
    assert relative_error(needed, case.force) < 1e-9
    assert relative_error(case.of("bias"), case.of("inverse", a=0 * case.a)) < 1e-13
    total = value(case.eom, "mass", x=case.x) @ case.a + case.of("bias")
    assert relative_error(total, case.force) < 1e-9


def test_bodies_share_mass_and_gravity(case):
    shares = case.of("body_mass")
    M = case.of("mass")
    assert relative_error(shares.sum(axis=0), M) < 1e-12
    for share in shares:
        assert np.linalg.eigvalsh(share)[0] > -1e-12 * np.abs(M).max()
    E = numbers(case.eom, "tree_state", x=case.x, v=case.v)[2]
    assert relative_error(M, E.T @ value(case.constrained, "mass", x=case.x_tree) @ E) < 1e-11
    expected = E.T @ value(case.constrained, "gravity", x=case.x_tree)
    assert relative_error(case.of("gravity"), expected) < 1e-11
    assert relative_error(case.of("body_gravity").sum(axis=0), expected) < 1e-11
    assert np.isclose(case.of("body_kinetic").sum(), case.of("energy"))
    name = case.eom.machine.bodies[-1].name
    assert np.array_equal(value(case.eom, f"body_mass:{name}", x=case.x), shares[-1])


def test_coriolis_is_skew_and_gives_the_bias(case):
    """M_dot = C + C^T by finite differences, and C v = bias where nothing pulls or rests."""
    rate = case.rate("mass")
    machine = without_forces(case.eom.machine)
    choice = {"start": case.x_tree, "independent": case.eom.v_names} if machine.loops else {}
    bare = Embedded(machine, **choice)
    bias = value(bare, "bias", x=case.x, v=case.v)
    for name in ("coriolis", "coriolis:kirchhoff"):
        C = case.of(name)
        assert np.abs(rate - C - C.T).max() < 1e-6 * (1 + np.abs(C).max() + np.abs(rate).max())
        assert np.allclose(C @ case.v, bias, rtol=1e-9, atol=1e-9 * (1 + np.abs(bias).max()))


def test_energy_changes_by_the_power(case):
    def energy(h):
        return np.sum(numbers(case.eom, "energy", **case.moved(h)))

    h = 1e-5
    rate = (energy(h) - energy(-h)) / (2 * h)
    power = case.of("power", force=case.force)
    size = 1 + abs(power) + np.abs(numbers(case.eom, "energy", x=case.x, v=case.v)).max()
    assert abs(rate - power) < 1e-6 * size


def test_jacobians_and_their_rates(case):
    frame = case.eom.machine.frames[0].name
    J = value(case.eom, f"jacobian:{frame}", x=case.x)
    J_tree = value(case.constrained, f"jacobian:{frame}", x=case.x_tree)
    assert np.allclose(J @ case.v, J_tree @ case.v_tree, rtol=1e-10, atol=1e-10)
    rate = case.of(f"jacobian_rate:{frame}")
    expected = case.rate(f"jacobian:{frame}")
    assert np.abs(rate - expected).max() < 1e-6 * (1 + np.abs(rate).max())
    pose = value(case.eom, f"frame_pose:{frame}", x=case.x)
    assert np.allclose(pose, value(case.constrained, f"frame_pose:{frame}", x=case.x_tree))


def test_without_loops_and_couplings_it_is_the_tree():
    rng = np.random.default_rng(0)
    machine = random_machine(rng, bodies=4)
    eom, tree = Embedded(machine), Tree(machine)
    x, v = machine.random(rng), rng.normal(size=machine.nv)
    state = {"x": x, "v": v, "force": rng.normal(size=machine.nv)}
    for name in ("forward", "joint_wrench", "power"):
        assert relative_error(value(eom, name, **state), value(tree, name, **state)) < 1e-9
    step = rng.normal(size=machine.nv)
    assert np.allclose(eom.integrate(x, step), machine.integrate(x, step))


# ------------------------------------------------ the crane, whose numbers are published


CRANE = {
    # q: Gamma (upper triangle by rows), gravity force, tip position.
    (0.0, 0.0, 0.1): (
        (352.20567, -0.02995, -0.11693, 437.26996, 447.31546, 1638.64107),
        (0.0, -1818.84296, -333.36708),
        (2.25, -0.075, -1.778313),
    ),
    (0.0, np.pi / 4, 0.1): (
        (354.66721, 0.29956, -0.08113, 437.26996, 447.31546, 1638.64107),
        (0.0, -1715.51711, -2092.36158),
        (2.994112, -0.075, 0.393869),
    ),
    (0.5, 1.0, 0.05): (
        (257.33937, 0.36111, -0.07229, 386.28333, 303.63905, 1328.73260),
        (0.0, -1428.68891, -1898.80158),
        (2.381577, 1.215599, 0.678632),
    ),
    (-1.2, 0.8, 0.15): (
        (388.54959, 0.30955, -0.06743, 493.34324, 659.24694, 2204.13289),
        (0.0, -1774.27087, -2811.80591),
        (1.098569, -3.032664, 0.836584),
    ),
}


def crane_model():
    """The controller's model: three bodies, (phi, theta, delta) to (phi, theta, zeta)."""
    names = ("phi", "theta", "delta")
    return Embedded(
        crane(closed=False),
        Embedding(names, lambda q: ca.vertcat(q[0], q[1], crane_elbow(q[2]))),
    )


@pytest.mark.parametrize("q", CRANE)
def test_crane_has_the_inertia_and_gravity_of_the_facts(q):
    eom, x = crane_model(), np.array(q)
    upper, gravity, tip = CRANE[q]
    M = value(eom, "mass", x=x)
    assert np.allclose(M[np.triu_indices(3)], upper, rtol=1e-5, atol=1e-5)
    assert np.allclose(-value(eom, "gravity", x=x), gravity, rtol=1e-5, atol=1e-5)
    assert np.allclose(value(eom, "frame_pose:tip", x=x)[:3, 3], tip, atol=1e-6)


def crane_in_closed_form(machine):
    """Delta gives the elbow by the triangle and the cylinder's angle as half of it."""

    def configuration(q):
        zeta = crane_elbow(q[2])
        angles = {"phi": q[0], "theta": q[1], "zeta": zeta, "beta": zeta / 2, "delta": q[2]}
        return ca.vertcat(*(angles[name] for name in machine.x_names))

    return Embedded(machine, Embedding(("phi", "theta", "delta"), configuration))


def test_crane_with_its_cylinder_in_three_ways():
    """Closed form, loop solved, loop as a constraint: same bodies' motion, same pin forces."""
    machine = crane(closed=True)
    given = crane_in_closed_form(machine)
    q = np.array([0.5, 1.0, 0.1])
    x_tree, v_tree = given.expand(q, np.array([0.3, -0.2, 0.15]))
    solved = Embedded(machine, independent=("phi", "theta", "delta"), start=x_tree)
    constrained = Constrained(machine)
    assert solved.v_names == ("phi", "theta", "delta")
    force = np.array([50.0, 2000.0, 3000.0])
    v = np.array([0.3, -0.2, 0.15])
    assert relative_error(value(solved, "mass", x=x_tree), value(given, "mass", x=q)) < 1e-12
    bias = value(given, "bias", x=q, v=v)
    assert relative_error(value(solved, "bias", x=x_tree, v=v), bias) < 1e-11
    C = value(given, "coriolis:christoffel", x=q, v=v)
    assert relative_error(value(solved, "coriolis:christoffel", x=x_tree, v=v), C) < 1e-11
    a = value(given, "forward", x=q, v=v, force=force)
    assert relative_error(value(solved, "forward", x=x_tree, v=v, force=force), a) < 1e-10
    joint_force = np.zeros(5)
    for name, part in zip(("phi", "theta", "delta"), force, strict=True):
        joint_force[machine.v_slice[name]] = part
    state = {"x": x_tree, "v": v_tree, "force": joint_force}
    a_tree = value(constrained, "forward", **state)
    chosen = [machine.v_names.index(name) for name in ("phi", "theta", "delta")]
    assert relative_error(a_tree[chosen], a) < 1e-9
    pin = value(constrained, "loop_wrench", **state)[0]
    found = value(solved, "loop_wrench", x=x_tree, v=v, force=force)[0]
    assert relative_error(found, pin) < 1e-9
    # In the closed form, too, if the forces act where they are said to.
    wrench = value(given, "joint_wrench:joint_force", x=q, v=v, joint_force=joint_force)
    assert relative_error(wrench, value(constrained, "joint_wrench", **state)) < 1e-9


def test_christoffel_of_a_closed_form_is_the_one_of_its_mass_matrix():
    eom = crane_model()
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    M = eom.functions["mass"](q)
    gradient = ca.jacobian(M @ v, q)
    C = (ca.reshape(ca.jtimes(ca.vec(M), q, v), 3, 3) + gradient - gradient.T) / 2
    at_state = np.array([0.3, 0.7, 0.12]), np.array([0.5, -0.4, 0.2])
    expected = np.array(ca.Function("C", [q, v], [C])(*at_state))
    found = value(eom, "coriolis:christoffel", x=at_state[0], v=at_state[1])
    assert relative_error(found, expected) < 1e-11


def test_one_body_changes_one_term():
    """A tunable body: its own share follows its mass, the others stay, nothing is traced again."""
    machine = crane(closed=False).tunable("arm.mass")
    names = ("phi", "theta", "delta")
    eom = Embedded(machine, Embedding(names, lambda q: ca.vertcat(q[0], q[1], crane_elbow(q[2]))))
    x = np.array([0.5, 1.0, 0.05])
    light = value(eom, "body_mass", x=x)
    heavy = numbers(eom, "body_mass", {"arm.mass": 78.0}, x=x)[0]
    arm = machine.body_index["arm"]
    others = [k for k in range(3) if k != arm]
    assert np.array_equal(light[others], heavy[others])
    assert not np.allclose(light[arm], heavy[arm])
    rebuilt = Embedded(
        crane(closed=False).replace("arm", mass=78.0),
        Embedding(names, lambda q: ca.vertcat(q[0], q[1], crane_elbow(q[2]))),
    )
    assert np.allclose(heavy, value(rebuilt, "body_mass", x=x), rtol=1e-12)
    function = eom.functions["body_mass:boom"]
    assert not ca.depends_on(function(x, machine.parameters.symbols), machine.parameters.symbols)


# ------------------------------------------------ choosing and closing


def test_driven_joints_are_independent():
    machine = n_four_bar(1)
    x, _ = four_bar_state(machine, 0.4, 0.0)
    for name in ("p0", "p1"):
        driven = replace(machine, actuators=motors([machine.joint(name)]))
        assert Embedded(driven, start=x).v_names == (name,)


def test_closing_keeps_the_independent_coordinates():
    machine = n_four_bar(1)
    eom = Embedded(machine, independent=["p0"], start=four_bar_state(machine, 0.4, 0.0)[0])
    x, _ = four_bar_state(machine, 0.4, 0.0)
    off = x + np.array([0.1, -0.2, 0.15])
    closed = eom.close(off)
    assert closed[machine.x_slice["p0"]] == off[machine.x_slice["p0"]]
    margin, error = numbers(eom, "closure", x=closed)
    assert np.abs(error).max() < 1e-12
    assert margin > 0.1
    moved = eom.integrate(closed, np.array([0.05]))
    assert np.allclose(moved[machine.x_slice["p0"]], closed[machine.x_slice["p0"]] + 0.05)
    assert np.abs(numbers(eom, "closure", x=moved)[1]).max() < 1e-12


def test_singular_positions_are_refused_by_name():
    machine = n_four_bar(1)
    eom = Embedded(machine, independent=["p0"], start=four_bar_state(machine, 0.4, 0.0)[0])
    flat, v = four_bar_state(machine, np.pi / 2, 1.0)
    with pytest.raises(SingularError, match="loop `l0` is near a singular position") as caught:
        eom.close(flat)
    assert caught.value.loops == ("l0",)
    assert caught.value.margin < 1e-6
    with np.errstate(all="ignore"):
        a = value(eom, "forward", x=flat, v=v[:1], force=np.zeros(1))
    assert not np.isfinite(a).all()
    near, _ = four_bar_state(machine, np.pi / 2 - 1e-3, 1.0)
    assert np.isfinite(value(eom, "forward", x=near, v=v[:1], force=np.zeros(1))).all()


def test_wrong_choices_are_refused():
    machine = n_four_bar(1)
    start = four_bar_state(machine, 0.4, 0.0)[0]
    with pytest.raises(MachineError, match="leave 1 velocities independent, got 2: p0, p1"):
        Embedded(machine, independent=["p0", "p1"], start=start)
    with pytest.raises(MachineError, match="`p7` is unknown"):
        Embedded(machine, independent=["p7"], start=start)
    with pytest.raises(MachineError, match="must give 3 coordinates"):
        Embedded(crane(closed=False), Embedding(("a",), lambda q: q))
    closed = crane(closed=True)
    with pytest.raises(MachineError, match="the embedding does not meet `cylinder_end`"):
        Embedded(closed, Embedding(("a",), lambda q: ca.vertcat(*[q] * 5)))
    apart = replace(machine.joint("p1"), parent_pose=at(9.0, 0))
    joints = [apart if j.name == "p1" else j for j in machine.joints]
    with pytest.raises(ClosureError):
        Embedded(replace(machine, joints=joints))
    with pytest.raises(MachineError, match="cannot be inverted"):
        crane_model().reduce(np.zeros(3), np.zeros(3))


def test_groups_follow_a_closed_form():
    """A joint with (cos, sin) as coordinates, and a quaternion, driven by one angle."""
    rng = np.random.default_rng(3)
    base = crane(closed=False)
    joints = [
        Joint(j.name, Continuous("z"), j.parent, j.child, j.parent_pose) if j.name == "zeta" else j
        for j in base.joints
    ]
    machine = replace(base, joints=joints)

    def configuration(q):
        zeta = crane_elbow(q[2])
        return ca.vertcat(q[0], q[1], ca.cos(zeta), ca.sin(zeta))

    eom, plain = (
        Embedded(machine, Embedding(("phi", "theta", "delta"), configuration)),
        crane_model(),
    )
    state = {"x": np.array([0.3, 0.7, 0.12]), "v": rng.normal(size=3), "force": rng.normal(size=3)}
    for name in ("forward", "joint_wrench"):
        assert relative_error(value(eom, name, **state), value(plain, name, **state)) < 1e-10


def test_couplings_through_couplings_need_no_order():
    machine = replace(
        crane(closed=False),
        couplings=[
            Coupling("b", "zeta", ("theta",), lambda q: 2 * q),
            Coupling("a", "theta", ("phi",), lambda q: q**2),
        ],
    )
    eom = Embedded(machine)
    assert eom.v_names == ("phi",)
    x_tree, v_tree = eom.expand(np.array([0.5]), np.array([2.0]))
    assert np.allclose(x_tree, [0.5, 0.25, 0.5])
    assert np.allclose(v_tree, [2.0, 2.0, 4.0])


# ------------------------------------------------ constraints upon minimal coordinates


def test_constraints_can_be_laid_upon_minimal_coordinates():
    """A crane whose tip is held to a height: upon its minimal coordinates, or all on the tree."""
    machine = crane(closed=True)
    given = crane_in_closed_form(machine)
    order = [machine.x_names.index(name) for name in ("phi", "theta", "delta")]
    boom = Holonomic("height", lambda x, t: ca.sin(x[1]) - 0.3 + 0.1 * x[2])
    upon = Constrained(machine, [boom], base=given)
    tree = Holonomic("height", lambda x, t: ca.sin(x[order[1]]) - 0.3 + 0.1 * x[order[2]])
    whole = Constrained(machine, [tree])
    q = upon.project(np.array([0.4, 0.3, 0.1]), hold=["delta"])
    assert q.x[2] == 0.1
    v = upon.project(q.x, np.array([0.2, 0.3, -0.1])).v
    x_tree, v_tree = given.expand(q.x, v)
    force, joint_force = np.array([10.0, 900.0, 500.0]), np.zeros(5)
    joint_force[order] = force
    a = value(upon, "forward", x=q.x, v=v, force=force)
    a_tree = value(whole, "forward", x=x_tree, v=v_tree, force=joint_force)
    assert relative_error(a, a_tree[order]) < 1e-9
    assert (
        relative_error(
            value(upon, "multipliers", x=q.x, v=v, force=force),
            value(whole, "multipliers", x=x_tree, v=v_tree, force=joint_force)[-1:],
        )
        < 1e-7
    )


@pytest.mark.parametrize("kind", ["redundant", "maximal"])
def test_constraints_can_be_laid_upon_any_formulation(kind):
    """A weld of a chain's end to the world, upon the tree and upon other coordinates."""
    rng = np.random.default_rng(4)
    machine = random_machine(rng, bodies=4, fluid=False)
    loop = Closed("hold", Loop("hold", "ball", "f_world", "f3", rest=at(0.3, 0.2, 0.1)))
    tree = Constrained(machine, [loop])
    upon = Constrained(
        machine, [loop], base={"redundant": Redundant, "maximal": Maximal}[kind](machine)
    )
    x = machine.random(rng)
    v = rng.normal(size=machine.nv)
    joint_force = rng.normal(size=machine.nv)
    state = {"x": x, "v": v, "joint_force": joint_force}
    if kind == "maximal":
        x_all, v_all = numbers(upon.base, "from_joints", joint_x=x, joint_v=v)
        state = {"x": x_all, "v": v_all, "joint_force": joint_force}
    a_tree = value(tree, "forward", x=x, v=v, force=joint_force)
    expected = value(tree, "body_acceleration", x=x, v=v, a=a_tree)
    a = value(upon, "forward:joint_force", **state)
    found = value(upon, "body_acceleration", x=state["x"], v=state["v"], a=a)
    assert relative_error(found, expected) < 1e-8
    lam = value(tree, "multipliers", x=x, v=v, force=joint_force)
    assert relative_error(value(upon, "multipliers:joint_force", **state)[-3:], lam) < 1e-7
    wrench = value(tree, "joint_wrench", x=x, v=v, force=joint_force)
    assert relative_error(value(upon, "joint_wrench:joint_force", **state), wrench) < 1e-7
