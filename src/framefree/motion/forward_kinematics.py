"""Where the bodies and frames of a machine are, from its configuration."""

from functools import lru_cache
from typing import Any

import numpy as np

from framefree.machine import Machine
from framefree.motion.tree import Tree


def forward_kinematics(
    machine: Machine, x: Any, frame: str | None = None, parameters: Any = None
) -> Any:
    """Return the poses G_wb, frame b seen from the world, of one frame or of all.

    Parameters
    ----------
    machine : Machine
        Loops and couplings are not looked at: poses are those of its tree of joints.
    x : (nx,) or (batch, nx)
    frame : str, optional
        A frame or a body; by default all of them.
    parameters : optional
        Values of the machine's tunable numbers, by default their defaults.

    Returns
    -------
    (4, 4) or (batch, 4, 4), or a dict of such from name to pose
    """
    machine.validate(x)
    tree = _tree(machine.with_parameters(parameters))
    parts = [part.name for part in (*machine.bodies, *machine.frames)]
    states = np.ascontiguousarray(x, dtype=float)
    names = parts if frame is None else [frame]
    poses = {name: np.asarray(tree.kernel(f"frame_pose:{name}")(states)) for name in names}
    return poses if frame is None else poses[frame]


@lru_cache(maxsize=16)
def _tree(machine: Machine) -> Tree:
    """Return the equations of the tree of joints, made once for each machine."""
    return Tree(machine.tree)
