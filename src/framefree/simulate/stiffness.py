"""Which integrator a machine needs: how fast its servos, dampers and springs act, against the step.

About rest, deviations decay and swing with the eigenvalues of

    d/dt (eps, dv) = [0, 1; M^-1 K, M^-1 D] (eps, dv)

K and D being the slopes of all forces of the machine itself, servos within their limits included.
An explicit integrator is unstable where one of them that should decay grows from step to step.
That cannot be where all of them are slow enough (`DISC`). Of long machines only the largest is
looked for at first, by Arnoldi's method: M, K and D as a whole are large then, their products with
one vector are not. In joint coordinates of very long chains it finds rates that are too large; all
are then looked at after all.
"""

from functools import partial
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.machine import JointStop, Machine
from framefree.machine.actuators import Actuator, TendonActuator
from framefree.machine.joint_stop import stops_of
from framefree.machine.values import is_symbolic
from framefree.motion.actuation import input_bias
from framefree.motion.tree import Tree
from framefree.simulate.implicit import actuator_slopes

MARGIN = 1.25
"""How much faster the machine may be in states that are not looked at."""
STATES = 8
"""Most first states, and random configurations, that are looked at."""
DISC = 2.6
"""Radius of a half-disc, dt times rates that do not grow, in which no explicit step makes them."""
LONG = 60
"""Number of velocities from which on the largest rate is looked for first."""
ROUGH = 1.05
"""How much larger it may be than what Arnoldi's method has after a tolerance of a hundredth."""


class FastestMotion(NamedTuple):
    """A motion: its rate (1/s), and the name of the velocity that has most of its energy."""

    rate: float
    name: str


def unstable_motion(
    machine: Any, parameters: np.ndarray, x: np.ndarray, dt: float
) -> FastestMotion | None:
    """Return a motion that should decay but grows with explicit steps of dt; None for none.

    Parameters
    ----------
    machine : Machine
    parameters : (n,)
        Values of its tunable numbers.
    x : (states, nx)
        First configurations; the neutral one and some random ones are looked at too.
    dt : float
        s.
    """
    if not (isinstance(machine, Machine) and _has_fast_parts(machine)):
        return None
    rng = np.random.default_rng(0)
    states = [*x[:STATES], machine.neutral(), *(machine.random(rng) for _ in range(STATES))]
    states += [_pressed(machine, stop) for stop in stops_of(machine)]
    if machine.nv >= LONG and _all_slow(machine, parameters, states, dt):
        return None
    matrices, rest = _matrices(machine), np.zeros(machine.nv)
    worst = None
    for state in states:
        M, K, D = (np.asarray(part.full()) for part in matrices(state, rest, parameters))
        motion = _fastest(M, K, D, dt, machine.v_names)
        if motion is not None and (worst is None or motion.rate > worst.rate):
            worst = motion
    return worst


def _pressed(machine: Machine, stop: JointStop) -> np.ndarray:
    """Return a configuration in which one joint presses lightly against its stop."""
    x, k = machine.neutral(), machine.x_names.index(stop.coordinate)
    low, high = (float(end) for end in stop.rest)
    far = np.finfo(float).max
    x[k] = np.nextafter(high, far) if high < far else np.nextafter(low, -far)
    return x


def _has_fast_parts(machine: Machine) -> bool:
    """Tell whether there is anything that can decay or swing fast by itself."""
    joints = (
        joint.has_friction
        or joint.has_spring
        or is_symbolic(joint.damping)
        or bool(np.any(joint.damping))
        for joint in machine.joints
    )
    others = (
        machine.springs,
        machine.dampers,
        machine.tendons,
        machine.interactions,
        machine.fluid,
    )
    return any(others) or any(joints) or _servos(machine)


def _is_servo(machine: Machine, actuator: Actuator) -> bool:
    """Tell whether an actuator pushes by itself."""
    sizes = (0, 0)
    if isinstance(actuator, TendonActuator):
        sizes = (1, 1)
    elif actuator.sensed_joint is not None:
        joint = machine.joint(actuator.sensed_joint)
        sizes = (joint.nx, joint.nv)
    return actuator.bias(*(ca.SX.sym("sensed", size) for size in sizes)) is not None


def _all_slow(
    machine: Machine, parameters: np.ndarray, states: list[np.ndarray], dt: float
) -> bool:
    """Tell whether rates at all states are so small that no step can make a motion grow."""
    # Loading scipy.sparse takes long, and only long machines need it.
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigs

    n, response = machine.nv, _response(machine)
    start = np.random.default_rng(1).normal(size=2 * n)
    for state in states:
        product = partial(_product, response, state, parameters, n)
        operator = LinearOperator((2 * n, 2 * n), matvec=product, dtype=float)  # type: ignore[call-arg]
        try:
            values = eigs(operator, k=2, v0=start, tol=1e-2, return_eigenvectors=False)  # type: ignore[arg-type]
        except ArpackError:
            return False
        if not ROUGH * MARGIN * dt * np.abs(values).max() <= DISC:
            return False
    return True


def _product(
    response: ca.Function, x: np.ndarray, parameters: np.ndarray, n: int, y: np.ndarray
) -> np.ndarray:
    """Return [0, 1; M^-1 K, M^-1 D] y (2n)."""
    moved, turned = y[:n], y[n:]
    return np.concatenate([turned, response(x, moved, turned, parameters).full().ravel()])


def _response(machine: Machine) -> ca.Function:
    """Return the function from x, eps, dv and the tunable numbers to M^-1 (K eps + D dv)."""
    n = machine.nv
    x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", n)
    eps, dv = ca.SX.sym("eps", n), ca.SX.sym("dv", n)
    state = Tree(machine.tree).at(x, v)
    needed = state.inverse(ca.SX(n, 1)) - (input_bias(state) if _servos(machine) else 0)
    moving = ca.vertcat(state.rate_matrix @ eps, dv)
    change = ca.jtimes(needed, ca.vertcat(x, v), moving)
    rate = state.accelerate(state.bias - change)
    (rate,) = ca.substitute([rate], [v], [ca.SX.zeros(n)])
    symbols = [x, eps, dv, machine.parameters.symbols]
    return ca.Function("response", symbols, [ca.densify(rate)])


def _servos(machine: Machine) -> bool:
    return any(_is_servo(machine, actuator) for actuator in machine.actuators)


def _matrices(machine: Machine) -> ca.Function:
    """Return the function from x, v and the tunable numbers to M, K and D."""
    x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    state = Tree(machine.tree).at(x, v)
    by_x, by_v = state.newton_slopes(ca.SX.zeros(machine.nv))
    K = D = ca.SX(machine.nv, machine.nv)
    if _servos(machine):
        K, D = actuator_slopes(state, ca.SX.zeros(machine.nu), limits=False)
    outputs = [ca.densify(ca.SX(part)) for part in (state.mass, K - by_x, D - by_v)]
    return ca.Function("matrices", [x, v, machine.parameters.symbols], outputs)


def _fastest(
    M: np.ndarray, K: np.ndarray, D: np.ndarray, dt: float, names: tuple[str, ...]
) -> FastestMotion | None:
    n = len(M)
    try:
        slopes = np.linalg.solve(M, np.hstack([K, D])) if n else np.zeros((0, 0))
    except np.linalg.LinAlgError:
        return None
    if not n or not np.isfinite(slopes).all():
        return None
    F = np.vstack([np.hstack([np.zeros((n, n)), np.eye(n)]), slopes])
    values, vectors = (np.asarray(part, complex) for part in np.linalg.eig(F))
    z = MARGIN * dt * values
    growth = np.abs(1 + z * (1 + z / 2 * (1 + z / 3 * (1 + z / 4))))
    unstable = (growth > 1) & (np.abs(z) > 1) & (np.real(values) <= 1e-9 * np.abs(values))
    if not unstable.any():
        return None
    index = int(np.argmax(np.where(unstable, np.abs(values), 0.0)))
    share = np.abs(vectors[n:, index]) * np.sqrt(np.abs(np.diag(M)))
    return FastestMotion(float(np.abs(values[index])), names[int(np.argmax(share))])
