"""The two-armed robot of a file, as the published experiment has it.

Joints are found by how their names end, "joint_1_l" to "joint_7_r", hands as well, "link_7_l" and
"link_7_r" or what the user says. All other joints (fingers) are locked, and every joint has the
friction of the published plant. What is published is promised where the robot has the published
masses.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from framefree.errors import FramefreeError
from framefree.gallery.machines.dual_arm import DAMPING, START, dual_arm
from framefree.gallery.scenarios.cooperation.dual_arm_figures import published_figures
from framefree.gallery.scenarios.cooperation.dual_arm_parts import (
    CIRCLE,
    LEFT,
    RIGHT,
    HoldErrors,
    experiment,
    printed_promises,
    published_law,
    ring,
)
from framefree.gallery.shared.scenario import Outcome, Promise
from framefree.look.report import Animation
from framefree.machine import Machine
from framefree.machine.actuators import motors
from framefree.machine.read import read
from framefree.motion import equations

SAME = 1e-4
"""Difference of mass matrices, relative, up to which a robot counts as the published one."""


@dataclass(frozen=True)
class RobotOfFile:
    """A two-armed robot that was read, where its experiment starts, and what differs.

    Attributes
    ----------
    machine : Machine
        With friction, as the plant has it.
    hands : tuple of str
        Frames of the left and the right hand.
    start : (14,)
        The published first configuration, in the order of the file's joints, rad.
    """

    machine: Machine
    hands: tuple[str, str]
    start: np.ndarray

    @property
    def model(self) -> Machine:
        """The robot as the published law knows it: without friction."""
        return _with_friction(self.machine, 0.0)

    @property
    def mass_difference(self) -> float:
        """Largest difference of its mass matrix from the published robot's, relative."""
        published = equations(dual_arm()).mass(np.array(START))
        order = [START.index(value) for value in self.start.tolist()]
        own = equations(self.machine).mass(self.start)
        published = published[np.ix_(order, order)]
        return float(np.abs(own - published).max() / np.abs(published).max())


def read_robot(file: str, left: str = "", right: str = "", height: float = 0.0) -> RobotOfFile:
    """Read the robot of the published experiment.

    Parameters
    ----------
    file : str
        Path of a URDF, MJCF or SDFormat file.
    left, right : str
        Frames of the hands; by default those whose names end with link_7_l and link_7_r.
    height : float
        At which the root of the file stands, m.
    """
    if not Path(file).is_file():
        raise FramefreeError(
            f"`file` must be the file of a robot with two arms; there is no `{file}`"
        )
    try:
        robot = read(file, base="fixed")
    except FramefreeError as error:
        raise FramefreeError(f"`file`: {file} cannot be read: {error}") from None
    names = _arm_joints(robot, file)
    for joint in robot.joints:
        if joint.nv and joint.name not in names:
            robot = robot.lock(joint.name)
    if height:
        robot = Machine((), ()).merge(robot, "", pose=(0, 0, height))
    robot = _with_friction(robot, DAMPING)
    frames = _hand(robot, "left", left, LEFT), _hand(robot, "right", right, RIGHT)
    start = [names[joint.name] for joint in robot.joints if joint.nv]
    return RobotOfFile(robot, frames, np.array(start))


def published_run(robot: RobotOfFile, **options: Any) -> Outcome:
    """Run the published experiment with a robot."""
    law = published_law(robot.model, hands=robot.hands)
    run = experiment(robot.machine, law, robot.start, **options)
    errors = HoldErrors(run)
    metrics = {
        **errors.published(),
        "settling_s": errors.settling(),
        "mass_difference": robot.mass_difference,
    }
    same = metrics["mass_difference"] < SAME
    promises = [
        Promise("coupling error, mean after the start", metrics["published_coupling_error"], 0.02),
        Promise("control error, mean after the start", metrics["published_control_error"], 0.05),
    ]
    promises += printed_promises(metrics) if same else ()
    note = (
        "The robot of the file has the masses of the published one."
        if same
        else f"Its mass matrix differs from that of the published robot by "
        f"{metrics['mass_difference']:.2g} of its largest entry, so that errors are its own."
    )
    return Outcome(
        {"published": run},
        metrics,
        tuple(promises),
        published_figures(run, robot.machine, robot.hands),
        (Animation("The published run, robot of the file", run, robot.hands, ring(CIRCLE)),),
        (note,),
    )


def _arm_joints(robot: Machine, file: str) -> dict[str, float]:
    """Return the first positions of the arms' joints by their names in the file."""
    known = dict(zip((joint.name for joint in dual_arm().joints), START, strict=True))
    found, missing = {}, []
    for name, value in known.items():
        own = [j.name for j in robot.joints if j.name.endswith(name) and j.nx == j.nv == 1]
        if len(own) == 1:
            found[own[0]] = value
        else:
            missing.append(name)
    if missing:
        names = ", ".join(joint.name for joint in robot.joints if joint.nv) or "none"
        raise FramefreeError(
            f"`file`: {file} is not the robot of the experiment: it must have one joint each whose "
            f"name ends with {', '.join(missing)}; its moving joints are {names}"
        )
    return found


def _hand(robot: Machine, word: str, given: str, usual: str) -> str:
    """Return the frame of a hand."""
    names = [*robot.body_index, *(frame.name for frame in robot.frames)]
    if given:
        if given in names:
            return given
        raise FramefreeError(
            f"`{word}` must be a frame or a body of the robot, got `{given}`; it has "
            f"{', '.join(names)}"
        )
    own = [name for name in names if name.endswith(usual)]
    if len(own) != 1:
        raise FramefreeError(
            f"{len(own)} frames have names that end with {usual}: say in `{word}` which one is the "
            f"{word} hand; the robot has {', '.join(names)}"
        )
    return own[0]


def _with_friction(robot: Machine, damping: float) -> Machine:
    """Return the robot with a motor and viscous friction, Nm s/rad, at every joint."""
    joints = tuple(
        replace(joint, damping=damping, friction=0.0) if joint.nv else joint
        for joint in robot.joints
    )
    moving = [joint for joint in joints if joint.nv]
    return robot.replace(joints=joints, actuators=motors(moving))
