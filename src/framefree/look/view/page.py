"""The page in the browser: a server on loopback, the machine in it, and one mode of motion.

The mode says where the machine is (`ViewMode`): sliders of its joints, a recorded run, or a loop
that runs live. A thread asks it some forty times a second and moves what is drawn. Messages go into
buffers of the server, so that neither a slow connection nor a viewer that leaves holds anything up.
"""

import contextlib
import html
import io
import ipaddress
import threading
import warnings
from abc import ABC, abstractmethod
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from framefree.errors import FramefreeError, FramefreeWarning
from framefree.look.view.camera import FOV, placed
from framefree.look.view.drawing import MachineDrawing, ShownPoses
from framefree.look.view.following import end_of
from framefree.look.view.marks import DRAWN_FROM, Marks
from framefree.look.view.meshes import note_on_missing
from framefree.look.view.viser_server import server_at
from framefree.machine import Machine

LOOPBACK = "127.0.0.1"
PORT = 8080
PERIOD = 1 / 40
"""Wall time from one picture to the next, s."""
CLOSEST = 1 / 120
"""Least wall time from one picture to the next where somebody does something, s."""
FIRST_PAGE = (1400.0, 900.0)
"""Width and height of the page that is thought of before one looks on, in pixels."""
FAR = 8.0
"""Size of a motion, in sizes of the machine, above which only its beginning is looked at."""


class ShownMoment(NamedTuple):
    """What is shown now: configuration, time, signals by group and name, and words on it."""

    x: np.ndarray
    t: float
    signals: dict[tuple[str, str], np.ndarray]
    words: str
    data: dict[str, str]


class ViewMode(ABC):
    """Where a machine is: asked for every picture.

    1. ``moment()`` returns what to show, or None where nothing has changed.
    2. ``panel(page)`` adds its controls once.
    3. ``told()`` names the signals of its moments.
    4. ``shown_before()`` gives configurations that are known to come, and ``beside`` points of what
       else is shown: the camera has them in its picture.
    5. ``stop()`` ends whatever runs.
    """

    machine: Machine
    first: np.ndarray
    """Configuration (nx) at first."""

    @abstractmethod
    def panel(self, page: "View") -> None:
        """Add controls to the page."""

    @abstractmethod
    def moment(self) -> ShownMoment | None:
        """Return what is to be shown now."""

    def told(self) -> set[str]:
        """Return the names of the signals that its moments have; none by default."""
        return set()

    def shown_before(self) -> np.ndarray:
        """Return configurations (n, nx) that are known to come; none by default."""
        return np.zeros((0, len(self.first)))

    def beside(self, reach: float) -> np.ndarray:
        """Return points (n, 3) to be seen beside a machine of this size; none by default."""
        return np.zeros((0, 3))

    def drawn(self, page: "View", moment: ShownMoment) -> None:
        """Do what else belongs to a picture; nothing by default."""
        return

    def stop(self) -> None:
        """End what runs; by default nothing does."""
        return


class View:
    """A page that shows a machine; `url` is where.

    Parameters
    ----------
    mode : ViewMode
    host : str
        Address to listen at: by default only this computer is answered.
    port : int
        The next free one from here on.
    title : str
    """

    def __init__(
        self, mode: ViewMode, host: str = LOOPBACK, port: int = PORT, title: str = ""
    ) -> None:
        self.mode, self.machine = mode, mode.machine.numeric
        self.server = server_at(host, port)
        self.host, self.port = host, self.server.get_port()
        self.url = f"http://{LOOPBACK if host in ('0.0.0.0', '') else _in_url(host)}:{self.port}"
        self.poses_of = ShownPoses(self.machine)
        self.poses = self.poses_of(mode.first)
        gui, scene = self.server.gui, self.server.scene
        gui.configure_theme(show_logo=False, show_share_button=False, control_width="medium")
        gui.set_panel_label(title or self.machine.name or "machine")
        self.status = gui.add_html("")
        note = note_on_missing(self.machine)
        if note:
            gui.add_html(note_html(note))
        self.drawing = MachineDrawing(scene, self.machine, self.poses)
        self.marks = Marks(scene, self.machine, self.drawing.reach, end_of(self.machine))
        self.boxes: dict[str, Any] = {}
        """The boxes to tick, by the marks that they show."""
        self._set_the_stage()
        mode.panel(self)
        self._show_panel()
        self._end, self._hurry = threading.Event(), threading.Event()
        self._shown = 0
        self._draw(ShownMoment(mode.first, 0.0, {}, "", {}))
        self._thread = threading.Thread(target=self._pictures, name="framefree-view", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------ for callers

    def stop(self) -> None:
        """Close the page and end what runs behind it."""
        self._end.set()
        self._hurry.set()
        self._thread.join(timeout=5.0)
        self.mode.stop()
        with contextlib.redirect_stdout(io.StringIO()):  # it prints that it has stopped
            self.server.stop()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until Ctrl-C, or for some time (s); then close the page."""
        end = None if seconds is None else perf_counter() + seconds
        try:
            while not self._end.wait(0.2) and (end is None or perf_counter() < end):
                pass
        except KeyboardInterrupt:
            pass
        self.stop()

    def open(self) -> "View":
        """Open the page in the user's browser."""
        import webbrowser

        webbrowser.open(self.url)
        return self

    def __enter__(self) -> "View":
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def note(self, words: str) -> None:
        """Tell all viewers something."""
        for client in self.server.get_clients().values():
            client.add_notification("framefree", words, auto_close_seconds=8.0)

    # ------------------------------------------------------------------ the scene

    def _set_the_stage(self) -> None:
        low = self.poses[:, 2, 3].min(initial=0.0) if len(self.poses) else 0.0
        reach = self.drawing.reach
        # Shadows would cost a third of the picture, and put stripes on flat sides.
        self.server.scene.configure_default_lights(cast_shadow=False)
        points = self._seen()
        first = placed(points, *FIRST_PAGE)
        camera = self.server.initial_camera
        camera.fov = FOV
        camera.position, camera.look_at = first.position, first.look_at

        @self.server.on_client_connect
        def _(client: Any) -> None:
            self._look_from(client.camera, points)

        step = 10.0 ** np.round(np.log10(max(reach, 1e-6)))
        ground = 0.0 if low > -0.1 * reach else float(low - 0.1 * reach)
        self.ground = self.server.scene.add_grid(
            "/ground",
            width=10 * step,
            height=10 * step,
            cell_size=step / 10,
            section_size=step,
            infinite_grid=True,
            # Seen under the machine and beyond it, from where the camera is at first.
            fade_distance=10 * reach,
            position=(0.0, 0.0, ground),
        )

    def _look_from(self, camera: Any, points: np.ndarray) -> None:
        """Put the camera of a page where it has points (n, 3) beside its controls.

        A page that has much to load may take the camera of the server after that: then again.
        """
        place = placed(points, max(camera.image_width, 1), max(camera.image_height, 1))
        first = np.asarray(self.server.initial_camera.position)

        def put() -> None:
            camera.position = place.position
            camera.look_at = place.look_at

        @camera.on_update
        def _(now: Any) -> None:
            if np.allclose(now.position, first) and not np.allclose(place.position, first):
                put()

        put()

    def _seen(self) -> np.ndarray:
        """Return points (n, 3) around all that is to be seen at first: the machine as it moves."""
        first = self.drawing.corners(self.poses)
        moving = [self.drawing.corners(self.poses_of(x)) for x in self.mode.shown_before()]
        first = np.concatenate([first, self.mode.beside(self.drawing.reach)])
        every = np.concatenate([first, *moving])
        size = float(np.ptp(every, axis=0).max())
        return every if size < FAR * self.drawing.reach else first

    def _show_panel(self) -> None:
        gui = self.server.gui
        with gui.add_folder("Show", expand_by_default=False):
            ellipsoids = gui.add_checkbox("inertia ellipsoids", False)
            ellipsoids.on_update(lambda _: self.drawing.show_ellipsoids(ellipsoids.value))
            told = self.mode.told()
            missing = [k for k in self.marks.kinds if DRAWN_FROM.get(k, "") not in {"", *told}]
            for kind in self.marks.kinds:
                if kind not in missing:
                    self._mark_box(kind)
            if missing and told:
                gui.add_markdown(f"Not recorded: {', '.join(missing)}.")
            names = list(dict.fromkeys([self.marks.trailed, *self._frame_names()]))
            trailed = gui.add_dropdown("trail of", tuple(names), initial_value=names[0])

            @trailed.on_update
            def _(_: Any) -> None:
                self.marks.trailed = trailed.value
                self.marks.forget()

            self._scales = gui.add_markdown("")

    def _mark_box(self, kind: str) -> None:
        first = kind in ("loops", "springs and dampers", "contact forces")
        box = self.boxes[kind] = self.server.gui.add_checkbox(kind, first)
        self.marks.want(kind, first)
        box.on_update(lambda _: self.marks.want(kind, box.value))

    def _frame_names(self) -> list[str]:
        return [f.name for f in self.machine.frames] + [b.name for b in self.machine.bodies]

    # ------------------------------------------------------------------ pictures

    def _pictures(self) -> None:
        while not self._end.is_set():
            begin = perf_counter()
            try:
                moment = self.mode.moment()
                if moment is not None:
                    self._draw(moment)
                elif self._shown_again():
                    self._draw(self._latest)
            except FramefreeError as error:
                self.status.content = _words(f"{error}", {})
            except Exception as error:  # whatever one picture meets, the next one is drawn
                warnings.warn(f"a picture was not drawn: {error!r}", FramefreeWarning, stacklevel=1)
            self._end.wait(max(CLOSEST - (perf_counter() - begin), 0.0))
            self._hurry.wait(max(PERIOD - (perf_counter() - begin), 0.002))
            self._hurry.clear()

    def hurry(self) -> None:
        """Draw the next picture now: the loop has answered what somebody did."""
        self._hurry.set()

    def _shown_again(self) -> bool:
        """Whether a box was ticked since the last picture."""
        now = len(self.marks.wanted)
        return now != self._shown

    def _draw(self, moment: ShownMoment) -> None:
        self._latest, self._shown = moment, len(self.marks.wanted)
        self.poses = self.poses_of(moment.x, moment.t)
        with self.server.atomic():
            self.drawing.move(self.poses)
            self.marks.move(self.poses, moment.signals)
            self.mode.drawn(self, moment)
            self.status.content = _words(moment.words, moment.data)
        scales = "  \n".join(filter(None, map(self.marks.scale, sorted(self.marks.wanted))))
        if scales != self._scales.content:
            self._scales.content = scales
        self.server.flush()


def _words(words: str, data: dict[str, str]) -> str:
    marks = " ".join(f'data-{name}="{html.escape(value)}"' for name, value in data.items())
    return (
        f'<div class="framefree-status" {marks} style="padding:0.3em 0.8em;'
        f'font-variant-numeric:tabular-nums;white-space:pre-line">{html.escape(words)}</div>'
    )


def note_html(words: str) -> str:
    """Return a note whose long addresses break where the panel ends."""
    plain = html.escape(words.replace("**", "").replace("`", ""))
    style = "padding:0.3em 0.8em;font-size:0.85em;white-space:pre-line;overflow-wrap:anywhere"
    return f'<div class="framefree-note" style="{style}">{plain}</div>'


def _in_url(host: str) -> str:
    """Return an address as it stands in a URL: one of IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Whether only this computer is answered at an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def what_host_means(host: str) -> str:
    """Return what listening at an address means; "" for loopback."""
    if is_loopback(host):
        return ""
    return (
        f"listening at {host}: everyone who can reach this computer there sees the machine and can "
        "move it, set its numbers and save runs here. There is no password, and nothing is "
        "encrypted; leave out `--host` for this computer alone"
    )
