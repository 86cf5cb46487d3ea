"""Setting single numbers of a machine, to floats or to symbols; `paths.py` lists them."""

from dataclasses import replace
from typing import Any

import casadi
import numpy as np

from framefree.geometry import so3
from framefree.geometry.moments import Moments
from framefree.machine.body import Body
from framefree.machine.coupling import Coupling
from framefree.machine.damper import Damper
from framefree.machine.interaction import Interaction
from framefree.machine.parameters import Parameters
from framefree.machine.paths import Leaf, leaves, moments_of, split
from framefree.machine.problems import MachineError
from framefree.machine.spring import Spring
from framefree.machine.stretch import stretched
from framefree.machine.values import constant, constant_pose, is_symbolic


def parameters(machine: Any, paths: tuple[str, ...]) -> Parameters:
    """Return symbols and defaults of the numbers that these paths lead to."""
    numbers = leaves(machine, paths)
    symbols = casadi.vertcat(casadi.SX(0, 1), *(casadi.SX.sym(path) for path in paths))
    return Parameters(tuple(paths), symbols, [item.default for item in numbers])


def of_tree(machine: Any) -> list[str]:
    """Return the paths of a machine's parameters that do not belong to loops or couplings."""
    names = machine.parameters.names
    places = zip(names, leaves(machine.numeric, names), strict=True)
    return [name for name, leaf in places if leaf.owner[0] not in ("loops", "couplings")]


def changed(machine: Any, values: list[float]) -> dict[str, float]:
    """Return the values of a machine's parameters that must be set.

    Numbers that keep their default are not set again: rounding would change their last bit. But the
    moments of a part are set together, as what a mass leaves as it is depends on the others.
    """
    parameters = machine.parameters
    leaves_of = leaves(machine.numeric, parameters.names)
    entries = list(zip(parameters.names, values, parameters.defaults, leaves_of, strict=True))
    moved = {
        leaf.owner
        for _, value, default, leaf in entries
        if value != default and leaf.key[0] == "moments"
    }
    return {
        name: value
        for name, value, default, leaf in entries
        if value != default or (leaf.key[0] == "moments" and leaf.owner in moved)
    }


def set_values(machine: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Return the sequences of the machine with the numbers at these paths set."""
    return with_values(machine, leaves(machine, tuple(values)), list(values.values()))


def with_values(machine: Any, leaves: list[Leaf], values: list[Any]) -> dict[str, Any]:
    """Return the sequences of the machine with these numbers set, to floats or SX symbols."""
    settings: dict[tuple, dict[tuple, Any]] = {}
    for item, value in zip(leaves, values, strict=True):
        settings.setdefault(item.owner, {})[item.key] = value
    fields: dict[str, Any] = {}
    lengths = {}
    for owner, changes in settings.items():
        if len(owner) == 1:
            fields |= _set_global(machine, owner[0], changes)
            continue
        group, name = owner
        if ("length",) in changes and group == "bodies":
            lengths[name] = changes.pop(("length",))
        parts = fields.get(group, getattr(machine, group))
        fields[group] = tuple(_set(p, changes) if p.name == name else p for p in parts)
    for name, length in lengths.items():
        fields |= stretched(machine, fields, name, length)
    return fields


def _set_global(machine: Any, field: str, changes: dict[tuple, Any]) -> dict[str, Any]:
    if field == "gravity":
        return {"gravity": _with_entries(machine.gravity, {k[0]: v for k, v in changes.items()})}
    fluid = machine.fluid
    current: dict[int, Any] = {}
    for key, value in changes.items():
        if key in (("density",), ("viscosity",)):
            fluid = replace(fluid, **{key[0]: value})
        elif key[0] == "current":
            current[key[1]] = value
        else:
            items = tuple(
                _set_immersed(i, key[1:], value) if i.frame == key[0] else i for i in fluid.immersed
            )
            fluid = replace(fluid, immersed=items)
    if current:
        fluid = replace(fluid, current=_with_entries(fluid.current, current))
    return {"fluid": fluid}


def _set(part: Any, changes: dict[tuple, Any]) -> Any:
    """Return a part with some of its numbers set."""
    if isinstance(part, Interaction | Coupling):
        return part.with_numbers(changes)
    scalars = {key[0]: value for key, value in changes.items() if len(key) == 1}
    entries: dict[str, dict[int, Any]] = {}
    poses: dict[str, dict[tuple, Any]] = {}
    for key, value in changes.items():
        if key[0] == "moments":
            continue
        if len(key) == 3:
            poses.setdefault(key[0], {})[key[1:]] = value
        elif len(key) == 2:
            entries.setdefault(key[0], {})[key[1]] = value
    fields = dict(scalars)
    for field, new in entries.items():
        fields[field] = _with_entries(getattr(part, field), new)
    for field, new in poses.items():
        fields[field] = _with_pose(getattr(part, field), new)
    weights = {key[1:]: value for key, value in changes.items() if key[0] == "moments"}
    if weights:
        field = {Body: "inertia", Spring: "moments", Damper: "damping"}[type(part)]
        fields[field] = _with_moments(moments_of(part), weights)
    return replace(part, **fields) if fields else part


def _set_immersed(body: Any, key: tuple, value: Any) -> Any:
    """Return an immersed body with one number set, of a matrix too."""
    if not isinstance(key[-1], tuple):
        return _set(body, {key: value})
    name, (i, j) = key
    matrix = casadi.SX(constant(getattr(body, name)))
    matrix[i, j] = value
    if name == "added_mass":
        matrix[j, i] = value
    return replace(
        body, **{name: matrix if not matrix.is_constant() else np.array(casadi.DM(matrix))}
    )


def _with_entries(vector: Any, new: dict[int, Any]) -> Any:
    values = [new.get(i, vector[i]) for i in range(vector.shape[0])]
    return _column(values)


def _column(values: list[Any]) -> Any:
    if any(is_symbolic(value) for value in values):
        return casadi.vertcat(*values)
    return np.array([float(value) for value in values])


def _with_pose(matrix: Any, new: dict[tuple, Any]) -> Any:
    position = [new.get(("position", i), float(matrix[i, 3])) for i in range(3)]
    turn = [new.get(("turn", i), 0.0) for i in range(3)]
    symbolic = any(is_symbolic(value) for value in (*position, *turn))
    base = constant_pose(matrix) if symbolic else casadi.DM(matrix)
    rotation = base[:3, :3]
    if any(is_symbolic(value) or value != 0.0 for value in turn):
        rotation = rotation @ so3.exp(casadi.vertcat(*turn))
    result = casadi.blockcat([[rotation, casadi.vertcat(*position)], [base[3, :3], base[3, 3]]])
    return casadi.SX(result) if symbolic else np.array(casadi.DM(result))


def _with_moments(moments: Moments | None, new: dict[tuple, Any]) -> Moments:
    if moments is None:
        raise MachineError("a body without mass has no moments to tune")
    if any(key[0] in ("first", "second") for key in new):
        return _with_linear_moments(moments, new)
    total, center, moment = split(moments)
    total = new.get(("total",), total)
    middle = _column([new.get(("center", i), center[i]) for i in range(3)])
    rows = casadi.blockcat(
        [
            [new.get(("moment", (min(i, j), max(i, j))), moment[i, j]) for j in range(3)]
            for i in range(3)
        ]
    )
    try:
        return Moments.of_body(total, middle, rows)
    except ValueError as error:
        raise MachineError(str(error)) from None


def _with_linear_moments(moments: Moments, new: dict[tuple, Any]) -> Moments:
    """Return moments with entries of total, first and second set; the others stay."""
    if any(key[0] in ("center", "moment") for key in new):
        raise MachineError(
            "`first` and `second` moments cannot be tuned together with center and inertia: they "
            "are two ways to say the same"
        )
    total = new.get(("total",), moments.total)
    first = _column([new.get(("first", i), moments.first[i]) for i in range(3)])
    second = casadi.blockcat(
        [
            [new.get(("second", (min(i, j), max(i, j))), moments.second[i, j]) for j in range(3)]
            for i in range(3)
        ]
    )
    try:
        return Moments(total, first, second)
    except ValueError as error:
        raise MachineError(str(error)) from None
