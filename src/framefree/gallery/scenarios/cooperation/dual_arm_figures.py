"""The figures of the published experiment: the hand that is led, D, the other hand, and errors.

The left hand, E1, follows the desired pose D; the right hand, E2, is coupled to it.
"""

import numpy as np

from framefree.gallery.scenarios.cooperation.dual_arm_parts import (
    LEFT,
    RIGHT,
    HoldErrors,
    norm,
)
from framefree.look.report import Figure
from framefree.machine import Machine
from framefree.motion import equations
from framefree.simulate import Run

AXES = "xyz"


def published_figures(
    run: Run, machine: Machine, names: tuple[str, str] = (LEFT, RIGHT)
) -> tuple[Figure, ...]:
    """Return what the publication plots of its run; `names` are those of the hands."""
    t, errors = run.t, HoldErrors(run)
    poses, twists = hands(run, machine, names)
    left, right = names
    desired = run.reference["held.pose"][:, :3, 3]
    return (
        Figure.over_time(
            "Published: the left hand E1 and its target D",
            "position (m)",
            t,
            {
                **{f"E1 {axis}": poses[left][:, k, 3] for k, axis in enumerate(AXES)},
                **{f"D {axis} *": desired[:, k] for k, axis in enumerate(AXES)},
            },
            caption="Dashed: where it is to be.",
        ),
        Figure.over_time(
            "Published: discrepancy of E1 and D",
            "position error (m)",
            t,
            {axis: errors.control[:, k] for k, axis in enumerate(AXES)},
        ),
        Figure.over_time(
            "Published: position of the right hand E2",
            "position (m)",
            t,
            {axis: poses[right][:, k, 3] for k, axis in enumerate(AXES)},
        ),
        Figure.over_time(
            "Published: velocities of the right hand E2",
            "linear (m/s), angular (rad/s)",
            t,
            {
                f"{kind} {axis}": twists[right][:, 3 * half + k]
                for half, kind in enumerate(("linear", "angular"))
                for k, axis in enumerate(AXES)
            },
            caption="In the axes of the hand.",
        ),
        Figure.over_time(
            "Published: velocity errors of E1",
            "norm (m/s, rad/s)",
            t,
            {"linear": norm(errors.velocity[:, :3]), "angular": norm(errors.velocity[:, 3:])},
        ),
        Figure.over_time(
            "Published: norms of both errors",
            "norm (m, rad)",
            t,
            {"coupling": norm(errors.coupling), "control": norm(errors.control)},
            logarithmic=True,
        ),
    )


def hands(
    run: Run, machine: Machine, names: tuple[str, str] = (LEFT, RIGHT)
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return poses (rows, 4, 4) and body twists (rows, 6) of both hands, by their names."""
    eom = equations(machine)
    poses = {name: eom.kernel(f"frame_pose:{name}")(run.x) for name in names}
    twists = {
        name: np.einsum("tij,tj->ti", eom.kernel(f"jacobian:{name}")(run.x), run.v)
        for name in names
    }
    return poses, twists
