"""From recorded motions to rows ``Y_k pi = b_k``, filtered alike on both sides.

x is differentiated through a low-pass filter of `WIDE` times the cut-off, the regressor is taken
along that motion, and both sides then pass the low-pass filter of the cut-off: what it takes away
it takes from both, and nothing is differentiated twice without it. Single rows that stand out from
their neighbours are replaced before. Forces or inputs
may act `delay` seconds after they are recorded. Rows that a closed machine's loops carry are
projected out: of A(x) v = 0 only the motions that the loops allow are kept.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from framefree.identify.errors import IdentifyError
from framefree.identify.filters import LowPass, smooth_motion
from framefree.identify.recording import Recording, checked
from framefree.identify.spikes import without_spikes
from framefree.machine import Machine
from framefree.motion import Equations, equations
from framefree.motion.constrained.scales import machine_length, scales
from framefree.motion.unknowns import unknown_paths

WIDE = 4.0
"""Cut-off of the filter that differentiates, relative to that of the rows."""
DENSE = 20.0
"""Rate at which the regressor is taken, relative to the cut-off."""
KEPT = 2.5
"""Rate of the rows that are kept, relative to the cut-off."""
OPEN = 0.02
"""Share of the longest link by which recorded loops may be open, at half of all times."""
SHIFT = 1e-3
"""Part of a period of the cut-off by which delays are varied to find their effect."""


class UnknownModel:
    """A machine whose unknown numbers are its tunable ones, and their regressor.

    Parameters
    ----------
    machine : Machine
        With what is known of it; its values of the unknown numbers are the prior.
    unknown : sequence of str
        See `framefree.motion.unknowns`.
    """

    def __init__(self, machine: Machine, unknown: tuple[str, ...]) -> None:
        self.names = unknown_paths(machine, unknown)
        if not self.names:
            raise IdentifyError("nothing is unknown: name at least one number")
        self.machine = machine.numeric.tunable(*self.names)
        self.equations: Equations = equations(self.machine)
        self.prior = np.array(self.machine.parameters.defaults)

    def rows(
        self, x: np.ndarray, v: np.ndarray, a: np.ndarray, force: np.ndarray | None,
        u: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Return Y (rows, nv, n) and b (rows, nv) of ``Y pi = b`` at these states."""
        if u is None:
            Y, offset = self.equations.kernel("regressor")(x, v, a, self.prior)
            return Y, np.asarray(force) - offset
        Y, offset = self.equations.kernel("regressor:u")(x, v, a, u, self.prior)
        return Y, (0.0 if force is None else force) - offset

    def projections(self, x: np.ndarray, v: np.ndarray) -> np.ndarray | None:
        """Return bases (rows, nv, m) of the motions that loops allow; None without loops."""
        if not self.machine.closed:
            return None
        A = self.equations.kernel("constraint")(x, v, self.prior)[0]
        _, sizes, Vt = np.linalg.svd(A)
        rank = int(np.max(np.sum(sizes > 1e-6 * sizes.max(), axis=1)))
        return Vt[:, rank:].swapaxes(1, 2)

    def refuse_open_loops(self, recording: Recording) -> None:
        """Refuse configurations in which the loops of the machine do not close."""
        machine = self.machine.numeric
        if not machine.closed:
            return
        v = np.zeros((len(recording), machine.nv))
        position = self.equations.kernel("constraint")(recording.x, v, self.prior)[2]
        gaps = np.abs(position * scales(machine).rows).max(axis=1) / machine_length(machine)
        if np.median(gaps) > OPEN:
            i = int(np.argmax(gaps > OPEN))
            raise IdentifyError(
                f"{recording.source}: row {i + 1} (t = {recording.t[i]:.6g} s), columns `x.*`: the "
                f"loops of the machine are open by {100 * gaps[i]:.3g} percent of its longest link;"
                " are columns swapped, or in other units?"
            )

    @property
    def equation_names(self) -> tuple[str, ...]:
        """Names of the rows' equations: those of the velocities."""
        return self.machine.v_names


@dataclass(frozen=True, eq=False)
class Prepared:
    """One recording, differentiated and ready to give rows for any delay.

    Parameters
    ----------
    model : UnknownModel
    recording : Recording
    cutoff : float or None
        Hz; None takes every row as it is, and needs v and a.
    spikes : float
        Share of values that were replaced.
    """

    model: UnknownModel
    recording: Recording
    cutoff: float | None
    spikes: float = 0.0

    @classmethod
    def of(cls, model: UnknownModel, recording: Recording, cutoff: float | None) -> "Prepared":
        """Check a recording and prepare it."""
        recording = checked(recording, model.machine.numeric)
        model.refuse_open_loops(recording)
        if cutoff is None and (recording.v is None or recording.a is None):
            raise IdentifyError(
                f"{recording.source} has no {'velocities' if recording.v is None else ''}"
                f"{'accelerations' if recording.v is not None else ''}: give a `cutoff` in Hz, so "
                "that they can be had by differentiation"
            )
        if cutoff is None:
            return cls(model, recording, None)
        recording, spikes = without_spikes(recording, model.machine.numeric)
        return cls(model, recording, cutoff, spikes)

    # ------------------------------------------------------------------ the motion

    @cached_property
    def _filters(self) -> tuple[LowPass, LowPass, int, int]:
        """Filters of the motion and of the rows; rows from one to the next, dense and kept."""
        assert self.cutoff is not None
        period = self.recording.period
        step = max(1, int(1 / (DENSE * self.cutoff * period)))
        wide = min(WIDE * self.cutoff, 0.35 / period)
        keep = max(1, int(1 / (KEPT * self.cutoff * period * step)))
        return LowPass(wide, period), LowPass(self.cutoff, step * period), step, keep

    @cached_property
    def motion(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Dense times, x, v and a."""
        record = self.recording
        if self.cutoff is None:
            return record.t, record.x, record.v, record.a
        wide, _, step, _ = self._filters
        x, v, a = smooth_motion(self.model.machine.numeric, record.x, wide)
        m = wide.margin
        if record.v is not None:
            v, a = wide.apply(record.v), wide.apply(record.v, 1)
        if record.a is not None:
            a = wide.apply(record.a)
        t = record.t[m : len(record.t) - m]
        return t[::step], x[::step], v[::step], a[::step]

    def _given(self, name: str, delay: float) -> np.ndarray | None:
        """Return forces or inputs as they act at the dense times: recorded `delay` before."""
        values = getattr(self.recording, name)
        if values is None:
            return None
        if self.cutoff is None:
            if delay:
                raise IdentifyError(
                    "a delay needs a `cutoff`: rows are otherwise taken as they are"
                )
            return values
        wide, _, step, _ = self._filters
        return wide.apply(values, late=-delay)[::step]

    # ------------------------------------------------------------------ rows

    @cached_property
    def _projections(self) -> np.ndarray | None:
        _, x, v, _ = self.motion
        return self.model.projections(x, v)

    @cached_property
    def _still(self) -> tuple[np.ndarray, np.ndarray]:
        """Y and offset where they do not depend on inputs: a delay then moves the forces alone."""
        _, x, v, a = self.motion
        Y, b = self.model.rows(x, v, a, np.zeros_like(v), None)
        return self._kept(self._projected(Y)), self._kept(self._projected(-b))

    def rows(self, delay: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Return Y (rows, m, n) and b (rows, m) for a delay of what is recorded of forces, s."""
        _, x, v, a = self.motion
        force, u = self._given("force", delay), self._given("u", delay)
        if u is not None:
            Y, b = self.model.rows(x, v, a, force, u)
            return self._kept(self._projected(Y)), self._kept(self._projected(b))
        assert force is not None
        still, offset = self._still
        if self.cutoff is None or self._projections is not None:
            return still, self._kept(self._projected(force)) - offset
        return still, self._directly(self.recording.force, delay) - offset

    def _directly(self, force: np.ndarray, delay: float) -> np.ndarray:
        """Return recorded forces at the times of the rows, through the one filter of both sides."""
        assert self.cutoff is not None
        wide, narrow, step, keep = self._filters
        whole = LowPass(self.cutoff, self.recording.period)
        first = wide.margin + step * narrow.margin - whole.margin
        return whole.apply(force, late=-delay)[first :: step * keep][: len(self.t)]

    def slopes(self, pi: np.ndarray, delay: float) -> np.ndarray:
        """Return the slope of ``b - Y pi`` by the delay (rows, m)."""
        assert self.cutoff is not None
        shift = SHIFT / self.cutoff
        ends = []
        for late in (delay + shift, delay - shift):
            Y, b = self.rows(late)
            ends.append(b - Y @ pi)
        return (ends[0] - ends[1]) / (2 * shift)

    @cached_property
    def t(self) -> np.ndarray:
        """Times of the rows."""
        t = self.motion[0]
        if self.cutoff is None:
            return t
        _, narrow, _, keep = self._filters
        return t[narrow.margin : len(t) - narrow.margin : keep]

    def filtered(self, values: np.ndarray) -> np.ndarray:
        """Return recorded columns at the times of the rows, through the filters of the motion."""
        if self.cutoff is None:
            return values
        wide, _, step, _ = self._filters
        return self._kept(wide.apply(values)[::step])

    def _projected(self, values: np.ndarray) -> np.ndarray:
        if self._projections is None:
            return values
        N = self._projections.swapaxes(1, 2)
        return N @ values if values.ndim == 3 else np.einsum("kij,kj->ki", N, values)

    def _kept(self, values: np.ndarray) -> np.ndarray:
        if self.cutoff is None:
            return values
        _, narrow, _, keep = self._filters
        return narrow.apply(values)[::keep]
