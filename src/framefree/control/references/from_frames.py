"""From the path of a frame to a reference of the joints."""

from typing import Any

import numpy as np

from framefree.control.law import ControlError
from framefree.control.references.base import Reference
from framefree.control.references.checks import checked_times
from framefree.control.references.joints import JointSpline
from framefree.machine import Machine
from framefree.motion.forward_kinematics import forward_kinematics
from framefree.solve import inverse_kinematics

POSE = ".pose"


def joint_reference(
    machine: Machine,
    reference: Reference,
    times: Any,
    x0: Any = None,
    *,
    position_tolerance: float = 1e-3,
    angle_tolerance: float = 1e-2,
) -> JointSpline:
    """Return a joint reference whose frames follow the poses of a frame reference.

    Configurations are found by inverse kinematics at the times, each from the one before, and
    joined by a `JointSpline`, which rests at the first and the last time. How far its frames are
    from their poses half-way between the times is checked.

    Parameters
    ----------
    machine : Machine
        Of the law that follows the joints.
    reference : Reference
        With signals "FRAME.pose" of frames of the machine, such as a `Circle`.
    times : (n,)
        Times (s) at which the frames pass their poses exactly; increasing.
    x0 : (nx,), optional
        A configuration near the first one; default neutral.
    position_tolerance, angle_tolerance : float
        Largest distance (m) and angle (rad) of a frame from its pose between the times.

    Raises
    ------
    ControlError
        Where a pose is out of reach, neighbours are far apart, or the frames are off in between.
    """
    instants = np.array(checked_times(times, np.size(times), "joint_reference"))
    wanted = _poses(machine, reference, instants)
    points: list[np.ndarray] = []
    nearby = machine.neutral() if x0 is None else np.asarray(x0, dtype=float)
    for k, t in enumerate(instants):
        targets = {frame: poses[k] for frame, poses in wanted.items()}
        posture = inverse_kinematics(machine, targets, nearby)
        if not posture.reached:
            raise ControlError(f"the path at {t:g} s is not reached: {posture.message}")
        nearby = posture.x
        points.append(nearby)
    path = JointSpline(machine, points, instants)
    _check_between(machine, reference, path, instants, position_tolerance, angle_tolerance)
    return path


def _poses(machine: Machine, reference: Reference, times: np.ndarray) -> dict[str, np.ndarray]:
    """Return the poses (n, 4, 4) of all frames that the reference has."""
    if not isinstance(reference, Reference):
        raise ControlError(f"`reference` must be a frame reference, got {reference!r}")
    signals = reference.sample(times)
    poses = {
        name.removesuffix(POSE): value for name, value in signals.items() if name.endswith(POSE)
    }
    if not poses:
        raise ControlError(
            f"the reference {reference.name} has no pose of a frame (`FRAME.pose`); it has: "
            + ", ".join(signals)
        )
    for frame in poses:
        machine.frame(frame)
    return poses


def _check_between(
    machine: Machine,
    reference: Reference,
    path: JointSpline,
    times: np.ndarray,
    position_tolerance: float,
    angle_tolerance: float,
) -> None:
    """Refuse a path whose frames are off half-way between the times."""
    middle = (times[1:] + times[:-1]) / 2
    x = path.sample(middle)["x"]
    for frame, wanted in _poses(machine, reference, middle).items():
        actual = forward_kinematics(machine, x, frame)
        distances = np.linalg.norm(actual[:, :3, 3] - wanted[:, :3, 3], axis=1)
        chords = np.linalg.norm(actual[:, :3, :3] - wanted[:, :3, :3], axis=(1, 2))
        angles = 2 * np.arcsin(np.minimum(chords / np.sqrt(8), 1.0))
        k = int(np.argmax(np.maximum(distances / position_tolerance, angles / angle_tolerance)))
        if distances[k] > position_tolerance or angles[k] > angle_tolerance:
            raise ControlError(
                f"the frame `{frame}` is {distances[k]:.3g} m and {angles[k]:.3g} rad from its "
                f"path at {middle[k]:g} s, between the times: give more `times` there, or an x0 "
                "from which all of the path is reached on one branch; at the first and the last "
                "time joints rest, so the path should too"
            )
