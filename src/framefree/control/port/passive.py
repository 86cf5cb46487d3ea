"""Springs, dampers and fluid between bodies, on a tape."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import casadi as ca

from framefree.control.port.bodies import Placed, add
from framefree.control.port.tape import Inline, Looped
from framefree.geometry import se3
from framefree.machine import Machine
from framefree.machine.part import plain
from framefree.motion import forces
from framefree.motion.spatial import Matrix, Step, Wrench
from framefree.motion.tree.links import Link


def passive_wrenches(tape: Inline | Looped, machine: Machine, placed: Sequence[Any]) -> list[Any]:
    """Return the wrench (6, link axes) of springs, dampers and fluid on every body, or None."""
    links = tape.model.links
    total: list[Any] = [None] * len(links)
    for kind, part in _parts(machine):
        frames = [machine.frame(getattr(part, name)) for name in part.frame_fields]
        indices = [machine.body_index[frame.body] for frame in frames]
        bodies = list(dict.fromkeys(i for i in indices if i >= 0))
        if not bodies:
            continue
        own = [links[i] for i in bodies]
        alone = _alone(machine, kind, part, [machine.bodies[i] for i in bodies])

        def wrenches(*at: Placed, own: Any = own, alone: Any = alone) -> tuple[Matrix, ...]:
            return _wrenches(alone, own, at)

        key = (kind, _likeness(part, frames), tuple(_numbers(one.to_body) for one in own))
        found = tape.shared(key, wrenches, *(placed[i] for i in bodies))
        for i, wrench in zip(bodies, found if len(bodies) > 1 else [_only(found)], strict=True):
            total[i] = wrench if total[i] is None else tape.call(add, i, total[i], wrench)
    return total


def _only(found: Any) -> Any:
    return found[0] if type(found) is tuple else found


def _parts(machine: Machine) -> Iterator[tuple[str, Any]]:
    for spring in machine.springs:
        yield "spring", spring
    for damper in machine.dampers:
        yield "damper", damper
    for body in machine.fluid.immersed if machine.fluid is not None else ():
        yield "immersed", body


def _alone(machine: Machine, kind: str, part: Any, bodies: Sequence[Any]) -> Any:
    """Return a machine of these bodies with one part alone, as far as forces look at it."""
    fluid = machine.fluid
    return SimpleNamespace(
        springs=(part,) if kind == "spring" else (),
        dampers=(part,) if kind == "damper" else (),
        fluid=None if fluid is None or kind != "immersed" else replace(fluid, immersed=(part,)),
        bodies=bodies,
        body_index={"world": -1, **{body.name: k for k, body in enumerate(bodies)}},
        frame=machine.frame,
        gravity=machine.gravity,
    )


def _wrenches(alone: Any, links: Sequence[Link], at: Sequence[Placed]) -> tuple[Matrix, ...]:
    steps = [Step(se3.rotation(one.to_body), se3.position(one.to_body)) for one in links]
    poses = [
        se3.compose(placed.pose.matrix, link.to_body)
        for placed, link in zip(at, links, strict=True)
    ]
    twists = [step.twist_into(placed.twist).vector for placed, step in zip(at, steps, strict=True)]
    found = forces.body_wrenches(forces.Bodies(alone, poses, twists))
    return tuple(
        step.wrench_out(Wrench.of(wrench)).vector for step, wrench in zip(steps, found, strict=True)
    )


def _numbers(pose: Matrix) -> Any:
    return plain(ca.DM(pose).full()) if pose.is_constant() else id(pose)


def _likeness(part: Any, frames: Sequence[Any]) -> tuple:
    """Return what parts that share code have in common: numbers, and how frames lie."""
    poses = tuple((frame.body == "world", plain(frame.pose)) for frame in frames)
    alone = len({frame.body for frame in frames}) < len(frames)
    values = tuple(
        plain(value)
        for name, value in vars(part).items()
        if name not in ("name", *part.frame_fields)
    )
    return (type(part).__name__, alone, poses, values)
