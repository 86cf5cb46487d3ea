"""Forces that resist velocity strongly, on an engine that holds applied forces over a step.

Friction of a contact resists slipping by c = mu f_n / v_s near rest, often with 1000 N s/m and
more. Held over a step h it turns a small mass m round instead of stopping it where h c > 2 m, and
what lies still trembles for ever. So what resists is taken at the end of the step: with its drag
C >= 0 (`PairForce.drag`) the force that acts is

    f(v) - h C a,     where     (M + h C) a = f(v) + all other forces + J' l,     J a + R l = a_ref

and J, R and a_ref are MuJoCo's rows of closed loops. Other constraints that MuJoCo solves, such as
its own contacts, count by the force that they would have without the drag, as in MuJoCo's own
treatment of joint damping.
"""

from typing import Any

import mujoco
import numpy as np


def drag_force(model: Any, data: Any, drag: np.ndarray, h: float) -> np.ndarray:
    """Return -h C a (nv), in MuJoCo's coordinates; all other forces are set in `data`.

    Parameters
    ----------
    model, data : mujoco.MjModel, mujoco.MjData
        The accelerations of `data` are found here.
    drag : (nv, nv)
        C.
    h : float
        Length of the step, s.
    """
    mujoco.mj_forward(model, data)
    nv, equalities = model.nv, data.ne
    mass = np.zeros((nv, nv))
    for row, unit in zip(mass, np.eye(nv), strict=True):
        mujoco.mj_mulM(model, data, row, unit)
    rows = _dense_rows(model, data)
    J, others = rows[:equalities], rows[equalities:]
    force = data.qfrc_smooth + others.T @ data.efc_force[equalities : len(rows)]
    matrix = np.block([[mass + h * drag, -J.T], [J, np.diag(data.efc_R[:equalities])]])
    solution = np.linalg.solve(matrix, np.concatenate([force, data.efc_aref[:equalities]]))
    return -h * drag @ solution[:nv]


def _dense_rows(model: Any, data: Any) -> np.ndarray:
    """Return the Jacobian (rows x nv) of all constraints that act."""
    if not mujoco.mj_isSparse(model):
        return data.efc_J.reshape(-1, model.nv)[: data.nefc]
    rows = np.zeros((data.nefc, model.nv))
    mujoco.mju_sparse2dense(
        rows, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind
    )
    return rows
