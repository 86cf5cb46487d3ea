"""MuJoCo's fluid forces, of boxes and of ellipsoids: as MuJoCo has them, in all formulations."""

import json
from dataclasses import replace

import numpy as np
import pytest
from mujoco_peer import DATA, Peer, gap

import framefree as ff
from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Fluid,
    Frame,
    Free,
    Immersed,
    ImmersedBox,
    ImmersedEllipsoid,
    Joint,
    Machine,
    MachineError,
    Revolute,
)
from framefree.machine.formats.writing import WriteError
from framefree.machine.immersed import potential_flow
from framefree.machine.read import read
from framefree.motion import Constrained, Embedded, Maximal, Redundant, Tree

FILES = ("swimmer.xml", "flapper.xml")


@pytest.fixture(params=FILES, scope="module")
def peer(request):
    return Peer(request.param)


def number(eom, name, *arguments):
    return eom.functions[name](*arguments).full().squeeze()


def test_mass_bias_and_acceleration_are_mujocos(peer):
    eom, rng = Tree(peer.machine), np.random.default_rng(1)
    still = Tree(replace(peer.machine, fluid=None))
    for _ in range(20):
        x, v = peer.random(rng)
        peer.set(x, v)
        assert gap(number(eom, "mass", x), peer.mass(x)) <= 1e-10
        bias = number(eom, "bias", x, v)
        assert gap(bias, peer.bias(x, v)) <= 1e-10
        assert gap(bias, number(still, "bias", x, v)) >= 1e-5  # the fluid is felt
        assert gap(number(eom, "forward", x, v, 0 * v), peer.forward(x, v)) <= 1e-10


def test_very_small_ellipsoids_and_speeds():
    """Products of small sizes and speeds must not fall below a smallest number."""
    peer = Peer(
        '<mujoco><option density="1.2" viscosity="1e-5"/><worldbody><body><freejoint/><geom '
        'type="ellipsoid" size="3e-3 1e-3 1e-4" fluidshape="ellipsoid"/></body></worldbody>'
        "</mujoco>"
    )
    eom, rng = Tree(peer.machine), np.random.default_rng(2)
    for size in (1e-6, 1e-3, 0.1, 1, 10) * 4:
        x, v = peer.random(rng)
        peer.set(x, size * v)
        wet, air = peer.machine.fluid.immersed[0], peer.machine.fluid
        theirs = -peer.turn(x).T @ peer.data.qfrc_fluid
        ours = np.array(wet.drag(size * v, air)).ravel()
        assert gap(ours[:3], theirs[:3]) <= 1e-10
        assert gap(ours[3:], theirs[3:]) <= 1e-10
        assert gap(number(eom, "bias", x, size * v), peer.bias(x, size * v)) <= 1e-10


def test_runs_end_where_mujocos_do(peer):
    rng = np.random.default_rng(3)
    x, v = peer.random(rng)
    run = ff.simulate(peer.machine, x0=x, v0=v, duration=0.2, dt=1e-3, integrator="rk4")
    x_end, v_end = peer.run(x, v, 0.2, 1e-3)
    assert np.abs(peer.machine.difference(run.x[-1], x_end)).max() <= 1e-6
    assert gap(run.v[-1], v_end) <= 1e-6
    peer.model.opt.density = peer.model.opt.viscosity = 0.0
    other, _ = peer.run(x, v, 0.2, 1e-3)
    assert np.abs(peer.machine.difference(other, x_end)).max() >= 1e-4  # the fluid mattered


def test_mujoco_as_plant_has_the_fluid_itself():
    """Forces that were held over a step would differ by their change within it."""
    machine = Peer("flapper.xml").machine
    x, v = machine.random(np.random.default_rng(4)), np.zeros(machine.nv)
    ends = [
        ff.simulate(machine, x0=x, v0=v, duration=0.1, dt=1e-3, integrator="rk4", plant=plant).v[-1]
        for plant in ("native", "mujoco")
    ]
    assert gap(*ends) <= 1e-7


def test_formulations_agree(peer):
    machine, rng = peer.machine, np.random.default_rng(5)
    x, v = peer.random(rng)
    force = rng.normal(size=machine.nv)
    tree = Tree(machine)
    a = number(tree, "forward", x, v, force)
    expected = number(tree, "body_acceleration", x, v, a)
    for other in (Constrained(machine), Redundant(machine), Embedded(machine), Maximal(machine)):
        x_own, v_own = other.start(x, v)
        own = other.numbers("forward:joint_force", x=x_own, v=v_own, joint_force=force)[0]
        accelerations = other.numbers("body_acceleration", x=x_own, v=v_own, a=own)[0]
        assert gap(accelerations, expected) <= 1e-9
        lost = other.numbers("dissipation", x=x_own, v=v_own)[0]
        assert lost == pytest.approx(float(number(tree, "dissipation", x, v)), rel=1e-9)


@pytest.mark.parametrize("still", [False, True])
def test_derivatives_are_differences(peer, still):
    machine, rng = peer.machine, np.random.default_rng(6)
    eom = Tree(machine)
    x, v = peer.random(rng)
    if still:  # relative to the fluid: where a speed has no direction
        v, machine = 0 * v, replace(machine, fluid=replace(machine.fluid, current=np.zeros(3)))
        eom = Tree(machine)
    by_x, by_v, _ = eom.functions["forward_derivatives"](x, v, 0 * v)
    h = 1e-6
    for i, e in enumerate(np.eye(machine.nv)):
        moved = [machine.integrate(x, s * h * e) for s in (1, -1)]
        ends = [number(eom, "forward", one, v, 0 * v) for one in moved]
        assert gap((ends[0] - ends[1]) / (2 * h), by_x.full()[:, i]) <= 1e-4
        ends = [number(eom, "forward", x, v + s * h * e, 0 * v) for s in (1, -1)]
        assert gap((ends[0] - ends[1]) / (2 * h), by_v.full()[:, i]) <= 1e-4


def test_lift_takes_no_power_and_drag_only_takes():
    rng = np.random.default_rng(7)
    fluid = Fluid((), density=1.2, viscosity=1e-3)
    for _ in range(50):
        part = ImmersedEllipsoid("f", rng.uniform(0.01, 1, 3))
        xi = rng.normal(size=6)
        D = np.array(part.drag_matrix(xi, fluid))
        drag = np.diag(np.diag(D))
        assert np.allclose(D - drag, -(D - drag).T, atol=1e-12)
        assert (np.diag(D) > 0).all()
        assert np.abs(D - drag).max() > 1e-6


def test_added_mass_of_a_sphere_and_of_a_disc_is_the_known_one():
    mass, moment = potential_flow(np.full(3, 0.7))
    assert np.allclose(mass, 2 / 3 * np.pi * 0.7**3, rtol=1e-12)
    assert np.allclose(moment, 0)
    mass, moment = potential_flow(np.array([1.0, 1.0, 1e-5]))
    assert mass[2] == pytest.approx(8 / 3, rel=1e-4)
    assert moment[:2] == pytest.approx([16 / 45] * 2, rel=1e-4)


# ---------------------------------------------------------------------- described in Python


def plate():
    """A wing and a box, described here, whose inertia is that of the box."""
    box = ImmersedBox("hull", (0.3, 0.2, 0.1))
    inertia = 2.0 / 12 * np.diag([0.05, 0.10, 0.13])
    return Machine(
        (
            Body("hull", Moments.of_body(2.0, np.zeros(3), inertia)),
            Body("wing", Moments.of_body(0.3, (0.1, 0, 0), np.diag([1e-3, 2e-3, 3e-3]))),
        ),
        (Joint("base", Free(), "world", "hull"), Joint("hinge", Revolute("y"), "hull", "wing")),
        (Frame("blade", "wing", (0.1, 0.02, 0.0)),),
        fluid=Fluid(
            (box, ImmersedEllipsoid("blade", (0.2, 0.05, 0.01), kutta_lift=0.7)),
            density=1.2,
            current=(1.0, 0.2, 0.0),
            viscosity=0.01,
        ),
    )


@pytest.mark.parametrize("model", [*FILES, "python"])
@pytest.mark.parametrize("keep_fixed", [False, True])
def test_written_and_read_back_it_moves_alike(model, keep_fixed):
    machine = plate() if model == "python" else Peer(model, keep_fixed=keep_fixed).machine
    text = machine.to_mjcf()
    back, rng = read(text, keep_fixed=keep_fixed), np.random.default_rng(8)
    one, two, there = Tree(machine), Tree(back), Peer(text)
    for _ in range(3):
        x, v = machine.random(rng), rng.normal(size=machine.nv)
        there.set(x, v)
        expected = number(one, "bias", x, v)
        # Beyond that MuJoCo knows the potential flow around a flat ellipsoid less exactly.
        tolerance = 1e-4 if model == "python" else 1e-10
        assert gap(number(two, "bias", x, v), expected) <= tolerance
        assert gap(there.bias(x, v), expected) <= tolerance
    assert len(back.geometry) == len(machine.geometry)


def test_as_data_and_back():
    machine = plate()
    assert Machine.from_dict(json.loads(json.dumps(machine.to_dict()))) == machine


def test_density_and_viscosity_can_be_tuned():
    machine = plate().tunable("fluid.density", "fluid.viscosity", "fluid.current.x")
    rng = np.random.default_rng(9)
    x, v = machine.random(rng), rng.normal(size=machine.nv)
    values = {"fluid.density": 900.0, "fluid.viscosity": 0.3, "fluid.current.x": -2.0}
    fluid = replace(plate().fluid, density=900.0, viscosity=0.3, current=(-2.0, 0.2, 0.0))
    expected = number(Tree(replace(plate(), fluid=fluid)), "bias", x, v)
    own = number(Tree(machine.with_parameters(values)), "bias", x, v)
    assert gap(own, expected) <= 1e-12


def test_what_mujocos_fluid_is_not_is_refused():
    machine = plate()
    parts = {
        "drag of boxes and ellipsoids only": Immersed("hull", 0.1),
        "1 boxes do not make up that inertia": ImmersedBox("hull", (0.3, 0.2, 0.2)),
        "MuJoCo derives `added_volume`": ImmersedEllipsoid("hull", 0.1, added_volume=0.0),
    }
    for words, part in parts.items():
        fluid = replace(machine.fluid, immersed=(part, machine.fluid.immersed[1]))
        with pytest.raises(WriteError, match=words):
            replace(machine, fluid=fluid).to_mjcf()
    with pytest.raises(WriteError, match=r"body `hull` in the fluid: .*there is none"):
        replace(machine, fluid=replace(machine.fluid, immersed=())).to_mjcf()
    assert "density" not in machine.to_mjcf(without="fluid")
    with pytest.raises(MachineError, match="three positive numbers"):
        ImmersedBox("hull", (0.1, 0.0, 0.1))
    with pytest.raises(MachineError, match="`viscosity` of the fluid must not be negative"):
        Fluid((), viscosity=-1.0)


def test_without_fluid_and_with_passive_forces_off_there_is_none():
    left_out = Peer("swimmer.xml", without="fluid").machine
    assert left_out.fluid is None
    assert any("a fluid, `density` 1000" in note for note in left_out.ignored)
    off = '<option density="2"><flag spring="disable" damper="disable"/></option>'
    body = '<body><freejoint/><geom size="0.1"/></body>'
    peer = Peer(f"<mujoco>{off}<worldbody>{body}</worldbody></mujoco>")
    x, v = peer.random(np.random.default_rng(0))
    peer.set(x, v)
    assert gap(number(Tree(peer.machine), "bias", x, v), peer.bias(x, v)) <= 1e-12
    assert peer.machine.fluid is None


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_check_passes(file):
    report = ff.certify.check(DATA / file)
    assert report.ok, report.failures
