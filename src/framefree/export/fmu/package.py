"""An FMU: description, sources and, where a compiler is there, the binary, in one archive."""

import hashlib
import io
import platform
import re
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from framefree.export.block import StepBlock
from framefree.export.compiler import build, compiler
from framefree.export.errors import ExportError
from framefree.export.exporting import ExportedPart
from framefree.export.fmu.description import FmuModel, build_description, description
from framefree.export.fmu.interface_2 import functions_2
from framefree.export.fmu.interface_3 import functions_3
from framefree.export.fmu.runtime_c import runtime
from framefree.export.fmu.variables import lay_out_variables
from framefree.export.struct_c import BlockInC
from framefree.files import check_place, write_files
from framefree.simulate import Run

FLAGS = ("-std=c99", "-O2", "-fPIC", "-shared", "-fvisibility=hidden")
ENDINGS = {"linux": "so", "darwin": "dylib", "win32": "dll"}
VERSIONS = (2, 3)
DESCRIPTION = "modelDescription.xml"
STAMP = (1980, 1, 1, 0, 0, 0)
"""Time of all files of an archive, so that equal content makes equal archives."""


def export_fmu(
    run: Run,
    what: str,
    folder: str | Path,
    *,
    name: str | None = None,
    title: str | None = None,
    versions: tuple[int, ...] = (3, 2),
) -> list[Path]:
    """Write law, plant or loop of a run as FMUs; return their paths.

    Parameters
    ----------
    run : Run
        One that `simulate` has made in this process.
    what : "law", "plant" or "loop"
    folder : path
        Which will hold TITLE.fmu (FMI 3.0) and TITLE-fmi2.fmu; files that framefree has made are
        replaced, others refused.
    name : str, optional
        Of the functions in C.
    title : str, optional
        Of the model; by default the name of the machine, and `what`. In names of files, what is
        neither letter, digit, dot nor underscore becomes a dash.
    versions : tuple of int
        Of the standard.
    """
    versions = checked_versions(versions)
    check_place(Path(folder, f"{what}.fmu"))
    part = ExportedPart(run, what, name, steps=1)
    title = title or "-".join([*part.recorded.name.split(), what])
    own = "-".join(re.findall(r"[\w.-]+", title)).lstrip(".") or what
    duration = float(run.t[-1])
    contents = {}
    for version in versions:
        ending = ".fmu" if version == 3 else f"-fmi{version}.fmu"
        contents[Path(folder, own + ending)] = fmu_bytes(part.block, title, duration, version)
    return write_files(contents, guard=True)


def checked_versions(versions: Any) -> tuple[int, ...]:
    """Return the versions of the standard; refuse others than 2 and 3."""
    given = versions if isinstance(versions, tuple | list) else (versions,)
    if not given or any(one not in VERSIONS for one in given):
        raise ExportError(f"`versions` of FMI must be of {VERSIONS}, got {versions!r}")
    return tuple(int(one) for one in given)


def fmu_bytes(block: StepBlock, title: str, duration: float, version: int) -> bytes:
    """Return the archive of a block for FMI 2 or 3."""
    identifier = block.name
    layout = lay_out_variables(block)
    sources = BlockInC(block).files()
    digest = hashlib.sha256("".join([title, *sources.values()]).encode()).hexdigest()
    token = f"{{{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}}}"
    functions = functions_2() if version == 2 else functions_3()
    sources[f"fmi{version}.c"] = runtime(block, layout, identifier, token) + functions
    files = tuple(sorted(own for own in sources if own.endswith(".c")))
    model = FmuModel(title, block.about, identifier, token, block.period, duration, files)
    contents: dict[str, bytes] = {DESCRIPTION: description(model, layout, version).encode()}
    contents |= {f"sources/{own}": text.encode() for own, text in sources.items()}
    if version == 3:
        contents["sources/buildDescription.xml"] = build_description(model).encode()
    if compiler() is not None:
        contents[_binary_place(identifier, version)] = _binary(sources, identifier)
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for own, content in contents.items():
            entry = zipfile.ZipInfo(own, STAMP)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            if own == DESCRIPTION:
                # It comes first and can be read in the archive: it says who made the file.
                entry.compress_type = zipfile.ZIP_STORED
            archive.writestr(entry, content)
    return target.getvalue()


def _binary(sources: dict[str, str], identifier: str) -> bytes:
    """Compile the sources for this machine."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for own, text in sources.items():
            path = Path(folder, own)
            path.write_text(text)
            paths += [path] if path.suffix == ".c" else []
        return build(paths, Path(folder, f"{identifier}.so"), *FLAGS).read_bytes()


def _binary_place(identifier: str, version: int) -> str:
    """Return where the standard wants a binary for this machine."""
    system = sys.platform if sys.platform in ENDINGS else "linux"
    ending = ENDINGS[system]
    if version == 2:
        words = {"linux": "linux64", "darwin": "darwin64", "win32": "win64"}[system]
    else:
        machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(
            platform.machine().lower(), platform.machine().lower()
        )
        words = f"{machine}-{ {'win32': 'windows'}.get(system, system) }"
    return f"binaries/{words}/{identifier}.{ending}"
