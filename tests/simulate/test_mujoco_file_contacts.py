"""Geoms of a model file touch in our runs as they do in MuJoCo's own."""

import numpy as np
import pytest

from framefree.machine import Contact, ContactShape, Machine
from framefree.machine.read import read
from framefree.simulate import SimulationError, simulate

mujoco = pytest.importorskip("mujoco")

SCENE = """
<mujoco model="scene">
  <option cone="{cone}" impratio="2" noslip_iterations="2"/>
  <default><geom solref="0.01 0.8" solimp="0.8 0.98 0.002" friction="0.6 0.01 0.001"/></default>
  <asset><mesh name="wedge" vertex="0 0 0  0.3 0 0  0 0.2 0  0 0 0.2  0.1 0.05 0.02"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1" friction="0.8" condim="4"/>
    <geom name="step" type="box" size="0.2 0.2 0.05" pos="0.1 0 0.05" euler="0 10 20"/>
    <body name="wedge" pos="-0.5 0 0.03"><freejoint/><geom type="mesh" mesh="wedge"/></body>
    <body name="egg" pos="0.1 0 0.4"><freejoint/>
      <geom type="ellipsoid" size="0.05 0.06 0.08" condim="6" priority="1" margin="0.002"/></body>
    <body name="upper" pos="0.8 0 0.35"><joint name="shoulder" axis="0 1 0" damping="0.02"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
      <geom type="sphere" size="0.05" pos="0.15 0 0.05" contype="0" conaffinity="0"/>
      <body name="lower" pos="0.3 0 0"><joint name="elbow" axis="0 1 0" damping="0.02"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
        <body name="hand" pos="0.3 0 0"><joint name="wrist" axis="0 1 0" damping="0.02"/>
          <geom type="cylinder" size="0.05 0.04"/></body></body></body>
  </worldbody>
  {more}
</mujoco>"""


def scene(cone="elliptic", more=""):
    return SCENE.format(cone=cone, more=more)


def theirs(text, steps, dt):
    """States and contact forces of MuJoCo's own run of a file."""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.timestep = dt
    data, rows = mujoco.MjData(model), []
    for _ in range(steps + 1):
        rows.append(np.concatenate([data.qpos, data.qvel]))
        mujoco.mj_step(model, data)
    return np.array(rows)


def ours(machine, steps, dt, **more):
    layout = machine.layout("mujoco")
    model = mujoco.MjModel.from_xml_string(scene())
    x0 = layout.x_from(model.qpos0)
    options = {"plant": "mujoco", "contacts": True, "integrator": "euler", "dt": dt} | more
    run = simulate(machine, x0=x0, duration=steps * dt, **options)
    q = np.array([layout.x_to(x) for x in run.x])
    w = np.array([layout.v_to(x, v) for x, v in zip(run.x, run.v, strict=True)])
    return run, np.hstack([q, w])


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_a_scene_moves_as_in_mujoco(cone):
    steps, dt = 300, 1e-3
    run, rows = ours(read(scene(cone)), steps, dt)
    expected = theirs(scene(cone), steps, dt)
    assert run["contact_normal_force"].max(axis=0).min() >= 0
    assert (run["contact_normal_force"][:-1].max(axis=0) > 0).sum() >= 3
    # vertices of a mesh are single precision, and impacts amplify what is left
    assert np.abs(rows - expected)[:150].max() < 1e-6
    assert np.abs(rows - expected).max() < 1e-4


def test_forces_of_all_contacts_carry_what_rests():
    machine = read(scene())
    run, _ = ours(machine, 3000, 1e-3, every=100)
    names = next(c.entries for c in run.channels if c.name == "contact_normal_force")
    wedge = machine.body("wedge").moments.total * 9.81
    force = run["contact_normal_force"][-1, names.index("world-wedge")]
    assert abs(force / wedge - 1) < 1e-3
    assert run["contact_gap"][0, names.index("world-wedge")] > 0.02
    assert not {"lower-upper", "upper-lower"} & set(names)  # parent and child
    assert "upper-hand" in names
    assert run.meta["contacts"]["impratio"] == [2.0]


def test_without_the_option_nothing_of_the_file_touches():
    run, rows = ours(read(scene()), 300, 1e-3, contacts=False)
    assert "contact_gap" not in run.signals
    assert rows[-1, 2] < -0.3


def test_exclusions_hold_and_follow_edits():
    pairs = (("upper", "hand"), ("world", "egg"))
    excluded = "".join(f'<exclude body1="{a}" body2="{b}"/>' for a, b in pairs)
    more = f"<contact>{excluded}</contact>"
    machine = read(scene(more=more))
    run, rows = ours(machine, 300, 1e-3)
    assert np.abs(rows - theirs(scene(more=more), 300, 1e-3))[:150].max() < 1e-6
    names = next(c.entries for c in run.channels if c.name == "contact_gap")
    assert not {"upper-hand", "world-egg"} & set(names)
    twice = machine.merge(machine, "other_")
    excluded = [p for p in twice.collisions if type(p).__name__ == "CollisionExclusion"]
    assert sorted(p.frame_b for p in excluded) == ["egg", "hand", "other_egg", "other_hand"]
    assert Machine.from_dict(machine.to_dict()) == machine
    assert not any("hand" in p.referred(p.frame_fields) for p in machine.detach("hand").collisions)


def test_contacts_of_ours_and_of_the_file_go_together():
    machine = read(scene())
    tray = Contact(
        "tray", "world", "egg", ContactShape("half_space", pose=(0, 0, 0.3)),
        ContactShape("sphere", 0.08), 1e5,
    )  # fmt: skip
    run, _ = ours(machine.attach(tray), 1500, 1e-3, every=50)
    weight = machine.body("egg").moments.total * 9.81
    assert abs(run["tray.normal_force"][-1] / weight - 1) < 1e-2
    names = next(c.entries for c in run.channels if c.name == "contact_normal_force")
    assert run["contact_normal_force"][-1, names.index("world-egg")] == 0
    assert abs(run.x[-1, machine.x_slice[machine.joints[1].name]][2] - 0.38) < 2e-3


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('<contact><pair geom1="floor" geom2="step"/></contact>', "<pair> of geoms `floor`"),
        ('<option><flag contact="disable"/></option>', "switches contact off"),
        (
            '<asset><hfield name="hills" nrow="2" ncol="2" size="1 1 1 1"/></asset>'
            '<worldbody><geom name="hills" type="hfield" hfield="hills"/></worldbody>',
            "geom `hills`: a height field",
        ),
    ],
)
def test_what_cannot_be_kept_of_a_file_is_refused_by_name(more, words):
    with pytest.raises(SimulationError, match=words):
        ours(read(scene(more=more)), 10, 1e-3)
