"""When contacts carry: the reference of contact frames that are lifted and set down."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.references.base import Matrix, Reference
from framefree.control.references.checks import checked_number
from framefree.control.references.path import smooth_step
from framefree.machine.part import set_field


@dataclass(frozen=True, eq=False)
class ContactSchedule(Reference):
    """Shares of their largest forces that contacts may carry: "CONTACT.load" (1) of each.

    A contact is open from the beginning to the end of each of its intervals. Before it is lifted,
    and after it was set down, its share goes smoothly from 1 to 0, and back, within a time `ramp`.

    Parameters
    ----------
    open : mapping of str to sequence of (float, float)
        Of every switched contact the intervals, s, in which it is open; none for one that stands.
    ramp : float
        s.
    """

    open: Mapping[str, Any]
    ramp: Any = 0.1

    def __post_init__(self) -> None:
        ramp = checked_number(self.ramp, f"`ramp` of {self.name}")
        if not ramp > 0:
            raise ControlError(f"`ramp` of {self.name} must be positive, got {self.ramp}")
        listed = {name: _intervals(name, pairs, ramp) for name, pairs in dict(self.open).items()}
        ends = [pair for pairs in listed.values() for pair in pairs]
        times = {t for start, end in ends for t in (start - ramp, start, end, end + ramp)}
        set_field(self, "ramp", ramp)
        set_field(self, "open", listed)
        set_field(self, "times", tuple(sorted(times)))

    def at(self, t: Matrix) -> dict[str, Matrix]:
        """Return the shares at time t."""
        return {f"{name}.load": self._share(t, pairs) for name, pairs in self.open.items()}

    def _share(self, t: Matrix, pairs: tuple[tuple[float, float], ...]) -> Matrix:
        share = ca.SX(1)
        for start, end in pairs:
            down = _clipped((start - t) / self.ramp)
            up = _clipped((t - end) / self.ramp)
            share = share * (smooth_step(down) + smooth_step(up))
        return share


def _clipped(s: Matrix) -> Matrix:
    return ca.fmin(ca.fmax(s, 0), 1)


def _intervals(name: str, pairs: Iterable[Any], ramp: float) -> tuple[tuple[float, float], ...]:
    try:
        values = np.array(list(pairs), float).reshape(-1, 2)
    except (TypeError, ValueError):
        values = np.full((1, 2), np.nan)
    if not np.isfinite(values).all() or not (values[:, 0] < values[:, 1]).all():
        raise ControlError(
            f"intervals of contact `{name}` must be pairs of times, the first the earlier; got "
            f"{pairs!r}"
        )
    late = values[1:, 0] - values[:-1, 1] < 2 * ramp
    if late.any():
        k = int(np.flatnonzero(late)[0])
        raise ControlError(
            f"contact `{name}` is set down at {values[k, 1]:.6g} s and lifted again at "
            f"{values[k + 1, 0]:.6g} s, less than two ramps of {ramp:.6g} s later"
        )
    return tuple((float(start), float(end)) for start, end in values)
