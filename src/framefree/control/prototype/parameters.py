"""Parameters of a prototype: moments of inertia, damping and stiffness on pairs of frames."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca

from framefree.control.law import ControlError
from framefree.geometry import Moments
from framefree.machine import WORLD, Machine, MachineError
from framefree.machine.values import constant

Pair = tuple[str, str]
KINDS = ("inertia", "damping", "stiffness")


@dataclass(frozen=True)
class PairParameters:
    """What a prototype has between frame a and frame b, in the axes of b; None where nothing."""

    a: str
    b: str
    inertia: Moments | None = None
    damping: Moments | None = None
    stiffness: Moments | None = None

    def matrix4(self, kind: str) -> Any:
        """Return the 4x4 form of one kind, as a casadi matrix."""
        return self._form(kind, "matrix4", 4)

    def matrix6(self, kind: str) -> Any:
        """Return the 6x6 form of one kind, as a casadi matrix."""
        return self._form(kind, "matrix6", 6)

    def _form(self, kind: str, form: str, size: int) -> Any:
        moments = getattr(self, kind)
        if moments is None:
            return ca.SX(size, size)
        return ca.sparsify(ca.SX(constant(getattr(moments, form))))


def collected(machine: Machine, parameters: Mapping[str, Mapping]) -> tuple[PairParameters, ...]:
    """Return the parameters by pair.

    Parameters
    ----------
    machine : Machine
    parameters : mapping of "inertia", "damping", "stiffness" to mapping of pair to Moments
    """
    pairs: dict[Pair, dict[str, Moments]] = {}
    for kind in KINDS:
        for key, moments in parameters[kind].items():
            a, b = named_pair(machine, key, kind)
            if not isinstance(moments, Moments):
                raise ControlError(
                    f"the {kind} of (`{a}`, `{b}`) must be Moments, got {type(moments).__name__}"
                )
            if (b, a) in pairs:
                raise ControlError(
                    f"the {kind} of (`{a}`, `{b}`) is given for the pair in one order and another "
                    "parameter in the other; moments belong to the second frame: use one order"
                )
            pairs.setdefault((a, b), {})[kind] = moments
    return tuple(PairParameters(a, b, **kinds) for (a, b), kinds in pairs.items())


def named_pair(machine: Machine, key: Any, kind: str) -> Pair:
    """Return (a, b) of a key: a frame's name means that frame seen from the world."""
    pair = (WORLD, key) if isinstance(key, str) else key
    if not (isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(n, str) for n in pair)):
        raise ControlError(
            f"the {kind} must be given for a frame's name or a pair of them, got {key!r}"
        )
    for name in pair:
        try:
            machine.frame(name)
        except MachineError as error:
            raise ControlError(f"the {kind} of {pair}: {error}") from None
    if pair[0] == pair[1]:
        raise ControlError(f"the {kind} of `{pair[0]}` relative to itself means nothing")
    return pair
