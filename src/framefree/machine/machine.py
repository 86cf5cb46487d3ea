"""The machine: its description, its states and inputs, and other machines made from it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Any

import casadi
import numpy as np

from framefree.machine import edit, state
from framefree.machine.body import WORLD
from framefree.machine.description import Description
from framefree.machine.joint import Joint
from framefree.machine.layouts import EngineLayout, layout
from framefree.machine.parameters import Parameters
from framefree.machine.part import plain, set_field
from framefree.machine.problems import MachineError
from framefree.machine.record import VERSION, decoded, encoded
from framefree.machine.tree import unknown


class Machine(Description):
    """A rigid-body machine: a tree of bodies and joints, loops that close it, and what acts on it.

    Bodies and joints are stored in depth-first order, parents before children: `joints[i]` moves
    `bodies[i]`, and `parent[i]` is the index of its parent body, -1 for the world.

    Parameters
    ----------
    bodies, joints : sequence of Body, Joint
        Each body is the child of exactly one joint. The world is not a body; its name is "world".
    frames : sequence of Frame
    springs, dampers, loops, couplings, actuators, tendons, interactions : sequences
    gravity : (3,)
        Acceleration of free fall in world axes, m/s^2.
    fluid : Fluid or None
    name : str
    geometry : sequence of Shape
        What the viewer draws.
    collisions : sequence of CollisionShape, CollisionExclusion, CollisionSolver
        What a model file says of contact, for an engine that solves it itself.
    keyframes : sequence of Keyframe
    remarks, ignored : sequence of str
        Notes of a reader: what is wrong but was read, and what was left out and does not move
        anything.

    Raises
    ------
    MachineError
        Listing everything that is wrong.
    """

    def __repr__(self) -> str:
        name = f"{self.name!r}, " if self.name else ""
        return f"Machine({name}{len(self.bodies)} bodies, nx={self.nx}, nv={self.nv}, nu={self.nu})"

    # ------------------------------------------------------------------ states

    def neutral(self) -> np.ndarray:
        """Return the configuration (nx,) in which every joint is neutral."""
        return np.concatenate([np.zeros(0), *(joint.kind.neutral for joint in self.joints)])

    def random(self, rng: "np.random.Generator", batch: int | None = None) -> np.ndarray:
        """Return a random configuration (nx,), or (batch, nx), within the joints' limits."""
        if not isinstance(rng, np.random.Generator | np.random.RandomState):
            raise MachineError(
                f"`rng` must be a generator of NumPy, such as np.random.default_rng(0), got {rng!r}"
            )
        count = 1 if batch is None else batch
        x = np.hstack([np.zeros((count, 0)), *(joint.sample(rng, count) for joint in self.joints)])
        return x[0] if batch is None else x

    def integrate(self, x: Any, dv: Any) -> Any:
        """Move x by dv (velocity times time step) on the joints' groups.

        NumPy arrays, (n,) or (batch, n), or casadi columns.
        """
        return self._on_states(state.integrate, (self.nx, self.nv), x, dv)

    def difference(self, x0: Any, x1: Any) -> Any:
        """Return the shortest dv with integrate(x0, dv) = x1; arrays as for `integrate`."""
        return self._on_states(state.difference, (self.nx, self.nx), x0, x1)

    def normalise(self, x: Any) -> Any:
        """Bring quaternions and (cos, sin) pairs of x back to unit length."""
        return self._on_states(state.normalise, (self.nx,), x)

    def rate_matrix(self, x: Any) -> Any:
        """A(x) (nx x nv) of casadi columns: dx/dt = A v."""
        return state.rate_matrix(self._segments, x)

    def validate(self, x: Any, v: Any = None, *, limits: bool = False) -> None:
        """Raise `StateError` if x, or v, does not fit: shape, finite values, unit quaternions.

        With `limits` coordinates outside of their limits are refused too.
        """
        problems = state.problems_of(self._segments, x, v, self.nx, self.nv, limits=limits)
        problems.raise_if_any(state.StateError)

    def keyframe(self, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return x, v and u of a keyframe."""
        frames = {keyframe.name: keyframe for keyframe in self.keyframes}
        if name not in frames:
            raise MachineError(unknown("keyframe", name, frames))
        x, v, u = self.neutral(), np.zeros(self.nv), np.zeros(self.nu)
        for target, slices, pairs in (
            (x, self.x_slice, frames[name].x),
            (v, self.v_slice, frames[name].v),
            (u, self.u_slice, frames[name].u),
        ):
            for part, values in pairs:
                target[slices[part]] = values
        return x, v, u

    def layout(self, engine: str, order: Sequence[str] | None = None) -> EngineLayout:
        """Return the conversion of states to and from "pinocchio" or "mujoco".

        `order` lists our joints in the order in which the other engine has them.
        """
        return layout(self, engine, order)

    # ------------------------------------------------------------------ inputs

    @cached_property
    def input_limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds of the inputs, (nu,) each; infinite where there are none."""
        empty = np.zeros(0)
        return (
            np.concatenate([empty, *(actuator.lower for actuator in self.actuators)]),
            np.concatenate([empty, *(actuator.upper for actuator in self.actuators)]),
        )

    @cached_property
    def command_limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of what is commanded, (nu,) each: of activations where inputs follow them."""
        lower, upper = (np.array(side) for side in self.input_limits)
        for actuator in self.actuators:
            if actuator.activation is not None:
                lower[self.u_slice[actuator.name]] = actuator.activation.command_lower
                upper[self.u_slice[actuator.name]] = actuator.activation.command_upper
        return lower, upper

    @cached_property
    def input_polytope(self) -> tuple[np.ndarray, np.ndarray]:
        """All limits of the inputs as A u <= b: A (rows, nu) and b (rows,)."""
        lower, upper = self.input_limits
        one = np.eye(self.nu)
        above, below = np.isfinite(upper), np.isfinite(lower)
        rows, sides = [one[above], -one[below]], [upper[above], -lower[below]]
        for actuator in self.actuators:
            A, b = actuator.polytope
            wide = np.zeros((len(b), self.nu))
            wide[:, self.u_slice[actuator.name]] = A
            rows.append(wide)
            sides.append(b)
        return np.vstack(rows), np.concatenate(sides)

    # ------------------------------------------------------------------ other machines from this

    def replace(self, name: str | None = None, /, **changes: Any) -> "Machine":
        """Return the machine with fields of one part changed.

        Parameters
        ----------
        name : str
            The part; "joint:elbow" where several have the name. Without, fields of the machine
            itself are changed: gravity, fluid, name.
        **changes
            Fields of the part. For a body also mass, center, inertia_at_center, and `length`,
            which moves the outgoing joints and frames (see `framefree.machine.paths`). A joint of
            another kind forgets its limits, friction and spring, which belong to its coordinates.
            A new `name` is followed by everything that refers to the part.
        """
        if name is None:
            known = {field.name for field in fields(self)}
            wrong = [word for word in changes if word not in known]
            if wrong:
                raise MachineError(unknown("a field of the machine:", wrong[0], known))
            return self._edited(lambda m: changes)
        machine = self
        if "length" in changes and name in self._lengthy:
            path, length = f"{name}.length", changes.pop("length")
            machine = self._edited(lambda m: _tunable().set_values(m, {path: length}))
        return machine._edited(lambda m: edit.changed(m, name, changes)) if changes else machine

    def attach(self, *parts: Any) -> "Machine":
        """Return the machine with parts added: bodies with their joints, frames, springs, ...."""
        return self._edited(lambda m: edit.attached(m, parts))

    def detach(self, *names: str) -> "Machine":
        """Return the machine without these parts.

        A body or joint is removed with all its descendants, and with everything that refers to one
        of them: frames, springs, dampers, loops, couplings, actuators.
        """
        return self._edited(lambda m: edit.detached(m, names))

    def merge(
        self, other: "Machine", prefix: str = "", at: str = WORLD, pose: Any = None
    ) -> "Machine":
        """Return this machine and another as one.

        Parameters
        ----------
        other : Machine
        prefix : str
            Put before all names of the other.
        at : str
            Frame of this machine on which the other's world is placed.
        pose : pose
            The other's world seen from that frame; default the identity.
        """
        if not isinstance(other, Machine):
            raise MachineError(f"`other` must be a Machine, got {other!r}")
        base, theirs = self.numeric, other.numeric
        joined = replace(base, **edit.merged(base, theirs, prefix, at, pose))
        paths = [path for path in self.parameters.names]
        paths += [edit.prefixed_path(path, prefix) for path in other.parameters.names]
        return joined.tunable(*paths)

    @property
    def closed(self) -> bool:
        """Whether loops or couplings constrain the tree of joints."""
        return bool(self.loops or self.couplings)

    @cached_property
    def tree(self) -> "Machine":
        """The machine without loops and couplings: itself where it has none.

        Tunable numbers stay the same symbols; those that belong to loops and couplings are gone.
        """
        if not self.closed:
            return self
        tree = replace(self, loops=(), couplings=())
        if len(self.parameters):
            set_field(tree, "parameters", self.parameters.only(_tunable().of_tree(self)))
            set_field(tree, "_numeric_form", self.numeric.tree)
        return tree

    def lock(self, joint: str, value: Any = None) -> "Machine":
        """Return the machine with a joint held at a value (nx), by default its neutral one.

        The joint loses its coordinates. Actuators on it keep their inputs, which then do nothing.
        """
        return self._edited(lambda m: edit.locked(m, joint, value))

    def unlock(self, joint: str) -> "Machine":
        """Return the machine with a locked joint free again."""
        return self._edited(lambda m: edit.unlocked(m, joint))

    # ------------------------------------------------------------------ parameters

    @cached_property
    def parameters(self) -> Parameters:
        """The tunable numbers; none unless `tunable` was called."""
        return Parameters()

    @property
    def numeric(self) -> "Machine":
        """The machine with every parameter at its default: itself where none is tunable."""
        return self.__dict__.get("_numeric_form", self)

    def tunable(self, *paths: str) -> "Machine":
        """Return the machine with these numbers as symbols, added to those that are already.

        The paths, such as "load.mass" or "arm.length", are listed in `framefree.machine.paths`.
        Equations of the new machine take `machine.parameters` as further arguments, so that other
        values need no new compilation.
        """
        base = self.numeric
        names = tuple(dict.fromkeys((*self.parameters.names, *paths)))
        if not names:
            return base
        parameters = _tunable().parameters(base, names)
        symbols = dict(zip(names, casadi.vertsplit(parameters.symbols), strict=True))
        machine = replace(base, **_tunable().set_values(base, symbols))
        set_field(machine, "parameters", parameters)
        set_field(machine, "_numeric_form", base)
        return machine

    def with_parameters(
        self, values: Mapping[str, float] | Sequence[float] | None = None
    ) -> "Machine":
        """Return the machine in numbers, with these values of its parameters or their defaults."""
        base, vector = self.numeric, self.parameters.values(values)
        settings = _tunable().changed(self, vector.tolist())
        return replace(base, **_tunable().set_values(base, settings)) if settings else base

    def _edited(self, fields_of: Callable[["Machine"], dict[str, Any]]) -> "Machine":
        """Edit the numbers, then make tunable again what was."""
        base = self.numeric
        machine = replace(base, **fields_of(base))
        return machine.tunable(*self.parameters.names)

    @cached_property
    def _lengthy(self) -> set[str]:
        names = [body.name for body in self.bodies]
        return {*names, *(f"body:{name}" for name in names)}

    # ------------------------------------------------------------------ where it is

    def forward_kinematics(self, x: Any, frame: str | None = None, parameters: Any = None) -> Any:
        """Return the pose (4, 4) of a frame or body in the world, or all poses by name.

        x is one configuration (nx,) or many, (batch, nx), which give (batch, 4, 4); `parameters`
        are values of tunable numbers. Loops and couplings are not looked at.
        """
        from framefree.motion.forward_kinematics import forward_kinematics

        return forward_kinematics(self, x, frame, parameters)

    # ------------------------------------------------------------------ as data

    def show(self, **options: Any) -> Any:
        """Show the machine in a page of the browser, with sliders; see `framefree.view`."""
        # A step towards who looks at machines, taken when it is asked for.
        from framefree.look.view import view

        return view(self, **options)

    def to_mjcf(self, *, without: Any = (), meshes: bool = False) -> str:
        """Return the machine as MJCF text; what the format cannot say is refused by name.

        `without` names elements to leave out although they change the motion, such as "spring".
        """
        from framefree.machine.formats.write_mjcf import to_mjcf

        return to_mjcf(self, without=without, meshes=meshes)

    def to_urdf(self, *, without: Any = ()) -> str:
        """Return the machine as URDF text; what the format cannot say is refused by name."""
        from framefree.machine.formats.write_urdf import to_urdf

        return to_urdf(self, without=without)

    def to_dict(self) -> dict[str, Any]:
        """Return the machine as plain data that JSON can hold; `from_dict` reads it.

        Custom joints, couplings and interactions by the user's own functions cannot be written
        down and are refused.
        """
        base = self.numeric
        items = {field.name: encoded(getattr(base, field.name)) for field in fields(base)}
        return {"framefree_machine": VERSION, **items, "tunable": list(self.parameters.names)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Machine":
        """Return the machine that `to_dict` described."""
        items = dict(data)
        version = items.pop("framefree_machine", None)
        if version != VERSION:
            raise MachineError(f"expected a machine of format {VERSION}, got {version!r}")
        paths = items.pop("tunable", ())
        known = {field.name for field in fields(cls)}
        for name in items:
            if name not in known:
                raise MachineError(unknown("a field of the machine:", name, known))
        return cls(**{name: decoded(item) for name, item in items.items()}).tunable(*paths)

    def __reduce__(self) -> tuple:
        state_of = {field.name: getattr(self.numeric, field.name) for field in fields(self)}
        return _restored, (state_of, self.parameters.names)

    def _key(self) -> tuple:
        return self._cached_key

    @cached_property
    def _cached_key(self) -> tuple:
        return (plain(self.numeric), self.parameters.names)

    @cached_property
    def _segments(self) -> tuple[tuple[Joint, slice, slice], ...]:
        return tuple((j, self.x_slice[j.name], self.v_slice[j.name]) for j in self.joints)

    @cached_property
    def _compiled(self) -> dict[Callable, Callable]:
        return {}

    def _on_states(self, function: Callable, sizes: tuple[int, ...], *values: Any) -> Any:
        if any(isinstance(value, casadi.SX | casadi.DM | casadi.MX) for value in values):
            return function(self._segments, *values)
        if function not in self._compiled:
            segments = self._segments
            self._compiled[function] = state.numeric(lambda *args: function(segments, *args), sizes)
        return self._compiled[function](*values)


def _restored(items: dict[str, Any], paths: tuple[str, ...]) -> Machine:
    """Return a machine from its fields; for pickle."""
    return Machine(**items).tunable(*paths)


def _tunable():
    """Return the module on tunable numbers, which most machines do not have."""
    from framefree.machine import tunable

    return tunable
