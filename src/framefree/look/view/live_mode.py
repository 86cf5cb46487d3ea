"""A closed loop that runs live: a handle to drag, bodies to grab, numbers to set, runs to save."""

from collections import deque
from pathlib import Path
from time import perf_counter
from typing import Any

import casadi as ca
import numpy as np

from framefree.errors import FramefreeError
from framefree.geometry import batch
from framefree.look.view.figures import SignalFigure, offered
from framefree.look.view.following import HANDLE, Following
from framefree.look.view.handle import HandleFilter
from framefree.look.view.page import ShownMoment, View, ViewMode, note_html
from framefree.machine.parameters import Parameters
from framefree.simulate import Push, Run
from framefree.simulate.grab import NOTHING, Grab, grab_numbers
from framefree.simulate.session import LiveSession

SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "4")
GRABBED = 64
"""Bodies that a machine may have for one of them to be grabbed."""
PULL = 2 * np.pi * 0.8
"""Frequency (rad/s) at which the whole mass would swing on the spring of a hand."""
KEPT = 10.0
"""Time over which figures look back, s."""
ROWS = 0.05
"""Wall time from one row of the figures to the next, s."""
FIGURES = 4
"""Rows from one picture of the figures to the next."""
HANDLE_SIZE = 0.35
"""Length of the handle's arrows, in sizes of the machine."""
PUSH = 0.5
"""Largest disturbance, in weights of the machine."""


class LiveMode(ViewMode):
    """A machine in a loop that runs in real time.

    Parameters
    ----------
    following : Following
        Machine, law and reference, and the live numbers of these.
    x0, v0 : (nx,), (nv,)
    dt, control_dt : float
        s.
    payload : str
        Body whose mass is a slider; "" for none.
    folder : path
        Where runs are saved.
    """

    def __init__(
        self,
        following: Following,
        x0: np.ndarray,
        v0: Any = None,
        *,
        dt: float = 1e-3,
        control_dt: float | None = 2e-3,
        payload: str = "",
        folder: Any = "runs",
    ) -> None:
        self.following, self.first = following, np.array(x0, float)
        machine = following.machine
        self.payload = payload
        plant = machine.tunable(f"{payload}.mass") if payload else machine
        self.machine, self.folder = plant, Path(folder)
        self.mass = float(sum(b.moments.total for b in machine.numeric.bodies if not b.massless))
        self.pushed = following.frame or machine.bodies[-1].name
        self._handles = self._handle_filter()
        self._grab = grab_numbers() if len(machine.bodies) <= GRABBED else None
        self._push = _numbers("push", "xyz")
        parts = [*following.numbers, self._push, *([self._grab] if self._grab else [])]
        live = Parameters(
            sum((p.names for p in parts), ()),
            ca.vertcat(*(p.symbols for p in parts)),
            np.concatenate([p.defaults for p in parts]),
        )
        force = ca.vertcat(self._push.symbols, ca.SX(3, 1))
        disturbances: list[Any] = [Push(self.pushed, lambda t: force)]
        disturbances += [Grab("hand", self._grab)] if self._grab is not None else []
        self.session = LiveSession(
            plant,
            following.law,
            following.reference,
            x0,
            v0,
            live=live,
            dt=dt,
            control_dt=control_dt if following.law is not None else None,
            disturbances=disturbances,
            feeds=() if self._handles is None else (self._handles,),
        )
        self._rows: deque[tuple[float, dict]] = deque(maxlen=int(KEPT / ROWS))
        self._kept, self._count = 0.0, 0
        self.saved: Path | None = None

    def _handle_filter(self) -> HandleFilter | None:
        f = self.following
        if f.reference is None:
            return None
        pose = np.asarray(f.machine.numeric.forward_kinematics(self.first, f.frame), float)
        return HandleFilter(HANDLE, pose[:3, 3], batch.wxyz(pose[:3, :3]), f.rate)

    # ------------------------------------------------------------------ controls

    def panel(self, page: View) -> None:
        """Add handle and grips, clock, sliders and figures."""
        self.page = page
        gui = page.server.gui
        for note in self.following.notes:
            gui.add_html(note_html(note))
        with gui.add_folder("Live", expand_by_default=True):
            self._clock_controls(gui)
        with gui.add_folder("Numbers", expand_by_default=True):
            self._number_controls(gui)
        names = offered(self.session.segment.observer.channels)
        chosen = next((n for n in ("e", "V", "W", "kinetic") if n in names), next(iter(names)))
        self.figures = [SignalFigure(gui, names, chosen, 1)]
        self._add_handle(page)
        self._add_grips(page)
        self.session.answered = page.hurry
        self.session.start()

    def _clock_controls(self, gui: Any) -> None:
        session = self.session
        pause = gui.add_button("Pause")
        step = gui.add_button("Single step")
        reset = gui.add_button("Reset")
        speed = gui.add_dropdown("speed", SPEEDS, initial_value="1")
        record = gui.add_checkbox("record", True)
        name = gui.add_text("save as", f"live-{self.machine.name or 'machine'}")
        save = gui.add_button("Save the session as a run")

        @pause.on_click
        def _(_: Any) -> None:
            (session.resume if session.paused else session.pause)()
            pause.label = "Go on" if session.paused else "Pause"

        @step.on_click
        def _(_: Any) -> None:
            session.step()
            pause.label = "Go on"

        @reset.on_click
        def _(_: Any) -> None:
            self.reset()

        @save.on_click
        def _(_: Any) -> None:
            self.page.note(self.save_named(name.value))

        speed.on_update(lambda _: session.set_speed(float(speed.value)))
        record.on_update(lambda _: session.record(record.value))

    def _number_controls(self, gui: Any) -> None:
        session = self.session
        for name, (low, first, high, unit) in self.following.gains.items():
            self._slider(gui, f"{name.removeprefix('gain.')} ({unit})", low, high, first, name)
        if self.payload:
            nominal = float(self.machine.parameters.defaults[0])
            most = max(0.5 * self.mass / max(len(self.machine.bodies), 1), 0.5 * nominal)
            most = _rounded(most)
            slider = gui.add_slider("payload (kg)", 0.0, most, _rounded(most / 200, 1), 0.0)
            key = f"{self.payload}.mass"
            slider.on_update(lambda _: session.set({key: nominal + slider.value}))
        gravity = float(np.linalg.norm(self.machine.gravity)) or 9.81
        most = PUSH * self.mass * gravity
        for axis in "xyz":
            self._slider(gui, f"push {axis} (N)", -most, most, 0.0, f"push.{axis}")
        if self._grab is not None:
            first = _rounded(self.mass * PULL**2)
            low, high = _rounded(0.1 * first), _rounded(10 * first)
            self.pull = gui.add_slider("pull (N/m)", low, high, _rounded(first / 100, 1), first)

    def _slider(
        self, gui: Any, label: str, low: float, high: float, first: float, key: str
    ) -> None:
        low, high, first = _rounded(low), _rounded(high), _rounded(first)
        slider = gui.add_slider(label, low, high, _rounded((high - low) / 400, 1), first)
        slider.on_update(lambda _: self.session.set({key: slider.value}))

    def _add_handle(self, page: View) -> None:
        handles = self._handles
        self.gizmo: Any = None
        if handles is None:
            return
        position, wxyz = handles.target
        self.gizmo = page.server.scene.add_transform_controls(
            "/handle",
            scale=HANDLE_SIZE * page.drawing.reach,
            position=position,
            wxyz=wxyz,
            depth_test=False,
            disable_rotations=not self.following.turns,
        )

        @self.gizmo.on_update
        async def _(event: Any) -> None:
            handles.move(event.target.position, event.target.wxyz)
            self.session.set({})

    def _add_grips(self, page: View) -> None:
        if self._grab is None:
            return
        for node, bodies in page.drawing.grips:
            if (bodies < 0).all():
                continue

            async def dragged(event: Any, bodies: np.ndarray = bodies) -> None:
                body = int(bodies[event.instance_index or 0])
                if event.phase == "end":
                    self.release()
                elif event.phase == "start":
                    self.grab(body, event.start_position, event.end_position)
                else:
                    self.session.set(_vector("grab.place", event.end_position))

            node.on_drag("left")(dragged)

    # ------------------------------------------------------------------ what people do

    def grab(self, body: int, at: Any, place: Any) -> None:
        """Take a body at a point of the world, and pull it to a place (3)."""
        if body < 0:
            return
        G = self.page.poses[body]
        point = G[:3, :3].T @ (np.asarray(at, float) - G[:3, 3])
        stiffness = float(self.pull.value)
        self.session.set(
            {
                "grab.body": body,
                **_vector("grab.point", point),
                **_vector("grab.place", place),
                "grab.stiffness": stiffness,
                "grab.damping": float(np.sqrt(stiffness * self.mass)),
            }
        )

    def release(self) -> None:
        """Let go."""
        self.session.set({"grab.body": NOTHING})

    def move_handle(self, position: Any, wxyz: Any = None) -> None:
        """Put the handle somewhere, as a viewer would."""
        if self._handles is None:
            return
        wxyz = self._handles.target[1] if wxyz is None else wxyz
        self._handles.move(position, wxyz)
        self.gizmo.position, self.gizmo.wxyz = position, wxyz
        self.session.set({})

    def reset(self) -> None:
        """Begin anew from the first state."""
        if self._handles is not None:
            self._handles.reset()
            self.gizmo.position, self.gizmo.wxyz = self._handles.target
        self.session.reset()
        self._rows.clear()
        self.page.marks.forget()

    def run(self) -> Run:
        """Return what was recorded so far as an ordinary run."""
        return self.session.run()

    def save_named(self, name: str) -> str:
        """Write the record into `folder` under a name that a viewer gave; return what came of it.

        Whoever sees the page may save, and into this folder alone: a name is no path.
        """
        if Path(name).name != name or name in ("", ".", ".."):
            return (
                f"not saved: `{name}` must be a name without slashes, for a folder in {self.folder}"
            )
        return self.save_as(self.folder / name)

    def save_as(self, path: Any) -> str:
        """Write the record to a new folder; return what came of it, in words."""
        place, number = Path(path), 2
        while place.exists():
            place = Path(f"{path}-{number}")
            number += 1
        try:
            run = self.session.run()
            run.save(place)
        except (FramefreeError, OSError) as error:
            return f"not saved: {error}"
        self.saved = place
        return f"{len(run)} rows are saved in {place}; framefree view {place} shows them"

    def beside(self, reach: float) -> np.ndarray:
        """Return the ends of the handle's arrows."""
        if self._handles is None:
            return np.zeros((0, 3))
        position, wxyz = self._handles.target
        return position + 1.1 * HANDLE_SIZE * reach * batch.rotation(wxyz).T

    def told(self) -> set[str]:
        """Return what the loop tells."""
        return {channel.name for channel in self.session.segment.observer.channels}

    # ------------------------------------------------------------------ pictures

    def moment(self) -> ShownMoment:
        """Return where the loop is now."""
        t, arrays, count = self.session.observed()
        row = {key: array[0] for key, array in arrays.items()}
        words = [f"t = {t:.2f} s" + (", held" if self.session.paused else "")]
        data = {"time": f"{t:.4f}", "count": str(count)}
        if self.session.failure:
            words.append(self.session.failure)
        if self._handles is not None:
            off = self.distance(row["state", "x"])
            words.append(f"{1e3 * off:.1f} mm from the handle")
            data["distance"] = f"{1e3 * off:.4f}"
        if not self.session.recording:
            words.append("not recorded")
        return ShownMoment(row["state", "x"], t, row, "\n".join(words), data)

    def distance(self, x: np.ndarray) -> float:
        """Return how far the frame is from the handle, m."""
        assert self._handles is not None
        machine = self.page.machine
        frame = machine.frame(self.following.frame)
        G = self.page.poses_of(x)[machine.body_index[frame.body]] @ np.asarray(frame.pose, float)
        return float(np.linalg.norm(G[:3, 3] - self._handles.target[0]))

    def drawn(self, page: View, moment: ShownMoment) -> None:
        """Keep rows for the figures, and draw these."""
        now = perf_counter()
        if now - self._kept < ROWS or not moment.signals:
            return
        self._kept = now
        self._rows.append((moment.t, moment.signals))
        self._count += 1
        if len(self._rows) > 2 and self._count % FIGURES == 0:
            t = np.array([time for time, _ in self._rows])
            for figure in self.figures:
                rows = np.array([signals[figure.channel.key] for _, signals in self._rows])
                figure.show(t, rows.reshape(len(t), -1))

    def stop(self) -> None:
        """End the loop."""
        self.session.stop()


def _numbers(name: str, parts: str) -> Parameters:
    names = tuple(f"{name}.{part}" for part in parts)
    return Parameters(names, ca.vertcat(*(ca.SX.sym(one) for one in names)), np.zeros(len(names)))


def _rounded(value: float, digits: int = 2) -> float:
    """Return a number with so many digits that count: ends of sliders are read by people."""
    return float(f"{value:.{digits}g}")


def _vector(name: str, values: Any) -> dict[str, float]:
    return {f"{name}.{axis}": float(v) for axis, v in zip("xyz", values, strict=True)}
