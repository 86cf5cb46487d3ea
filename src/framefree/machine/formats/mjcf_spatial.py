"""Paths of spatial tendons of a compiled MuJoCo model."""

from __future__ import annotations

from typing import Any

import numpy as np

from framefree.machine.formats.mjcf_engine import value
from framefree.machine.formats.mjcf_tree import MjcfTree
from framefree.machine.formats.poses import inverse, pose_of_quaternion
from framefree.machine.problems import MachineError
from framefree.machine.spatial_tendon import Pulley, Wrap


def is_spatial(model: Any, i: int) -> bool:
    """Whether a tendon runs through space, and not over joints."""
    first = int(model.tendon_adr[i])
    return int(model.wrap_type[first]) != value("mjtWrap", "mjWRAP_JOINT")


def path_of(model: Any, tree: MjcfTree, i: int) -> tuple[Any, ...]:
    """Return the frames, obstacles and pulleys along a spatial tendon."""
    first, count = int(model.tendon_adr[i]), int(model.tendon_num[i])
    return tuple(_step(model, tree, w) for w in range(first, first + count))


def _step(model: Any, tree: MjcfTree, w: int) -> Any:
    kind, number = int(model.wrap_type[w]), int(model.wrap_objid[w])
    if kind == value("mjtWrap", "mjWRAP_SITE"):
        return tree.site_names[number]
    if kind == value("mjtWrap", "mjWRAP_PULLEY"):
        return Pulley(float(model.wrap_prm[w]))
    shape = "sphere" if kind == value("mjtWrap", "mjWRAP_SPHERE") else "cylinder"
    body = int(model.geom_bodyid[number])
    pose = pose_of_quaternion(model.geom_pos[number], model.geom_quat[number])
    name = model.geom(number).name or f"{tree.body_names[body]}_wrap{number}"
    frame = tree.frame_on(body, pose, name)
    side = _side(model, tree, round(float(model.wrap_prm[w])), body, pose)
    return Wrap(frame, float(model.geom_size[number, 0]), shape, side)


def _side(model: Any, tree: MjcfTree, site: int, body: int, pose: np.ndarray) -> Any:
    """Return the side site's position in the axes of the geom, which must carry it."""
    if site < 0:
        return None
    carrier, offset = tree.place[body]
    other, place = tree.place[int(model.site_bodyid[site])]
    if other != carrier:
        raise MachineError(
            f"the side site `{model.site(site).name}` is on another body than the geom that the "
            "tendon wraps; only one that moves with the geom is supported"
        )
    return (inverse(offset @ pose) @ place @ [*model.site_pos[site], 1.0])[:3]
