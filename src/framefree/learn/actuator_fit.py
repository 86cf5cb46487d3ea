"""Learning actuators from commands and what came of them at the port.

Commands c are held from row to row, as a controller holds them, so that outputs are exactly

    a_(k+1) = e^(-h/T) a_k + (1 - e^(-h/T)) phi(c_k),        w = C a

and the numbers of `ActuatorMap` are those of the least squares of w. Where ports come from a motion
(`measured_ports`), w passes the same local polynomials as the motion did. Slopes by all numbers are
written down; gains stay positive by their logarithms; outputs at the first row are found along with
the rest. Couplings, dead zones and lags that are less than three standard deviations are then taken
to be none, and the rest is fitted again. An input that was driven one way only, as by the weight of
an arm, is taken to be the same the other way.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from framefree.identify import Recording
from framefree.learn.actuators import SLOPE, UNIT, ActuatorMap
from framefree.learn.errors import LearnError
from framefree.learn.measured import LocalPolynomials, MeasuredMotion
from framefree.machine import Machine
from framefree.motion import equations

SURE = 3.0
"""Standard deviations that a number must differ from zero by."""
QUICK = 0.2
"""Rows of lag below which an actuator counts as following at once."""


@dataclass(frozen=True, eq=False)
class PortSamples:
    """Commands, and what was found at the port, at one even rate.

    Parameters
    ----------
    period : float
        s from row to row.
    commands : (rows, n)
    ports : (rows - 2 skip, n)
        Found at rows `skip` to rows - skip.
    filter : LocalPolynomials, optional
        That the ports passed.
    skip : int
        Rows without ports at either end.
    """

    period: float
    commands: Any
    ports: Any
    filter: LocalPolynomials | None = None
    skip: int = 0

    def __post_init__(self) -> None:
        for name in ("commands", "ports"):
            values = np.array(getattr(self, name), float)
            if values.ndim != 2 or not np.isfinite(values).all():
                raise LearnError(f"`{name}` must be finite numbers, a row for every moment")
            object.__setattr__(self, name, values)
        rows, n = self.commands.shape
        if self.ports.shape != (rows - 2 * self.skip, n):
            raise LearnError(
                f"`ports` must have shape {(rows - 2 * self.skip, n)}, got {self.ports.shape}"
            )
        if not self.period > 0:
            raise LearnError(f"`period` must be positive, got {self.period}")
        if len(self.ports) < 20 * (n + 5):
            raise LearnError(
                f"{len(self.ports)} rows are too few for {n} actuators: {20 * (n + 5)} or more"
            )
        for i in range(n):
            if not np.ptp(self.commands[:, i]) > 0:
                raise LearnError(
                    f"the command of input {i + 1} never changed: its actuator cannot be learned"
                )

    def filtered(self, signals: np.ndarray) -> np.ndarray:
        """Return signals (rows, k) as the ports show them."""
        if self.filter is None:
            return signals[self.skip : len(signals) - self.skip]
        apart = self.skip - self.filter.half
        smooth = self.filter.apply(signals)
        return smooth[apart : len(smooth) - apart]


def measured_ports(machine: Machine, recording: Recording, window: float) -> PortSamples:
    """Return commands of a recording and the port that its motion shows, B^+ (M a + c).

    Parameters
    ----------
    machine : Machine
        Known but for its actuators; every input moves something of its own.
    recording : Recording
        x and the commands u at an even rate.
    window : float
        Length of the local polynomials, s.
    """
    if recording.u is None:
        raise LearnError("the recording has no commands `u`")
    motion = MeasuredMotion.of(machine, recording, window)
    x, v, _ = motion.motion
    form = equations(machine, "constrained" if machine.closed else "tree")
    B_kernel = form.kernel("input_matrix")
    B = B_kernel(*(x, v)[: len(B_kernel.inputs)])
    if np.linalg.matrix_rank(B).min() < machine.nu:
        raise LearnError(
            f"the inputs of `{machine.name}` do not all move something of their own: the motion "
            "does not tell them apart"
        )
    ports = np.einsum("nij,nj->ni", np.linalg.pinv(B), motion.demanded)
    half = motion.polynomials.half
    return PortSamples(recording.period, recording.u, ports, motion.polynomials, 2 * half)


@dataclass(frozen=True, eq=False)
class ActuatorFit:
    """Fitted actuators, and how far the samples told them.

    Attributes
    ----------
    actuators : ActuatorMap
    residual : (n,)
        What is left of every port, relative.
    untold : tuple of str
        Inputs and directions that were not driven, such as "2 backwards".
    """

    actuators: ActuatorMap
    residual: np.ndarray
    untold: tuple[str, ...]


def fit_actuators(samples: PortSamples, lower: Any = -np.inf, upper: Any = np.inf) -> ActuatorFit:
    """Learn gains, dead zones, couplings and lags.

    Parameters
    ----------
    samples : PortSamples
    lower, upper : (n,)
        Limits of the commands, as they are known.
    """
    problem = _ActuatorProblem(samples)
    n, free = problem.n, np.ones(problem.size, bool)
    theta = problem.solve(problem.start(), free)
    while True:
        sure = problem.sure(theta, free)
        if (sure == free).all():
            break
        free = sure
        theta = problem.solve(np.where(free, theta, 0.0), free)
    left = np.linalg.norm(problem.residual(theta), axis=0)
    values, spread = problem.plain(theta), problem.deviations(theta, free)
    spread[~free] = 0.0
    untold = []
    for i in range(n):
        for own, other, word in ((i, n + i, "forwards"), (n + i, i, "backwards")):
            if not free[own]:
                untold.append(f"{i + 1} {word}")
                values[[own, 2 * n + own]] = values[[other, 2 * n + other]]
    made, told = problem.named(values), problem.named(spread)
    told["coupling"] = told["coupling"] - np.eye(n)
    actuators = ActuatorMap(**made, lower=lower, upper=upper, deviations=told)
    return ActuatorFit(actuators, left / np.linalg.norm(samples.ports, axis=0), tuple(untold))


class _ActuatorProblem:
    """Least squares in theta = (log g_+, log g_-, d_+, d_-, T, C off its diagonal, a_0)."""

    def __init__(self, samples: PortSamples) -> None:
        self.samples, self.n = samples, samples.commands.shape[1]
        self.apart = [(i, j) for i in range(self.n) for j in range(self.n) if i != j]
        self.size = 6 * self.n + len(self.apart)
        self.scale = np.sqrt(np.mean(samples.ports**2, axis=0)) + 1e-12

    def plain(self, theta: np.ndarray) -> np.ndarray:
        """Return the numbers themselves: gains instead of their logarithms."""
        values = np.array(theta)
        values[: 2 * self.n] = np.exp(values[: 2 * self.n])
        return values

    def named(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """Return the numbers by the names that `ActuatorMap` has for them."""
        n, C = self.n, np.eye(self.n)
        for (i, j), value in zip(self.apart, values[5 * n : -n], strict=True):
            C[i, j] = value
        return {**{key: values[k * n : (k + 1) * n] for k, key in enumerate(UNIT)}, "coupling": C}

    def sure(self, theta: np.ndarray, free: np.ndarray) -> np.ndarray:
        """Return which numbers (size,) stay free: gains that act, and what differs from zero."""
        n, values = self.n, self.plain(theta)
        spread = self.deviations(theta, free)
        kept = free & (np.abs(values) > SURE * spread)
        kept[: 2 * n] = np.isfinite(spread[: 2 * n])
        kept[2 * n : 4 * n] &= kept[: 2 * n]
        kept[4 * n : 5 * n] &= values[4 * n : 5 * n] > QUICK * self.samples.period
        kept[-n:] = kept[4 * n : 5 * n]
        idle = [i for i in range(n) if not kept[i] and not kept[n + i]]
        if idle:
            raise LearnError(f"the command of input {idle[0] + 1} never moved its port")
        return kept

    def start(self) -> np.ndarray:
        """Return gains without dead zones, at the common lag that leaves the least."""
        samples, n = self.samples, self.n
        trials = []
        for rows in (0.5, 2.0, 5.0, 10.0, 20.0, 50.0):
            T = rows * samples.period
            outputs = samples.filtered(np.column_stack(
                [_lagged(c, T, samples.period) for c in samples.commands.T]))  # fmt: skip
            A = np.linalg.lstsq(outputs, samples.ports, rcond=None)[0].T
            left = np.sum(((outputs @ A.T - samples.ports) / self.scale) ** 2)
            trials.append((float(left), T, A))
        _, T, A = min(trials, key=lambda trial: trial[0])
        gains = np.diag(A)
        if not (gains > 0).all():
            at = int(np.argmin(gains)) + 1
            raise LearnError(f"input {at} acts against its command: exchange its sign first")
        theta = np.zeros(self.size)
        theta[: 2 * n] = np.log(np.r_[gains, gains])
        theta[2 * n : 4 * n] = 0.01 * np.tile(np.abs(samples.commands).max(axis=0), 2)
        theta[4 * n : 5 * n] = T
        theta[5 * n : -n] = [A[i, j] / gains[j] for i, j in self.apart]
        theta[-n:] = gains * samples.commands[0]
        return theta

    def solve(self, start: np.ndarray, free: np.ndarray) -> np.ndarray:
        """Return theta of least squares; numbers that are not free stay."""
        from scipy.optimize import least_squares

        n, h = self.n, self.samples.period
        top = np.abs(self.samples.commands).max(axis=0)
        pairs = np.ones(len(self.apart))
        low = np.r_[np.full(2 * n, -30.0), np.zeros(3 * n), -10 * pairs, np.full(n, -np.inf)]
        high = np.r_[np.full(2 * n, 30.0), 0.9 * top, 0.9 * top, np.full(n, 1e3 * h), 10 * pairs,
                     np.full(n, np.inf)]  # fmt: skip
        sizes = np.r_[np.ones(2 * n), top, top, np.full(n, 10 * h), pairs, self.scale]

        def whole(part: np.ndarray) -> np.ndarray:
            theta = np.array(start)
            theta[free] = part
            return theta

        inside = np.clip(start[free], low[free] + 1e-9, high[free] - 1e-9)
        found = least_squares(
            lambda z: (self.residual(whole(z)) / self.scale).T.ravel(), inside,
            lambda z: self.slopes(whole(z))[:, free], (low[free], high[free]),  # type: ignore[arg-type]
            x_scale=sizes[free], xtol=1e-10, ftol=1e-12, gtol=1e-12, max_nfev=200,
        )  # fmt: skip
        return whole(found.x)

    def residual(self, theta: np.ndarray) -> np.ndarray:
        """Return w - port (rows, n)."""
        named = self.named(self.plain(theta))
        outputs = self._outputs(named, theta[-self.n :])
        return self.samples.filtered(outputs) @ named["coupling"].T - self.samples.ports

    def _outputs(self, named: dict[str, np.ndarray], first: np.ndarray) -> np.ndarray:
        phi = _static(self.samples.commands, named)
        channels = zip(phi.T, named["time_constants"], first, strict=True)
        return np.column_stack([_lagged(one, T, self.samples.period, a) for one, T, a in channels])

    def slopes(self, theta: np.ndarray) -> np.ndarray:
        """Return the slopes of the scaled residual, output after output, (rows n, size)."""
        samples, n = self.samples, self.n
        named = self.named(self.plain(theta))
        C, rows, first = named["coupling"], len(samples.ports), theta[-n:]
        J = np.zeros((n, rows, self.size))
        for j in range(n):
            places = [*range(j, 5 * n, n), self.size - n + j]
            for k, signal in zip(places, self._channel_slopes(named, j, first[j]), strict=True):
                J[:, :, k] = np.outer(C[:, j], samples.filtered(signal[:, None])[:, 0])
        outputs = samples.filtered(self._outputs(named, first))
        for place, (i, j) in enumerate(self.apart, start=5 * n):
            J[i, :, place] = outputs[:, j]
        return (J / self.scale[:, None, None]).reshape(n * rows, self.size)

    def _channel_slopes(
        self, named: dict[str, np.ndarray], j: int, first: float
    ) -> list[np.ndarray]:
        """Return slopes of output j by log g_+, log g_-, d_+, d_-, T and its first value."""
        samples, c = self.samples, self.samples.commands[:, j]
        forwards, backwards = named["forwards"][j], named["backwards"][j]
        top, bottom, T = (named[key][j] for key in
                          ("dead_forwards", "dead_backwards", "time_constants"))  # fmt: skip
        flat = SLOPE * (forwards + backwards) / 2
        more, less = np.maximum(c - top, 0), np.maximum(-c - bottom, 0)
        by_flat = c - more + less
        static = (
            forwards * (more + SLOPE / 2 * by_flat),
            backwards * (-less + SLOPE / 2 * by_flat),
            -(forwards - flat) * (c > top),
            (backwards - flat) * (-c > bottom),
        )
        h = samples.period
        slopes = [_lagged(one, T, h, 0.0) for one in static]
        phi, step = _static(samples.commands, named)[:, j], 1e-5 * max(T, h)
        after, before = (_lagged(phi, T + side * step, h, first) for side in (1, 0))
        fading = _lagged(np.zeros(len(c)), T, h, 1.0)
        return [*slopes, (after - before) / step, fading]

    def deviations(self, theta: np.ndarray, free: np.ndarray) -> np.ndarray:
        """Return standard deviations (size,) of the numbers themselves."""
        J, n = self.slopes(theta), self.n
        sizes = np.linalg.norm(J, axis=0)
        # Within its dead zone an actuator still has a slope, which tells nothing of its gain.
        most = np.maximum(sizes[:n], sizes[n : 2 * n])
        told = free & (sizes > np.r_[np.tile(2 * SLOPE * most, 2), np.zeros(self.size - 2 * n)])
        scaled = J[:, told] / sizes[told]
        left = (self.residual(theta) / self.scale).ravel()
        variance = float(left @ left) / max(len(left) - scaled.shape[1], 1)
        inverse = np.linalg.pinv(scaled.T @ scaled)
        result = np.full(self.size, np.inf)
        result[told] = np.sqrt(np.maximum(np.diag(inverse), 0.0) * variance) / sizes[told]
        result[: 2 * n] *= np.exp(theta[: 2 * n])
        return result


def _static(c: np.ndarray, named: dict[str, np.ndarray]) -> np.ndarray:
    """Return phi(c) of all rows, as `ActuatorMap.outputs` has it."""
    forwards, backwards = named["forwards"], named["backwards"]
    flat = SLOPE * (forwards + backwards) / 2
    more = np.maximum(c - named["dead_forwards"], 0)
    less = np.maximum(-c - named["dead_backwards"], 0)
    return flat * c + (forwards - flat) * more - (backwards - flat) * less


def _lagged(signal: np.ndarray, T: float, period: float, first: float = 0.0) -> np.ndarray:
    """Return the output of a lag that starts at `first`; its input is held from row to row."""
    from scipy.signal import lfilter

    if T <= 0:
        return signal
    keep = float(np.exp(-period / T))
    after = lfilter([1 - keep], [1, -keep], signal[:-1], zi=[keep * first])[0]
    return np.r_[first, after]
