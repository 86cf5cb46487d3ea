"""Loops whose numbers are rounded: closed as far as their digits allow, and run like exact ones."""

import numpy as np
import pytest

from framefree.geometry import Moments
from framefree.machine import Body, Frame, Joint, Loop, Machine, MachineError, Revolute
from framefree.machine.closure import LoopClosure
from framefree.machine.read import read
from framefree.motion.constrained import Constrained
from framefree.motion.constrained.project import ClosureError
from framefree.simulate import simulate

LENGTHS = {"crank": 0.3, "coupler": 0.6, "rocker": 0.5}
START = np.array([-0.5, 0.3, -1.2])


def at(x, y=0.0, tilt=0.0):
    c, s = np.cos(tilt), np.sin(tilt)
    pose = np.eye(4)
    pose[:3, :3] = [[1, 0, 0], [0, c, -s], [0, s, c]]
    pose[:3, 3] = x, y, 0
    return pose


def four_bar(aside=0.0, tilt=0.0, tolerance=1e-10, masses=(1.0, 1.0, 1.0)):
    """A planar four-bar; its far pivot may lie aside of the plane, or be tilted out of it."""
    bodies = [
        Body(name, Moments.of_body(m, [l / 2, 0, 0], m * np.diag([1e-3, 0.02, 0.02])))
        for (name, l), m in zip(LENGTHS.items(), masses, strict=True)
    ]
    joints = [
        Joint("a", Revolute("y"), "world", "crank"),
        Joint("b", Revolute("y"), "crank", "coupler", at(0.3)),
        Joint("c", Revolute("y"), "world", "rocker", at(0.8, aside, tilt)),
    ]
    frames = [Frame("e", "coupler", at(0.6)), Frame("f", "rocker", at(0.5))]
    loop = Loop("close", "hinge", "e", "f", axis="y", tolerance=tolerance)
    return Machine(bodies, joints, frames, loops=[loop], name="four_bar")


@pytest.mark.parametrize("off", [{"aside": 3e-8}, {"tilt": 3e-8}, {"aside": 2e-8, "tilt": 2e-8}])
def test_a_rounded_loop_runs_like_the_exact_one(off):
    with pytest.raises(ClosureError, match="give it a `tolerance`"):
        Constrained(four_bar(**off)).assemble(START)
    exact, rounded = four_bar(), four_bar(**off, tolerance=1e-7)
    x = Constrained(rounded).assemble(START)
    np.testing.assert_allclose(x, Constrained(exact).assemble(START), atol=1e-6)
    ends = [simulate(m, duration=0.3, dt=1e-3, x0=x).x[-1] for m in (exact, rounded)]
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-5)
    assert np.abs(ends[0] - x).max() > 0.3  # it moves: rounding has not locked it


def test_what_rounding_does_not_explain_is_refused():
    with pytest.raises(ClosureError) as caught:
        Constrained(four_bar(aside=1e-3, tolerance=1e-7)).assemble(START)
    assert "tolerance" not in str(caught.value)
    with pytest.raises(MachineError, match=r"at most 0\.001"):
        four_bar(tolerance=0.1)


URDF = """<robot name="r"><link name="w"/>{links}
<joint name="a" type="continuous"><parent link="w"/><child link="crank"/><axis xyz="0 1 0"/></joint>
<joint name="b" type="continuous"><parent link="crank"/><child link="coupler"/>
 <origin xyz="0.3 0 0"/><axis xyz="0 1 0"/></joint>
<joint name="c" type="continuous"><parent link="w"/><child link="rocker"/>
 <origin xyz="{far} {aside} 0"/><axis xyz="0 1 0"/></joint>
<loop_joint name="close" type="revolute"><link1 link="coupler" xyz="0.6 0 0"/>
 <link2 link="rocker" xyz="0.5 0 0" rpy="{tilt} 0 0"/><axis xyz="0 1 0"/></loop_joint></robot>"""
LINK = """<link name="{}"><inertial><origin xyz="{} 0 0"/><mass value="1"/>
<inertia ixx="0.001" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>"""


def test_a_file_s_own_digits_tell_how_far_its_loops_may_be_open():
    links = "".join(LINK.format(name, l / 2) for name, l in LENGTHS.items())
    rounded = read(URDF.format(links=links, far="0.8000000", aside="0.0000003", tilt="0.0000002"))
    assert rounded.loops[0].tolerance == pytest.approx(1e-6)
    run = simulate(rounded, duration=0.1, dt=1e-3)
    assert run.status == "finished"
    assert np.abs(run.x[-1] - run.x[0]).max() > 1e-3
    plain = read(URDF.format(links=links, far="0.8", aside="0", tilt="0"))
    assert plain.loops[0].tolerance == 1e-10
    open_ = read(URDF.format(links=links, far="0.8", aside="0.01", tilt="0"))
    with pytest.raises(ClosureError):
        simulate(open_, duration=0.1, dt=1e-3)


def test_mass_weights_close_what_unit_weights_close():
    rng = np.random.default_rng(0)
    for _ in range(20):
        machine = four_bar(masses=10.0 ** rng.uniform(-6, 4, 3))
        eom, x = Constrained(machine), rng.uniform(-1.5, 1.5, 3)
        for weight in ("unit", "mass"):
            assert eom.project(x, weight=weight).position_error <= 1e-10


def test_closed_configurations_of_a_check_lie_within_limits():
    machine = four_bar().replace("joint:c", lower=-1.75, upper=-1.6)
    x = LoopClosure(machine).closed(machine.random(np.random.default_rng(0), 40), 20)
    assert len(x) == 20
    assert (x[:, 2] >= -1.75).all()
    assert (x[:, 2] <= -1.6).all()
