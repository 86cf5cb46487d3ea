"""The contacts of a machine that stands, at one symbolic state, as rows of a law.

The forces f of the ground are unknowns beside the acceleration a,

    M a + h = S^T tau + J^T f,    J a + dJ/dt v = -Kd J v    of every contact that is closed.

A law searches them as ``f = s p`` with s the root of the machine's mass, so that |p|^2 has the unit
of Gauss's constraint, as |z|^2 of ``a = a_free + W z`` has. Where tasks determine the motion and
leave forces open, the smallest sum of |f|^2 is taken.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.shared.frames import FrameMotion, Frames
from framefree.control.shared.model import ModelState
from framefree.control.tasks.base import Task
from framefree.control.tasks.contact_frames import OPEN, ContactFrame
from framefree.geometry import so3
from framefree.machine import Contact, Machine

Matrix = Any
MISSED = 1e-6
"""Share of gravity, and of what is asked for, by which a contact that is held may move."""


class HoldRows(NamedTuple):
    """Rows ``A a = b`` on the accelerations (nv) of all joints that hold one contact still.

    In the axes of the contact; `velocity` is what still moves.
    """

    A: Matrix
    b: Matrix
    velocity: Matrix


class Standing:
    """All contacts of a law at a state.

    Attributes
    ----------
    contacts : tuple of ContactFrame
    holds : list of HoldRows
    loads : list of (1)
        Shares of their largest forces that contacts may carry; 1 where they are not switched.
    """

    def __init__(
        self,
        contacts: tuple[ContactFrame, ...],
        frames: Frames,
        state: ModelState,
        reference: Mapping[str, Matrix],
    ) -> None:
        self.contacts, self._frames, self._state = contacts, frames, state
        self.loads = [
            ca.SX(reference[f"{c.name}.load"]) if c.switched else ca.SX(1) for c in contacts
        ]
        self.holds = [self._hold(contact) for contact in contacts]

    @property
    def size(self) -> int:
        """Number of forces."""
        return sum(3 * len(contact.points) for contact in self.contacts)

    @property
    def closed(self) -> list[Matrix]:
        """Whether contacts are closed."""
        return [load >= OPEN for load in self.loads]

    @cached_property
    def scale(self) -> Matrix:
        """s, of forces f = s p."""
        mass = sum((body.moments.total for body in self._frames.machine.bodies), ca.SX(0))
        return ca.sqrt(mass)

    @cached_property
    def reaction(self) -> Matrix:
        """Forces on the independent velocities per unit of p (n x k); none of an open contact."""
        columns = [ca.SX(self._state.model.n, 0)]
        for contact, closed in zip(self.contacts, self.closed, strict=True):
            for point in contact.points:
                J = self._touching(contact, point).Jv
                columns.append(closed * (self._state.reduced(J.T) @ ca.DM(contact.axes)))
        return ca.horzcat(*columns) * self.scale

    def _touching(self, contact: ContactFrame, point: Any) -> FrameMotion:
        """Return the motion of a point of a contact where it touches, seen from its ground."""
        place = np.eye(4)
        place[:3, 3] = point
        at = self._frames.at(contact.frame, place).seen_from(self._frames.at(contact.ground))
        if not contact.radius:
            return at
        arm = contact.radius * ca.DM(contact.normal)
        return at._replace(
            v=at.v + ca.cross(arm, at.w),
            Jv=at.Jv + so3.wed(arm) @ at.Jw,
            dv=at.dv + ca.cross(arm, at.dw),
        )

    def _hold(self, contact: ContactFrame) -> HoldRows:
        at = self._touching(contact, (0.0, 0.0, 0.0) if contact.flat else contact.points[0])
        T = ca.DM(contact.axes).T
        A, drift, velocity = T @ at.Jv, T @ at.dv, T @ at.v
        if contact.flat:
            A, drift = ca.vertcat(A, T @ at.Jw), ca.vertcat(drift, T @ at.dw)
            velocity = ca.vertcat(velocity, T @ at.w)
        return HoldRows(A, -drift - contact.Kd * velocity, velocity)

    # ------------------------------------------------------------------ rows on forces

    def cones(self) -> tuple[tuple[str, ...], Matrix, Matrix, Matrix]:
        """Return names, rows on p and their bounds that keep forces where the ground can give them.

        Of every contact its normal force, of flat ones those of each point, then its pyramids.
        """
        labels, blocks, low, high = [], [], [], []
        for contact, load in zip(self.contacts, self.loads, strict=True):
            count = len(contact.points)
            normals = np.kron(np.eye(count), [[0.0, 0.0, 1.0]])
            rows = [normals.sum(axis=0, keepdims=True)]
            labels.append(f"{contact.name}: normal force")
            most = ca.fmax(load, OPEN) * contact.most if contact.switched else contact.most
            low.append(ca.fmin(contact.least, most))
            high.append(most)
            if contact.flat:
                rows.append(normals)
                labels += [f"{contact.name}: normal force of point {i}" for i in range(count)]
            rows.append(np.kron(np.eye(count), contact.pyramid))
            sides = range(contact.sides)
            labels += [
                f"{contact.name}: side {j} of point {i}" for i in range(count) for j in sides
            ]
            block = np.vstack(rows)
            blocks.append(block)
            low += [0.0] * (len(block) - 1)
            high += [np.inf] * (len(block) - 1)
        A = ca.sparsify(ca.diagcat(*(ca.DM(block) for block in blocks)))
        return tuple(labels), A * self.scale, ca.vertcat(*low), ca.vertcat(*high)

    def held(self, pressed: bool) -> tuple[tuple[str, ...], Matrix, Matrix, Matrix]:
        """Return names, rows on all joints and bounds that hold contacts; none of open ones.

        Those that keep contacts on their ground, or those that keep them from slipping.
        """
        labels, rows, sides = [], [], ([], [])
        for contact, hold, closed in zip(self.contacts, self.holds, self.closed, strict=True):
            places = contact.rows(pressed)
            labels += [f"{contact.name}: {contact.parts[k]}" for k in places]
            rows.append(hold.A[places, :])
            for side, far in zip(sides, (-np.inf, np.inf), strict=True):
                b = hold.b[places]
                side.append(ca.if_else(closed, b, far) if contact.switched else b)
        return tuple(labels), ca.vertcat(*rows), ca.vertcat(*sides[0]), ca.vertcat(*sides[1])

    # ------------------------------------------------------------------ signals

    def signals(self, p: Matrix, missed: Mapping[str, Matrix]) -> dict[str, Matrix]:
        """Return what is worth recording of forces p (k), and of what rows miss by their names."""
        signals, unloaded, at = {}, [], 0
        gravity = float(np.linalg.norm(self._frames.machine.gravity))
        for k, contact in enumerate(self.contacts):
            count, closed, hold = len(contact.points), self.closed[k], self.holds[k]
            own = ca.reshape(p[at : at + 3 * count], 3, count) * self.scale * closed
            normal, across = own[2, :], ca.sqrt(own[0, :] ** 2 + own[1, :] ** 2)
            share = across / (contact.friction * ca.fmax(normal, 1e-12 * self._weight))
            signals[f"{contact.name}.force"] = ca.vec(ca.DM(contact.axes) @ own)
            signals[f"{contact.name}.normal"] = ca.sum2(normal)
            signals[f"{contact.name}.cone"] = ca.mmax(share)
            signals[f"{contact.name}.speed"] = ca.norm_2(hold.velocity[:3])
            slips = ca.norm_2(ca.vertcat(*(missed[f"{contact.name}: {k}"] for k in contact.parts)))
            gives_way = slips > MISSED * (gravity + ca.norm_2(hold.b))
            at_least = ca.sum2(normal) <= contact.least + 1e-9 * (contact.least + self._weight)
            idle = ca.logic_and(self.loads[k] >= 1, at_least)
            unloaded.append(ca.logic_or(ca.logic_and(closed, gives_way), idle))
            at += 3 * count
        return {**signals, "unloaded": ca.vertcat(*unloaded)}

    @cached_property
    def _weight(self) -> Matrix:
        gravity = float(np.linalg.norm(self._frames.machine.gravity))
        return self.scale**2 * gravity


def checked_contacts(
    machine: Machine, contacts: Any, tasks: Sequence[Task]
) -> tuple[ContactFrame, ...]:
    """Return the contacts of a law; refuse what is none, names twice, and compliant ones beside."""
    if not isinstance(contacts, Sequence):
        raise ControlError(f"`contacts` must be a sequence of ContactFrame, got {contacts!r}")
    names = [task.name for task in tasks]
    for contact in contacts:
        if not isinstance(contact, ContactFrame):
            raise ControlError(f"`contacts` must hold ContactFrame, got {contact!r}")
        contact.check(machine)
        if contact.name in names:
            raise ControlError(f"`{contact.name}` names two contacts or tasks; names must differ")
        names.append(contact.name)
    soft = [part.name for part in machine.interactions if isinstance(part, Contact)]
    if contacts and soft:
        raise ControlError(
            f"`{machine.name}` has the compliant contact `{soft[0]}`; a law with contact frames "
            f"finds the forces of the ground itself: give it machine.detach({soft[0]!r})"
            + (" and so on" if len(soft) > 1 else "")
        )
    return tuple(contacts)
