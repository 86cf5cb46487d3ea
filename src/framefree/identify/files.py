"""Files of recorded motions for one fit: read, and cut into what is used and what judges."""

from collections.abc import Sequence
from pathlib import Path

from framefree.identify.errors import IdentifyError
from framefree.identify.recording import Recording, checked
from framefree.machine import Machine

CUTOFF, SHARE = 10.0, 0.1
"""Cut-off by default, Hz, and the largest share of the rate that it may be."""


def recordings(
    paths: Sequence[Path],
    machine: Machine,
    columns: Sequence[str],
    held_back: float,
    cutoff: float | None,
) -> tuple[list[Recording], list[Recording], float | None]:
    """Return motions to use, motions that judge, and the cut-off in Hz.

    Parameters
    ----------
    columns : sequence of str
        "OURS=THEIRS".
    held_back : float
        Share at the end of each file that judges.
    cutoff : float, optional
        By default 10 Hz or a tenth of the rate; none where velocities and accelerations are given.
    """
    if not 0 <= held_back < 0.9:
        raise IdentifyError(f"the share held back must be from 0 to 0.9, got {held_back:g}")
    named = {}
    for text in columns:
        ours, equals, theirs = text.partition("=")
        if not equals or not ours.strip() or not theirs.strip():
            raise IdentifyError(f"`--column` takes OURS=THEIRS, got `{text}`")
        named[ours.strip()] = theirs.strip()
    used, judging = [], []
    for path in paths:
        whole = checked(Recording.of_file(path, machine, named), machine)
        cut = round(len(whole) * (1 - held_back))
        used.append(whole.rows(slice(0, cut)))
        if held_back:
            judging.append(whole.rows(slice(cut, None)))
    rates = {round(1 / one.period, 3) for one in used}
    if len(rates) > 1:
        listed = ", ".join(f"{rate:g} Hz" for rate in sorted(rates))
        raise IdentifyError(f"the files have different rates ({listed}): resample them to one")
    complete = all(one.v is not None and one.a is not None for one in used)
    if cutoff is None and not complete:
        cutoff = min(CUTOFF, SHARE * min(rates))
    return used, judging, cutoff
