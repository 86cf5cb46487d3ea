"""Whether a machine can follow a reference: what its inputs cannot give, and what they would be.

At zero error the law gives M a_R + b = B u but for the matching force of the reference itself,

    lambda = -(M a_R + b - B u),

a condition on the reference and not on the prototype. A flat reference fulfils it.
"""

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.references.base import Reference
from framefree.machine import Machine
from framefree.motion import actuation, equations
from framefree.motion.constrained import Constrained


@dataclass(frozen=True)
class Feasibility:
    """What following a reference exactly would take.

    Attributes
    ----------
    t : (n,)
    u : (n, nu)
        The inputs that come closest, in the metric of the machine's inverse mass.
    force : (n, nv)
        Generalised force that is missing: M a_R + b - B u.
    margin : (n,)
        Smallest slack b - A u of the input polytope; negative where limits are exceeded, infinite
        where there are none.
    """

    t: np.ndarray
    u: np.ndarray
    force: np.ndarray
    margin: np.ndarray

    @property
    def largest_force(self) -> float:
        """Largest norm of the missing force."""
        return float(np.linalg.norm(self.force, axis=1).max())

    @property
    def within_limits(self) -> bool:
        """Whether the inputs stay in their polytope."""
        return bool((self.margin >= 0).all())


def feasibility(machine: Machine, reference: Reference, times: Any) -> Feasibility:
    """Return what a machine needs, and lacks, to follow a reference at these times (n,), s."""
    t = np.asarray(times, float)
    symbol = ca.SX.sym("t")
    at = reference.at(symbol)
    x, v, a = (ca.SX(at[name]) for name in "xva")
    state = equations(machine.tree).at(x, v, symbol)
    wanted = state.inverse(a) - actuation.input_bias(state)
    values = (wanted, _columns(machine, state, x, v), state.mass)
    function = ca.Function("needed", [symbol], [ca.densify(ca.SX(value)) for value in values])
    u, force = np.zeros((len(t), machine.nu)), np.zeros((len(t), machine.nv))
    for i, moment in enumerate(t):
        need, B, M = (np.array(value) for value in function(moment))
        root = np.linalg.inv(np.linalg.cholesky(M))
        solution = np.linalg.lstsq(root @ B, (root @ need).ravel(), rcond=None)[0]
        u[i], force[i] = solution[: machine.nu], need.ravel() - B @ solution
    A, b = machine.input_polytope
    margin = (b - u @ A.T).min(axis=1) if len(b) else np.full(len(t), np.inf)
    return Feasibility(t, u, force, margin)


def _columns(machine: Machine, state: Any, x: Any, v: Any) -> Any:
    """Return B, and beside it A^T of loops and couplings, whose forces come by themselves."""
    B = actuation.input_matrix(state)
    if not machine.closed:
        return B
    rows = Constrained(machine).quantity("constraint").trace(x=x, v=v)
    return ca.horzcat(B, ca.SX(rows["A"].value).T)
