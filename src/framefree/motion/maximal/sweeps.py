"""Quantities of the maximal formulation as native loops over bodies, for machines of any length.

The code of these kernels does not grow with the number of bodies; their cost is linear in it. They
serve every tree with springs, dampers and fluid; loops and couplings need straight-line code.
"""

from collections.abc import Callable
from functools import cached_property, partial

import casadi as ca

from framefree.kernel.loops import Block, Calls, Constant
from framefree.machine import Machine
from framefree.machine.part import plain
from framefree.motion.maximal.bodies import BodyClass, class_key, connection_function
from framefree.motion.maximal.kinematics import POSE, TWIST, MaximalModel
from framefree.motion.quantities import LOADS

FRAME, HALF = 12, 21


def supports_loops(machine: Machine) -> bool:
    """Tell whether a machine's quantities can be native loops."""
    tunable = getattr(machine, "parameters", None)
    return not (machine.loops or machine.couplings or (tunable is not None and tunable.names))


class LoopedMaximal:
    """Writes programs that loop over the bodies of a machine."""

    def __init__(self, model: MaximalModel) -> None:
        self.model, self.machine, self.links = model, model.machine, model.links
        groups: dict[tuple, list[int]] = {}
        for i in range(len(self.links)):
            groups.setdefault(class_key(self.machine, self.links, i), []).append(i)
        self.classes: dict[int, BodyClass] = {}
        for members in groups.values():
            shared = BodyClass(model, tuple(members))
            self.classes.update(dict.fromkeys(members, shared))

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

    # ------------------------------------------------------------------ programs

    def forward(self, load: tuple[str, ...]) -> Calls:
        """Accelerations of the bodies under a load: ``forward(x, v, *load)``, see `LOADS`."""
        sweeps = Sweeps(self, "forward", inputs=("x", "v", *load))
        result = sweeps.calls.output("a", (self.model.nv,))
        sweeps.inwards(sweeps.factor, sweeps.motion, sweeps.eliminate, sweeps.forget)
        sweeps.outwards(lambda i: sweeps.accelerate(i, result))
        return sweeps.calls

    def joint_wrench(self, load: tuple[str, ...]) -> Calls:
        """Wrenches that the joints carry under a load: ``joint_wrench(x, v, *load)``."""
        sweeps = Sweeps(self, "joint_wrench", inputs=("x", "v", *load))
        result = sweeps.calls.output("wrench", (len(self.links), TWIST))
        sweeps.inwards(sweeps.factor, sweeps.motion, sweeps.eliminate)
        bodies = sweeps.calls.block(self.model.nv)
        sweeps.outwards(lambda i: sweeps.accelerate(i, bodies))
        sweeps.inwards(lambda i: sweeps.carry(i, result))
        return sweeps.calls

    def joint_inverse(self) -> Calls:
        """Motor forces for accelerations of the bodies: ``joint_inverse(x, v, a, force)``."""
        sweeps = Sweeps(self, "joint_inverse", inputs=("x", "v", "a", "force"))
        result = sweeps.calls.output("joint_force", (self.machine.nv,))
        a = sweeps.inputs["a"]
        sweeps.outwards(lambda i: sweeps.take("acceleration", i, a))
        sweeps.inwards(
            sweeps.factor,
            sweeps.motion,
            lambda i: sweeps.carry(i, None),
            lambda i: sweeps.drive(i, result),
            sweeps.forget,
        )
        return sweeps.calls

    def respond(self) -> Calls:
        """Accelerations under wrenches alone, nothing else acting: ``respond(x, force)``."""
        sweeps = Sweeps(self, "respond", inputs=("x", "force"))
        result = sweeps.calls.output("a", (self.model.nv,))
        force = sweeps.inputs["force"]
        sweeps.inwards(
            sweeps.factor, lambda i: sweeps.load(i, force), sweeps.eliminate, sweeps.forget
        )
        sweeps.outwards(lambda i: sweeps.accelerate(i, result))
        return sweeps.calls

    def project(self) -> Calls:
        """Nearest velocity that the joints allow: ``project(x, v)``."""
        sweeps = Sweeps(self, "project", inputs=("x", "v"))
        result = sweeps.calls.output("velocity", (self.model.nv,))
        v = sweeps.inputs["v"]
        sweeps.outwards(lambda i: sweeps.take("twist", i, v))
        sweeps.inwards(sweeps.factor, sweeps.momentum, sweeps.eliminate, sweeps.forget)
        sweeps.outwards(lambda i: sweeps.accelerate(i, result))
        return sweeps.calls


class Sweeps:
    """Appends the steps of the method for one body after another, and knows where results are.

    A sweep runs some steps for each body, tips first (`inwards`) or base first (`outwards`). Steps:

        factor      eliminate the body from the mass matrix
        motion      bias and joint force of its joint, under all forces; or instead
        load        a wrench as the only load on it; or
        momentum    its momentum as the only load on it
        eliminate   eliminate it from the right side; after `factor` and one of the three
        accelerate  its acceleration, outwards; after `eliminate` of all
        take        or its acceleration, or twist, from a block of 6N
        carry       the wrench of its joint, inwards; after all accelerations
        drive       the force of its motor; after `carry`
        forget      let go of what only the steps before need, in this sweep
    """

    def __init__(self, looped: LoopedMaximal, name: str, inputs: tuple[str, ...]) -> None:
        self.looped, self.links = looped, looped.links
        self.machine, self.model = looped.machine, looped.model
        self.calls = Calls(name)
        sizes = {"x": self.model.nx, "joint_force": self.machine.nv}
        self.inputs = {
            key: self.calls.input(key, (sizes.get(key, self.model.nv),)) for key in inputs
        }
        if "joint_force" in inputs and "force" not in inputs:
            self.inputs["force"] = self.calls.zeros(self.model.nv)
        self._blocks: dict[str, dict[int, Block]] = {}
        self._own: set[tuple[str, int]] = set()
        self._wrenches = self._connections() if {"v", "force"} <= self.inputs.keys() else {}

    def inwards(self, *steps: Callable[[int], None]) -> None:
        """Run the steps for every body, tips first."""
        for i in reversed(range(len(self.links))):
            for step in steps:
                step(i)

    def outwards(self, *steps: Callable[[int], None]) -> None:
        """Run the steps for every body, base first."""
        for i in range(len(self.links)):
            for step in steps:
                step(i)

    # ------------------------------------------------------------------ steps

    def factor(self, i: int) -> None:
        """Eliminate body i from the mass matrix."""
        kind, parent = self._class(i), self.links[i].parent
        self._place(i)
        if parent >= 0:
            self._place(parent)
        below, before, outputs = self._passed("inertia", i, HALF)
        outputs = [
            self._new("joint", i, kind.joint_size),
            self._new("passing", i, kind.passing_size),
            *outputs,
        ]
        frames = [self._of("frame", parent, FRAME), self._of("frame", i, FRAME)]
        self._call(kind.factor, i, [*frames, self._kept(i), below, before], outputs)
        self._done("inertia", i, below, before)

    def motion(self, i: int) -> None:
        """Find bias and joint force of joint i, with motor forces if they are an input."""
        kind, link = self._class(i), self.links[i]
        motors = self.inputs.get("joint_force")
        motor = self.calls.zeros(link.kind.nv) if motors is None else motors[link.v]
        twists = [self._of("twist", link.parent, TWIST), self._of("twist", i, TWIST)]
        inputs = [self._blocks["joint"][i], self._blocks["passing"][i], *twists, motor]
        outputs = [self._new("bias", i, kind.bias_size), self._new("force", i, link.kind.nv)]
        self._call(kind.motion, i, inputs, outputs)

    def eliminate(self, i: int) -> None:
        """Eliminate body i from the right side."""
        kind = self._class(i)
        below, before, outputs = self._passed("shown", i, TWIST)
        names = ("joint", "passing", "bias", "load")
        inputs = [*(self._blocks[name][i] for name in names), below, self._blocks["force"][i]]
        outputs = [self._new("offset", i, kind.offset_size), *outputs]
        self._call(kind.inward, i, [*inputs, before], outputs)
        self._done("shown", i, below, before)

    def accelerate(self, i: int, result: Block) -> None:
        """Find the acceleration of link i, and of the body into its place in `result` (6N)."""
        kind, own = self._class(i), _six(result, i)
        above = self._of("acceleration", self.links[i].parent, TWIST)
        inputs = [*(self._blocks[name][i] for name in ("joint", "bias", "offset")), above]
        if kind.aligned:
            self._set("acceleration", i, own)
            outputs = [own]
        else:
            outputs = [self._new("acceleration", i, TWIST), own]
        self._call(kind.outward, i, inputs, outputs)

    def take(self, name: str, i: int, given: Block) -> None:
        """Take the "acceleration" or "twist" of body i from its place in `given` (6N)."""
        kind, own = self._class(i), _six(given, i)
        if kind.aligned:
            self._set(name, i, own)
        else:
            self._call(kind.twist_to_link, i, [own], [self._new(name, i, TWIST)])

    def load(self, i: int, wrench: Block) -> None:
        """Let nothing act but the wrench on body i at its place in `wrench` (6N)."""
        kind, own = self._class(i), _six(wrench, i)
        if kind.aligned:
            self._set("load", i, own)
        else:
            self._call(kind.wrench_to_link, i, [own], [self._new("load", i, TWIST)])
        self._set("force", i, self.calls.zeros(self.links[i].kind.nv))
        self._set("bias", i, self.calls.zeros(kind.bias_size))

    def momentum(self, i: int) -> None:
        """Let nothing act but what would stop body i and its rotors at once, backwards."""
        kind, link = self._class(i), self.links[i]
        twists = [self._of("twist", link.parent, TWIST), self._of("twist", i, TWIST)]
        outputs = [self._new("load", i, TWIST), self._new("force", i, link.kind.nv)]
        self._call(kind.momentum, i, [self._blocks["joint"][i], *twists], outputs)
        self._set("bias", i, self.calls.zeros(kind.bias_size))

    def carry(self, i: int, result: Block | None) -> None:
        """Find the wrench of joint i, in joint axes into its place in `result` (6N)."""
        kind = self._class(i)
        below, before, outputs = self._passed("carried", i, TWIST)
        turned = self.calls.block(TWIST) if result is None else _six(result, i)
        inputs = [self._blocks[name][i] for name in ("joint", "acceleration", "load")]
        outputs = [self._new("wrench", i, TWIST), turned, *outputs]
        self._call(kind.wrench, i, [*inputs, below, before], outputs)
        self._done("carried", i, below, before)
        if result is None:
            self.calls.release(turned)

    def drive(self, i: int, result: Block) -> None:
        """Find the force of motor i into its place in `result` (nv)."""
        kind, link = self._class(i), self.links[i]
        if not link.kind.nv:
            return
        above = self._of("acceleration", link.parent, TWIST)
        inputs = [self._blocks[name][i] for name in ("joint", "bias", "wrench")]
        own = [self._blocks[name][i] for name in ("acceleration", "force")]
        self._call(kind.motor, i, [*inputs, above, *own], [result[link.v]])

    def forget(self, i: int) -> None:
        """Let go of what only the steps of one inward sweep need of body i."""
        for name in ("frame", "twist", "load", "passing", "force", "wrench"):
            block = self._blocks.get(name, {}).pop(i, None)
            if block is not None and (name, i) in self._own:
                self.calls.release(block)

    # ------------------------------------------------------------------ pieces

    def _place(self, i: int) -> None:
        """Find frame, twist and load of link i, or the frame alone, if they are not there yet."""
        if i in self._blocks.get("frame", {}):
            return
        if not {"v", "force"} <= self.inputs.keys():
            self._call(self._class(i).frame, i, [self._pose(i)], [self._new("frame", i, FRAME)])
            return
        extra = self._wrenches.get(i) or self.calls.zeros(TWIST)
        given = [_six(self.inputs[name], i) for name in ("v", "force")]
        sizes = {"frame": FRAME, "twist": TWIST, "load": TWIST}
        outputs = [self._new(name, i, size) for name, size in sizes.items()]
        self._call(self._class(i).body, i, [self._pose(i), *given, extra], outputs)

    def _passed(self, name: str, i: int, size: int) -> tuple[Block, Block, list[Block]]:
        """Return what children passed to i, siblings to its parent, and where i adds its own."""
        passed, parent = self._blocks.setdefault(name, {}), self.links[i].parent
        zeros = self.calls.zeros(size)
        outputs = [self.calls.block(size)] if parent >= 0 else []
        return passed.get(i, zeros), passed.get(parent, zeros), outputs

    def _done(self, name: str, i: int, below: Block, before: Block) -> None:
        """Let go of what was added up; the latest output is what the parent has so far."""
        passed, parent = self._blocks[name], self.links[i].parent
        for key, block in ((i, below), (parent, before)):
            if passed.get(key) is block:
                self.calls.release(passed.pop(key))
        if parent >= 0:
            passed[parent] = self.calls.latest[-1]

    def _new(self, name: str, i: int, size: int) -> Block:
        block = self.calls.block(size)
        self._set(name, i, block)
        self._own.add((name, i))
        return block

    def _set(self, name: str, i: int, block: Block) -> None:
        self._blocks.setdefault(name, {})[i] = block

    def _of(self, name: str, i: int, size: int) -> Block:
        """Return a block of body i, zeros for the world."""
        return self.calls.zeros(size) if i < 0 else self._blocks[name][i]

    def _class(self, i: int) -> BodyClass:
        return self.looped.classes[i]

    def _connections(self) -> dict[int, Block]:
        """Add up the wrenches of springs, dampers and fluid on the bodies, by body."""
        machine, found = self.machine, {}
        immersed = machine.fluid.immersed if machine.fluid is not None else ()
        functions: dict[tuple, ca.Function] = {}
        for kind, parts in (
            ("spring", machine.springs),
            ("damper", machine.dampers),
            ("immersed", immersed),
        ):
            for part in parts:
                frames = [machine.frame(getattr(part, name)) for name in part.frame_fields]
                bodies = [machine.body_index[frame.body] for frame in frames]
                bodies = list(dict.fromkeys(i for i in bodies if i >= 0))
                key = (kind, *_likeness(part, frames))
                if key not in functions:
                    functions[key] = connection_function(machine, part, kind)
                inputs, outputs = [], []
                for i in bodies:
                    before = found.get(i) or self.calls.zeros(TWIST)
                    inputs += [self._pose(i), _six(self.inputs["v"], i), before]
                    outputs.append(self.calls.block(TWIST))
                self.calls.call(functions[key], inputs, outputs)
                for i in bodies:
                    if i in found:
                        self.calls.release(found[i])
                found.update(zip(bodies, outputs, strict=True))
        return found

    def _call(self, function: ca.Function, i: int, inputs: list, outputs: list[Block]) -> None:
        numbers = self.looped.classes[i].numbers(i)
        self.calls.call(function, [*inputs, Constant(numbers)] if numbers else inputs, outputs)

    def _pose(self, i: int) -> Block:
        return self.inputs["x"][POSE * i : POSE * (i + 1)]

    def _kept(self, i: int) -> Block:
        if i in self.model.kept:
            return self.inputs["x"][self.model.kept[i]]
        return self.calls.zeros(0)


def _six(block: Block, i: int) -> Block:
    return block[TWIST * i : TWIST * (i + 1)]


def _likeness(part, frames) -> tuple:
    """Return what parts that share a function have in common: numbers, and how frames lie."""
    poses = tuple((frame.body == "world", plain(frame.pose)) for frame in frames)
    alone = len({frame.body for frame in frames}) < len(frames)
    values = tuple(
        plain(value)
        for name, value in vars(part).items()
        if name not in ("name", *part.frame_fields)
    )
    return (type(part).__name__, alone, poses, values)
