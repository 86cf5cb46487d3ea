"""The machine under test, what is derived from it, and the random states at which it is tested."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.certify.closure import Closure
from framefree.certify.proof import linear_velocities
from framefree.errors import FramefreeError
from framefree.machine import Machine
from framefree.motion import Equations
from framefree.motion.tree import Tree

SINGULAR = 1e-13
"""Share of the largest eigenvalue of M below which the smallest cannot be told from zero."""
UNDEFINED = "accelerations are undefined: the mass matrix is singular"


@dataclass(frozen=True)
class States:
    """Configurations (n, nx), velocities, accelerations and forces (n, nv)."""

    x: np.ndarray
    v: np.ndarray
    a: np.ndarray
    force: np.ndarray

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True)
class Subject:
    """A machine with its equations and random states, each made when first asked for.

    Parameters
    ----------
    machine : Machine
        In numbers.
    formulations : mapping of name to class
        What is compared; `tree`, on the machine with its loops opened, carries most checks.
    states : int
        Number of random states for residuals.
    samples : int
        Number of random configurations from which eigenvalues of M are searched.
    seed : int
    length : float, optional
        Unit of length (m) for linear velocities: then all of M is in kg m^2.
    """

    machine: Machine
    formulations: Mapping[str, type[Equations]]
    states: int = 24
    samples: int = 1024
    seed: int = 0
    length: float | None = None

    @cached_property
    def scale(self) -> np.ndarray:
        """Units (nv,) in which velocities are measured: `length` for linear ones, where given."""
        scale = np.ones(self.open.nv)
        if self.length is not None:
            scale[linear_velocities(self.open)] = self.length
        return scale

    def rng(self, salt: int) -> np.random.Generator:
        """Return random numbers for one check: with a salt of its own, none shifts another."""
        return np.random.default_rng([self.seed, salt])

    @property
    def closed(self) -> bool:
        """Whether loops or couplings constrain the tree of joints."""
        return bool(self.machine.loops or self.machine.couplings)

    @cached_property
    def open(self) -> Machine:
        """The machine with its loops opened and its couplings released."""
        return replace(self.machine, loops=(), couplings=()) if self.closed else self.machine

    @cached_property
    def tree(self) -> Equations:
        """The tree formulation of the open machine."""
        return self.formulations.get("tree", Tree)(self.open)

    @cached_property
    def bare(self) -> Equations:
        """The tree formulation without gravity, springs, friction and drag: M a + C v = force."""
        return self.formulations.get("tree", Tree)(without_forces(self.open))

    def applicable(self, machine: Machine) -> tuple[dict[str, Equations], dict[str, str]]:
        """Return the formulations that apply to a machine, and why the others do not."""
        found, refused = {}, {}
        for name, formulation in self.formulations.items():
            try:
                found[name] = formulation(machine)
            except FramefreeError as error:
                refused[name] = str(error)
        return found, refused

    def reference(self, found: Mapping[str, Equations]) -> str:
        """Return the name of the formulation to trust: the first with the joints' coordinates."""
        own = self.machine.nx, self.machine.nv
        fitting = [name for name, e in found.items() if (e.sizes["x"], e.sizes["v"]) == own]
        return fitting[0] if fitting else ""

    @cached_property
    def closure(self) -> Closure:
        """Where loops and couplings hold, and what they allow."""
        return Closure(self.machine)

    @cached_property
    def singular(self) -> bool:
        """Whether M cannot be told from singular at some state, along what loops allow."""
        if not self.closed:
            return self.singular_open
        x = self.closed_states.x
        (masses,) = evaluate(self.bare.functions["mass"], x)
        bases = self.closure.allowed_directions(x)
        return any(is_singular(Z.T @ M @ Z) for M, Z in zip(masses, bases, strict=True))

    @cached_property
    def singular_open(self) -> bool:
        """Whether M of the open machine cannot be told from singular at some state."""
        (masses,) = evaluate(self.bare.functions["mass"], self.open_states.x)
        return any(is_singular(M) for M in masses)

    @cached_property
    def open_states(self) -> States:
        """Random states of the open machine."""
        rng = self.rng(1)
        return _states(rng, self.open.random(rng, self.states), self.open.nv)

    @cached_property
    def closed_states(self) -> States:
        """Random states on which all loops and couplings hold; as many as were found."""
        if not self.closed:
            return self.open_states
        rng = self.rng(2)
        x = self.closed_configurations(rng, self.states)
        states = _states(rng, x, self.open.nv)
        return replace(states, v=self.closure.allowed(x, states.v))

    def closed_configurations(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return up to `count` configurations on which all loops and couplings hold."""
        starts = np.vstack([self.open.neutral(), self.open.random(rng, 4 * count)])
        return self.closure.closed(starts, count)


def is_singular(M: np.ndarray) -> bool:
    """Whether the smallest eigenvalue of M cannot be told from zero, or is negative."""
    if not M.size:
        return False
    if not np.isfinite(M).all():
        return True
    values = np.linalg.eigvalsh(M)
    return bool(values[0] <= SINGULAR * values[-1])


def _states(rng: np.random.Generator, x: np.ndarray, nv: int) -> States:
    v, a, force = rng.normal(size=(3, len(x), nv))
    return States(x, v, 3 * a, 3 * force)


def evaluate(function: ca.Function, *arguments: np.ndarray) -> list[np.ndarray]:
    """Call a casadi function on (n, k) arrays by the graph interpreter; outputs (n, rows, cols).

    For the few states of a check this is faster than compiling.
    """
    count = len(arguments[0])
    if not count:
        shapes = [function.size_out(k) for k in range(function.n_out())]
        return [np.zeros((0, *shape)) for shape in shapes]
    results = function.map(count)(*(np.ascontiguousarray(a.T) for a in arguments))
    results = results if isinstance(results, tuple) else (results,)
    arrays = []
    for k, result in enumerate(results):
        rows, columns = function.size_out(k)
        stacked = np.asarray(ca.DM(result).full()).reshape(rows, count, columns)
        arrays.append(stacked.swapaxes(0, 1))
    return arrays


def relative(value: np.ndarray, expected: np.ndarray, scale: Any = None) -> float:
    """Return the largest gap over all states, each relative to its state's largest expected entry.

    Infinite where something is not finite. `scale` (n,) replaces the largest expected entries.
    """
    count = len(value)
    gap, size = (np.reshape(array, (count, -1)) for array in (value - expected, expected))
    if not gap.size:
        return 0.0
    if not np.isfinite(gap).all():
        return np.inf
    sizes = np.abs(size).max(axis=1) if scale is None else np.asarray(scale)
    floor = max(1e-9 * float(sizes.max()), 1e-12)
    return float((np.abs(gap).max(axis=1) / np.maximum(sizes, floor)).max())


def without_losses(machine: Machine) -> Machine:
    """Return the machine without friction, dampers and drag, in still fluid."""
    joints = [replace(j, damping=0.0, friction=0.0) if j.nv else j for j in machine.joints]
    fluid = machine.fluid
    if fluid is not None:
        smooth = [replace(b, linear_drag=0.0, quadratic_drag=0.0) for b in fluid.immersed]
        fluid = replace(fluid, immersed=smooth, current=(0.0, 0.0, 0.0))
    return replace(machine, joints=joints, dampers=(), fluid=fluid)


def without_forces(machine: Machine) -> Machine:
    """Return the machine with nothing but inertia, that of the fluid included."""
    machine = without_losses(machine)
    joints = [replace(j, stiffness=0.0) if j.nv else j for j in machine.joints]
    fluid = machine.fluid
    if fluid is not None:
        fluid = replace(fluid, immersed=[replace(b, volume=0.0) for b in fluid.immersed])
    return replace(machine, joints=joints, springs=(), gravity=(0.0, 0.0, 0.0), fluid=fluid)
