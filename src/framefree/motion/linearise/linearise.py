"""Derivatives of a tree's motion, and its linearisation about a trajectory.

Derivatives by the configuration are taken on the tangent space: column j is the slope along
``x (+) eps e_j`` (`Machine.integrate`), that is d_j f = A_j . df/dx. The rigid part comes in closed
form from `framefree.motion.linearise.slopes`; springs, dampers, fluid and joint friction, of which
a machine has few, by differentiating their own graph.

    da/dx = -M^-1 d(force)/dx,    da/dv = -M^-1 d(force)/dv,    da/dforce = M^-1

Along a motion x(t) the deviations eps of x and dv of v are not each other's rates, because
velocities of rotations do not commute [Konz2024, eq. 2.24]: with W_ij = gamma^i_kj v^k

    d(eps)/dt = dv - W eps,        d(dv)/dt = da/dx eps + da/dv dv + da/dforce dforce
"""

from functools import cached_property

import casadi as ca

from framefree.machine import Free, Machine
from framefree.motion import forces
from framefree.motion.equations import Output, Quantity
from framefree.motion.linearise.factor import InverseMass
from framefree.motion.linearise.slopes import RigidTree, moving_links
from framefree.motion.redundant.coordinates import Coordinates, linearised, velocity_deviation
from framefree.motion.spatial import Inertia, Matrix, wed
from framefree.motion.tree import recursion
from framefree.motion.tree.links import Link
from framefree.motion.tree.state import TreeModel, TreeState


def quantities(model: TreeModel) -> dict[str, Quantity]:
    """Return the quantities of a tree that are derivatives.

    - ``forward_derivatives(x, v, force)``: da_dx, da_dv, da_dforce (nv, nv);
    - ``inverse_derivatives(x, v, a)``: dforce_dx, dforce_dv, dforce_da (nv, nv);
    - ``linearisation(x, v, a)``: f0, f1, f2 (nv, nv) with
      d(force) = f0 eps + f1 d(eps)/dt + f2 d2(eps)/dt2 for x(t) (+) eps(t) near a motion;
    - ``state_matrices(x, v, force)``: A (2 nv, 2 nv) and B (2 nv, nv) with
      d/dt (eps, dv) = A (eps, dv) + B d(force);
    - ``forward_sensitivity(x, v, force)``, ``inverse_sensitivity(x, v, a)``: derivatives (nv, n) by
      the machine's n tunable parameters, if it has any.
    """
    nv = model.machine.nv

    def square(value: Matrix) -> Output:
        return Output(value, (nv, nv))

    def forward(x: Matrix, v: Matrix, force: Matrix) -> dict[str, Output]:
        found = TreeSlopes(model.at(x, v)).by_forward(force)
        return dict(zip(("da_dx", "da_dv", "da_dforce"), map(square, found), strict=True))

    def inverse(x: Matrix, v: Matrix, a: Matrix) -> dict[str, Output]:
        slopes = TreeSlopes(model.at(x, v))
        found = (*slopes.by_inverse(a), slopes.state.mass)
        return dict(zip(("dforce_dx", "dforce_dv", "dforce_da"), map(square, found), strict=True))

    def linearisation(x: Matrix, v: Matrix, a: Matrix) -> dict[str, Output]:
        slopes = TreeSlopes(model.at(x, v))
        by_x, by_v = slopes.by_inverse(a)
        found = linearised((by_x, by_v, slopes.state.mass), *deviation(model.machine, x, v, a))
        return {name: square(value) for name, value in found._asdict().items()}

    def state_matrices(x: Matrix, v: Matrix, force: Matrix) -> dict[str, Output]:
        by_x, by_v, by_force = TreeSlopes(model.at(x, v)).by_forward(force)
        W, _ = deviation(model.machine, x, v, ca.SX(nv, 1))
        A = ca.blockcat([[-W, ca.SX.eye(nv)], [by_x, by_v]])
        B = ca.vertcat(ca.SX(nv, nv), by_force)
        return {"A": Output(A, (2 * nv, 2 * nv)), "B": Output(B, (2 * nv, nv))}

    found = {
        "forward_derivatives": Quantity(("x", "v", "force"), forward),
        "inverse_derivatives": Quantity(("x", "v", "a"), inverse),
        "linearisation": Quantity(("x", "v", "a"), linearisation),
        "state_matrices": Quantity(("x", "v", "force"), state_matrices),
    }
    return found | (_sensitivities(model) if len(model.machine.parameters) else {})


def _sensitivities(model: TreeModel) -> dict[str, Quantity]:
    p = model.machine.parameters.symbols
    shape = (model.machine.nv, len(model.machine.parameters))

    def inverse(x: Matrix, v: Matrix, a: Matrix) -> dict[str, Output]:
        return {"dforce_dp": Output(ca.jacobian(model.at(x, v).inverse(a), p), shape)}

    def forward(x: Matrix, v: Matrix, force: Matrix) -> dict[str, Output]:
        held = ca.SX.sym("a", model.machine.nv)
        state = model.at(x, v)
        slopes = TreeSlopes(state)
        # At fixed acceleration: the force that would keep it, turned into acceleration.
        by_p = ca.jacobian(state.inverse(held), p)
        by_p = ca.substitute(by_p, held, slopes.acceleration(force))
        return {"da_dp": Output(-slopes.inverse_mass.times(by_p), shape)}

    return {
        "inverse_sensitivity": Quantity(("x", "v", "a"), inverse),
        "forward_sensitivity": Quantity(("x", "v", "force"), forward),
    }


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
        own = velocity_deviation(Coordinates(kind.nx, kind.nv, kind.rate).at(q), w, c)
        blocks.append(ca.Function("W", [q, w, c], list(own))(x[at_x, :], v[at_v, :], a[at_v, :]))
    W, W_rate = (ca.diagcat(*parts) for parts in zip(*blocks, strict=True))
    return W, W_rate


class TreeSlopes:
    """A state (x, v) of a tree, x and v symbols, with the slopes of its motion."""

    def __init__(self, state: TreeState) -> None:
        self.state, self.machine = state, state.machine
        self.links = moving_links(state.links)
        self.rigid = RigidTree(self.links, state.x, state.v, state.model.gravity)

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

    def acceleration(self, force: Matrix) -> Matrix:
        """Return the acceleration (nv) under a force."""
        return self.inverse_mass.times(force - self.force(ca.SX(self.machine.nv, 1)))

    def by_forward(self, force: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        """Return the slopes (nv x nv) of the acceleration by x, by v and by the force."""
        a, inverse = self.acceleration(force), self.inverse_mass
        by_x, by_v = self.rigid.slopes(a)
        rest_by_x, rest_by_v = self._rest_slopes(a)
        fall = ca.SX(*by_x.shape)
        for link in self.links:
            if self._flies(link):
                # Turning the whole machine turns gravity in its axes, and nothing else.
                by_x[:, link.v] = ca.SX(self.machine.nv, 6)
                g = link.step(self.state.x).into(self.state.model.gravity)
                fall[link.v.start : link.v.start + 3, link.v.start + 3 : link.v.stop] = wed(g)
        by_x, by_v = ca.sparsify(by_x) + rest_by_x, by_v + rest_by_v
        return fall - inverse.times(by_x), -inverse.times(by_v), inverse.matrix

    def _flies(self, link: Link) -> bool:
        """Whether a link is the free root of bodies without rotor or fluid against the world."""
        root = link.parent < 0 and isinstance(link.kind, Free)
        return root and self.machine.fluid is None and link.armature.is_zero()

    def _rest_slopes(self, a: Matrix) -> tuple[Matrix, Matrix]:
        held = ca.SX.sym("held", self.machine.nv)
        rest, A = self._rest(held), self.machine.rate_matrix(self.state.x)
        slopes = [ca.jacobian(rest, self.state.x) @ A, ca.jacobian(rest, self.state.v)]
        by_x, by_v = ca.substitute(slopes, [held], [a])
        return ca.sparsify(by_x), ca.sparsify(by_v)

    @cached_property
    def _armature(self) -> Matrix:
        return ca.diagcat(ca.SX(0, 0), *(link.armature for link in self.state.links))

    def _rest(self, a: Matrix) -> Matrix:
        """Return the force (nv) of all but rigid bodies: rotors, joints' own, springs, fluid."""
        state, machine = self.state, self.machine
        if not (machine.springs or machine.dampers or machine.fluid):
            return self._armature @ a + state.resistance
        links = state.links
        added = [
            Inertia(*(whole - own for whole, own in zip(total, link.inertia, strict=True)))
            if extra is not None
            else Inertia.of(ca.SX(6, 6))
            for extra, total, link in zip(
                forces.added_masses(machine), state.model.inertias, links, strict=True
            )
        ]
        gyroscopic = recursion.gyroscopic([link.inertia for link in links], state.motion.twists)
        loads = [load.plus(own) for load, own in zip(state.loads(), gyroscopic, strict=True)]
        passed, _ = recursion.newton_euler(
            links, state.motion, a, loads, added, state.model.gravity
        )
        return passed + state.resistance
