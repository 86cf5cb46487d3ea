"""Adaptation of a body's ten numbers that stay those of a body [Lee2018].

The numbers are the entries of P = [second, first; first^T, total] (`Moments.matrix4`), which is
positive definite for a body. With tr(U dP) = g . d(pi) for every change, g the slope of a power,

    dP/dt = -(1/cost) P U P,     d(P* | P) = tr(P^-1 P*) + log det(P P*^-1) - 4 >= 0
    cost d/dt d(P* | P) = -g . (pi - pi*)

for any constant P*: P stays positive definite, and d does not depend on the frame of the body. A
bound tr(W P) <= most, W >= 0, is kept by taking the part out of dP/dt that would leave it,

    dP/dt -> dP/dt - P W P tr(W dP/dt) / tr(W P W P)

which takes tr(W (P - P*)) times something not negative off the rate above: V then falls faster.
A sampled law takes steps T that keep P positive definite, however long they are:

    P -> A P A^T = P + T dP/dt + O(T^2),     A = I + T/2 (dP/dt) P^-1
"""

from typing import Any, NamedTuple

import casadi as ca

from framefree.motion.regressor import PAIRS

Matrix = Any


def matrix4(numbers: Matrix) -> Matrix:
    """Return P (4x4) of ten numbers in the order of `framefree.motion.regressor.TEN`."""
    return _spread(numbers, 1.0)


class LargestBody(NamedTuple):
    """Bodies up to this size: mass + (integral of |r|^2 dm) / reach^2 <= mass, kg and m."""

    mass: float
    reach: float

    @property
    def weight(self) -> Matrix:
        """W."""
        return ca.diag(ca.DM([*([self.reach**-2] * 3), 1.0]))


def rate(numbers: Matrix, slope: Matrix, cost: float, largest: LargestBody | None = None) -> Matrix:
    """Return the rate (10) of the numbers under a slope g (10)."""
    P = matrix4(numbers)
    return _numbers(_turn(P, slope, cost, largest) @ P)


def step(
    numbers: Matrix, slope: Matrix, cost: float, largest: LargestBody | None, period: float
) -> Matrix:
    """Return the numbers (10) after a control period, in s."""
    P = matrix4(numbers)
    A = ca.SX.eye(4) + period / 2 * _turn(P, slope, cost, largest)
    return _numbers(A @ P @ A.T)


def _turn(P: Matrix, slope: Matrix, cost: float, largest: LargestBody | None) -> Matrix:
    """Return (dP/dt) P^-1 (4x4)."""
    turn = -P @ _spread(slope, 0.5) / cost
    if largest is None:
        return turn
    W = largest.weight
    growth, outwards = ca.trace(W @ turn @ P), P @ W
    leaving = ca.logic_and(ca.trace(W @ P) >= largest.mass, growth > 0)
    return turn - ca.if_else(leaving, growth / ca.trace(W @ outwards @ P), 0) * outwards


def _numbers(P: Matrix) -> Matrix:
    """Return the ten numbers of a 4x4 matrix."""
    return ca.vertcat(P[3, 3], P[:3, 3], *(P[i, j] for i, j in PAIRS))


def divergence(true: Matrix, numbers: Matrix) -> Matrix:
    """Return d(P* | P) of two sets of ten numbers."""
    P, P_true = matrix4(numbers), matrix4(true)
    ratio = ca.solve(P, P_true)
    return ca.trace(ratio) - ca.log(ca.det(ratio)) - 4


def _spread(numbers: Matrix, beside: float) -> Matrix:
    """Return the symmetric 4x4 matrix of ten numbers, those beside the diagonal times a factor."""
    P = ca.SX(4, 4)
    P[3, 3] = numbers[0]
    for i in range(3):
        P[i, 3] = P[3, i] = beside * numbers[1 + i]
    for value, (i, j) in zip(ca.vertsplit(numbers[4:]), PAIRS, strict=True):
        P[i, j] = P[j, i] = value if i == j else beside * value
    return P
