"""Derivatives of a tree's motion in closed form.

Derivatives by the configuration are taken on the tangent space: column j is the slope along
``x (+) eps e_j`` (`Machine.integrate`), that is d_j f = A_j . df/dx. The rigid part comes in closed
form from `framefree.motion.tree.slopes`; springs, dampers, fluid and joint friction, of which
a machine has few, by differentiating their own graph.

    da/dx = -M^-1 d(force)/dx,    da/dv = -M^-1 d(force)/dv,    da/dforce = M^-1
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from framefree.machine import Free, Machine, PairForce
from framefree.motion import forces
from framefree.motion.spatial import Inertia, Matrix, wed
from framefree.motion.tangent import Tangent, velocity_deviation
from framefree.motion.tree import recursion
from framefree.motion.tree.factor import InverseMass
from framefree.motion.tree.links import Link
from framefree.motion.tree.slopes import RigidTree, moving_links

if TYPE_CHECKING:
    from framefree.motion.tree.state import TreeState


def deviation(machine: Machine, x: Matrix, v: Matrix, a: Matrix) -> tuple[Matrix, Matrix]:
    """Return W (nv x nv), ``W_ij = gamma^i_kj v^k``, and its rate along (v, a)."""
    blocks = [(ca.SX(0, 0), ca.SX(0, 0))]
    for joint in machine.joints:
        kind = joint.kind
        if kind.vector:
            blocks.append((ca.SX(kind.nv, kind.nv), ca.SX(kind.nv, kind.nv)))
            continue
        at_x, at_v = machine.x_slice[joint.name], machine.v_slice[joint.name]
        q = ca.SX.sym("q", kind.nx)
        w, c = ca.SX.sym("w", kind.nv), ca.SX.sym("c", kind.nv)
        own = velocity_deviation(Tangent(q, ca.SX(kind.rate(q))), w, c)
        blocks.append(ca.Function("W", [q, w, c], list(own))(x[at_x, :], v[at_v, :], a[at_v, :]))
    W, W_rate = (ca.diagcat(*parts) for parts in zip(*blocks, strict=True))
    return W, W_rate


class TreeSlopes:
    """A state (x, v) of a tree, x and v symbols, with the slopes of its motion."""

    def __init__(self, state: "TreeState") -> None:
        self.state, self.machine = state, state.machine
        # Lumped inertia gives the same forces, and so their slopes, with fewer operations.
        lumped = zip(state.links, state.equations.lumped, strict=True)
        self.links = moving_links([replace(link, inertia=one.full) for link, one in lumped])
        self.rigid = RigidTree(self.links, state.x, state.v, state.equations.gravity_vector)

    @cached_property
    def inverse_mass(self) -> InverseMass:
        """``M^-1`` in factors.

        Of the recursion in link axes: seen from the root, light tips would lose their digits.
        """
        return InverseMass(self.links, self.state.mass)

    def force(self, a: Matrix) -> Matrix:
        """Return the force (nv) for accelerations a."""
        return self.rigid.force(a) + self._rest(a)

    def by_inverse(self, a: Matrix) -> tuple[Matrix, Matrix]:
        """Return the slopes (nv x nv) of the force by x and by v."""
        by_x, by_v = self.rigid.slopes(a)
        rest_by_x, rest_by_v = self._rest_slopes(a)
        return by_x + rest_by_x, by_v + rest_by_v

    def by_newton(self, a: Matrix) -> tuple[Matrix, Matrix]:
        """Return slopes as `by_inverse` does; of some interactions only what counts most."""
        known, near_x, near_v = forces.newton_slopes(self.state.bodies, self.state.v)
        if not known:
            return self.by_inverse(a)
        by_x, by_v = self.rigid.slopes(a)
        rest_by_x, rest_by_v = self._rest_slopes(a, known)
        return by_x + rest_by_x - near_x, by_v + rest_by_v - near_v

    def acceleration(self, force: Matrix) -> Matrix:
        """Return the acceleration (nv) under a force."""
        return self.inverse_mass.times(force - self.force(ca.SX(self.machine.nv, 1)))

    def by_forward(self, force: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        """Return the slopes (nv x nv) of the acceleration by x, by v and by the force."""
        a, inverse = self.acceleration(force), self.inverse_mass
        by_x, by_v = self.rigid.slopes(a)
        rest_by_x, rest_by_v = self._rest_slopes(a)
        nv = self.machine.nv
        fall, turn = ca.SX(*by_x.shape), ca.SX(*by_v.shape)
        for link in self.links:
            if self._flies(link):
                # Turning the whole machine turns gravity in its axes, and nothing else. Giving all
                # bodies one more velocity changes no acceleration but as its axes turn.
                linear, angular = link.v.start + np.arange(3), link.v.start + 3 + np.arange(3)
                by_x[:, link.v], by_v[:, linear] = ca.SX(nv, 6), ca.SX(nv, 3)
                g = link.step(self.state.x).into(self.state.equations.gravity_vector)
                fall[linear, angular] = wed(g)
                turn[linear, linear] = -wed(self.state.v[angular])
        by_x, by_v = ca.sparsify(by_x) + rest_by_x, ca.sparsify(by_v) + rest_by_v
        by_x, by_v = inverse.minus_times(by_x), inverse.minus_times(by_v)
        return fall + by_x, turn + by_v, inverse.matrix

    def _flies(self, link: Link) -> bool:
        """Whether a link is the free root of bodies without rotor or fluid against the world."""
        root = link.parent < 0 and isinstance(link.kind, Free)
        return root and self.machine.fluid is None and link.armature.is_zero()

    def _rest_slopes(self, a: Matrix, left_out: Sequence[PairForce] = ()) -> tuple[Matrix, Matrix]:
        held = ca.SX.sym("held", self.machine.nv)
        rest, A = self._rest(held, left_out), self.machine.rate_matrix(self.state.x)
        slopes = [ca.jacobian(rest, self.state.x) @ A, ca.jacobian(rest, self.state.v)]
        by_x, by_v = ca.substitute(slopes, [held], [a])
        return ca.sparsify(by_x), ca.sparsify(by_v)

    @cached_property
    def _armature(self) -> Matrix:
        return ca.diagcat(ca.SX(0, 0), *(link.armature for link in self.state.links))

    def _rest(self, a: Matrix, left_out: Sequence[PairForce] = ()) -> Matrix:
        """Return the force (nv) of all but rigid bodies: rotors, joints' own, springs, fluid."""
        state, machine = self.state, self.machine
        over_frames = any(tendon.frames for tendon in machine.tendons)
        between = machine.springs or machine.dampers or machine.interactions
        if not (between or machine.fluid or over_frames):
            return self._armature @ a + state.resistance
        links = state.links
        added = [
            Inertia(*(whole - own for whole, own in zip(total, link.inertia, strict=True)))
            if extra is not None
            else Inertia.of(ca.SX(6, 6))
            for extra, total, link in zip(
                forces.added_masses(machine), state.equations.inertias, links, strict=True
            )
        ]
        given = state.loads(left_out=left_out)
        gyroscopic = recursion.gyroscopic([link.inertia for link in links], state.motion.twists)
        loads = [load.plus(own) for load, own in zip(given, gyroscopic, strict=True)]
        passed, _ = recursion.newton_euler(
            links, state.motion, a, loads, added, state.equations.gravity_vector
        )
        return passed + state.resistance
