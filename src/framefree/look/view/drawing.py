"""A machine in the page: solids and meshes once, then only where its bodies are.

Solids of equal form are drawn together, so that a thousand bodies move by a few messages.
"""

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.look.report import mesh, style
from framefree.look.report.mesh import Solid
from framefree.look.report.scene import as_position_and_wxyz, size_of
from framefree.look.view.meshes import MeshOnBody, is_missing, meshes_of
from framefree.machine import Machine
from framefree.motion import equations

ELLIPSOID = (0.55, 0.35, 0.65, 0.35)
MANY = 100
"""Bodies up to which the poses of a machine are compiled as a whole."""


class ShownPoses:
    """Poses of all bodies at configurations of a machine.

    Those of a small machine are compiled as a whole. Of one with very many bodies that would take
    minutes: there each kind of joint is evaluated once for all joints that have it, and the poses
    are multiplied along the tree.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine.tree
        self.eom = None if len(machine.bodies) > MANY else equations(self.machine)
        self._timed = self.eom is not None and self.eom.takes_time("body_pose")
        self._kinds = [] if self.eom is not None else _by_kind(self.machine)

    def __call__(self, x: np.ndarray, t: float = 0.0) -> np.ndarray:
        """Return poses (bodies, 4, 4) at one configuration."""
        if self.eom is not None:
            rows = np.ascontiguousarray(np.atleast_2d(x))
            return self.eom.body_pose(*([rows, np.full((1, 1), t)] if self._timed else [rows]))[0]
        machine, across = self.machine, np.empty((len(self.machine.bodies), 4, 4))
        for function, joints, places, before, after in self._kinds:
            moved = np.array(function(x[places].T)).reshape(4, -1, 4).transpose(1, 0, 2)
            across[joints] = before @ moved @ after
        poses = np.empty_like(across)
        for i, parent in enumerate(machine.parent):
            poses[i] = across[i] if parent < 0 else poses[parent] @ across[i]
        return poses


def _by_kind(machine: Machine) -> list[tuple[Any, ...]]:
    """Return a function for each kind of joint, with the joints, coordinates and poses it serves.

    The function takes coordinates (nx, joints) to poses (4, 4 joints), side by side.
    """
    groups: dict[str, list[int]] = {}
    for i, joint in enumerate(machine.joints):
        groups.setdefault(repr(joint.kind), []).append(i)
    kinds = []
    for members in groups.values():
        joints = [machine.joints[i] for i in members]
        q = ca.SX.sym("q", joints[0].nx)
        pose = ca.Function("pose", [q], [ca.densify(ca.SX(joints[0].kind.pose(q)))])
        slices = [machine.x_slice[joint.name] for joint in joints]
        places = np.array([range(part.start, part.stop) for part in slices], int)
        before = np.array([np.asarray(joint.parent_pose, float) for joint in joints])
        after = np.linalg.inv([np.asarray(joint.child_pose, float) for joint in joints])
        places = places.reshape(len(joints), -1)
        kinds.append((pose.map(len(joints)), np.array(members), places, before, after))
    return kinds


@dataclass(frozen=True)
class _Copies:
    """Copies of one form: a node of the page, and the body of each copy."""

    node: Any
    bodies: np.ndarray


class MachineDrawing:
    """Shows a machine in a scene of viser, and moves it.

    Parameters
    ----------
    scene : viser.SceneApi
    machine : Machine
        In numbers.
    poses : (bodies, 4, 4)
        At first.
    """

    def __init__(self, scene: Any, machine: Machine, poses: np.ndarray) -> None:
        self.scene, self.machine = scene, machine
        self.reach = size_of(machine, poses)
        self._places = _with_world(poses)
        self.meshes, _ = meshes_of(machine)
        if not self.meshes and not _has_shapes(machine, "visual"):
            self.meshes, _ = meshes_of(machine, "collision")
        meshed = {one.body for one in self.meshes}
        solids = [
            s for s in style.solids_of(_drawable(machine), self.reach) if s.body not in meshed
        ]
        self.solids = self._add_groups("/solids", solids)
        self._mesh_nodes: list[tuple[Any, int]] = []
        self._frames = self._add_meshes()
        self.ellipsoids: list[_Copies] = []
        self._boxes = [(solid.body, _box(solid.points)) for solid in solids]
        self._boxes += [(one.body, _box(_placed_points(one))) for one in self.meshes]

    # ------------------------------------------------------------------ making

    def _add_groups(self, name: str, solids: list[Solid]) -> list[_Copies]:
        forms: dict[tuple, list[Solid]] = {}
        for solid in solids:
            for part in _by_color(solid):
                key = (part.points.tobytes(), part.triangles.tobytes(), round(part.opacity, 2))
                forms.setdefault(key, []).append(part)
        return [self._add_group(f"{name}/{k}", same) for k, same in enumerate(forms.values())]

    def _add_group(self, name: str, same: list[Solid]) -> _Copies:
        bodies, first = np.array([solid.body for solid in same]), same[0]
        at = self._places[bodies]
        node = self.scene.add_batched_meshes_simple(
            name,
            first.points,
            first.triangles,
            batched_wxyzs=at[:, 3:],
            batched_positions=at[:, :3],
            batched_colors=np.round(255 * np.array([s.colors[0] for s in same])).astype(np.uint8),
            opacity=None if first.opacity > 0.98 else first.opacity,
            flat_shading=True,
            side="double",
            lod="off",
        )
        return _Copies(node, bodies)

    def _add_meshes(self) -> dict[int, Any]:
        frames: dict[int, Any] = {}
        for k, one in enumerate(self.meshes):
            if one.body not in frames:
                place = self._places[one.body]
                frames[one.body] = self.scene.add_frame(
                    f"/bodies/{one.body}", show_axes=False, position=place[:3], wxyz=place[3:]
                )
            at = as_position_and_wxyz(one.pose)
            node = self.scene.add_mesh_trimesh(
                f"/bodies/{one.body}/mesh{k}",
                one.mesh,
                scale=one.scale,
                position=at[:3],
                wxyz=at[3:],
            )
            self._mesh_nodes.append((node, one.body))
        return frames

    def show_ellipsoids(self, wanted: bool) -> None:
        """Show or hide the uniform ellipsoids with mass and inertia of the bodies."""
        if wanted and not self.ellipsoids:
            solids = [
                mesh.inertia_ellipsoid(i, body.moments, ELLIPSOID)
                for i, body in enumerate(self.machine.bodies)
                if not body.massless
            ]
            self.ellipsoids = self._add_groups("/ellipsoids", solids)
        for group in self.ellipsoids:
            group.node.visible = wanted

    def corners(self, poses: np.ndarray) -> np.ndarray:
        """Return the corners (n, 3) of boxes around all that is drawn, at poses (bodies, 4, 4)."""
        world = np.concatenate([poses, np.eye(4)[None]])
        points = [(world[body] @ (*p, 1.0))[:3] for body, box in self._boxes for p in box]
        points += [G[:3, 3] for G in poses]
        return np.array(points) if points else np.array([[-1.0] * 3, [1.0] * 3])

    # ------------------------------------------------------------------ moving

    @property
    def grips(self) -> list[tuple[Any, np.ndarray]]:
        """Nodes that can be grabbed, and the bodies of their copies."""
        solids = [(group.node, group.bodies) for group in self.solids]
        return solids + [(node, np.array([body])) for node, body in self._mesh_nodes]

    def move(self, poses: np.ndarray) -> None:
        """Put all bodies where they are (bodies, 4, 4)."""
        self._places = _with_world(poses)
        for group in (*self.solids, *self.ellipsoids):
            if (group.bodies < 0).all():
                continue
            at = self._places[group.bodies].astype(np.float32)
            group.node.batched_positions = at[:, :3]
            group.node.batched_wxyzs = at[:, 3:]
        for body, frame in self._frames.items():
            if body >= 0:
                frame.position, frame.wxyz = self._places[body, :3], self._places[body, 3:]


def _with_world(poses: np.ndarray) -> np.ndarray:
    """Return positions and quaternions (bodies + 1, 7), the world's last."""
    return as_position_and_wxyz(np.concatenate([poses, np.eye(4)[None]]))


def _box(points: np.ndarray) -> np.ndarray:
    """Return the corners (8, 3) of the box around points (n, 3)."""
    ends = np.stack([points.min(axis=0), points.max(axis=0)])
    return np.array([[ends[i, 0], ends[j, 1], ends[k, 2]] for i, j, k in np.ndindex(2, 2, 2)])


def _placed_points(one: MeshOnBody) -> np.ndarray:
    """Return the corners (8, 3) of the box around a mesh, in its body's frame."""
    local = _box(np.asarray(one.mesh.bounds, float) * np.asarray(one.scale))
    return local @ one.pose[:3, :3].T + one.pose[:3, 3]


def _has_shapes(machine: Machine, role: str) -> bool:
    return any(
        shape.role == role and shape.kind != "plane" and not is_missing(shape)
        for shape in machine.geometry
    )


def _drawable(machine: Machine) -> Machine:
    """Return the machine without meshes: those are drawn as they are, not by their hulls."""
    return machine.replace(geometry=tuple(s for s in machine.geometry if s.kind != "mesh"))


def _by_color(solid: Solid) -> list[Solid]:
    """Return the parts of a solid that have one colour each."""
    palette, index = np.unique(solid.colors, axis=0, return_inverse=True)
    if len(palette) == 1:
        return [solid]
    index = index.reshape(-1)
    return [
        Solid(
            solid.body,
            solid.points,
            solid.triangles[index == k],
            solid.colors[index == k],
            solid.opacity,
        )
        for k in range(len(palette))
    ]
