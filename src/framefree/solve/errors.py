"""The exception of the solvers."""

from framefree.errors import FramefreeError


class SolveError(FramefreeError):
    """A problem that is not stated as it should be.

    That a well-stated problem has no solution is no error but an answer: see the results.
    """
