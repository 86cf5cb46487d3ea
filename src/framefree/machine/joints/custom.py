"""The custom joint: any motion that the user can write down as a pose map."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi
import numpy as np

from framefree.geometry import se3
from framefree.machine.joints.base import JointKind
from framefree.machine.part import set_field
from framefree.machine.problems import MachineError
from framefree.machine.values import numbers


@dataclass(frozen=True, eq=False)
class Custom(JointKind):
    """A joint defined by its pose map; its Jacobian and rates follow by differentiation.

    All maps are pure functions of casadi columns that return casadi matrices.

    Parameters
    ----------
    pose_map : callable x -> 4x4
        Child joint frame seen from the parent joint frame.
    nx : int
        Number of coordinates.
    nv : int
        Number of velocities; default nx.
    rate_map : callable x -> nx x nv
        A(x) with dx/dt = A v; default the identity, for nv = nx.
    integrate_map, difference_map : callable
        x (+) dv and its inverse, see `JointKind`. The default x + A dv and A^-1 (x1 - x0) serves
        where nv = nx; it is not a group exponential unless A is constant.
    normalise_map : callable x -> x
        Brings x back to where it belongs; default nothing to do.
    neutral_x : (nx,)
        Start; default zero.
    random_map : callable rng -> (nx,)
        Random configuration (NumPy); default `neutral_x` moved by a unit normal dv.
    coordinates, velocities : sequence of str
        Names; default q0, q1, ... and v0, v1, ....
    """

    pose_map: Callable
    nx: int
    nv: Any = None
    rate_map: Callable | None = None
    integrate_map: Callable | None = None
    difference_map: Callable | None = None
    normalise_map: Callable | None = None
    neutral_x: Any = None
    random_map: Callable | None = None
    coordinates: tuple[str, ...] = ()
    velocities: tuple[str, ...] = ()

    constant_jacobian = False
    springy = False

    def __post_init__(self) -> None:
        if self.nv is None:
            set_field(self, "nv", self.nx)
        if not (isinstance(self.nx, int) and isinstance(self.nv, int) and 0 < self.nv <= self.nx):
            raise MachineError(f"a custom joint needs 0 < nv <= nx, got nv={self.nv}, nx={self.nx}")
        start = np.zeros(self.nx) if self.neutral_x is None else self.neutral_x
        set_field(self, "neutral_x", numbers(start, (self.nx,), "`neutral_x` of a custom joint"))
        for name, letter, size in (("coordinates", "q", self.nx), ("velocities", "v", self.nv)):
            names = tuple(getattr(self, name)) or self._default_names(letter, size)
            if len(names) != size:
                raise MachineError(f"`{name}` of a custom joint must be {size} names, got {names}")
            set_field(self, name, names)
        self._check_maps()

    @property
    def x_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the coordinates."""
        return self.coordinates

    @property
    def v_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the velocities; those of the coordinates where dx/dt = v."""
        return self.coordinates if self.vector else self.velocities

    @property
    def vector(self) -> bool:  # type: ignore[override]
        """Whether dx/dt = v."""
        return self.rate_map is None and self.integrate_map is None

    def pose(self, x: Any) -> Any:
        """Return the user's pose map."""
        return self.pose_map(x)

    def jacobian(self, x: Any) -> Any:
        """Return S with columns vee(G^-1 dG/dx A_i)."""
        return self._jacobian(x)

    @property
    def additive(self) -> bool:
        """Whether differences are those of plain coordinates, and not the user's own."""
        return self.vector and self.difference_map is None

    def rate(self, x: Any) -> Any:
        """Return the user's A(x), or the identity."""
        return casadi.DM(np.eye(self.nx)) if self.rate_map is None else self.rate_map(x)

    def integrate(self, x: Any, dv: Any) -> Any:
        """Return the user's map, or x + A dv."""
        return self.integrate_map(x, dv) if self.integrate_map else x + self.rate(x) @ dv

    def difference(self, x0: Any, x1: Any) -> Any:
        """Return the user's map, or A^-1 (x1 - x0)."""
        if self.difference_map:
            return self.difference_map(x0, x1)
        return x1 - x0 if self.rate_map is None else casadi.solve(self.rate(x0), x1 - x0)

    def normalise(self, x: Any) -> Any:
        """Return the user's map, or x."""
        return self.normalise_map(x) if self.normalise_map else x

    @property
    def neutral(self) -> np.ndarray:
        """The user's start."""
        return np.array(self.neutral_x)

    def sample(self, rng: "np.random.Generator", count: int) -> np.ndarray:
        """Return the user's samples, or the start moved by unit normal dv."""
        if self.random_map:
            rows = [np.asarray(self.random_map(rng), dtype=float) for _ in range(count)]
        else:
            start = casadi.DM(self.neutral_x)
            steps = rng.normal(size=(count, self.nv))
            rows = [np.array(casadi.DM(self.integrate(start, casadi.DM(dv)))) for dv in steps]
        return np.array(rows).reshape(count, self.nx)

    @cached_property
    def _jacobian(self) -> casadi.Function:
        x = casadi.SX.sym("x", self.nx)
        G, A = casadi.SX(self.pose(x)), casadi.SX(self.rate(x))
        rates = casadi.jacobian(casadi.vec(G), x) @ A
        inverse = se3.inverse(G)
        columns = [se3.vee(inverse @ casadi.reshape(rates[:, i], 4, 4)) for i in range(self.nv)]
        return casadi.Function("jacobian", [x], [casadi.densify(casadi.horzcat(*columns))])

    def _default_names(self, letter: str, size: int) -> tuple[str, ...]:
        return tuple(f"{letter}{i}" for i in range(size))

    def _check_maps(self) -> None:
        x = casadi.SX.sym("x", self.nx)
        if casadi.SX(self.pose(x)).shape != (4, 4):
            raise MachineError("`pose_map` of a custom joint must return a 4x4 pose")
        if self.nx != self.nv and not (
            self.rate_map and self.integrate_map and self.difference_map
        ):
            raise MachineError(
                "a custom joint with nx > nv needs `rate_map`, `integrate_map` and `difference_map`"
            )
        shape = casadi.SX(self.rate(x)).shape
        if shape != (self.nx, self.nv):
            raise MachineError(
                f"`rate_map` of a custom joint must return {self.nx} x {self.nv}, got {shape}"
            )
        G = np.array(casadi.DM(self.pose(casadi.DM(self.neutral_x))))
        if not np.allclose(G[:3, :3].T @ G[:3, :3], np.eye(3), atol=1e-9) or G[3].tolist() != [
            0,
            0,
            0,
            1,
        ]:
            raise MachineError("`pose_map` of a custom joint does not return a pose at `neutral_x`")
