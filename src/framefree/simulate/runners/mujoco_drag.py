"""Forces that resist velocity strongly, on an engine that holds applied forces over a step.

Friction of a contact resists slipping by c = mu f_n / v_s near rest, often with 1000 N s/m and
more; dry friction of joints, as robot files have it, with 100 Nm s/rad on a wrist of 1e-3 kg m^2.
Held over a step h it turns a small mass m round instead of stopping it where h c > 2 m, and
what lies still trembles for ever. So what resists is taken at the end of the step: with the drag
C >= 0 of interactions (`PairForce.drag`) and the friction f_j of joints the force that acts is

    f(v) - h C a - T' f_j(v_j + h T a),   where

    (M + h D + h C) a = f(v) - T' f_j + all other forces + J' l,     J a + R l = a_ref

D is the damping of MuJoCo's joints, T a the accelerations of ours, and J, R and a_ref are MuJoCo's
rows of closed loops. Other constraints that MuJoCo solves, such as its own contacts, count by the
force that they would have without the drag, as in MuJoCo's own treatment of joint damping.
"""

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

Friction = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From joint velocities (nv,) to friction that acts against them, and its slope."""
STEPS, HALVINGS, RISE, EXACT = 30, 30, 0.8, 1e-9
"""Most Newton steps, most halvings of one, the share of its first slope that it may rise by, and
the error of speeds, relative."""
NARROWER = 4.0
"""How much narrower friction becomes from one solution to the next."""


def resisting_force(
    model: Any,
    data: Any,
    drag: np.ndarray,
    h: float,
    friction: Friction | None = None,
    joints: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """Return -h C a - T' f_j (nv), in MuJoCo's coordinates; all other forces are set in `data`.

    Parameters
    ----------
    model, data : mujoco.MjModel, mujoco.MjData
        The accelerations of `data` are found here.
    drag : (nv, nv)
        C.
    h : float
        Length of the step, s.
    friction : callable, optional
        f_j and its slope.
    joints : (n,), (n, nv), optional
        v_j and T, with `friction`.
    """
    mujoco.mj_forward(model, data)
    nv, equalities = model.nv, data.ne
    mass = np.zeros((nv, nv))
    for row, unit in zip(mass, np.eye(nv), strict=True):
        mujoco.mj_mulM(model, data, row, unit)
    if model.opt.integrator != mujoco.mjtIntegrator.mjINT_RK4:
        mass += h * np.diag(model.dof_damping)
    rows = _dense_rows(model, data)
    J, others = rows[:equalities], rows[equalities:]
    force = data.qfrc_smooth + others.T @ data.efc_force[equalities : len(rows)]
    matrix = np.block([[mass + h * drag, -J.T], [J, np.diag(data.efc_R[:equalities])]])
    right = np.concatenate([force, data.efc_aref[:equalities]])
    if friction is None or joints is None:
        return -h * drag @ np.linalg.solve(matrix, right)[:nv]
    v, T = joints
    pushed = np.zeros((len(right), len(v)))
    pushed[:nv] = T.T
    solution = np.linalg.solve(matrix, np.column_stack([right, pushed]))[:nv]
    a, by_friction = solution[:, 0], solution[:, 1:]
    f = end_friction(friction, v + h * T @ a, h * T @ by_friction)
    return -h * drag @ (a - by_friction @ f) - T.T @ f


def end_friction(friction: Friction, free: np.ndarray, response: np.ndarray) -> np.ndarray:
    """Return the friction f with f = friction(free - response f).

    `response` (n, n) is positive semidefinite and friction grows with speed, so that there is one.
    Newton's method finds it from that of a friction which is as much wider as speeds are, made
    narrower from one to the next.
    """
    f, most, steepest = np.zeros_like(free), friction(free)[0], friction(0 * free)[1]
    width = np.abs(most) / np.maximum(steepest, 1e-300)
    wider = float(np.max(np.abs(free) / np.maximum(width, 1e-300), where=steepest > 0, initial=1.0))
    while wider > 1:
        f = _newton(friction, free, response, f, wider)
        wider /= NARROWER
    return _newton(friction, free, response, f, 1.0)


def _newton(
    friction: Friction, free: np.ndarray, response: np.ndarray, f: np.ndarray, wider: float
) -> np.ndarray:
    """Return f = friction((free - response f) / wider) from an f nearby.

    It is the least point of a convex function: steps are halved until the slope along them does not
    rise beyond what it was.
    """
    values, slopes = friction((free - response @ f) / wider)
    for _ in range(STEPS):
        error = values - f
        if np.linalg.norm(response @ error) <= EXACT * (1e-6 + float(np.linalg.norm(free))):
            break
        step = np.linalg.solve(np.eye(len(f)) + slopes[:, None] / wider * response, error)
        fall = float(step @ response @ error)
        for _ in range(HALVINGS):
            values, slopes = friction((free - response @ (f + step)) / wider)
            if float(step @ response @ (values - f - step)) >= -RISE * fall:
                break
            step, fall = step / 2, fall / 2
        f = f + step
    return f


def _dense_rows(model: Any, data: Any) -> np.ndarray:
    """Return the Jacobian (rows x nv) of all constraints that act."""
    if not mujoco.mj_isSparse(model):
        return data.efc_J.reshape(-1, model.nv)[: data.nefc]
    rows = np.zeros((data.nefc, model.nv))
    mujoco.mju_sparse2dense(
        rows, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind
    )
    return rows
