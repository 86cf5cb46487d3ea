"""Turning and moving the whole scene turns and moves the closed loop."""

import numpy as np
from random_machines import random_pose

from framefree.gallery.scenarios.ports.chain_measures import body_poses
from framefree.gallery.scenarios.ports.reach_setting import ReachSetting
from framefree.geometry import quaternion, so3
from framefree.simulate import simulate

TUNABLE = (
    *(f"stage.pose.{axis}" for axis in ("x", "y", "z", "rx", "ry", "rz")),
    *(f"gravity.{axis}" for axis in "xyz"),
)
POSES, DURATION = 100, 5.0


def test_the_scene_elsewhere():
    setting, rng = ReachSetting(5, TUNABLE), np.random.default_rng(0)
    machine = setting.machine
    gravity = np.array([0.0, 0.0, -9.81])
    scenes = [np.eye(4), *(random_pose(rng, 2.0) for _ in range(POSES))]
    first = np.tile(setting.start, (len(scenes), 1))
    values = np.zeros((len(scenes), len(TUNABLE)))
    base = np.eye(4)
    base[:3, 3] = setting.start[:3]
    base[:3, :3] = quaternion.to_rotation(setting.start[3:7]).full()
    for k, G in enumerate(scenes):
        moved = G @ base
        first[k, :3] = moved[:3, 3]
        first[k, 3:7] = quaternion.from_rotation(moved[:3, :3]).full().ravel()
        values[k, :3] = G[:3, 3]
        values[k, 3:6] = so3.log(G[:3, :3]).full().ravel()
        values[k, 6:] = G[:3, :3] @ gravity
    run = simulate(
        machine,
        setting.law(),
        setting.reference,
        first,
        duration=DURATION,
        dt=2e-3,
        every=100,
        parameters=values,
        record=(),
    )
    rows = run.x.shape[1]
    poses = body_poses(machine.numeric, run.x.reshape(-1, machine.nx))
    poses = poses.reshape(len(scenes), rows, -1, 4, 4)
    expected = np.einsum("kij,nbjl->knbil", np.array(scenes), poses[0])
    assert np.abs(poses - expected).max() < 1e-9
    # It is a motion, near the obstacle.
    assert np.abs(poses[0, -1] - poses[0, 0]).max() > 0.1
    assert run["clearance"][0].min() < 0.15
