"""A model in MuJoCo beside our machine: mass, forces and accelerations in our velocities."""

from pathlib import Path

import numpy as np
import pytest
from model_kinematics import mujoco_mass

from framefree.machine import Free
from framefree.machine.read import read

mujoco = pytest.importorskip("mujoco")
DATA = Path(__file__).parents[1] / "data" / "mjcf"


class Peer:
    """One model as our machine and in MuJoCo.

    Constraints (limits, friction that sticks, equalities) are off there.
    """

    def __init__(self, source, **options):
        text = (DATA / source).read_text() if source.endswith(".xml") else source
        self.machine = read(text, **options)
        self.model = mujoco.MjModel.from_xml_string(text)
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        self.data = mujoco.MjData(self.model)
        self.layout = self.machine.layout("mujoco")

    def random(self, rng):
        return self.machine.random(rng), rng.normal(size=self.machine.nv)

    def set(self, x, v, u=None, act=None):
        self.data.qpos[:] = self.layout.x_to(x)
        self.data.qvel[:] = self.layout.v_to(x, v)
        self.data.ctrl[:] = 0.0 if u is None else u
        if act is not None:
            self.data.act[:] = act
        mujoco.mj_forward(self.model, self.data)

    def turn(self, x):
        """Matrix from our velocities to MuJoCo's."""
        return np.column_stack([self.layout.v_to(x, e) for e in np.eye(self.machine.nv)])

    def mass(self, x):
        T = self.turn(x)
        return T.T @ mujoco_mass(self.model, self.data) @ T

    def bias(self, x, v):
        """Force at no acceleration and no input, in our velocities."""
        T, M = self.turn(x), mujoco_mass(self.model, self.data)
        force = self.data.qfrc_bias - self.data.qfrc_passive
        return T.T @ (force + M @ (T @ self.transport(v)))

    def forward(self, x, v):
        return np.linalg.solve(self.turn(x), self.data.qacc) - self.transport(v)

    def force(self, x):
        """Force of the actuators, in our velocities."""
        return self.turn(x).T @ self.data.qfrc_actuator

    def transport(self, v):
        """d/dt (R v) = R (dv/dt + w x v) for the linear velocities of free joints."""
        extra = np.zeros(self.machine.nv)
        for joint in self.machine.joints:
            if isinstance(joint.kind, Free):
                s = self.machine.v_slice[joint.name].start
                extra[s : s + 3] = np.cross(v[s + 3 : s + 6], v[s : s + 3])
        return extra

    def run(self, x, v, duration, dt, u=None, act=None):
        """State after MuJoCo's own Runge-Kutta steps."""
        mujoco.mj_resetData(self.model, self.data)
        self.model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
        self.model.opt.timestep = dt
        self.set(x, v, u, act)
        for _ in range(round(duration / dt)):
            mujoco.mj_step(self.model, self.data)
        x = self.layout.x_from(self.data.qpos)
        return x, self.layout.v_from(x, self.data.qvel)


def gap(ours, theirs):
    """Largest difference, relative to the largest entry."""
    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
    size = np.abs(theirs).max(initial=0.0)
    return np.abs(ours.reshape(theirs.shape) - theirs).max(initial=0.0) / (size or 1.0)
