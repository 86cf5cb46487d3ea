"""Geoms of a machine's model file on MuJoCo as the plant: they touch as the file says.

Two geoms touch where (contype_1 & conaffinity_2) | (contype_2 & conaffinity_1), unless their bodies
are one solid, parent and child, or excluded.
"""

from typing import Any

import mujoco
import numpy as np

from framefree.machine import WORLD, Machine
from framefree.machine.collision import CollisionExclusion, CollisionShape, CollisionSolver
from framefree.machine.formats.poses import quaternion_of_rotation
from framefree.simulate.errors import SimulationError

FLAGS = ("disableflags", "enableflags")
"""Settings that are switched on beside what is on."""


class FileContacts:
    """What a machine's model file says of contact, for MuJoCo.

    Attributes
    ----------
    shapes : list of CollisionShape
    excluded : list of CollisionExclusion
    settings : dict of str to tuple of float
        Of the solver; empty where no file was read.
    reasons : list of str
        What cannot be kept of the file.
    """

    def __init__(self, machine: Machine) -> None:
        parts = machine.collisions
        self.shapes = [part for part in parts if isinstance(part, CollisionShape)]
        self.excluded = [part for part in parts if isinstance(part, CollisionExclusion)]
        solver = next((part for part in parts if isinstance(part, CollisionSolver)), None)
        self.settings = {} if solver is None else dict(solver.settings)
        self.reasons = [f"geom `{s.name}`: {s.reason}" for s in self.shapes if s.reason]
        self.reasons += [] if solver is None else list(solver.reasons)

    def add(self, spec: Any, machine: Machine) -> None:
        """Add geoms, exclusions and settings to a model that is yet to be compiled."""
        for k, shape in enumerate(self.shapes):
            frame = machine.frame(shape.frame)
            body = body_of(spec, frame.body, f"geom `{shape.name}`")
            pose = np.asarray(frame.pose) @ np.asarray(shape.pose)
            geom = body.add_geom(
                name=_name(k), pos=pose[:3, 3], quat=quaternion_of_rotation(pose[:3, :3])
            )
            geom.type = getattr(mujoco.mjtGeom, f"mjGEOM_{shape.kind.upper()}")
            if shape.kind == "mesh":
                given = {"uservert": shape.size.ravel()}
                if shape.file:
                    given = {"file": shape.file, "scale": shape.size}
                spec.add_mesh(name=f"hull {k}", **given)
                geom.meshname = f"hull {k}"
            else:
                geom.size = np.pad(shape.size, (0, 3 - len(shape.size)))
            _set(geom, shape.settings)
        for k, part in enumerate(self.excluded):
            bodies = [machine.frame(name).body for name in (part.frame_a, part.frame_b)]
            spec.add_exclude(name=f"exclude {k}", bodyname1=bodies[0], bodyname2=bodies[1])
        for name, values in self.settings.items():
            if name in FLAGS:
                values = (int(getattr(spec.option, name)) | int(values[0]),)
            _set(spec.option, ((name, values),))

    def body_pairs(self, model: Any) -> dict[str, list[tuple[int, int]]]:
        """Return the pairs of geoms that may touch, by their bodies: "world-foot"."""
        geoms = [int(model.geom(_name(k)).id) for k in range(len(self.shapes))]
        excluded = {tuple(sorted((int(s) >> 16, int(s) & 0xFFFF))) for s in model.exclude_signature}
        pairs: dict[str, list[tuple[int, int]]] = {}
        for i, a in enumerate(geoms):
            for b in geoms[i + 1 :]:
                first, second = sorted((a, b), key=lambda g: int(model.geom_bodyid[g]))
                bodies = tuple(int(model.geom_bodyid[g]) for g in (first, second))
                if bodies not in excluded and _may_touch(model, first, second, bodies):
                    name = "-".join(model.body(body).name for body in bodies)
                    pairs.setdefault(name, []).append((first, second))
        return pairs


def body_of(spec: Any, name: str, what: str) -> Any:
    """Return a body of a model that is yet to be compiled; refuse those that MJCF does not have."""
    body = spec.worldbody if name == WORLD else spec.body(name)
    if body is None:
        raise SimulationError(
            f"MuJoCo cannot have {what}: body `{name}`, which carries it, has no mass and is "
            "written as one body with the next"
        )
    return body


def _name(k: int) -> str:
    return f"file geom {k}"


def _set(element: Any, settings: Any) -> None:
    for name, values in settings:
        before = getattr(element, name)
        if np.ndim(before):
            setattr(element, name, np.array(values))
        else:
            setattr(element, name, int(values[0]) if isinstance(before, int) else values[0])


def _may_touch(model: Any, a: int, b: int, bodies: tuple[int, ...]) -> bool:
    """Whether MuJoCo looks for contact of two geoms."""
    if not (
        model.geom_contype[a] & model.geom_conaffinity[b]
        or model.geom_contype[b] & model.geom_conaffinity[a]
    ):
        return False
    solids = [int(model.body_weldid[body]) for body in bodies]
    if solids[0] == solids[1]:
        return False
    filtered = not model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_FILTERPARENT)
    if not filtered or 0 in solids:
        return True
    parents = [int(model.body_weldid[model.body_parentid[solid]]) for solid in solids]
    return solids[0] != parents[1] and solids[1] != parents[0]
