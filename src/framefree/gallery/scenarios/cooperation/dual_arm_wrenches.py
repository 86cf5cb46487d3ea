"""What two hands that hold an object carry, found from the inputs of a run alone."""

import casadi as ca
import numpy as np

from framefree.control.shared.held_resistance import held_resistance
from framefree.gallery.scenarios.cooperation.dual_arm_parts import PERIOD
from framefree.kernel import compile
from framefree.machine import Machine
from framefree.motion import equations
from framefree.simulate import Run


def grasp_wrenches(run: Run, machine: Machine) -> np.ndarray:
    """Return what the loops carry (rows, hands, 6), world axes, found from the inputs alone.

    Torques are held over a period while joints change their speed and so what they resist; the
    part of the torques that makes up for this is left out.
    """
    eom = equations(machine, "constrained")
    force = np.zeros((len(run.t), machine.nv))
    force[:, : machine.nu] = run.u
    force -= _held(run, machine, force)
    wrenches = eom.kernel("loop_wrench")(run.x, run.v, force)
    object_R = eom.kernel("body_pose")(run.x)[:, machine.body_index["object"], :3, :3]
    in_world = []
    for k, side in enumerate("lr"):
        R = object_R @ machine.frame(f"object_{side}").pose[:3, :3]
        halves = [np.einsum("tij,tj->ti", R, half) for half in np.split(wrenches[:, k], 2, axis=1)]
        in_world.append(np.concatenate(halves, axis=1))
    return np.stack(in_world, axis=1)


def between_hands(wrenches: np.ndarray, run: Run, machine: Machine) -> np.ndarray:
    """Return the force (rows,) with which hands press, along the line between them."""
    poses = equations(machine, "constrained").kernel("body_pose")(run.x)
    left, right = (poses[:, machine.body_index[f"link_7_{side}"], :3, 3] for side in "lr")
    line = (right - left) / np.linalg.norm(right - left, axis=1)[:, None]
    return np.einsum("ti,ti->t", wrenches[:, 0, :3] - wrenches[:, 1, :3], line) / 2


def _held(run: Run, machine: Machine, force: np.ndarray) -> np.ndarray:
    """Return which part (rows, nv) of forces makes up for what joints resist within a period."""
    sizes = machine.nx, machine.nv, machine.nv
    x, v, a = (ca.SX.sym("xva"[k], size) for k, size in enumerate(sizes))
    held = held_resistance(machine, equations(machine.tree, "tree").at(x, v), a, PERIOD)
    kernel = compile(ca.Function("held", [x, v, a], [held], ["x", "v", "a"], ["held"]))
    forward, part = equations(machine, "constrained").forward, np.zeros_like(force)
    for _ in range(20):  # it depends on the acceleration that it leaves, by a tenth at most
        part = kernel(run.x, run.v, forward(run.x, run.v, force - part))
    return part
