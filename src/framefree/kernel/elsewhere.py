"""Compile in another process what one processor would take long for, where another one is free.

LLVM is called by one thread at a time (llvmlite locks it), so that only a second process gains
anything. Code and bits do not depend on where a function is compiled: a module is cut between
functions, and each is compiled for itself as before.
"""

import json
import os
import re
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from framefree.kernel.llvm_code import emit
from framefree.kernel.target import Target

LARGE = 40_000
"""Lines of assembly from which on a second process is started: it takes 0.2 s to begin."""

_DEFINED = re.compile(r"^define .*?^}\n", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"@([\w.]+)\(")


def worthwhile(lines: int) -> bool:
    """Tell whether so many lines should be shared among processes."""
    if lines < LARGE:
        return False
    try:
        cores = len(os.sched_getaffinity(0))
        return cores > 1 and os.getloadavg()[0] < cores
    except (AttributeError, OSError):  # not on every system
        return False


class Compilation:
    """A module that another process compiles; a context, which ends the process."""

    def __init__(self, text: str, target: Target, routines: str = "") -> None:
        import subprocess

        facts = {"text": text, "target": asdict(target), "routines": routines}
        home = str(Path(__file__).parents[2])
        paths = os.pathsep.join([home, *filter(None, [os.environ.get("PYTHONPATH")])])
        with ExitStack() as files:
            source = files.enter_context(tempfile.TemporaryFile())
            self._result = files.enter_context(tempfile.TemporaryFile())
            source.write(json.dumps(facts).encode())
            source.seek(0)
            self._process = subprocess.Popen(
                [sys.executable, "-c", "from framefree.kernel.elsewhere import main; main()"],
                stdin=source,
                stdout=self._result,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": paths},
            )
            self._files = files.pop_all()

    def __enter__(self) -> "Compilation":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._files.close()

    def object_file(self) -> bytes | None:
        """Wait for the object file; None if the process could not make it."""
        if self._process.wait() != 0:
            return None
        self._result.seek(0)
        return self._result.read() or None


def main() -> None:
    """Compile what stands in the standard input."""
    facts = json.load(sys.stdin.buffer)
    binary = emit(facts["text"], Target(**facts["target"]), facts["routines"])
    sys.stdout.buffer.write(binary)


# ------------------------------------------------------------------ cutting a module


def halves(text: str) -> tuple[str, str] | None:
    """Cut a module into two of about equal size; None if one function is most of it.

    The second has functions alone that nobody but the first calls. What they share is declared in
    one and defined in the other; constants are in both.
    """
    functions = [match.group() for match in _DEFINED.finditer(text)]
    internal = [one for one in functions if one.startswith("define internal void @stage")]
    total, moved = sum(map(len, functions)), []
    for one in sorted(internal, key=len):
        if 2 * sum(map(len, (*moved, one))) > total:
            break
        moved.append(one)
    if 4 * sum(map(len, moved)) < total:
        return None
    taken = set(moved)
    staying = [one for one in functions if one not in taken]
    shared = _DEFINED.sub("", text)
    first = [*map(_declared, moved), *map(_visible, staying)]
    second = [*map(_declared, staying), *map(_visible, moved)]
    return (
        shared.replace("@table = internal global", "@table = global") + "".join(first),
        re.sub(
            r"^@table = internal global (.*) zeroinitializer$",
            r"@table = external global \1",
            shared,
            flags=re.MULTILINE,
        )
        + "".join(second),
    )


def _visible(function: str) -> str:
    return function.replace("define internal ", "define ", 1)


def _declared(function: str) -> str:
    """Return the declaration of a function."""
    header = function.partition("{\n")[0].replace("define internal ", "define ", 1)
    name = _NAME.search(header)
    assert name is not None
    end = header.index(")", name.end())
    arguments = re.sub(r" %[\w.]+", "", header[name.end() : end])
    return f"declare {header[len('define ') : name.start()]}@{name.group(1)}({arguments})\n"
