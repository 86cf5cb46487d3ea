"""Things that happen during a run: grasp, release, other parameters, another machine or law.

An event takes the `Scene` before it and gives the one after it. It happens at the first step (or
control period) at or after its time, and is recorded. The joints of the machine stay the same ones:
what is let go was held by a loop, see `Grasp` and `Release`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from framefree.control.law import AnyLaw
from framefree.control.references.base import Reference
from framefree.machine import Loop, Machine, MachineError
from framefree.motion.constrained import Constrained
from framefree.motion.constrained.states import numbers
from framefree.motion.tree import Tree
from framefree.simulate.errors import SimulationError


@dataclass(frozen=True)
class Scene:
    """What is simulated from some time on, and the state (of the joints) at that time.

    `parameters` and `law_parameters` are values of the tunable numbers of the plant and of the
    law's machine.
    """

    machine: Machine
    law: AnyLaw | None
    reference: Reference | None
    parameters: np.ndarray
    law_parameters: np.ndarray
    x: np.ndarray
    v: np.ndarray


@dataclass(frozen=True)
class Event(ABC):
    """Base of all events.

    Parameters
    ----------
    time : float
        s.
    """

    time: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.time) and self.time >= 0):
            raise SimulationError(f"an event needs a time from 0 s on, got {self.time}")

    @property
    def held(self) -> Sequence[str] | None:
        """Joints that stay where loops must be closed again; None for those that are driven."""
        return None

    @abstractmethod
    def after(self, scene: Scene) -> Scene:
        """Return the scene after the event."""


@dataclass(frozen=True)
class Change(Event):
    """Another machine with the same joints, another law, another reference; None keeps what is.

    Parameters
    ----------
    time : float
    machine : Machine
        For instance with a body exchanged. If its tunable numbers are others, they have their
        defaults.
    law : Law or NumericLaw, or callable
        Or a function from the `Scene` at that time to one: for a law that needs to know what is
        held then, and where.
    reference : Reference, or callable
        Likewise.
    hold : sequence of str, optional
        Joints that stay where the new machine's loops must be closed again; by default those that
        are driven, as far as the loops let them. See `framefree.simulate.reclosing`.
    """

    machine: Machine | None = None
    law: AnyLaw | Callable[[Scene], AnyLaw] | None = None
    reference: Reference | Callable[[Scene], Reference] | None = None
    hold: tuple[str, ...] | None = None

    @property
    def held(self) -> Sequence[str] | None:
        """Joints that stay."""
        return self.hold

    def after(self, scene: Scene) -> Scene:
        """Return the scene with what is given."""
        changes: dict[str, Any] = {}
        if self.machine is not None:
            _check_joints(scene.machine, self.machine)
            changes["machine"] = self.machine
            if self.machine.parameters.names != scene.machine.parameters.names:
                changes["parameters"] = self.machine.parameters.values()
        now = replace(scene, **changes)
        if self.law is not None:
            law = self._made(self.law, AnyLaw, now)
            changes |= {"law": law, "law_parameters": law.machine.parameters.values()}
        if self.reference is not None:
            changes["reference"] = self._made(self.reference, Reference, now)
        return replace(scene, **changes)

    def _made(self, given: Any, kind: type, scene: Scene) -> Any:
        """Return a law or reference that is given, or that a function makes of the scene."""
        made = given if isinstance(given, kind) or not callable(given) else given(scene)
        if not isinstance(made, kind):
            raise SimulationError(
                f"the change at {self.time:g} s must give a {kind.__name__}, got "
                f"{type(made).__name__}"
            )
        return made


@dataclass(frozen=True)
class SetParameters(Event):
    """Other values of tunable numbers; nothing is compiled anew.

    Parameters
    ----------
    time : float
    plant, law : mapping of str to float
        New values in the plant, and in the law's machine. A law that was given the very machine
        that is the plant knows of its changes.
    hold : sequence of str, optional
        Joints that stay where new lengths open loops, which are then closed again; by default those
        that are driven, as far as the loops let them. See `framefree.simulate.reclosing`.
    """

    plant: Mapping[str, float] | None = None
    law: Mapping[str, float] | None = None
    hold: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("plant", "law"):
            given = getattr(self, name)
            if not (given is None or isinstance(given, Mapping)):
                raise SimulationError(
                    f"`{name}` of SetParameters must map names of tunable numbers to values, such "
                    f"as {{'load.mass': 2.0}}, got {given!r}"
                )

    @property
    def held(self) -> Sequence[str] | None:
        """Joints that stay."""
        return self.hold

    def after(self, scene: Scene) -> Scene:
        """Return the scene with these values."""
        changes = {}
        if self.plant:
            changes["parameters"] = _set(scene.machine, scene.parameters, self.plant)
            if scene.law is not None and scene.law.machine is scene.machine:
                changes["law_parameters"] = changes["parameters"]
        if self.law:
            if scene.law is None:
                raise SimulationError("there is no law whose parameters could be set")
            changes["law_parameters"] = _set(scene.law.machine, scene.law_parameters, self.law)
        return replace(scene, **changes)


@dataclass(frozen=True)
class Grasp(Event):
    """Two frames are held together from now on, where they are, by a new loop.

    Velocities jump as in a plastic impact: by the smallest change, in the metric of the mass
    matrix, that stops the motion between the frames.

    Parameters
    ----------
    time : float
    frame_a, frame_b : str
    name : str
        Of the loop, for `Release`.
    kind : "weld", "ball", "hinge" or "slider"
    axis : three numbers or "x", "y", "z", ...
        Of a hinge or slider, in the axes of frame b.
    """

    frame_a: str = ""
    frame_b: str = ""
    name: str = "grasp"
    kind: str = "weld"
    axis: Any = None

    def after(self, scene: Scene) -> Scene:
        """Return the scene with the loop."""
        if self.kind not in ("weld", "ball", "hinge", "slider"):
            raise SimulationError(
                'the kind of a grasp must be "weld", "ball", "hinge" or "slider", got '
                f"{self.kind!r}"
            )
        if scene.x.ndim > 1:
            raise SimulationError(
                "a grasp needs a single trajectory: its loop depends on the state"
            )
        now = scene.machine.with_parameters(scene.parameters.tolist())
        tree = Tree(now.tree)
        poses = [
            numbers(tree, f"frame_pose:{frame}", x=scene.x)[0]
            for frame in (self.frame_a, self.frame_b)
        ]
        rest = np.linalg.inv(poses[0]) @ poses[1]
        machine = scene.machine.attach(
            Loop(self.name, self.kind, self.frame_a, self.frame_b, axis=self.axis, rest=rest)
        )
        held = Constrained(machine).project(
            scene.x, scene.v, limits=False, parameters=scene.parameters
        )
        return replace(scene, machine=machine, x=held.x, v=held.v)


@dataclass(frozen=True)
class Release(Event):
    """A loop lets go.

    Parameters
    ----------
    time : float
    loop : str
    """

    loop: str = "grasp"

    def after(self, scene: Scene) -> Scene:
        """Return the scene without the loop."""
        if self.loop not in [loop.name for loop in scene.machine.loops]:
            known = ", ".join(f"`{loop.name}`" for loop in scene.machine.loops) or "none"
            raise SimulationError(f"there is no loop `{self.loop}` to release; loops: {known}")
        return replace(scene, machine=scene.machine.detach(self.loop))


def _check_joints(old: Machine, new: Machine) -> None:
    if (old.x_names, old.v_names, old.u_names) != (new.x_names, new.v_names, new.u_names):
        raise MachineError(
            "the machine after an event must have the joints and inputs of the one before: hold "
            "what is to be let go by a loop, and release that"
        )


def _set(machine: Machine, values: np.ndarray, changes: Mapping[str, float]) -> np.ndarray:
    machine.parameters.values(changes)  # refuses names that are not there
    result = np.array(values)
    for name, value in changes.items():
        result[..., machine.parameters.names.index(name)] = value
    return result
