"""The two-armed robot of a file, as the published experiment has it.

Joints are found by how their names end, "joint_1_l" to "joint_7_r", hands as well, "link_7_l" and
"link_7_r" or what the user says. All other joints (fingers) are locked, and every joint has the
friction of the published plant.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from framefree.errors import FramefreeError
from framefree.gallery.machines.dual_arm import DAMPING, LEFT, RIGHT, START, dual_arm
from framefree.machine import Machine
from framefree.machine.actuators import motors
from framefree.machine.read import read
from framefree.motion import equations


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
