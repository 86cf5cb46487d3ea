"""The reference velocity as [Eslami2025] prints it: as if there were no joints.

M^-1 stands in place of Phi_c (errata E0-8, E0-9, E0-11). It is there for comparison only.
"""

from typing import Any

import casadi as ca

from framefree.control.port.sweeps import BodyChain, BodyRates, NearestVelocity, VelocityRequest
from framefree.motion.loops import BodyMath
from framefree.motion.spatial import Matrix, solve_symmetric


def jointless_velocity(chain: BodyChain, ask: VelocityRequest) -> NearestVelocity:
    """Return the reference velocity with M^-1 for Phi_c: as if there were no joints."""
    tape, tasks = chain.tape, {task.body: task for task in ask.tasks}
    twists, rates, zeros = [], [], []
    for i in range(chain.count):
        load, rows = ask.load(i), ask.barrier(i)
        if i in tasks:
            task = tasks[i]
            pair = [tape.call(task.frame.twist_to_link, i, one) for one in task[1:3]]
        elif load is None and rows is None:
            pair = [tape.call(_nothing, i, chain.x[i])] * 2
        else:
            pair = tape.call(_freely, i, *(load or (None, None)), rows)
        twists.append(pair[0])
        rates.append(pair[1])
        zeros.append(tape.call(_no_rate, i, chain.v[i]))
    velocity, rate = BodyRates(twists, zeros, []), BodyRates(rates, zeros, [])
    return NearestVelocity(velocity, rate, None, ask)


def _freely(
    body: BodyMath, load: Matrix | None, rate: Matrix | None, rows: Any
) -> tuple[Matrix, Matrix]:
    """Return the velocity of a body under a load and its barrier, and the rate."""
    M = body.inertia.matrix
    load, rate = (ca.SX(6, 1) if one is None else one for one in (load, rate))
    if rows is None:
        return solve_symmetric(M, load), solve_symmetric(M, rate)
    M = M + rows.inertia
    twist = solve_symmetric(M, load + rows.load)
    return twist, solve_symmetric(M, rate + rows.load_rate(twist))


def _nothing(body: BodyMath, x: Matrix) -> Matrix:
    return ca.SX(6, 1)


def _no_rate(body: BodyMath, v: Matrix) -> Matrix:
    return ca.SX(body.link.kind.nv, 1)
