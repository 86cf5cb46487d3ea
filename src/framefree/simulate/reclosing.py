"""Loops that an event has opened are closed again: other lengths, another body, another loop.

Configurations move as little as the new loops ask for: by the joints that no actuator drives, or,
where these alone do not close them, by all. The velocity after it is the nearest that the loops
allow in the metric of the mass matrix, as after a plastic impact.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from framefree.machine import Machine
from framefree.motion import ClosureError
from framefree.motion.constrained import Constrained
from framefree.motion.constrained.scales import velocity_units
from framefree.simulate.errors import SimulationError
from framefree.simulate.events import Scene

OPEN = 1e-6
"""Errors of loops (m, rad, and these per s) from which on a state is moved."""


def closed_again(scene: Scene, hold: Sequence[str] | None, time: float) -> tuple[Scene, Any]:
    """Return the scene with its loops closed, and how far the state has jumped for it.

    Parameters
    ----------
    scene : Scene
        After an event.
    hold : sequence of str, optional
        Joints or velocities that stay; by default those that are driven, as far as possible.
    time : float
        s.

    Raises
    ------
    SimulationError
        If the loops cannot be closed from here, or only beyond limits of joints.
    """
    machine = scene.machine
    if not isinstance(machine, Machine) or not machine.closed:
        return scene, {}
    form = Constrained(machine)
    many = scene.x.ndim > 1
    rows = np.broadcast_to(scene.parameters, (len(scene.x), len(machine.parameters)))
    states = list(zip(scene.x, scene.v, rows, strict=True) if many else [_state(scene)])
    if not any(_opened(form, *state) for state in states):
        return scene, {}
    try:
        moved = [_closed(form, *state, hold) for state in states]
    except ClosureError as error:
        raise SimulationError(
            f"at {time:.9g} s an event opens loops of `{machine.name}` that cannot be closed "
            f"again from there: {error}",
            time=time,
        ) from None
    units = velocity_units(machine)
    jump = {
        "jump_x": max(
            float(np.abs(machine.difference(old, new) / units).max(initial=0.0))
            for (old, _, _), (new, _) in zip(states, moved, strict=True)
        ),
        "jump_v": max(
            float(np.abs((new - old) / units).max(initial=0.0))
            for (_, old, _), (_, new) in zip(states, moved, strict=True)
        ),
    }
    x, v = (np.array(column) for column in zip(*moved, strict=True))
    return replace(scene, x=x if many else x[0], v=v if many else v[0]), jump


def _state(scene: Scene) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return scene.x, scene.v, scene.parameters


def _opened(form: Constrained, x: np.ndarray, v: np.ndarray, parameters: np.ndarray) -> bool:
    errors = form.numbers("constraint", parameters.tolist(), x=x, v=v, t=0.0)
    return max(float(np.abs(errors[k]).max(initial=0.0)) for k in (2, 3)) > OPEN


def _closed(
    form: Constrained,
    x: np.ndarray,
    v: np.ndarray,
    parameters: np.ndarray,
    hold: Sequence[str] | None,
) -> tuple[np.ndarray, np.ndarray]:
    values = parameters.tolist()
    # A joint that is beyond its limits already does not have to come back at once.
    limits = not _beyond(form.machine, x)

    def near(held: Sequence[str]) -> np.ndarray:
        return form.project(x, hold=held, limits=limits, tries=0, parameters=values).x

    try:
        closed = near(_driven(form.machine) if hold is None else hold)
    except ClosureError:
        if hold is not None:
            raise
        closed = near(())
    return closed, form.project(closed, v, limits=False, parameters=values).v


def _driven(machine: Machine) -> list[str]:
    joints = {actuator.sensed_joint for actuator in machine.actuators}
    return [joint.name for joint in machine.joints if joint.name in joints and joint.nv]


def _beyond(machine: Machine, x: np.ndarray) -> bool:
    return any(
        bool(((q < joint.lower) | (q > joint.upper)).any())
        for joint in machine.joints
        if joint.kind.vector
        for q in [x[machine.x_slice[joint.name]]]
    )
