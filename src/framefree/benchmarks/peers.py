"""Pinocchio and MuJoCo, for comparison."""

from typing import Any

import numpy as np

from framefree.certify.pinocchio_model import pinocchio_model
from framefree.errors import FramefreeError
from framefree.machine import Machine
from framefree.machine.formats.write_mjcf import to_mjcf
from framefree.simulate.integrators import INTEGRATORS


def pinocchio() -> Any:
    """Return the module, or say how to install it."""
    try:
        import pinocchio as pin
    except ImportError:
        raise FramefreeError(
            "this needs Pinocchio, which is not installed; install it with: "
            'pip install "framefree[peers]"'
        ) from None
    return pin


def mujoco() -> Any:
    """Return the module, or say how to install it."""
    try:
        import mujoco
    except ImportError:
        raise FramefreeError(
            "this needs MuJoCo, which is not installed; install it with: "
            'pip install "framefree[models]"'
        ) from None
    return mujoco


def mujoco_model(machine: Machine, dt: float, integrator: str) -> Any:
    """Return a machine as a mujoco.MjModel without limits."""
    engine = mujoco()
    from framefree.simulate.runners.mujoco import prepare

    model = engine.MjModel.from_xml_string(
        to_mjcf(machine, without=("velocity_limit", "effort_limit"))
    )
    prepare(model, dt, INTEGRATORS[integrator], limits=False)
    return model


class MujocoRollout:
    """Roll-outs of a model on one thread from many states; `roll` writes into arrays made once.

    Parameters
    ----------
    model : mujoco.MjModel
    x, v : (batch, nq), (batch, nv)
    u : (nu,)
        Controls, held.
    steps : int
    """

    def __init__(self, model: Any, x: np.ndarray, v: np.ndarray, u: np.ndarray, steps: int) -> None:
        self.model, self.data = model, mujoco().MjData(model)
        from mujoco.rollout import Rollout

        self._rollout = Rollout(nthread=0)
        batch, size = len(x), 1 + model.nq + model.nv
        self._buffers = {
            "initial_state": np.concatenate([np.zeros((batch, 1)), x, v], axis=1),
            "control": np.array(np.broadcast_to(u, (batch, steps, model.nu))),
            "state": np.zeros((batch, steps, size)),
            "sensordata": np.zeros((batch, steps, 0)),
        }

    def roll(self) -> None:
        """Run all steps of all trajectories."""
        self._rollout.rollout(self.model, self.data, **self._buffers)

    @property
    def x(self) -> np.ndarray:
        """Configurations after every step, (batch, steps, nq)."""
        return self._buffers["state"][..., 1 : 1 + self.model.nq]

    @property
    def v(self) -> np.ndarray:
        """Velocities after every step, (batch, steps, nv)."""
        return self._buffers["state"][..., 1 + self.model.nq :]


def to_pinocchio(machine: Machine) -> Any:
    """Return the machine as a pinocchio.Model; joint i + 1 carries body i."""
    return pinocchio_model(pinocchio(), machine)
