"""The tree formulation: joint coordinates x, joint velocities v, no constraint left over.

    M a + c + (passive forces) = force,      c = sum_b J_b^T (M_b dJ_b - ad_{xi_b}^T M_b J_b) v

Accelerations, forces and the mass matrix come from recursions over the links in O(n) operations;
the closed form, a sum over bodies, is there to check them and to read.
"""

from functools import cached_property
from typing import Any

import casadi as ca

from framefree.machine import Machine, MachineError
from framefree.machine.values import constant
from framefree.motion import forces
from framefree.motion.equations import Equations
from framefree.motion.groups import JointGroup
from framefree.motion.quantities import (
    BODIES,
    ENERGIES,
    INPUTS,
    SHARES,
    SLOPES,
    Outputs,
    Recipe,
    matrix,
)
from framefree.motion.spatial import Inertia, Matrix, Rigid
from framefree.motion.state import step_of
from framefree.motion.tree import coriolis, euler, other_rates
from framefree.motion.tree.derivatives import deviation
from framefree.motion.tree.links import Link, links_of
from framefree.motion.tree.lump import lumped
from framefree.motion.tree.state import TreeState


class Tree(Equations):
    """Equations of motion of a machine without loops, in its joint coordinates.

    Beside what every formulation has, there are

        coriolis:NAME(x, v)     by one of the names in `framefree.motion.tree.coriolis`
        mass:euler(eta), coriolis:euler(eta, eta_rate)      in roll, pitch and yaw, to compare
        mass:quaternion(x), coriolis:quaternion(x, x_rate)  in the rates of x itself
        mass:task:FRAME(x), coriolis:task:FRAME(x, v), velocity_map:task:FRAME(x)
            in the rates of base and end frame, see `framefree.motion.tree.other_rates`;
            `task_euler` in the place of `task` takes roll, pitch and yaw of the base
    """

    name = "tree"
    offers = (
        *("mass", "bias", "coriolis", "gravity", "forward", "inverse", "rate_matrix"),
        *BODIES,
        *ENERGIES,
        *("joint_state", "joint_wrench"),
        *INPUTS,
        *SLOPES,
        *SHARES,
    )

    def __init__(self, machine: Machine) -> None:
        if machine.closed:
            raise MachineError(
                f"the tree formulation does not apply to `{machine.name}`, which has loops or "
                'couplings; use "constrained", "embedded" or "maximal"'
            )
        super().__init__(machine)
        nv = machine.nv
        self.sizes = {
            "x": machine.nx,
            **dict.fromkeys(("v", "a", "v_r", "a_r", "force", "joint_force"), nv),
            **dict.fromkeys(("eta", "eta_rate"), nv),
            "x_rate": machine.nx,
            "u": machine.nu,
            "t": 1,
        }
        self.x_names, self.v_names = machine.x_names, machine.v_names
        self.group = JointGroup(machine)

    def at(self, x: Matrix, v: Matrix | None = None, t: Any = 0) -> TreeState:
        """Return the state (x, v); without v the machine is at rest."""
        return TreeState(self, x, ca.SX(self.machine.nv, 1) if v is None else v, t)

    def rate_matrix(self, x: Matrix) -> Matrix:
        """Return A (nx x nv) with dx/dt = A v."""
        return self.machine.rate_matrix(x)

    def integrate(self, x: Any, dv: Any) -> Any:
        """Move x by dv on the groups of the joints: casadi columns, or arrays, one or many."""
        return self.machine.integrate(x, dv)

    def deviation(self, x: Matrix, v: Matrix, a: Matrix) -> tuple[Matrix, Matrix]:
        """Return W (nv x nv), ``W_ij = gamma^i_kj v^k``, and its rate, joint by joint."""
        return deviation(self.machine, x, v, a)

    # ------------------------------------------------------------------ constants of the machine

    @cached_property
    def links(self) -> list[Link]:
        """The bodies as the recursions see them: fixed joints are gone, parents come first."""
        return links_of(self.machine)

    @cached_property
    def gravity_vector(self) -> Matrix:
        """Acceleration of free fall in world axes, m/s^2."""
        return ca.SX(constant(self.machine.gravity))

    @cached_property
    def inertias(self) -> list[Inertia]:
        """Inertia of every link in its own frame, added mass of the fluid included."""
        added = forces.added_masses(self.machine)
        return [
            link.inertia if extra is None else link.inertia.plus(_in_link(link, extra))
            for link, extra in zip(self.links, added, strict=True)
        ]

    @cached_property
    def lumped(self) -> list[Rigid]:
        """Inertias of the links that give the same joint forces with fewer operations."""
        return lumped(self.links)

    @cached_property
    def lumped_inertias(self) -> list[Rigid] | list[Inertia]:
        """The same, added mass of the fluid included."""
        added = forces.added_masses(self.machine)
        if all(extra is None for extra in added):
            return self.lumped
        return [
            rigid.full if extra is None else rigid.full.plus(_in_link(link, extra))
            for rigid, link, extra in zip(self.lumped, self.links, added, strict=True)
        ]

    @cached_property
    def lumped_full(self) -> list[Inertia]:
        """The same as 6x6 inertias, which articulated bodies need."""
        full = [one.full if isinstance(one, Rigid) else one for one in self.lumped_inertias]
        return [Inertia(*(ca.sparsify(ca.SX(part)) for part in one)) for one in full]

    # ------------------------------------------------------------------ quantities of its own

    def own_recipe(self, name: str) -> Recipe | None:
        """Return `coriolis:NAME`, or a quantity in other rates."""
        kind, _, which = name.partition(":")
        task, _, frame = which.partition(":")
        own = {
            "mass:euler": Recipe(("eta",), self._euler_mass),
            "coriolis:euler": Recipe(("eta", "eta_rate"), self._euler_coriolis),
            "mass:quaternion": Recipe(("x",), self._quaternion_mass),
            "coriolis:quaternion": Recipe(("x", "x_rate"), self._quaternion_coriolis),
        }
        if name in own:
            return own[name]
        if task in other_rates.TASKS and kind in ("mass", "coriolis", "velocity_map"):
            rates = other_rates.TaskRates(self, frame, task == "task_euler")
            inputs = ("x", "v") if kind == "coriolis" else ("x",)
            return Recipe(inputs, lambda state: self._in_task_rates(kind, rates, state))
        if kind == "coriolis" and which:
            return Recipe(("x", "v"), lambda state: self._named_coriolis(which, state))
        return None

    def _quaternion_mass(self, state: TreeState) -> Outputs:
        Y = other_rates.quaternion_map(self.machine, state.x)
        return {"mass": matrix(Y.T @ state.mass @ Y)}

    def _quaternion_coriolis(self, state: TreeState, x_rate: Matrix) -> Outputs:
        Y = other_rates.quaternion_map(self.machine, state.x)
        Y_rate = ca.reshape(ca.jtimes(ca.vec(ca.densify(Y)), state.x, x_rate), *Y.shape)
        moving = self.at(state.x, Y @ x_rate)
        C = other_rates.transformed(moving.mass, moving.coriolis, Y, Y_rate)
        return {"coriolis": matrix(C)}

    def _in_task_rates(self, kind: str, rates: other_rates.TaskRates, state: TreeState) -> Outputs:
        Y = rates.map(state)
        if kind == "mass":
            return {"mass": matrix(Y.T @ state.mass @ Y)}
        if kind == "velocity_map":
            return {"velocity_map": matrix(Y)}
        Y_rate = other_rates.map_rate(self.machine, Y, state.x, state.v)
        C = other_rates.transformed(state.mass, state.coriolis, Y, Y_rate)
        return {"coriolis": matrix(C)}

    def _named_coriolis(self, which: str, state: TreeState) -> Outputs:
        if which in coriolis.BODY_FACTORS:
            C = coriolis.by_bodies(which, self.inertias, state.motion, state.link_jacobians)
        elif which == "printed":
            C = coriolis.printed(self.inertias, state.motion, state.link_jacobians)
        elif which == "quasi":
            # Rotors resist accelerations and nothing else, also those of balls that turn.
            rotors = ca.diagcat(ca.SX(0, 0), *(link.armature for link in state.links))
            C = coriolis.quasi(state.mass - rotors, state.x, state.v, state.rate_matrix)
        elif which == "christoffel":
            self._refuse_groups()
            C = coriolis.christoffel(state.mass, state.x, state.v)
        else:
            names = ", ".join(coriolis.NAMES)
            raise MachineError(f"`{which}` is not the name of a Coriolis matrix; choose: {names}")
        return {"coriolis": matrix(C)}

    def _euler_mass(self, state: TreeState, eta: Matrix) -> Outputs:
        T = euler.velocity_map(self.machine, eta)
        return {"mass": matrix(T.T @ self.at(euler.configuration(self.machine, eta)).mass @ T)}

    def _euler_coriolis(self, state: TreeState, eta: Matrix, eta_rate: Matrix) -> Outputs:
        T = euler.velocity_map(self.machine, eta)
        T_dot = ca.reshape(ca.jtimes(ca.vec(T), eta, eta_rate), *T.shape)
        moving = self.at(euler.configuration(self.machine, eta), T @ eta_rate)
        C = other_rates.transformed(moving.mass, moving.coriolis, T, T_dot)
        return {"coriolis": matrix(C)}

    def _refuse_groups(self) -> None:
        groups = [joint.name for joint in self.machine.joints if not joint.kind.vector]
        if groups:
            raise MachineError(
                "Christoffel symbols need coordinates with dx/dt = v; these joints have none: "
                + ", ".join(f"`{name}`" for name in groups)
            )


def _in_link(link: Link, matrix: Matrix) -> Inertia:
    """Return a body's 6x6 inertia seen in its link's frame."""
    return step_of(link.to_body).inertia_out(Inertia.of(ca.SX(matrix)))
