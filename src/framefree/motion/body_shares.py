"""Quantities of single bodies: their shares of mass, Coriolis matrix, gravity and bias."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import casadi as ca

from framefree.motion.outputs import (
    XV,
    Output,
    Outputs,
    Recipe,
    X,
    cube,
    matrix,
    scalar,
    table,
    vector,
)
from framefree.motion.partition import BodyPartition
from framefree.motion.spatial import Matrix
from framefree.motion.state import State


class _Share(NamedTuple):
    """A share of the bodies: its inputs, its output, and the shapes of all and of one of them."""

    inputs: tuple[str, ...]
    output: str
    parts: Callable[[BodyPartition], list[Matrix]]
    all: Callable[[Sequence[Matrix], int], Output]
    one: Callable[[Matrix], Output]


def _energies(parts: Sequence[Matrix], _: int) -> Output:
    return vector(ca.vertcat(ca.SX(0, 1), *parts))


_SHARES = {
    "body_mass": _Share(X, "mass", lambda of: of.masses, cube, matrix),
    "body_coriolis": _Share(XV, "coriolis", lambda of: of.coriolis, cube, matrix),
    "body_gravity": _Share(X, "gravity", lambda of: of.gravities, table, vector),
    "body_bias": _Share(XV, "bias", lambda of: of.biases, table, vector),
    "body_kinetic": _Share(XV, "kinetic", lambda of: of.kinetics, _energies, scalar),
}


def _of_all(share: _Share) -> Recipe:
    def trace(state: State) -> Outputs:
        return {share.output: share.all(share.parts(BodyPartition(state)), state.v.shape[0])}

    return Recipe(share.inputs, trace)


SHARES: dict[str, Recipe] = {name: _of_all(share) for name, share in _SHARES.items()}
"""What all bodies contribute, such as `body_mass(x)` (bodies, nv, nv)."""


def share_of(kind: str, body: str) -> Recipe:
    """Return the recipe of the share of one body, such as `body_mass:BODY(x)` (nv, nv)."""
    share = _SHARES[kind]

    def trace(state: State) -> Outputs:
        index = state.machine.body_index[body]
        return {share.output: share.one(share.parts(BodyPartition(state))[index])}

    return Recipe(share.inputs, trace)
