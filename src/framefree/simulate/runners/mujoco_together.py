"""Many trajectories of one MuJoCo model, stepped together in C by `mujoco.rollout`.

What a model remembers from step to step beside its state is the first guess of its solver: where
there are no constraints to solve, a trajectory among many has the bits that it has alone.
"""

from typing import Any

import mujoco
import numpy as np
from mujoco.rollout import Rollout

from framefree.simulate.errors import SimulationError
from framefree.simulate.runners.mujoco_sliders import SlidersAsBodies

ORDINARY = 1e6
"""Trajectories with larger numbers are stepped one by one, as MuJoCo then says what it takes."""
BAD = [
    int(getattr(mujoco.mjtWarning, f"mjWARN_BAD{name}"))
    for name in ("QPOS", "QVEL", "QACC", "CTRL")
]
"""Warnings of values that MuJoCo does not take: not finite, or beyond 1e10."""
_FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS


class EngineTrajectories:
    """States of MuJoCo, one for each trajectory, that move together.

    Parameters
    ----------
    model : mujoco.MjModel
        One without constraints.
    states : SlidersAsBodies
        From our states to MuJoCo's and back.
    controls : bool
        Whether the model has the actuators; without, all forces are generalised ones.
    threads : int
    """

    def __init__(self, model: Any, states: SlidersAsBodies, controls: bool, threads: int) -> None:
        check_free_of_constraints(model)
        self.model, self.states, self.controls = model, states, controls
        self.threads = threads
        self._rollout = Rollout(nthread=threads if threads > 1 else 0)
        self._data = [mujoco.MjData(model) for _ in range(max(threads, 1))]
        self._spec = int(mujoco.mjtState.mjSTATE_QFRC_APPLIED)
        if controls:
            self._spec |= int(mujoco.mjtState.mjSTATE_CTRL)
        self._rest = np.zeros(mujoco.mj_stateSize(model, _FULL))
        mujoco.mj_getState(model, mujoco.MjData(model), self._rest, _FULL)
        self._q = slice(1, 1 + model.nq)
        self._w = slice(1 + model.nq, 1 + model.nq + model.nv)
        self._full = np.zeros((0, len(self._rest)))

    def set(self, x: np.ndarray, v: np.ndarray) -> None:
        """Set the states to ours, (batch, nx) and (batch, nv)."""
        self._full = np.tile(self._rest, (len(x), 1))
        self._full[:, self._q] = self.states.layout.x_to(x)
        self._full[:, self._w] = self.states.layout.v_to(x, v)

    def step(
        self, u: np.ndarray, force: np.ndarray, dt: float, count: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Move on by `count` steps under inputs (batch, nu) and generalised forces (batch, nv).

        Returns our states after every step, (count, batch, nx) and (count, batch, nv); those of a
        trajectory that MuJoCo does not take are NaN from there on.
        """
        layout, batch = self.states.layout, len(self._full)
        if not self.states.same:
            force = layout.v_to(layout.x_from(self._full[:, self._q]), force)
        control = np.concatenate([u, force], axis=1) if self.controls else force
        good = np.asarray(np.isfinite(np.hstack([control, self._full])).all(axis=1))
        start = np.where(good[:, None], self._full, self._rest)
        control = np.where(good[:, None], control, 0.0)
        held = np.broadcast_to(control[:, None], (batch, count, control.shape[-1]))
        moved, _ = self._rollout.rollout(
            self.model, self._data, initial_state=start, control=held, control_spec=self._spec
        )
        largest = np.abs(control).max(1, initial=0.0)
        rates = np.diff(moved[..., self._w], axis=1, prepend=start[:, None, self._w]) / dt
        for values in (start[:, None], moved, rates):
            largest = np.maximum(largest, np.abs(values).max((1, 2), initial=0.0))
        for k in np.flatnonzero(good & ~(largest < ORDINARY)):
            moved[k] = self._one_by_one(start[k], control[k], count)
        moved[~good] = np.nan
        self._full = moved[:, -1]
        rows = np.swapaxes(moved, 0, 1).reshape(count * batch, -1)
        x = layout.x_from(rows[:, self._q])
        v = layout.v_from(x, rows[:, self._w])
        return x.reshape(count, batch, -1), v.reshape(count, batch, -1)

    def _one_by_one(self, start: np.ndarray, control: np.ndarray, count: int) -> np.ndarray:
        """Return the states of one trajectory; NaN from where MuJoCo does not take them."""
        data, states = self._data[0], np.full((count, len(start)), np.nan)
        mujoco.mj_resetData(self.model, data)
        mujoco.mj_setState(self.model, data, start, _FULL)
        mujoco.mj_setState(self.model, data, control, self._spec)
        for row in states:
            mujoco.mj_step(self.model, data)
            if data.warning.number[BAD].any():
                break
            mujoco.mj_getState(self.model, data, row, _FULL)
        return states


def check_free_of_constraints(model: Any) -> None:
    """Refuse a model whose solver would remember something from step to step."""
    names = ["loops or couplings"] if model.neq else []
    lost = np.any(model.dof_frictionloss) or np.any(model.tendon_frictionloss)
    names += ["dry friction that MuJoCo solves"] if lost else []
    if names:
        raise SimulationError(
            f"many trajectories at once on MuJoCo need a machine without {' and '.join(names)}: "
            "give one state at a time, or the native plant"
        )
