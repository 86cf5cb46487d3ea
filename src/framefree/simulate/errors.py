"""What can go wrong in a simulation."""

from typing import Any

from framefree.errors import FramefreeError


class SimulationError(FramefreeError):
    """A simulation that cannot start, or that broke off.

    Attributes
    ----------
    run : Run or None
        What was recorded before it broke off.
    time : float or None
        Time (s) of the first value that was not finite.
    quantity : str
        Its name.
    state : tuple of arrays or None
        The last good configuration and velocity.
    cause : str
        What most likely led to it.
    """

    def __init__(
        self,
        message: str,
        *,
        run: Any = None,
        time: float | None = None,
        quantity: str = "",
        state: Any = None,
        cause: str = "",
    ) -> None:
        super().__init__(message)
        self.run, self.time, self.quantity = run, time, quantity
        self.state, self.cause = state, cause
