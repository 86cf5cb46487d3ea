"""Check the parts of a machine against each other: types, unique names, valid references."""

from typing import Any

import numpy as np

from framefree.machine.actuators import Actuator, JointActuator, JointForce, SpinningPropeller
from framefree.machine.body import WORLD, Body
from framefree.machine.closure import loose_joints
from framefree.machine.collision import CollisionExclusion, CollisionShape, CollisionSolver
from framefree.machine.coupling import Coupling
from framefree.machine.damper import Damper
from framefree.machine.fluid import Fluid
from framefree.machine.frame import Frame
from framefree.machine.joint import Joint
from framefree.machine.keyframe import Keyframe
from framefree.machine.loop import Loop
from framefree.machine.names import REFERRING, UNNAMED
from framefree.machine.pair_force import PairForce
from framefree.machine.problems import Problems
from framefree.machine.shape import Shape
from framefree.machine.spring import ConstantForce, EulerSpring, Spring
from framefree.machine.tendon import Tendon
from framefree.machine.tree import check_unique, unknown
from framefree.machine.values import is_symbolic

GROUPS = {
    "bodies": (Body,),
    "joints": (Joint,),
    "frames": (Frame,),
    "springs": (Spring, EulerSpring, ConstantForce),
    "dampers": (Damper,),
    "tendons": (Tendon,),
    "interactions": (PairForce,),
    "loops": (Loop,),
    "couplings": (Coupling,),
    "actuators": (Actuator,),
    "geometry": (Shape,),
    "collisions": (CollisionShape, CollisionExclusion, CollisionSolver),
    "keyframes": (Keyframe,),
}
"""Types of the parts in each sequence of a machine."""


def check_types(machine: Any, problems: Problems) -> None:
    """Report what is not of the right type."""
    for group, expected in GROUPS.items():
        for item in getattr(machine, group):
            if not isinstance(item, expected):
                names = " or ".join(kind.__name__ for kind in expected)
                problems.add(f"`{group}` must hold {names}, got {type(item).__name__}")
    if machine.fluid is not None and not isinstance(machine.fluid, Fluid):
        problems.add(f"`fluid` must be a Fluid or None, got {type(machine.fluid).__name__}")


def check_parts(machine: Any, problems: Problems) -> None:
    """Report names that are taken twice, and names that nothing has."""
    bodies = [body.name for body in machine.bodies]
    frames = [frame.name for frame in machine.frames]
    check_unique("bodies and frames", [*bodies, *frames], problems)
    for frame in machine.frames:
        if frame.body != WORLD and frame.body not in bodies:
            problems.add(
                unknown(f"the body of frame `{frame.name}`:", frame.body, [*bodies, WORLD])
            )
    places = {WORLD, *bodies, *frames}
    joints = {joint.name: joint for joint in machine.joints}
    for group in ("joints", *(g for g in REFERRING if g not in UNNAMED), "keyframes"):
        check_unique(group, [part.name for part in getattr(machine, group)], problems)
    immersed = machine.fluid.immersed if machine.fluid is not None else ()
    check_unique("immersed bodies", [part.frame for part in immersed], problems)
    known = {"frame": places, "joint": set(joints), "tendon": {t.name for t in machine.tendons}}
    for part in (*(p for group in REFERRING for p in getattr(machine, group)), *immersed):
        _check_references(part, known, problems)
    for actuator in machine.actuators:
        _check_actuator(actuator, joints, problems)
    for word, parts in (("coupling", machine.couplings), ("tendon", machine.tendons)):
        _check_coordinates(word, parts, joints, problems)
    _check_couplings(machine.couplings, problems)
    for keyframe in machine.keyframes:
        _check_keyframe(keyframe, joints, machine.actuators, problems)


def doubts(machine: Any) -> list[str]:
    """Return what looks wrong: odd inertias, active springs and dampers, motion without mass."""
    remarks = [message for body in machine.bodies for message in body.problems]
    for spring in machine.springs:
        if isinstance(spring, Spring) and _pushes(spring.moments.matrix6):
            remarks.append(f"spring `{spring.name}` is not stable at its rest pose")
    for damper in machine.dampers:
        if _pushes(damper.matrix):
            remarks.append(f"damper `{damper.name}` feeds power into some motions")
    weightless = [
        joint.name for i, joint in enumerate(machine.joints) if joint.nv and _weightless(machine, i)
    ]
    unled = ", and loops and couplings do not lead it" if machine.closed else ""
    return remarks + [
        f"joint `{name}` moves no mass, and has no armature{unled}: its acceleration is undefined"
        for name in loose_joints(machine, weightless)
    ]


def _pushes(matrix: Any) -> bool:
    """Whether a motion exists that a stiffness or damping (6x6) does not resist but drives."""
    if is_symbolic(matrix):
        return False
    # Rows of forces and of moments are measured by their own diagonal: units do not matter.
    diagonal = np.abs(np.diag(matrix))
    scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, diagonal.max(initial=0.0) or 1.0))
    values = np.linalg.eigvalsh(matrix * np.outer(scale, scale))
    return bool(values[0] < -1e-9 * np.abs(values).max())


def _weightless(machine: Any, index: int) -> bool:
    """Whether a joint has a velocity that neither a mass, a rotor nor the fluid resists."""
    joint = machine.joints[index]
    if is_symbolic(joint.armature) or (joint.armature > 0).all():
        return False
    carried = machine.subtree(joint.child)
    immersed = machine.fluid.immersed if machine.fluid is not None else ()
    wet = {machine.frame(part.frame).body for part in immersed if part.resists_acceleration}
    bodies = [machine.bodies[i] for i in carried]
    return all(body.massless and body.name not in wet for body in bodies)


def _check_references(part: Any, known: dict[str, set[str]], problems: Problems) -> None:
    kind = type(part).__name__
    what = f"{kind} `{part.name}`" if part.name else kind
    for word, names in known.items():
        for name in part.referred(getattr(part, f"{word}_fields")):
            if name not in names:
                problems.add(unknown(f"{what}: {word}", name, names))
    ends = [getattr(part, field) for field in part.frame_fields]
    if len(ends) == 2 and ends[0] == ends[1]:
        problems.add(f"{what} must connect two different frames, got `{ends[0]}` twice")


def _check_actuator(actuator: Any, joints: dict[str, Joint], problems: Problems) -> None:
    joint = joints.get(getattr(actuator, "joint", ""))
    if joint is None or joint.kind.locked:
        return
    if isinstance(actuator, JointActuator) and joint.nv == 0:
        problems.add(f"actuator `{actuator.name}` drives joint `{joint.name}`, which does not move")
    elif isinstance(actuator, JointForce):
        if actuator.gear.shape[0] != joint.nv:
            problems.add(
                f"the gear of actuator `{actuator.name}` must be {joint.nv} numbers, one for each "
                f"velocity of joint `{joint.name}`, got {actuator.gear.shape[0]}"
            )
        terms = actuator.bias_terms
        if not is_symbolic(terms) and terms[1] != 0.0 and not joint.kind.vector:
            problems.add(
                f"actuator `{actuator.name}` feeds back the position of joint `{joint.name}`, "
                f"whose coordinates are not a plain vector ({type(joint.kind).__name__})"
            )
    elif isinstance(actuator, SpinningPropeller) and joint.nv != 1:
        problems.add(
            f"propeller `{actuator.name}` needs a joint with one velocity, "
            f"but joint `{joint.name}` has {joint.nv}"
        )


def _check_coordinates(word: str, parts: Any, joints: dict[str, Joint], problems: Any) -> None:
    plain = {n for joint in joints.values() if joint.kind.vector for n in joint.x_names}
    others = {n for joint in joints.values() if not joint.kind.vector for n in joint.x_names}
    for part in parts:
        for name in part.referred(part.coordinate_fields):
            if name in others:
                problems.add(
                    f"{word} `{part.name}`: `{name}` is not a plain coordinate; use a "
                    "Revolute joint without limits where the angle itself is needed"
                )
            elif name not in plain:
                problems.add(unknown(f"{word} `{part.name}`: coordinate", name, plain))


def _check_couplings(couplings: Any, problems: Problems) -> None:
    targets = [coupling.target for coupling in couplings]
    check_unique("the targets of couplings", targets, problems)
    ring = _ring({coupling.target: coupling.sources for coupling in couplings})
    if ring:
        problems.add(f"couplings must not depend on each other in a ring: {' <- '.join(ring)}")


def _ring(sources: dict[str, tuple[str, ...]]) -> list[str]:
    """Return targets that depend on themselves through others, in order.

    Empty if there are none.
    """
    done: set[str] = set()
    for start in sources:
        path: list[str] = []
        stack = [(start, 0)]
        while stack:
            name, depth = stack.pop()
            path = path[:depth]
            if name in path:
                return [*path[path.index(name) :], name]
            if name in sources and name not in done:
                path.append(name)
                stack.extend((source, depth + 1) for source in sources[name])
        done.add(start)
    return []


def _check_keyframe(keyframe: Keyframe, joints: Any, actuators: Any, problems: Problems) -> None:
    what = f"keyframe `{keyframe.name}`"
    inputs = {actuator.name: actuator for actuator in actuators}
    sizes = (
        ("x", "joint", {name: joint.nx for name, joint in joints.items()}),
        ("v", "joint", {name: joint.nv for name, joint in joints.items()}),
        ("u", "actuator", {name: actuator.nu for name, actuator in inputs.items()}),
    )
    for part, kind, known in sizes:
        for name, values in getattr(keyframe, part):
            if name not in known:
                problems.add(unknown(f"{what}: {kind}", name, known))
            elif len(values) != known[name]:
                problems.add(
                    f"{what}: `{part}` of {kind} `{name}` must be {known[name]} numbers, "
                    f"got {len(values)}"
                )
