"""Recorded motions: arrays, a run, or a table with columns by name; checked before they are used.

Columns are named as those of a saved run, with or without a unit in brackets:

    t                   time, s
    x.<coordinate>      or <coordinate> alone
    v.<velocity>, a.<velocity>      optional: what is missing is differentiated
    force.<velocity>    force at every joint velocity, or u.<input> of every actuator
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from framefree.identify.errors import IdentifyError
from framefree.machine import Machine
from framefree.machine.tree import unknown
from framefree.simulate import Run

JITTER = 0.02
"""Share of the period by which rows may be off the even grid."""
UNIT = 1e-3
"""How far a quaternion or (cos, sin) pair may be off unit length."""
LIKE = 0.9
"""Correlation from which on a column is taken as the rate of a coordinate."""


@dataclass(frozen=True, eq=False)
class Recording:
    """One motion in which everything was recorded at one even rate.

    Parameters
    ----------
    t : (n,)
        s, evenly spaced.
    x : (n, nx)
    v, a : (n, nv), optional
        Measured velocities and accelerations; without, x is differentiated.
    force : (n, nv), optional
        Forces at the joint velocities; or
    u : (n, nu), optional
        inputs of the actuators.
    source : str
        Where it comes from, for messages.
    """

    t: Any
    x: Any
    v: Any = None
    a: Any = None
    force: Any = None
    u: Any = None
    source: str = "the data"

    def __post_init__(self) -> None:
        for name in ("t", "x", "v", "a", "force", "u"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, np.array(value, float))
        if self.force is None and self.u is None:
            raise IdentifyError(
                f"{self.source} holds neither forces (`force.<velocity>`) nor inputs (`u.<input>`)"
            )

    def __len__(self) -> int:
        return len(self.t)

    @property
    def period(self) -> float:
        """Time from row to row, s."""
        return float((self.t[-1] - self.t[0]) / (len(self.t) - 1))

    def rows(self, part: slice) -> "Recording":
        """Return some of the rows."""
        values = {
            name: None if getattr(self, name) is None else getattr(self, name)[part]
            for name in ("t", "x", "v", "a", "force", "u")
        }
        return replace(self, **values)

    @classmethod
    def of_run(cls, run: Run) -> "Recording":
        """Return what a simulation recorded: t, x, v and u."""
        if run.batch is not None:
            raise IdentifyError("a run of many trajectories: make a Recording of each")
        return cls(run.t, run.x, run.v, u=run.u, source="the run")

    @classmethod
    def of_file(
        cls, path: Any, machine: Machine, columns: Mapping[str, str] | None = None
    ) -> "Recording":
        """Read a CSV or Parquet file.

        Parameters
        ----------
        path : path
            NAME.csv or NAME.parquet, or the folder of a saved run.
        machine : Machine
            Whose coordinates, velocities and inputs the columns name.
        columns : mapping, optional
            Our name to that in the file, where they differ: {"force.joint1": "tau_1"}.
        """
        path = Path(path)
        table = read_table(path / "run.parquet" if path.is_dir() else path)
        return _from_table(table, machine, dict(columns or {}), f"`{path.name}`")


def read_table(path: Path) -> dict[str, np.ndarray]:
    """Return the columns of a CSV or Parquet file as float arrays, by their names in the file."""
    if not path.is_file():
        raise IdentifyError(f"there is no file `{path}`")
    import pyarrow as pa

    try:
        if path.suffix.lower() == ".parquet":
            import pyarrow.parquet as pq

            table = pq.read_table(path)
        else:
            from pyarrow import csv

            table = csv.read_csv(path)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise IdentifyError(f"`{path.name}` cannot be read: {error}") from None
    result = {}
    for name in table.column_names:
        column = table.column(name)
        if pa.types.is_string(column.type) or pa.types.is_null(column.type):
            result[name] = column.to_pylist()  # text is refused where the column is needed
        else:
            result[name] = column.to_numpy(zero_copy_only=False).astype(float)
    return result


def _from_table(
    table: Mapping[str, Any], machine: Machine, columns: dict[str, str], source: str
) -> Recording:
    bare = {name.partition(" [")[0].strip(): name for name in table}

    def find(wanted: str, *others: str) -> str | None:
        if wanted in columns:
            if columns[wanted] not in table:
                raise IdentifyError(f"{source}: {unknown('column', columns[wanted], bare)}")
            return columns[wanted]
        return next((bare[name] for name in (wanted, *others) if name in bare), None)

    def group(prefix: str, names: Sequence[str], alone: bool = False) -> np.ndarray | None:
        places = [find(f"{prefix}.{name}", *([name] if alone else [])) for name in names]
        if not names or all(place is None for place in places):
            return None
        missing = [f"`{prefix}.{n}`" for n, place in zip(names, places, strict=True) if not place]
        if missing:
            raise IdentifyError(
                f"{source} lacks the column {', '.join(missing)}; it has: "
                + ", ".join(f"`{name}`" for name in table)
            )
        return np.column_stack([_numbers(table[place], place, source) for place in places if place])

    time = find("t", "time")
    x = group("x", machine.x_names, alone=True)
    if time is None or x is None:
        lacking = "`t`" if time is None else f"`x.{machine.x_names[0]}` and so on"
        raise IdentifyError(
            f"{source} lacks the column {lacking}; it has: " + ", ".join(f"`{n}`" for n in table)
        )
    groups = {"v": machine.v_names, "a": machine.v_names, "force": machine.v_names}
    found = {name: group(name, names) for name, names in groups.items()}
    u = group("u", machine.u_names)
    return Recording(_numbers(table[time], time, source), x, **found, u=u, source=source)


def _numbers(column: Any, name: str, source: str) -> np.ndarray:
    if isinstance(column, list):
        row = next((i for i, text in enumerate(column) if text is not None), 0)
        raise IdentifyError(
            f"{source}: column `{name}` does not hold numbers; row {row + 1} has {column[row]!r}"
        )
    return column


# ------------------------------------------------------------------ checks


def checked(recording: Recording, machine: Machine) -> Recording:
    """Return a recording that may be used; raise `IdentifyError` with row and column otherwise."""
    n = len(recording.t)
    sizes = {"x": machine.nx, "v": machine.nv, "a": machine.nv, "force": machine.nv}
    for name, size in {**sizes, "u": machine.nu}.items():
        value = getattr(recording, name)
        if value is not None and value.shape != (n, size):
            raise IdentifyError(
                f"`{name}` of {recording.source} must have shape {(n, size)}, got {value.shape}"
            )
    if n < 8:
        raise IdentifyError(f"{recording.source} has {n} rows: too few to identify anything")
    _check_finite(recording, machine)
    _check_times(recording)
    _check_units(recording, machine)
    _check_rates(recording, machine)
    return recording


def column_names(machine: Machine, group: str) -> tuple[str, ...]:
    """Return the names of the columns of a group, such as "force.joint1"."""
    names = {"x": machine.x_names, "u": machine.u_names}.get(group, machine.v_names)
    return tuple(f"{group}.{name}" for name in names)


def _row(recording: Recording, i: int) -> str:
    return f"row {i + 1} (t = {recording.t[i]:.6g} s)"


def _check_finite(recording: Recording, machine: Machine) -> None:
    if not np.isfinite(recording.t).all():
        i = int(np.flatnonzero(~np.isfinite(recording.t))[0])
        raise IdentifyError(f"{recording.source}: row {i + 1}, column `t` is not a number")
    for group in ("x", "v", "a", "force", "u"):
        value = getattr(recording, group)
        if value is None or np.isfinite(value).all():
            continue
        bad = np.argwhere(~np.isfinite(value))
        i, k = bad[0]
        more = f", and {len(bad) - 1} more values" if len(bad) > 1 else ""
        raise IdentifyError(
            f"{recording.source}: {_row(recording, i)}, column "
            f"`{column_names(machine, group)[k]}` is not a number{more}"
        )


def _check_times(recording: Recording) -> None:
    steps = np.diff(recording.t)
    if (steps <= 0).any():
        i = int(np.flatnonzero(steps <= 0)[0])
        raise IdentifyError(
            f"{recording.source}: column `t` does not increase from {_row(recording, i)} to "
            f"{_row(recording, i + 1)}"
        )
    usual = float(np.median(steps))
    off = np.abs(steps - usual)
    if (off > 0.5 * usual).any():
        i = int(np.argmax(off > 0.5 * usual))
        kind = "a gap" if steps[i] > usual else "a shorter step"
        raise IdentifyError(
            f"{recording.source}: {kind} of {steps[i]:.4g} s after {_row(recording, i)}, column "
            f"`t`, where the period is {usual:.4g} s; cut the data there, or resample them"
        )
    even = recording.t[0] + recording.period * np.arange(len(recording.t))
    late = np.abs(recording.t - even)
    if (late > JITTER * usual + 1e-9).any() and (off > JITTER * usual).any():
        i = int(np.argmax(off > JITTER * usual))
        raise IdentifyError(
            f"{recording.source}: the rate is not even: column `t` steps by {steps[i]:.6g} s at "
            f"{_row(recording, i)} and by {usual:.6g} s elsewhere; resample to one rate"
        )


def _check_units(recording: Recording, machine: Machine) -> None:
    for joint in machine.joints:
        place = machine.x_slice[joint.name]
        for block in joint.kind.unit_blocks:
            values = recording.x[:, place][:, block]
            length = np.linalg.norm(values, axis=1)
            bad = np.abs(length - 1) > UNIT
            if bad.any():
                i = int(np.argmax(bad))
                names = ", ".join(f"`x.{name}`" for name in joint.x_names[block])
                raise IdentifyError(
                    f"{recording.source}: {_row(recording, i)}, columns {names} must have unit "
                    f"length, got {length[i]:.6g}"
                )


def _check_rates(recording: Recording, machine: Machine) -> None:
    """Refuse velocities that are not the rates of x, and accelerations that are not those of v."""
    if recording.v is not None:
        _compare(recording, machine, "v", _rates_of_x(recording, machine), recording.v)
    if recording.a is not None and recording.v is not None:
        _compare(recording, machine, "a", np.gradient(recording.v, recording.period, axis=0),
                 recording.a)  # fmt: skip


def _rates_of_x(recording: Recording, machine: Machine) -> np.ndarray:
    steps = machine.difference(recording.x[:-1], recording.x[1:]) / recording.period
    return np.vstack([steps[:1], (steps[1:] + steps[:-1]) / 2, steps[-1:]])


def _compare(
    recording: Recording, machine: Machine, group: str, slopes: np.ndarray, given: np.ndarray
) -> None:
    names = column_names(machine, group)
    # Slow parts of both decide: what noise does to a difference quotient must not.
    width = max(1, len(recording.t) // 200)
    slopes, given = (_averaged(values, width) for values in (slopes, given))
    sizes = np.linalg.norm(slopes, axis=0), np.linalg.norm(given, axis=0)
    inner = slopes.T @ given
    likeness = inner / np.maximum(np.outer(*sizes), 1e-300)
    moving = sizes[0] > 1e-2 * max(float(sizes[0].max()), 1e-12)
    for k in np.flatnonzero(moving):
        if likeness[k, k] > LIKE:
            factor = sizes[1][k] / sizes[0][k]
            if not 0.8 < factor < 1.25:
                raise IdentifyError(
                    f"{recording.source}: column `{names[k]}` is {factor:.4g} times the rate of "
                    f"what it belongs to, from {_row(recording, 0)} on: its unit, or the times in "
                    "column `t`, are wrong"
                )
            continue
        other = int(np.argmax(np.abs(likeness[k])))
        if likeness[k, other] > LIKE:
            raise IdentifyError(
                f"{recording.source}: columns `{names[k]}` and `{names[other]}` look swapped, from "
                f"{_row(recording, 0)} on: each is the rate of the other's coordinate"
            )
        raise IdentifyError(
            f"{recording.source}: column `{names[k]}` is not the rate of what it belongs to "
            f"(correlation {likeness[k, k]:.2f}), from {_row(recording, 0)} on"
        )


def _averaged(values: np.ndarray, width: int) -> np.ndarray:
    count = len(values) // width
    return values[: count * width].reshape(count, width, -1).mean(axis=1)
