"""Spatial tendons as MuJoCo has them: lengths, moment arms, forces, actuators and wraps."""

import json
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from mujoco_peer import DATA, Peer, gap, mujoco

import framefree as ff
from framefree.machine import Machine, MachineError, Pulley, SpatialTendon, Wrap
from framefree.machine.formats.poses import pose_of_quaternion, posed
from framefree.machine.read import read
from framefree.motion import Constrained, Embedded, Maximal, Redundant, Tree

FILE = "finger.xml"


@pytest.fixture(scope="module")
def peer():
    return Peer(FILE)


def number(eom, name, *arguments):
    return eom.functions[name](*arguments).full().squeeze()


def random_state(peer, rng):
    """Joints turned at will; the weight near the finger, so that strings meet obstacles."""
    x, v = peer.random(rng)
    x[peer.machine.x_slice["weight_free"]][:3] = rng.normal(size=3) * 0.15
    return x, v


# ---------------------------------------------------------------------- one string


def one_string(rng, shape, side):
    """Return a string between free bodies around an obstacle, in MuJoCo and here, and poses."""
    radius = rng.uniform(0.05, 0.3)
    points, center = rng.normal(size=(2, 3)) * 0.4, rng.normal(size=3) * 0.1
    wxyz = rng.normal(size=4)
    at = None
    if side:
        at = rng.normal(size=3)
        at *= radius * (rng.uniform(1.1, 2) if side == "outside" else 0.3) / np.linalg.norm(at)

    def words(numbers):
        return " ".join(repr(float(number)) for number in numbers)

    bodies = [f'<body pos="{words(p)}"><freejoint/><geom size="0.01"/><site name="s{i}"/></body>'
              for i, p in enumerate(points)]  # fmt: skip
    size = words([radius] if shape == "sphere" else [radius, 0.5])
    ring = f'<geom name="g" type="{shape}" size="{size}"/>'
    ring += f'<site name="side" pos="{words(at)}"/>' if side else ""
    place = f'pos="{words(center)}" quat="{words(wxyz)}"'
    wrap = '<geom geom="g" sidesite="side"/>' if side else '<geom geom="g"/>'
    text = (
        f"<mujoco><worldbody>{''.join(bodies)}<body {place}><freejoint/>{ring}</body></worldbody>"
        f'<tendon><spatial><site site="s0"/>{wrap}<site site="s1"/></spatial></tendon></mujoco>'
    )
    tendon = SpatialTendon("t", ("s0", Wrap("g", radius, shape, at), "s1"))
    poses = [posed(np.eye(3), points[0]), pose_of_quaternion(center, wxyz)]
    return text, tendon, [*poses, posed(np.eye(3), points[1])]


@pytest.mark.parametrize("shape", ["sphere", "cylinder"])
@pytest.mark.parametrize("side", ["", "outside", "inside"])
@pytest.mark.first_cases(2)
def test_a_string_around_an_obstacle(shape, side):
    rng = np.random.default_rng(1)
    touching = 0
    for _ in range(60):
        text, tendon, poses = one_string(rng, shape, side)
        model = mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        reach = tendon.reach([], [ca.SX(ca.DM(G)) for G in poses])
        assert float(ca.DM(reach.length)) == pytest.approx(data.ten_length[0], rel=1e-12)
        first, ring, last = (np.array(ca.DM(w)).ravel() for w in reach.on_frames)
        ours = np.concatenate([first, last, poses[1][:3, :3] @ ring[:3], ring[3:]])
        assert np.abs(ours - tendon_row(model, data)).max() <= 1e-12
        touching += int(data.ten_wrapnum[0] > 2)
    assert 5 <= touching < 60


def tendon_row(model, data, tendon=0):
    """Row of MuJoCo's tendon Jacobian, dense; its sparsity moved from data to the model."""
    where = model if hasattr(model, "ten_J_colind") else data
    row = np.zeros(model.nv)
    first, count = int(where.ten_J_rowadr[tendon]), int(where.ten_J_rownnz[tendon])
    columns = np.ravel(where.ten_J_colind)[first : first + count]
    row[columns] = np.ravel(data.ten_J)[first : first + count]
    return row


# ---------------------------------------------------------------------- a machine with many


def test_lengths_and_moment_arms_are_mujocos(peer):
    tree, rng = Tree(peer.machine), np.random.default_rng(2)
    x, v = ca.SX.sym("x", peer.machine.nx), ca.SX.sym("v", peer.machine.nv)
    state = tree.at(x, v)
    names = [tendon.name for tendon in peer.machine.tendons]
    values = [ca.vertcat(state.tendon(n).length, state.tendon(n).rate) for n in names]
    rows = ca.vertcat(*(state.tendon_jacobian(n) for n in names))
    both = ca.Function("both", [x, v], [ca.horzcat(*values), rows])
    touched = np.zeros(len(names))
    for _ in range(20):
        at, speed = random_state(peer, rng)
        peer.set(at, speed)
        motion, jacobian = (value.full() for value in both(at, speed))
        assert gap(motion[0], peer.data.ten_length) <= 1e-10
        assert gap(motion[1], peer.data.ten_velocity) <= 1e-10
        theirs = [tendon_row(peer.model, peer.data, i) for i in range(len(names))]
        assert gap(jacobian, theirs @ peer.turn(at)) <= 1e-10
        touched += peer.data.ten_wrapnum
    assert len(set(touched / 20 % 1)) > 1  # some strings leave their obstacles


def test_mass_bias_acceleration_and_inputs_are_mujocos(peer):
    eom, rng = Tree(peer.machine), np.random.default_rng(3)
    peer.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CLAMPCTRL
    for _ in range(20):
        x, v = random_state(peer, rng)
        u = rng.normal(size=peer.machine.nu)
        peer.set(x, v, u)
        assert gap(number(eom, "mass", x), peer.mass(x)) <= 1e-10
        assert gap(number(eom, "bias", x, v), peer.bias(x, v)) <= 1e-10
        assert gap(number(eom, "forward:u", x, v, u), peer.forward(x, v)) <= 1e-10
        force = number(eom, "input_matrix", x) @ u + number(eom, "input_bias", x, v)
        assert gap(force, peer.force(x)) <= 1e-10


def test_runs_end_where_mujocos_do(peer):
    rng = np.random.default_rng(4)
    x, v = random_state(peer, rng)
    machine = replace(peer.machine, actuators=(), keyframes=())
    peer.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
    run = ff.simulate(machine, x0=x, v0=0.1 * v, duration=0.2, dt=1e-4, integrator="rk4", every=100)
    x_end, v_end = peer.run(x, 0.1 * v, 0.2, 1e-4)
    assert np.abs(machine.difference(run.x[-1], x_end)).max() <= 1e-6
    assert gap(run.v[-1], v_end) <= 1e-6
    peer.model.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)


def test_formulations_agree(peer):
    machine, rng = peer.machine, np.random.default_rng(5)
    x, v = random_state(peer, rng)
    u = rng.normal(size=machine.nu)
    tree = Tree(machine)
    a = number(tree, "forward:u", x, v, u)
    expected = number(tree, "body_acceleration", x, v, a)
    for other in (Constrained(machine), Redundant(machine), Embedded(machine), Maximal(machine)):
        x_own, v_own = other.start(x, v)
        own = other.numbers("forward:u", x=x_own, v=v_own, u=u)[0]
        accelerations = other.numbers("body_acceleration", x=x_own, v=v_own, a=own)[0]
        assert gap(accelerations, expected) <= 1e-9
        energy = other.numbers("energy", x=x_own, v=v_own)
        assert gap(np.ravel(energy[0]), np.ravel(tree.numbers("energy", x=x, v=v)[0])) <= 1e-9


def test_slopes_are_differences(peer):
    machine, rng = peer.machine, np.random.default_rng(6)
    eom = Tree(machine)
    x, v = random_state(peer, rng)
    by_x, _, _ = eom.functions["forward_derivatives"](x, v, 0 * v)
    h = 1e-6
    for i, e in enumerate(np.eye(machine.nv)):
        ends = [number(eom, "forward", machine.integrate(x, s * h * e), v, 0 * v) for s in (1, -1)]
        assert (
            np.abs((ends[0] - ends[1]) / (2 * h) - by_x.full()[:, i]).max()
            <= 1e-5 * np.abs(by_x.full()).max()
        )


@pytest.mark.parametrize("shape", ["sphere", "cylinder"])
@pytest.mark.parametrize("side", [None, (0.0, 0.0, 0.1), (0.1, 0.0, 0.0)])
def test_slopes_are_finite_where_a_string_ends_in_the_middle_of_an_obstacle(shape, side):
    tendon = SpatialTendon("t", ("a", Wrap("g", 0.2, shape, side), "b"))
    p = ca.SX.sym("p", 6)
    poses = [ca.SX.eye(4) for _ in range(3)]
    poses[0][:3, 3], poses[2][:3, 3] = p[:3], p[3:]
    reach = tendon.reach([], poses)
    slope = ca.Function("slope", [p], [ca.jacobian(ca.vertcat(reach.length, *reach.on_frames), p)])
    for point in (np.zeros(6), (0, 0, 0, 1, 0, 0), (0.1, 0, 0, 1, 0, 0), (-1, 0, 0, 1, 0, 0)):
        assert np.isfinite(slope(point).full()).all()


def test_names_and_data():
    machine = read(DATA / FILE)
    assert Machine.from_dict(json.loads(json.dumps(machine.to_dict()))) == machine
    other = machine.replace("frame:hub", name="nave")
    wraps = [step for step in other.tendon("flexor").path if isinstance(step, Wrap)]
    assert [wrap.frame for wrap in wraps] == ["nave", "axle"]
    assert "flexor" not in {t.name for t in machine.detach("frame:hub").tendons}
    for path, words in (
        (("a",), "at least two frames"),
        (("a", Wrap("g", 0.1)), "at least two frames"),
        (("a", Pulley(2), "b"), "at least two frames"),
        (("a", Wrap("g", 0.1), Wrap("h", 0.1), "b"), "a Wrap only between two frames"),
        (("a", 3.0, "b"), "must hold names of frames"),
    ):
        with pytest.raises(MachineError, match=words):
            SpatialTendon("t", path)
    with pytest.raises(MachineError, match="must be sphere or cylinder"):
        Wrap("g", 0.1, "cube")
    with pytest.raises(MachineError, match="must be positive"):
        Wrap("g", -0.1)


def test_a_side_site_elsewhere_is_refused():
    text = (DATA / FILE).read_text()
    with pytest.raises(MachineError, match="side site `pad` is on another body than the geom"):
        read(text.replace('sidesite="hub_side"', 'sidesite="pad"'))


def test_written_and_read_back_it_moves_alike(peer):
    text = peer.machine.to_mjcf()
    back, there = read(text), Peer(text)
    rng = np.random.default_rng(7)
    one, two = Tree(peer.machine), Tree(back)
    for _ in range(3):
        x, v = random_state(peer, rng)
        there.set(x, v)
        expected = number(one, "bias", x, v)
        assert gap(number(two, "bias", x, v), expected) <= 1e-10
        assert gap(there.bias(x, v), expected) <= 1e-10
        assert gap(number(two, "input_matrix", x), number(one, "input_matrix", x)) <= 1e-10
    assert len(back.geometry) == len(peer.machine.geometry)
    assert [t.name for t in back.tendons] == [t.name for t in peer.machine.tendons]
