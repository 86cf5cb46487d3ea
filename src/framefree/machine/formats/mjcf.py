"""Reading MJCF through MuJoCo's own compiler.

`mjcf_text` makes the text safe, MuJoCo compiles it, `mjcf_refuse` names what framefree does not
have, and the compiled model becomes bodies and joints (`mjcf_tree`), tendons (`mjcf_tendons`),
loops and couplings (`mjcf_equality`), actuators and keyframes (`mjcf_actuators`), and a fluid
(`mjcf_fluid`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from framefree.errors import FramefreeError
from framefree.machine.body import WORLD
from framefree.machine.formats.markup import Element, ReadError
from framefree.machine.formats.mjcf_actuators import (
    actuators,
    keyframes,
    with_motor_limits,
)
from framefree.machine.formats.mjcf_collision import collisions
from framefree.machine.formats.mjcf_engine import enabled, mujoco_messages, mujoco_module
from framefree.machine.formats.mjcf_equality import equalities
from framefree.machine.formats.mjcf_fluid import fluid_of
from framefree.machine.formats.mjcf_refuse import refuse
from framefree.machine.formats.mjcf_shapes import shapes
from framefree.machine.formats.mjcf_tendons import polynomial_laws, tendons
from framefree.machine.formats.mjcf_text import Document, document_of
from framefree.machine.formats.mjcf_tree import MjcfTree
from framefree.machine.formats.options import ReadOptions
from framefree.machine.formats.source import Source
from framefree.machine.machine import Machine
from framefree.machine.problems import Problems
from framefree.machine.spring import ConstantForce


def read_mjcf(source: Source, root: Element, options: ReadOptions) -> Machine:
    """Return the machine that a <mujoco> element describes."""
    problems = Problems()
    document = document_of(source, root, options, problems)
    model, warnings = compiled(document, problems)
    ignored = [*document.ignored, *refuse(model, document, options, problems)]
    tree = MjcfTree(model, document, options, problems)
    cables = tendons(model, tree, problems)
    loops, couplings, frames = equalities(model, tree, cables, problems)
    driven = actuators(model, tree, cables, problems)
    laws = polynomial_laws(model, tree, problems)
    around = fluid_of(model, tree, problems)
    problems.raise_if_any(ReadError)
    drawn = shapes(model, tree, document)
    keys = keyframes(model, tree, driven)
    try:
        return Machine(
            tuple(tree.bodies),
            tuple(with_motor_limits(tree.joints, driven, cables.values())),
            frames=(*tree.frames, *frames),
            loops=tuple(loops),
            couplings=tuple(couplings),
            springs=tuple(compensated_weights(model, tree)),
            tendons=(*cables.values(), *laws),
            actuators=tuple(driven),
            gravity=gravity(model),
            fluid=around,
            name=root.get("model") or "",
            geometry=drawn,
            collisions=collisions(model, tree),
            keyframes=tuple(keys),
            remarks=(*warnings, *tree.remarks),
            ignored=(*ignored, *tree.ignored, *tree.friction_notes),
        )
    except FramefreeError as error:
        raise ReadError(f"{source.name}: {error}") from error


def compiled(document: Document, problems: Problems) -> tuple[Any, list[str]]:
    """Return MuJoCo's model of a document, and its warnings.

    Where it does not compile, problems that are known are likely the cause and are raised alone.
    """
    mujoco = mujoco_module()
    with mujoco_messages() as messages:
        try:
            model = mujoco.MjModel.from_xml_string(document.text)
        except (ValueError, TypeError, RuntimeError, mujoco.FatalError, MemoryError) as error:
            problems.raise_if_any(ReadError)
            raise ReadError(document.explain(str(error))) from None
    return model, [document.explain(message) for message in messages]


def compensated_weights(model: Any, tree: MjcfTree) -> list[ConstantForce]:
    """Return the forces that carry the share `gravcomp` of a body's weight, at its center."""
    forces = []
    for i in np.flatnonzero(model.body_gravcomp * model.body_mass):
        body, pose = tree.place[i]
        force = -model.body_gravcomp[i] * model.body_mass[i] * gravity(model)
        if body == WORLD or not force.any():
            continue
        if "gravcomp" in tree.options.without:
            where = tree.document.where("body", model.body(int(i)).name, int(i))
            share = model.body_gravcomp[i]
            tree.ignored.append(f"{where}: `gravcomp` = {share:g} (left out on request)")
            continue
        point = (pose @ np.append(model.body_ipos[i], 1.0))[:3]
        name = f"gravcomp_{model.body(int(i)).name or i}"
        forces.append(ConstantForce(name, WORLD, body, force, point))
    return forces


def gravity(model: Any) -> np.ndarray:
    """Return the acceleration of free fall (3); zero where the model switches gravity off."""
    return np.array(model.opt.gravity) if enabled(model, "GRAVITY") else np.zeros(3)
