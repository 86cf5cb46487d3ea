"""`view`: from a machine, a run or a law to a page."""

from pathlib import Path
from typing import Any

import numpy as np

from framefree.control.law import AnyLaw
from framefree.control.references.base import Reference
from framefree.look.picture import start_of
from framefree.look.view.errors import ViewError
from framefree.look.view.following import FLYING_HANDLE, HANDLE, Following, bent, end_of, following
from framefree.look.view.handle import HandleReference, handle_numbers
from framefree.look.view.joints_mode import JointsMode
from framefree.look.view.live_mode import LiveMode
from framefree.look.view.page import LOOPBACK, PORT, View, ViewMode
from framefree.look.view.run_mode import RunMode
from framefree.machine import Free, Machine
from framefree.machine.read import read
from framefree.simulate.run import Run
from framefree.simulate.touching import depths
from framefree.solve import assemble


def view(
    subject: Machine | Run | str | Path,
    law: AnyLaw | None = None,
    reference: Reference | None = None,
    *,
    live: bool = False,
    x0: Any = None,
    v0: Any = None,
    frame: str = "",
    payload: str | None = None,
    signals: Any = (),
    trajectory: int = 0,
    dt: float = 1e-3,
    control_dt: float | None = 2e-3,
    host: str = LOOPBACK,
    port: int = PORT,
    open_browser: bool = False,
    title: str = "",
) -> View:
    """Show a machine, a run, or a closed loop that runs live, in a page of the browser.

    Parameters
    ----------
    subject : Machine, Run or path
        A path is that of a model file, or of a run that was saved.
    law, reference : Law, Reference, optional
        With a law the loop runs live. Without a reference the law follows a handle: it must need
        the pose of a frame, or "x", "v" and "a" of a machine that is one free body.
    live : bool
        Run the machine live under a law that is chosen for it: impedance of the end of an arm, a
        prototype of a flying body; none for others.
    x0, v0 : (nx,), (nv,), optional
        First state; by default closed, and such that the end of an arm can move.
    frame : str
        That follows the handle; by default the end.
    payload : str, optional
        Body whose mass a slider changes; by default that of the frame. "" for none.
    signals : str or sequence of str
        Of a run, to be shown in figures.
    trajectory : int
        Which one, in a run of many.
    dt, control_dt : float
        Of a live loop: step of the integrator and control period, s.
    host, port : str, int
        Where the page is answered: by default to this computer alone.
    open_browser : bool
    title : str

    Returns
    -------
    View
        Its `url` is where the page is; `stop()` ends it, `wait()` waits for Ctrl-C.
    """
    if isinstance(subject, str | Path):
        subject = _read(Path(subject))
    mode: ViewMode
    if isinstance(subject, Run):
        if law is not None or live:
            raise ViewError("a run is over: give the machine itself to run it live")
        mode = RunMode(subject, signals, trajectory)
    elif isinstance(subject, Machine):
        if law is None and not live:
            mode = JointsMode(subject, _start(subject, x0))
        else:
            mode = _live(subject, law, reference, (x0, v0), frame, payload, (dt, control_dt))
    else:
        raise ViewError(f"a machine or a run can be shown, got {type(subject).__name__}")
    page = View(mode, host, port, title)
    return page.open() if open_browser else page


def _read(path: Path) -> Machine | Run:
    if path.is_dir() or path.suffix == ".parquet":
        return Run.load(path)
    return read(path)


def _start(machine: Machine, x0: Any) -> np.ndarray:
    """Return a closed configuration: the given one, a keyframe, or near neutral."""
    numeric = machine.numeric
    x = start_of(numeric) if x0 is None else np.asarray(x0, float)
    numeric.validate(x)
    return assemble(numeric, x) if machine.closed else x


def _live(
    machine: Machine,
    law: AnyLaw | None,
    reference: Reference | None,
    state: tuple[Any, Any],
    frame: str,
    payload: str | None,
    times: tuple[float, float | None],
) -> LiveMode:
    if not machine.nv:
        raise ViewError(
            "nothing of the machine moves, so that nothing can run live; a base that floats comes "
            'by `ff.read(file, base="free")`, on the command line `--base free`'
        )
    x = _start(machine, state[0])
    if law is not None:
        followed = _own_law(machine, law, reference, frame)
    else:
        if state[0] is None:
            floats = _floats(machine)
            x = _on_the_ground(machine, x) if floats else bent(machine, frame or end_of(machine), x)
        followed = following(machine, x, frame)
    if payload is None:
        payload = machine.frame(followed.frame or machine.bodies[-1].name).body
        tunable = payload != "world" and not machine.bodies[machine.body_index[payload]].massless
        payload = payload if tunable and not len(machine.parameters) else ""
    return LiveMode(followed, x, state[1], dt=times[0], control_dt=times[1], payload=payload)


def _own_law(machine: Machine, law: AnyLaw, reference: Reference | None, frame: str) -> Following:
    """Return a law of the user, with a handle where it has no reference of its own."""
    if reference is not None or not law.needs:
        return Following(machine, law, reference, "")  # type: ignore[arg-type]
    numbers = handle_numbers(HANDLE)
    poses = [name.removesuffix(".pose") for name in law.needs if name.endswith(".pose")]
    if len(poses) == 1:
        handle = HandleReference(numbers, poses[0])
        return Following(machine, law, handle, poses[0], numbers=(numbers,))
    if set(law.needs) <= {"x", "v", "a"} and len(machine.joints) == 1 and _floats(machine):
        body = machine.bodies[0].name
        handle = HandleReference(numbers)
        return Following(machine, law, handle, body, FLYING_HANDLE, numbers=(numbers,))
    raise ViewError(
        f"the law {law.name} needs {', '.join(f'`{name}`' for name in law.needs)}, which one "
        "handle cannot give: give a `reference`, or a law that needs the pose of one frame"
    )


def _on_the_ground(machine: Machine, x: np.ndarray) -> np.ndarray:
    """Return a floating machine raised by the depth at which it would be in the ground."""
    up = -np.asarray(machine.numeric.gravity, float)
    if not machine.interactions or not up.any():
        return x
    raised, up = x.copy(), up / np.linalg.norm(up)
    depth = depths(machine, x, machine.parameters.defaults).max(initial=0.0)
    for joint in machine.joints:
        if joint.parent == "world" and isinstance(joint.kind, Free):
            first = machine.x_slice[joint.name].start
            raised[first : first + 3] += max(depth, 0.0) * up
    return raised


def _floats(machine: Machine) -> bool:
    return any(j.parent == "world" and isinstance(j.kind, Free) for j in machine.joints)
