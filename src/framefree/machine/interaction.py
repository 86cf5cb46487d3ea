"""Interactions: a force between two frames that the user writes down, such as a wind or an arm.

    w = wrench(pose, twist, time, numbers),    pose = G_ab,    twist = xi_ab in b's axes

acts on frame b, in b's axes at its origin; frame a, or the world, feels the reaction. A function
takes what it needs *by name*: `pose` (4x4), `twist` (6, linear first), `time` (s), and the names of
`parameters`, which are numbers of the machine like any other and can be tunable. From

    Interaction("wind", "world", "hull", lambda pose, time, k: k * ...)

the expressions are traced once; what is kept are casadi functions with named inputs, which may also
be given directly.
"""

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import casadi
import numpy as np

from framefree.errors import FramefreeWarning
from framefree.geometry import se3
from framefree.machine.pair_force import PairForce
from framefree.machine.part import checked_name, set_field
from framefree.machine.problems import MachineError, known_names
from framefree.machine.values import constant, frozen, is_symbolic

ARGUMENTS: dict[str, tuple[int, int]] = {"pose": (4, 4), "twist": (6, 1), "time": (1, 1)}
"""Names and shapes of what every expression can ask for."""

_TESTED = 4
"""Random poses at which an expression must have values."""


@dataclass(frozen=True, eq=False)
class Interaction(PairForce):
    """A force between two frames, or on one from the world, as expressions of the user.

    Parameters
    ----------
    name, frame_a, frame_b : str
        Frames, bodies or "world". The wrench acts on frame b, its reaction on frame a.
    wrench : callable or casadi.Function -> (6,)
        Force (N) and moment (Nm) on frame b, in its axes at its origin. Its arguments are taken by
        name: `pose`, `twist`, `time`, and names of parameters. It must be written in casadi
        operations, and have values at rest (twist zero).
    energy : callable or casadi.Function -> number, optional
        Stored energy (J), of `pose`, `time` and parameters. Without it all work of the wrench
        counts as supplied from outside.
    dissipation : callable or casadi.Function -> number, optional
        Power turned into heat (W); arguments as those of `wrench`.
    parameters : mapping of str to number or array
        Numbers in the expressions, vectors and matrices included. They are tunable:
        "wind.k", "wind.center.2", "net.weights.3.0".
    moment : number, optional
        Holds `time` at this value (s).

    Raises
    ------
    MachineError
        If an expression has another shape, depends on symbols that are none of its arguments, asks
        for a name that there is none of, or has no value at rest.
    """

    name: str
    frame_a: str
    frame_b: str
    wrench: Any
    energy: Any = None
    dissipation: Any = None
    parameters: Any = ()
    moment: float | None = None

    def __post_init__(self) -> None:
        checked_name(self.name, "an interaction")
        set_field(self, "parameters", self._checked_parameters())
        for field, size, arguments in (
            ("wrench", 6, tuple(ARGUMENTS)),
            ("energy", 1, ("pose", "time")),
            ("dissipation", 1, tuple(ARGUMENTS)),
        ):
            law = getattr(self, field)
            if law is not None:
                traced = self._traced(field, law, size, arguments)
                set_field(self, field, traced)
                self._check_values(field, traced)
        if self.wrench is None:
            raise MachineError(f"interaction `{self.name}` needs a `wrench`")

    # ------------------------------------------------------------------ the contract of PairForce

    def wrench_at(self, pose: Any, twist: Any, time: Any) -> Any:
        """Return the user's wrench (6) on frame b."""
        return self._value(self.wrench, pose, twist, time)

    @property
    def stores(self) -> bool:
        """Whether an energy is given."""
        return self.energy is not None

    def energy_at(self, pose: Any, time: Any) -> Any:
        """Return the user's energy (J), zero where there is none."""
        return casadi.SX(0) if self.energy is None else self._value(self.energy, pose, None, time)

    def dissipation_at(self, pose: Any, twist: Any, time: Any) -> Any:
        """Return the user's dissipation (W), zero where there is none."""
        law = self.dissipation
        return casadi.SX(0) if law is None else self._value(law, pose, twist, time)

    @cached_property
    def timed(self) -> bool:  # type: ignore[override]
        """Whether an expression depends on time."""
        if self.moment is not None:
            return False
        return any(
            law is not None and _depends(law, "time")
            for law in (self.wrench, self.energy, self.dissipation)
        )

    def held_at(self, time: float) -> "Interaction":
        """Return the interaction as it is at one moment."""
        return replace(self, moment=float(time)) if self.timed else self

    def _value(self, law: casadi.Function, pose: Any, twist: Any, time: Any) -> Any:
        known = {"pose": pose, "twist": twist, "time": time, **dict(self.parameters)}
        if self.moment is not None:
            known["time"] = self.moment
        arguments = [casadi.SX(constant(known[name])) for name in law.name_in()]
        return law.call(arguments)[0]

    # ------------------------------------------------------------------ numbers

    def number(self, path: str) -> tuple[float, tuple] | None:
        """Return value and key of the parameter that a path such as "k" or "center.2" leads to."""
        name, *places = path.split(".")
        value = dict(self.parameters).get(name)
        if value is None or not all(place.isdecimal() for place in places):
            return None
        entry = tuple(map(int, places))
        if len(entry) != np.ndim(value) or any(
            k >= size for k, size in zip(entry, np.shape(value), strict=True)
        ):
            return None
        return float(np.asarray(value)[entry]), ("parameters", name, entry)

    def with_numbers(self, changes: Mapping[tuple, Any]) -> "Interaction":
        """Return the interaction with parameters set, by the keys of `number`."""
        values = dict(self.parameters)
        for name in dict.fromkeys(key[1] for key in changes):
            own = {key[2]: value for key, value in changes.items() if key[1] == name}
            values[name] = _with_entries(values[name], own)
        return replace(self, parameters=tuple(values.items()))

    @property
    def number_words(self) -> tuple[str, ...]:
        """Paths of the parameters, in words for messages."""
        return tuple(
            name + "".join(f".<0 to {size - 1}>" for size in np.shape(value))
            for name, value in self.parameters
        )

    def _checked_parameters(self) -> tuple[tuple[str, Any], ...]:
        given = self.parameters
        items = given.items() if isinstance(given, Mapping) else given
        checked = []
        for name, value in items:
            what = f"parameter `{name}` of interaction `{self.name}`"
            if not isinstance(name, str) or not name.isidentifier() or name in ARGUMENTS:
                raise MachineError(
                    f"{what} must have the name of an argument, other than "
                    f"{known_names(ARGUMENTS)}, got {name!r}"
                )
            checked.append((name, _checked_number(value, what)))
        return tuple(checked)

    # ------------------------------------------------------------------ expressions

    def _traced(
        self, field: str, law: Any, size: int, arguments: tuple[str, ...]
    ) -> casadi.Function:
        """Return an expression as a function with named inputs."""
        what = f"the {field} of interaction `{self.name}`"
        shapes = {name: ARGUMENTS[name] for name in arguments}
        shapes |= {name: _shape_of(value) for name, value in self.parameters}
        if isinstance(law, casadi.Function):
            return _checked_function(law, size, shapes, what)
        if not callable(law):
            raise MachineError(f"{what} must be a function or a casadi.Function, got {law!r}")
        symbols = {n: casadi.SX.sym(n, *shapes[n]) for n in _asked_for(law, shapes, what)}
        try:
            value: Any = law(**symbols)
            value = casadi.vertcat(*value) if isinstance(value, list | tuple) else value
            value = casadi.densify(casadi.SX(value))
        except (TypeError, ValueError, RuntimeError, NotImplementedError) as error:
            raise MachineError(
                f"{what} must be written in casadi operations, but could not be traced: "
                f"{str(error).splitlines()[0]}"
            ) from None
        _check_shape(value.shape, size, what)
        foreign = [
            str(symbol)
            for symbol in casadi.symvar(value)
            if not any(casadi.depends_on(own, symbol) for own in symbols.values())
        ]
        if foreign:
            raise MachineError(
                f"{what} depends on {known_names(foreign)}, which it is not handed; make such a "
                "number an argument and give its value in `parameters`"
            )
        return casadi.Function(field, list(symbols.values()), [value], list(symbols), [field])

    def _check_values(self, field: str, law: casadi.Function) -> None:
        """Refuse an expression without values at rest; warn of one without slopes there."""
        if any(is_symbolic(value) for _, value in self.parameters):
            return
        rng, worst = np.random.default_rng(0), 0.0
        twist = casadi.SX.sym("twist", 6)
        for _ in range(_TESTED):
            pose = np.array(se3.exp(rng.normal(size=6)))
            value = self._value(law, pose, twist, 0.5)
            at_rest = casadi.Function("value", [twist], [value, casadi.jacobian(value, twist)])
            numbers, slopes = (np.asarray(part) for part in at_rest(np.zeros(6)))
            if not np.isfinite(numbers).all():
                raise MachineError(
                    f"the {field} of interaction `{self.name}` has no value at rest: at the pose "
                    f"{np.round(pose, 3).tolist()} with twist zero it is {numbers.ravel()}; a "
                    "length that is divided by needs a floor, as in sqrt(|v|^2 + 1e-6), and all "
                    "functions must be those of casadi: float(...) makes nothing of a symbol"
                )
            worst = max(worst, float(not np.isfinite(slopes).all()))
        if worst:
            warnings.warn(
                f"the {field} of interaction `{self.name}` has no slopes at rest: linearisation "
                "and implicit integrators fail there; use sqrt(|v|^2 + 1e-12) for a length",
                FramefreeWarning,
                stacklevel=4,
            )


def _asked_for(law: Callable, shapes: Mapping[str, Any], what: str) -> list[str]:
    """Return the names of the arguments that a function takes."""
    names = []
    for parameter in inspect.signature(law).parameters.values():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            raise MachineError(f"{what} takes arguments by name: *{parameter.name} has none")
        if parameter.name in shapes and parameter.kind is not parameter.POSITIONAL_ONLY:
            names.append(parameter.name)
        elif parameter.default is parameter.empty:
            raise MachineError(
                f"{what} asks for `{parameter.name}`, which there is none of; it can have "
                f"{known_names(shapes)}"
            )
    return names


def _checked_function(
    law: casadi.Function, size: int, shapes: Mapping[str, tuple[int, int]], what: str
) -> casadi.Function:
    for name in law.name_in():
        if name not in shapes:
            raise MachineError(
                f"{what} asks for `{name}`, which there is none of; name the inputs of the "
                f"casadi.Function among {known_names(shapes)}"
            )
        if law.size_in(name) != shapes[name]:
            raise MachineError(
                f"{what}: input `{name}` must have shape {shapes[name]}, got {law.size_in(name)}"
            )
    if law.n_out() != 1:
        raise MachineError(f"{what} must have one output, got {law.n_out()}")
    if law.has_free():
        raise MachineError(f"{what} depends on {known_names(law.get_free())}, which are no inputs")
    _check_shape(law.size_out(0), size, what)
    return law if law.is_a("SXFunction") else law.expand()


def _check_shape(shape: tuple[int, int], size: int, what: str) -> None:
    if shape != (size, 1):
        words = "one number" if size == 1 else f"{size} numbers, force and moment"
        raise MachineError(f"{what} must be {words}, got shape {shape}")


def _depends(law: casadi.Function, name: str) -> bool:
    """Whether an expression depends on one of its inputs."""
    if name not in law.name_in():
        return False
    symbols = law.sx_in()
    return casadi.depends_on(law.call(symbols)[0], symbols[law.name_in().index(name)])


def _shape_of(value: Any) -> tuple[int, int]:
    """Return the shape of a parameter as a casadi matrix."""
    shape = value.shape if is_symbolic(value) else np.shape(value)
    rows, columns = (*shape, 1, 1)[:2]
    return rows, columns


def _checked_number(value: Any, what: str) -> Any:
    if is_symbolic(value):
        return value
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise MachineError(f"{what} must be numbers, got {value!r}") from None
    if array.ndim > 2 or not np.isfinite(array).all():
        raise MachineError(f"{what} must be finite numbers, at most a matrix, got {value!r}")
    return float(array) if array.ndim == 0 else frozen(array)


def _with_entries(value: Any, new: Mapping[tuple, Any]) -> Any:
    """Return a number, vector or matrix with entries set, to floats or symbols."""
    if () in new:
        return new[()]
    if any(is_symbolic(entry) for entry in new.values()):
        result = casadi.SX(constant(value))
        for entry, number in new.items():
            result[entry if len(entry) == 2 else entry[0]] = number
        return result
    result = np.array(value)
    for entry, number in new.items():
        result[entry] = float(number)
    return result
