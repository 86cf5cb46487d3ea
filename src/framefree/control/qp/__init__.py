"""Small quadratic programs that compile: one of a fixed number of operations, or many in order."""

from framefree.control.qp.hierarchy import HierarchyKernel, HierarchySolution
from framefree.control.qp.program import QpSolution, solve_qp
from framefree.control.qp.solver import qp_kernel

__all__ = ["HierarchyKernel", "HierarchySolution", "QpSolution", "qp_kernel", "solve_qp"]
