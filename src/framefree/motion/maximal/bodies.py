"""The maximal formulation body by body: small functions that a native loop runs over all bodies.

Bodies whose joints are alike form a class, and share one set of functions, in which numbers that
differ from body to body are inputs. For body i with parent p:

    body      pose, twist, wrench                        -> frame and twist of the link, load
    factor    frames of p and i, inertia of the children -> joint, inertia shown to p
    motion    joint, twists of p and i, motor force      -> bias, joint force
    inward    joint, load, joint force, bias             -> given, load shown to p
    outward   joint, given, bias, acceleration of p      -> acceleration of link and body
    wrench    joint, acceleration, load                  -> joint wrench, wrench on p
    motor     joint, wrench, bias, accelerations         -> motor force
    momentum  joint, twists                              -> momentum of link and rotors

The formulas are those of `maximal_joints` and `maximal_graph`, traced for one body.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.geometry import quaternion, se3
from framefree.machine import Joint, Machine
from framefree.machine.part import plain
from framefree.machine.values import constant
from framefree.motion import forces
from framefree.motion.maximal.graph import Factor, Given
from framefree.motion.maximal.joints import (
    coordinates,
    directions,
    joint_bias,
    joint_pose,
    joint_step,
    kept_coordinates,
)
from framefree.motion.maximal.kinematics import MaximalModel, step_of
from framefree.motion.maximal.packing import Lift, Pack
from framefree.motion.spatial import Inertia, Matrix, Step, Twist, Wrench
from framefree.motion.tree.links import Link

LOWER = [(i, j) for i in range(6) for j in range(i + 1)]
"""Entries of a symmetric 6x6 matrix that are stored: the lower half, row by row."""


def class_key(machine: Machine, links: Sequence[Link], i: int) -> tuple:
    """Return what bodies of one class have in common."""
    link, joint = links[i], machine.joints[i]
    kind = type(link.kind).__name__ if link.turned_to_z else plain(link.kind)
    turned = tuple(np.asarray(joint.armature) > 0)
    passive = (joint.has_spring, joint.has_friction, bool(np.any(joint.damping)))
    return (kind, link.parent < 0, turned, passive, tuple(link.to_joint.ravel()))


class _Traced(NamedTuple):
    """A function's inputs, and its results: two packed, one plain."""

    inputs: list[Matrix]
    lasting: Pack
    passing: Pack
    shown: Matrix


@dataclass(frozen=True)
class BodyClass:
    """Bodies with alike joints, and the functions of one of them."""

    model: MaximalModel
    members: tuple[int, ...]

    @cached_property
    def _lifted(self) -> tuple[Link, Joint, Matrix, Lift]:
        """A link and joint that stand for all members, and the inertia with added mass."""
        model, lift = self.model, Lift()
        links = [model.links[i] for i in self.members]
        joints = [model.machine.joints[i] for i in self.members]
        nx, nv = links[0].kind.nx, links[0].kind.nv
        of = lift.matrix

        def of_joints(name: str) -> Matrix:
            return of([ca.DM(getattr(joint, name)) for joint in joints])

        link = replace(
            links[0],
            x=slice(0, nx),
            v=slice(0, nv),
            start=of([one.start for one in links]),
            to_body=of([one.to_body for one in links]),
            inertia=Inertia.of(of([one.inertia.matrix for one in links])),
            armature=of([one.armature for one in links]),
        )
        names = ["damping"] if np.any(joints[0].damping) else []
        names += ["friction", "friction_width"] if joints[0].has_friction else []
        names += ["stiffness", "rest"] if joints[0].has_spring else []
        joint = replace(joints[0], **{name: of_joints(name) for name in names})
        total = of([model.tree.inertias[i].matrix for i in self.members])
        return link, joint, total, lift

    @property
    def link(self) -> Link:
        """The link that stands for all members."""
        return self._lifted[0]

    @property
    def grounded(self) -> bool:
        """Whether the members hang on the world."""
        return self.link.parent < 0

    @property
    def aligned(self) -> bool:
        """Whether link and body frames coincide."""
        return bool((self.link.to_body - ca.SX.eye(4)).is_zero())

    def numbers(self, body: int) -> tuple[float, ...]:
        """Return the numbers of one member that its class leaves open."""
        return self._lifted[3].numbers(self._places[body])

    @cached_property
    def _places(self) -> dict[int, int]:
        return {body: place for place, body in enumerate(self.members)}

    # ------------------------------------------------------------------ functions

    @cached_property
    def body(self) -> ca.Function:
        """Find frame (12), twist (6) and load (6) of the link from pose, twist and two wrenches."""
        pose, xi, wrench, extra = _symbols(pose=7, xi=6, wrench=6, extra=6)
        G = se3.pose(quaternion.to_rotation(pose[3:]), pose[:3])
        L = se3.compose(G, se3.inverse(self.link.to_body))
        twist = step_of(se3.inverse(self.link.to_body)).twist_into(Twist.of(xi))
        inertia = self.link.inertia
        g = se3.rotation(L).T @ ca.SX(constant(self.model.machine.gravity))
        load = step_of(self.link.to_body).wrench_out(Wrench.of(wrench + extra))
        load = load.minus(twist.cross_wrench(inertia.times(twist)))
        load = load.plus(inertia.times(Twist(g, ca.SX(3, 1))))
        results = [_of_frame(L), twist.vector, load.vector]
        return self._function("body", [pose, xi, wrench, extra], results)

    @cached_property
    def frame(self) -> ca.Function:
        """Find the frame (12) of the link from the pose of the body."""
        (pose,) = _symbols(pose=7)
        G = se3.pose(quaternion.to_rotation(pose[3:]), pose[:3])
        L = se3.compose(G, se3.inverse(self.link.to_body))
        return self._function("frame", [pose], [_of_frame(L)])

    @cached_property
    def _geometry(self) -> tuple[list[Matrix], Any]:
        """Symbols of the frames of parent and link, and (step, directions, x) of the joint."""
        count = len(kept_coordinates(self.link.kind))
        parent, own, kept = _symbols(parent=12, own=12, kept=count)
        above = None if self.grounded else _to_frame(parent)
        G = joint_pose(self.link, above, _to_frame(own))
        x = coordinates(self.link.kind, se3.rotation(G), se3.position(G), kept)
        needs_x = self._lifted[1].has_spring or not self.link.constant_subspace
        step = joint_step(self.link, G, x)
        found = (step, directions(self.link, x), x if needs_x else ca.SX(*x.shape))
        return [parent, own, kept], found

    @cached_property
    def _traced_factor(self) -> "_Traced":
        frames, (step, spread, x) = self._geometry
        (acc,) = _symbols(acc=21)
        M = self._lifted[2] + _to_symmetric(acc)
        factor = Factor.of(spread, self.link.armature, M)
        shown = _of_symmetric(step.inertia_out(Inertia.of(factor.shown)).matrix)
        passing = (factor.D, factor.Uz, factor.shown, x)
        nothing = [ca.SX(*one.shape) for one in (factor.D, factor.Uz, factor.Lam, factor.shown)]
        lasting = factor._replace(**dict(zip(("D", "Uz", "Lam", "shown"), nothing, strict=True)))
        return _Traced([*frames, acc], Pack((step, lasting)), Pack(passing), shown)

    @cached_property
    def factor(self) -> ca.Function:
        """Eliminate a body: joint block, passing block, inertia (21) shown to the parent.

        The joint block is what the outward sweep needs too, the passing one only the inward.
        """
        traced = self._traced_factor
        (before,) = _symbols(before=21)
        results = [traced.lasting.vector, traced.passing.vector]
        if not self.grounded:
            results.append(before + traced.shown)
        return self._function("factor", [*traced.inputs, before], results)

    @property
    def joint_size(self) -> int:
        """Length of the joint block."""
        return self._traced_factor.lasting.size

    @property
    def passing_size(self) -> int:
        """Length of the passing block."""
        return self._traced_factor.passing.size

    def _joint(self) -> tuple[Matrix, Step, Factor]:
        """Symbols of the joint block, and what they stand for."""
        (block,) = _symbols(joint=self.joint_size)
        return block, *self._traced_factor.lasting.restore(block)

    def _passing(self, factor: Factor) -> tuple[Matrix, Factor, Matrix]:
        """Symbols of the passing block, the whole factor, and joint coordinates."""
        (block,) = _symbols(passing=self.passing_size)
        D, Uz, shown, x = self._traced_factor.passing.restore(block)
        return block, factor._replace(D=D, Uz=Uz, shown=shown), x

    @cached_property
    def _traced_motion(self) -> "_Traced":
        link, joint = self.link, self._lifted[1]
        block, step, factor = self._joint()
        passing, factor, x = self._passing(factor)
        above, own, motor = _symbols(above=6, own=6, motor=link.kind.nv)
        carried = Twist.zero() if self.grounded else step.twist_into(Twist.of(above))
        relative = Twist.of(own).minus(carried)
        _, W, N = factor.directions
        rate = W.T @ relative.vector
        bias = joint_bias(link, carried, relative, x, rate)
        if factor.Ky is None and N.is_constant():
            bias = N @ (N.T @ bias)  # without a rotor nobody asks for the rest
        alone: Any = SimpleNamespace(
            joints=[joint],
            x_slice={joint.name: slice(0, link.kind.nx)},
            v_slice={joint.name: slice(0, link.kind.nv)},
        )
        tau = motor - forces.joint_resistance(alone, x, rate)
        return _Traced([block, passing, above, own, motor], Pack((bias,)), Pack(()), tau)

    @cached_property
    def motion(self) -> ca.Function:
        """Find bias block and joint force (nv) from the joint, twists of parent and link, motor."""
        traced = self._traced_motion
        return self._function("motion", traced.inputs, [traced.lasting.vector, traced.shown])

    @property
    def bias_size(self) -> int:
        """Length of the bias block."""
        return self._traced_motion.lasting.size

    def _bias(self) -> tuple[Matrix, Matrix]:
        (block,) = _symbols(bias=self.bias_size)
        return block, self._traced_motion.lasting.restore(block)[0]

    @cached_property
    def _traced_inward(self) -> "_Traced":
        block, step, factor = self._joint()
        passing, factor, _ = self._passing(factor)
        bias_block, bias = self._bias()
        load, acc, tau = _symbols(load=6, acc=6, tau=self.link.kind.nv)
        given = factor.inward(load + acc, tau, bias)
        shown = step.wrench_out(Wrench.of(given.passed)).vector
        inputs = [block, passing, bias_block, load, acc, tau]
        return _Traced(inputs, Pack((given.offset,)), Pack(()), shown)

    @cached_property
    def inward(self) -> ca.Function:
        """Find the offset block, and the load (6) shown to the parent added to another."""
        traced = self._traced_inward
        (before,) = _symbols(before=6)
        results = [traced.lasting.vector]
        if not self.grounded:
            results.append(before + traced.shown)
        return self._function("inward", [*traced.inputs, before], results)

    @property
    def offset_size(self) -> int:
        """Length of the offset block."""
        return self._traced_inward.lasting.size

    @cached_property
    def outward(self) -> ca.Function:
        """Find the acceleration (6) of the link, and of the body if that is another frame."""
        block, step, factor = self._joint()
        bias_block, bias = self._bias()
        offset_block, above = _symbols(offset=self.offset_size, above=6)
        (offset,) = self._traced_inward.lasting.restore(offset_block)
        carried = bias
        if not self.grounded:
            carried = carried + step.twist_into(Twist.of(above)).vector
        given = Given(offset, ca.SX(factor.Lam.shape[0], 1), ca.SX(6, 1))
        a = factor.outward(carried, given, ca.SX(self.link.kind.nv, 1))[0]
        results = [a]
        if not self.aligned:
            results.append(step_of(self.link.to_body).twist_into(Twist.of(a)).vector)
        return self._function("outward", [block, bias_block, offset_block, above], results)

    @cached_property
    def wrench(self) -> ca.Function:
        """Find the joint wrench (6), also in joint axes, and that on the parent with another."""
        block, step, _ = self._joint()
        own, load, acc, before = _symbols(own=6, load=6, acc=6, before=6)
        M = Inertia.of(self._lifted[2])
        wrench = M.times(Twist.of(own)).vector - load + acc
        turn = ca.diagcat(self.link.to_joint, self.link.to_joint)
        results = [wrench, turn @ wrench]
        if not self.grounded:
            results.append(before + step.wrench_out(Wrench.of(wrench)).vector)
        return self._function("wrench", [block, own, load, acc, before], results)

    @cached_property
    def motor(self) -> ca.Function:
        """Find the motor force (nv) from the joint, wrench, bias, accelerations and joint force."""
        block, step, factor = self._joint()
        bias_block, bias = self._bias()
        wrench, above, own, tau = _symbols(wrench=6, above=6, own=6, tau=self.link.kind.nv)
        S, W, _ = factor.directions
        relative = own - bias
        if not self.grounded:
            relative = relative - step.twist_into(Twist.of(above)).vector
        # tau holds minus the passive force, as `motion` gives it without a motor.
        result = S.T @ wrench + self.link.armature @ (W.T @ relative) - tau
        return self._function("motor", [block, bias_block, wrench, above, own, tau], [result])

    @cached_property
    def twist_to_link(self) -> ca.Function:
        """Find the twist (6) of the link from that of the body."""
        (own,) = _symbols(own=6)
        step = step_of(se3.inverse(self.link.to_body))
        return self._function("twist_to_link", [own], [step.twist_into(Twist.of(own)).vector])

    @cached_property
    def wrench_to_link(self) -> ca.Function:
        """Find the wrench (6) on the link from that on the body."""
        (own,) = _symbols(own=6)
        step = step_of(self.link.to_body)
        return self._function("wrench_to_link", [own], [step.wrench_out(Wrench.of(own)).vector])

    @cached_property
    def momentum(self) -> ca.Function:
        """Find momentum (6) of the link and of the rotors (nv) from joint and twists."""
        block, step, factor = self._joint()
        above, own = _symbols(above=6, own=6)
        relative = Twist.of(own)
        if not self.grounded:
            relative = relative.minus(step.twist_into(Twist.of(above)))
        rotors = self.link.armature @ (factor.directions.W.T @ relative.vector)
        momentum = Inertia.of(self._lifted[2]).times(Twist.of(own)).vector
        return self._function("momentum", [block, above, own], [momentum, rotors])

    def _function(self, name: str, inputs: list[Matrix], results: list[Matrix]) -> ca.Function:
        symbols = self._lifted[3].symbols
        inputs = [*inputs, symbols] if symbols.shape[0] else inputs
        columns = [ca.densify(ca.SX(result)) for result in results]
        return ca.Function(name, inputs, columns)


def connection_function(machine: Machine, part: Any, kind: str) -> ca.Function:
    """Wrenches (6 each) on the bodies of a spring, damper or immersed body, added to others.

    Inputs: pose (7), twist (6) and wrench before (6) of the first body, then of the second.
    """
    frames = [machine.frame(getattr(part, name)) for name in part.frame_fields]
    bodies = list(dict.fromkeys(frame.body for frame in frames if frame.body != "world"))
    fluid = machine.fluid
    alone: Any = SimpleNamespace(
        springs=(part,) if kind == "spring" else (),
        dampers=(part,) if kind == "damper" else (),
        fluid=None if fluid is None or kind != "immersed" else replace(fluid, immersed=(part,)),
        bodies=[machine.body(name) for name in bodies],
        body_index={"world": -1, **{name: k for k, name in enumerate(bodies)}},
        frame=machine.frame,
        gravity=machine.gravity,
    )
    inputs, poses, twists, before = [], [], [], []
    for _ in bodies:
        pose, xi, wrench = _symbols(pose=7, xi=6, wrench=6)
        inputs += [pose, xi, wrench]
        poses.append(se3.pose(quaternion.to_rotation(pose[3:]), pose[:3]))
        twists.append(xi)
        before.append(wrench)
    found = forces.body_wrenches(forces.Bodies(alone, poses, twists))
    results = [
        ca.densify(wrench if more is None else wrench + more)
        for wrench, more in zip(before, found, strict=True)
    ]
    return ca.Function(kind, inputs, results)


def _symbols(**sizes: int) -> list[Matrix]:
    return [ca.SX.sym(name, size) for name, size in sizes.items()]


def _of_frame(G: Matrix) -> Matrix:
    return ca.vertcat(ca.vec(se3.rotation(G)), se3.position(G))


def _to_frame(column: Matrix) -> Matrix:
    return se3.pose(ca.reshape(column[:9], 3, 3), column[9:])


def _of_symmetric(matrix: Matrix) -> Matrix:
    return ca.vertcat(*(matrix[i, j] for i, j in LOWER))


def _to_symmetric(column: Matrix) -> Matrix:
    matrix = ca.SX(6, 6)
    for k, (i, j) in enumerate(LOWER):
        matrix[i, j] = matrix[j, i] = column[k]
    return matrix
