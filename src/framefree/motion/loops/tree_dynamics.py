"""Forward and inverse dynamics of long trees as native loops: `forward`, `inverse` and `bias`.

Straight-line code of these grows with the number of links, and is fetched anew for every few states
once it has outgrown the caches. The steps here are those of `framefree.motion.tree.recursion` for
one link; gravity enters as an upward acceleration of the world.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca

from framefree.geometry import se3
from framefree.kernel.loops import Block, Calls
from framefree.motion.loops.bodies import BodyMath, LinkPose
from framefree.motion.loops.passive import passive_wrenches
from framefree.motion.loops.tape import LoopTape, inwards
from framefree.motion.spatial import Inertia, Matrix, SpatialWrench, Step, Twist
from framefree.motion.tree import Tree
from framefree.motion.tree.recursion import EliminatedLink, eliminated, link_motion

DYNAMICS = ("forward", "forward:joint_force", "inverse", "bias")
"""Quantities that `dynamics_program` writes."""


class MovedLink(NamedTuple):
    """Pose of a link on its parent's, its twist, and its bias acceleration."""

    step: Any
    twist: Any
    bias: Any


class JointInputs(NamedTuple):
    """Coordinates and rates of a joint, and its force or acceleration; None stands for zero."""

    x: Any
    v: Any
    given: Any


# ------------------------------------------------------------------ steps


def move(body: BodyMath, x: Matrix, v: Matrix, above: Twist | None) -> tuple[Step, Twist, Twist]:
    """Return the fields of `MovedLink`, for the twist of the parent."""
    step = body.step(x)
    return step, *link_motion(body.link, step, body.subspace(x), body.unit(x), v, above)


def place(body: BodyMath, step: Step, above: LinkPose | None) -> LinkPose:
    """Return the pose of a link in the world, for that of its parent."""
    if above is None:
        return LinkPose(step.rotation, step.r)
    return LinkPose(above.R @ step.rotation, above.r + above.R @ step.r)


def resist(body: BodyMath, twist: Twist, passive: Matrix | None) -> Matrix:
    """Return the wrench (6) by which a link resists at constant twist: gyroscopic less passive."""
    wrench = twist.cross_wrench(body.link.inertia.times(twist)).vector
    return wrench if passive is None else wrench - passive


def eliminate(
    body: BodyMath,
    joint: JointInputs,
    moved: MovedLink,
    passive: Matrix | None,
    inertia: Matrix | None,
    carried: Matrix | None,
) -> tuple[EliminatedLink, Matrix | None, Matrix | None]:
    """Eliminate a link; return also the inertia and the wrench that its parent feels."""
    M = body.inertia if inertia is None else body.inertia.plus(Inertia.of(inertia))
    wrench = resist(body, moved.twist, passive)
    wrench = SpatialWrench.of(wrench if carried is None else wrench + carried)
    tau = joint.given - body.resistance(joint.x, joint.v)
    left, felt = eliminated(body.link, body.subspace(joint.x), tau, M, wrench)
    if body.grounded:
        return left, None, None
    passed = moved.step.wrench_out(felt.passed(moved.bias)).vector
    return left, moved.step.inertia_out(Inertia.of(felt.inertia)).matrix, passed


def accelerate(
    body: BodyMath, x: Matrix, moved: MovedLink, left: EliminatedLink, above: Twist | None
) -> tuple[Twist, Matrix]:
    """Return the acceleration of a link, and that of its joint (nv), for that of its parent."""
    carried = moved.step.twist_into(_lifted(body) if above is None else above).plus(moved.bias)
    acceleration, total = left.outward(body.link, body.subspace(x), carried)
    return total, acceleration


def need(
    body: BodyMath,
    joint: JointInputs,
    moved: MovedLink,
    passive: Matrix | None,
    above: Twist | None,
) -> tuple[Twist, Matrix]:
    """Return the acceleration of a link, and the wrench (6) that moves it so."""
    total = moved.step.twist_into(_lifted(body) if above is None else above).plus(moved.bias)
    if joint.given is not None:
        total = total.plus(Twist.of(body.subspace(joint.x) @ joint.given))
    return total, body.link.inertia.times(total).vector + resist(body, moved.twist, passive)


def collect(
    body: BodyMath, joint: JointInputs, step: Step, wrench: Matrix, carried: Matrix | None
) -> tuple[Matrix | None, Matrix]:
    """Return what a joint's wrench does to the parent (6), and the force (nv) at the joint."""
    total = wrench if carried is None else wrench + carried
    force = body.subspace(joint.x).T @ total + body.resistance(joint.x, joint.v)
    if joint.given is not None:
        force = force + body.link.armature @ joint.given
    return None if body.grounded else step.wrench_out(SpatialWrench.of(total)).vector, force


def _lifted(body: BodyMath) -> Twist:
    """Acceleration of the world that stands for gravity."""
    return Twist(-body.gravity, ca.SX(3, 1))


# ------------------------------------------------------------------ programs


def dynamics_program(model: Tree, name: str) -> Calls:
    """Return the program of one of `DYNAMICS`."""
    sweeps = _TreeSweeps(model, name)
    return sweeps.forward() if name.startswith("forward") else sweeps.inverse()


class _TreeSweeps:
    """The sweeps over links of one program."""

    def __init__(self, model: Tree, name: str) -> None:
        self.model, self.links = model, model.links
        kind, _, load = name.partition(":")
        self.tape = LoopTape(kind, model)
        machine = model.machine
        given = {"forward": load or "force", "inverse": "a", "bias": None}[kind]
        self.x, self.v = self.tape.input("x", (machine.nx,)), self.tape.input("v", (machine.nv,))
        self.given = None if given is None else self.tape.input(given, (machine.nv,))
        self.result = self.tape.output(
            {"forward": "a", "inverse": "force", "bias": "bias"}[kind], (machine.nv,)
        )
        self.moved: list[MovedLink] = []
        for i in range(len(self.links)):
            x, v, _ = self.joint(i)
            above = self.above(i, [moved.twist for moved in self.moved])
            self.moved.append(MovedLink(*self.tape.call(move, i, x, v, above)))

    def joint(self, i: int) -> JointInputs:
        """Return what the inputs say of joint i."""
        link, value = self.links[i], self.tape.value
        given = None if self.given is None else value(self.given[link.v])
        return JointInputs(value(self.x[link.x]), value(self.v[link.v]), given)

    def above(self, i: int, values: Sequence[Any]) -> Any:
        """Return the value of a link's parent, None on the ground."""
        return None if self.links[i].parent < 0 else values[self.links[i].parent]

    @cached_property
    def passive(self) -> list[Any]:
        """Wrenches (6, link axes) of springs, dampers, interactions and fluid, or None."""
        machine = self.model.machine
        if not (machine.springs or machine.dampers or machine.interactions or machine.fluid):
            return [None] * len(self.links)
        poses: list[Any] = []
        for i, moved in enumerate(self.moved):
            poses.append(self.tape.call(place, i, moved.step, self.above(i, poses)))
        states = [(pose, moved.twist) for pose, moved in zip(poses, self.moved, strict=True)]
        places = [link.to_body for link in self.links]
        return passive_wrenches(self.tape, machine, states, _pose_and_twist, places)

    def forward(self) -> Calls:
        """Return accelerations under forces at the joints."""
        left: dict[int, Any] = {}

        def visit(i: int, *carried: Any) -> Any:
            values = (self.joint(i), self.moved[i], self.passive[i], *carried)
            left[i], *passed = self.tape.call(eliminate, i, *values)
            return passed

        inwards(self.tape, visit, channels=2)
        accelerations: list[Any] = []
        for i, link in enumerate(self.links):
            values = (self.joint(i).x, self.moved[i], left[i], self.above(i, accelerations))
            total, _ = self.tape.call_into(self.result[link.v], accelerate, i, *values)
            accelerations.append(total)
        return self.tape.calls

    def inverse(self) -> Calls:
        """Return forces at the joints for accelerations, or without these at none."""
        accelerations: list[Any] = []
        wrenches: list[Any] = []
        for i in range(len(self.links)):
            values = (self.joint(i), self.moved[i], self.passive[i], self.above(i, accelerations))
            total, wrench = self.tape.call(need, i, *values)
            accelerations.append(total)
            wrenches.append(wrench)

        def visit(i: int, carried: Any) -> Any:
            own: Block = self.result[self.links[i].v]
            values = (self.joint(i), self.moved[i].step, wrenches[i], carried)
            return self.tape.call_into(own, collect, i, *values)[:1]

        inwards(self.tape, visit)
        return self.tape.calls


def _pose_and_twist(state: tuple[LinkPose, Twist]) -> tuple[Matrix, Matrix]:
    pose, twist = state
    return se3.pose(pose.R, pose.r), twist.vector
