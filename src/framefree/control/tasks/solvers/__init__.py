"""Solvers for the joint acceleration that tasks ask for, one file each."""

from framefree.control.tasks.solvers.base import Level, Solver, TaskAcceleration, TaskProblem
from framefree.control.tasks.solvers.kkt import Kkt
from framefree.control.tasks.solvers.priority import StrictPriority
from framefree.control.tasks.solvers.proxqp import CascadeSolution, ProxQp
from framefree.control.tasks.solvers.udwadia_kalaba import UdwadiaKalaba
from framefree.control.tasks.solvers.weighted import Weighted

__all__ = [
    "CascadeSolution",
    "Kkt",
    "Level",
    "ProxQp",
    "Solver",
    "StrictPriority",
    "TaskAcceleration",
    "TaskProblem",
    "UdwadiaKalaba",
    "Weighted",
]
