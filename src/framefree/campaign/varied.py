"""Settings of simulations by name, and the arguments of `simulate` that follow from many rows."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from framefree.campaign.errors import CampaignError
from framefree.errors import FramefreeError, near
from framefree.simulate import Pulse

SEED, LAW, PUSH, GAIN = "seed", "law.", "push.", "gain."
WRENCH = ("fx", "fy", "fz", "mx", "my", "mz")


@dataclass(frozen=True)
class VariedNumbers:
    """The numbers of a simulation that vary, by the names that `Simulations` documents.

    Attributes
    ----------
    machine, law, x0, v0 : as in `simulate`
    disturbances : tuple of Disturbance
    keys : tuple of str
        Those that vary; a name that does not exist is refused.
    """

    machine: Any
    law: Any
    x0: Any
    v0: Any
    disturbances: tuple[Any, ...]
    keys: tuple[str, ...]

    def __post_init__(self) -> None:
        known = set(self.names)
        for key in self.keys:
            if key not in known:
                self._check_path(key)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All names, but for numbers of the machines that are not tunable yet."""
        machine = self.machine
        names = [SEED, *(f"x0.{n}" for n in machine.x_names)]
        names += [f"{start}.{n}" for start in ("e0", "v0") for n in machine.v_names]
        names += machine.parameters.names
        if self.law is not None:
            names += [LAW + name for name in self.law.machine.parameters.names]
            names += [GAIN + name for name in gains_of(self.law)]
        for pulse in self._pulses:
            names += [f"{PUSH}{pulse.target}.{word}" for word in _words(pulse)]
        return tuple(names)

    def _check_path(self, key: str) -> None:
        """Refuse what is no tunable number of the machine, or of the law's."""
        machine, path = self.machine, key
        if key.startswith(LAW) and self.law is not None:
            machine, path = self.law.machine, key.removeprefix(LAW)
        try:
            machine.tunable(path)
        except FramefreeError as error:
            raise CampaignError(
                f"nothing called `{key}` may vary here; {near(key, self.names)}There are tunable "
                f"numbers of the machine ({error}), and: "
                + ", ".join(f"`{name}`" for name in self.names)
            ) from None

    @property
    def _pulses(self) -> list[Pulse]:
        return [one for one in self.disturbances if isinstance(one, Pulse)]

    @cached_property
    def _paths(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Paths that vary in the machine, and in the law's."""
        others = (SEED, "x0.", "e0.", "v0.", PUSH, GAIN)
        fixed = set(self.names)
        paths = [
            key
            for key in self.keys
            if not (key in fixed and key.startswith(others)) or key in self.machine.parameters.names
        ]
        of_law = tuple(key.removeprefix(LAW) for key in paths if self._of_law(key))
        return tuple(key for key in paths if not self._of_law(key)), of_law

    def _of_law(self, key: str) -> bool:
        return key.startswith(LAW) and self.law is not None

    def machines(self, law: Any) -> tuple[Any, Any]:
        """Return the machine and a law, with all that varies in them tunable.

        A law that shares the plant's machine keeps its numbers as they are.
        """
        own, of_law = self._paths
        machine = self.machine.tunable(*own) if own else self.machine
        if of_law and not set(of_law) <= set(law.machine.parameters.names):
            law = dataclasses.replace(law, machine=law.machine.tunable(*of_law))
        return machine, law

    def arguments(
        self, rows: Sequence[Mapping[str, Any]], machine: Any, law: Any, seed: int
    ) -> dict[str, Any]:
        """Return first states, parameters, seeds and disturbances of many trajectories.

        Machine and law are those that `machines` gave.
        """
        given: dict[str, Any] = {
            "x0": self._first_x(rows),
            "v0": self._changed("v0.", machine.v_names, self.v0, np.zeros(machine.nv), rows),
            "parameters": _parameters(machine, "", rows),
            "seed": [int(row.get(SEED, seed)) for row in rows],
        }
        if law is not None and law.machine is not machine:
            given["law_parameters"] = _parameters(law.machine, LAW, rows)
        if any(key.startswith(PUSH) for key in self.keys):
            given["disturbances"] = tuple(_pushed(one, rows) for one in self.disturbances)
        return given

    def _first_x(self, rows: Sequence[Mapping[str, Any]]) -> np.ndarray:
        machine = self.machine
        x = self._changed("x0.", machine.x_names, self.x0, machine.neutral(), rows)
        x = machine.normalise(x) if any(k.startswith("x0.") for k in self.keys) else x
        if not any(key.startswith("e0.") for key in self.keys):
            return x
        off = self._changed("e0.", machine.v_names, None, np.zeros(machine.nv), rows)
        return np.asarray(machine.integrate(x, off))

    def _changed(
        self, prefix: str, names: Sequence[str], given: Any, plain: Any, rows: Sequence[Any]
    ) -> np.ndarray:
        first = np.asarray(plain if given is None else given, float)
        values = np.tile(first, (len(rows), 1))
        return _replaced(values, [prefix + name for name in names], rows)


def gains_of(law: Any) -> dict[str, float]:
    """Return the numbers of a law by name, "K" or "K.0", that may vary."""
    found: dict[str, float] = {}
    if not dataclasses.is_dataclass(law):
        return found
    for one in dataclasses.fields(law):
        value = getattr(law, one.name, None)
        if not one.init or isinstance(value, bool) or value is None:
            continue
        if isinstance(value, int | float | np.floating):
            found[one.name] = float(value)
        elif isinstance(value, np.ndarray | tuple) and np.ndim(value) == 1 and len(value):
            entries = np.asarray(value)
            if entries.dtype.kind in "if":
                found |= {f"{one.name}.{k}": float(entry) for k, entry in enumerate(entries)}
    return found


def with_gains(law: Any, gains: Mapping[str, float]) -> Any:
    """Return a law with other numbers, by the names that `gains_of` gives after "gain."."""
    fields: dict[str, Any] = {}
    for key, value in gains.items():
        name, _, entry = key.removeprefix(GAIN).partition(".")
        if entry:
            vector = np.array(fields.get(name, getattr(law, name)), float)
            vector[int(entry)] = value
            fields[name] = vector
        else:
            fields[name] = value
    return dataclasses.replace(law, **fields) if fields else law


def _parameters(machine: Any, prefix: str, rows: Sequence[Mapping[str, Any]]) -> Any:
    if not len(machine.parameters):
        return None
    values = np.tile(machine.parameters.values(None), (len(rows), 1))
    return _replaced(values, [prefix + name for name in machine.parameters.names], rows)


def _words(pulse: Pulse) -> list[str]:
    count = np.shape(pulse.size)[-1]
    sizes = list(WRENCH) if count == 6 else [str(k) for k in range(count)]
    return [*sizes, "start", "duration"]


def _pushed(one: Any, rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return a pulse with one set of numbers for each trajectory; others as they are."""
    if not isinstance(one, Pulse):
        return one
    plain = np.array([*np.ravel(one.size), one.start, one.duration], float)
    names = [f"{PUSH}{one.target}.{word}" for word in _words(one)]
    values = _replaced(np.tile(plain, (len(rows), 1)), names, rows)
    return Pulse(one.target, values[:, :-2], values[:, -2], values[:, -1], one.axes)


def _replaced(
    values: np.ndarray, names: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> np.ndarray:
    """Return values (rows, names) with those that the rows have by name."""
    for k, name in enumerate(names):
        if any(name in row for row in rows):
            values[:, k] = [row.get(name, value) for row, value in zip(rows, values[:, k],
                                                                       strict=True)]  # fmt: skip
    return values
