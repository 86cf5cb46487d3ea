"""A machine for people: its tree as text, and its picture.

`describe` returns something that `rich` prints; `draw` (in `picture`) writes an SVG file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from framefree.look.picture import draw
from framefree.machine.actuators import JointForce, Motor
from framefree.machine.coupling import Coupling, Linear
from framefree.machine.joint import Joint
from framefree.machine.machine import Machine
from framefree.machine.problems import grouped
from framefree.machine.values import is_symbolic

__all__ = ["describe", "draw"]

_AXES: dict[tuple[float, ...], str] = {(1, 0, 0): "x", (0, 1, 0): "y", (0, 0, 1): "z"}
_AXES |= {(-1, 0, 0): "-x", (0, -1, 0): "-y", (0, 0, -1): "-z"}
_ANGULAR = {"Revolute", "Continuous", "Universal", "Spherical", "Helical"}


def describe(machine: Machine) -> RenderableType:
    """Return the machine as a readable tree, with frames, inputs, and what is doubtful about it."""
    parts: list[RenderableType] = [_title(machine), Text(), _tree(machine)]
    for section in (
        _forces(machine),
        _frames(machine),
        _actuators(machine),
        _listed("loops", (_loop(loop) for loop in machine.loops)),
        _listed("couplings", (_coupling(coupling) for coupling in machine.couplings)),
        _listed("springs", (_between(part) for part in machine.springs)),
        _listed("dampers", (_between(part) for part in machine.dampers)),
        _listed("interactions", (_between(part) for part in machine.interactions)),
        _listed("tendons", (_tendon(tendon) for tendon in machine.tendons)),
        _listed("fluid", _fluid(machine)),
        _listed("tunable", getattr(machine.parameters, "names", ())),
        _listed("keyframes", [key.name for key in machine.keyframes], inline=True),
        _listed("problems", grouped(machine.problems), style="yellow"),
        _listed("ignored", grouped(machine.ignored), style="dim"),
    ):
        if section is not None:
            parts += [Text(), section]
    return Group(*parts)


def _title(machine: Machine) -> Text:
    masses = [body.moments.total for body in machine.bodies]
    total = "tunable" if any(is_symbolic(mass) for mass in masses) else f"{_short(sum(masses))} kg"
    counts = {
        "bodies": len(machine.bodies),
        "coordinates (nx)": machine.nx,
        "velocities (nv)": machine.nv,
        "inputs (nu)": machine.nu,
    }
    words = ", ".join(f"{count} {name}" for name, count in counts.items())
    text = Text(machine.name or "a machine without a name", style="bold")
    text.append(f"  {words}, {total}", style="not bold")
    if not is_symbolic(machine.gravity) and tuple(machine.gravity) != (0.0, 0.0, -9.81):
        text.append(f", gravity ({_list(machine.gravity)}) m/s²", style="not bold")
    return text


# ---------------------------------------------------------------------- the tree


def _tree(machine: Machine) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("body", "joint", "kind", "x", "mass"):
        # Where the page is narrow names are cut before numbers are.
        names = name in ("body", "joint")
        table.add_column(
            name, justify="right" if name in ("x", "mass") else "left", no_wrap=not names
        )
    table.add_row("world")
    for i, lead in enumerate(_leads(machine)):
        row = _row(machine, i)
        first = Text(lead, style="dim", no_wrap=True, overflow="ellipsis")
        first.append(row[0], style="bold not dim")
        table.add_row(first, Text(row[1], no_wrap=True, overflow="ellipsis"), *row[2:])
    return table


def _forces(machine: Machine) -> RenderableType | None:
    """Return what the joints can bear and what they do by themselves, where a file says so."""
    fields = {
        "least effort": "effort_lower",
        "effort": "effort_limit",
        "speed": "velocity_limit",
        "armature": "armature",
        "damping": "damping",
        "friction": "friction",
        "asymmetry": "friction_asymmetry",
        "stiffness": "stiffness",
    }
    rows = {
        joint.name: [_range(joint), *(_values(getattr(joint, field)) for field in fields.values())]
        for joint in machine.joints
    }
    titles = ["range", *fields]
    used = [i for i in range(len(titles)) if any(row[i] for row in rows.values())]
    if not used:
        return None
    table = Table(box=None, padding=(0, 2, 0, 2), header_style="dim")
    table.add_column("joint", no_wrap=False)
    for i in used:
        table.add_column(titles[i], justify="right", no_wrap=True)
    for name, row in rows.items():
        if any(row):
            text = Text(name, no_wrap=True, overflow="ellipsis")
            table.add_row(text, *(row[i] for i in used))
    return Group(Text("limits and forces of joints", style="bold"), table)


def _leads(machine: Machine) -> list[str]:
    """Return the branches drawn before each body's name."""
    below: dict[int, list[int]] = {}
    for i, parent in enumerate(machine.parent):
        below.setdefault(parent, []).append(i)
    last = {children[-1] for children in below.values()}
    leads: list[str] = []
    stems: list[str] = []
    for i, parent in enumerate(machine.parent):
        stem = "" if parent < 0 else stems[parent]
        leads.append(stem + ("└ " if i in last else "├ "))
        stems.append(stem + ("  " if i in last else "│ "))
    return leads


def _row(machine: Machine, i: int) -> list[str]:
    body, joint = machine.bodies[i], machine.joint_of(i)
    mass = body.moments.total
    part = machine.x_slice[joint.name]
    index = str(part.start) if joint.nx == 1 else f"{part.start}:{part.stop}" if joint.nx else ""
    return [
        body.name,
        joint.name,
        _kind(joint),
        index,
        "-" if body.massless else f"{_short(mass)} kg",
    ]


def _kind(joint: Joint) -> str:
    kind = joint.kind
    words = [type(kind).__name__.lower()]
    for field in ("axis", "axis1", "axis2", "normal"):
        axis = getattr(kind, field, None)
        if axis is not None:
            rounded = tuple(float(round(a, 9)) for a in axis)
            words.append(_AXES.get(rounded) or f"({_list(axis, 2)})")
    return " ".join(words)


def _range(joint: Joint) -> str:
    if is_symbolic(joint.lower) or is_symbolic(joint.upper) or joint.nx == 0:
        return ""
    shown = []
    for low, high in zip(joint.lower, joint.upper, strict=True):
        if np.isfinite(low) or np.isfinite(high):
            shown.append(f"{_short(low)} .. {_short(high)}")
    if not shown:
        return ""
    unit = "rad" if type(joint.kind).__name__ in _ANGULAR else "m"
    return ", ".join(shown) + (f" {unit}" if joint.nx == 1 else "")


def _values(values: Any) -> str:
    """Return the numbers of a joint, "" where they are all zero or all infinite."""
    if is_symbolic(values):
        return "tunable"
    if not np.any(values) or not np.isfinite(values).any():
        return ""
    return ", ".join(dict.fromkeys(_short(value) for value in values))


# ---------------------------------------------------------------------- sections


def _frames(machine: Machine) -> RenderableType | None:
    on_body: dict[str, list[str]] = {}
    for frame in machine.frames:
        on_body.setdefault(frame.body, []).append(frame.name)
    lines = [f"on {body}: {', '.join(names)}" for body, names in on_body.items()]
    return _listed("frames", lines, count=len(machine.frames))


def _actuators(machine: Machine) -> RenderableType | None:
    if not machine.actuators:
        return None
    plain = [a for a in machine.actuators if _is_plain_motor(machine, a)]
    lines = []
    if plain:
        names = ", ".join(actuator.name for actuator in plain)
        lines.append(f"motors on joints of their name, limited by its effort: {names}")
    for actuator in machine.actuators:
        if actuator in plain:
            continue
        fields = (*actuator.frame_fields, *actuator.tendon_fields, *actuator.joint_fields)
        place = actuator.referred(fields)[0]
        words = f"{actuator.name}: {type(actuator).__name__} on {place}"
        if isinstance(actuator, Motor) and not is_symbolic(actuator.gear):
            if np.any(actuator.gear != 1.0):
                words += f", gear {_list(actuator.gear)}"
            if not is_symbolic(actuator.bias_terms) and np.any(actuator.bias_terms):
                words += ", a servo"
        limits = [
            f"{_short(low)} .. {_short(high)}"
            for low, high in zip(actuator.lower, actuator.upper, strict=True)
            if np.isfinite(low) or np.isfinite(high)
        ]
        lines.append(words + (f", input {', '.join(limits)}" if limits else ""))
    return _listed("actuators", lines, count=len(machine.actuators))


def _is_plain_motor(machine: Machine, actuator: Any) -> bool:
    if type(actuator) is not JointForce or actuator.name != actuator.joint:
        return False
    joint = machine.joint(actuator.joint)
    if joint.nv != 1 or is_symbolic(joint.effort_limit):
        return False
    lower, upper = joint.effort_range
    return actuator == JointForce(joint.name, joint.name, 1.0, lower=lower, upper=upper)


def _tendon(tendon: Any) -> str:
    words = f"{tendon.name}: {type(tendon).__name__} over "
    words += ", ".join(tendon.coordinates or tendon.frames)
    if np.isfinite([tendon.lower, tendon.upper]).any():
        words += f", length {_short(tendon.lower)} .. {_short(tendon.upper)}"
    return words


def _loop(loop: Any) -> str:
    return f"{loop.name}: {loop.kind} between {loop.frame_a} and {loop.frame_b}"


def _coupling(coupling: Coupling) -> str:
    law = coupling.law
    if isinstance(law, Linear) and not is_symbolic(law.multipliers) and not is_symbolic(law.offset):
        pairs = zip(law.multipliers, coupling.sources, strict=True)
        terms = [f"{_short(factor)} {source}" for factor, source in pairs]
        terms += [_short(law.offset)] if law.offset else []
        return f"{coupling.target} = {' + '.join(terms)}".replace("+ -", "- ")
    return f"{coupling.target} = {type(law).__name__.lower()} of {', '.join(coupling.sources)}"


def _between(part: Any) -> str:
    return f"{part.name}: between {part.frame_a} and {part.frame_b}"


def _fluid(machine: Machine) -> list[str]:
    if machine.fluid is None:
        return []
    return [f"around {', '.join(item.frame for item in machine.fluid.immersed)}"]


def _listed(
    title: str,
    lines: Iterable[str],
    *,
    style: str = "",
    inline: bool = False,
    count: int | None = None,
) -> RenderableType | None:
    """Return a titled list, None if it is empty."""
    lines = list(lines)
    if not lines:
        return None
    head = Text(f"{title} ({len(lines) if count is None else count})", style="bold")
    if inline:
        return Text.assemble(head, "  ", ", ".join(lines))
    table = Table(box=None, show_header=False, padding=(0, 0, 0, 2))
    table.add_column(overflow="fold")
    for line in lines:
        table.add_row(Text(line, style=style))
    return Group(head, table)


def _short(value: Any) -> str:
    return "tunable" if is_symbolic(value) else f"{float(value):.4g}"


def _list(values: Sequence[Any] | np.ndarray, digits: int = 4) -> str:
    return ", ".join(f"{float(value) + 0.0:.{digits}g}" for value in values)
