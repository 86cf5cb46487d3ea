"""The C compiler of this machine: finding it, and calling what it makes."""

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from framefree.export.block import BlockPort
from framefree.export.errors import ExportError
from framefree.export.struct_c import BlockInC

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2")


def compiler() -> list[str] | None:
    """Return the command of the C compiler: that of the variable CC, or gcc, clang or cc.

    CC may have arguments: "ccache gcc". None without a compiler.
    """
    wanted = os.environ.get("CC", "").strip()
    commands = [[wanted], wanted.split()] if wanted else [["gcc"], ["clang"], ["cc"]]
    for name, *arguments in commands:
        path = shutil.which(name)
        if path is not None:
            return [path, *arguments]
    return None


def missing_compiler() -> str:
    """Return in words which compilers are not installed."""
    named = os.environ.get("CC", "").strip()
    return f"the compiler `{named}` of CC is" if named else "gcc, clang and cc are"


def needed_compiler(why: str) -> list[str]:
    """Return the command of the C compiler; refuse where there is none."""
    found = compiler()
    if found is None:
        raise ExportError(
            f"{missing_compiler()} not installed: {why} needs a C compiler, such as Debian's gcc"
        )
    return found


def build(sources: Sequence[Path], target: Path, *flags: str, cc: str | None = None) -> Path:
    """Compile and link sources; return the path of the result."""
    command = [cc] if cc else needed_compiler("this")
    name = Path(command[0]).name
    command += [*flags, *map(str, sources), "-lm", "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or not target.exists():
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        told = next((line for line in lines if "error" in line), lines[0] if lines else "")
        code = f"exit code {done.returncode}" if done.returncode else "it wrote no file"
        raise ExportError(f"{name} failed: {told or code}")
    return target


class CompiledBlock:
    """A block in C, compiled here and called from Python; it keeps its memory.

    Parameters
    ----------
    parts : BlockInC
    flags : sequence of str
    """

    def __init__(self, parts: BlockInC, *flags: str) -> None:
        self.parts, self.block = parts, parts.block
        self._kind = np.float32 if parts.single else np.float64
        needed_compiler("a compiled controller")
        with tempfile.TemporaryDirectory() as folder:
            texts = {Path(folder, name): text for name, text in parts.files().items()}
            for path, text in texts.items():
                path.write_text(text)
            sources = [path for path in texts if path.suffix == ".c"]
            options = flags or ("-std=c99", "-O2")
            path = build(sources, Path(folder, "block.so"), *options, "-shared", "-fPIC")
            library = ctypes.CDLL(str(path))
        self._step = getattr(library, f"{self.block.name}_advance")
        sizes = {group: sum(p.size for p in ports) for group, ports in self.block.groups.items()}
        self._groups = {group: np.zeros(max(size, 1), self._kind) for group, size in sizes.items()}
        count = sum(port.size for port in self.block.memory)
        self.memory = np.zeros(max(count, 1), self._kind)
        self.out = np.zeros(max(sum(p.size for p in self.block.outputs), 1), self._kind)
        arrays = (self.memory, *self._groups.values(), self.out)
        self._pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
        self.reset()

    def reset(self) -> None:
        """Set the memory to that at the start of the run."""
        values = [self.block.start[port.name] for port in self.block.memory]
        self.memory[: sum(map(len, values))] = np.concatenate([np.zeros(0), *values])

    def step(self, **groups: Mapping[str, np.ndarray] | np.ndarray) -> np.ndarray:
        """Return the outputs of one step; inputs by group, as columns or by the names of ports."""
        for group, ports in self.block.groups.items():
            self._set(group, ports, groups.get(group, {}))
        self._step(*self._pointers)
        return self.out.astype(float)

    def _set(self, group: str, ports: Sequence[BlockPort], given: Mapping | np.ndarray) -> None:
        target, size = self._groups[group], sum(port.size for port in ports)
        if isinstance(given, np.ndarray):
            if given.shape != (size,):
                raise ExportError(f"`{group}` must have {size} numbers, got shape {given.shape}")
            target[:size] = given
            return
        at = 0
        for port in ports:
            if port.name not in given:
                known = ", ".join(given) or "none"
                raise ExportError(f"`{group}` needs `{port.name}`; given: {known}")
            value = np.atleast_1d(np.asarray(given[port.name], float)).ravel()
            if value.shape != (port.size,):
                raise ExportError(
                    f"`{port.name}` of `{group}` must have {port.size} numbers, got {value.size}"
                )
            target[at : at + port.size] = value
            at += port.size
