"""Impacts that are shorter than a step, in implicit steps of two stages.

The second stage of `SDIRK2` goes on from where the rates P1, A1 of the first one lead to,

    x_b = x exp((1 - g) h P1),    v_b = v + (1 - g) h A1

If an impact begins and ends within the step, this is deep in the other shape, or on the way back
with up to 1.41 times the speed: energy from nowhere. Contacts and stops that are met in the step
therefore tell whether x_b and v_b can be reached. With the energy V and the depth d of each, the
mass m of the lighter body there, r = (1 - g) / g and the change D = g h A1 of the first stage,

    V_1 or V_b > 2 V    of some contact, and
    dT = T(v_b) - T(v) > r^2 D . M D / 20,    or of some contact
    dT + V_b - V > (m/2 ((d_b - d) / ((1 - g) h))^2 + V) / 4

mean that they cannot; of stops the last line has the machine's kinetic energy. The step is then one
of the implicit Euler rule, which adds no energy where V is convex: what hits harder than steps can
follow comes back slower than its damping says, or stays. Impacts that last two steps or more are
left as they are.
"""

from typing import Any, NamedTuple

import casadi as ca

from framefree.machine import WORLD, Machine
from framefree.machine.joint_stop import stops_of
from framefree.motion import State
from framefree.simulate.integrators import ImplicitIntegrator
from framefree.simulate.loop import ControlLoop
from framefree.simulate.touching import contacts_of

Matrix = Any
GROWN = 2.0
"""Energy of a contact, relative to that at the beginning, from which on it is being hit."""
TURNED = 0.1
"""Share of the kinetic energy of a change of speed that may come from nowhere."""
GAINED = 0.25
"""Share of the energy of what hits that may come from nowhere as energy of a contact."""


def may_be_hit(loop: ControlLoop, integrator: ImplicitIntegrator) -> bool:
    """Tell whether steps must be looked at: two stages, and contacts or stops to run into."""
    machine = loop.plant.machine
    return integrator.stages == 2 and bool(_met(machine))


def _met(machine: Any) -> list[Any]:
    return [*contacts_of(machine), *stops_of(machine)] if isinstance(machine, Machine) else []


def resolved(
    loop: ControlLoop, own: float, h: Matrix, state: State, moved: tuple[Matrix, Matrix]
) -> Matrix:
    """Return 1 where the second stage may build upon the first, 0 where an impact is too short.

    Parameters
    ----------
    loop : ControlLoop
    own : float
        g, the weight of a stage in itself.
    h : scalar
    state : State
        At the beginning of the step.
    moved : tuple of matrices
        Rates of x, in its algebra, and of v at the first stage.
    """
    group, ratio = loop.plant_side.group, (1 - own) / own
    P, A = moved
    places = (group.integrate(state.x, share * h * P) for share in (own, 1 - own))
    before = _met_at(state)
    first, last = (_met_at(loop.plant.at(X, state.v, state.t)) for X in places)
    change = own * h * A
    pushed = state.mass @ change
    turned = ratio**2 / 2 * ca.dot(change, pushed)
    kinetic = ratio * ca.dot(state.v, pushed) + turned
    hit = ca.mmax(ca.fmax(first.energy, last.energy) - GROWN * before.energy) > 0
    approach = (last.depth - before.depth) / ((1 - own) * h)
    hitting = ca.vertcat(_masses(state.machine) / 2 * approach**2, before.kinetic)
    gained = kinetic + last.energy - before.energy - GAINED * (hitting + before.energy)
    beyond = ca.logic_or(kinetic > TURNED * turned, ca.mmax(gained) > 0)
    return ca.logic_not(ca.logic_and(hit, beyond))


class _Met(NamedTuple):
    """Energies (J) of all contacts and stops, depths (m) of contacts.

    `kinetic` is the kinetic energy of the machine, once for each stop.
    """

    energy: Matrix
    depth: Matrix
    kinetic: Matrix


def _met_at(state: State) -> _Met:
    machine, bodies = state.machine, state.bodies
    poses = [(part, bodies.relative(part)[2]) for part in contacts_of(machine)]
    energies = [part.energy_at(G, state.t) for part, G in poses]
    stops = stops_of(machine)
    for stop in stops:
        x = state.joint_x[machine.x_names.index(stop.coordinate)]
        energies.append(stop.spring_potential(x))
    depths = ca.vertcat(ca.SX(0, 1), *(part.depth_at(G) for part, G in poses))
    return _Met(ca.vertcat(*energies), depths, ca.repmat(state.kinetic, len(stops), 1))


def _masses(machine: Machine) -> Matrix:
    """Return for each contact the mass (kg) of the lighter body that touches."""
    masses = []
    for part in contacts_of(machine):
        owners = [machine.frame(name).body for name in (part.frame_a, part.frame_b)]
        own = [ca.SX(machine.body(name).moments.total) for name in owners if name != WORLD]
        masses.append(ca.mmin(ca.vertcat(*own)) if own else ca.SX(0))
    return ca.vertcat(ca.SX(0, 1), *masses)
