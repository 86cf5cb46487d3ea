"""Vehicles with fewer inputs than velocities: what no input reaches follows by its own equations.

Let P (nv x k) span the directions in which no input pushes, P^T B = 0: sway of a vessel with two
thrusters at its stern, both directions across the thrust of a multicopter. There the equations of
motion have no input, and for the momentum along P

    p = P^T M v,      dp/dt = P^T (dM/dt v - (C v + D v - weight ...))

is a function of the state alone, whatever the law does. With k velocities y that follow and the
others w, H = P^T M E_y, E_y the columns of the identity at y,

    y = H^-1 (p - P^T M E_w w),     N = [-H^-1 P^T M E_w; I],     drift = (H^-1 p, 0)

so that P^T M N = 0, and N^T (M dv + C v + ...) = N^T B u has an input for every velocity: the proof
of the passivity laws holds for w as it stands, with M_w = N^T M N the mass that w has while y gives
way. `FreeFloating` is the case of a base without any input on which nothing else acts.

What y does is not chosen by the law but by the vehicle: by its drag, by how it leans, or by a
reference that is a motion of the vehicle (`unactuated_force`). An unknown force along P is not in
dp/dt: laws whose w_r depends on the drift (`FramesPassivity`) then have M_w dw_r/dt a little wrong.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca
import numpy as np
from scipy.linalg import null_space, subspace_angles

from framefree.control.law import ControlError
from framefree.control.passive.freedom import Freedom
from framefree.control.references.base import Reference
from framefree.control.shared.input_map import FULL, rank
from framefree.control.shared.model import at_configurations
from framefree.machine import Machine
from framefree.motion.actuation import input_bias, input_matrix
from framefree.motion.spatial import Matrix
from framefree.motion.tree import Tree
from framefree.motion.tree.state import TreeState

SAMPLES = 4
"""Configurations at which the inputs are looked at."""


@dataclass(frozen=True)
class Underactuated(Freedom):
    """Velocities that no input reaches follow; all others are commanded. See the top of this file.

    Parameters
    ----------
    follows : sequence of str, optional
        Names of the velocities y, as many as there are directions without input. By default the
        first that these directions determine: "base.vy" of a vessel, "base.vx" and "base.vy" of a
        multicopter.
    """

    follows: Sequence[str] | None = None

    by_inertia: ClassVar[bool] = True

    def check(self, machine: Machine) -> None:
        """Refuse machines that have inputs for all, or whose missing directions turn."""
        if machine.closed:
            raise ControlError("Underactuated needs a machine without loops and couplings")
        P, names = unactuated(machine), self.following(machine)
        if not P.shape[1]:
            raise ControlError(
                f"every velocity of `{machine.name}` has an input: use Whole(), not Underactuated()"
            )
        unknown = [name for name in names if name not in machine.v_names]
        if unknown or len(set(names)) != P.shape[1]:
            raise ControlError(
                f"`{machine.name}` has {P.shape[1]} directions without input "
                f"({_in_words(machine, P)}); `follows` must name as many velocities of "
                f"{', '.join(machine.v_names)}, got {', '.join(names) or 'none'}"
            )
        x, rng = ca.SX.sym("x", machine.nx), np.random.default_rng(1)
        coupling = P.T @ Tree(machine.tree).at(x).mass[:, self._places(machine)]
        values = at_configurations(machine, x, coupling, machine.numeric.random(rng, SAMPLES))
        if min(map(rank, values)) < P.shape[1]:
            raise ControlError(
                f"the velocities {', '.join(names)} do not follow from the directions of "
                f"`{machine.name}` without input ({_in_words(machine, P)}): these do not move them"
            )

    def independent(self, machine: Machine) -> tuple[str, ...]:
        """Return the joints with a velocity that is commanded."""
        names = self.following(machine)
        return tuple(j.name for j in machine.joints if set(j.v_names) - set(names))

    def commanded(self, machine: Machine) -> list[int]:
        """Return where all others stand in v."""
        gone = self._places(machine)
        return [k for k in range(machine.nv) if k not in gone]

    def following(self, machine: Machine) -> tuple[str, ...]:
        """Return the names of the velocities that follow."""
        if self.follows is not None:
            return (self.follows,) if isinstance(self.follows, str) else tuple(self.follows)
        return tuple(machine.v_names[k] for k in _pivots(unactuated(machine)))

    def _places(self, machine: Machine) -> list[int]:
        names = self.following(machine)
        return [k for k, name in enumerate(machine.v_names) if name in names]

    def basis(self, state: TreeState) -> Matrix:
        """Return [-H^-1 P^T M E_w; I]."""
        machine = state.machine
        follow, lead = self._places(machine), self.commanded(machine)
        along = ca.DM(unactuated(machine)).T @ state.mass
        N = ca.SX(machine.nv, len(lead))
        N[follow, :] = -ca.solve(along[:, follow], along[:, lead])
        N[lead, :] = ca.SX.eye(len(lead))
        return N

    def drift(
        self, state: TreeState, N: Matrix, measured: Mapping[str, Matrix]
    ) -> tuple[Matrix, Matrix]:
        """Return (H^-1 p, 0) and its rate, in which there is no input."""
        machine, x, v = state.machine, state.x, state.v
        follow, P = self._places(machine), ca.DM(unactuated(machine))
        moving = machine.rate_matrix(x) @ v
        H, p = ca.densify(P.T @ state.mass[:, follow]), ca.densify(state.mass @ v)
        # v is a symbol of its own: this is dM/dt v.
        carried = ca.jtimes(p, x, moving)
        p_rate = P.T @ (carried + input_bias(state) - state.inverse(ca.SX(machine.nv, 1)))
        H_rate = ca.reshape(ca.jtimes(ca.vec(H), x, moving), *H.shape)
        drift, rate = ca.SX(machine.nv, 1), ca.SX(machine.nv, 1)
        drift[follow, :] = ca.solve(H, P.T @ p)
        rate[follow, :] = ca.solve(H, p_rate - H_rate @ drift[follow, :])
        return drift, rate


def unactuated(machine: Machine) -> np.ndarray:
    """Return P (nv, k): directions of generalised force that no input gives, orthonormal.

    Raises
    ------
    ControlError
        If they are others at other configurations, as those of a thruster that an arm carries.
    """
    numeric = machine.numeric
    x = ca.SX.sym("x", numeric.nx)
    B = input_matrix(Tree(numeric.tree).at(x))
    samples = at_configurations(numeric, x, B, numeric.random(np.random.default_rng(0), SAMPLES))
    spaces = [null_space(sample.T, rcond=FULL) for sample in samples]
    first = spaces[0]
    for other in spaces[1:]:
        turned = other.shape != first.shape
        if turned or (first.size and subspace_angles(first, other).max(initial=0.0) > 1e-7):
            raise ControlError(
                f"the directions of `{machine.name}` without input change with its configuration: "
                "Underactuated takes those that stay, in the axes of the velocities"
            )
    return _plain(first)


def unactuated_force(machine: Machine, reference: Reference, times: Any) -> np.ndarray:
    """Return what a reference of joints asks for where no input pushes, (n, k), N and Nm.

    P^T (M a + C v + ...) of "x", "v" and "a" at these times. It is zero where the reference is a
    motion that the vehicle can have; elsewhere no law follows it.
    """
    numeric = machine.numeric
    t = ca.SX.sym("t")
    signals = reference.at(t)
    state = Tree(numeric.tree).at(ca.SX(signals["x"]), ca.SX(signals["v"]))
    lacking = ca.DM(unactuated(machine)).T @ (state.inverse(signals["a"]) - input_bias(state))
    function = ca.Function("lacking", [t], [ca.densify(lacking)])
    return np.array([function(time).full().ravel() for time in np.atleast_1d(times)])


def _plain(P: np.ndarray) -> np.ndarray:
    """Return the same space by columns of a reduced echelon form: axes where it has any."""
    rows = _pivots(P)
    if not rows:
        return P
    plain = P @ np.linalg.inv(P[rows])
    plain[np.abs(plain) < 1e-9] = 0.0
    return plain


def _pivots(P: np.ndarray) -> list[int]:
    """Return the first rows that are independent of those before."""
    chosen: list[int] = []
    for k in range(P.shape[0]):
        if np.linalg.matrix_rank(P[[*chosen, k]], tol=1e-6) > len(chosen):
            chosen.append(k)
    return chosen[: P.shape[1]]


def _in_words(machine: Machine, P: np.ndarray) -> str:
    """Return directions as sums of forces on velocities."""
    return "; ".join(
        " + ".join(
            f"`{name}`" if np.isclose(part, 1) else f"{part:.3g} `{name}`"
            for name, part in zip(machine.v_names, column, strict=True)
            if part
        )
        for column in P.T
    )
