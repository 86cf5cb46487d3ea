"""The check of `framefree check FILE`: static lint first, then measurements."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Integral
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from framefree.certify import forms
from framefree.certify.agreement import agreement
from framefree.certify.bounds import mass_bounds
from framefree.certify.energy import conservation
from framefree.certify.estimate import estimate_findings, property_3
from framefree.certify.frames import invariance
from framefree.certify.laws import laws
from framefree.certify.lint import lint
from framefree.certify.own import OwnMatrix, own_matrices
from framefree.certify.peers import ModelSource, mujoco, pinocchio
from framefree.certify.report import CheckReport, Finding, Verdict
from framefree.certify.subject import Subject
from framefree.errors import FramefreeError
from framefree.machine import Machine
from framefree.machine.read import read
from framefree.motion import Equations
from framefree.motion.formulate import FORMULATIONS, maker


def check(
    path_or_machine: str | os.PathLike[str] | Machine,
    *,
    states: int = 24,
    samples: int = 1024,
    seed: int = 0,
    length: float | None = None,
    parametrisations: Sequence[str] = (),
    frame: str | None = None,
    mass: Any = None,
    coriolis: Any = None,
    mass_estimate: Any = None,
    delta: float | None = None,
    thorough: bool = False,
    progress: bool = False,
    formulations: Mapping[str, Callable[..., Equations]] | None = None,
    **reading: Any,
) -> CheckReport:
    """Examine a machine, or a model file, and measure what control proofs rest on.

    Parameters
    ----------
    path_or_machine : path or Machine
    states : int
        Number of random states at which identities are measured.
    samples : int
        Number of random configurations from which the eigenvalues of M are searched.
    seed : int
        Seed of all random choices: the same seed gives the same report.
    length : float, optional
        Unit of length (m) in which linear velocities count, so that all eigenvalues of M are in
        kg m^2; else M mixes kg and kg m^2.
    parametrisations : sequence of str
        Coriolis matrices and coordinates to compare; see `framefree.certify.forms`. "all" is all.
    frame : str, optional
        End frame of task coordinates; default one on the body that most joints carry.
    mass, coriolis : callable or casadi.Function, optional
        M(x) and C(x, v) of your own, (nv, nv) in the machine's velocities: whether M is right,
        whether dM/dt - 2C is skew-symmetric, and whether C v is the velocity force. Functions in
        casadi operations are differentiated exactly; others get NumPy arrays.
    mass_estimate : (nv, nv) array, callable or casadi.Function, optional
        Estimate Mhat, or Mhat(x), of M: the largest |M^-1 Mhat - I|.
    delta : float, optional
        Distance from pitch 90 degrees, rad, at which bounds of M in Euler angles are looked at.
    thorough : bool
        Compare formulations that take minutes to derive for a large machine, too.
    progress : bool
        Show on the terminal (standard error) what is being done.
    formulations : mapping of name to class
        What is compared; default all that framefree has.
    **reading
        Options of `framefree.read`, such as ``base="free"``.
    """
    start = perf_counter()
    for name, count in (("states", states), ("samples", samples)):
        if not (isinstance(count, Integral) and count >= 1):
            raise FramefreeError(f"`{name}` must be a whole number from 1 on, got {count!r}")
    forms.known(parametrisations)  # a wrong name is refused before the work
    machine, source = _read(path_or_machine, reading)
    given = Given.of(machine, tuple(parametrisations), frame, mass, coriolis, mass_estimate, delta)
    still = machine.numeric
    if still.timed:
        # Identities hold at every moment; they are measured at t = 0.
        held = tuple(force.held_at(0.0) for force in still.interactions)
        fluid = None if still.fluid is None else still.fluid.held_at(0.0)
        still = replace(still, interactions=held, fluid=fluid)
    subject = Subject(
        still,
        {name: maker(name) for name in FORMULATIONS} if formulations is None else formulations,
        states,
        samples,
        seed,
        length,
    )
    findings: list[Finding] = []
    # What is not finite makes a finding; NumPy need not warn of it as well.
    with _steps(progress) as announce, np.errstate(all="ignore"):
        for words, step in _plan(subject, source, thorough, given):
            announce(words)
            findings += _made(words, step)
    about = {
        "machine": machine.name,
        "file": _file(source),
        "bodies": len(machine.bodies),
        "nx": machine.nx,
        "nv": machine.nv,
        "loops": len(machine.loops),
        "couplings": len(machine.couplings),
        "states": states,
        "samples": samples,
        "seed": seed,
        "seconds": round(perf_counter() - start, 3),
    }
    return CheckReport(about, tuple(findings))


Step = tuple[str, Callable[[], Iterable[Finding]]]


@dataclass(frozen=True)
class Given:
    """What the user wants looked at beside the machine itself; see `check`."""

    parametrisations: tuple[str, ...] = ()
    frame: str | None = None
    mass: OwnMatrix | None = None
    coriolis: OwnMatrix | None = None
    estimate: OwnMatrix | None = None
    delta: float | None = None

    @classmethod
    def of(
        cls,
        machine: Machine,
        parametrisations: tuple[str, ...],
        frame: str | None,
        mass: Any,
        coriolis: Any,
        estimate: Any,
        delta: float | None,
    ) -> "Given":
        """Return what is given, each function looked at."""
        if frame is not None:
            machine.frame(frame)  # refuses a frame that does not exist, by name
        if delta is not None and not 0 < delta < np.pi / 2:
            raise FramefreeError(f"`delta` must lie between 0 and pi/2 rad, got {delta}")
        sizes = {"mass": (machine.nx,), "mass_estimate": (machine.nx,)}
        own = [
            None if one is None else OwnMatrix.of(
                name, one, sizes.get(name, (machine.nx, machine.nv)), machine.nv
            )
            for name, one in (("mass", mass), ("coriolis", coriolis), ("mass_estimate", estimate))
        ]  # fmt: skip
        return cls(parametrisations, frame, *own, delta=delta)


def _plan(subject: Subject, source: ModelSource, thorough: bool, given: Given) -> Iterator[Step]:
    """Give all checks in order, each with words for the progress display."""
    yield "reading the description", lambda: lint(subject.machine)
    if not subject.machine.nv:
        return
    yield "measuring the laws of motion", lambda: laws(subject)
    yield "searching eigenvalues of the mass matrix", lambda: mass_bounds(subject, thorough)
    if given.mass is not None or given.coriolis is not None:
        yield (
            "measuring your own matrices",
            lambda: own_matrices(subject, given.mass, given.coriolis),
        )
    estimate, delta = given.estimate, given.delta
    if estimate is not None:
        yield (
            "judging your estimate of the mass matrix",
            lambda: estimate_findings(subject, estimate),
        )
    if delta is not None:
        yield "going near pitch 90 degrees", lambda: property_3(subject, delta, estimate)
    if given.parametrisations:
        yield (
            "comparing parametrisations",
            lambda: forms.findings(subject.machine, given.parametrisations, frame=given.frame),
        )
    yield "moving the frames", lambda: [invariance(subject)]
    yield "comparing formulations", lambda: agreement(subject, thorough)
    yield "integrating a free motion", lambda: [conservation(subject)]
    yield "asking Pinocchio", lambda: [pinocchio(subject, source)]
    yield "asking MuJoCo", lambda: [mujoco(subject, source)]


def _made(words: str, step: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """Give the findings of a step; one that cannot be carried out is a finding, too."""
    try:
        yield from step()
    except (FramefreeError, np.linalg.LinAlgError) as error:
        yield Finding(
            f"{words.replace(' ', '_')}_error",
            Verdict.FAIL,
            f"{words} was not possible",
            note=str(error),
            remedy="correct what the message names; if nothing is wrong with it, report the file",
        )


def _read(model: Any, reading: dict[str, Any]) -> tuple[Machine, ModelSource]:
    if not isinstance(model, Machine):
        return read(model, **reading), ModelSource(model, reading)
    if reading:
        raise FramefreeError(f"a Machine is not read again: it takes no `{next(iter(reading))}`")
    return model, ModelSource()


def _file(source: ModelSource) -> str | None:
    """Return the path of the model; a text has none."""
    model = source.model
    if model is None or isinstance(model, bytes):
        return None
    path = os.fspath(model)
    return None if path.lstrip().startswith("<") else path


@contextmanager
def _steps(shown: bool) -> Iterator[Callable[[str], None]]:
    """Show what is being done, while it is done."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(
        *columns, console=Console(stderr=True), transient=True, disable=not shown
    ) as progress:
        task = progress.add_task("", total=12)

        def announce(words: str) -> None:
            progress.update(task, description=words, advance=1)

        yield announce
