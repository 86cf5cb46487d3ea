"""Shared by the geometry tests: hard angles, and references of many digits."""

import casadi as ca
import mpmath as mp
import numpy as np

PI = float(np.pi)
LOG_SWITCH = 4 * float(np.arctan(0.2))
EXP_SWITCH = 2.0

ANGLES = [
    0.0,
    1e-300,
    1e-160,
    1e-12,
    1e-8,
    1e-4,
    0.1,
    LOG_SWITCH * (1 - 1e-6),
    LOG_SWITCH * (1 - 1e-15),
    LOG_SWITCH * (1 + 1e-6),
    1.0,
    EXP_SWITCH * (1 - 1e-6),
    EXP_SWITCH * (1 - 1e-15),
    EXP_SWITCH,
    EXP_SWITCH * (1 + 1e-6),
    2 * PI / 3,
    PI - 1e-3,
    PI - 1e-7,
    PI - 1e-12,
    PI,
]

AXES = [
    np.array([1.0, 0.0, 0.0]),
    np.array([0.0, -1.0, 0.0]),
    np.array([0.0, 0.0, 1.0]),
    np.array([1.0, -1.0, 0.0]) / np.sqrt(2),
    np.array([-1.0, 1.0, 1.0]) / np.sqrt(3),
    np.array([0.36, 0.48, -0.8]),
    np.array([-1e-9, 0.6, 0.8]),
]


def numbers(matrix):
    """A DM as a NumPy array; columns become one-dimensional."""
    array = np.array(ca.DM(matrix))
    return array.ravel() if array.shape[1] == 1 else array


def value_and_jacobian(function, *shapes):
    """Compile `function` of SX arguments; returns callables for values and for d/d(first)."""
    arguments = [ca.SX.sym(f"a{i}", *shape) for i, shape in enumerate(shapes)]
    result = function(*arguments)
    jacobian = ca.jacobian(result, arguments[0])
    both = ca.Function("both", arguments, [result, jacobian])
    return lambda *values: tuple(numbers(part) for part in both(*values))


def random_rotation(rng):
    """Uniform over SO(3), by a route that shares nothing with the code under test."""
    Q, upper = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(upper))
    return Q if np.linalg.det(Q) > 0 else -Q


def random_pose(rng):
    G = np.eye(4)
    G[:3, :3], G[:3, 3] = random_rotation(rng), rng.normal(size=3)
    return G


def skew(w):
    x, y, z = w
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def exact(w, coefficients):
    """I + a W + b W^2 (3x3) to full precision, with a, b = coefficients(t) in mpmath."""
    w = [mp.mpf(float(x)) for x in w]
    largest = max(abs(x) for x in w)
    if largest == 0:
        return np.eye(3)
    with mp.workdps(60 + int(3 * max(0, -mp.log10(largest)))):
        t = mp.sqrt(sum(x * x for x in w))
        a, b = coefficients(t)
        W = mp.matrix([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        M = mp.eye(3) + a * W + b * W * W
        return np.array([[float(M[i, j]) for j in range(3)] for i in range(3)])


def exact_exp(w):
    return exact(w, lambda t: (mp.sin(t) / t, (1 - mp.cos(t)) / t**2))


def exact_left_jacobian(w):
    return exact(w, lambda t: ((1 - mp.cos(t)) / t**2, (t - mp.sin(t)) / t**3))


def exact_left_jacobian_inverse(w):
    return exact(w, lambda t: (-mp.mpf(1) / 2, (1 - t / 2 * mp.cot(t / 2)) / t**2))
