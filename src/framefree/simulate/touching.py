"""Contacts at single states: starts that overlap are refused, and failures name who touches."""

import warnings
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from framefree.errors import FramefreeWarning
from framefree.machine import WORLD, Contact, Machine
from framefree.machine.contact_pairs.base import ROUNDED, THIN
from framefree.machine.part import set_field
from framefree.machine.values import is_symbolic
from framefree.motion.tree import Tree
from framefree.simulate.errors import SimulationError

STANDARD_GRAVITY = 9.81
"""m/s^2; weights are compared with it also where there is no gravity."""

_TURNING = {1.0: 1.5708, 1.5: 1.4716}
"""Time from touching to turning over D / v, by exponent of the depth."""

DEEP = 0.1
"""Share of the smaller shape's half width from which an overlap at the start is warned of."""


def contacts_of(machine: Any) -> list[Contact]:
    """Return the contacts of a machine; a system in coordinates of its own is not looked at."""
    parts = machine.interactions if isinstance(machine, Machine) else ()
    return [part for part in parts if isinstance(part, Contact)]


def without_contacts(machine: Machine) -> Machine:
    """Return the machine without its contacts, with the same tunable numbers as before."""
    kept = tuple(part for part in machine.interactions if not isinstance(part, Contact))
    plain = replace(machine, interactions=kept)
    if len(machine.parameters):
        set_field(plain, "parameters", machine.parameters)
        set_field(plain, "_numeric_form", without_contacts(machine.numeric))
    return plain


def depths(machine: Machine, x: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    """Return how deep each contact is (m) at configurations of the joints: (n, contacts)."""
    symbol = ca.SX.sym("x", machine.nx)
    bodies = Tree(machine.tree).at(symbol).bodies
    deepest = [part.depth_at(bodies.relative(part)[2]) for part in contacts_of(machine)]
    inputs = [symbol, machine.parameters.symbols]
    function = ca.Function("depths", inputs, [ca.densify(ca.vertcat(*deepest))])
    rows = np.atleast_2d(x)
    values = np.broadcast_to(np.atleast_2d(parameters), (len(rows), len(machine.parameters)))
    pairs = zip(rows, values, strict=True)
    return np.array([np.array(function(*pair)).ravel() for pair in pairs])


def check_first(
    machine: Any, x: np.ndarray, parameters: np.ndarray, *, compliant: bool = True
) -> None:
    """Refuse first states in which one shape lies beyond the middle of another; warn of deep ones.

    With `compliant` false another engine pushes them apart, and no energy is stored.

    Raises
    ------
    SimulationError
        Naming the contact, its frames and the depth.
    """
    contacts = contacts_of(machine)
    if not contacts:
        return
    found = depths(machine, x, parameters).max(axis=0)
    for part, depth in zip(contacts, found, strict=True):
        extent = min(part.shape_a.extent, part.shape_b.extent)
        if depth < DEEP * extent:
            continue
        words = f"the run starts with {_words(part)} {depth:.3g} m deep"
        if depth >= (1 - 1e-9) * extent:
            raise SimulationError(
                f"{words}, beyond the middle of a shape of half width {extent:.3g} m: there is no "
                "way out that contact could know; start with the shapes apart"
            )
        energy = part.energy_of_depth(depth)
        stored = "energy is" if is_symbolic(energy) else f"at least {float(energy):.3g} J are"
        pushed = f"{stored} stored there, and will push" if compliant else "MuJoCo will push"
        warnings.warn(
            f"{words}; {pushed} the shapes apart",
            FramefreeWarning,
            stacklevel=2,
        )


def warn_of_steps(machine: Any, parameters: np.ndarray, dt: float, *, explicit: bool) -> None:
    """Warn of contacts that steps of dt do not resolve (of implicit ones impacts), or too soft."""
    found = _too_stiff if explicit else _too_short
    for text in (*found(machine, parameters, dt), *_too_soft(machine, parameters)):
        warnings.warn(text, FramefreeWarning, stacklevel=2)


def _carrying(machine: Any, parameters: np.ndarray) -> list[tuple[Contact, float]]:
    """Return contacts in numbers, each with the smaller mass of the bodies that touch (kg)."""
    if not contacts_of(machine) or np.ndim(parameters) > 1:
        return []
    numbers, found = machine.with_parameters(parameters), []
    for part in contacts_of(numbers):
        owners = [numbers.frame(name).body for name in (part.frame_a, part.frame_b)]
        masses = [numbers.body(name).moments.total for name in owners if name != WORLD]
        mass = min((float(one) for one in masses if one > 0), default=0.0)
        if mass:
            found.append((part, mass))
    return found


def _too_stiff(machine: Any, parameters: np.ndarray, dt: float) -> list[str]:
    """Return a sentence on each contact that explicit steps of dt do not resolve.

    A body of mass M that lies still on a contact swings at sqrt(f' / M), with f' the slope of the
    force at the depth that carries its weight on earth; impacts are stiffer still.
    """
    found = []
    for part, mass in _carrying(machine, parameters):
        m = part.exponent
        slope = m * part.stiffness ** (1 / m) * (mass * STANDARD_GRAVITY) ** (1 - 1 / m)
        rate = np.sqrt(slope / mass)
        if dt * rate > 1:
            found.append(
                f"{_words(part)} is too stiff for explicit steps of {dt:g} s: {mass:.3g} kg on it "
                f"swing at {rate:.3g} rad/s; take steps below {1 / rate:.2g} s, "
                '`integrator="implicit"`, or a lower stiffness'
            )
    return found


def _too_short(machine: Any, parameters: np.ndarray, dt: float) -> list[str]:
    """Return a sentence on each contact whose impacts implicit steps of dt do not resolve.

    Without damping a mass M that hits with speed v turns at the depth D of M v^2 / 2 =
    k D^(m+1) / (m+1), after the time (D / v) times the integral of (1 - s^(m+1))^(-1/2) over 0 to 1
    (1.57 for m = 1, 1.47 for m = 3/2), and leaves after twice that.
    """
    found = []
    for part, mass in _carrying(machine, parameters):
        m = part.exponent
        turn = ((m + 1) * mass / (2 * part.stiffness)) ** (1 / (m + 1))
        lasts = 2 * _TURNING[m] * turn
        if lasts < 2 * dt:
            found.append(
                f"{_words(part)}: an impact of {mass:.3g} kg at 1 m/s lasts {lasts:.2g} s, which "
                f"steps of {dt:g} s do not follow: what hits does not come back as its damping "
                f"says; take steps below {lasts / 4:.2g} s, or a lower stiffness"
            )
    return found


def _too_soft(machine: Any, parameters: np.ndarray) -> list[str]:
    """Return a sentence on each contact with corners or rims that sinks in too deep for its size.

    Where edges take over from corners the energy of the contact changes within the rounding, so
    that what lies there is pushed aside, by a share of its load of about depth over rounding.
    """
    found = []
    for part, mass in _carrying(machine, parameters):
        kinds = {part.shape_a.kind, part.shape_b.kind}
        if kinds & {"half_space", "sphere"} or kinds == {"capsule"}:
            continue
        load, rounding = mass * STANDARD_GRAVITY / 4, ROUNDED * _half_width(part)
        depth = (load / part.stiffness) ** (1 / part.exponent)
        if depth > rounding / 2:
            stiff = load / (rounding / 4) ** part.exponent
            found.append(
                f"{_words(part)} is soft for its size: {mass:.3g} kg on four corners sink in by "
                f"{depth:.2g} m, where corners and rims are rounded by {rounding:.2g} m; where "
                "one takes over from another, what lies there is pushed aside by a good part of "
                f"its weight; take a stiffness above {stiff:.1g}"
            )
    return found


def _half_width(part: Contact) -> float:
    """Return the smallest half width (m) of two shapes, of disks that of the cylinder they are."""
    shapes = (part.shape_a, part.shape_b)
    return min(one.extent * (THIN if one.kind == "disk" else 1.0) for one in shapes)


def blamed_contact(machine: Any, x: np.ndarray, parameters: np.ndarray, dt: float) -> str:
    """Say which contact may be why a run broke off after a state; empty if none.

    The deepest of those that touch, or those that are too stiff for the steps.
    """
    contacts = contacts_of(machine)
    if not contacts or np.ndim(parameters) > 1:
        return ""
    if np.isfinite(x).all():
        (found,) = depths(machine, x, parameters)
        k = int(np.argmax(found))
        if found[k] > 0:
            return (
                f"; {_words(contacts[k])} was {found[k]:.3g} m deep: a contact that is stiff for "
                f'steps of {dt:g} s needs shorter ones, `integrator="implicit"`, or a lower '
                "stiffness"
            )
    return "".join(f"; {text}" for text in _too_stiff(machine, parameters, dt)[:1])


def _words(part: Contact) -> str:
    return f"contact `{part.name}` between `{part.frame_a}` and `{part.frame_b}`"
