"""A run: everything that was recorded, and what is needed to repeat it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from framefree.errors import near
from framefree.machine import Machine
from framefree.simulate import storage
from framefree.simulate.columns import Channel
from framefree.simulate.errors import SimulationError
from framefree.simulate.place import RunPlace

RECORDED = "recorded-"
"""What runs of a scenario are called until it names them, with their number."""


class RunSetup(NamedTuple):
    """The objects that a run was made of.

    Attributes
    ----------
    options : SimulationOptions
        The integrator chosen.
    scene : Scene
        The first one: machine, law, reference, first state.
    """

    options: Any
    scene: Any


class NoSuchSignalError(SimulationError, KeyError):
    """A run has not recorded anything of this name."""

    def __str__(self) -> str:
        return str(self.args[0])


class RecordedSignals(dict[str, np.ndarray]):
    """Recorded arrays by name; a name that is not there is answered by those that are near."""

    def __missing__(self, name: str) -> np.ndarray:
        listed = ", ".join(f"`{key}`" for key in self) or "none"
        raise NoSuchSignalError(f"the run has no `{name}`; {near(name, self)}it has: {listed}")


@dataclass(frozen=True)
class Run:
    """The record of a simulation.

    Attributes
    ----------
    machine : Machine or None
        The plant; None in a loaded run whose machine has parts that live only in Python.
    t : (rows,)
        Times, s.
    x, v, u : (rows, n)
        Configurations and velocities of the machine's joints, and inputs of its actuators. In a run
        of many trajectories these, references and signals are (batch, rows, ...).
    reference : dict of str to (rows, ...)
        What the law was to follow.
    signals : dict of str to (rows, ...)
        Energies, what the law tells of itself (V, V_rate, ...), errors of constraints, joint
        wrenches.
    meta : dict
        All that is needed to repeat the run: law, reference, disturbances, events, options, seed,
        versions; and `status`: "finished", "interrupted" or "failed"; of a run that is loaded while
        it goes on, "running".
    channels : tuple of Channel
        Names and units of all entries.
    setup : RunSetup or None
        The objects that the run was made of, for export; None in a loaded run.
    """

    machine: Machine | None
    t: np.ndarray
    x: np.ndarray = field(repr=False)
    v: np.ndarray = field(repr=False)
    u: np.ndarray = field(repr=False)
    reference: dict[str, np.ndarray] = field(repr=False)
    signals: dict[str, np.ndarray] = field(repr=False)
    meta: dict[str, Any] = field(repr=False)
    channels: tuple[Channel, ...] = field(repr=False)
    setup: RunSetup | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, name: str) -> np.ndarray:
        """Return a signal, or a reference, by name."""
        return RecordedSignals(self.reference | self.signals)[name]

    @property
    def batch(self) -> int | None:
        """Number of trajectories; None for a single one."""
        return len(self.x) if self.x.ndim == 3 else None

    @property
    def status(self) -> str:
        """Whether it is "finished", "interrupted" or "failed"."""
        return self.meta["status"]

    @property
    def failures(self) -> tuple[dict[str, Any], ...]:
        """Trajectories of many that ended early: "trajectory", "time", "quantity", "cause".

        Their rows are NaN from that time on; the others are what they would be without them.
        """
        return tuple(self.meta.get("failures", ()))

    @property
    def energy(self) -> np.ndarray:
        """Kinetic and potential energy together (rows,), J."""
        return self["kinetic"] + self["potential"]

    def units(self, name: str) -> tuple[str, ...]:
        """Return the units of the entries of "x", "v", "u", a reference or a signal."""
        for channel in self.channels:
            if channel.name == name:
                single = len(channel.units) != channel.size
                return channel.units[:1] * channel.size if single else channel.units
        raise SimulationError(f"the run has no `{name}`")

    def save(self, path: Any, *, replace: bool = False) -> Path:
        """Write a Parquet table and a JSON header; return the path of the table.

        Parameters
        ----------
        path : path
            A new folder, which then holds run.parquet and run.json, or a file NAME.parquet beside
            which NAME.json is written.
        replace : bool
            Whether a run that is there already is replaced. Files that belong to no run never are.
        """
        place = RunPlace.at(path)
        place.check(replace)
        lock = place.take(replace)
        meta = {**self.meta, "status": "interrupted"} if self.status == "running" else self.meta
        try:
            return storage.write_run(place, self.arrays(), meta, self.channels, self.batch)
        finally:
            lock.release()

    @classmethod
    def load(cls, path: Any) -> "Run":
        """Return a run that was saved, or what one has written that was interrupted, or goes on."""
        t, arrays, (header, channels, _) = storage.read_run(path)
        return assembled(t, arrays, header, channels)

    def report(self, path: Any, *, title: str = "", trajectory: int = 0) -> Path:
        """Write one HTML file that opens offline: figures of all that was recorded, and the motion.

        Parameters
        ----------
        path : path
            Of the file; or a folder, which then holds report.html.
        title : str
            By default the name of the machine.
        trajectory : int
            Which one to show, in a run of many.

        Returns
        -------
        Path
            Of the file.
        """
        # Reports are made of runs, so that this one step back is taken when it is asked for.
        from framefree.look.report import run_page, write

        path = Path(path)
        file = path if path.suffix.lower() in (".html", ".htm") else path / "report.html"
        return write(run_page(self, title, trajectory), file)

    def view(self, **options: Any) -> Any:
        """Show the states of the run over time in a page of the browser; see `framefree.view`."""
        from framefree.look.view import view

        return view(self, **options)

    def arrays(self) -> dict[tuple[str, str], np.ndarray]:
        """Return all that was recorded, by group and name."""
        arrays = {("state", "x"): self.x, ("state", "v"): self.v, ("state", "u"): self.u}
        arrays |= {("reference", name): value for name, value in self.reference.items()}
        arrays |= {("signals", name): value for name, value in self.signals.items()}
        return {("", "t"): self.t, **arrays}


@dataclass
class _Watch:
    watcher: Callable[[Run, RunPlace | None], object]
    folder: Path | None
    count: int = 0


_watch: ContextVar[_Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watching(
    watcher: Callable[[Run, RunPlace | None], object], folder: Path | None
) -> Iterator[None]:
    """Have every run handed to a function when it has ended, and written to a folder as it goes.

    Whoever starts a scenario of several runs thus has those that were made when a later one breaks
    off; what the function raises ends the scenario. It gets the run, and where it was written:
    None without a folder.
    """
    token = _watch.set(_Watch(watcher, folder))
    try:
        yield
    finally:
        _watch.reset(token)


def next_place() -> RunPlace | None:
    """Return where whoever is watching wants the next run, if somebody is."""
    watch = _watch.get()
    if watch is None or watch.folder is None:
        return None
    watch.count += 1
    return RunPlace(watch.folder, f"{RECORDED}{watch.count - 1}")


def tell(run: Run, place: RunPlace | None) -> None:
    """Hand a run that was just recorded to whoever is watching."""
    watch = _watch.get()
    if watch is not None:
        watch.watcher(run, place)


def assembled(
    t: np.ndarray,
    arrays: dict[tuple[str, str], np.ndarray],
    meta: dict[str, Any],
    channels: tuple[Channel, ...],
    machine: Machine | None = None,
) -> Run:
    """Return a run of recorded arrays; without a machine, with the one in its header."""
    data = meta.get("machine")
    if machine is None and isinstance(data, dict) and "framefree_machine" in data:
        machine = Machine.from_dict(data)
    return Run(
        machine,
        t,
        arrays["state", "x"],
        arrays["state", "v"],
        arrays["state", "u"],
        RecordedSignals((n, value) for (group, n), value in arrays.items() if group == "reference"),
        RecordedSignals((n, value) for (group, n), value in arrays.items() if group == "signals"),
        meta,
        channels,
    )
