"""Which velocities a law commands: ``v = N(x) w + drift`` with w the velocities of some joints.

A vehicle with thrusters moves as it likes, N = I. One that floats in space turns as its arm moves,
one on wheels goes where they roll: joints that nobody drives follow those that are driven. In the
velocities w that are left the equations keep their form and their properties,

    M_w = N^T M N,    C_w = N^T (M dN/dt + C N),    dM_w/dt - 2 C_w skew where dM/dt - 2 C is.

To add a kind of freedom, subclass `Freedom` and give ``independent(machine)``, ``basis(state)``
and, where v is not N w alone, ``drift(state, N, measured)``; ``measures`` where sensors tell it;
``commanded(machine)`` where of a joint some velocities are among w and others not.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.geometry import se3
from framefree.machine import WORLD, Machine
from framefree.machine.joints import Free
from framefree.motion.actuation import directions
from framefree.motion.constrained.rows import Nonholonomic
from framefree.motion.spatial import Matrix, solve_symmetric
from framefree.motion.tree import Tree
from framefree.motion.tree.state import TreeState


class Freedom(ABC):
    """Base of the kinds of freedom; see the top of this file."""

    by_inertia: ClassVar[bool] = False
    """Whether N depends on masses and inertias, so that these must be known."""

    def check(self, machine: Machine) -> None:  # noqa: B027, some fit every machine
        """Raise `ControlError` where a machine is not of this kind."""

    @abstractmethod
    def independent(self, machine: Machine) -> tuple[str, ...]:
        """Names of the joints that have velocities among w, in the machine's order."""

    def commanded(self, machine: Machine) -> list[int]:
        """Return where w stands in v: by default all velocities of the independent joints."""
        slices = [machine.v_slice[name] for name in self.independent(machine)]
        return [k for place in slices for k in range(place.start, place.stop)]

    @abstractmethod
    def basis(self, state: TreeState) -> Matrix:
        """Return N (nv x n), a function of x alone."""

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the sensors whose readings `drift` needs."""
        return ()

    def sizes(self, machine: Machine) -> dict[str, int]:
        """Return how many numbers each of these sensors tells."""
        return {}

    def drift(
        self, state: TreeState, N: Matrix, measured: Mapping[str, Matrix]
    ) -> tuple[Matrix, Matrix] | None:
        """Return v - N w and its rate (nv each), or None where that is zero."""
        return None


@dataclass(frozen=True)
class Whole(Freedom):
    """Every joint is commanded: N = I."""

    def independent(self, machine: Machine) -> tuple[str, ...]:
        """Return all joints."""
        return tuple(joint.name for joint in machine.joints)

    def basis(self, state: TreeState) -> Matrix:
        """Return the identity."""
        return ca.SX.eye(state.machine.nv)


@dataclass(frozen=True)
class FreeFloating(Freedom):
    """A base that nothing pushes: it moves so that momentum stays what it is.

    With M = [H_b, H_bm; H_bm^T, H_m] and the momentum p = H_b xi_b + H_bm qd in base axes,

        xi_b = H_b^-1 (p - H_bm qd),    N = [-H_b^-1 H_bm; I],    drift = (H_b^-1 p, 0)
        dp/dt = ad_{xi_b}^T p

    J N of any frame is its generalised Jacobian [Umetani1989].

    Parameters
    ----------
    base : str
        The free joint that carries the machine.
    """

    base: str = "base"

    by_inertia: ClassVar[bool] = True

    def check(self, machine: Machine) -> None:
        """Refuse machines on which something acts from outside; inner springs may."""
        first = machine.joint(self.base)
        roots = [j.name for j, parent in zip(machine.joints, machine.parent, strict=True)
                 if parent < 0]  # fmt: skip
        if not isinstance(first.kind, Free) or roots != [self.base]:
            raise ControlError(
                f"FreeFloating needs a free joint `{self.base}` that carries all of "
                f"`{machine.name}`; its joints on the world are: {', '.join(roots)}"
            )
        outside = external_forces(machine, self.base)
        if outside:
            raise ControlError(
                f"momentum of `{machine.name}` is not constant, as FreeFloating needs it: there is "
                + " and ".join(outside)
            )

    def independent(self, machine: Machine) -> tuple[str, ...]:
        """Return all joints but the base."""
        return tuple(joint.name for joint in machine.joints if joint.name != self.base)

    def basis(self, state: TreeState) -> Matrix:
        """Return [-H_b^-1 H_bm; I]."""
        base, rest = self._places(state.machine)
        M, N = state.mass, ca.SX(state.machine.nv, len(rest))
        N[base, :] = -solve_symmetric(M[base, base], M[base, rest])
        N[rest, :] = ca.SX.eye(len(rest))
        return N

    def drift(
        self, state: TreeState, N: Matrix, measured: Mapping[str, Matrix]
    ) -> tuple[Matrix, Matrix]:
        """Return (H_b^-1 p, 0) and its rate."""
        base, _ = self._places(state.machine)
        machine, x, v = state.machine, state.x, state.v
        H, p = state.mass[base, base], state.mass[base, :] @ v
        p_rate = se3.little_adjoint(v[base, :]).T @ p
        H_rate = ca.reshape(ca.jtimes(ca.vec(H), x, machine.rate_matrix(x) @ v), 6, 6)
        drift, rate = ca.SX(machine.nv, 1), ca.SX(machine.nv, 1)
        drift[base, :] = solve_symmetric(H, p)
        rate[base, :] = solve_symmetric(H, p_rate - H_rate @ drift[base, :])
        return drift, rate

    def _places(self, machine: Machine) -> tuple[list[int], list[int]]:
        base = list(range(*machine.v_slice[self.base].indices(machine.nv)))
        return base, [k for k in range(machine.nv) if k not in base]


@dataclass(frozen=True)
class CarriedBase(Freedom):
    """A base that something else moves, as the deck of a ship: what it does is measured.

        v = (xi_b, qd),    N = [0; I],    drift = (xi_b, 0),    its rate (dxi_b/dt, 0)

    The law commands the joints that the base carries, with forces as large as the base's motion
    asks for: N^T M (dxi_b/dt, 0), and the frame of a task is held in the world, not on the base.
    What moves the base need not be known, nor what it weighs: its rows are not among N^T (...). An
    error e (n) of the measured acceleration is a force M_qb e on the joints that dV/dt counts by
    its power on s, beside what the law makes of it by moving.

    A sampled acceleration is that under the forces of the period before. The base must be heavier
    than what it carries, or held to its motion: otherwise the law chases its own reaction.

    Parameters
    ----------
    base : str or sequence of str
        The joints that are moved, from the world on: "base", or several one after the other.
    acceleration : str or None
        Name of the sensor of their accelerations (`JointAccelerations`), in the machine's order.
        None takes them for zero: then the stated dV/dt holds for a base that moves steadily.
    """

    base: str | Sequence[str] = "base"
    acceleration: str | None = "accelerations"

    @property
    def carrying(self) -> tuple[str, ...]:
        """Names of the joints that are moved."""
        return (self.base,) if isinstance(self.base, str) else tuple(self.base)

    def check(self, machine: Machine) -> None:
        """Refuse joints that are carried by others."""
        bodies = {machine.joint(name).child for name in self.carrying} | {WORLD}
        for name in self.carrying:
            if machine.joint(name).parent not in bodies:
                raise ControlError(
                    f"CarriedBase takes joints from the world on; `{name}` is carried by "
                    f"`{machine.joint(name).parent}`, whose joint is not among them"
                )

    @property
    def measures(self) -> tuple[str, ...]:
        """The sensor of accelerations."""
        return () if self.acceleration is None else (self.acceleration,)

    def sizes(self, machine: Machine) -> dict[str, int]:
        """Return the number of velocities that are moved."""
        return dict.fromkeys(self.measures, len(self._places(machine)))

    def independent(self, machine: Machine) -> tuple[str, ...]:
        """Return the joints that are carried."""
        return tuple(joint.name for joint in machine.joints if joint.name not in self.carrying)

    def basis(self, state: TreeState) -> Matrix:
        """Return [0; I]."""
        moved = self._places(state.machine)
        rest = [k for k in range(state.machine.nv) if k not in moved]
        N = ca.SX(state.machine.nv, len(rest))
        N[rest, :] = ca.SX.eye(len(rest))
        return N

    def drift(
        self, state: TreeState, N: Matrix, measured: Mapping[str, Matrix]
    ) -> tuple[Matrix, Matrix]:
        """Return the velocities of the base and their measured rates."""
        at = self._places(state.machine)
        drift, rate = (ca.SX(state.machine.nv, 1) for _ in range(2))
        drift[at, :] = state.v[at, :]
        if self.acceleration is not None:
            rate[at, :] = measured[self.acceleration]
        return drift, rate

    def _places(self, machine: Machine) -> list[int]:
        names = [joint.name for joint in machine.joints if joint.name in self.carrying]
        return [k for name in names for k in range(*machine.v_slice[name].indices(machine.nv))]


@dataclass(frozen=True, eq=False)
class Rolling(Freedom):
    """Some joints follow the others by nonholonomic constraints A(x) v = 0, as on wheels.

        A_d v_d + A_w w = 0,    v_d = -(A_d^T A_d)^-1 A_d^T A_w w

    Parameters
    ----------
    constraints : sequence of Nonholonomic
        Linear in v, without a part that moves by itself.
    dependent : sequence of str
        Joints that follow: the constraints must determine them.
    """

    constraints: Sequence[Nonholonomic]
    dependent: Sequence[str] = ("base",)

    def check(self, machine: Machine) -> None:
        """Refuse constraints that leave something open, or that move by themselves."""
        for constraint in self.constraints:
            if not isinstance(constraint, Nonholonomic):
                raise ControlError(f"Rolling takes Nonholonomic constraints, got {constraint!r}")
        rng = np.random.default_rng(0)
        x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
        rows = self._rows(machine, x, v)
        A = ca.jacobian(rows, v)
        free = ca.substitute(rows, v, ca.densify(ca.SX(machine.nv, 1)))
        chosen, _ = self._places(machine)
        test = ca.Function("rows", [x, v], [A[:, chosen], rows - A @ v, free])
        for _ in range(3):
            values = test(machine.random(rng), rng.normal(size=machine.nv))
            A_d, bent, moving = (value.full() for value in values)
            if max(np.abs(bent).max(initial=0.0), np.abs(moving).max(initial=0.0)) > 1e-9:
                raise ControlError("the constraints of Rolling must be linear in the velocities")
            if np.linalg.matrix_rank(A_d) < len(chosen):
                raise ControlError(
                    "the constraints of Rolling do not determine the velocities of "
                    + ", ".join(f"`{name}`" for name in self.dependent)
                )

    def independent(self, machine: Machine) -> tuple[str, ...]:
        """Return the joints that are not dependent."""
        return tuple(j.name for j in machine.joints if j.name not in self.dependent)

    def basis(self, state: TreeState) -> Matrix:
        """Return [-(A_d^T A_d)^-1 A_d^T A_w; I]."""
        machine = state.machine
        follow, lead = self._places(machine)
        v = ca.SX.sym("v", machine.nv)
        A = ca.jacobian(self._rows(machine, state.x, v), v)
        A_d, N = A[:, follow], ca.SX(machine.nv, len(lead))
        N[follow, :] = -solve_symmetric(A_d.T @ A_d, A_d.T @ A[:, lead])
        N[lead, :] = ca.SX.eye(len(lead))
        return N

    def _rows(self, machine: Machine, x: Matrix, v: Matrix) -> Matrix:
        return ca.vertcat(*(ca.SX(c.eta(x, v, ca.SX(0))) for c in self.constraints))

    def _places(self, machine: Machine) -> tuple[list[int], list[int]]:
        follow: list[int] = []
        for name in self.dependent:
            place: Any = machine.v_slice[machine.joint(name).name]
            follow += range(place.start, place.stop)
        return follow, [k for k in range(machine.nv) if k not in follow]


def external_forces(machine: Machine, base: str) -> list[str]:
    """Return, in words, what changes the momentum of a machine that a free joint carries.

    Springs, dampers and interactions between two of its own bodies do not, nor do tendons along
    them: they depend on relative poses and twists, and the reaction acts on the machine itself.
    """
    outside = [
        word
        for word, there in (
            ("gravity", np.any(np.asarray(machine.numeric.gravity))),
            ("a fluid", machine.fluid is not None),
        )
        if there
    ]
    for kind in ("spring", "damper", "interaction"):
        parts = getattr(machine, f"{kind}s")
        outside += [
            f"{kind} `{part.name}` on the world"
            for part in parts
            if any(machine.frame(frame).body == WORLD for frame in (part.frame_a, part.frame_b))
        ]
    own = set(machine.joint(base).x_names)
    outside += [
        f"tendon `{tendon.name}` on the world or on the base"
        for tendon in machine.tendons
        if own & set(tendon.coordinates)
        or any(machine.frame(frame).body == WORLD for frame in tendon.frames)
    ]
    joint = machine.numeric.joint(base)
    outside += [
        f"{word} of the joint `{base}`"
        for word in ("damping", "friction", "armature")
        if np.any(getattr(joint, word))
    ]
    pushing = _pushing(machine, base)
    return outside + [f"the actuator `{name}` that pushes the base" for name in pushing]


def _pushing(machine: Machine, base: str) -> list[str]:
    """Return the actuators that exert a force on the velocities of the base."""
    numeric, rng = machine.numeric, np.random.default_rng(0)
    x = ca.SX.sym("x", machine.nx)
    state, names = Tree(numeric.tree).at(x), []
    sample = numeric.random(rng)
    for actuator in numeric.actuators:
        along = ca.Function("along", [x], [ca.densify(directions(state, actuator))])
        forces = np.abs(along(sample).full())
        if forces[numeric.v_slice[base]].max(initial=0.0) > 1e-12 * forces.max(initial=0.0):
            names.append(actuator.name)
    return names
