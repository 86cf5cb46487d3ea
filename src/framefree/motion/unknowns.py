"""What may be unknown of a machine, by short words: from "bodies" to all its paths.

Forces are linear in all of these (`framefree.motion.regressor`), but for those of a spring's or
damper's frames, of joints' poses, and products such as gravity times mass.

==================  ================================================================================
``bodies``          the ten numbers of every body that has mass
``<body>``          those of one body
``armature``        drive inertia of every joint velocity
``damping``         viscous friction of every joint velocity
``friction``        Coulomb friction of every joint velocity
``friction_asymmetry``  how much it differs by direction
``stiffness``       joint springs, where a joint has one
``springs``         moments of stiffness of every spring; ``<spring>`` of one
``dampers``         moments of damping of every damper; ``<damper>`` of one
``drag``            linear and quadratic drag of immersed bodies, diagonals
``gains``           of every motor
any path            of `framefree.machine.paths`, such as "load.mass" or "fluid.current.x"
==================  ================================================================================

Joints that do not move and free joints have no drive: they are left out of the words for joints.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from framefree.machine import Immersed, Machine
from framefree.machine.actuators import JointForce
from framefree.machine.joint import Joint
from framefree.machine.joints import Free
from framefree.machine.names import find_all
from framefree.machine.paths import leaf, moments_of
from framefree.machine.problems import Problems
from framefree.motion.regressor import TEN

JOINT_WORDS = ("armature", "damping", "friction", "friction_asymmetry")
_TOTALS = {"bodies": "mass", "springs": "stiffness", "dampers": "damping"}
_SIX = ("x", "y", "z", "rx", "ry", "rz")


def unknown_paths(machine: Machine, words: Iterable[str]) -> tuple[str, ...]:
    """Return the paths that words stand for, each once, in the order in which they are named.

    Raises
    ------
    MachineError
        Listing every word that leads nowhere.
    """
    paths: dict[str, None] = {}
    problems = Problems()
    for word in words:
        with problems.at():
            paths |= dict.fromkeys(_of_word(machine, word))
    problems.raise_if_any()
    return tuple(paths)


def _of_word(machine: Machine, word: str) -> list[str]:
    if word in _WORDS and not find_all(machine, word):
        return list(_WORDS[word](machine))
    for item in find_all(machine, word):
        if item.group in _TOTALS and moments_of(item.part) is not None:
            return _ten(machine, item.group, item.part)
    leaf(machine.numeric, word)  # refuses what leads nowhere, by name
    return [word]


def _ten(machine: Machine, group: str, part: Any) -> list[str]:
    alone = len(find_all(machine, part.name)) == 1
    prefix = part.name if alone else f"{_SINGULAR[group]}:{part.name}"
    return [f"{prefix}.{_TOTALS[group] if word == 'mass' else word}" for word in TEN]


_SINGULAR = {"bodies": "body", "springs": "spring", "dampers": "damper", "joints": "joint"}


def _all_moments(group: str) -> Callable[[Machine], Iterator[str]]:
    def paths(machine: Machine) -> Iterator[str]:
        for part in getattr(machine, group):
            if moments_of(part) is not None:
                yield from _ten(machine, group, part)

    return paths


def _of_joints(field: str) -> Callable[[Machine], Iterator[str]]:
    def paths(machine: Machine) -> Iterator[str]:
        for joint in machine.joints:
            if not joint.nv or isinstance(joint.kind, Free):
                continue
            if field == "stiffness" and not (joint.kind.springy and joint.has_spring):
                continue
            yield from joint_paths(machine, joint, field)

    return paths


def joint_paths(machine: Machine, joint: Joint, field: str) -> list[str]:
    """Return the paths of a joint's numbers of one kind, one for every velocity."""
    alone = len(find_all(machine, joint.name)) == 1
    prefix = joint.name if alone else f"joint:{joint.name}"
    return [f"{prefix}.{field}" + (f".{name}" if name else "") for name in joint.kind.v_names]


def _drag(machine: Machine) -> Iterator[str]:
    items = machine.fluid.immersed if machine.fluid is not None else ()
    for item in (one for one in items if isinstance(one, Immersed)):
        for field in ("linear_drag", "quadratic_drag"):
            yield from (f"fluid.{item.frame}.{field}.{axis}" for axis in _SIX)


def _gains(machine: Machine) -> Iterator[str]:
    for actuator in machine.actuators:
        if isinstance(actuator, JointForce):
            alone = len(find_all(machine, actuator.name)) == 1
            yield f"{actuator.name if alone else f'actuator:{actuator.name}'}.gain"


_WORDS: dict[str, Callable[[Machine], Iterable[str]]] = {
    **{group: _all_moments(group) for group in _TOTALS},
    **{field: _of_joints(field) for field in (*JOINT_WORDS, "stiffness")},
    "drag": _drag,
    "gains": _gains,
}
