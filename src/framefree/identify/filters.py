"""Low-pass filters without phase, and derivatives through them, for records at an even rate.

One kernel h(t) serves all: filtered values are h * x, rates h' * x and second rates h'' * x, with
the derivatives of the kernel, so that all three belong to one smooth motion. Its gain is 1 up to
about the cut-off, 1/2 there, and below 1e-4 beyond twice the cut-off. The first and last rows,
`margin` of them, are dropped.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from framefree.identify.errors import IdentifyError
from framefree.machine import Machine

WINDOW = 14.0
"""Exponent of the Gaussian window at its end."""
LENGTH = 3.5
"""Half length of the kernel in periods of the cut-off frequency."""


@dataclass(frozen=True)
class LowPass:
    """A zero-phase low-pass filter.

    Parameters
    ----------
    cutoff : float
        Hz, where the gain is 1/2.
    period : float
        s, of the record.
    """

    cutoff: float
    period: float

    def __post_init__(self) -> None:
        nyquist = 0.5 / self.period
        if not 0 < self.cutoff < 0.8 * nyquist:
            raise IdentifyError(
                f"a cut-off of {self.cutoff:g} Hz needs a rate above {2.5 * self.cutoff:g} Hz, got "
                f"{1 / self.period:g} Hz"
            )

    @cached_property
    def margin(self) -> int:
        """Rows on either side that a filtered row depends on."""
        return int(np.ceil(LENGTH / self.cutoff / self.period))

    def kernels(self, late: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return h, h' and h'' at -margin .. margin periods, for convolutions.

        With `late` the sums give values at t_k + late.
        """
        half = self.margin * self.period
        s = late + np.arange(-self.margin, self.margin + 1) * self.period
        h, h1, h2 = _kernel(s, self.cutoff, half)
        gain = h.sum()
        # The window ends somewhere: what that does to constants is taken out exactly.
        return h / gain, (h1 - h1.sum() / gain * h) / gain, (h2 - h2.sum() / gain * h) / gain

    def apply(self, values: np.ndarray, derivative: int = 0, late: float = 0.0) -> np.ndarray:
        """Return filtered columns, or their rates; `margin` rows shorter at either end."""
        from scipy.signal import fftconvolve

        kernel = self.kernels(late)[derivative]
        flat = values.reshape(len(values), -1)
        if len(flat) < len(kernel) + 4:
            raise IdentifyError(
                f"a cut-off of {self.cutoff:g} Hz needs more than {len(kernel) * self.period:.3g} s"
                f" of data, got {len(flat) * self.period:.3g} s"
            )
        # A constant passes with gain exactly 1, and has rate exactly 0.
        middle = flat.mean(axis=0)
        base = middle if derivative == 0 else 0.0
        result = fftconvolve(flat - middle, kernel[:, None], mode="valid", axes=0) + base
        return result.reshape(len(result), *values.shape[1:])


def _kernel(s: np.ndarray, cutoff: float, half: float) -> tuple[np.ndarray, ...]:
    """Return a windowed sinc and its first two derivatives at times s; zero beyond `half`."""
    w = 2 * np.pi * cutoff
    z = w * s
    small = np.abs(z) < 1e-4
    y = np.where(small, 1.0, z)
    sine, cosine = np.sin(y), np.cos(y)
    sinc = np.where(small, 1 - z**2 / 6, sine / y)
    first = np.where(small, -z / 3, (cosine - sine / y) / y)
    second = np.where(small, -1 / 3 + z**2 / 10, -sine / y - 2 * (cosine - sine / y) / y**2)
    scale = 2 * cutoff
    ideal = scale * sinc, scale * w * first, scale * w**2 * second
    window = _window(s, half)
    h = ideal[0] * window[0]
    h1 = ideal[1] * window[0] + ideal[0] * window[1]
    h2 = ideal[2] * window[0] + 2 * ideal[1] * window[1] + ideal[0] * window[2]
    return h, h1, h2


def _window(s: np.ndarray, half: float) -> tuple[np.ndarray, ...]:
    """Return a Gaussian window that ends at `half`, smoothly enough, and its two derivatives."""
    width = half / np.sqrt(2 * WINDOW)
    g = np.where(np.abs(s) <= half * 1.02, np.exp(-((s / width) ** 2) / 2), 0.0)
    return g, -s / width**2 * g, (s**2 / width**4 - 1 / width**2) * g


def smooth_motion(
    machine: Machine, x: np.ndarray, low_pass: LowPass
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return filtered x, v and a of a recorded configuration, on the groups of the joints.

    Plain coordinates are filtered as they are. Of others the rows around each row enter by their
    differences from it, d_j = difference(x_k, x_(k+j)):

        x = x_k (+) sum_j h_j d_j,     v = rate of that,      a = rate of v, by the same kernel
    """
    plain = [joint for joint in machine.joints if joint.kind.vector]
    h, h1, _ = low_pass.kernels()
    m = low_pass.margin
    inside = slice(m, len(x) - m)
    smooth = np.array(x[inside])
    v = np.zeros((len(smooth), machine.nv))
    a = np.zeros_like(v)
    for joint in plain:
        own, rate = machine.x_slice[joint.name], machine.v_slice[joint.name]
        smooth[:, own] = low_pass.apply(x[:, own])
        v[:, rate] = low_pass.apply(x[:, own], 1)
        a[:, rate] = low_pass.apply(x[:, own], 2)
    turning = [joint for joint in machine.joints if joint.nv and not joint.kind.vector]
    if turning:
        moved = _on_groups(machine, x, h, h1, m, turning)
        for joint in turning:
            own, rate = machine.x_slice[joint.name], machine.v_slice[joint.name]
            smooth[:, own], v[:, rate] = moved[0][:, own], moved[1][:, rate]
            a[:, rate] = np.gradient(v[:, rate], low_pass.period, axis=0, edge_order=2)
    return smooth, v, a


def _on_groups(
    machine: Machine, x: np.ndarray, h: np.ndarray, h1: np.ndarray, m: int, joints: list
) -> tuple[np.ndarray, np.ndarray]:
    """Return filtered x and v of all joints by differences on their groups."""
    here = x[m : len(x) - m]
    mean, rate = np.zeros((len(here), machine.nv)), np.zeros((len(here), machine.nv))
    total = h.sum()
    for j in range(-m, m + 1):
        d = machine.difference(here, x[m + j : len(x) - m + j])
        # The kernels are even and odd: row k + j enters with the weight at -j.
        mean += h[m - j] / total * d
        rate += h1[m - j] * d
    smooth = machine.integrate(here, mean)
    # d/dt (x_k (+) d) = v: at d = 0 the rate is v itself; off it, by the slope of `difference`,
    # which the small distance between x_k and its mean makes negligible.
    return smooth, rate
