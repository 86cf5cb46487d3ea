"""Reading MJCF through MuJoCo's own compiler.

`mjcf_text` makes the text safe, MuJoCo compiles it, `mjcf_refuse` names what framefree does not
have, and the compiled model becomes bodies and joints (`mjcf_tree`), loops and couplings
(`mjcf_equality`), actuators and keyframes (`mjcf_actuators`), and a fluid (`mjcf_fluid`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from framefree.errors import FramefreeError
from framefree.machine.formats.markup import Element, ReadError
from framefree.machine.formats.mjcf_actuators import actuators, keyframes
from framefree.machine.formats.mjcf_engine import enabled, mujoco_module
from framefree.machine.formats.mjcf_equality import equalities
from framefree.machine.formats.mjcf_fluid import fluid_of
from framefree.machine.formats.mjcf_refuse import refuse
from framefree.machine.formats.mjcf_shapes import shapes
from framefree.machine.formats.mjcf_text import Document, document_of
from framefree.machine.formats.mjcf_tree import MjcfTree
from framefree.machine.formats.options import ReadOptions
from framefree.machine.formats.source import Source
from framefree.machine.machine import Machine
from framefree.machine.problems import Problems


def read_mjcf(source: Source, root: Element, options: ReadOptions) -> Machine:
    """Return the machine that a <mujoco> element describes."""
    document = document_of(source, root, options)
    model, warnings = compiled(document)
    problems = Problems()
    ignored = [*document.ignored, *refuse(model, document, options, problems)]
    problems.raise_if_any(ReadError)
    tree = MjcfTree(model, document, options, problems)
    loops, couplings, frames = equalities(model, tree, problems)
    driven = actuators(model, tree, problems)
    around = fluid_of(model, tree, problems)
    drawn = shapes(model, tree, document)
    keys = keyframes(model, tree, driven)
    problems.raise_if_any(ReadError)
    try:
        return Machine(
            tuple(tree.bodies),
            tuple(tree.joints),
            frames=(*tree.frames, *frames),
            loops=tuple(loops),
            couplings=tuple(couplings),
            actuators=tuple(driven),
            gravity=gravity(model),
            fluid=around,
            name=root.get("model") or "",
            geometry=drawn,
            keyframes=tuple(keys),
            remarks=(*warnings, *tree.remarks),
            ignored=(*ignored, *tree.ignored),
        )
    except FramefreeError as error:
        raise ReadError(f"{source.name}: {error}") from error


def compiled(document: Document) -> tuple[Any, list[str]]:
    """Return MuJoCo's model of a document, and its warnings.

    Left alone, MuJoCo writes its warnings to a file in the current folder.
    """
    mujoco = mujoco_module()
    warnings: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(warnings.append)
    try:
        model = mujoco.MjModel.from_xml_string(document.text)
    except (ValueError, TypeError, RuntimeError, mujoco.FatalError, MemoryError) as error:
        raise ReadError(document.explain(str(error))) from None
    finally:
        mujoco.set_mju_user_warning(before)
    return model, [document.explain(warning) for warning in warnings]


def gravity(model: Any) -> np.ndarray:
    """Return the acceleration of free fall (3); zero where the model switches gravity off."""
    return np.array(model.opt.gravity) if enabled(model, "GRAVITY") else np.zeros(3)
