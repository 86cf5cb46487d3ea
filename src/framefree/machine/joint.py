"""A joint of a machine: its kind, its place, its limits, and its spring and friction."""

from dataclasses import dataclass, field
from typing import Any

import casadi
import numpy as np

from framefree.machine.joints.base import JointKind
from framefree.machine.part import Part, checked_name, set_field
from framefree.machine.problems import MachineError, Problems
from framefree.machine.values import constant, is_symbolic, numbers, pose, scalar

FRICTION_WIDTH = 1e-2
"""Speed (rad/s or m/s) at which the smooth Coulomb law has reached tanh(1) = 76 percent."""

JOINT_NUMBERS = (
    "lower",
    "upper",
    "velocity_limit",
    "effort_limit",
    "effort_lower",
    "armature",
    "damping",
    "friction",
    "friction_asymmetry",
    "stiffness",
    "rest",
)
"""Fields of a joint with one number for each coordinate or velocity."""


@dataclass(frozen=True, eq=False)
class Joint(Part):
    """Connects body `child` to body `parent`.

    With joint coordinates x the pose of the child body seen from the parent body is

        G_parent_child = parent_pose  kind.pose(x)  child_pose^-1

    Parameters
    ----------
    name : str
    kind : JointKind
    parent, child : str
        Bodies; `parent` may be "world". A frame's name stands for its body, and its pose is then
        taken into `parent_pose` or `child_pose`.
    parent_pose, child_pose : pose
        The joint frame seen from the parent body and from the child body; default the identity.
    lower, upper : (nx,)
        Limits of the coordinates, rad or m. Joint limits are data for controllers and checks; the
        simulation does not enforce them.
    velocity_limit, effort_limit : (nv,)
        Largest speed and largest motor force, rad/s or m/s and Nm or N.
    effort_lower : (nv,), optional
        Least motor force where it is not minus the largest one, see `effort_range`.
    armature : (nv,)
        Inertia of the rotor seen through the gear, kg m^2 or kg; adds to the diagonal of the
        mass matrix.
    damping : (nv,)
        Viscous friction, Nm s/rad or N s/m.
    friction : (nv,)
        Coulomb friction, Nm or N: the mean of both directions.
    friction_asymmetry : (nv,)
        How much more of it there is forwards than in the mean, Nm or N; at most `friction`.
    friction_width : float
        Speed over which Coulomb friction changes sign, see `friction_force`.
    stiffness : (nv,)
        Joint spring, Nm/rad or N/m, see `spring_potential`.
    rest : (nx,)
        Configuration in which the joint spring is relaxed; default the neutral one.
    """

    name: str
    kind: JointKind
    parent: str
    child: str
    parent_pose: Any = None
    child_pose: Any = None
    lower: Any = -np.inf
    upper: Any = np.inf
    velocity_limit: Any = np.inf
    effort_limit: Any = np.inf
    armature: Any = 0.0
    damping: Any = 0.0
    friction: Any = 0.0
    friction_asymmetry: Any = 0.0
    friction_width: Any = FRICTION_WIDTH
    stiffness: Any = 0.0
    rest: Any = None
    effort_lower: Any = None
    source: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        checked_name(self.name, "a joint")
        if not isinstance(self.kind, JointKind):
            raise MachineError(
                f"the kind of joint `{self.name}` must be a joint kind such as Revolute('z'), "
                f"got {self.kind!r}"
            )
        problems = Problems()
        for end in ("parent", "child"):
            with problems.at():
                checked_name(getattr(self, end), f"the {end} of joint `{self.name}`")
        self._store_numbers(problems)
        problems.raise_if_any()
        self._check_ranges(problems)
        problems.raise_if_any()

    @property
    def nx(self) -> int:
        """Number of coordinates."""
        return self.kind.nx

    @property
    def nv(self) -> int:
        """Number of velocities."""
        return self.kind.nv

    @property
    def x_names(self) -> tuple[str, ...]:
        """Names of the coordinates: the joint's own, or "joint.part"."""
        return tuple(f"{self.name}.{part}" if part else self.name for part in self.kind.x_names)

    @property
    def v_names(self) -> tuple[str, ...]:
        """Names of the velocities: the joint's own, or "joint.part"."""
        return tuple(f"{self.name}.{part}" if part else self.name for part in self.kind.v_names)

    @property
    def has_spring(self) -> bool:
        """Whether the joint has a spring."""
        return is_symbolic(self.stiffness) or bool(np.any(self.stiffness))

    @property
    def has_friction(self) -> bool:
        """Whether the joint has Coulomb friction."""
        both = (self.friction, self.friction_asymmetry)
        return any(is_symbolic(one) or bool(np.any(one)) for one in both)

    @property
    def effort_range(self) -> tuple[np.ndarray, np.ndarray]:
        """Least and largest motor force, (nv,) each: `effort_lower` and `effort_limit`."""
        lower = -self.effort_limit if self.effort_lower is None else self.effort_lower
        return lower, self.effort_limit

    # Forces below stand on the left of M a + c + ... = B u: they resist.

    def spring_potential(self, x: Any) -> Any:
        """V = 1/2 d' K d with d = kind.difference(rest, x), K = diag(stiffness); J."""
        d = self.kind.difference(constant(self.rest), x)
        return casadi.dot(d, constant(self.stiffness) * d) / 2

    def spring_force(self, x: Any) -> Any:
        """Gradient of `spring_potential` along the velocities (nv): dV/dt = v . spring_force."""
        rest = constant(self.rest)
        pull = constant(self.stiffness) * self.kind.difference(rest, x)
        return self.kind.difference_rate(rest, x).T @ pull

    def damping_force(self, v: Any) -> Any:
        """Viscous friction (nv): damping v."""
        return constant(self.damping) * v

    def friction_force(self, v: Any) -> Any:
        """Coulomb friction (nv), smooth through rest: friction s + friction_asymmetry s^2.

        Here s = tanh(v / friction_width), so that it is friction + friction_asymmetry forwards and
        friction - friction_asymmetry backwards.
        It never holds a load still: below the width it is a viscous friction of friction /
        friction_width.
        """
        sign = casadi.tanh(v / self.friction_width)
        force = constant(self.friction) * sign
        asymmetry = self.friction_asymmetry
        if is_symbolic(asymmetry) or np.any(asymmetry):
            force += constant(asymmetry) * sign**2
        return force

    def sample(self, rng: "np.random.Generator", count: int) -> np.ndarray:
        """Return random configurations (count, nx), within the joint's limits.

        Coordinates with two finite limits are spread evenly between them.
        """
        x = self.kind.sample(rng, count)
        for i in np.flatnonzero(np.isfinite(self.lower) & np.isfinite(self.upper)):
            x[:, i] = rng.uniform(self.lower[i], self.upper[i], count)
        return np.clip(x, self.lower, self.upper)

    def random(self, rng: "np.random.Generator") -> np.ndarray:
        """Return one random configuration (nx), within the joint's limits."""
        return self.sample(rng, 1)[0]

    def _store_numbers(self, problems: Problems) -> None:
        nx, nv = self.kind.nx, self.kind.nv
        limits = {"lower": nx, "upper": nx, "velocity_limit": nv, "effort_limit": nv}
        for name, size in limits.items():
            with problems.at():
                value = numbers(getattr(self, name), (size,), self._words(name), finite=False)
                set_field(self, name, value)
        if self.effort_lower is not None:
            with problems.at():
                what = self._words("effort_lower")
                value = numbers(self.effort_lower, (nv,), what, finite=False)
                same = np.array_equal(value, -np.asarray(self.effort_limit))
                set_field(self, "effort_lower", None if same else value)
        for name in ("armature", "damping", "friction", "friction_asymmetry", "stiffness"):
            with problems.at():
                set_field(self, name, numbers(getattr(self, name), (nv,), self._words(name)))
        for name in ("parent_pose", "child_pose"):
            with problems.at():
                set_field(self, name, pose(getattr(self, name), self._words(name)))
        rest = self.kind.neutral if self.rest is None else self.rest
        with problems.at():
            set_field(self, "rest", numbers(rest, (nx,), self._words("rest")))
        with problems.at():
            set_field(
                self, "friction_width", scalar(self.friction_width, self._words("friction_width"))
            )

    def _check_ranges(self, problems: Problems) -> None:
        if not (is_symbolic(self.lower) or is_symbolic(self.upper)):
            for name, low, high in zip(self.x_names, self.lower, self.upper, strict=True):
                if low > high:
                    problems.add(
                        f"the limits of `{name}` are inverted: `lower` {low:.6g} exceeds "
                        f"`upper` {high:.6g}"
                    )
            self._check_unit_blocks(problems)
        not_negative = ["armature", "damping", "friction", "velocity_limit"]
        if self.effort_lower is None:
            not_negative.append("effort_limit")
        elif (self.effort_lower > self.effort_limit).any():
            problems.add(
                f"{self._words('effort_lower')} exceeds `effort_limit`: "
                f"{self.effort_lower.tolist()} and {self.effort_limit.tolist()}"
            )
        for name in not_negative:
            value = getattr(self, name)
            if not is_symbolic(value) and (value < 0).any():
                problems.add(f"{self._words(name)} must not be negative, got {value.tolist()}")
        both = (self.friction, self.friction_asymmetry)
        if not any(map(is_symbolic, both)) and (np.abs(both[1]) > np.abs(both[0])).any():
            problems.add(
                f"{self._words('friction_asymmetry')} must not exceed `friction`, or it would "
                f"drive the joint: got {both[1].tolist()} with `friction` {both[0].tolist()}"
            )
        if not is_symbolic(self.friction_width) and self.friction_width <= 0:
            problems.add(
                f"{self._words('friction_width')} must be positive, got {self.friction_width}"
            )
        if self.has_spring and not self.kind.springy:
            problems.add(
                f"joint `{self.name}`: `stiffness` has no meaning for a "
                f"{type(self.kind).__name__} joint; "
                "place a Spring between the two bodies instead"
            )

    def _check_unit_blocks(self, problems: Problems) -> None:
        for block in self.kind.unit_blocks:
            if np.isfinite(self.lower[block]).any() or np.isfinite(self.upper[block]).any():
                names = ", ".join(f"`{name}`" for name in self.x_names[block])
                problems.add(f"joint `{self.name}`: {names} cannot have limits")
            length = float(np.linalg.norm(self.rest[block])) if not is_symbolic(self.rest) else 1.0
            if abs(length - 1.0) > 1e-9:
                problems.add(
                    f"{self._words('rest')} must have unit length in {self.x_names[block]}, got "
                    f"{length:.6g}"
                )

    def _words(self, name: str) -> str:
        return f"`{name}` of joint `{self.name}`"
