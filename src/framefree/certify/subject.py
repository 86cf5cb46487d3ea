"""The machine under test with its equations, and the random states at which it is tested."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.errors import FramefreeError
from framefree.machine import JointStop, Machine
from framefree.machine.closure import LoopClosure
from framefree.machine.pair_force import conservative
from framefree.machine.units import SINGULAR, Units, definiteness, linear_velocities
from framefree.motion import Equations
from framefree.motion.tree import Tree

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
    """A machine with its equations and random states, each made at its first use.

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
    formulations: Mapping[str, Callable[..., Equations]]
    states: int = 24
    samples: int = 1024
    seed: int = 0
    length: float | None = None

    @cached_property
    def units(self) -> Units:
        """Natural units of the machine, in which residuals are judged."""
        return Units.of(self.open)

    @cached_property
    def scale(self) -> np.ndarray:
        """Units (nv,) of the eigenvalues of M: `length` for linear velocities."""
        linear = linear_velocities(self.open)
        return np.where(linear, 1.0 if self.length is None else self.length, 1.0)

    def rng(self, salt: int) -> np.random.Generator:
        """Return random numbers for one check: with a salt of its own, none shifts another."""
        return np.random.default_rng([self.seed, salt])

    @property
    def closed(self) -> bool:
        """Whether loops or couplings constrain the tree of joints."""
        return self.machine.closed

    @property
    def open(self) -> Machine:
        """The machine with its loops opened and its couplings released."""
        return self.machine.tree

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
        applying, refused = {}, {}
        for name, formulation in self.formulations.items():
            try:
                applying[name] = formulation(machine)
            except FramefreeError as error:
                refused[name] = str(error)
        return applying, refused

    def reference(self, applying: Mapping[str, Equations]) -> str:
        """Return the name of the formulation to trust: the first with the joints' coordinates."""
        own = self.machine.nx, self.machine.nv
        fitting = [name for name, e in applying.items() if (e.sizes["x"], e.sizes["v"]) == own]
        return fitting[0] if fitting else ""

    @cached_property
    def closure(self) -> LoopClosure:
        """The loops and couplings of the machine: where they hold, and the motions they allow."""
        return LoopClosure(self.machine, self.units)

    @cached_property
    def singular(self) -> bool:
        """Whether M is singular up to rounding at some state, along what loops allow."""
        if not self.closed:
            return self.singular_open
        x = self.closed_states.x
        (masses,) = evaluate(self.bare.functions["mass"], x)
        return any(
            self.definiteness_closed(M, Z) <= SINGULAR
            for M, Z in zip(masses, self.closure.allowed_directions(x), strict=True)
        )

    def definiteness_closed(self, M: np.ndarray, Z: np.ndarray) -> float:
        """Return how far M is from singular along the velocities D Z that loops allow."""
        weight = np.sqrt(self.units.inertia) * self.units.velocity
        # An orthonormal basis in which every velocity counts by what it could feel.
        Q, _ = np.linalg.qr(weight[:, None] * Z)
        root = np.sqrt(self.units.inertia)
        return definiteness(Q.T @ (M / np.outer(root, root)) @ Q, np.ones(Q.shape[1]))

    @cached_property
    def singular_open(self) -> bool:
        """Whether M of the open machine is singular up to rounding at some state."""
        (masses,) = evaluate(self.bare.functions["mass"], self.open_states.x)
        return any(definiteness(M, self.units.inertia) <= SINGULAR for M in masses)

    @cached_property
    def open_states(self) -> States:
        """Random states of the open machine."""
        rng = self.rng(1)
        return self._states(rng, self.units.random(self.open, rng, self.states))

    @cached_property
    def closed_states(self) -> States:
        """Random states on which all loops and couplings hold; as many as were reached."""
        if not self.closed:
            return self.open_states
        rng = self.rng(2)
        x = self.closed_configurations(rng, self.states)
        states = self._states(rng, x)
        return replace(states, v=self.closure.allowed(x, states.v))

    def closed_configurations(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return up to `count` configurations on which all loops and couplings hold."""
        starts = self.units.random(self.open, rng, 4 * count)
        return self.closure.closed(np.vstack([self.open.neutral(), starts]), count)

    def _states(self, rng: np.random.Generator, x: np.ndarray) -> States:
        """Return random velocities, accelerations and forces, M times others, of natural size."""
        D, T = self.units.velocity, self.units.time
        v, a, pushed = rng.normal(size=(3, len(x), self.open.nv))
        (M,) = evaluate(self.bare.functions["mass"], x)
        if not np.isfinite(M).all():
            M = np.tile(np.diag(self.units.inertia), (len(x), 1, 1))
        force = np.einsum("nij,nj->ni", M, 3 * pushed * D / T**2)
        return States(x, v * D / T, 3 * a * D / T**2, force)


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


def relative(value: np.ndarray, expected: np.ndarray, scale: Any = 0.0) -> float:
    """Return the largest gap over all states, each relative to its state's largest expected entry.

    Infinite where something is not finite. Entries must be of one unit; `scale`, of that unit, is
    the least size (n,) that counts as one, for what is expected to vanish.
    """
    count = len(value)
    gap, size = (np.reshape(array, (count, -1)) for array in (value - expected, expected))
    if not gap.size:
        return 0.0
    if not np.isfinite(gap).all():
        return np.inf
    sizes = np.maximum(np.abs(size).max(axis=1), scale)
    sizes = np.maximum(sizes, 1e-9 * sizes.max())
    gaps = np.abs(gap).max(axis=1)
    return float(np.divide(gaps, sizes, out=np.where(gaps > 0, np.inf, 0.0), where=sizes > 0).max())


def without_losses(machine: Machine) -> Machine:
    """Return the machine without friction, dampers and drag, in still fluid.

    Of interactions the slopes of their energies are left; stops, which set in at a kink, go.
    """
    smooth_joint = {"damping": 0.0, "friction": 0.0, "friction_asymmetry": 0.0}
    joints = [replace(j, **smooth_joint) if j.nv else j for j in machine.joints]
    fluid = machine.fluid
    if fluid is not None:
        smooth = [body.inert for body in fluid.immersed if body.inert is not None]
        fluid = replace(fluid, immersed=smooth, current=(0.0, 0.0, 0.0))
    held = [t for t in machine.tendons if not isinstance(t, JointStop)]
    tendons = [replace(t, damping=0.0, friction=0.0) for t in held]
    kept = conservative(machine.interactions)
    return replace(
        machine, joints=joints, dampers=(), tendons=tendons, fluid=fluid, interactions=kept
    )


def without_forces(machine: Machine) -> Machine:
    """Return the machine with nothing but inertia, that of the fluid included."""
    machine = without_losses(machine)
    joints = [replace(j, stiffness=0.0) if j.nv else j for j in machine.joints]
    fluid = machine.fluid
    if fluid is not None:
        fluid = replace(fluid, immersed=[replace(b, volume=0.0) for b in fluid.immersed])
    tendons = [replace(t, stiffness=0.0) for t in machine.tendons]
    nothing = {"springs": (), "interactions": (), "gravity": (0.0, 0.0, 0.0)}
    return replace(machine, joints=joints, tendons=tendons, fluid=fluid, **nothing)
