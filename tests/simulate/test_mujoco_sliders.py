"""Slider loops on MuJoCo move as those of our own plant, and weigh the same."""

import numpy as np
import pytest

from framefree.gallery.machines.arms import revolute_chain
from framefree.geometry import Moments, so3
from framefree.machine import Body, Frame, Free, Joint, Loop, Machine
from framefree.machine.actuators import motors
from framefree.motion import equations
from framefree.simulate import Grasp, Release, simulate
from framefree.solve import assemble

mujoco = pytest.importorskip("mujoco")
TURN = so3.exp(np.array([0.3, -0.2, 0.5])).full()


def placed(R, *p):
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = R, p
    return pose


def arms_on_a_rail(way):
    """Two pendulums: a free body between them slides on one, and on a rail of the world.

    `way` says which side of the loop the world is.
    """
    block = Body("block", Moments.of_body(0.7, (0.02, 0.01, -0.03), np.diag([3e-3, 4e-3, 5e-3])))
    machine = Machine(
        (block,), (Joint("block", Free(), "world", "block"),), gravity=(0.4, 0.2, -9.81)
    )
    rail = Frame("rail", "world", placed(TURN, 0.1, 0.2, 0.3))
    on_block = Frame("on_block", "block", placed(TURN.T, 0.05, 0, 0.02))
    frames = ("rail", "on_block") if way == "world first" else ("on_block", "rail")
    rest = placed(so3.exp(np.array([0.1, 0.2, 0.0])).full(), 0.01, 0.02, 0.0)
    loop = Loop("slide", "slider", *frames, axis=(1.0, 0.5, -0.3), rest=rest)
    return machine.attach(rail, on_block, loop)


@pytest.mark.parametrize("way", ["world first", "world last"])
def test_a_block_slides_as_on_our_plant(way):
    machine = arms_on_a_rail(way)
    x0 = assemble(machine, [0.1, 0.2, 0.3, 1, 0, 0, 0])
    options = {"duration": 0.5, "dt": 1e-3, "every": 10}
    own = simulate(machine, None, None, x0, **options)
    other = simulate(machine, None, None, x0, plant="mujoco", **options)
    travelled = np.linalg.norm(own.x[-1, :3] - own.x[0, :3])
    assert travelled > 0.04
    assert np.abs(own.x - other.x).max() < 5e-3 * travelled
    # Free fall along the rail: half of what gravity is along it times the time squared.
    path = own.x[:, :3] - own.x[0, :3]
    direction = path[-1] / travelled
    along = np.array(machine.gravity) @ direction
    expected = np.outer(along * other.t**2 / 2, direction)
    np.testing.assert_allclose(other.x[:, :3] - other.x[0, :3], expected, atol=5e-3 * travelled)


def test_first_speeds_are_those_of_the_loop():
    machine = arms_on_a_rail("world first")
    x0 = assemble(machine, [0.1, 0.2, 0.3, 1, 0, 0, 0])
    eom = equations(machine, "constrained")
    v0 = eom.project(x0, np.array([1.0, 0, 0, 0, 0, 0])).v
    assert np.linalg.norm(v0) > 0.3
    runs = [
        simulate(machine, None, None, x0, v0, duration=0.2, dt=1e-3, plant=plant)
        for plant in ("native", "mujoco")
    ]
    assert np.abs(runs[0].v - runs[1].v).max() < 0.02
    assert np.abs(runs[0].x - runs[1].x).max() < 2e-3


def test_hold_slide_and_let_go():
    """An arm holds a body that slides on its hand; let go, it falls; the whole mass is kept."""
    chain = revolute_chain(2)
    arm = chain.attach(*motors(chain.joints))
    tip = arm.bodies[-1].name
    free = Body("thing", Moments.of_body(0.4, (0, 0, 0), 2e-3 * np.eye(3)))
    machine = arm.attach(free, Joint("thing", Free(), "world", "thing"))
    x0 = np.r_[0.3, 0.4, np.array(equations(arm).kernel(f"frame_pose:{tip}")([0.3, 0.4])[:3, 3])]
    R = equations(arm).kernel(f"frame_pose:{tip}")([0.3, 0.4])[:3, :3]
    x0 = np.r_[x0, _wxyz(R)]
    events = [
        Grasp(0.1, tip, "thing", kind="slider", axis="y", name="hold"),
        Release(0.4, "hold"),
    ]
    runs = {
        plant: simulate(
            machine, None, None, x0, duration=0.6, dt=1e-3, plant=plant, events=events, every=5
        )
        for plant in ("native", "mujoco")
    }
    own, other = runs["native"], runs["mujoco"]
    assert np.abs(own.x - other.x).max() < 2e-2
    # After it is let go it falls freely.
    late = other.t > 0.45
    v = np.diff(other.x[late, 4]) / np.diff(other.t[late])
    fall = np.diff(v) / np.diff(other.t[late])[:-1]
    np.testing.assert_allclose(fall, -9.81, rtol=0.02)


def _wxyz(R):
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(R).as_quat()
    return [w, x, y, z]
