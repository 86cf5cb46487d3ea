"""Linear algebra of a tree's slopes as routines: factors of M, and sums over pairs of joints.

A desk (see `framefree.kernel.routines`) has matrices row by row, n = nv, and for every velocity k a
row of six numbers, or three, of each of the arrays of `PER_VELOCITY`. Link i has the velocities
`first[i]` to `first[i + 1]`, and is carried by link `above[i] - 1`.
"""

from collections.abc import Sequence

from framefree.kernel.routines import Array, Desk, Layout, Procedure, fma, routine

PER_VELOCITY = {"S": 6, "U": 6, "Z": 6, "Z_v": 6, "push": 6, "push_v": 6, "momenta": 6, "turned": 3}
"""Numbers of a velocity that pairs are made of, see `framefree.motion.tree.slopes`."""


@routine
def dot3(a: Array, b: Array) -> float:
    """Return a . b of three numbers."""
    return fma(a[0], b[0], fma(a[1], b[1], a[2] * b[2]))


@routine
def dot6(a: Array, b: Array) -> float:
    """Return a . b of six numbers."""
    return dot3(a, b) + dot3(a[3:], b[3:])


@routine
def add_row(factor: float, a: Array, b: Array, n: int) -> None:
    """Add factor a to b."""
    for i in range(n):
        b[i] = fma(factor, a[i], b[i])


@routine
def invert_mass(w: Desk) -> None:
    """Write M^-1 = R D^-1 R^T, R = L^-1, of M = L^T D L, from the tips to the base."""
    n = w.n
    for r in range(n):
        k = n - 1 - r
        scale = 1.0 / w.mass[k * n + k]
        w.scale[k] = scale
        for i in range(k):
            ratio = w.mass[k * n + i] * scale
            add_row(-ratio, w.mass[k * n :], w.mass[i * n :], i + 1)
        for i in range(k):
            w.mass[k * n + i] *= scale
    for i in range(n):
        for j in range(n):
            w.root[i * n + j] = 0.0
        w.root[i * n + i] = 1.0
        for k in range(i):
            add_row(-w.mass[i * n + k], w.root[k * n :], w.root[i * n :], k + 1)
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for k in range(j + 1):
                total = fma(w.root[i * n + k] * w.scale[k], w.root[j * n + k], total)
            w.inverse[i * n + j] = total
            w.inverse[j * n + i] = total
    for i in range(n):
        total = 0.0
        for j in range(n):
            total = fma(w.inverse[i * n + j], w.force[j] - w.bias[j], total)
        w.a[i] = total


@routine
def pair_slopes(w: Desk, i: int, j: int) -> None:
    """Write the slopes between link i and a link j that carries it."""
    n = w.n
    for k in range(w.first[i], w.first[i + 1]):
        for l in range(w.first[j], w.first[j + 1]):
            w.by_x[l * n + k] = dot6(w.S[6 * l :], w.push[6 * k :])
            w.by_v[l * n + k] = dot6(w.S[6 * l :], w.push_v[6 * k :])
            w.by_x[k * n + l] = dot6(w.Z[6 * l :], w.momenta[6 * k :]) + dot3(
                w.turned[3 * k :], w.U[6 * l + 3 :]
            )
            w.by_v[k * n + l] = dot6(w.Z_v[6 * l :], w.momenta[6 * k :]) + dot3(
                w.turned[3 * k :], w.S[6 * l + 3 :]
            )


@routine
def slopes(w: Desk) -> None:
    """Write da/dx = -M^-1 df/dx and da/dv = -M^-1 df/dv."""
    n = w.n
    for k in range(n * n):
        w.by_x[k] = 0.0
        w.by_v[k] = 0.0
        w.da_dx[k] = 0.0
        w.da_dv[k] = 0.0
    for i in range(w.links):
        size = w.first[i + 1] - w.first[i]
        for k in range(size):
            for l in range(size):
                place = (w.first[i] + k) * n + w.first[i] + l
                w.by_x[place] = w.own_x[w.square[i] + l * size + k]
                w.by_v[place] = w.own_v[w.square[i] + l * size + k]
        j = w.above[i]
        while j > 0:
            pair_slopes(w, i, j - 1)
            j = w.above[j - 1]
    for i in range(n):
        for k in range(n):
            factor = -w.inverse[i * n + k]
            add_row(factor, w.by_x[k * n :], w.da_dx[i * n :], n)
            add_row(factor, w.by_v[k * n :], w.da_dv[i * n :], n)


def inversion(n: int) -> Procedure:
    """Return the routine from M, bias and force to M^-1 and the acceleration."""
    square = n * n
    inputs = {"mass": square, "bias": n, "force": n}
    outputs = {"inverse": square, "a": n}
    layout = Layout({**inputs, **outputs, "root": square, "scale": n}, {"n": n}, {})
    return Procedure("invert_mass", invert_mass, layout, tuple(inputs), tuple(outputs))


def multiplication(sizes: Sequence[int], parents: Sequence[int]) -> Procedure:
    """Return the routine from what pairs are made of to the slopes of the acceleration.

    `sizes` are the numbers of velocities of the links, `parents` their carriers or -1.
    """
    n = sum(sizes)
    first, square = [0], [0]
    for size in sizes:
        first.append(first[-1] + size)
        square.append(square[-1] + size * size)
    inputs = {name: width * n for name, width in PER_VELOCITY.items()}
    inputs |= {"own_x": square[-1], "own_v": square[-1], "inverse": n * n}
    outputs = {"da_dx": n * n, "da_dv": n * n}
    parts = {**inputs, **outputs, "by_x": n * n, "by_v": n * n}
    lists = {
        "first": tuple(first),
        "square": tuple(square),
        "above": tuple(parent + 1 for parent in parents),
    }
    layout = Layout(parts, {"n": n, "links": len(sizes)}, lists)
    return Procedure("slopes", slopes, layout, tuple(inputs), tuple(outputs))
