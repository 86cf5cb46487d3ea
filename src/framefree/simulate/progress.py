"""Showing how far a run is, and ending it when the user asks."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

ProgressReport = Callable[[float], object]
"""Called with the simulated time in s."""


@contextmanager
def reporting(
    progress: bool | ProgressReport | None, duration: float, name: str
) -> Iterator[ProgressReport]:
    """Give a function to be called with the simulated time now and then.

    `progress` is such a function itself, True for a bar on the terminal, False for nothing, or None
    for a bar if there is a terminal to see it.
    """
    if callable(progress):
        yield progress
    elif progress or (progress is None and sys.stderr.isatty()):
        with _bar(duration, name) as report:
            yield report
    else:
        yield lambda _: None


@contextmanager
def _bar(duration: float, name: str) -> Iterator[ProgressReport]:
    # Loading takes a while, and scripts without a terminal do without.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns: list[Any] = [
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.1f} of {task.total:,.6g} s"),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
    ]
    begin = monotonic()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name or "run", total=duration, speed="")

        def report(time: float) -> None:
            speed = time / max(monotonic() - begin, 1e-9)
            bar.update(
                task,
                completed=time,
                speed=f"{speed:,.3g} x real time" if speed < 100 else f"{speed:,.0f} x real time",
            )

        yield report


@contextmanager
def finishing() -> Iterator[None]:
    """Go on through Ctrl-C: for what is soon done, and lost if left half done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Give a function that says whether Ctrl-C was pressed; the second one interrupts as usual."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    pressed = threading.Event()
    usual = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: Any) -> None:
        pressed.set()
        signal.signal(signal.SIGINT, usual)

    if usual is not signal.default_int_handler:
        # Whoever has set a handler of their own wants to be asked.
        yield lambda: False
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, usual)
