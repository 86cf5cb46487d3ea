"""The mass matrix of a tree, factored along its branches: ``M = L^T D L``.

L is unit lower triangular and, like its inverse, has entries only between a joint and those that
carry it [Featherstone2008, sec. 6.5]. Products with ``M^-1 = L^-1 D^-1 L^-T`` then cost what the
tree is deep, not what it is wide.
"""

from collections.abc import Sequence

import casadi as ca

from framefree.motion.spatial import Matrix, symmetric
from framefree.motion.tree.links import Link


class InverseMass:
    """``M^-1`` of a tree as ``L^-1 D^-1 L^-T``.

    Parameters
    ----------
    links : sequence of Link
        Parents before children.
    mass : nv x nv
        Its lower half is read, and only between velocities that carry each other.
    """

    def __init__(self, links: Sequence[Link], mass: Matrix) -> None:
        carriers = _carriers(links)
        L, pivots = _factors(mass, carriers)
        nv = len(carriers)
        self._below = ca.SX(nv, nv)  # of L^-1, whose diagonal is one
        for (i, j), value in _unit_inverse(L, carriers).items():
            self._below[i, j] = value
        self._scale = ca.diag(ca.vertcat(ca.SX(0, 1), *(1 / pivot for pivot in pivots)))

    @property
    def matrix(self) -> Matrix:
        """``M^-1`` itself, dense."""
        scaled = self._scale + self._below @ self._scale
        return symmetric(_plus_product(scaled, scaled, self._below.T))

    def times(self, columns: Matrix) -> Matrix:
        """Return ``M^-1 columns``, skipping structural zeros of the columns."""
        return self._scaled_times(columns, self._scale)

    def minus_times(self, columns: Matrix) -> Matrix:
        """Return ``-M^-1 columns``."""
        return self._scaled_times(columns, -self._scale)

    def _scaled_times(self, columns: Matrix, scale: Matrix) -> Matrix:
        turned = scale @ _plus_product(columns, self._below.T, columns)
        return _plus_product(turned, self._below, turned)


def _plus_product(a: Matrix, b: Matrix, c: Matrix) -> Matrix:
    """Return ``a + b c``; the sums of the product begin with a, which saves an addition each."""
    pattern = a.sparsity() + (ca.SX(b.sparsity()) @ ca.SX(c.sparsity())).sparsity()
    return ca.mac(b, c, ca.project(a, pattern))


def _carriers(links: Sequence[Link]) -> list[list[int]]:
    """Return for each velocity those before it that it depends on, outermost last."""
    found: dict[int, list[int]] = {}
    of_link: list[list[int]] = []
    for link in links:
        above = of_link[link.parent] if link.parent >= 0 else []
        for i in range(link.v.start, link.v.stop):
            found[i] = list(above)
            above = [*above, i]
        of_link.append(above)
    return [found[i] for i in range(len(found))]


def _factors(
    mass: Matrix, carriers: list[list[int]]
) -> tuple[dict[tuple[int, int], Matrix], list[Matrix]]:
    """Return L below its diagonal, and the pivots D; from the tips to the base."""
    left = {(i, j): mass[i, j] for i, above in enumerate(carriers) for j in (*above, i)}
    for k in reversed(range(len(carriers))):
        scale = 1 / left[k, k]
        for i in carriers[k]:
            ratio = left[k, i] * scale
            for j in (*carriers[i], i):
                left[i, j] -= ratio * left[k, j]
        for i in carriers[k]:
            left[k, i] = left[k, i] * scale
    lower = {place: value for place, value in left.items() if place[0] != place[1]}
    return lower, [left[i, i] for i in range(len(carriers))]


def _unit_inverse(
    L: dict[tuple[int, int], Matrix], carriers: list[list[int]]
) -> dict[tuple[int, int], Matrix]:
    """Return the inverse of the unit triangular L, below its diagonal."""
    found: dict[tuple[int, int], Matrix] = {}
    for i, above in enumerate(carriers):
        for place, j in enumerate(above):
            between = above[place + 1 :]
            found[i, j] = -L[i, j] - sum((L[i, k] * found[k, j] for k in between), ca.SX(0))
    return found
