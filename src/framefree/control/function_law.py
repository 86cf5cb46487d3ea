"""A plain Python function as a law."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from framefree.control.law import ControlError, NumericCommand, NumericLaw
from framefree.machine import Machine
from framefree.machine.part import set_field


@dataclass(frozen=True)
class FunctionLaw(NumericLaw):
    """A function of the state that gives the inputs, evaluated in Python once a control period.

    It is the quickest way to try an idea. A law that runs at native speed, records signals or has
    a memory is a subclass of `Law`.

    Parameters
    ----------
    machine : Machine
        Whose state the function gets and whose inputs it gives.
    rule : callable
        ``u = rule(t, x, v)`` with the time t in s and arrays x (nx,) and v (nv,), or
        ``u = rule(t, x, v, reference)`` with a mapping from names of reference signals to
        arrays. It gives the inputs u (nu,), or one number where there is one input.
    needs : tuple of str
        Names of the reference signals that the function reads. `simulate` takes all that the
        reference has.
    """

    machine: Machine
    rule: Callable[..., Any]
    needs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        set_field(self, "needs", tuple(self.needs))
        if not callable(self.rule):
            raise ControlError(f"`rule` must be a function, got {self.rule!r}")
        if self._arguments not in (3, 4):
            raise ControlError(
                f"the function `{self.name}` must take (t, x, v) or (t, x, v, reference), it takes "
                f"{inspect.signature(self.rule)}"
            )

    @property
    def name(self) -> str:
        """What the function is called."""
        return str(getattr(self.rule, "__name__", type(self.rule).__name__))

    @property
    def _arguments(self) -> int:
        """How many arguments the function must be given, or 4 where it takes any number."""
        try:
            parameters = inspect.signature(self.rule).parameters.values()
        except (TypeError, ValueError):  # some functions of C extensions do not tell
            return 4 if self.needs else 3
        if any(p.kind is p.VAR_POSITIONAL for p in parameters):
            return 4
        placed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        required = sum(p.default is p.empty for p in placed)
        named_last = len(placed) > 3 and placed[3].name == "reference"
        return 4 if required <= 3 and named_last else required

    @property
    def reads_reference(self) -> bool:
        """Whether the function takes a reference."""
        return self._arguments == 4

    def command(
        self,
        t: float,
        x: np.ndarray,
        v: np.ndarray,
        reference: Mapping[str, np.ndarray],
        memory: np.ndarray,
    ) -> NumericCommand:
        """Return what the function gives."""
        inputs = (t, x, v, reference)[: self._arguments]
        result = self.rule(*inputs)
        try:
            u = np.empty(0) if result is None else np.atleast_1d(np.asarray(result, dtype=float))
        except (TypeError, ValueError):
            u = np.empty(0)
        if u.shape not in ((self.machine.nu,), (self.machine.nu, 1)):
            shown = f"an array of shape {u.shape}" if u.size else repr(result)
            raise ControlError(
                f"the law `{self.name}` must give {self.machine.nu} inputs "
                f"({', '.join(self.machine.u_names)}) at t = {t:g} s, got {shown}"
            )
        return NumericCommand(u.ravel())
