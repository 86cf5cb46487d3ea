"""Springs, dampers, interactions and fluid between bodies, on a tape."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import casadi as ca

from framefree.geometry import se3
from framefree.machine import Frame, Machine
from framefree.machine.part import plain
from framefree.machine.values import constant_pose
from framefree.motion import forces
from framefree.motion.loops.tape import Tape
from framefree.motion.spatial import Matrix


def passive_wrenches(
    tape: Tape,
    machine: Machine,
    states: Sequence[Any],
    read: Callable[[Any], tuple[Matrix, Matrix]],
    places: Sequence[Matrix] | None = None,
) -> list[Any]:
    """Return the wrench (6) of springs, dampers, interactions and fluid on every body, or None.

    Parameters
    ----------
    states : sequence
        For every body a value from which `read` finds the pose (4x4) and the twist (6) of a frame
        that moves with it; wrenches are in the axes of this frame.
    places : sequence of 4x4, optional
        Pose of the body's own frame seen from that frame; default the identity.
    """
    total: list[Any] = [None] * len(machine.bodies)
    for kind, part in _parts(machine):
        frames = [_placed(machine, getattr(part, name), places) for name in part.frame_fields]
        indices = [machine.body_index[frame.body] for frame in frames]
        bodies = list(dict.fromkeys(i for i in indices if i >= 0))
        if not bodies:
            continue
        alone = _alone(machine, kind, part, frames, bodies)

        def added(*values: Any, alone: Any = alone) -> tuple[Matrix, ...]:
            count = len(alone.bodies)
            poses, twists = zip(*map(read, values[:count]), strict=True)
            own = forces.body_wrenches(forces.Bodies(alone, poses, twists))
            totals = [
                [wrench for wrench in both if wrench is not None]
                for both in zip(own, values[count:], strict=True)
            ]
            return tuple(ca.densify(sum(parts[1:], parts[0])) for parts in totals)

        before = [total[i] for i in bodies]
        sums = tape.shared(
            (kind, _likeness(part, frames)), added, *(states[i] for i in bodies), *before
        )
        tape.forget(*before)
        for i, wrench in zip(bodies, sums if type(sums) is tuple else (sums,), strict=True):
            total[i] = wrench
    return total


def _parts(machine: Machine) -> Iterator[tuple[str, Any]]:
    for spring in machine.springs:
        yield "spring", spring
    for damper in machine.dampers:
        yield "damper", damper
    for force in machine.interactions:
        yield "interaction", force
    for body in machine.fluid.immersed if machine.fluid is not None else ():
        yield "immersed", body


def _placed(machine: Machine, name: str, places: Sequence[Matrix] | None) -> Frame:
    """Return a frame, seen from the frame that moves with its body."""
    frame = machine.frame(name)
    index = machine.body_index[frame.body]
    if places is None or index < 0:
        return frame
    pose = ca.SX(se3.compose(places[index], constant_pose(frame.pose)))
    return replace(frame, pose=ca.DM(pose).full() if pose.is_constant() else pose)


def _alone(
    machine: Machine, kind: str, part: Any, frames: Sequence[Frame], bodies: Sequence[int]
) -> Any:
    """Return a machine of these bodies with one part alone, as far as forces look at it."""
    fluid = machine.fluid
    names = [getattr(part, name) for name in part.frame_fields]
    owners = [machine.bodies[i] for i in bodies]
    return SimpleNamespace(
        springs=(part,) if kind == "spring" else (),
        dampers=(part,) if kind == "damper" else (),
        interactions=(part,) if kind == "interaction" else (),
        tendons=(),
        fluid=None if fluid is None or kind != "immersed" else replace(fluid, immersed=(part,)),
        bodies=owners,
        body_index={"world": -1, **{body.name: k for k, body in enumerate(owners)}},
        frame=dict(zip(names, frames, strict=True)).__getitem__,
        gravity=machine.gravity,
    )


def _likeness(part: Any, frames: Sequence[Frame]) -> tuple:
    """Return what parts that share code have in common: numbers, and how frames lie."""
    poses = tuple((frame.body == "world", plain(frame.pose)) for frame in frames)
    alone = len({frame.body for frame in frames}) < len(frames)
    values = tuple(
        plain(value)
        for name, value in vars(part).items()
        if name not in ("name", *part.frame_fields)
    )
    return (type(part).__name__, alone, poses, values)
