"""Gains over all bodies as users give them: Kd and Lambda of [Eslami2025], in body axes."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from framefree.control.law import ControlError
from framefree.control.shared.gains import matrix_gain
from framefree.machine import Machine


class BodyGains(NamedTuple):
    """A symmetric gain over all bodies, by blocks (6x6).

    Attributes
    ----------
    own : list
        Of every body.
    between : dict of (int, int) to (6, 6)
        Blocks (i, j), i < j, that are not zero: what a body feels of the error of another one.
    """

    own: list[Any]
    between: dict[tuple[int, int], np.ndarray]

    def cross_terms(self, errors: list[Any]) -> list[Any]:
        """Return what every body (6) feels of the errors (6) of the others; None for nothing."""
        total: list[Any] = [None] * len(self.own)
        for (i, j), K in self.between.items():
            for a, b, block in ((i, j, K), (j, i, K.T)):
                more = block @ errors[b]
                total[a] = more if total[a] is None else total[a] + more
        return total


def body_gains(
    machine: Machine, value: Any, name: str, single: Callable[[Any, Any], Any]
) -> BodyGains:
    """Return a gain over all bodies.

    Parameters
    ----------
    value : number, (6,), (6, 6), (N, 6, 6), (6N,), (6N, 6N), or mapping of str to the first three
        For every body alike, for each of the N bodies, over all of them as one matrix, or by the
        names of bodies, with the others' under "".
    name : str
        What the gain is called, for messages.
    single : callable
        From a body and its number, (6,) or (6, 6), to its block (6x6).
    """
    bodies, n = machine.bodies, len(machine.bodies)
    if isinstance(value, Mapping):
        return BodyGains(_by_name(machine, value, name, single), {})
    try:
        shape = np.shape(value)
    except ValueError:
        shape = None  # rows of different lengths
    if shape in ((), (6,), (6, 6)):
        return BodyGains([single(body, value) for body in bodies], {})
    if shape == (n, 6, 6):
        return BodyGains([single(body, own) for body, own in zip(bodies, value, strict=True)], {})
    if shape in ((6 * n,), (6 * n, 6 * n)):
        whole = matrix_gain(value, 6 * n, name, of="six of every body")
        blocks = whole.reshape(n, 6, n, 6).swapaxes(1, 2)
        between = {
            (i, j): blocks[i, j] for i in range(n) for j in range(i + 1, n) if blocks[i, j].any()
        }
        return BodyGains([single(body, blocks[i, i]) for i, body in enumerate(bodies)], between)
    given = "rows of different lengths" if shape is None else f"shape {shape}"
    raise ControlError(
        f"`{name}` must be a number, (6,) or (6, 6) for every body alike, ({n}, 6, 6) for each of "
        f"the {n} bodies, ({6 * n},) or ({6 * n}, {6 * n}) over all of them, or by the names of "
        f"bodies; got {given}"
    )


def _by_name(
    machine: Machine, value: Mapping[str, Any], name: str, single: Callable[[Any, Any], Any]
) -> list[Any]:
    for key in value:
        if key:
            machine.body(key)
    chosen = [value.get(body.name, value.get("")) for body in machine.bodies]
    for body, own in zip(machine.bodies, chosen, strict=True):
        if own is None:
            raise ControlError(f'`{name}` has none for body `{body.name}`, and none under ""')
    return [single(body, own) for body, own in zip(machine.bodies, chosen, strict=True)]
