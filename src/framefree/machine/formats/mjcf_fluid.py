"""The fluid of a compiled MuJoCo model, and what of its bodies is in it.

MuJoCo gives every body the drag of a box with the body's inertia. Bodies with a geom of the fluid
shape `ellipsoid` have drag and lift of their ellipsoids instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from framefree.machine.body import WORLD
from framefree.machine.fluid import Fluid
from framefree.machine.formats.mjcf_engine import enabled, value
from framefree.machine.formats.mjcf_tree import MjcfTree
from framefree.machine.formats.poses import pose_of_quaternion
from framefree.machine.immersed import ImmersedBox, ImmersedEllipsoid, InFluid
from framefree.machine.problems import Problems

SMALLEST = 1e-15
"""MuJoCo gives no drag to less mass (kg), and boxes no less inertia (kg m^2)."""

_COEFFICIENTS = ("blunt_drag", "slender_drag", "angular_drag", "kutta_lift", "magnus_lift")


def fluid_of(model: Any, tree: MjcfTree, problems: Problems) -> Fluid | None:
    """Return the fluid, None if there is none; frames of boxes and ellipsoids go to the tree."""
    density, viscosity = (max(0.0, float(getattr(model.opt, n))) for n in ("density", "viscosity"))
    still = not (enabled(model, "SPRING") or enabled(model, "DAMPER"))
    if density == viscosity == 0.0 or still:
        return None
    if "fluid" in tree.options.without:
        where = tree.document.where_set("option", "density" if density else "viscosity")
        tree.ignored.append(
            f"{where}: a fluid, `density` {density:g} and `viscosity` {viscosity:g} "
            "(left out on request)"
        )
        return None
    immersed: list[InFluid] = []
    for i in range(1, model.nbody):
        if model.body_mass[i] < SMALLEST or tree.place[i][0] == WORLD:
            continue
        with problems.at(tree.document.where("body", model.body(i).name, i)):
            immersed += _ellipsoids(model, tree, i) or [_box(model, tree, i)]
    return Fluid(tuple(immersed), density, np.array(model.opt.wind), viscosity)


def _box(model: Any, tree: MjcfTree, i: int) -> ImmersedBox:
    inertia = model.body_inertia[i]
    squares = np.maximum(SMALLEST, inertia.sum() - 2 * inertia) / model.body_mass[i] * 6
    pose = pose_of_quaternion(model.body_ipos[i], model.body_iquat[i])
    frame = tree.frame_on(i, pose, f"{tree.body_names[i]}_fluid")
    return ImmersedBox(frame, np.sqrt(squares))


def _ellipsoids(model: Any, tree: MjcfTree, i: int) -> list[ImmersedEllipsoid]:
    first = int(model.body_geomadr[i])
    geoms = range(first, first + int(model.body_geomnum[i]))
    return [_ellipsoid(model, tree, i, geom) for geom in geoms if model.geom_fluid[geom, 0] > 0]


def _ellipsoid(model: Any, tree: MjcfTree, i: int, geom: int) -> ImmersedEllipsoid:
    kind, size = int(model.geom_type[geom]), np.array(model.geom_size[geom])
    if kind == value("mjtGeom", "mjGEOM_SPHERE"):
        size = np.full(3, size[0])
    elif kind == value("mjtGeom", "mjGEOM_CAPSULE"):
        size = np.array([size[0], size[0], size[0] + size[1]])
    elif kind == value("mjtGeom", "mjGEOM_CYLINDER"):
        size = np.array([size[0], size[0], size[1]])
    pose = pose_of_quaternion(model.geom_pos[geom], model.geom_quat[geom])
    numbers = np.array(model.geom_fluid[geom])
    name = model.geom(geom).name or f"{tree.body_names[i]}_fluid{geom}"
    frame = tree.frame_on(i, pose, name)
    drag_and_lift = dict(zip(_COEFFICIENTS, map(float, numbers[1:6]), strict=True))
    return ImmersedEllipsoid(
        frame, size, **drag_and_lift, added_volume=numbers[6:9], added_moment=numbers[9:12]
    )
