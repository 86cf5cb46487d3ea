"""Contacts in closed form: they stand still, with the smallest forces that carry the base.

Joints without drives move by themselves, ``A a = b`` (`Assembly.exact`), unless the ground pushes:
with forces f = s p of contacts (`framefree.control.tasks.standing`)

    A a - b = G p,    G = A M^-1 J^T s

Contacts that stand still and what no forces of theirs can change are rows above all tasks,

    J a + dJ/dt v = -Kd J v,    (I - G G^+) (A a - b) = 0

and the forces are the smallest ones, p = G^+ (A a - b). Nothing keeps these inside of friction
cones, which are inequalities: where they leave them, `unloaded` says so.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import casadi as ca

from framefree.control.tasks.assembly import Assembly
from framefree.control.tasks.contact_frames import ContactFrame
from framefree.control.tasks.solvers.base import Level, TaskProblem
from framefree.control.tasks.standing import Standing
from framefree.motion.constrained.algebra import MassFactor, RowSpace

Matrix = Any
REACHED = 1e-9
"""Share of a direction left beside the forces of contacts below which they reach it."""
OUTSIDE = 1e-6
"""Share by which forces may exceed their cone before they are reported."""


class StandingBase:
    """A machine that stands at one symbolic state: rows, and forces of the ground.

    Parameters
    ----------
    parts : Assembly
    contacts : tuple of ContactFrame
    reference : mapping of str to matrix
        With the loads of switched contacts.
    """

    def __init__(
        self, parts: Assembly, contacts: tuple[ContactFrame, ...], reference: Mapping[str, Matrix]
    ) -> None:
        self.parts = parts
        self.standing = Standing(contacts, parts.frames, parts.state, reference)

    def problem(self, feasible: bool) -> TaskProblem:
        """Return what is to be solved, contacts that stand first among its exact rows."""
        nature = self._left_alone if feasible else Level(ca.SX(0, self.parts.n), ca.SX(0, 1))
        sides = zip(self._held, nature, strict=True)
        exact = Level(*(ca.vertcat(*side) for side in sides))
        return self.parts.problem(exact=False)._replace(exact=exact)

    @property
    def _names(self) -> list[str]:
        return [f"{c.name}: {part}" for c in self.standing.contacts for part in c.parts]

    @cached_property
    def _held(self) -> Level:
        """Rows that hold closed contacts still."""
        rows = zip(self.standing.holds, self.standing.closed, strict=True)
        levels = [Level(*self.parts.reduced(closed * h.A, closed * h.b)) for h, closed in rows]
        return Level(*(ca.vertcat(*side) for side in zip(*levels, strict=True)))

    @cached_property
    def _free(self) -> Level | None:
        return self.parts.exact()

    @cached_property
    def _added(self) -> Matrix:
        """Accelerations (n x k) per unit of p: M^-1 J^T s."""
        factor = MassFactor(self.parts.M)
        return factor.out(factor.into(self.standing.reaction))

    @cached_property
    def _carrying(self) -> tuple[Matrix, RowSpace]:
        """G, and the space of its rows."""
        assert self._free is not None
        G = self._free.A @ self._added
        return G, RowSpace(G, ca.repmat(ca.sumsqr(G), G.shape[0], 1), None)

    @property
    def _left_alone(self) -> Level:
        """Rows of motion that forces of contacts do not change; none where they carry it all."""
        if self._free is None:
            return Level(ca.SX(0, self.parts.n), ca.SX(0, 1))
        G, space = self._carrying
        identity = ca.SX.eye(G.shape[0])
        P = identity - G @ space.least(identity)
        # A projector's diagonal is the share of a direction: of one that is reached, rounding.
        P = (ca.diag(P) > REACHED) * P
        return Level(P @ self._free.A, P @ self._free.b)

    def forces(self, a: Matrix) -> Matrix:
        """Return p of the smallest forces with which the machine has an acceleration (n)."""
        if self._free is None:
            return ca.SX(self.standing.size, 1)
        return self._carrying[1].least(self._free.A @ a - self._free.b)

    def by_motors(self, a: Matrix, p: Matrix) -> Matrix:
        """Return the acceleration less what contacts add to it."""
        return a - self._added @ p

    def signals(self, a: Matrix, p: Matrix) -> dict[str, Matrix]:
        """Return what is recorded of contacts; what the ground cannot give counts as unloaded."""
        missed = ca.vertsplit(self._held.A @ a - self._held.b)
        signals = self.standing.signals(p, dict(zip(self._names, missed, strict=True)))
        given = [
            ca.logic_and(signals[f"{c.name}.cone"] <= 1 + OUTSIDE, self._presses(c, signals))
            for c in self.standing.contacts
        ]
        signals["unloaded"] = ca.logic_or(signals["unloaded"], ca.logic_not(ca.vertcat(*given)))
        return {**signals, "acceleration": a}

    def _presses(self, contact: ContactFrame, signals: Mapping[str, Matrix]) -> Matrix:
        """Tell whether no point of a contact is pulled, beside the largest force."""
        forces = ca.reshape(signals[f"{contact.name}.force"], 3, len(contact.points))
        normal = ca.DM(contact.normal).T @ forces
        return ca.mmin(normal) >= -OUTSIDE * ca.mmax(ca.fabs(normal))
