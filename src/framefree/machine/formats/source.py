"""The source of a model, and the other files that it may name.

A model file is untrusted: it may name files inside its own folder and inside the package paths
that the caller gave, and no others. Symbolic links are followed before that is decided. Meshes,
which move nothing, may also lie in the package around the model: see `Source.find_mesh`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from framefree.machine.formats.descriptions import PREFIX, cached_description
from framefree.machine.formats.markup import MAX_BYTES, ReadError

Packages = Mapping[str, str | os.PathLike[str]] | Iterable[str | os.PathLike[str]]
"""Package folders by name, or folders that hold packages."""
MESHES = (".stl", ".obj", ".dae", ".glb", ".gltf", ".ply")
"""Endings of mesh files."""


@dataclass(frozen=True)
class Source:
    """The text of a model, its name for messages, and the folders it may read from."""

    name: str
    data: bytes
    folder: Path | None
    packages: Mapping[str, Path]
    search: tuple[Path, ...]

    def find(self, reference: str) -> Path | None:
        """Return the file that a reference in the model means, if it may be read and is there."""
        for candidate in self._candidates(reference):
            try:
                path = self._resolved(candidate)
                if self.allows(path) and path.is_file():
                    return path
            except (OSError, RuntimeError, ValueError):
                continue  # names that no file system has: too long, NUL, a cycle of links
        return None

    def find_mesh(self, reference: str) -> Path | None:
        """Return a mesh file; where the caller's folders do not have it, of a package around it.

        A folder above the model is such a package if it holds a `package.xml`, or has the name that
        ``package://NAME/...`` asks for. Only files that look like meshes are taken from there.
        """
        if reference not in self._meshes:
            self._meshes[reference] = self._look_for_mesh(reference)
        return self._meshes[reference]

    def _look_for_mesh(self, reference: str) -> Path | None:
        path = self.find(reference)
        if path is not None or self.folder is None:
            return path
        if Path(reference).suffix.lower() not in MESHES:
            return None
        for root, candidate in self._around(reference):
            try:
                path = self._resolved(candidate)
                if path.is_relative_to(root) and path.is_file():
                    return path
            except (OSError, RuntimeError, ValueError):
                continue
        return None

    def _around(self, reference: str) -> Iterator[tuple[Path, Path]]:
        """Give packages around the model, the nearest first, and where the file is in each."""
        folder: Path = self.folder  # type: ignore[assignment]
        name, rest = None, ""
        for scheme in ("package://", "model://"):
            if reference.startswith(scheme):
                name, _, rest = reference[len(scheme) :].partition("/")
        if name not in self._packages_around:
            self._packages_around[name] = list(_packages_above(folder, name))
        if name is None and Path(reference).is_absolute():
            return
        for root in self._packages_around[name]:
            yield root, (folder / reference if name is None else root / rest)

    @cached_property
    def _meshes(self) -> dict[str, Path | None]:
        """Meshes that were looked for; a robot shows and hits with the same files."""
        return {}

    @cached_property
    def _packages_around(self) -> dict[str | None, list[Path]]:
        """Packages around the model that were looked for, by name."""
        return {}

    @cached_property
    def _folders(self) -> dict[Path, Path]:
        """Folders that were met, without links."""
        return {}

    def _resolved(self, file: Path) -> Path:
        """Return a path without links; its folder is looked at once for all files in it."""
        if file.name in ("", ".", ".."):
            return file.resolve()
        folder = self._folders.get(file.parent)
        if folder is None:
            folder = self._folders[file.parent] = file.parent.resolve()
        path = folder / file.name
        return path.resolve() if path.is_symlink() else path

    def allows(self, path: Path) -> bool:
        """Whether a resolved path lies in the model's folder or in one of the packages."""
        roots = (*self.packages.values(), *self.search, *((self.folder,) if self.folder else ()))
        return any(path.is_relative_to(root) for root in roots)

    def _candidates(self, reference: str) -> list[Path]:
        for scheme in ("package://", "model://"):
            if reference.startswith(scheme):
                name, _, rest = reference[len(scheme) :].partition("/")
                known = [self.packages[name] / rest] if name in self.packages else []
                folders = (*self.search, *((self.folder,) if self.folder else ()))
                return [*known, *(folder / name / rest for folder in folders)]
        plain = Path(reference.removeprefix("file://"))
        if plain.is_absolute():
            return [plain]
        return [self.folder / plain] if self.folder else []


def _packages_above(folder: Path, name: str | None) -> Iterator[Path]:
    """Give packages of a name, or of any, that are above a folder or beside one above it."""
    for root in (folder, *folder.parents[:-1]):  # not the root of the file system
        if name is None:
            if (root / "package.xml").is_file():
                yield root
        elif root.name == name:
            yield root
        elif name and (root / name / "package.xml").is_file():
            yield root / name


def source_of(
    path_or_text: str | bytes | os.PathLike[str], packages: Packages | None = None
) -> Source:
    """Return the source of a model: a path, or the model itself as text that starts with `<`."""
    by_name, search = _package_folders(packages)
    if isinstance(path_or_text, str) and path_or_text.startswith(PREFIX):
        path_or_text, own = cached_description(path_or_text.removeprefix(PREFIX))
        search = (*search, *map(_resolved, own))
    if isinstance(path_or_text, str) and path_or_text.lstrip("\ufeff \t\r\n").startswith("<"):
        path_or_text = path_or_text.encode("utf-8", "surrogatepass")
    if isinstance(path_or_text, bytes):
        return Source("the text", path_or_text, None, by_name, search)
    if not isinstance(path_or_text, str | os.PathLike):
        raise ReadError(
            "`path_or_text` must be a path or the text of a model, "
            f"got {type(path_or_text).__name__}"
        )
    if not os.fspath(path_or_text):
        raise ReadError("`path_or_text` must be a path or the text of a model, got nothing")
    path = Path(path_or_text)
    return Source(path.name, bytes_of(path), _resolved(path).parent, by_name, search)


def bytes_of(path: Path) -> bytes:
    """Return what a model file holds; refuse other things than files, and oversized ones."""
    try:
        if not path.is_file():
            reason = "is not a file" if path.exists() else "does not exist"
            raise ReadError(f"`{_shown(path)}` {reason}")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise ReadError(f"`{_shown(path)}` cannot be read: {error}") from None
    if len(data) > MAX_BYTES:
        raise ReadError(f"`{_shown(path)}`: a model file has at most {MAX_BYTES // 2**20} MiB")
    return data


def _package_folders(packages: Packages | None) -> tuple[dict[str, Path], tuple[Path, ...]]:
    if packages is None:
        return {}, ()
    if isinstance(packages, str | os.PathLike):
        packages = [packages]
    if isinstance(packages, Mapping):
        return {str(name): _resolved(Path(path)) for name, path in packages.items()}, ()
    return {}, tuple(_resolved(Path(path)) for path in packages)


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise ReadError(f"`{_shown(path)}` cannot be read: {error}") from None


def _shown(path: Path) -> str:
    text = str(path)
    return text if len(text) <= 200 else f"{text[:200]}..."
