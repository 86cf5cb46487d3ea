"""What `aerial-arm` is made of: the craft, its path, its law with and without parts, its roots."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.passive import (
    FramesPassivity,
    HorizontalLean,
    PassiveGoal,
    Underactuated,
)
from framefree.control.references import FrameWaypoints, JointSpline, Reference, Together
from framefree.gallery.machines.aerial_arm import (
    HEIGHT,
    SIDE,
    aerial_arm,
    aerial_rest,
    cube,
    holding,
)
from framefree.machine import Body, Frame, Free, Gusts, Joint, Loop, Machine, Shape
from framefree.motion.actuation import input_bias, input_matrix
from framefree.motion.regressor import body_paths, moments_vector
from framefree.motion.tree import Tree
from framefree.simulate import Event, Grasp, Release, SetParameters
from framefree.solve import inverse_kinematics

OBJECT_AT = (0.10, 0.05, -0.02)
"""Where the object stands, from the gripper at rest, m."""
LIFTED, CARRIED = (0.0, 0.0, 0.05), (-0.18, -0.10, 0.04)
"""Ways of the object after it is taken, m."""
TIMES = (3.0, 5.0, 6.0, 7.5, 10.0)
"""When the gripper sets out, comes to the object, lifts it, has lifted and has carried it, s."""
TAKEN = 5.5
"""When the object is taken, s."""


@dataclass(frozen=True, eq=False)
class AerialSetting:
    """The craft in gusts, the object, the path of the gripper and the laws."""

    gusts: Gusts

    @cached_property
    def model(self) -> Machine:
        """The law's machine: it knows no wind, and the last link's numbers can be set."""
        return aerial_arm().tunable(*body_paths("link3"))

    @cached_property
    def first_place(self) -> np.ndarray:
        """Where the gripper begins, m."""
        craft = aerial_arm()
        return Tree(craft).functions["frame_pose:gripper"](aerial_rest(craft)).full()[:3, 3]

    @cached_property
    def object_place(self) -> np.ndarray:
        """Where the object stands, m."""
        return self.first_place + OBJECT_AT

    @cached_property
    def plant(self) -> Machine:
        """The craft in gusts beside the object on its stand."""
        return craft_and_object(self.object_place, self.gusts)

    @cached_property
    def start(self) -> np.ndarray:
        """First configuration of the plant."""
        return aerial_rest(self.plant, self.object_place)

    @cached_property
    def path(self) -> Together:
        """The gripper goes to the object, lifts and carries it; the body hovers."""
        there = self.object_place
        places = [self.first_place, there, there, there + LIFTED, there + CARRIED]
        hover = np.eye(4)
        hover[2, 3] = HEIGHT
        return Together(
            FrameWaypoints("body", [hover, hover], (0.0, 1.0)),
            FrameWaypoints("gripper", places, TIMES),
        )

    @cached_property
    def joint_path(self) -> Reference:
        """The angles for the same path with the body exactly at its place."""
        times = np.linspace(TIMES[0], TIMES[-1], 36)
        poses = self.path.sample(times)["gripper.pose"]
        craft = aerial_arm()
        x, points = aerial_rest(craft), []
        for pose in poses:
            x = inverse_kinematics(craft, {"gripper": pose[:3, 3]}, x, hold=("base",)).x
            points.append(x)
        return JointSpline(self.model, points, times)

    @cached_property
    def size(self) -> np.ndarray:
        """Diagonal of the mass matrix at rest, kg and kg m^2."""
        craft = aerial_arm()
        return np.diag(Tree(craft).functions["mass"](aerial_rest(craft)).full())

    def law(self, gripper: bool = True) -> FramesPassivity:
        """Return the law; without `gripper` the joints hold angles on the craft instead."""
        goals = (PassiveGoal("body", "z", 40.0, 3.0), PassiveGoal("body", "attitude", 3.0, 8.0))
        hand = PassiveGoal("gripper", "xyz", 60.0, 6.0)
        size = self.size
        return FramesPassivity(
            self.model,
            K=np.concatenate([10 * size[2:3], 16 * size[3:6], 30 * size[6:]]),
            freedom=Underactuated(),
            goals=(hand, *goals) if gripper else goals,
            lean=HorizontalLean("body", stiffness=4.0, damping=3.2, integral=2.0, pace=12.0),
            follow_posture=not gripper,
            posture_gain=0.0 if gripper else np.array([0, 0, 0, 0, 6.0, 6.0, 6.0]),
            weights=1.0 if gripper else np.array([1, 1, 1, 1, 1e3, 1e3, 1e3]),
        )

    def taking(self, told: bool = True) -> list[Event]:
        """Return what happens when the object is taken; the law may be told its weight."""
        numbers = moments_vector(holding(aerial_arm())).tolist()
        known = dict(zip(body_paths("link3"), numbers, strict=True))
        events: list[Event] = [Release(TAKEN, "stand"), Grasp(TAKEN, "gripper", "object", "grip")]
        return [*events, SetParameters(TAKEN, law=known)] if told else events


def craft_and_object(place: np.ndarray, gusts: Gusts | None = None) -> Machine:
    """Return the craft beside a cube `object` that a stand holds at a place (3), m.

    The loop `stand` holds it to the world until it is taken.
    """
    craft = aerial_arm(gusts)
    top = float(place[2]) - SIDE / 2
    pillar = np.eye(4)
    pillar[:3, 3] = place[0], place[1], top / 2
    return craft.attach(
        Body("object", cube()),
        Joint("object", Free(), "world", "object"),
        Frame("shelf", "world", np.asarray(place, float)),
        Loop("stand", "weld", "shelf", "object"),
        Shape("object", "box", (SIDE,) * 3, color=(0.2, 0.6, 0.3, 1.0)),
        Shape("world", "box", (0.03, 0.03, top), pillar, color=(0.6, 0.6, 0.6, 1.0)),
    )


def hover_roots(law: FramesPassivity, x: np.ndarray, signals: dict[str, np.ndarray]) -> np.ndarray:
    """Return the roots (1/s) of small motions of craft, arm and lean about a rest, in still air.

    Of z = (eps, v, memory): eps' = v, v' = forward(x (+) eps, v, u), memory' as the law has it.
    """
    machine = law.machine.numeric
    own = len(law.memory)
    xs, v, memory = (ca.SX.sym(n, k) for n, k in
                     (("x", machine.nx), ("v", machine.nv), ("memory", own)))  # fmt: skip
    values = [signals[name] for name in law.needs]
    u, *rest = law.traced[0](xs, v, *values, memory, law.machine.parameters.defaults)
    memory_rate = rest[-1]
    state = Tree(machine).at(xs, v)
    a = Tree(machine).functions["forward"](xs, v, input_matrix(state) @ u + input_bias(state))
    rates = ca.vertcat(a, memory_rate)
    by_place = ca.jacobian(rates, xs) @ machine.rate_matrix(xs)
    lower = ca.horzcat(by_place, ca.jacobian(rates, v), ca.jacobian(rates, memory))
    function = ca.Function("small", [xs, v, memory], [rates, ca.densify(lower)])
    n = machine.nv
    still: Any = function(x, np.zeros(n), np.zeros(own))
    if np.abs(still[0].full()).max() > 1e-9:
        raise ValueError("the craft does not rest there")
    upper = np.hstack([np.zeros((n, n)), np.eye(n), np.zeros((n, own))])
    return np.linalg.eigvals(np.vstack([upper, still[1].full()]))
