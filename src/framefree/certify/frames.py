"""The same machine described in other frames: its motion must stay the same.

`redescribe` moves the world, every body frame and every joint frame by a random pose. The machine
is the same; its numbers are not. Where a joint's velocities are components in the moved frame
(free, ball), states change by a constant linear map.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from framefree.certify.laws import AGREEMENT
from framefree.certify.report import Finding
from framefree.certify.subject import UNDEFINED, Subject, evaluate, relative
from framefree.geometry import quaternion, se3
from framefree.machine import WORLD, Frame, Free, Joint, Machine, Spherical
from framefree.machine.names import REFERRING
from framefree.machine.part import with_names
from framefree.machine.units import extent

_WAS = " as it was"


@dataclass(frozen=True)
class Redescription:
    """A machine in other frames.

    Attributes
    ----------
    machine : Machine
    bodies, joints : list of 4x4
        The new body frames, and the new joint frames on the child, seen from the old ones.
    """

    machine: Machine
    bodies: list[np.ndarray]
    joints: list[np.ndarray]

    def x(self, x: np.ndarray) -> np.ndarray:
        """Return configurations (n, nx) of the new machine for those of the old one."""
        moved = np.array(x)
        for joint, pose in zip(self.machine.joints, self.joints, strict=True):
            part = moved[:, self.machine.x_slice[joint.name]]
            if isinstance(joint.kind, Free):
                old = [_pose(row[3:], row[:3]) for row in part]
                part[:, :3] = [(G @ pose)[:3, 3] for G in old]
            if isinstance(joint.kind, Free | Spherical):
                turn = np.array(quaternion.from_rotation(pose[:3, :3])).ravel()
                part[:, -4:] = [np.array(quaternion.product(q, turn)).ravel() for q in part[:, -4:]]
        return moved

    def v(self, v: np.ndarray) -> np.ndarray:
        """Return velocities or accelerations (n, nv) of the new machine."""
        return v @ self._velocity_map.T

    def force(self, force: np.ndarray) -> np.ndarray:
        """Return forces (n, nv) of the new machine: the same power."""
        return force @ np.linalg.inv(self._velocity_map)

    def body_twist(self, twist: np.ndarray) -> np.ndarray:
        """Return body twists, or their rates (n, bodies, 6), in the new body frames."""
        maps = [_adjoint(np.linalg.inv(P)) for P in self.bodies]
        return np.einsum("bij,nbj->nbi", np.reshape(maps, (-1, 6, 6)), twist)

    def joint_wrench(self, wrench: np.ndarray) -> np.ndarray:
        """Return wrenches (n, bodies, 6) in the new joint frames."""
        maps = [_adjoint(P).T for P in self.joints]
        return np.einsum("bij,nbj->nbi", np.reshape(maps, (-1, 6, 6)), wrench)

    @property
    def _velocity_map(self) -> np.ndarray:
        T = np.eye(self.machine.nv)
        for joint, pose in zip(self.machine.joints, self.joints, strict=True):
            place = self.machine.v_slice[joint.name]
            if isinstance(joint.kind, Free):
                T[place, place] = _adjoint(np.linalg.inv(pose))
            elif isinstance(joint.kind, Spherical):
                T[place, place] = pose[:3, :3].T
        return T


def redescribe(machine: Machine, rng: np.random.Generator) -> Redescription:
    """Return the machine with world, body and joint frames moved at random.

    They move by up to half the length of the machine along each axis.
    """
    far = extent(machine) / 2
    world = _random_pose(rng, far)
    bodies = {body.name: _random_pose(rng, far) for body in machine.bodies}
    # Old frames seen from the new ones.
    back = {name: np.linalg.inv(P) for name, P in bodies.items()}
    back[WORLD] = world
    joints, turned = [], []
    for joint in machine.joints:
        kind, on_parent, on_child = _moved_kind(joint, rng, far)
        parent = back[joint.parent] @ joint.parent_pose @ on_parent
        child = back[joint.child] @ joint.child_pose @ on_child
        joints.append(replace(joint, kind=kind, parent_pose=parent, child_pose=child))
        turned.append(on_child)
    moved = [
        body if body.inertia is None else replace(body, inertia=body.inertia.moved(back[body.name]))
        for body in machine.bodies
    ]
    frames = [replace(f, pose=back[f.body] @ f.pose) for f in machine.frames]
    frames += [Frame(name + _WAS, name, pose) for name, pose in back.items()]
    fields: dict[str, Any] = {g: [_refer(p, back) for p in getattr(machine, g)] for g in REFERRING}
    R = world[:3, :3]
    if machine.fluid is not None:
        immersed = [_refer(part, back) for part in machine.fluid.immersed]
        fields["fluid"] = replace(
            machine.fluid, immersed=immersed, current=R @ machine.fluid.current
        )
    other = replace(
        machine,
        bodies=moved,
        joints=joints,
        frames=frames,
        gravity=R @ machine.gravity,
        keyframes=(),
        **fields,
    )
    return Redescription(other, list(bodies.values()), turned)


def invariance(subject: Subject) -> Finding:
    """Compare accelerations and joint wrenches with those of the machine in other frames."""
    name = "frame_residual"
    meaning = "world, body and joint frames moved at random leave the motion as it is"
    if subject.singular_open:
        return Finding.skipped(name, meaning, UNDEFINED)
    states, eom = subject.open_states, subject.tree
    other = redescribe(subject.open, subject.rng(3))
    there = type(eom)(other.machine)
    quantities = ("forward", "joint_wrench")
    here = (states.x, states.v, states.force)
    moved = (other.x(states.x), other.v(states.v), other.force(states.force))
    a, wrench = (evaluate(eom.functions[q], *here)[0] for q in quantities)
    a_there, wrench_there = (evaluate(there.functions[q], *moved)[0] for q in quantities)
    (motion,) = evaluate(eom.functions["body_acceleration"], states.x, states.v, a[..., 0])
    (motion_there,) = evaluate(there.functions["body_acceleration"], *moved[:2], a_there[..., 0])
    D, twist = subject.units.velocity, subject.units.twist
    gaps = {
        "joint accelerations": relative(a_there[..., 0] / D, other.v(a[..., 0]) / D),
        "body accelerations": relative(motion_there / twist, other.body_twist(motion) / twist),
        "joint wrenches": relative(wrench_there * twist, other.joint_wrench(wrench) * twist),
    }
    worst = max(gaps, key=lambda name: gaps[name])
    return Finding.measured(
        name,
        gaps[worst],
        AGREEMENT,
        meaning,
        "something depends on the frame it is written in: see the other failures, and custom parts",
        note=f"largest in {worst}",
    )


def _moved_kind(
    joint: Joint, rng: np.random.Generator, far: float
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return the kind in a moved joint frame, and the moves on the parent's and child's side."""
    kind: Any = joint.kind
    stay = np.eye(4)
    if isinstance(kind, Free | Spherical):
        # Rotor, friction and spring of such a joint act along the axes of its frame.
        own = (joint.armature, joint.damping, joint.friction, joint.stiffness)
        if np.any(own):
            return kind, stay, stay
        return kind, stay, _random_pose(rng, far if isinstance(kind, Free) else 0.0)
    axis = getattr(kind, "axis", None)
    if axis is None:
        return kind, stay, stay
    turn = _random_pose(rng, 0.0)
    return replace(kind, axis=turn[:3, :3].T @ np.asarray(axis)), turn, turn


def _refer(part: Any, known: dict[str, np.ndarray]) -> Any:
    """Let a part that sits on body frames sit where those frames were."""

    def old(name: str) -> str:
        return name + _WAS if name in known else name

    return replace(part, **{f: with_names(getattr(part, f), old) for f in part.frame_fields})


def _random_pose(rng: np.random.Generator, size: float) -> np.ndarray:
    wxyz = rng.normal(size=4)
    return _pose(wxyz / np.linalg.norm(wxyz), rng.uniform(-size, size, 3))


def _pose(wxyz: np.ndarray, position: np.ndarray) -> np.ndarray:
    return np.array(se3.pose(quaternion.to_rotation(wxyz), position))


def _adjoint(pose: np.ndarray) -> np.ndarray:
    return np.array(se3.adjoint(pose))
