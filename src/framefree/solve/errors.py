"""The exception of the solvers."""

from framefree.errors import FramefreeError


class SolveError(FramefreeError):
    """The statement of a problem is not valid.

    A well-stated problem without a solution is not an error: the result says so.
    """
