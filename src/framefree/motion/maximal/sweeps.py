"""Quantities of the maximal formulation as native loops over bodies, for machines of any length.

The code of these kernels does not grow with the number of bodies; their cost is linear in it. They
serve every tree with springs, dampers and fluid; loops, couplings and tendons need straight-line
code. The steps below are the formulas of `joints` and `graph`, for one body.
"""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple

import casadi as ca

from framefree.geometry import quaternion, se3
from framefree.kernel.loops import Block, Calls
from framefree.machine import Machine
from framefree.motion.elimination import BodyFactor, directions
from framefree.motion.loops import BodyMath, LinkPose, LoopTape, inwards, passive_wrenches
from framefree.motion.maximal.joints import coordinates, joint_bias, joint_pose, joint_step
from framefree.motion.maximal.kinematics import POSE, TWIST, MaximalModel
from framefree.motion.quantities import LOADS
from framefree.motion.spatial import Matrix, SpatialWrench, Step, Twist


def supports_loops(machine: Machine) -> bool:
    """Tell whether a machine's quantities can be native loops."""
    return not (machine.closed or machine.tendons or machine.timed or len(machine.parameters))


# ---------------------------------------------------------------------------- steps


class MovingLink(NamedTuple):
    """A link's pose, twist and acceleration (6); None for what is not asked for."""

    pose: LinkPose
    twist: Any
    acceleration: Any


class JointEnds(NamedTuple):
    """A link, that of its parent (None: the world), and the coordinates that x keeps or None."""

    link: Any
    above: Any
    kept: Any


class ActingForces(NamedTuple):
    """Wrenches on a body (6, body axes) from outside and from springs, dampers, fluid; motor."""

    port: Any
    passive: Any
    motor: Any


class MovingJoint(NamedTuple):
    """Pose of a link on its parent's, and coordinates, rates and bias of the joint between."""

    step: Step
    x: Matrix
    v: Matrix
    bias: Matrix


class EliminatedBody(NamedTuple):
    """What the outward sweep needs of a body."""

    step: Step
    factor: BodyFactor
    bias: Matrix | None
    offset: Matrix


def place(body: BodyMath, pose: Matrix, twist: Matrix | None, a: Matrix | None) -> MovingLink:
    """Find the link from its body's position and quaternion (7), twist and acceleration (6)."""
    G = se3.compose(_pose(pose), se3.inverse(body.link.to_body))
    own, rate = (None if one is None else body.twist_to_link(one) for one in (twist, a))
    return MovingLink(LinkPose(se3.rotation(G), se3.position(G)), own, rate)


def geometry(body: BodyMath, ends: JointEnds) -> tuple[Step, Matrix]:
    """Return the link's pose on its parent's, and the joint's coordinates."""
    above = None if ends.above is None else ends.above.pose.matrix
    G = joint_pose(body.link, above, ends.link.pose.matrix)
    kept = ca.SX(0, 1) if ends.kept is None else ends.kept
    x = coordinates(body.link.kind, se3.rotation(G), se3.position(G), kept)
    return joint_step(body.link, G, x), x


def joint_motion(body: BodyMath, ends: JointEnds) -> MovingJoint:
    """Return how the joint moves."""
    step, x = geometry(body, ends)
    carried = Twist.of(body.carried(step, ends.above and ends.above.twist, None))
    relative = Twist.of(ends.link.twist).minus(carried)
    v = directions(body.link, x).W.T @ relative.vector
    return MovingJoint(step, x, v, joint_bias(body.link, carried, relative, x, v))


def load_on(body: BodyMath, link: MovingLink, forces: ActingForces) -> Matrix:
    """Return everything but joints (6, link axes)."""
    acting = [wrench for wrench in forces[:2] if wrench is not None]
    wrench = body.to_link(sum(acting[1:], acting[0])) if acting else None
    return body.known(link.pose, Twist.of(link.twist), wrench)


def eliminate(
    body: BodyMath, ends: JointEnds, forces: ActingForces, inertia: Any, carried: Any
) -> tuple[EliminatedBody, Matrix | None, Matrix | None]:
    """Eliminate a body under all forces; return also inertia and load that its parent feels."""
    step, x, v, bias = joint_motion(body, ends)
    factor, shown = body.factor(x, step, inertia)
    N = factor.directions.N
    if factor.Ky is None and N.is_constant():
        bias = N @ (N.T @ bias)  # without a rotor nobody asks for the rest
    tau = -body.resistance(x, v)
    tau = tau if forces.motor is None else forces.motor + tau
    loads = (load_on(body, ends.link, forces), carried, tau, bias)
    return _eliminated(body, step, factor, shown, *loads)


def eliminate_and_load(body: BodyMath, ends: JointEnds, forces: ActingForces, *carried: Any) -> Any:
    """Return the same, and the load that `joint_wrench` asks for."""
    return *eliminate(body, ends, forces, *carried), load_on(body, ends.link, forces)


def eliminate_alone(body: BodyMath, ends: JointEnds, wrench: Any, inertia: Any, load: Any) -> Any:
    """Eliminate a body on which nothing acts but a wrench (6, body axes)."""
    step, x = geometry(body, ends)
    loads = (body.to_link(wrench), load, None, None)
    return _eliminated(body, step, *body.factor(x, step, inertia), *loads)


def eliminate_momentum(body: BodyMath, ends: JointEnds, _: None, inertia: Any, load: Any) -> Any:
    """Eliminate a body on which its own momentum and that of its rotors act as loads."""
    step, x, v, _ = joint_motion(body, ends)
    momentum = body.inertia.times(Twist.of(ends.link.twist)).vector
    loads = (momentum, load, body.link.armature @ v, None)
    return _eliminated(body, step, *body.factor(x, step, inertia), *loads)


def _eliminated(
    body: BodyMath, step: Step, factor: BodyFactor, shown: Matrix, *loads: Any
) -> tuple[EliminatedBody, Matrix | None, Matrix | None]:
    eliminated, passed = body.inward(step, factor, *loads)
    left = EliminatedBody(step, factor.for_accelerations, loads[-1], eliminated.offset)
    return (left, None, None) if body.grounded else (left, shown, passed)


def accelerate(body: BodyMath, left: EliminatedBody, above: Matrix | None) -> Matrix:
    """Return the acceleration (6) of a link, for that of its parent's."""
    return left.factor.acceleration(body.carried(left.step, above, left.bias), left.offset)


def accelerate_body(body: BodyMath, left: EliminatedBody, above: Matrix | None) -> Any:
    """Return the same, and the acceleration of the body in its own axes."""
    a = accelerate(body, left, above)
    return a, body.body_twist(Twist.of(a))


def carry(body: BodyMath, left: EliminatedBody, *motion: Any) -> tuple[Matrix | None, Matrix]:
    """Return what a joint's wrench does to the parent, and the wrench in joint axes (6 each)."""
    wrench, on_parent = _joint_wrench(body, left.step, *motion)
    return on_parent, ca.diagcat(body.link.to_joint, body.link.to_joint) @ wrench


def drive(
    body: BodyMath, ends: JointEnds, forces: ActingForces, carried: Matrix | None
) -> tuple[Matrix | None, Matrix]:
    """Return the joint's wrench on the parent, and the motor force (nv), for accelerations."""
    step, x, v, bias = joint_motion(body, ends)
    a, load = ends.link.acceleration, load_on(body, ends.link, forces)
    wrench, on_parent = _joint_wrench(body, step, a, load, carried)
    S, W, _ = directions(body.link, x)
    rate = W.T @ (a - body.carried(step, ends.above and ends.above.acceleration, bias))
    return on_parent, S.T @ wrench + body.link.armature @ rate + body.resistance(x, v)


def _joint_wrench(
    body: BodyMath, step: Step, a: Matrix, load: Matrix, carried: Matrix | None
) -> tuple[Matrix, Matrix | None]:
    """Return the wrench (6) that a joint passes to the body, and what it does to the parent."""
    wrench = body.inertia.times(Twist.of(a)).vector - load
    wrench = wrench if carried is None else wrench + carried
    return wrench, None if body.grounded else step.wrench_out(SpatialWrench.of(wrench)).vector


def _pose(pose: Matrix) -> Matrix:
    return se3.pose(quaternion.to_rotation(quaternion.normalise(pose[3:])), pose[:3])


def _pose_and_twist(state: tuple[Matrix, Matrix]) -> tuple[Matrix, Matrix]:
    return _pose(state[0]), state[1]


# ---------------------------------------------------------------------------- programs


class LoopedMaximal:
    """Writes programs that loop over the bodies of a machine."""

    def __init__(self, model: MaximalModel) -> None:
        self.model = model

    @cached_property
    def programs(self) -> dict[str, Callable[[], Calls]]:
        """Programs by the name of the quantity."""
        programs: dict[str, Callable[[], Calls]] = {
            "joint_inverse": self.joint_inverse,
            "respond": self.respond,
            "project": self.project,
        }
        for version in ("", "joint_force", "both"):
            suffix = f":{version}" if version else ""
            programs[f"forward{suffix}"] = partial(self.forward, LOADS[version])
            programs[f"joint_wrench{suffix}"] = partial(self.joint_wrench, LOADS[version])
        return programs

    def forward(self, load: tuple[str, ...]) -> Calls:
        """Accelerations of the bodies under a load: ``forward(x, v, *load)``, see `LOADS`."""
        sweeps = MaximalSweeps(self.model, "forward", ("x", "v", *load))
        result = sweeps.tape.output("a", (self.model.nv,))
        sweeps.eliminate(eliminate, sweeps.forces)
        return sweeps.accelerate(result)

    def joint_wrench(self, load: tuple[str, ...]) -> Calls:
        """Wrenches that the joints carry under a load: ``joint_wrench(x, v, *load)``."""
        sweeps = MaximalSweeps(self.model, "joint_wrench", ("x", "v", *load))
        result = sweeps.tape.output("wrench", (len(self.model.links), TWIST))
        loads = sweeps.eliminate(eliminate_and_load, sweeps.forces)
        sweeps.accelerate(sweeps.tape.calls.block(self.model.nv))

        def wrench(i: int, carried: Any) -> Any:
            values = (sweeps.left[i], sweeps.accelerations[i], *loads[i], carried)
            return sweeps.tape.call_into(_six(result, i), carry, i, *values)[:1]

        inwards(sweeps.tape, wrench)
        return sweeps.tape.calls

    def joint_inverse(self) -> Calls:
        """Motor forces for accelerations of the bodies: ``joint_inverse(x, v, a, force)``."""
        sweeps = MaximalSweeps(self.model, "joint_inverse", ("x", "v", "a", "force"))
        result = sweeps.tape.output("joint_force", (self.model.machine.nv,))

        def motor(i: int, carried: Any) -> Any:
            own, values = result[self.model.links[i].v], (sweeps.joint(i), sweeps.forces(i))
            passed = sweeps.tape.call_into(own, drive, i, *values, carried)[:1]
            sweeps.forget(i)
            return passed

        inwards(sweeps.tape, motor)
        return sweeps.tape.calls

    def respond(self) -> Calls:
        """Accelerations under wrenches alone, nothing else acting: ``respond(x, force)``."""
        sweeps = MaximalSweeps(self.model, "respond", ("x", "force"))
        result = sweeps.tape.output("a", (self.model.nv,))
        sweeps.eliminate(eliminate_alone, lambda i: sweeps.part("force", i))
        return sweeps.accelerate(result)

    def project(self) -> Calls:
        """Nearest velocity that the joints allow: ``project(x, v)``."""
        sweeps = MaximalSweeps(self.model, "project", ("x", "v"))
        result = sweeps.tape.output("velocity", (self.model.nv,))
        sweeps.eliminate(eliminate_momentum, lambda i: None)
        return sweeps.accelerate(result)


class MaximalSweeps:
    """The sweeps of one program. Links are placed when first asked for, and soon forgotten."""

    def __init__(self, model: MaximalModel, name: str, inputs: tuple[str, ...]) -> None:
        self.model, self.tape = model, LoopTape(name, model.tree)
        sizes = {"x": model.nx, "joint_force": model.machine.nv}
        self.inputs = {key: self.tape.input(key, (sizes.get(key, model.nv),)) for key in inputs}
        self.left: dict[int, Any] = {}
        self.accelerations: list[Any] = []
        self._placed: dict[int, Any] = {}

    def eliminate(self, step: Any, acting: Callable[[int], Any]) -> dict[int, Any]:
        """Eliminate all bodies by a step, `acting` being what acts; return further results."""
        further: dict[int, Any] = {}

        def visit(i: int, inertia: Any, load: Any) -> Any:
            values = (self.joint(i), acting(i), inertia, load)
            self.left[i], shown, passed, *further[i] = self.tape.call(step, i, *values)
            self.forget(i)
            return shown, passed

        inwards(self.tape, visit, channels=2)
        return further

    def accelerate(self, result: Block) -> Calls:
        """Find the accelerations of all links, and of the bodies into a block (6N)."""
        for i, link in enumerate(self.model.links):
            above = None if link.parent < 0 else self.accelerations[link.parent]
            values, own = (i, self.left[i], above), _six(result, i)
            if (self.tape.body(i).link.to_body - ca.SX.eye(4)).is_zero():
                self.accelerations.append(self.tape.call_into(own, accelerate, *values))
            else:
                self.accelerations.append(self.tape.call_into(own, accelerate_body, *values)[0])
        return self.tape.calls

    def joint(self, i: int) -> JointEnds:
        """Return the links that joint i connects."""
        parent, kept = self.model.links[i].parent, self.model.kept.get(i)
        own = None if kept is None else self.tape.value(self.inputs["x"][kept])
        return JointEnds(self._link(i), None if parent < 0 else self._link(parent), own)

    def _link(self, i: int) -> Any:
        if i not in self._placed:
            values = (self._body_pose(i), self.part("v", i), self.part("a", i))
            self._placed[i] = self.tape.call(place, i, *values)
        return self._placed[i]

    def forget(self, i: int) -> None:
        """Let go of link i."""
        self.tape.forget(self._placed.pop(i))

    def forces(self, i: int) -> ActingForces:
        """Return what acts on body i and its joint."""
        motors = self.inputs.get("joint_force")
        motor = None if motors is None else self.tape.value(motors[self.model.links[i].v])
        return ActingForces(self.part("force", i), self._passive[i], motor)

    @cached_property
    def _passive(self) -> list[Any]:
        """Wrenches of springs, dampers and fluid (6, body axes)."""
        bodies = range(len(self.model.links))
        states = [(self._body_pose(i), self.part("v", i)) for i in bodies]
        return passive_wrenches(self.tape, self.model.machine, states, _pose_and_twist)

    def _body_pose(self, i: int) -> Any:
        return self.tape.value(self.inputs["x"][POSE * i : POSE * (i + 1)])

    def part(self, name: str, i: int) -> Any:
        """Return the six numbers of body i in an input, None if there is no such input."""
        return self.tape.value(_six(self.inputs[name], i)) if name in self.inputs else None


def _six(block: Block, i: int) -> Block:
    return block[TWIST * i : TWIST * (i + 1)]
