"""The sea: waves of a spectrum, and a hull that floats in them.

*Waves* travel in one direction over deep water, z = 0 of frame a being still water:

    zeta(r, t) = sum_i a cos(k_i (r . d) - w_i t - p_i),      k_i = w_i^2 / g

with frequencies and phases from the JONSWAP spectrum and a seed [Fossen2021, sec. 10.2]. Four
times the deviation of zeta is the significant height, exactly.

*A hull* of length L, breadth B and draft T has vertical sides and floats upright, x ahead. With the
depth of its bottom below the water surface d(x, y), linear in x and y,

    U = rho g / (2 R_33) int d^2 dA = rho g L B / (2 R_33) (d_0^2 + d_x^2 L^2 / 12 + d_y^2 B^2 / 12)

is the potential energy of the water it displaces, exact in still water while the bottom is wet and
the deck dry. Its slopes are buoyancy and righting moments, and in waves the pressure of the
undisturbed wave (Froude and Krylov), surge, sway and yaw included. The surface under the hull is
that of the waves, smoothed as pressure at the bottom is: a component of wave numbers (k_x, k_y)
along the hull counts by

    exp(-k T) s(k_x L / 2) s(k_y B / 2),      s(u) = sin(u) / u      [Journee2001, box barges]

and its slopes by m(u) = 3 (sin u - u cos u) / u^3 in the place of s along their axis. Scattering of
waves by the hull is left out; waves that it makes are an added mass (`Immersed`) and `damping`.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import casadi
import numpy as np

from framefree.machine.pair_force import PairForce
from framefree.machine.part import Part, checked_name, set_field
from framefree.machine.problems import MachineError
from framefree.machine.spectrum import SineSum, sine_sum
from framefree.machine.values import numbers, scalar

LOWEST, HIGHEST = 0.4, 6.0
"""Frequencies of waves that are looked at, over that of the peak."""
FLAT = 1e-2
"""Argument below which s and m are their series."""


@dataclass(frozen=True, eq=False)
class Waves(Part):
    """Waves of one direction, by the JONSWAP spectrum.

    Parameters
    ----------
    height : float
        Significant height, m.
    period : float
        Of the peak of the spectrum, s.
    direction : float
        In which they travel, rad from the x axis of frame a.
    components : int
        Number of sines; one is a regular wave of the period and the same variance.
    seed : int
    peakedness : float
        1 for the spectrum of Pierson and Moskowitz, 3.3 for a young sea.
    gravity : float
        m/s^2.
    """

    height: float = 1.0
    period: float = 7.0
    direction: float = 0.0
    components: int = 40
    seed: int = 0
    peakedness: float = 3.3
    gravity: float = 9.81

    def __post_init__(self) -> None:
        for name in ("height", "period", "direction", "peakedness", "gravity"):
            value = scalar(getattr(self, name), f"`{name}` of waves")
            if name != "direction" and not value > 0:
                raise MachineError(f"`{name}` of waves must be positive, got {value}")
        for name, least in (("components", 1), ("seed", 0)):
            if not isinstance(getattr(self, name), int | np.integer) or getattr(self, name) < least:
                raise MachineError(
                    f"`{name}` of waves must be a whole number from {least} on, got "
                    f"{getattr(self, name)!r}"
                )
        if not self.peakedness >= 1:
            raise MachineError(f"`peakedness` of waves must be 1 or more, got {self.peakedness}")

    @property
    def peak(self) -> float:
        """Frequency of the peak, rad/s."""
        return 2 * np.pi / self.period

    def density(self, frequency: np.ndarray) -> np.ndarray:
        """Return the spectrum S(w), m^2 s, before it is scaled to the height."""
        w, peak = np.asarray(frequency, float), self.peak
        width = np.where(w <= peak, 0.07, 0.09)
        bump = np.exp(-(((w - peak) / (width * peak)) ** 2) / 2)
        return w**-5.0 * np.exp(-1.25 * (peak / w) ** 4) * self.peakedness**bump

    @cached_property
    def sines(self) -> SineSum:
        """The components."""
        variance = self.height**2 / 16
        if self.components == 1:
            phase = np.random.default_rng(self.seed).uniform(0, 2 * np.pi, 1)
            return SineSum(float(np.sqrt(2 * variance)), np.array([self.peak]), phase)
        rng = np.random.default_rng(self.seed)
        ends = (LOWEST * self.peak, HIGHEST * self.peak)
        return sine_sum(self.density, *ends, self.components, rng, variance)

    @property
    def wave_numbers(self) -> np.ndarray:
        """Wave numbers k (n,), rad/m."""
        return self.sines.frequency**2 / self.gravity

    def phases(self, x: Any, y: Any, t: Any) -> list[Any]:
        """Return the phase of every component at a place and time, rad."""
        along = np.cos(self.direction) * x + np.sin(self.direction) * y
        parts = zip(self.wave_numbers, self.sines.frequency, self.sines.phase, strict=True)
        return [k * along - w * t - p for k, w, p in parts]

    def elevation(self, x: Any, y: Any, t: Any) -> Any:
        """Return the height of the surface, m: of casadi expressions, or of arrays."""
        if any(isinstance(value, casadi.SX | casadi.DM) for value in (x, y, t)):
            terms = [casadi.cos(phase) for phase in self.phases(x, y, t)]
        else:
            terms = [np.cos(phase) for phase in self.phases(*map(np.asarray, (x, y, t)))]
        return self.sines.amplitude * sum(terms)


@dataclass(frozen=True, eq=False)
class FloatingHull(PairForce):
    """A hull with vertical sides that floats; see the top of this file.

    Parameters
    ----------
    name, frame_a, frame_b : str
        Frame a has z up, and still water at z = 0; usually "world". Frame b is the hull's: x ahead,
        z up, its origin in the middle of the waterplane.
    length, breadth, draft : float
        L, B and T, m. It floats with frame b at the surface where rho L B T is its mass.
    density : float
        rho, kg/m^3.
    gravity : float
        m/s^2.
    damping : (6,)
        Linear damping along and about the axes of frame b, N s/m and Nm s.
    waves : Waves, optional
    moment : float, optional
        Holds the time at this value, s.
    """

    name: str
    frame_a: str
    frame_b: str
    length: float
    breadth: float
    draft: float
    density: float = 1025.0
    gravity: float = 9.81
    damping: Any = (0.0,) * 6
    waves: Waves | None = None
    moment: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        checked_name(self.name, "a floating hull")
        for name in ("length", "breadth", "draft", "density", "gravity"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise MachineError(
                    f"`{name}` of the floating hull `{self.name}` must be positive, got {value}"
                )
        what = f"`damping` of the floating hull `{self.name}`"
        set_field(self, "damping", numbers(self.damping, (6,), what))
        if (self.damping < 0).any():
            raise MachineError(f"{what} must be zero or more, got {self.damping.tolist()}")
        if self.waves is not None and not isinstance(self.waves, Waves):
            raise MachineError(
                f"`waves` of the floating hull `{self.name}` must be Waves, got {self.waves!r}"
            )

    @property
    def displacement(self) -> float:
        """Mass of the water that it displaces at rest, kg."""
        return self.density * self.length * self.breadth * self.draft

    # ------------------------------------------------------------------ the contract of PairForce

    @property
    def timed(self) -> bool:
        """Whether there are waves."""
        return self.waves is not None and self.moment is None

    @property
    def stores(self) -> bool:
        """True."""
        return True

    def held_at(self, time: float) -> "FloatingHull":
        """Return the hull in the waves of one moment."""
        return replace(self, moment=float(time)) if self.timed else self

    def energy_at(self, pose: Any, time: Any) -> Any:
        """Return the energy U of the displaced water, J."""
        rise, slope_x, slope_y = self._surface(pose, time)
        depth = rise - pose[2, 3] + pose[2, 2] * self.draft
        along, across = slope_x - pose[2, 0], slope_y - pose[2, 1]
        squares = depth**2 + (along * self.length) ** 2 / 12 + (across * self.breadth) ** 2 / 12
        weight = self.density * self.gravity * self.length * self.breadth
        return weight / (2 * pose[2, 2]) * squares

    def wrench_at(self, pose: Any, twist: Any, time: Any) -> Any:
        """Return the slope of the energy, and damping."""
        return self.conservative_wrench(pose, time) - casadi.DM(self.damping) * twist

    def dissipation_at(self, pose: Any, twist: Any, time: Any) -> Any:
        """Return what damping takes, W."""
        return casadi.dot(twist, casadi.DM(self.damping) * twist)

    def records(self, pose: Any, twist: Any, time: Any) -> dict[str, tuple[Any, str]]:
        """Return the height of the waves where the hull is."""
        if self.waves is None:
            return {}
        return {"elevation": (self.waves.elevation(pose[0, 3], pose[1, 3], time), "m")}

    def _surface(self, pose: Any, time: Any) -> tuple[Any, Any, Any]:
        """Return the smoothed surface under the hull: height, and slopes along its x and y."""
        if self.waves is None:
            return 0.0, 0.0, 0.0
        waves, t = self.waves, time if self.moment is None else self.moment
        to = np.cos(waves.direction), np.sin(waves.direction)
        ahead = to[0] * pose[0, 0] + to[1] * pose[1, 0]
        aside = to[0] * pose[0, 1] + to[1] * pose[1, 1]
        rise = slope_x = slope_y = casadi.SX(0)
        phases = waves.phases(pose[0, 3], pose[1, 3], t)
        for k, phase in zip(waves.wave_numbers, phases, strict=True):
            size = waves.sines.amplitude * np.exp(-k * self.draft)
            u, w = k * ahead * self.length / 2, k * aside * self.breadth / 2
            flat_u, flat_w = _mean(u), _mean(w)
            rise += size * flat_u * flat_w * casadi.cos(phase)
            slope_x -= size * k * ahead * _mean_slope(u) * flat_w * casadi.sin(phase)
            slope_y -= size * k * aside * flat_u * _mean_slope(w) * casadi.sin(phase)
        return rise, slope_x, slope_y


def _mean(u: Any) -> Any:
    """Return s(u) = sin(u) / u: the mean of a cosine over a length."""
    near = casadi.fabs(u) < FLAT
    safe = casadi.if_else(near, 1.0, u)
    return casadi.if_else(near, 1 - u**2 / 6 + u**4 / 120, casadi.sin(safe) / safe)


def _mean_slope(u: Any) -> Any:
    """Return m(u) = 3 (sin u - u cos u) / u^3: the mean slope of a sine over a length."""
    near = casadi.fabs(u) < FLAT
    safe = casadi.if_else(near, 1.0, u)
    far = 3 * (casadi.sin(safe) - safe * casadi.cos(safe)) / safe**3
    return casadi.if_else(near, 1 - u**2 / 10 + u**4 / 280, far)
