"""The heavy top in NumPy as an FMU of PythonFMU3: what `framefree bench fmu` compares with.

The same equations by the same integrator (Runge-Kutta-Munthe-Kaas) as the plant of the scenario
`heavy-top`: J w' = J w x w + s x R^T g, with s the first moment of mass. PythonFMU3 takes this file
as it is, so that it knows nothing of framefree.
"""

import numpy as np
from pythonfmu3 import Float64, Fmi3Causality, Fmi3Slave, Fmi3Variability

STEP = 1e-3
J = np.diag([15.234375, 0.46875, 15.234375])
J_INVERSE = np.linalg.inv(J)
FIRST = np.array([0.0, 15.0, 0.0])
GRAVITY = np.array([0.0, 0.0, -9.81])


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a x b; many times as fast as `numpy.cross` for single vectors."""
    return np.array(
        (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])
    )


def turned(q: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Return the attitude q turned by the rotation vector theta, in its own axes."""
    angle = np.sqrt(theta @ theta)
    half = 0.5 * np.sinc(angle / (2 * np.pi)) * theta
    w, v = np.cos(angle / 2), half
    return np.concatenate(([q[0] * w - q[1:] @ v], q[0] * v + w * q[1:] + cross(q[1:], v)))


def acceleration(q: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return w'."""
    down = GRAVITY - 2 * cross(q[1:], q[0] * GRAVITY - cross(q[1:], GRAVITY))
    return J_INVERSE @ (cross(J @ w, w) + cross(FIRST, down))


def step(q: np.ndarray, w: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
    """Return attitude and angular velocity after a step."""

    def rates(theta: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        first = cross(theta, w)
        turning = w + first / 2 + cross(theta, first) / 12
        return turning, acceleration(turned(q, theta), w)

    p1, a1 = w, acceleration(q, w)
    p2, a2 = rates(h / 2 * p1, w + h / 2 * a1)
    p3, a3 = rates(h / 2 * p2, w + h / 2 * a2)
    p4, a4 = rates(h * p3, w + h * a3)
    moved = turned(q, h / 6 * (p1 + 2 * (p2 + p3) + p4))
    return moved / np.sqrt(moved @ moved), w + h / 6 * (a1 + 2 * (a2 + a3) + a4)


class NumpyTop(Fmi3Slave):
    """The top as a co-simulation model."""

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.q = np.array([1.0, 0.0, 0.0, 0.0])
        self.w = np.zeros(3)
        self.time = 0.0
        for k in range(4):
            self._declare(f"q{k}", self.q, k)
        for k in range(3):
            self._declare(f"w{k}", self.w, k)

    def _declare(self, name: str, array: np.ndarray, k: int) -> None:
        self.register_variable(
            Float64(
                name,
                causality=Fmi3Causality.local,
                variability=Fmi3Variability.continuous,
                start=float(array[k]),
                getter=lambda: float(array[k]),
                setter=lambda value: array.__setitem__(k, value),
            )
        )

    def do_step(self, current_time: float, step_size: float) -> bool:
        """Move on in steps of 1 ms."""
        for _ in range(round(step_size / STEP)):
            self.q[:], self.w[:] = step(self.q, self.w, STEP)
        return True
