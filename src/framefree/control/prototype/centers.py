"""Whether a thrust-borne craft's prototype stands over the craft's center of mass.

A craft with fewer inputs than velocities moves sideways by tilting. Its prototype is matched only
if the centers of inertia and stiffness lie on one line with the center of mass, along the thrust:
if the line passes beside it, the poles are others than those of the prototype.
"""

from collections.abc import Sequence

import numpy as np

from framefree.control.prototype.parameters import PairParameters
from framefree.machine import WORLD, Free, Machine

ASIDE = 0.02
"""Share of the distance between the centers by which the line may miss the center of mass."""


def what_stands_aside(machine: Machine, pairs: Sequence[PairParameters]) -> str:
    """Say by how much the prototype of a single free body stands beside it; empty if it does not.

    Only where one frame, seen from the world, has all of the inertia and the stiffness.
    """
    machine = machine.numeric
    if len(machine.joints) != 1 or not isinstance(machine.joints[0].kind, Free):
        return ""
    if len(pairs) != 1 or pairs[0].a != WORLD:
        return ""
    pair = pairs[0]
    kinds = [pair.inertia, pair.stiffness]
    if any(one is None or one.symbolic or not one.total > 0 for one in kinds):
        return ""
    frame = machine.frame(pair.b)
    pose = np.asarray(frame.pose, float)
    s, h = (pose[:3, :3] @ np.asarray(one.center) + pose[:3, 3] for one in kinds if one)
    center = np.asarray(machine.bodies[0].moments.center, float)
    along = h - s
    length = float(np.linalg.norm(along))
    if length < 1e-9:
        return ""
    aside = (center - s) - along * ((center - s) @ along) / length**2
    missed = float(np.linalg.norm(aside))
    if missed <= ASIDE * length:
        return ""
    return (
        f"the line through the centers of inertia and stiffness of the prototype passes "
        f"{1e3 * missed:.3g} mm beside the center of mass of `{machine.name}`, which hangs on its "
        "thrust: small errors will have other poles than the prototype (`tuning.matching` tells "
        "which); give the `center` to `tuning.thrust_borne`"
    )
