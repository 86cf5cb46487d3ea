"""Small quadratic programs that compile: a fixed number of operations, one call or many."""

from framefree.control.qp.program import QpSolution, solve_qp
from framefree.control.qp.solver import qp_kernel

__all__ = ["QpSolution", "qp_kernel", "solve_qp"]
