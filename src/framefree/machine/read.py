"""Reading a machine from a model file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module

import numpy as np

from framefree.machine.formats.digits import loop_tolerance
from framefree.machine.formats.markup import Element, ReadError, parse
from framefree.machine.formats.options import ReadOptions
from framefree.machine.formats.sidecar import Sidecar, with_sidecar
from framefree.machine.formats.source import Packages, source_of
from framefree.machine.joint import FRICTION_WIDTH
from framefree.machine.machine import Machine

_ROOTS = {"robot": "urdf", "mujoco": "mjcf", "mujocoinclude": "mjcf", "sdf": "sdf"}
_READERS = {"urdf": "read_urdf", "mjcf": "read_mjcf", "sdf": "read_sdf"}
"""Formats, each also the name of its module, which is loaded when it is needed."""


def read(
    path_or_text: str | bytes | os.PathLike[str],
    *,
    base: str | None = None,
    packages: Packages | None = None,
    strict: bool = False,
    format: str | None = None,
    mimic: str = "coupled",
    keep_fixed: bool = False,
    motors: bool | Iterable[str] = True,
    without: str | Iterable[str] = (),
    friction_width: float = FRICTION_WIDTH,
    loops: Sidecar | None = None,
) -> Machine:
    """Read a machine from a URDF, MJCF or SDFormat file.

    Parameters
    ----------
    path_or_text : path, str or bytes
        Path of the file, or the model itself: text that starts with `<`. Or
        "robot_descriptions:NAME", a robot that the package of that name has in its cache.
    base : None, "free" or "fixed"
        What holds the root: as the file says (a URDF root is fixed, an SDFormat model floats unless
        a joint holds it), nothing, or the world.
    packages : mapping of name to folder, or folders that hold packages
        Where `package://` and `model://` references lead. Other files are read from the model's own
        folder only.
    strict : bool
        Refuse what is otherwise listed in `machine.problems`: inertia that no body can have, mimic
        joints that follow nothing, attributes and elements that are not known.
    format : None, "urdf", "mjcf" or "sdf"
        Default: by the root element.
    mimic : "coupled" or "independent"
        Whether a mimic joint follows its source by a `Coupling`, or moves by itself.
    keep_fixed : bool
        Keep links that are fixed to another one as bodies with a `Fixed` joint. Otherwise they
        become part of it and stay as frames.
    motors : bool, or names of joints
        Which joints of a URDF or SDFormat machine get a motor, limited by the joint's effort limit:
        all that move by themselves but the floating base, none, or these. Where a URDF file closes
        loops and says in <transmission>s or <ros2_control> which joints are driven, True means
        those.
    without : "actuator", "actuator:NAME", "equality", "tendon", "fluid", "gravcomp", or several
        What to leave out of a MJCF model although it changes the motion; `machine.ignored` says
        so.
    friction_width : float
        Speed (rad/s or m/s) over which dry friction changes sign. It creeps at a share of this
        speed under loads that it should hold; 1e-6 lets it stick, and needs an implicit integrator,
        which `simulate` chooses by itself.
    loops : path or mapping, optional
        Loops, motors and ball joints of a URDF file in a YAML file beside it, or what such a file
        holds: `closed_loop`, `type`, `name_mot`, `joint_name`, `joint_type`. See
        `framefree.machine.formats.sidecar`. Loops may also stand in the URDF itself, see
        `framefree.machine.formats.urdf_extensions`.

    Returns
    -------
    Machine
        `machine.problems` lists what is doubtful, `machine.ignored` what was left out.

    Raises
    ------
    ReadError
        Listing everything that is wrong, each with file, element and line where known.

    Examples
    --------
    >>> import framefree as ff
    >>> text = ff.gallery.MACHINES["scara"]().to_urdf()  # a file's text, or its path
    >>> ff.read(text).x_names
    ('joint1', 'joint2')
    """
    names = _names(without)
    driven = motors if isinstance(motors, bool) else _names(motors)
    closed = loops is not None
    options = ReadOptions(base, strict, mimic, keep_fixed, driven, names, friction_width, closed)
    source = source_of(path_or_text, packages)
    root = parse(source.data, source.name)
    if source.name.endswith(".xacro"):
        _refuse_xacro(source.name, root)
    kind = _ROOTS.get(root.tag) if format is None else format
    if kind not in _READERS:
        if format is not None:
            raise ReadError(f"`format` must be one of {', '.join(_READERS)}, got {format!r}")
        raise ReadError(
            f"{source.name}, line {root.line}: a model file starts with <robot> (URDF), <mujoco> "
            f"(MJCF) or <sdf> (SDFormat), got <{root.tag}>"
        )
    reader = getattr(import_module(f"framefree.machine.formats.{kind}"), _READERS[kind])
    with np.errstate(all="ignore"):  # overflow ends as a number that is not finite, and is refused
        machine = _with_friction(reader(source, root, options), friction_width)
        if loops is not None:
            machine = _closed_by(machine, loops, kind)
    if not machine.loops:
        return machine
    tolerance = loop_tolerance(root)
    return replace(
        machine, loops=tuple(replace(loop, tolerance=tolerance) for loop in machine.loops)
    )


def _names(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _closed_by(machine: Machine, loops: Sidecar, kind: str) -> Machine:
    if kind != "urdf":
        raise ReadError(f"`loops` go with URDF files; {kind.upper()} files have their own")
    return with_sidecar(machine, loops)


def _with_friction(machine: Machine, width: float) -> Machine:
    """Return the machine with another width of its dry friction."""
    if width == FRICTION_WIDTH:
        return machine
    joints = [replace(j, friction_width=width) if j.has_friction else j for j in machine.joints]
    tendons = [replace(t, friction_width=width) if t.friction else t for t in machine.tendons]
    return replace(machine, joints=joints, tendons=tendons)


def _refuse_xacro(name: str, root: Element) -> None:
    """Refuse a file that is yet to be expanded; one without macros is read as it is."""
    stack = [root]
    while stack:
        element = stack.pop()
        computed = any("${" in value or "$(" in value for value in element.attributes.values())
        if element.tag.startswith("xacro:") or computed:
            what = "an expression" if computed else f"<{element.tag}>"
            raise ReadError(
                f"{name}, line {element.line}: {what} of xacro, which makes URDF files; expand it "
                f"first: `xacro {name} > {name.removesuffix('.xacro').removesuffix('.urdf')}.urdf`"
            )
        stack.extend(reversed(element.children))
