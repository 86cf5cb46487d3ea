"""What machines are asked first: where to put the joints, what is consistent, what holds still."""

from framefree.solve.errors import SolveError
from framefree.solve.inverse_kinematics import Posture, inverse_kinematics
from framefree.solve.reach import Reach, reach
from framefree.solve.states import assemble, project

__all__ = [
    "Posture",
    "Reach",
    "SolveError",
    "assemble",
    "inverse_kinematics",
    "project",
    "reach",
]
