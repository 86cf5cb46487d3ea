"""Models on disk: a JSON text for what is plain and an NPZ file for arrays, nothing that is code.

`save` writes one file NAME.npz, complete or not at all. Beside the arrays it has one entry,
`model`, with the JSON text; arrays stand in it as {"array": "name"}. Nothing is pickled, nothing
that is read can run.
"""

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from framefree.files import write_file
from framefree.learn.actuators import ActuatorMap
from framefree.learn.contact import LearnedContact
from framefree.learn.errors import LearnError
from framefree.learn.joint_friction import JointFriction
from framefree.learn.learned import LearnedModel
from framefree.learn.plain import WorldNetwork
from framefree.learn.trust import GuardedModel

FORMAT = 1


class Stored(Protocol):
    """What can be saved: models of wrenches, friction, contacts, actuators."""

    def parts(self) -> dict[str, Any]:
        """Return arrays and plain values that make it again, with its `kind`."""
        ...


KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        LearnedModel,
        GuardedModel,
        WorldNetwork,
        JointFriction,
        LearnedContact,
        ActuatorMap,
    )
}


def save(model: Stored, path: str | os.PathLike) -> Path:
    """Write a model to a file NAME.npz; return its path."""
    target = Path(path)
    if target.suffix != ".npz":
        raise LearnError(f"a model is saved in a file NAME.npz, got `{target.name}`")
    arrays: dict[str, np.ndarray] = {}
    plain = _without_arrays(model.parts(), "", arrays)
    text = json.dumps({"format": FORMAT, "parts": plain}, allow_nan=False)
    buffer = io.BytesIO()
    np.savez(buffer, model=np.array(text), **arrays)  # type: ignore[arg-type]
    return write_file(target, buffer.getvalue())


def load(path: str | os.PathLike) -> Any:
    """Read a model that `save` wrote."""
    target = Path(path)
    if not target.is_file():
        raise LearnError(f"there is no file `{target}`")
    try:
        with np.load(target, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        content = json.loads(str(arrays.pop("model")))
        if content["format"] != FORMAT:
            raise LearnError(
                f"`{target.name}` has format {content['format']}, this version reads {FORMAT}"
            )
        parts = _with_arrays(content["parts"], arrays)
        kind = KINDS[parts["kind"]]
        return kind.of_parts(parts)
    except (KeyError, TypeError, ValueError, OSError, zipfile.BadZipFile, EOFError) as error:
        raise LearnError(f"`{target.name}` is not a model: {error}") from None


def _without_arrays(value: Any, at: str, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(value, np.ndarray):
        name = at.strip(".").replace(".", "_") or "value"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, dict):
        return {key: _without_arrays(item, f"{at}.{key}", arrays) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_arrays(item, f"{at}.{i}", arrays) for i, item in enumerate(value)]
    if isinstance(value, np.generic):
        return value.item()
    return value


def _with_arrays(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(value, dict):
        if set(value) == {"array"}:
            return np.asarray(arrays[value["array"]], float)
        return {key: _with_arrays(item, arrays) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_arrays(item, arrays) for item in value]
    return value
