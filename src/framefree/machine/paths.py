"""Paths to single numbers of a machine, such as "load.mass".

The paths, with <xyz> one of x, y, z and <ij> one of xx, xy, xz, yy, yz, zz:

========================================  =====================================================
``gravity.<xyz>``                         m/s^2
``<body>.mass``                           kg; center and inertia about the center stay
``<body>.center.<xyz>``                   m; mass and inertia about the center stay
``<body>.inertia.<ij>``                   kg m^2, about the center, in body axes
``<body>.first.<xyz>``                    kg m, about the frame origin; see below
``<body>.second.<ij>``                    kg m^2, the entries of `Moments.second`; see below
``<body>.length``                         m, see below
``<joint>.parent_pose.<xyz>``             m; also ``child_pose``
``<joint>.parent_pose.r<xyz>``            rad: rotation vector that turns the joint frame further
``<joint>.armature``                      also ``damping``, ``friction``, ``stiffness``; for joints
                                          with several velocities ``<joint>.armature.<velocity>``
``<joint>.friction_asymmetry``            as ``friction``
``<joint>.friction_width``, ``.rest``     ``rest`` only where coordinates are a plain vector
``<frame>.pose.<xyz>``, ``.r<xyz>``       m, rad
``<spring>.stiffness``                    N/m; center and moment about the center stay
``<spring>.center.<xyz>``                 m
``<spring>.moment.<ij>``                  Nm, about the center
``<spring>.first.<xyz>``, ``.second.<ij>``  N, Nm, about the origin of frame b; see below
``<spring>.rest.<xyz>``, ``.r<xyz>``      m, rad
``<damper>.damping`` and so on            as for springs, N s/m
``<interaction>.<parameter>``              as the user has named them; ``.<i>`` and ``.<i>.<j>``
                                          for entries of vectors and matrices
``<contact>.stiffness``                   also ``damping``, ``friction``, ``slip_speed``
``<point spring>.stiffness``              also ``length``, ``damping``
``<loop>.length``                         m, of a distance
``<loop>.rest.<xyz>``, ``.r<xyz>``        m, rad, as ``pose`` of a frame
``<coupling>.<field>``                    of its law: ``offset``, ``multipliers``, ``at``,
                                          ``coefficients``, or fields of the user's own dataclass;
                                          ``.<k>`` for entries of a vector
``<actuator>.gain``, ``.gear``            of a JointForce
``<actuator>.torque_ratio``               of propellers; ``thrust_coefficient``,
                                          ``torque_coefficient`` of spinning ones
``fluid.density``, ``fluid.viscosity``    kg/m^3, Pa s
``fluid.current.<xyz>``                   m/s
``fluid.<frame>.volume``, ``.center.<xyz>``  m^3, m
``fluid.<frame>.linear_drag.<k>``         also ``quadratic_drag``, ``added_mass``: a diagonal entry,
                                          <k> one of x, y, z, rx, ry, rz; ``.<k>.<l>`` for another
========================================  =====================================================

A name that several parts have is qualified: ``body:arm.mass``, ``joint:arm.damping``.

``first`` and ``second`` are, with the mass, the ten numbers in which the equations are linear. A
body (spring, damper) of which any of them is tunable is held by total, first and second moment: its
mass then leaves `first` and `second` as they are, and center and inertia cannot be tuned as well.

``<body>.length`` stretches a body along the line from its own joint to its tip. The tip is the
origin of the outgoing joint frame that is farthest from the own joint's frame; without outgoing
joints, of the farthest frame on the body. Its distance from the own joint's origin o is the length
L0, its direction u. With length L every outgoing joint frame and every frame on the body at p moves
to p + (L / L0 - 1) ((p - o) . u) u. Mass, center and inertia stay: tune them as well.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from framefree.geometry.moments import Moments
from framefree.machine.actuators import (
    JointForce,
    Propeller,
    SpinningPropeller,
    TiltingPropeller,
)
from framefree.machine.body import Body
from framefree.machine.contact import Contact
from framefree.machine.coupling import Coupling
from framefree.machine.damper import Damper
from framefree.machine.frame import Frame
from framefree.machine.immersed import Immersed
from framefree.machine.interaction import Interaction
from framefree.machine.joint import Joint
from framefree.machine.loop import Loop
from framefree.machine.names import NamedPart, all_names, find_all
from framefree.machine.point_spring import PointSpring
from framefree.machine.problems import MachineError, Problems
from framefree.machine.spring import EulerSpring, Spring
from framefree.machine.stretch import length_of
from framefree.machine.tree import unknown

_XYZ = {"x": 0, "y": 1, "z": 2}
_TURNS = {"rx": 0, "ry": 1, "rz": 2}
_PAIRS = {"xx": (0, 0), "xy": (0, 1), "xz": (0, 2), "yy": (1, 1), "yz": (1, 2), "zz": (2, 2)}
_VECTORS = ("armature", "damping", "friction", "friction_asymmetry", "stiffness")
_AXES = {"x": 0, "y": 1, "z": 2, "rx": 3, "ry": 4, "rz": 5}
_FLUID_MATRICES = ("added_mass", "linear_drag", "quadratic_drag")
_POSES = {
    Joint: ("parent_pose", "child_pose"),
    Frame: ("pose",),
    Spring: ("rest",),
    Loop: ("rest",),
}
_SCALARS = {
    Joint: ("friction_width",),
    Loop: ("length",),
    Contact: ("stiffness", "damping", "friction", "slip_speed"),
    PointSpring: ("stiffness", "length", "damping"),
    JointForce: ("gain",),
    Propeller: ("torque_ratio",),
    TiltingPropeller: ("torque_ratio",),
    SpinningPropeller: ("thrust_coefficient", "torque_coefficient"),
}
_MOMENT_WORDS = {
    Body: ("mass", "center", "inertia"),
    Spring: ("stiffness", "center", "moment"),
    Damper: ("damping", "center", "moment"),
}


@dataclass(frozen=True)
class Leaf:
    """One number of a machine.

    Attributes
    ----------
    path : str
    default : float
    owner : (group, name) or (field,)
        Which part, or which field of the machine, holds it.
    key : tuple
        Where it is in that part.
    """

    path: str
    default: float
    owner: tuple[str, ...]
    key: tuple


def leaf(machine: Any, path: str) -> Leaf:
    """Return the number that a path leads to."""
    head, _, rest = path.partition(".")
    if head in ("gravity", "fluid") and not find_all(machine, head):
        return _global_leaf(machine, path, head, rest)
    candidates = [
        (item, path[len(name) + 1 :])
        for name in sorted(_prefixes(path), key=len, reverse=True)
        for item in find_all(machine, name)
    ]
    matches = []
    for item, rest in candidates:
        value = _of_part(machine, item, rest)
        if value is not None:
            matches.append(Leaf(path, value[0], (item.group, item.part.name), value[1]))
    if len(matches) == 1:
        return matches[0]
    if matches:
        groups = ", ".join(item.owner[0] for item in matches)
        raise MachineError(f"`{path}` is in {groups}; qualify it, as in `body:{path}`")
    if candidates:
        item, rest = candidates[0]
        what = f"{type(item.part).__name__} `{item.part.name}`"
        raise MachineError(
            f"`{path}`: {what} has no tunable number `{rest}`; it has {_choices(item.part)}"
        )
    raise MachineError(unknown(f"`{path}`: part", head, all_names(machine)))


def leaves(machine: Any, paths: tuple[str, ...]) -> list[Leaf]:
    """Return the numbers of several paths; all paths that lead nowhere are reported together."""
    problems, result = Problems(), []
    for path in paths:
        with problems.at():
            result.append(leaf(machine, path))
    problems.raise_if_any()
    return result


def _prefixes(path: str) -> list[str]:
    return [path[:i] for i, letter in enumerate(path) if letter == "."]


def _global_leaf(machine: Any, path: str, head: str, rest: str) -> Leaf:
    if head == "gravity" and rest in _XYZ:
        return Leaf(path, float(machine.gravity[_XYZ[rest]]), ("gravity",), (_XYZ[rest],))
    if head == "fluid" and machine.fluid is not None:
        if rest in ("density", "viscosity"):
            return Leaf(path, getattr(machine.fluid, rest), ("fluid",), (rest,))
        field, _, tail = rest.rpartition(".")
        if field == "current" and tail in _XYZ:
            index = _XYZ[tail]
            return Leaf(path, float(machine.fluid.current[index]), ("fluid",), ("current", index))
        for item in machine.fluid.immersed:
            if not isinstance(item, Immersed):
                continue
            if rest == f"{item.frame}.volume":
                return Leaf(path, item.volume, ("fluid",), (item.frame, "volume"))
            if field == f"{item.frame}.center" and tail in _XYZ:
                index = _XYZ[tail]
                value = float(item.center[index])
                return Leaf(path, value, ("fluid",), (item.frame, "center", index))
            for name in _FLUID_MATRICES if isinstance(item, Immersed) else ():
                entry = _entry(rest.removeprefix(f"{item.frame}.{name}."))
                if rest.startswith(f"{item.frame}.{name}.") and entry is not None:
                    value = float(getattr(item, name)[entry])
                    return Leaf(path, value, ("fluid",), (item.frame, name, entry))
    raise MachineError(
        f"`{path}` leads nowhere; there are gravity.<xyz>, fluid.density, fluid.viscosity, "
        "fluid.current.<xyz>, fluid.<frame>.volume, fluid.<frame>.center.<xyz> and "
        "fluid.<frame>.<linear_drag, quadratic_drag, added_mass>.<x, y, z, rx, ry, rz>"
    )


def _entry(text: str) -> tuple[int, int] | None:
    """Return row and column of an entry of a 6x6 matrix: "x" or "x.rz"."""
    row, _, column = text.partition(".")
    column = column or row
    return (_AXES[row], _AXES[column]) if row in _AXES and column in _AXES else None


def _of_part(machine: Any, entry: NamedPart, rest: str) -> tuple[float, tuple] | None:
    """Return value and key of a number of a part, or None."""
    part = entry.part
    field, _, tail = rest.partition(".")
    if isinstance(part, Interaction | Coupling):
        return part.number(rest)
    if isinstance(part, Body) and rest == "length":
        return length_of(machine, part.name)[0], ("length",)
    moments = moments_of(part)
    if moments is not None:
        value = _of_moments(moments, _MOMENT_WORDS[type(part)], field, tail)
        if value is not None:
            return value
    if (field in _POSES.get(type(part), ())) and tail in (*_XYZ, *_TURNS):
        if tail in _XYZ:
            return float(getattr(part, field)[_XYZ[tail], 3]), (field, "position", _XYZ[tail])
        return 0.0, (field, "turn", _TURNS[tail])
    if field in _SCALARS.get(type(part), ()) and not tail:
        value = getattr(part, field)
        return None if value is None else (float(value), (field,))
    index = _index(part, field, tail)
    return None if index is None else (float(getattr(part, field)[index]), (field, index))


def moments_of(part: Any) -> Moments | None:
    """Return the moments that a part has, if any."""
    if isinstance(part, Body):
        return part.inertia
    if isinstance(part, Spring):
        return part.moments
    if isinstance(part, Damper) and isinstance(part.damping, Moments):
        return part.damping
    return None


def split(moments: Moments) -> tuple[float, np.ndarray, np.ndarray]:
    """Return total, center and moment about the center; without total the center is the origin."""
    if moments.total == 0.0:
        return 0.0, np.zeros(3), np.array(moments.moment)
    return moments.total, np.array(moments.center), np.array(moments.moment_at_center)


def _of_moments(moments: Moments, words: tuple, field: str, tail: str) -> tuple | None:
    total, center, moment = split(moments)
    if field == words[0] and not tail:
        return total, ("moments", "total")
    if field == words[1] and tail in _XYZ and total != 0.0:
        return float(center[_XYZ[tail]]), ("moments", "center", _XYZ[tail])
    if field == words[2] and tail in _PAIRS:
        return float(moment[_PAIRS[tail]]), ("moments", "moment", _PAIRS[tail])
    if field == "first" and tail in _XYZ:
        return float(moments.first[_XYZ[tail]]), ("moments", "first", _XYZ[tail])
    if field == "second" and tail in _PAIRS:
        return float(moments.second[_PAIRS[tail]]), ("moments", "second", _PAIRS[tail])
    return None


def _index(part: Any, field: str, tail: str) -> int | None:
    """Return the entry of a vector field: by coordinate for joints, by axis or number otherwise."""
    names: tuple[str, ...] = ()
    if isinstance(part, Joint) and field in _VECTORS:
        names = part.kind.v_names
    elif isinstance(part, Joint) and field == "rest" and part.kind.vector:
        names = part.kind.x_names
    elif isinstance(part, EulerSpring) and field == "stiffness":
        names = ("x", "y", "z")
    elif isinstance(part, JointForce) and field == "gear":
        count = part.gear.shape[0]
        names = ("",) if count == 1 else tuple(map(str, range(count)))
    return names.index(tail) if tail in names else None


def _choices(part: Any) -> str:
    kind = type(part)
    words = [*_SCALARS.get(kind, ())]
    words += [f"{field}.<x, y, z, rx, ry, rz>" for field in _POSES.get(kind, ())]
    if moments_of(part) is not None:
        total, center, moment = _MOMENT_WORDS[kind]
        words += [total, f"{center}.<x, y, z>", f"{moment}.<xx, xy, ...>"]
        words += ["first.<x, y, z>", "second.<xx, xy, ...>"]
    if kind in (Interaction, Coupling):
        words += part.number_words
    if kind is Body:
        words.append("length")
    if kind is Joint and part.nv:
        suffix = "" if part.nv == 1 else f".<{', '.join(part.kind.v_names)}>"
        words += [field + suffix for field in _VECTORS]
    if kind is JointForce:
        words.append("gear")
    if kind is EulerSpring:
        words.append("stiffness.<x, y, z>")
    return ", ".join(words) or "none"
