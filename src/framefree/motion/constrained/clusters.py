"""Which velocities rows hold together, found from patterns: clusters along a tree of velocities.

Eliminating a velocity from a mass matrix couples those that it was coupled to. The largest of them
below it is its *carrier*; carriers make a tree, that of the joints where M is the mass matrix of a
tree [Featherstone2008, sec. 6.5]. A loop holds the velocities on its two ways up to where they
meet, and nothing above: what carries a whole loop does not change whether it closes. Rows that
share a velocity form one cluster; each cluster hangs on the rest of the tree by the velocities that
carry it. So linkages on different legs, or one on the end of another, are clusters of their own.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple


class Cluster(NamedTuple):
    """Velocities that are eliminated together, and the rows on them; both sorted."""

    velocities: tuple[int, ...]
    rows: tuple[int, ...]


def carriers(pattern: Sequence[Collection[int]]) -> list[int]:
    """Return for each velocity its carrier, -1 for none.

    ``pattern[k]`` holds the velocities i < k that a symmetric matrix couples with k. The last is
    eliminated first.
    """
    coupled = [set(row) for row in pattern]
    carrier = [-1] * len(coupled)
    for k in reversed(range(len(coupled))):
        if coupled[k]:
            carrier[k] = max(coupled[k])
            coupled[carrier[k]] |= coupled[k] - {carrier[k]}
    return carrier


def clusters(carrier: Sequence[int], rows: Sequence[Collection[int]]) -> list[Cluster]:
    """Return all clusters, those that hang on others before these; single velocities included.

    ``rows[r]`` holds the velocities of row r. Rows without any are in no cluster.
    """
    owner = list(range(len(carrier)))

    def find(k: int) -> int:
        while owner[k] != k:
            k = owner[k]
        return k

    for row in rows:
        first, *others = _between(carrier, row) or [-1]
        for k in others:
            owner[find(k)] = find(first)
    velocities: dict[int, list[int]] = {}
    for k in range(len(carrier)):
        velocities.setdefault(find(k), []).append(k)
    held: dict[int, list[int]] = {}
    for r, row in enumerate(rows):
        if row:
            held.setdefault(find(min(row)), []).append(r)
    # A cluster's first velocity lies before all that it carries.
    last_first = sorted(velocities.items(), key=lambda item: -item[1][0])
    return [Cluster(tuple(members), tuple(held.get(name, ()))) for name, members in last_first]


def _between(carrier: Sequence[int], row: Collection[int]) -> list[int]:
    """Return the velocities of a row and all between them: up to where their ways meet."""
    ways = [list(_way(carrier, k)) for k in row]
    shared = set.intersection(*map(set, ways)) if ways else set()
    # The ways meet at the last that all have; it takes part only if the row has it.
    top = max(shared, default=-1)
    between = {k for way in ways for k in way if k > top}
    return sorted(between | ({top} & set(row)))


def _way(carrier: Sequence[int], k: int) -> Iterable[int]:
    while k >= 0:
        yield k
        k = carrier[k]
