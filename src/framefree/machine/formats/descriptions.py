"""Robots of the package `robot_descriptions`, from its cache; nothing is fetched.

The package's modules clone a repository when they are imported. So none is imported here: the
module's source is read for the names of the repository and of the file, and the file is looked for
in the cache.
"""

from __future__ import annotations

import ast
import importlib.util
import os
from pathlib import Path

from framefree.errors import near
from framefree.machine.formats.markup import ReadError

PREFIX = "robot_descriptions:"
_PATHS = ("URDF_PATH", "MJCF_PATH", "SDF_PATH")


def cached_description(name: str) -> tuple[Path, list[Path]]:
    """Return the file of a robot, and the folders of its repository that hold packages.

    Raises
    ------
    ReadError
        If the package is not installed, has no such robot, or does not have it in its cache.
    """
    folder = _package_folder()
    module = _module(folder, name)
    values = _constants(module)
    repository = values.get("REPOSITORY_PATH")
    file = next((values[path] for path in _PATHS if path in values), None)
    if repository is None or file is None:
        if values.get("XACRO_PATH"):
            raise ReadError(f"`{PREFIX}{name}` is a xacro file; expand it with the xacro tool")
        raise ReadError(f"`{PREFIX}{name}` has no URDF, MJCF or SDFormat file")
    if not Path(file).is_file():
        raise ReadError(
            f"`{PREFIX}{name}` is not in the cache ({repository}); nothing is fetched here: "
            f"run `python -m robot_descriptions pull {module.stem}` first"
        )
    places = [Path(repository), Path(repository).parent]
    if "PACKAGE_PATH" in values:
        places.append(Path(values["PACKAGE_PATH"]).parent)
    return Path(file), places


def _package_folder() -> Path:
    spec = importlib.util.find_spec("robot_descriptions")
    if spec is None or not spec.submodule_search_locations:
        raise ReadError(
            f"`{PREFIX}...` needs the package robot_descriptions, which is not installed"
        )
    return Path(next(iter(spec.submodule_search_locations)))


def _module(folder: Path, name: str) -> Path:
    """Return the source of a robot; "panda" stands for panda_description, or the MJCF one."""
    known = {path.stem for path in folder.glob("*_description.py")}
    for stem in (name, f"{name}_description", f"{name}_mj_description"):
        if stem in known:
            return folder / f"{stem}.py"
    hint = near(name, [stem.removesuffix("_description") for stem in known]).strip()
    end = f"; {hint}" if hint else ""
    raise ReadError(f"the package robot_descriptions has no robot `{name[:100]}`{end}")


def _constants(module: Path) -> dict[str, str]:
    """Return the paths that a module assigns, as far as they are joined of known parts."""
    values: dict[str, str] = {}
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        target = node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
        if isinstance(target, ast.Name) and isinstance(node, ast.Assign | ast.AnnAssign):
            value = None if node.value is None else _value(node.value, values, module.parent)
            if value is not None:
                values[target.id] = value
    return values


def _value(node: ast.expr, values: dict[str, str], folder: Path) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name):
        return values.get(node.id)
    if not isinstance(node, ast.Call):
        return None
    function = ast.unparse(node.func).rpartition(".")[2].lstrip("_")
    parts = [_value(argument, values, folder) for argument in node.args]
    if function in ("join", "Path") and all(part is not None for part in parts):
        return os.path.join(*(part or "" for part in parts))
    if function == "clone_to_cache" and parts and parts[0] is not None:
        return _cached_repository(parts[0], folder)
    return None


def _cached_repository(name: str, folder: Path) -> str | None:
    """Return where the package keeps a repository."""
    given = os.environ.get("ROBOT_DESCRIPTIONS_CACHE", "~/.cache/robot_descriptions")
    cache = Path(given).expanduser()
    table = _cache_names(folder)
    return str(cache / table.get(name, name))


def _cache_names(folder: Path) -> dict[str, str]:
    """Return the folder in the cache of each repository, from the package's own table."""
    source = folder / "_repositories.py"
    if not source.is_file():
        return {}
    names: dict[str, str] = {}
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Dict):
            continue
        for key, entry in zip(node.keys, node.values, strict=True):
            if not (isinstance(key, ast.Constant) and isinstance(entry, ast.Call)):
                continue
            for keyword in entry.keywords:
                if keyword.arg == "cache_path" and isinstance(keyword.value, ast.Constant):
                    names[str(key.value)] = str(keyword.value.value)
    return names
