"""Parts of the live view without a browser: handles, closed joints, meshes, messages."""

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from framefree.gallery import MACHINES
from framefree.gallery.machines.arms import revolute_chain
from framefree.geometry import batch
from framefree.look.view import ViewError, drawing, view
from framefree.look.view.closing import ClosedJoints
from framefree.look.view.figures import in_units, power_of
from framefree.look.view.following import bent, end_of, following
from framefree.look.view.handle import HandleFilter, HandleReference, handle_numbers
from framefree.look.view.meshes import meshes_of, note_on_missing
from framefree.look.view.page import is_loopback, what_host_means
from framefree.look.view.viser_server import PromptClock, ThreadSafeEvent
from framefree.machine import Shape
from framefree.machine.read import read
from framefree.simulate.touching import depths
from framefree.solve import assemble

CUBE = """solid cube
facet normal 0 0 1
outer loop
vertex 0 0 0
vertex 1 0 0
vertex 0 1 0
endloop
endfacet
facet normal 0 0 1
outer loop
vertex 0 0 1
vertex 1 0 1
vertex 0 1 1
endloop
endfacet
endsolid cube
"""
URDF = """<robot name="r"><link name="a"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><geometry><mesh filename="{}"/></geometry></visual></link></robot>"""


@pytest.mark.parametrize("frame", ["tip", ""])
def test_a_handle_gives_the_derivatives_of_what_it_gives(frame):
    """Twist and acceleration against differences of the pose, within a piece of time."""
    numbers = handle_numbers("handle")
    filter_ = HandleFilter("handle", (0.1, 0.2, 0.3), (1, 0, 0, 0), 8.0)
    filter_.move((0.5, 0.1, 0.0), batch.wxyz(batch.rotation_exp(np.array([0.3, -0.8, 0.5]))))
    for k in range(7):
        values = filter_(0.01 * k, 0.01)
    vector = [values[name] for name in numbers.names]
    t = ca.SX.sym("t")
    signals = HandleReference(numbers, frame).at(t)
    f = ca.Function("f", [t, numbers.symbols], list(signals.values()))
    at, h = 0.064, 1e-6
    before, now, after = ([np.array(v) for v in f(s, vector)] for s in (at - h, at, at + h))
    if frame:
        rate = np.linalg.solve(now[0], (after[0] - before[0]) / (2 * h))
        twist = [*rate[:3, 3], rate[2, 1], rate[0, 2], rate[1, 0]]
    else:
        machine = MACHINES["quadcopter"]()
        moved = machine.difference(before[0].ravel(), after[0].ravel())
        twist = np.asarray(moved) / (2 * h)
    # The rate of a turning handle is exact at the beginning of a piece, and nearly within it.
    np.testing.assert_allclose(now[1].ravel()[:3], twist[:3], atol=1e-5)
    np.testing.assert_allclose(now[1].ravel()[3:], twist[3:], atol=2e-2)
    difference = (after[1] - before[1]).ravel() / (2 * h)
    np.testing.assert_allclose(now[2].ravel(), difference, atol=1e-5)


def test_what_follows_a_handle_arrives_and_does_not_overshoot():
    filter_ = HandleFilter("h", (0, 0, 0), (1, 0, 0, 0), 10.0)
    filter_.move((1, 0, 0), (1, 0, 0, 0))
    way = [filter_(0.01 * k, 0.01)["h.x"] for k in range(200)]
    assert np.all(np.diff(way) >= 0)
    assert way[-1] == pytest.approx(1.0, abs=1e-6)
    # Critically damped: 1 - (1 + w t) exp(-w t).
    t = 0.01 * np.arange(200)
    np.testing.assert_allclose(way, 1 - (1 + 10 * t) * np.exp(-10 * t), atol=1e-12)


def test_an_attitude_follows_its_handle_along_the_logarithm_in_body_axes():
    """From rest, with goal g: g^-1 q = exp(e (1 + w t) exp(-w t)), and -w^2 e is the first pull."""
    rate, seconds = 10.0, 0.13
    first, goal = Rotation.from_rotvec([0.9, -0.4, 0.7]), Rotation.from_rotvec([-0.3, 0.8, 0.5])
    filter_ = HandleFilter("h", (0, 0, 0), first.as_quat(scalar_first=True), rate)
    filter_.move((0, 0, 0), goal.as_quat(scalar_first=True))
    behind = (goal.inv() * first).as_rotvec()
    begin, end = filter_(0.0, seconds), filter_(seconds, seconds)
    np.testing.assert_allclose(
        [begin[f"h.{b}"] for b in ("bx", "by", "bz")], -(rate**2) * behind, atol=1e-10
    )
    left = behind * (1 + rate * seconds) * np.exp(-rate * seconds)
    there = Rotation.from_quat([end[f"h.{q}"] for q in ("qw", "qx", "qy", "qz")], scalar_first=True)
    np.testing.assert_allclose((goal.inv() * there).as_rotvec(), left, atol=1e-12)


@pytest.mark.parametrize("name", ["four-bars", "five-bar", "crane"])
def test_joints_stay_closed_as_they_are_moved(name):
    machine = MACHINES[name]().numeric
    joints = ClosedJoints(machine, assemble(machine))
    start, rng = joints.x.copy(), np.random.default_rng(0)
    for _ in range(8):
        index = int(rng.integers(machine.nx))
        before = joints.x.copy()
        x = joints.set(index, before[index] + rng.uniform(-0.2, 0.2))
        again = assemble(machine, x)  # what is closed already stays where it is
        assert np.abs(machine.difference(x, again)).max() < 1e-9
    assert np.abs(joints.x - start).max() > 1e-3


def test_the_end_of_a_machine_is_no_frame_that_closes_a_loop():
    """The piston of the crane is deeper in its tree than the arm that people would move."""
    assert end_of(MACHINES["crane"]()) == "tip"
    assert end_of(MACHINES["crane-model"]()) == "tip"
    assert end_of(MACHINES["quadcopter"]()) == "body"  # and no rotor


def test_the_end_and_a_good_start_of_an_arm():
    machine = MACHINES["seven-joint-arm"]()
    assert end_of(machine) == "link_7_l"
    assert end_of(MACHINES["two-armed-robot-with-object"]()) == "object"
    x = bent(machine, "link_7_l", machine.neutral())
    machine.validate(x, limits=True)
    assert following(machine, x).frame == "link_7_l"


def test_a_machine_that_nothing_drives_says_so():
    made = following(MACHINES["heavy-top"](), MACHINES["heavy-top"]().neutral())
    assert made.law is None or made.notes


@pytest.fixture
def package(tmp_path):
    """A package as other tools lay it out: robot_description/{urdf,meshes}."""
    root = tmp_path / "share" / "robot_description"
    for name in ("urdf", "meshes"):
        (root / name).mkdir(parents=True)
    (root / "package.xml").write_text("<package/>")
    (root / "meshes" / "a.stl").write_text(CUBE)
    return root


@pytest.mark.parametrize("address", ["package://robot_description/meshes/a.stl", "../meshes/a.stl"])
def test_meshes_of_the_package_around_a_model_are_found(package, address):
    file = package / "urdf" / "r.urdf"
    file.write_text(URDF.format(address))
    machine = read(file)
    shown, problems = meshes_of(machine)
    assert problems == []
    assert shown[0].mesh.bounds.tolist() == [[0, 0, 0], [1, 1, 1]]
    assert note_on_missing(machine) == ""


@pytest.mark.parametrize(
    "address",
    [
        "package://robot_description/../../secret.stl",
        "package://robot_description/package.xml",
        "package://other/meshes/a.stl",
        "../../../secret.stl",
    ],
)
def test_nothing_outside_the_package_is_opened(package, address):
    (package.parent.parent / "secret.stl").write_text(CUBE)
    file = package / "urdf" / "r.urdf"
    file.write_text(URDF.format(address))
    machine = read(file)
    shown, problems = meshes_of(machine)
    assert shown == []
    assert len(problems) == 1
    note = note_on_missing(machine)
    assert "1 mesh files are not shown" in note
    assert "--packages FOLDER" in note


@pytest.mark.parametrize("kind", ["stl", "obj", "glb", "dae"])
def test_formats_of_meshes(tmp_path, kind):
    trimesh = pytest.importorskip("trimesh")
    box = trimesh.creation.box((1.0, 2.0, 3.0))
    path = tmp_path / f"box.{kind}"
    path.write_bytes(_as_bytes(trimesh, box, kind))
    machine = MACHINES["box"]().attach(
        Shape(MACHINES["box"]().bodies[0].name, "mesh", (1, 1, 1), file=str(path))
    )
    shown, problems = meshes_of(machine)
    assert problems == []
    np.testing.assert_allclose(shown[-1].mesh.extents, (1, 2, 3), atol=1e-6)


def _as_bytes(trimesh, mesh, kind):
    data = mesh.export(file_type=kind)
    return data if isinstance(data, bytes) else data.encode()


def test_a_broken_mesh_is_named(tmp_path):
    path = tmp_path / "broken.stl"
    path.write_bytes(b"\x00" * 100)
    body = MACHINES["box"]().bodies[0].name
    machine = MACHINES["box"]().attach(Shape(body, "mesh", (1, 1, 1), file=str(path)))
    _, problems = meshes_of(machine)
    assert "broken.stl" in problems[0]


@pytest.mark.parametrize("name", ["auv-arm", "crane", "scara", "ball-chain"])
def test_poses_of_very_many_bodies_are_those_that_are_compiled(name, monkeypatch):
    machine = MACHINES[name]().numeric
    x = machine.random(np.random.default_rng(3))
    expected = drawing.ShownPoses(machine)(x)
    monkeypatch.setattr(drawing, "MANY", 0)
    np.testing.assert_allclose(drawing.ShownPoses(machine)(x), expected, atol=1e-12)


def test_units_of_a_figure_are_those_of_its_curves():
    assert in_units(("rad", "rad")) == " (rad)"
    assert in_units(("m", "m", "", "")) == " (m, 1)"
    assert in_units(("rad", "m")) == " (rad, m)"
    assert in_units(("", "")) == in_units(()) == ""


@pytest.mark.parametrize("size", [3e-12, 2e-7, 4e-4, 0.02, 0.5, 700.0, 3e5, 2e9])
def test_labels_of_a_figure_have_digits_that_tell_them_apart(size):
    """The page writes three digits after the point: small values would all be zero there."""
    rows = size * np.linspace(-1, 1, 9)[:, None]
    power = power_of(np.vstack([rows, [[np.nan]]]))
    shown = np.round(rows * 10.0**-power, 3)
    assert power % 3 == 0
    if size < 1e-9:  # what rounding leaves is shown as the zero that it is
        assert power == 0
    else:
        assert len(np.unique(shown)) == 9
        assert np.abs(shown).max() < 1e5


def test_what_a_host_means():
    assert is_loopback("127.0.0.1")
    assert is_loopback("localhost")
    assert is_loopback("::1")
    assert what_host_means("127.0.0.1") == ""
    words = what_host_means("0.0.0.0")
    assert "no password" in words
    assert "everyone" in words


@pytest.mark.parametrize(
    ("host", "port", "words"),
    [
        ("192.0.2.1", 18690, "nothing can listen at `192.0.2.1`"),
        ("no-such-host.invalid", 18690, "nothing can listen at `no-such-host.invalid`"),
        ("127.0.0.1", 99999, "`port` must be between 1 and 65535, got 99999"),
        ("127.0.0.1", 0, "`port` must be between 1 and 65535, got 0"),
    ],
)
def test_addresses_where_nothing_can_listen_are_told_at_once(host, port, words):
    """The server's own thread would fail, and nobody would be told."""
    with pytest.raises(ViewError, match=words):
        view(MACHINES["box"](), host=host, port=port)


def test_the_next_port_is_taken_where_one_is_in_use():
    with socket.create_server(("127.0.0.1", 18692)), view(MACHINES["box"](), port=18692) as shown:
        assert shown.port > 18692


def test_wrong_subjects_are_told():
    with pytest.raises(ViewError, match="a machine or a run can be shown, got int"):
        view(3)  # type: ignore[arg-type]


def test_a_machine_of_which_nothing_moves_is_shown_but_not_run(tmp_path):
    """A body that is fixed to the world by its file: no bodies, no coordinates."""
    file = tmp_path / "r.urdf"
    file.write_text(URDF.format("cube.stl"))
    (tmp_path / "cube.stl").write_text(CUBE)
    machine = read(file)
    assert not machine.bodies
    with view(machine, port=18690) as shown:
        assert shown.mode.sliders == {}  # type: ignore[attr-defined]
    with pytest.raises(ViewError, match=r"nothing of the machine moves.*--base free"):
        view(machine, live=True)


def test_a_thread_that_writes_messages_does_not_wake_others_itself():
    """The loop does: futures of asyncio belong to its own thread."""
    with ThreadPoolExecutor(1) as pool:  # a browser's loop may be running in this one
        pool.submit(_write_from_another_thread).result()


def _write_from_another_thread():
    woken, loop = [], asyncio.new_event_loop()
    event = ThreadSafeEvent(loop)

    async def wait():
        await event.wait()
        woken.append(threading.get_ident())

    def write():
        for _ in range(1000):
            event.set()

    task = loop.create_task(wait())
    loop.run_until_complete(asyncio.sleep(0))
    writer = threading.Thread(target=write)
    writer.start()
    writer.join()
    assert not event.is_set()
    loop.run_until_complete(task)
    assert woken == [threading.get_ident()]
    loop.close()
    event.set()


@pytest.mark.parametrize("length", [0.02, 0.09, 0.11, 0.4, 3.0])
def test_the_ground_is_seen_under_machines_of_all_sizes(length):
    """It fades with the distance from the camera, and not before it comes to the machine."""
    with view(revolute_chain(3, length=length), port=18690) as shown:
        camera = shown.server.initial_camera
        away = np.linalg.norm(np.subtract(camera.position, camera.look_at))
        assert shown.ground.fade_distance > 2.0 * away
        assert 0.3 < shown.ground.section_size / shown.drawing.reach < 3.3


@pytest.mark.parametrize("name", ["four-bars", "revolute-chain"])
def test_linkages_and_long_chains_run_live_from_their_first_state(name):
    """One has a start where its loops lose rank, the other ends in very light links."""
    with view(MACHINES[name](), live=True, port=18690) as shown:
        session = shown.mode.session
        session.pause()
        session.advance(0.1)
        assert session.failure == ""
        assert np.isfinite(session.observed()[1]["state", "x"]).all()


def test_a_quadruped_runs_live_from_where_its_feet_touch_the_ground():
    """Its knees are bodies and joints of one name, and at neutral it stands in the ground."""
    machine = MACHINES["quadruped"]()
    with view(machine, live=True, port=18690) as shown:
        x = shown.mode.first
        assert abs(depths(machine, x, machine.parameters.defaults).max()) < 1e-9
        shown.mode.session.pause()
        shown.mode.session.set({"push.z": 50.0})
        shown.mode.session.advance(0.02)
        assert shown.mode.session.failure == ""


def test_forces_are_offered_where_they_are_known():
    """No box without an effect: sliders of joints have no forces, a loop that runs has."""
    machine = MACHINES["block"]()
    with view(machine, port=18690) as shown:
        assert not {"joint forces", "contact forces"} & set(shown.boxes)
    with view(machine, live=True, port=18690) as shown:
        assert {"joint forces", "contact forces"} <= set(shown.boxes)
    with view(MACHINES["quadcopter"](), live=True, port=18690) as shown:
        shown.marks.want("joint forces", True)  # nothing holds a body that flies
        shown._draw(shown.mode.moment())
        assert shown.marks.scale("joint forces") == "joint forces: none"


def test_messages_of_the_view_are_not_held_back_for_smoothness():
    """Of one stamp all messages are shown as they come; those of other servers keep their times."""
    from viser.infra import _infra

    clock = PromptClock()
    ours, theirs = asyncio.new_event_loop(), asyncio.new_event_loop()
    clock.prompt.add(ours)

    async def stamp():
        return clock.perf_counter()

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(ours.run_until_complete, stamp()).result() == 0.0
        assert pool.submit(theirs.run_until_complete, stamp()).result() > 0.0
    assert clock.perf_counter() > 0.0
    assert clock.monotonic() > 0.0
    with view(MACHINES["double-pendulum"](), port=18690) as shown:
        loop = shown.server._websock_server._broadcast_buffer.event_loop
        future = asyncio.run_coroutine_threadsafe(_stamp_of(_infra), loop)
        assert future.result(60) == 0.0
    for one in (ours, theirs):
        one.close()


async def _stamp_of(module):
    return module.time.perf_counter()
