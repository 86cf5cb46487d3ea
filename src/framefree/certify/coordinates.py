"""A machine in other coordinates and rates, measured: angles, quaternions, task coordinates."""

from dataclasses import replace

import casadi as ca
import numpy as np

from framefree.certify.form import Form, form_of
from framefree.certify.subject import evaluate
from framefree.machine import Machine
from framefree.machine.joints import Free, Spherical
from framefree.machine.units import Units, definiteness, linear_velocities
from framefree.motion.tree import Tree
from framefree.motion.tree.euler import velocity_map
from framefree.motion.tree.other_rates import TaskRates, map_rate, quaternion_map, transformed

SINGULAR_RATES = 1e-6
"""Least singular value of rates per velocity, in natural units, that counts as zero."""
HALVINGS = 40
"""Of a way between two configurations, in search of a singular one."""


def measured_euler(tree: Tree, units: Units, count: int, rng: np.random.Generator) -> Form:
    """Measure the form in Euler angles; c from the Lagrange equations of the kinetic energy."""
    nv, D = tree.machine.nv, _angle_units(tree.machine, units)
    rate = rng.normal(size=(count, nv))
    eta = rng.uniform(-1.4, 1.4, (count, nv)) * D
    s, r = ca.SX.sym("eta", nv), ca.SX.sym("rate", nv)
    mass = tree.functions["mass:euler"](s)
    M_dot = ca.reshape(ca.jtimes(ca.vec(mass), s, r), nv, nv)
    bias = _lagrange_bias(tree.machine, mass, s, r)
    C = tree.functions["coriolis:euler"](s, r)
    form = form_of("euler", [s, r], [mass, M_dot, C, bias], eta, rate * D, D, units.inertia)
    upright = _upright(tree.machine, eta[:1])
    if upright is None:
        return form
    (M,) = evaluate(tree.functions["mass:euler"], upright)
    smallest, definite = float(np.linalg.eigvalsh(M)[0, 0]), definiteness(M[0], units.inertia)
    if definite > form.definite:
        return form
    return replace(
        form,
        smallest=min(form.smallest, smallest),
        smallest_x=upright[0],
        definite=definite,
    )


def measured_quaternion(tree: Tree, units: Units, x: np.ndarray, v: np.ndarray) -> Form:
    """Measure the form in rates of x; bounds are those on rates that keep x on its groups."""
    machine = tree.machine
    xs, ws = ca.SX.sym("x", machine.nx), ca.SX.sym("w", machine.nx)
    Y = quaternion_map(machine, xs)
    Y_rate = ca.reshape(ca.jtimes(ca.vec(ca.densify(Y)), xs, ws), *Y.shape)
    mass = tree.functions["mass:quaternion"](xs)
    rate = ca.reshape(ca.jtimes(ca.vec(mass), xs, ws), *mass.shape)
    own = tree.functions["mass"](xs) @ Y_rate @ ws + tree.functions["bias"](xs, Y @ ws)
    outputs = [mass, rate, tree.functions["coriolis:quaternion"](xs, ws), Y.T @ own]
    A = ca.Function("A", [xs], [ca.densify(machine.rate_matrix(xs))])
    (rates,) = evaluate(A, x)
    w = np.einsum("nij,nj->ni", rates, v)
    form = form_of("quaternion", [xs, ws], outputs, x, w, units.stride)
    (masses,) = evaluate(tree.functions["mass:quaternion"], x)
    return _on_tangents(form, masses, rates, units, x)


def _on_tangents(
    form: Form, masses: np.ndarray, rates: np.ndarray, units: Units, x: np.ndarray
) -> Form:
    """Return a form with the bounds of M on the rates A v alone."""
    least, definite = [], []
    for M, A in zip(masses, rates, strict=True):
        Q, R = np.linalg.qr(A)
        on = Q.T @ M @ Q
        least.append(np.linalg.eigvalsh(on)[0])
        definite.append(definiteness(R.T @ on @ R, units.inertia))
    worst = int(np.argmin(definite))
    return replace(
        form, smallest=float(min(least)), smallest_x=x[worst], definite=float(definite[worst])
    )


def measured_task(
    tree: Tree, units: Units, name: str, frame: str, x: np.ndarray, v: np.ndarray
) -> Form:
    """Measure the form in rates of base and end frame.

    Angles of the base must be defined at the configurations x.
    """
    machine, rates = tree.machine, TaskRates(tree, frame, name == "task_euler")
    xs, ws = ca.SX.sym("x", machine.nx), ca.SX.sym("w", machine.nv)
    Y = tree.functions[f"velocity_map:{name}:{frame}"](xs)
    vs = Y @ ws
    Y_rate = map_rate(machine, Y, xs, vs)
    state = tree.at(xs, vs)
    M = tree.functions["mass"](xs)
    mass = Y.T @ M @ Y
    rate = ca.reshape(ca.jtimes(ca.vec(mass), xs, machine.rate_matrix(xs) @ vs), *mass.shape)
    C = transformed(M, state.coriolis, Y, Y_rate)
    bias = Y.T @ (M @ Y_rate @ ws + tree.functions["bias"](xs, vs))
    D = np.where(rates.linear, units.length, units.velocity)
    D[rates.active[3:]] = 1.0
    form = form_of(name, [xs, ws], [mass, rate, C, bias], x, v / units.velocity * D, D)
    # Rates per velocity are bounded, so that M in them is as definite as M itself.
    (masses,) = evaluate(tree.functions["mass"], x)
    form = replace(form, definite=min(definiteness(one, units.inertia) for one in masses))
    if rates.turns_by_angles:
        words = "roll, pitch and yaw of the base lose rank at pitch 90 degrees"
        form = replace(form, singular=f"M is singular: {words}")
    where = _singular_at(tree, rates, units, D, x)
    if where is None:
        return form
    places = ", ".join(f"{value:.3g}" for value in where)
    words = f"the end frame `{frame}` cannot be moved in all directions at x = ({places})"
    reasons = (form.singular, f"M has no bound: {words}")
    return replace(form, singular="; ".join(filter(None, reasons)))


def _singular_at(
    tree: Tree, rates: TaskRates, units: Units, D: np.ndarray, x: np.ndarray
) -> np.ndarray | None:
    """Return a configuration at which the rates do not determine the velocities; None if none.

    Between two configurations at which the determinant has different signs there is one.
    """
    xs = ca.SX.sym("x", tree.machine.nx)
    W = rates.rates(tree.at(xs))[rates.active, rates.active]
    scaled = ca.diag(1 / D[rates.active]) @ W @ ca.diag(units.velocity[rates.active])
    active = ca.Function("W", [xs], [ca.densify(scaled)])

    def determinant(at: np.ndarray) -> float:
        return float(np.linalg.det(active(at).full()))

    signs = [determinant(one) for one in x]
    low, high = x[int(np.argmin(signs))], x[int(np.argmax(signs))]
    if not min(signs) < 0 < max(signs):
        return None
    for _ in range(HALVINGS):
        step = tree.machine.difference(low, high)
        middle = tree.machine.integrate(low, step / 2)
        low, high = (middle, high) if determinant(middle) < 0 else (low, middle)
    least = np.linalg.svd(active(low).full(), compute_uv=False)[-1]
    return low if least < SINGULAR_RATES else None


def _angle_units(machine: Machine, units: Units) -> np.ndarray:
    """Return L for the Euler coordinates (nv,) that are lengths; they stand where velocities do."""
    return np.where(linear_velocities(machine), units.length, 1.0)


def _lagrange_bias(machine: Machine, mass: ca.SX, s: ca.SX, r: ca.SX) -> ca.SX:
    """Return c of Lagrange's equations of the bodies, and of rotors, which resist dv/dt alone.

    With v = T r the force of rotors A is T^T A dv/dt; it does not follow from their energy in
    angles, as velocities of a ball joint are not rates of angles.
    """
    armature = np.concatenate([np.zeros(0), *(joint.armature for joint in machine.joints)])
    A, T = ca.DM(np.diag(armature)), velocity_map(machine, s)
    bodies = mass - T.T @ A @ T
    momentum_rate = ca.jtimes(bodies @ r, s, r)
    rotors = T.T @ (A @ ca.jtimes(T @ r, s, r))
    return momentum_rate - ca.gradient(r.T @ bodies @ r, s) / 2 + rotors


def _upright(machine: Machine, eta: np.ndarray) -> np.ndarray | None:
    """Return angles with pitch 90 degrees; None for a machine without such an angle."""
    pitching = [joint for joint in machine.joints if isinstance(joint.kind, Free | Spherical)]
    eta = eta.copy()
    for joint in pitching:
        eta[:, machine.v_slice[joint.name].stop - 2] = np.pi / 2
    return eta if pitching else None
