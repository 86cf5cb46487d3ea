"""Building a block for a Cortex-M, running it in QEMU, and what that says."""

import re
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from framefree.export.bench_c import RecordedSteps
from framefree.export.board_c import board_files, replayed_steps
from framefree.export.compiler import build
from framefree.export.errors import ExportError
from framefree.export.struct_c import BlockInC

GCC, QEMU = "arm-none-eabi-gcc", "qemu-system-arm"
INSTALL = "apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm"
TICK = 40
"""Instructions in one tick of the system timer: 25 MHz, one instruction a nanosecond."""
SECONDS = 300.0


class Board(NamedTuple):
    """A board of QEMU.

    Attributes
    ----------
    machine : str
        What QEMU calls it.
    flags : tuple of str
        For the compiler.
    """

    machine: str
    flags: tuple[str, ...]


BOARDS = {
    "m4f": Board("mps2-an386", ("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16")),
    "m7": Board("mps2-an500", ("-mcpu=cortex-m7", "-mfpu=fpv5-d16")),
}
FLAGS = ("-mthumb", "-mfloat-abi=hard", "-std=gnu99", "-Os", "-ffp-contract=off")
FLAGS += ("-fno-math-errno", "-fno-trapping-math")  # nothing reads errno or traps; the same bits
FLAGS += ("-ffunction-sections", "-fdata-sections", "-nostartfiles")
FLAGS += ("--specs=nano.specs", "--specs=nosys.specs")


class BoardResult(NamedTuple):
    """What a block takes on a board, and what it gives.

    Attributes
    ----------
    flash, ram, stack : int
        Bytes: code and constants; static memory and stack together; stack of a step.
    instructions : float
        Of a step.
    outputs : (steps, n)
        Of the recorded steps `rows`.
    rows : array of int
    """

    flash: int
    ram: int
    stack: int
    instructions: float
    outputs: np.ndarray
    rows: np.ndarray


def missing_tools() -> list[str]:
    """Return the programs that boards need and that are not installed."""
    return [name for name in (GCC, QEMU) if shutil.which(name) is None]


def run_on_board(
    parts: BlockInC, steps: RecordedSteps, board: str = "m4f", rows: int = 50
) -> BoardResult:
    """Build a block for a board and replay recorded steps there.

    Parameters
    ----------
    parts : BlockInC
        In single or double precision.
    steps : RecordedSteps
    board : "m4f" or "m7"
        A Cortex-M4F, whose unit has single precision, or a Cortex-M7 with double precision.
    rows : int
        How many of the recorded steps, spread over the run.
    """
    absent = missing_tools()
    if absent:
        raise ExportError(f"`{absent[0]}` is not installed; on Debian: {INSTALL}")
    if board not in BOARDS:
        raise ExportError(f"`board` must be one of {', '.join(BOARDS)}, got {board!r}")
    kind = BOARDS[board]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        texts = {**parts.files(), **board_files(steps, rows, parts.single)}
        for name, text in texts.items():
            (place / name).write_text(text)
        objects = [
            build([place / name], place / f"{name}.o", *kind.flags, *FLAGS, "-c", cc=GCC)
            for name in parts.files()
            if name.endswith(".c")
        ]
        flags = (*kind.flags, *FLAGS, "-T", str(place / "board.ld"), "-Wl,--gc-sections")
        images = {
            name: build(
                [place / "startup.c", place / f"{name}.c", *objects], place / f"{name}.elf", *flags,
                cc=GCC,
            )
            for name in ("plain", "replay")
        }  # fmt: skip
        flash, static = _sizes(images["plain"])
        told = _run(kind.machine, images["replay"])
    chosen = replayed_steps(steps, rows)
    code, size = ("<f", 4) if parts.single else ("<d", 8)
    values = [
        struct.unpack(code, bytes.fromhex(bits)[::-1])[0] for bits in re.findall(r"out (\w+)", told)
    ]
    shape = len(chosen), steps.outputs.shape[1]
    if len(values) != shape[0] * shape[1] or size == 0:
        raise ExportError(f"the board told {len(values)} numbers instead of {shape[0] * shape[1]}")
    ticks, stack = (int(re.findall(rf"{key} (\w+)", told)[0], 16) for key in ("ticks", "stack"))
    outputs = np.array(values).reshape(shape)
    return BoardResult(flash, static + stack, stack, TICK * ticks / len(chosen), outputs, chosen)


def _sizes(image: Path) -> tuple[int, int]:
    """Return bytes of flash and of static memory of an image."""
    done = subprocess.run(
        ["arm-none-eabi-size", str(image)], capture_output=True, text=True, check=True
    )
    text, data, bss = map(int, done.stdout.splitlines()[1].split()[:3])
    return text + data, data + bss


def _run(machine: str, image: Path) -> str:
    """Run an image in QEMU until it ends; return what it told."""
    command = [QEMU, "-M", machine, "-nographic", "-monitor", "none", "-serial", "none"]
    command += ["-icount", "shift=0", "-semihosting-config", "enable=on,target=native"]
    try:
        done = subprocess.run(
            [*command, "-kernel", str(image)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ExportError(f"the program did not end on {machine} within {SECONDS:g} s") from None
    return done.stdout + done.stderr
