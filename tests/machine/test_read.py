"""Reading untrusted files: formats, options, and what a file may not do."""

import os

import numpy as np
import pytest

from framefree.errors import FramefreeError
from framefree.machine import MachineError
from framefree.machine.formats import markup
from framefree.machine.formats.markup import ReadError
from framefree.machine.read import read

try:
    import mujoco
except ImportError:
    mujoco = None

ROBOT = '<robot name="r"><link name="a"/></robot>'
BODY = '<body name="b"><joint name="j"/><geom size="0.1"/></body>'
MUJOCO = f"<mujoco><worldbody>{BODY}</worldbody></mujoco>"


def message_of(*args, **options):
    with pytest.raises(ReadError) as caught:
        read(*args, **options)
    assert isinstance(caught.value, MachineError)
    return str(caught.value)


def test_paths_text_and_bytes_are_one_model(tmp_path):
    path = tmp_path / "model"
    path.write_text(ROBOT)
    for given in (ROBOT, ROBOT.encode(), f"\n\t {ROBOT}", path, str(path), os.fspath(path)):
        assert read(given).name == "r"
    encoded = '<?xml version="1.0" encoding="utf-16"?>' + ROBOT
    assert read(encoded.encode("utf-16")).name == "r"


def test_the_format_is_seen_from_the_content():
    pytest.importorskip("mujoco")
    assert read(MUJOCO).nv == 1
    assert read(MUJOCO, format="mjcf").nv == 1
    assert message_of("<model/>") == (
        "the text, line 1: a model file starts with <robot> (URDF), <mujoco> (MJCF) or <sdf> "
        "(SDFormat), got <model>"
    )
    assert "`format` must be one of urdf, mjcf, sdf, got 'usd'" in message_of(ROBOT, format="usd")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"base": "floating"}, "`base`"),
        ({"mimic": True}, "`mimic`"),
        ({"without": "x"}, "`without`"),
    ],
)
def test_options_are_checked(options, words):
    assert words in message_of(ROBOT, **options)


def test_what_is_no_file_is_said(tmp_path):
    assert "does not exist" in message_of(tmp_path / "missing.urdf")
    assert "is not a file" in message_of(tmp_path)
    assert "is not a file" in message_of("/dev/zero")
    assert "cannot be read" in message_of("a\0b") or "does not exist" in message_of("a\0b")
    assert "cannot be read" in message_of("x" * 5000) or "does not exist" in message_of("x" * 5000)
    assert "must be a path" in message_of(3.0)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<",
        b"\x00" * 64,
        b"\xff\xfe\x00",
        b"<robot name='r'>",
        b"<robot name='r'/><robot/>",
        b"<robot name='&unknown;'/>",
        b'<?xml version="1.0" encoding="nonsense"?><robot/>',
        b'<?xml version="1.0" encoding="utf-7"?><robot/>',
        b"<robot name='r' name='s'/>",
    ],
)
def test_what_is_no_xml_is_refused(data):
    assert message_of(data).startswith("the text")


def test_document_types_and_entities_are_refused(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    laughs = "".join(f'<!ENTITY x{i + 1} "{f"&x{i};" * 10}">' for i in range(30))
    for text in (
        "<!DOCTYPE robot><robot name='r'/>",
        f"<!DOCTYPE r [<!ENTITY x0 'ha'>{laughs}]><robot name='&x30;'/>",
        f"<!DOCTYPE r [<!ENTITY x SYSTEM 'file://{secret}'>]><robot name='&x;'/>",
        f"<!DOCTYPE r SYSTEM 'file://{secret}'><robot name='r'/>",
    ):
        assert "document type" in message_of(text)


def test_size_depth_and_number_are_limited(monkeypatch, tmp_path):
    assert "nested more than" in message_of("<robot>" * 10_000)
    assert "more than" in message_of("<robot>" + "<a/>" * (markup.MAX_ELEMENTS + 1) + "</robot>")
    monkeypatch.setattr(markup, "MAX_BYTES", 1000)
    assert "at most" in message_of("<robot>" + " " * 1000 + "</robot>")


def test_no_mesh_outside_of_the_folder_and_the_packages(tmp_path):
    (tmp_path / "robot").mkdir()
    (tmp_path / "meshes").mkdir()
    outside = tmp_path / "meshes" / "a.stl"
    outside.write_text("solid")
    inside = tmp_path / "robot" / "in.stl"
    inside.write_text("solid")
    link = tmp_path / "robot" / "link.stl"
    link.symlink_to(outside)
    path = tmp_path / "robot" / "r.urdf"

    def file_of(reference, **options):
        path.write_text(
            '<robot name="r"><link name="a"><visual><geometry>'
            f'<mesh filename="{reference}"/></geometry></visual></link></robot>'
        )
        return read(path, **options).geometry[0].file

    assert file_of("in.stl") == str(inside)
    assert file_of("./x/../in.stl") == str(inside)
    for reference in ("../meshes/a.stl", str(outside), f"file://{outside}", "link.stl"):
        assert file_of(reference) == f"missing:{reference}"
    assert file_of("package://arm/a.stl") == "package://arm/a.stl"
    assert file_of("package://arm/a.stl", packages={"arm": tmp_path / "meshes"}) == str(outside)
    assert file_of("package://meshes/a.stl", packages=[tmp_path]) == str(outside)
    wrong = "package://arm/../robot/in.stl"
    assert file_of(wrong, packages={"arm": tmp_path / "meshes"}) == str(inside)
    wrong = "package://arm/../other.stl"
    (tmp_path / "other.stl").write_text("solid")
    assert file_of(wrong, packages={"arm": tmp_path / "meshes"}) == wrong


@pytest.mark.skipif(mujoco is None, reason="needs mujoco")
class TestMjcfFiles:
    def test_includes_defaults_and_meshes_in_the_folder(self, tmp_path):
        (tmp_path / "parts" / "deep").mkdir(parents=True)
        (tmp_path / "assets").mkdir()
        cube = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float) * 0.1
        faces = "".join(f"v {a} {b} {c}\n" for a, b, c in cube)
        faces += "f 1 2 4\nf 1 4 3\nf 5 7 8\nf 5 8 6\nf 1 5 6\nf 1 6 2\n"
        faces += "f 3 4 8\nf 3 8 7\nf 1 3 7\nf 1 7 5\nf 2 6 8\nf 2 8 4\n"
        (tmp_path / "assets" / "cube.obj").write_text(faces)
        (tmp_path / "parts" / "body.xml").write_text(
            '<mujocoinclude><body name="c" pos="0 0 1"><joint name="k" class="soft"/>'
            '<geom type="mesh" mesh="cube" density="1000"/><include file="deep/site.xml"/></body>'
            "</mujocoinclude>"
        )
        (tmp_path / "parts" / "deep" / "site.xml").write_text(
            '<mujocoinclude><site name="s" pos="1 2 3"/></mujocoinclude>'
        )
        main = tmp_path / "main.xml"
        main.write_text(
            '<mujoco><compiler meshdir="assets"/><default><default class="soft">'
            '<joint damping="3" axis="0 1 0"/></default></default>'
            '<asset><mesh file="cube.obj"/></asset><worldbody>'
            '<include file="parts/body.xml"/></worldbody></mujoco>'
        )
        machine = read(main)
        assert machine.body("c").moments.total == pytest.approx(1.0)
        assert machine.joint("k").damping[0] == 3
        np.testing.assert_array_equal(machine.frame("s").pose[:3, 3], [1, 2, 3])
        (shape,) = machine.geometry
        assert shape.file == str(tmp_path / "assets" / "cube.obj")
        # MuJoCo centers a mesh; the shape's pose takes the file's own vertices to their place.
        np.testing.assert_allclose(shape.pose, np.eye(4), atol=1e-12)

    @pytest.mark.parametrize(
        "asset",
        [
            '<mesh file="{outside}"/>',
            '<mesh file="../a.stl"/>',
            '<mesh file="link.stl"/>',
            '<mesh name="x" file="missing.stl"/>',
            '<hfield name="h" file="../a.stl" size="1 1 1 1"/>',
            '<model name="m" file="../main.xml"/>',
        ],
    )
    def test_files_outside_are_refused(self, tmp_path, asset):
        (tmp_path / "in").mkdir()
        outside = tmp_path / "a.stl"
        outside.write_text("solid")
        (tmp_path / "in" / "link.stl").symlink_to(outside)
        path = tmp_path / "in" / "m.xml"
        path.write_text(f"<mujoco><asset>{asset.format(outside=outside)}</asset></mujoco>")
        message = message_of(path)
        assert message.startswith("m.xml, <")
        assert "line 1" in message
        text = path.read_text()
        assert "line 1" in message_of(text)

    def test_folders_of_the_compiler_cannot_lead_outside(self, tmp_path):
        (tmp_path / "in").mkdir()
        (tmp_path / "a.stl").write_text("solid")
        path = tmp_path / "in" / "m.xml"
        for folder in ("..", str(tmp_path), "/", "../in/.."):
            path.write_text(
                f'<mujoco><compiler assetdir="{folder}"/><asset><mesh file="a.stl"/></asset>'
                "</mujoco>"
            )
            assert "`a.stl` is not a file in the model's folder" in message_of(path)

    def test_includes_outside_and_in_circles_are_refused(self, tmp_path):
        (tmp_path / "in").mkdir()
        (tmp_path / "out.xml").write_text("<mujocoinclude/>")
        path = tmp_path / "in" / "m.xml"
        path.write_text('<mujoco><include file="../out.xml"/></mujoco>')
        assert "not a file in the model's folder" in message_of(path)
        path.write_text('<mujoco><include file="m.xml"/></mujoco>')
        assert "included twice" in message_of(path)
        assert "not a file in the model's folder" in message_of(path.read_text())

    def test_bombs_are_refused(self):
        nested = '<replicate count="999">' * 4 + BODY + "</replicate>" * 4
        assert "refused" in message_of(f"<mujoco><worldbody>{nested}</worldbody></mujoco>")
        field = '<hfield name="h" nrow="90000" ncol="90000" size="1 1 1 1"/>'
        assert "height field" in message_of(f"<mujoco><asset>{field}</asset></mujoco>")
        for number in ("30000", "3e4", "inf"):
            mesh = f'<mesh name="m" builtin="supersphere" params="{number} 1 1"/>'
            assert "more than 40000 squares" in message_of(
                f"<mujoco><asset>{mesh}</asset></mujoco>"
            )
        long = f'<replicate count="40000">{BODY}</replicate>'
        words = message_of(f"<mujoco><worldbody>{long}</worldbody></mujoco>")
        assert "more than 5000 elements" in words
        plates = '<mesh name="{}" builtin="plate" params="150 150"/>'
        plates = plates.format("a") + plates.format("b")
        assert "squares in all" in message_of(f"<mujoco><asset>{plates}</asset></mujoco>")
        harmless = (
            '<mujoco><size memory="900T"/><custom><numeric name="n" size="2000000000"/></custom>'
            '<asset><texture name="t" type="2d" builtin="flat" width="90000" height="90000"/>'
            f"</asset><worldbody>{BODY}</worldbody></mujoco>"
        )
        assert read(harmless).nv == 1

    def test_errors_of_the_compiler_lead_to_the_file(self, tmp_path):
        (tmp_path / "part.xml").write_text(
            '<mujocoinclude>\n<body name="light">\n<joint/>\n</body>\n</mujocoinclude>'
        )
        path = tmp_path / "m.xml"
        path.write_text('<mujoco><worldbody><include file="part.xml"/></worldbody></mujoco>')
        message = message_of(path)
        assert "mass and inertia of moving bodies must be larger than mjMINVAL" in message
        if "line" in message:  # early versions of MuJoCo 3 give none
            assert message.startswith("part.xml, <body> `light`, line 2: mass and")
        path.write_text('<mujoco>\n<worldbody>\n<geom sise="1"/></worldbody></mujoco>')
        assert message_of(path).startswith("m.xml, <geom>, line 3: MJCF has no attribute `sise`")

    def test_nothing_is_written_to_the_current_folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        machine = read(MUJOCO.replace("<worldbody>", '<compiler settotalmass="3"/><worldbody>'))
        assert list(tmp_path.iterdir()) == []
        if int(mujoco.__version__.split(".")[0]) >= 4:  # where this attribute is deprecated
            assert any("settotalmass" in message for message in machine.problems)


def test_without_mujoco_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mujoco", None)
    assert "framefree[models]" in message_of(MUJOCO)


def test_only_framefree_errors_reach_the_caller():
    assert issubclass(ReadError, FramefreeError)
