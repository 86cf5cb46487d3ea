"""Slider loops for MuJoCo, which has none: a small body slides on one side, welded to the other.

The body takes a share of the inertia of the one that it is welded to, in its own frame, and leaves
it the rest: as long as the weld holds, mass, center and moments of both together are what they
were. MuJoCo knows its joint; our states do not: where it is and how fast follows from theirs.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.geometry import se3
from framefree.kernel import Kernel, compile
from framefree.machine import Body, Joint, Loop, Machine, Prismatic
from framefree.machine.layouts import EngineLayout
from framefree.motion.tree import Tree

SHARE = 0.1
"""Of a body's inertia, what all sliding bodies at it take together."""
WORLD = "world"


class SlidersAsBodies:
    """A machine, in numbers, with its slider loops as bodies; and states to and from MuJoCo.

    Parameters
    ----------
    machine : Machine
        As our states are.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.sliders = [loop for loop in machine.loops if loop.kind == "slider"]
        self.names = _unused_names(machine, self.sliders)
        self._whole = self.replaced(machine)

    @cached_property
    def layout(self) -> EngineLayout:
        """How MuJoCo writes the states of the machine with these bodies."""
        return self._whole.layout("mujoco")

    def replaced(self, machine: Machine) -> Machine:
        """Return a machine like ours with bodies in place of slider loops."""
        if not self.sliders:
            return machine
        shares = {loop.name: _SlidingBody(machine, loop, name) for loop, name in self._named}
        count = {share.giver: 0 for share in shares.values()}
        for share in shares.values():
            count[share.giver] += 1
        bodies = tuple(
            replace(body, inertia=body.moments * (1 - SHARE)) if body.name in count else body
            for body in machine.bodies
        )
        loops = [shares[o.name].weld if o.name in shares else o for o in machine.loops]
        parts: list[Any] = []
        for share in shares.values():
            giver = machine.bodies[machine.body_index[share.giver]]
            moments = giver.moments.moved(np.linalg.inv(share.place))
            moments = moments * (SHARE / count[share.giver])
            parts += [Body(share.name, moments, strict=False), share.joint]
        return machine.replace(bodies=bodies, loops=()).attach(*parts, *loops)

    @property
    def _named(self) -> Any:
        return zip(self.sliders, self.names, strict=True)

    # ------------------------------------------------------------------ states

    @cached_property
    def same(self) -> bool:
        """Whether MuJoCo's states and forces are the same numbers as ours."""
        return not self.sliders and self.layout.same

    def set(self, data: Any, x: np.ndarray, v: np.ndarray) -> None:
        """Set MuJoCo's state to ours."""
        whole_x, whole_v = self._whole_state(x, v)
        data.qpos[:] = self.layout.x_to(whole_x)
        data.qvel[:] = self.layout.v_to(whole_x, whole_v)

    def state(self, data: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return our state."""
        if self.same:
            return data.qpos.copy(), data.qvel.copy()
        x = self.layout.x_from(data.qpos)
        v = self.layout.v_from(x, data.qvel)
        return x[self._places[0]], v[self._places[1]]

    def force(self, data: Any, force: np.ndarray) -> np.ndarray:
        """Return generalised forces (nv), or rows of them, on MuJoCo's velocities."""
        if self.same:
            return force
        whole = np.zeros((*force.shape[:-1], self._whole.nv))
        whole[..., self._places[1]] = force
        return self.layout.v_to(self.layout.x_from(data.qpos), whole)

    @cached_property
    def _places(self) -> tuple[list[int], list[int]]:
        """Where our x and v are in those of the whole."""
        ours, whole = self.machine, self._whole
        x, v = [], []
        for joint in ours.joints:
            x += range(*whole.x_slice[joint.name].indices(whole.nx))
            v += range(*whole.v_slice[joint.name].indices(whole.nv))
        return x, v

    def _whole_state(self, x: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not self.sliders:
            return x, v
        whole_x, whole_v = np.zeros(self._whole.nx), np.zeros(self._whole.nv)
        whole_x[self._places[0]], whole_v[self._places[1]] = x, v
        along, rate = self._travel(x, v)
        for k, name in enumerate(self.names):
            whole_x[self._whole.x_slice[name]] = along[k]
            whole_v[self._whole.v_slice[name]] = rate[k]
        return whole_x, whole_v

    @cached_property
    def _travel(self) -> Kernel:
        """From a state to how far sliders have moved, and how fast."""
        machine = self.machine
        x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
        state = Tree(machine.tree).at(x, v, 0)
        along, rates = [], []
        for loop in self.sliders:
            here, there = (state.frame_pose(name) for name in (loop.frame_a, loop.frame_b))
            G = se3.compose(se3.inverse(here), there)
            E = se3.compose(se3.inverse(loop.rest), G)
            a, b = (_twist(state, name) for name in (loop.frame_a, loop.frame_b))
            relative = b - se3.adjoint(se3.inverse(G)) @ a
            axis, sign = ca.DM(loop.axis), _SlidingBody(machine, loop, "").sign
            along.append(sign * ca.dot(axis, se3.position(E)))
            rates.append(sign * ca.dot(axis, se3.rotation(E) @ relative[:3]))
        outputs = [ca.densify(ca.vertcat(*values)) for values in (along, rates)]
        return compile(ca.Function("travel", [x, v], outputs))


class _SlidingBody:
    """Which body gives a share of its inertia to a slider, and the parts that replace the loop.

    It is that of frame b, and the new body slides from where frame a is; where b is fixed to the
    world it is that of frame a, and the new body slides on b, the other way.
    """

    def __init__(self, machine: Machine, loop: Loop, name: str) -> None:
        self.name = name
        a, b = machine.frame(loop.frame_a), machine.frame(loop.frame_b)
        rest = np.asarray(loop.rest)
        on_a = np.asarray(a.pose) @ rest
        moves = b.body != WORLD
        self.sign = 1.0 if moves else -1.0
        self.giver = b.body if moves else a.body
        self.place = np.asarray(b.pose) if moves else on_a
        carrier, start = (a.body, on_a) if moves else (b.body, np.asarray(b.pose))
        self._loop, self._moves = loop, moves
        if name:
            self.joint = Joint(name, Prismatic(np.asarray(loop.axis)), carrier, name, start)

    @property
    def weld(self) -> Loop:
        """The loop that holds the new body."""
        loop = self._loop
        if self._moves:
            return Loop(loop.name, "weld", self.name, loop.frame_b, tolerance=loop.tolerance)
        return Loop(
            loop.name, "weld", loop.frame_a, self.name, rest=loop.rest, tolerance=loop.tolerance
        )


def _twist(state: Any, frame: str) -> Any:
    if state.machine.frame(frame).body == WORLD:
        return ca.SX(6, 1)
    return state.jacobian(frame).value @ state.v


def _unused_names(machine: Machine, sliders: Sequence[Loop]) -> list[str]:
    taken = {*machine.body_index, *machine.joint_index, *(frame.name for frame in machine.frames)}
    names = []
    for loop in sliders:
        name = f"{loop.name}_slide"
        while name in taken:
            name += "_"
        taken.add(name)
        names.append(name)
    return names
