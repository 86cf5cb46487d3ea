"""What is simulated natively: the equations of motion of some formulation, and what they record."""

from collections.abc import Callable
from typing import Any, NamedTuple

import casadi as ca

from framefree.machine import Machine
from framefree.machine.joint_stop import stops_of
from framefree.machine.units import linear_velocities, translations
from framefree.motion import Equations, State, equations, forces, tendons
from framefree.motion.load import Load
from framefree.motion.outputs import Output, scalar, table, vector

Matrix = Any

WRENCH = ("fx", "fy", "fz", "mx", "my", "mz")
WRENCH_UNITS = ("N",) * 3 + ("Nm",) * 3
MOMENTUM_UNITS = {"linear": "N s", "angular": "Nm s", "centroidal": "Nm s"}


class Signal(NamedTuple):
    """A quantity to record: its value, the names of its entries (row-major) and their units.

    Without names, entries are numbered; a single unit serves all.
    """

    value: Output
    names: tuple[str, ...] = ()
    units: tuple[str, ...] = ()


def native_plant(machine: Machine, formulation: str | Equations | None) -> Equations:
    """Return the equations that are integrated.

    Without a formulation, a machine with loops or couplings is "constrained", a system in a user's
    own coordinates "redundant" and any other a "tree".
    """
    if isinstance(formulation, Equations):
        return formulation
    return equations(machine, formulation)


def plant_signals(state: State, load: Load) -> dict[str, Callable[[], dict[str, Signal]]]:
    """Return what can be recorded of a plant, by the name under which it is asked for."""
    known: dict[str, Callable[[], dict[str, Signal]]] = {
        "energy": lambda: _energy(state),
        "momentum": lambda: _momentum(state),
        "joint_wrench": lambda: _joint_wrench(state, load),
    }
    offered = {word: make for word, make in known.items() if word in state.equations.offers}
    if state.v.shape[0] == state.machine.nv:
        offered["acceleration"] = lambda: _acceleration(state, load)
    if state.machine.interactions:
        offered["interaction"] = lambda: _interaction(state)
    if stops_of(state.machine):
        offered["stop"] = lambda: _stop(state)
    if state.equations.keeps:
        offered["constraint"] = lambda: _constraint(state)
    return offered


def _energy(state: State) -> dict[str, Signal]:
    energies = {"kinetic": state.kinetic, "potential": state.potential}
    return {name: Signal(scalar(value), units=("J",)) for name, value in energies.items()}


def _momentum(state: State) -> dict[str, Signal]:
    return {
        f"{name}_momentum": Signal(vector(value), ("x", "y", "z"), (MOMENTUM_UNITS[name],) * 3)
        for name, value in state.momentum.items()
        if name in MOMENTUM_UNITS
    }


def _acceleration(state: State, load: Load) -> dict[str, Signal]:
    """Return the accelerations of the joints."""
    units = tuple("m/s^2" if one else "rad/s^2" for one in linear_velocities(state.machine))
    names = state.machine.v_names
    return {"acceleration": Signal(vector(state.forward(load)), names, units)}


def _joint_wrench(state: State, load: Load) -> dict[str, Signal]:
    joints = state.machine.joints
    names = tuple(f"{joint.name}.{part}" for joint in joints for part in WRENCH)
    value = table(state.joint_wrenches(load), 6)
    return {"joint_wrench": Signal(value, names, WRENCH_UNITS * len(joints))}


def _interaction(state: State) -> dict[str, Signal]:
    """Return what interactions exert on their frames b, what they lose, and what else they tell."""
    pairs = [
        (force, forces.pair_motion(state.bodies, force)) for force in state.machine.interactions
    ]
    names = tuple(f"{force.name}.{part}" for force, _ in pairs for part in WRENCH)
    wrenches = table([at.wrench for _, at in pairs], 6)
    signals = {
        "interaction_wrench": Signal(wrenches, names, WRENCH_UNITS * len(pairs)),
        "dissipation": Signal(scalar(state.dissipation), units=("W",)),
        "passive_power": Signal(scalar(state.passive_power), units=("W",)),
    }
    for force, at in pairs:
        for word, (value, unit) in force.records(at.pose, at.twist, state.t).items():
            made = scalar(value) if ca.SX(value).numel() == 1 else vector(ca.SX(value))
            signals[f"{force.name}.{word}"] = Signal(made, units=(unit,))
    return signals


def _stop(state: State) -> dict[str, Signal]:
    """Return the force of every stop on its coordinate, and what is lost."""
    stops = stops_of(state.machine)
    pushes = [-tendons.resistance(stop, state.tendon(stop.name)) for stop in stops]
    names = tuple(stop.coordinate for stop in stops)
    lengths = dict(zip(state.machine.x_names, translations(state.machine), strict=True))
    units = tuple("N" if lengths[name] else "Nm" for name in names)
    return {
        "stop_force": Signal(vector(ca.vertcat(*pushes)), names, units),
        "dissipation": Signal(scalar(state.dissipation), units=("W",)),
    }


def _constraint(state: State) -> dict[str, Signal]:
    signals = {}
    for name, error in state.constraint_errors().items():
        alone = not error.names and error.value.numel() == 1
        value = scalar(error.value) if alone else vector(error.value)
        signals[name] = Signal(value, error.names, error.units)
    return signals
