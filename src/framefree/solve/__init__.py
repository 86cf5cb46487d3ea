"""Solve for states of a machine: inverse kinematics, closed loops, equilibria and stability."""

from framefree.solve.errors import SolveError
from framefree.solve.inverse_kinematics import Posture, inverse_kinematics
from framefree.solve.linearise import LinearSystem, linearise
from framefree.solve.reach import Reach, reach
from framefree.solve.stability import Mode, Stability, stability
from framefree.solve.states import assemble, project
from framefree.solve.trim import Trim, equilibrium, trim

__all__ = [
    "LinearSystem",
    "Mode",
    "Posture",
    "Reach",
    "SolveError",
    "Stability",
    "Trim",
    "assemble",
    "equilibrium",
    "inverse_kinematics",
    "linearise",
    "project",
    "reach",
    "stability",
    "trim",
]
