"""viser's server as the live view needs it: threads may write to it, and nothing waits in the page.

Two habits of viser 1.1 are changed, for servers that are made here and for no others.
"""

import asyncio
import contextlib
import errno
import io
import socket
import time
from typing import Any
from weakref import WeakSet

from framefree.look.view.errors import ViewError


def server_at(host: str, port: int) -> Any:
    """Return a server that listens at an address; the next free port from `port` on."""
    try:
        import viser
    except ImportError:
        raise ViewError('the live view needs viser: pip install "framefree[view]"') from None
    _validate_address(host, port)
    with contextlib.redirect_stdout(io.StringIO()):  # it prints where it is; so do we
        try:
            server = viser.ViserServer(host=host, port=port, verbose=False)
        except OSError as error:
            raise ViewError(f"nothing can listen at {host}:{port}: {error}") from None
    _let_threads_wake(server)
    _send_at_once(server)
    # A page may ask for a public address through the servers of others: not from here.
    server.request_share_url = lambda verbose=True: None  # type: ignore[method-assign]
    return server


def _validate_address(host: str, port: int) -> None:
    """Raise `ViewError` where nothing can listen: viser would wait for its own thread for ever.

    A port that is in use is not refused: the next one is tried then.
    """
    if not 0 < port < 65536:
        raise ViewError(f"`port` must be between 1 and 65535, got {port}")
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            why = error.strerror or error
            raise ViewError(
                f"nothing can listen at `{host}`, port {port}: {why}; `--host` takes an address of "
                "this computer, 127.0.0.1 by default"
            ) from None


class ThreadSafeEvent(asyncio.Event):
    """An event that any thread may set: those waiting are woken by the loop that they wait in."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._of = loop

    def set(self) -> None:
        """Set it; from another thread, as soon as the loop comes to it."""
        with contextlib.suppress(RuntimeError):
            if asyncio.get_running_loop() is self._of:
                super().set()
                return
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._of.call_soon_threadsafe(super().set)


def _let_threads_wake(server: Any) -> None:
    """Let viser's messages be sent from other threads.

    viser 1.1 sets an `asyncio.Event` from whatever thread writes a message. That is not safe: now
    and then the thread that draws would meet "deque mutated during iteration", and end.
    """
    buffer = server._websock_server._broadcast_buffer
    buffer.message_event = ThreadSafeEvent(buffer.event_loop)


class PromptClock:
    """Stands for the module `time` where viser stamps messages: those of `prompt` loops get zero.

    A page of viser evens out messages by their stamps: after one that came late it holds the next
    ones back, up to 0.1 s, and makes up for a twentieth of that at a time. That is fine for a film;
    somebody who drags a handle waits. Messages of one stamp are shown as they come.
    """

    def __init__(self) -> None:
        self.prompt: WeakSet[asyncio.AbstractEventLoop] = WeakSet()

    def perf_counter(self) -> float:
        """Return the time of the clock, s; zero in a loop whose messages are not held back."""
        with contextlib.suppress(RuntimeError):
            if asyncio.get_running_loop() in self.prompt:
                return 0.0
        return time.perf_counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


_CLOCK = PromptClock()


def _send_at_once(server: Any) -> None:
    """Let the pages of a server show every message as it comes."""
    from viser.infra import _infra

    _CLOCK.prompt.add(server._websock_server._broadcast_buffer.event_loop)
    _infra.time = _CLOCK  # type: ignore[assignment]
