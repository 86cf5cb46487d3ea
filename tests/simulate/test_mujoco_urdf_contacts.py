"""Contact of URDF and SDF files on MuJoCo as the plant, against MuJoCo's own run of the file."""

import numpy as np
import pytest

import framefree as ff
from framefree.machine import CollisionShape
from framefree.simulate import SimulationError

mujoco = pytest.importorskip("mujoco")

LINK = """
  <link name="{name}">
    <inertial><origin xyz="0.2 0 0"/><mass value="1.5"/>
      <inertia ixx="0.002" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><origin xyz="0.2 0 0" rpy="0 1.5707963267948966 0"/>
      <geometry>{solid}</geometry></collision>
  </link>"""
JOINT = """
  <joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>
    <origin xyz="{at}"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" effort="100" velocity="100"/></joint>"""


def urdf(solid):
    links = LINK.format(name="upper", solid=solid) + LINK.format(name="lower", solid=solid)
    joints = JOINT.format(
        name="shoulder", kind="revolute", parent="stand", child="upper", at="0 0 0.35"
    ) + JOINT.format(name="elbow", kind="revolute", parent="upper", child="lower", at="0.4 0 0")
    return f'<robot name="flail"><link name="stand"/>{links}{joints}</robot>'


SOLIDS = {
    "cylinder": '<cylinder radius="0.03" length="0.4"/>',
    "box": '<box size="0.05 0.06 0.4"/>',
    "sphere": '<sphere radius="0.05"/>',
}


@pytest.mark.parametrize("solid", SOLIDS)
def test_a_run_is_that_of_mujoco_with_the_same_file(solid, tmp_path):
    path = tmp_path / "flail.urdf"
    path.write_text(urdf(SOLIDS[solid]))
    floor = CollisionShape("floor", "world", "plane", (5, 5, 0.1))
    machine = ff.read(path).attach(floor)
    run = ff.simulate(machine, duration=0.8, dt=1e-3, plant="mujoco", contacts=True)

    spec = mujoco.MjSpec.from_string(urdf(SOLIDS[solid]))
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=(5, 5, 0.1))
    spec.option.cone, spec.option.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 10.0
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_RK4
    spec.option.timestep = 1e-3
    model = spec.compile()
    model.jnt_limited[:] = 0
    data = mujoco.MjData(model)
    touched = False
    for k in range(801):
        np.testing.assert_allclose(data.qpos, run.x[k], atol=1e-6)
        touched = touched or data.ncon > 0
        mujoco.mj_step(model, data)
    assert touched
    assert run["contact_normal_force"].max() > 1.0


def test_meshes_by_their_hulls_and_what_cannot_be_kept_is_named(tmp_path):
    corners = np.array(
        [[x, y, z] for x in (-0.02, 0.02) for y in (-0.03, 0.03) for z in (-0.2, 0.2)]
    )
    faces = [(1, 2, 4), (1, 4, 3), (5, 7, 8), (5, 8, 6), (1, 5, 6), (1, 6, 2), (3, 4, 8), (3, 8, 7),
             (1, 3, 7), (1, 7, 5), (2, 6, 8), (2, 8, 4)]  # fmt: skip
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + [f"f {a} {b} {c}" for a, b, c in faces]
    (tmp_path / "rod.obj").write_text("\n".join(lines))
    floor = CollisionShape("floor", "world", "plane", (5, 5, 0.1))
    runs = []
    for name, solid in (
        ("mesh", '<mesh filename="rod.obj"/>'),
        ("box", '<box size="0.04 0.06 0.4"/>'),
    ):
        (tmp_path / f"{name}.urdf").write_text(urdf(solid))
        machine = ff.read(tmp_path / f"{name}.urdf").attach(floor)
        runs.append(ff.simulate(machine, duration=0.5, dt=1e-3, plant="mujoco", contacts=True))
    free = ff.simulate(machine.replace(collisions=()), duration=0.5, dt=1e-3, plant="mujoco")
    assert np.abs(runs[0].x - free.x).max() > 1e-2
    np.testing.assert_allclose(runs[0].x, runs[1].x, atol=5e-3)
    (tmp_path / "bad.urdf").write_text(urdf('<mesh filename="rod.dae"/>'))
    machine = ff.read(tmp_path / "bad.urdf").attach(floor)
    with pytest.raises(SimulationError, match=r"MuJoCo reads meshes of the kinds .stl, .obj, .msh"):
        ff.simulate(machine, duration=0.1, dt=1e-3, plant="mujoco", contacts=True)
    ff.simulate(machine, duration=0.01, dt=1e-3)  # our own equations do not use it


def test_sdf_too(tmp_path):
    text = """<sdf version="1.9"><model name="ball"><link name="ball"><pose>0 0 0.5 0 0 0</pose>
      <inertial><mass>2</mass>
      <inertia><ixx>0.01</ixx><iyy>0.01</iyy><izz>0.01</izz></inertia></inertial>
      <collision name="c"><geometry><sphere><radius>0.1</radius></sphere></geometry></collision>
      </link></model></sdf>"""
    path = tmp_path / "ball.sdf"
    path.write_text(text)
    machine = ff.read(path).attach(CollisionShape("floor", "world", "plane", (5, 5, 0.1)))
    run = ff.simulate(machine, duration=2.0, dt=1e-3, plant="mujoco", contacts=True)
    assert 0.5 + run.x[-1, 2] == pytest.approx(0.1, abs=1e-3)
    assert run["contact_normal_force"][-1].max() == pytest.approx(2 * 9.81, rel=1e-3)
