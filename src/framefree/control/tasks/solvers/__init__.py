"""Solvers for the joint acceleration that tasks ask for, one file each."""

from framefree.control.tasks.solvers.base import Answer, Level, Problem, Solver
from framefree.control.tasks.solvers.kkt import Kkt
from framefree.control.tasks.solvers.priority import StrictPriority
from framefree.control.tasks.solvers.proxqp import Bounds, Limited, ProxQp
from framefree.control.tasks.solvers.udwadia_kalaba import UdwadiaKalaba
from framefree.control.tasks.solvers.weighted import Weighted

__all__ = [
    "Answer",
    "Bounds",
    "Kkt",
    "Level",
    "Limited",
    "Problem",
    "ProxQp",
    "Solver",
    "StrictPriority",
    "UdwadiaKalaba",
    "Weighted",
]
