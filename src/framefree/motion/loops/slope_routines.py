"""Linear algebra of a tree's slopes as routines: factors of M, and sums over pairs of joints.

A desk (see `framefree.kernel.routines`) has matrices row by row, n = nv, and for every velocity k a
row of six numbers, or three, of each of the arrays of `PER_VELOCITY`. The velocities that carry
velocity k are ``carrier[begin[k]]`` to ``carrier[begin[k + 1] - 1]``, from the base outwards; the
first `above[k]` of them belong to other joints. Those that it carries are `carried`, likewise, from
`below[k]` on. With ``M = L^T D L``, L has entries only between a velocity and its carriers
[Featherstone2008, sec. 6.5]: sums over these alone cost what the tree is deep, not what it is wide.
"""

from collections.abc import Sequence

from framefree.kernel.routines import Array, Desk, Layout, Procedure, fma, routine

PER_VELOCITY = {"S": 6, "U": 6, "Z": 6, "Z_v": 6, "push": 6, "push_v": 6, "momenta": 6, "turned": 3}
"""Numbers of a velocity that pairs are made of, see `framefree.motion.tree.slopes`."""

COLUMNS = 8
"""Columns that are solved for at once: as many sums stay in registers."""


# ------------------------------------------------------------------ M^-1


@routine
def factor_mass(w: Desk) -> None:
    """Write L below its diagonal, and 1/D, of ``M = L^T D L``: from the tips to the base."""
    n = w.n
    for k in range(n):
        w.L[k * n + k] = w.mass[k * n + k]
        for p in range(w.begin[k], w.begin[k + 1]):
            i = w.carrier[p]
            w.L[k * n + i] = w.mass[k * n + i]
    for r in range(n):
        k = n - 1 - r
        scale = 1.0 / w.L[k * n + k]
        w.scale[k] = scale
        for p in range(w.begin[k], w.begin[k + 1]):
            i = w.carrier[p]
            ratio = -(w.L[k * n + i] * scale)
            for q in range(w.begin[k], p + 1):
                j = w.carrier[q]
                w.L[i * n + j] = fma(ratio, w.L[k * n + j], w.L[i * n + j])
        for p in range(w.begin[k], w.begin[k + 1]):
            w.L[k * n + w.carrier[p]] *= scale


@routine
def invert_factor(w: Desk) -> None:
    """Write ``R = L^-1`` below its diagonal; it has the entries that L has."""
    n = w.n
    for i in range(n):
        for q in range(w.begin[i], w.begin[i + 1]):
            j = w.carrier[q]
            total = -w.L[i * n + j]
            for p in range(q + 1, w.begin[i + 1]):
                k = w.carrier[p]
                total = fma(-w.L[i * n + k], w.root[k * n + j], total)
            w.root[i * n + j] = total


@routine
def inverse_row(w: Desk, i: int) -> None:
    """Write row and column i, up to the diagonal, of ``M^-1 = R D^-1 R^T``.

    What two velocities have in common are their first carriers.
    """
    n = w.n
    first, end = w.begin[i], w.begin[i + 1]
    own = w.scale[i]
    for p in range(first, end):
        k = w.carrier[p]
        w.scaled[p - first] = w.root[i * n + k] * w.scale[k]
        own = fma(w.scaled[p - first], w.root[i * n + k], own)
    w.inverse[i * n + i] = own
    for j in range(i):
        total = 0.0
        for p in range(first, end):
            q = w.begin[j] + p - first
            if q == w.begin[j + 1]:
                if w.carrier[p] == j:
                    total += w.scaled[p - first]
                break
            if w.carrier[p] != w.carrier[q]:
                break
            total = fma(w.scaled[p - first], w.root[j * n + w.carrier[q]], total)
        w.inverse[i * n + j] = total
        w.inverse[j * n + i] = total


@routine
def accelerate(w: Desk) -> None:
    """Write ``a = M^-1 (force - bias)``."""
    n = w.n
    for k in range(n):
        w.a[k] = w.force[k] - w.bias[k]
    for r in range(n):
        k = n - 1 - r
        for p in range(w.begin[k], w.begin[k + 1]):
            i = w.carrier[p]
            w.a[i] = fma(-w.L[k * n + i], w.a[k], w.a[i])
    for k in range(n):
        total = w.a[k] * w.scale[k]
        for p in range(w.begin[k], w.begin[k + 1]):
            i = w.carrier[p]
            total = fma(-w.L[k * n + i], w.a[i], total)
        w.a[k] = total


@routine
def invert_mass(w: Desk) -> None:
    """Write the factors of M, its inverse, and the acceleration."""
    factor_mass(w)
    accelerate(w)
    invert_factor(w)
    for i in range(w.n):
        inverse_row(w, i)


# ------------------------------------------------------------------ slopes


@routine
def dot3(a: Array, b0: float, b1: float, b2: float) -> float:
    """Return a . b of three numbers."""
    return fma(a[0], b0, fma(a[1], b1, a[2] * b2))


@routine
def slopes_on_carriers(w: Desk, k: int) -> None:
    """Write how the force at each joint that carries velocity k changes with its x and v."""
    n = w.n
    f0, f1, f2 = w.push[6 * k], w.push[6 * k + 1], w.push[6 * k + 2]
    m0, m1, m2 = w.push[6 * k + 3], w.push[6 * k + 4], w.push[6 * k + 5]
    g0, g1, g2 = w.push_v[6 * k], w.push_v[6 * k + 1], w.push_v[6 * k + 2]
    h0, h1, h2 = w.push_v[6 * k + 3], w.push_v[6 * k + 4], w.push_v[6 * k + 5]
    for p in range(w.begin[k], w.begin[k] + w.above[k]):
        l = w.carrier[p]
        linear, angular = w.S[6 * l :], w.S[6 * l + 3 :]
        w.by_x[l * n + k] = dot3(linear, f0, f1, f2) + dot3(angular, m0, m1, m2)
        w.by_v[l * n + k] = dot3(linear, g0, g1, g2) + dot3(angular, h0, h1, h2)


@routine
def slopes_by_carriers(w: Desk, k: int) -> None:
    """Write how the force at velocity k changes with x and v of each joint that carries it."""
    n = w.n
    f0, f1, f2 = w.momenta[6 * k], w.momenta[6 * k + 1], w.momenta[6 * k + 2]
    m0, m1, m2 = w.momenta[6 * k + 3], w.momenta[6 * k + 4], w.momenta[6 * k + 5]
    t0, t1, t2 = w.turned[3 * k], w.turned[3 * k + 1], w.turned[3 * k + 2]
    for p in range(w.begin[k], w.begin[k] + w.above[k]):
        l = w.carrier[p]
        moved = dot3(w.Z[6 * l :], f0, f1, f2) + dot3(w.Z[6 * l + 3 :], m0, m1, m2)
        w.by_x[k * n + l] = moved + dot3(w.U[6 * l + 3 :], t0, t1, t2)
        moved = dot3(w.Z_v[6 * l :], f0, f1, f2) + dot3(w.Z_v[6 * l + 3 :], m0, m1, m2)
        w.by_v[k * n + l] = moved + dot3(w.S[6 * l + 3 :], t0, t1, t2)


@routine
def solve_columns(w: Desk, slope: Array, result: Array, first: int) -> None:
    """Write ``-M^-1`` times up to eight columns of a matrix, from column `first` on."""
    n, count = w.n, min(w.n - first, 8)
    for k in range(n):
        for c in range(count):
            w.panel[8 * k + c] = slope[k * n + first + c]
        for c in range(count, 8):
            w.panel[8 * k + c] = 0.0
    for r in range(n):
        i = n - 1 - r
        row = w.panel[8 * i :]
        b0, b1, b2, b3, b4, b5, b6, b7 = (
            row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7],
        )  # fmt: skip
        for p in range(w.below[i], w.below[i + 1]):
            k = w.carried[p]
            factor = -w.L[k * n + i]
            other = w.panel[8 * k :]
            b0 = fma(factor, other[0], b0)
            b1 = fma(factor, other[1], b1)
            b2 = fma(factor, other[2], b2)
            b3 = fma(factor, other[3], b3)
            b4 = fma(factor, other[4], b4)
            b5 = fma(factor, other[5], b5)
            b6 = fma(factor, other[6], b6)
            b7 = fma(factor, other[7], b7)
        row[0], row[1], row[2], row[3] = b0, b1, b2, b3
        row[4], row[5], row[6], row[7] = b4, b5, b6, b7
    for k in range(n):
        row, scale = w.panel[8 * k :], -w.scale[k]
        b0, b1, b2, b3 = row[0] * scale, row[1] * scale, row[2] * scale, row[3] * scale
        b4, b5, b6, b7 = row[4] * scale, row[5] * scale, row[6] * scale, row[7] * scale
        for p in range(w.begin[k], w.begin[k + 1]):
            i = w.carrier[p]
            factor = -w.L[k * n + i]
            other = w.panel[8 * i :]
            b0 = fma(factor, other[0], b0)
            b1 = fma(factor, other[1], b1)
            b2 = fma(factor, other[2], b2)
            b3 = fma(factor, other[3], b3)
            b4 = fma(factor, other[4], b4)
            b5 = fma(factor, other[5], b5)
            b6 = fma(factor, other[6], b6)
            b7 = fma(factor, other[7], b7)
        row[0], row[1], row[2], row[3] = b0, b1, b2, b3
        row[4], row[5], row[6], row[7] = b4, b5, b6, b7
        for c in range(count):
            result[k * n + first + c] = w.panel[8 * k + c]


@routine
def slopes(w: Desk) -> None:
    """Write da/dx = -M^-1 df/dx and da/dv = -M^-1 df/dv."""
    n = w.n
    for k in range(n * n):
        w.by_x[k] = 0.0
        w.by_v[k] = 0.0
    for i in range(w.links):
        size = w.first[i + 1] - w.first[i]
        for k in range(size):
            for l in range(size):
                place = (w.first[i] + k) * n + w.first[i] + l
                w.by_x[place] = w.own_x[w.square[i] + l * size + k]
                w.by_v[place] = w.own_v[w.square[i] + l * size + k]
    for k in range(n):
        slopes_on_carriers(w, k)
        slopes_by_carriers(w, k)
    for first in range(0, n, 8):
        solve_columns(w, w.by_x, w.da_dx, first)
        solve_columns(w, w.by_v, w.da_dv, first)


# ------------------------------------------------------------------ with the tree's sizes


def inversion(sizes: Sequence[int], parents: Sequence[int]) -> Procedure:
    """Return the routine from M, bias and force to L, 1/D, M^-1 and the acceleration.

    `sizes` are the numbers of velocities of the links, `parents` their carriers or -1.
    """
    n, lists = _carriers(sizes, parents)
    square = n * n
    inputs = {"mass": square, "bias": n, "force": n}
    outputs = {"L": square, "scale": n, "inverse": square, "a": n}
    parts = {**inputs, **outputs, "root": square, "scaled": n}
    layout = Layout(parts, {"n": n}, {key: lists[key] for key in ("begin", "carrier")})
    return Procedure("invert_mass", invert_mass, layout, tuple(inputs), tuple(outputs))


def multiplication(sizes: Sequence[int], parents: Sequence[int]) -> Procedure:
    """Return the routine from what pairs are made of to the slopes of the acceleration."""
    n, lists = _carriers(sizes, parents)
    first, square = [0], [0]
    for size in sizes:
        first.append(first[-1] + size)
        square.append(square[-1] + size * size)
    inputs = {name: width * n for name, width in PER_VELOCITY.items()}
    inputs |= {"own_x": square[-1], "own_v": square[-1], "L": n * n, "scale": n}
    outputs = {"da_dx": n * n, "da_dv": n * n}
    parts = {**inputs, **outputs, "by_x": n * n, "by_v": n * n, "panel": COLUMNS * n}
    lists |= {"first": tuple(first), "square": tuple(square)}
    layout = Layout(parts, {"n": n, "links": len(sizes)}, lists)
    return Procedure("slopes", slopes, layout, tuple(inputs), tuple(outputs))


def _carriers(
    sizes: Sequence[int], parents: Sequence[int]
) -> tuple[int, dict[str, tuple[int, ...]]]:
    """Return the number of velocities, and the lists that the top of this file explains."""
    of_link: list[list[int]] = []
    carriers: list[list[int]] = []
    above: list[int] = []
    for size, parent in zip(sizes, parents, strict=True):
        way = list(of_link[parent]) if parent >= 0 else []
        above += [len(way)] * size
        for _ in range(size):
            carriers.append(list(way))
            way.append(len(carriers) - 1)
        of_link.append(way)
    carried: list[list[int]] = [[] for _ in carriers]
    for k, way in enumerate(carriers):
        for i in way:
            carried[i].append(k)
    begin, carrier = _one_after_another(carriers)
    below, flat = _one_after_another(carried)
    lists = {"begin": begin, "carrier": carrier, "below": below, "carried": flat}
    return len(carriers), {**lists, "above": tuple(above)}


def _one_after_another(lists: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return where each list begins, and all of them in one; a last entry is nobody's."""
    begin, flat = [0], []
    for one in lists:
        flat += one
        begin.append(len(flat))
    return tuple(begin), (*flat, -1)
