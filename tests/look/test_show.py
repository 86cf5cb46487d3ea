"""The machine as text and as a picture."""

import io
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from mjcf_samples import EVERYTHING, LINKAGE
from model_kinematics import Chain, example_urdfs
from rich.console import Console
from test_urdf import ARM
from test_write_urdf import MIMIC

from framefree.geometry import Moments
from framefree.look.picture import body_poses, start_of, svg
from framefree.look.show import describe, draw
from framefree.look.solids import ellipsoid, faces_of, triangle_normals, vertices_of
from framefree.machine import Body, Joint, Machine, MachineError, Prismatic, Revolute
from framefree.machine.read import read
from framefree.machine.shape import Shape


def text_of(machine, width=100):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(describe(machine))
    return console.file.getvalue()


def lines_of(machine, width=100):
    return [line.rstrip() for line in text_of(machine, width).splitlines()]


def test_the_tree_of_an_arm():
    machine = read(ARM.replace("</robot>", MIMIC + "</robot>"))
    assert lines_of(machine)[:13] == [
        "sample  3 bodies, 3 coordinates (nx), 3 velocities (nv), 2 inputs (nu), 6 kg",
        "",
        "body        joint  kind         x  mass",
        "world",
        "└ upper     lift   prismatic z  0  2 kg",
        "  └ lower   bend   revolute y   1  4 kg",
        "    └ grip  close  revolute x   2     -",
        "",
        "limits and forces of joints",
        "  joint          range    effort    speed    damping    friction",
        "  lift       -1 .. 2 m        30        4",
        "  bend     -1 .. 2 rad        30        4        0.5         0.2",
        "  close                        7        1",
    ]
    text = text_of(machine)
    for words in (
        "on lower: tool, tip",
        "on world: base",
        "close = 0.5 bend - 0.1",
        "motors on joints of their name, limited by its effort: lift, bend",
        "the mass of link `base`, 2 kg: it is fixed to the world",
    ):
        assert words in text, words


def test_everything_that_acts_is_named():
    pytest.importorskip("mujoco")
    text = text_of(read(EVERYTHING), 120)
    for words in (
        "gravity (0.3, -0.2, -9.7) m/s²",
        "drone_free",
        "lift_servo: JointForce on lift, a servo",
        "thrust: Wrench on rotor, input 0 .. 20",
        "keyframes (2)  home, initial",
        "stiffness",
    ):
        assert words in text, words
    text = text_of(read(LINKAGE))
    assert "pin: ball between pin_a and pin_b" in text
    assert "c = polynomial of b" in text


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_humanoid_fits_the_page(width):
    files = example_urdfs()
    if not files:
        pytest.skip("example-robot-data is not installed")
    machine = read(files["talos_data/talos_full_v2.urdf"], base="free")
    lines = lines_of(machine, width)
    assert max(map(len, lines)) <= width
    if width >= 80:
        first = lines.index("world")
        assert len(lines[first + 1 : lines.index("", first)]) == len(machine.bodies)
        for i, joint in enumerate(machine.joints[1:8], 1):
            assert str(machine.x_slice[joint.name].start) in lines[first + 1 + i]


def test_a_machine_of_nothing_and_a_tunable_one(tmp_path):
    empty = Machine((), ())
    assert "0 bodies" in text_of(empty)
    assert draw(empty, tmp_path / "empty.svg").is_file()
    body = Body("a", Moments.of_body(2.0, [0, 0, 0], np.eye(3)))
    machine = Machine((body,), (Joint("j", Revolute("z"), "world", "a"),)).tunable("a.mass")
    assert "tunable" in text_of(machine)
    assert draw(machine, tmp_path / "t.svg").is_file()


# ---------------------------------------------------------------------- the picture


def picture(machine, x=None):
    return ET.fromstring(svg(machine, start_of(machine) if x is None else x))


def count(root, tag):
    return sum(element.tag.endswith(tag) for element in root.iter())


def sample(**options):
    body = Body("a", Moments.of_body(2.0, [0, 0, 0.1], np.diag([0.02, 0.03, 0.04])))
    joints = (Joint("j", Prismatic("x"), "world", "a"),)
    return Machine((body,), joints, name="<odd> & name", **options)


def test_bodies_without_shapes_are_drawn_as_ellipsoids_and_joints_are_marked():
    root = picture(sample())
    assert count(root, "polygon") > 50
    assert count(root, "circle") == 1
    title = next(element.text for element in root.iter() if element.tag.endswith("title"))
    assert title == "<odd> & name"


def test_shapes_are_drawn_and_move_with_x():
    machine = sample(geometry=(Shape("a", "box", [1, 1, 1]),))
    root = picture(machine)
    assert count(root, "polygon") == 3  # the faces of a box that look at the eye
    assert len(picture(machine, np.array([2.0])).findall(".//*")) == len(root.findall(".//*"))
    x = np.array([2.0])
    np.testing.assert_allclose(body_poses(machine, x)["a"], Chain(machine)(x)["a"], atol=1e-15)


def test_the_file_and_the_state_are_checked(tmp_path):
    path = draw(sample(), tmp_path / "a.SVG")
    assert path.read_text(encoding="utf-8").startswith("<svg")
    with pytest.raises(MachineError, match=r"must be an `\.svg` file, got `a\.png`"):
        draw(sample(), tmp_path / "a.png")
    with pytest.raises(MachineError, match="`x` must have shape"):
        draw(sample(), tmp_path / "a.svg", np.zeros(3))


@pytest.mark.parametrize(
    ("shape", "volume"),
    [
        (Shape("a", "box", [1, 2, 3]), 6.0),
        (Shape("a", "sphere", [0.5]), np.pi / 6),
        (Shape("a", "ellipsoid", [1, 2, 0.5]), 4 * np.pi / 3),
        (Shape("a", "cylinder", [0.5, 2]), np.pi / 2),
        (Shape("a", "capsule", [0.5, 2]), np.pi / 2 + np.pi / 6),
    ],
)
def test_solids_are_closed_and_look_outwards(shape, volume):
    """The signed volume by the divergence theorem is that of the solid, less what facets cut."""
    faces = faces_of(shape)
    found, area = 0.0, np.zeros(3)
    for face in faces:
        for i in range(1, face.shape[1] - 1):
            corners = face[:, [0, i, i + 1]].T
            found += np.linalg.det(corners) / 6
            area += triangle_normals(corners[None])[0]
    assert found == pytest.approx(volume, rel=0.06)
    assert found <= volume * (1 + 1e-12)
    np.testing.assert_allclose(area, 0, atol=1e-12)
    assert all(np.isfinite(face).all() for face in ellipsoid(np.ones(3)))


def stl(tmp_path, name, triangles, binary):
    path = tmp_path / name
    if binary:
        data = np.zeros(len(triangles), [("n", "<f4", 3), ("c", "<f4", (3, 3)), ("e", "<u2")])
        data["c"] = triangles
        path.write_bytes(b"\0" * 80 + len(triangles).to_bytes(4, "little") + data.tobytes())
    else:
        rows = "\n".join(f" vertex {a} {b} {c}" for t in triangles for a, b, c in t)
        path.write_text(f"solid x\n{rows}\nendsolid")
    return path


def test_meshes_are_drawn_as_their_hull(tmp_path):
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    triangles = corners[[[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]]
    obj = tmp_path / "a.obj"
    obj.write_text("".join(f"v {a} {b} {c}\n" for a, b, c in corners))
    files = [stl(tmp_path, "b.stl", triangles, True), stl(tmp_path, "c.STL", triangles, False), obj]
    for file in files:
        faces = faces_of(Shape("a", "mesh", [2, 1, 1], file=str(file)))
        assert len(faces) == 4
        assert sum(np.linalg.det(face.T) / 6 for face in faces) == pytest.approx(2 / 6)


@pytest.mark.parametrize("data", [b"", b"solid", b"\0" * 84, b"\xff" * 200, b"v 1 2\nv e e e\n"])
def test_broken_and_missing_meshes_are_left_out(tmp_path, data):
    for name in ("a.stl", "a.obj", "a.dae", "a.unknown"):
        file = tmp_path / name
        file.write_bytes(data)
        assert vertices_of(str(file)) is None
    assert vertices_of("missing:/etc/passwd") is None
    assert vertices_of("package://arm/a.stl") is None
    machine = sample(geometry=(Shape("a", "mesh", [1, 1, 1], file=str(tmp_path / "a.stl")),))
    assert count(picture(machine), "polygon") > 50


def test_many_configurations_make_a_picture_that_moves(tmp_path):
    machine = sample()
    x = np.linspace(0, 1, 4)[:, None] * np.ones(machine.nx)
    path = draw(machine, tmp_path / "moving.svg", x, duration=2.0, trail=machine.bodies[-1].name)
    frames = [g for g in ET.parse(path).getroot() if g.tag.endswith("}g")]
    assert [g.get("display") for g in frames] == ["inline", "none", "none", "none"]
    times = [g[0].get("keyTimes") for g in frames]
    assert times[1] == "0;0.25000;0.50000"
    drawn = {ET.tostring(g[1]) for g in frames}
    assert len(drawn) == 4
