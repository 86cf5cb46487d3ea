"""Where models come from: the cache of robot_descriptions, xacro, included SDFormat models."""

from pathlib import Path

import numpy as np
import pytest

from framefree.machine import Continuous, Free
from framefree.machine.formats.markup import ReadError
from framefree.machine.read import read

MODELS = Path(__file__).parents[1] / "data" / "models"
PENDULUM = """<robot name="pendulum"><link name="base"/><link name="bob"><inertial>
<mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
<visual><geometry><mesh filename="package://pendulum_package/bob.stl"/></geometry></visual></link>
<joint name="j" type="continuous"><parent link="base"/><child link="bob"/></joint></robot>"""
MODULE = """from os import getenv as _getenv
from os import path as _path
from ._cache import clone_to_cache as _clone_to_cache
raise RuntimeError("importing this would fetch a repository")
REPOSITORY_PATH: str = _clone_to_cache("pendulums", commit=_getenv("COMMIT", None))
PACKAGE_PATH: str = _path.join(REPOSITORY_PATH, "robots", "pendulum_package")
URDF_PATH: str = _path.join(PACKAGE_PATH, "urdf", "pendulum.urdf")
"""
REPOSITORIES = """REPOSITORIES = {
    "pendulums": Repository(url="https://example.org/p", commit="0", cache_path="pendulums_ros"),
}"""


@pytest.fixture
def descriptions(tmp_path, monkeypatch):
    """A package of the name robot_descriptions with one robot, and its cache."""
    package = tmp_path / "site" / "robot_descriptions"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "pendulum_description.py").write_text(MODULE)
    (package / "_repositories.py").write_text(REPOSITORIES)
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setenv("ROBOT_DESCRIPTIONS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "pendulums_ros" / "robots" / "pendulum_package"


def test_a_robot_of_the_cache_is_read_and_nothing_is_fetched(descriptions):
    with pytest.raises(ReadError, match="not in the cache"):
        read("robot_descriptions:pendulum")
    (descriptions / "urdf").mkdir(parents=True)
    (descriptions / "urdf" / "pendulum.urdf").write_text(PENDULUM)
    (descriptions / "bob.stl").write_text("solid")
    for name in ("pendulum", "pendulum_description"):
        machine = read(f"robot_descriptions:{name}", base="free")
        assert [type(joint.kind) for joint in machine.joints] == [Free, Continuous]
        assert machine.geometry[0].file == str((descriptions / "bob.stl").resolve())
    with pytest.raises(ReadError, match="did you mean `pendulum`"):
        read("robot_descriptions:pendulun")


def test_without_the_package_it_says_so(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ReadError, match="not installed"):
        read("robot_descriptions:panda")


def test_a_xacro_file_is_named_as_one(tmp_path):
    path = tmp_path / "arm.urdf.xacro"
    path.write_text('<robot name="r">\n<xacro:macro name="m"/></robot>')
    with pytest.raises(ReadError, match=r"line 2: <xacro:macro> of xacro.*`xacro arm.urdf.xacro >"):
        read(path)
    path.write_text('<robot name="r"><link name="${prefix}a"/></robot>')
    with pytest.raises(ReadError, match="an expression of xacro"):
        read(path)
    path.write_text('<robot name="r"><link name="a"/></robot>')
    assert read(path).name == "r"


def test_included_models_lie_where_the_file_puts_them():
    machine = read(MODELS / "cart.sdf")
    assert [body.name for body in machine.bodies] == ["deck", "left::rim", "right::rim"]
    rear, turn = np.eye(4), 0.1
    rear[:2, :2] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
    rear[0, 3] = -0.3
    axle = rear.copy()
    axle[:3, 3] = (rear @ [0, 0.2, -0.1, 1])[:3]
    np.testing.assert_allclose(machine.frame("left::axle").pose[:3, 3], [0, 0.05, 0], atol=1e-15)
    joint = machine.joint("left_axle")
    np.testing.assert_allclose(joint.parent_pose[:3, 3], axle[:3, 3], atol=1e-15)


def test_what_an_sdf_file_may_not_include(tmp_path):
    def problem(uri):
        text = (
            f'<sdf version="1.8"><model name="m"><include><uri>{uri}</uri></include></model></sdf>'
        )
        (tmp_path / "a").mkdir(exist_ok=True)
        (tmp_path / "a" / "m.sdf").write_text(text)
        with pytest.raises(ReadError) as caught:
            read(tmp_path / "a" / "m.sdf")
        return str(caught.value)

    (tmp_path / "secret.sdf").write_text('<sdf version="1.8"><model name="s"/></sdf>')
    assert "nothing is fetched" in problem("https://fuel.example.org/model")
    assert "is not found" in problem("../secret.sdf")
    assert "is not found" in problem("model://nowhere")
    assert "nested more than" in problem("m.sdf") or "are included" in problem("m.sdf")
