"""The invariant Kalman filter: pose and velocity of a body from its IMU and late, slow poses.

State X = (R, v, p) in SE_2(3), attitude, velocity and position of the IMU in the world, and the
biases b of the gyroscope and of the accelerometer. The error is left-invariant,

    X = X_est exp(xi),    xi = (phi, nu, rho),    b = b_est + beta

so that with a pose measured in the world, Y = X_pose exp(n), the innovation log(X_est^-1 Y) is
rho, phi and n to first order wherever the body is, and the error moves by what the IMU says alone
[Barrau2017]:

    phi' = -w x phi - beta_w,    nu' = -w x nu - a x phi - beta_a,    rho' = -w x rho + nu

A turn of the world turns the estimate and leaves the rest. Poses arrive late: the filter lives at
the time of which they tell, corrects there, and is brought to the present by the short history of
the IMU's samples. Between two samples their mean counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import factorial
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.estimation.base import Reading, StateEstimate, StateEstimator
from framefree.control.law import ControlError
from framefree.control.shared.gains import positive
from framefree.geometry import quaternion, se3, so3
from framefree.geometry.skew import wed
from framefree.machine import Free, Machine
from framefree.machine.values import constant_pose

Matrix = Any

N = 15
"""Size of the error: phi, nu, rho, beta_w, beta_a."""
_TERMS = 7
"""Terms of the series of a turn between two samples."""
_PHI, _NU, _RHO, _BETA_W, _BETA_A = (slice(3 * k, 3 * k + 3) for k in range(5))


class FlightState(NamedTuple):
    """Attitude wxyz, velocity and position of the IMU in the world; biases; covariance (15 x 15).

    Biases and errors are in the axes of the IMU.
    """

    wxyz: Matrix
    velocity: Matrix
    position: Matrix
    gyroscope_bias: Matrix
    accelerometer_bias: Matrix
    P: Matrix

    def moved(self, accelerometer: Matrix, gyroscope: Matrix, gravity: Matrix, h: Matrix) -> Any:
        """Return the state without its covariance after a time h under one sample of the IMU."""
        w, a = gyroscope - self.gyroscope_bias, accelerometer - self.accelerometer_bias
        R, step = quaternion.to_rotation(self.wxyz), _turning_step(w * h, h * a)
        along = h * (self.velocity + h / 2 * gravity)
        return self._replace(
            wxyz=quaternion.normalise(quaternion.product(self.wxyz, step.wxyz)),
            velocity=self.velocity + h * gravity + R @ step.once,
            position=self.position + along + R @ (h * step.twice),
        )

    def corrected(self, xi: Matrix) -> Any:
        """Return the state moved by an error xi (15)."""
        R, J = quaternion.to_rotation(self.wxyz), so3.left_jacobian(xi[_PHI])
        turned = quaternion.product(self.wxyz, quaternion.exp(xi[_PHI]))
        return FlightState(
            quaternion.normalise(turned),
            self.velocity + R @ (J @ xi[_NU]),
            self.position + R @ (J @ xi[_RHO]),
            self.gyroscope_bias + xi[_BETA_W],
            self.accelerometer_bias + xi[_BETA_A],
            self.P,
        )

    @property
    def pose(self) -> Matrix:
        """Pose (4 x 4) of the IMU in the world."""
        return se3.pose(quaternion.to_rotation(self.wxyz), self.position)


@dataclass(frozen=True)
class InvariantFilter(StateEstimator):
    """Estimate the state of a free joint from an IMU and from poses that come late and seldom.

    Parameters
    ----------
    machine : Machine
        The law's model, with one free joint to the world.
    imu, pose : str
        Names of the sensors: of the IMU (accelerometer, then gyroscope, 6) and of the pose
        (position and wxyz, 7).
    imu_frame, pose_frame : str, optional
        Where they sit; by default the body of the free joint.
    accelerometer, gyroscope : float
        Deviation of one sample, m/s^2 and rad/s.
    accelerometer_walk, gyroscope_walk : float
        How biases wander, m/s^2 and rad/s by root of s.
    position, angle : float
        Deviation of a pose, m and rad.
    delay : int
        Control periods that a pose is late.
    first : (5,)
        Deviations of attitude (rad), velocity (m/s), position (m) and biases (rad/s, m/s^2) at the
        start.

    Notes
    -----
    Signals: "gyroscope_bias", "accelerometer_bias" and "deviation" (15), the root of the diagonal
    of the covariance: phi, nu, rho, beta_w, beta_a.
    """

    machine: Machine
    imu: str = "imu"
    pose: str = "pose"
    imu_frame: str | None = None
    pose_frame: str | None = None
    accelerometer: float = 0.05
    gyroscope: float = 0.005
    accelerometer_walk: float = 1e-3
    gyroscope_walk: float = 1e-4
    position: float = 2e-3
    angle: float = 5e-3
    delay: int = 0
    first: Any = (0.01, 0.01, 0.01, 0.01, 0.1)

    def __post_init__(self) -> None:
        for name in ("accelerometer", "gyroscope", "position", "angle", "first"):
            positive(getattr(self, name), name)
        for name in ("accelerometer_walk", "gyroscope_walk"):
            positive(getattr(self, name), name, zero=True)
        if self.delay < 0 or self.delay != int(self.delay):
            raise ControlError(f"`delay` must be a whole number of periods, got {self.delay}")
        if np.shape(self.first) != (5,):
            raise ControlError(f"`first` must be five deviations, got {self.first}")
        _ = self._joint, self._places

    @cached_property
    def _joint(self) -> Any:
        free = [j for j in self.machine.joints if isinstance(j.kind, Free) and j.parent == "world"]
        if len(free) != 1:
            raise ControlError(
                f"`{self.machine.name}` must have one free joint to the world, has {len(free)}"
            )
        return free[0]

    @cached_property
    def _places(self) -> tuple[Matrix, Matrix]:
        """Poses of the joint's own frame and of the pose sensor's, both seen from the IMU."""
        body = self._joint.child
        frames = [self.machine.frame(name or body) for name in (self.imu_frame, self.pose_frame)]
        for frame in frames:
            if frame.body != body:
                raise ControlError(f"the frame `{frame.name}` is not on the body `{body}`")
        imu, pose = (constant_pose(frame.pose) for frame in frames)
        back = se3.inverse(imu)
        own = constant_pose(self._joint.child_pose)
        return se3.compose(back, own), se3.compose(back, pose)

    @property
    def joints(self) -> tuple[str, ...]:
        """The free joint."""
        return (self._joint.name,)

    @property
    def reads(self) -> tuple[str, ...]:
        """IMU and pose."""
        return self.imu, self.pose

    # ------------------------------------------------------------------ memory

    def first_memory(self, x: Matrix, v: Matrix) -> Matrix:
        """Return the memory of a filter that starts at a state, without biases."""
        machine, joint = self.machine, self._joint
        own, twist = x[machine.x_slice[joint.name]], v[machine.v_slice[joint.name]]
        place = self._places[0]
        G = se3.compose(constant_pose(joint.parent_pose), joint.kind.pose(own), se3.inverse(place))
        linear = (se3.adjoint(place) @ twist)[:3]
        R, zero = se3.rotation(G), ca.SX(3, 1)
        wxyz = quaternion.from_rotation(R)
        P = np.diag(np.repeat(np.asarray(self.first, float) ** 2, 3))
        state = FlightState(wxyz, R @ linear, se3.position(G), zero, zero, ca.DM(P))
        return self._packed(ca.SX(0), state, ca.SX(6 * (self.delay + 1), 1))

    def _packed(self, count: Matrix, state: FlightState, samples: Matrix) -> Matrix:
        *mean, P = state
        upper = [P[: k + 1, k] for k in range(N)]
        return ca.densify(ca.vertcat(count, *mean, *upper, samples))

    def unpacked(self, memory: Matrix) -> tuple[Matrix, FlightState, Matrix]:
        """Return how many periods went by, the state that poses tell of next, and the samples."""
        ends = np.cumsum([0, 1, 4, 3, 3, 3, 3, N * (N + 1) // 2, 6 * (self.delay + 1)]).tolist()
        count, *mean, upper, samples = ca.vertsplit(memory, ends)
        P = _mirrored(ca.vertsplit(upper, [k * (k + 1) // 2 for k in range(N + 1)]))
        wxyz, velocity, position, *biases = mean
        return count, FlightState(wxyz, velocity, position, biases[0], biases[1], P), samples

    # ------------------------------------------------------------------ one period

    def update(
        self, memory: Matrix, readings: Mapping[str, Reading], period: float
    ) -> StateEstimate:
        """Return the state now: correct in the past, then move on by the samples since."""
        count, state, samples = self.unpacked(memory)
        samples = ca.vertcat(samples, readings[self.imu].value)
        gravity = ca.DM(np.asarray(self.machine.gravity, float))
        means = [
            (samples[6 * k : 6 * k + 6] + samples[6 * k + 6 : 6 * k + 12]) / 2
            for k in range(self.delay + 1)
        ]
        # Before the run there was no time: the first samples are moved over in no time.
        times = [period * (count >= self.delay + 1 - k) for k in range(self.delay + 1)]
        state = self._propagated(state, means[0], gravity, times[0])
        state = self._measured(state, readings[self.pose])
        now = state
        for mean, h in zip(means[1:], times[1:], strict=True):
            now = now.moved(mean[:3], mean[3:], gravity, h)
        signals = {
            "gyroscope_bias": now.gyroscope_bias,
            "accelerometer_bias": now.accelerometer_bias,
            "deviation": ca.sqrt(ca.diag(state.P)),
        }
        return self._told(now, samples[-3:], self._packed(count + 1, state, samples[6:]), signals)

    def _told(
        self, now: FlightState, gyroscope: Matrix, memory: Matrix, signals: Mapping[str, Matrix]
    ) -> StateEstimate:
        """Return a state of the IMU as that of the joint."""
        place, joint = self._places[0], self._joint
        G = se3.compose(se3.inverse(constant_pose(joint.parent_pose)), now.pose, place)
        R = quaternion.to_rotation(now.wxyz)
        twist = ca.vertcat(R.T @ now.velocity, gyroscope - now.gyroscope_bias)
        x = ca.vertcat(se3.position(G), quaternion.from_rotation(se3.rotation(G)))
        v = se3.adjoint(se3.inverse(place)) @ twist
        return StateEstimate({joint.name: x}, {joint.name: v}, memory, signals)

    def _propagated(
        self, state: FlightState, sample: Matrix, gravity: Matrix, h: Matrix
    ) -> FlightState:
        """Return the state after one period, with its covariance."""
        turn = h * (sample[3:] - state.gyroscope_bias)
        drift, T = _error_steps(turn, h * (sample[:3] - state.accelerometer_bias), h)
        noise = ca.SX(N, 1)
        noise[_PHI], noise[_NU] = self.gyroscope**2 * h**2, self.accelerometer**2 * h**2
        noise[_BETA_W] = self.gyroscope_walk**2 * h
        noise[_BETA_A] = self.accelerometer_walk**2 * h
        P = _congruent(T, _congruent(drift, state.P)) + ca.diag(noise)
        return state.moved(sample[:3], sample[3:], gravity, h)._replace(P=P)

    def _measured(self, state: FlightState, reading: Reading) -> FlightState:
        """Return the state after a pose (position, wxyz), where that is fresh.

        Its six numbers are taken one after the other, which is the same as all at once because
        their noise is independent.
        """
        place, P, xi = self._places[1], state.P, ca.SX(N, 1)
        wxyz = quaternion.normalise(reading.value[3:7])
        Y = se3.pose(quaternion.to_rotation(wxyz), reading.value[:3])
        off = se3.log(se3.compose(se3.inverse(se3.compose(state.pose, place)), Y))
        H = ca.SX(6, N)
        carried = se3.adjoint(se3.inverse(place))
        H[:, _RHO], H[:, _PHI] = carried[:, :3], carried[:, 3:]
        noise = np.repeat([self.position**2, self.angle**2], 3)
        for row, deviation2, missing in zip(ca.vertsplit(H), noise, ca.vertsplit(off), strict=True):
            PH = ca.densify(P @ row.T)
            gain = reading.fresh / (row @ PH + deviation2) * PH
            xi = xi + gain * (missing - row @ xi)
            P = _mirrored([P[: k + 1, k] - gain[: k + 1] * PH[k] for k in range(N)])
        return state.corrected(xi)._replace(P=P)


class _TurningStep(NamedTuple):
    """A turn as a quaternion, and integrals of exp(s turn) a and (1 - s) exp(s turn) a, s to 1."""

    wxyz: Matrix
    once: Matrix
    twice: Matrix


def _turning_step(turn: Matrix, a: Matrix) -> _TurningStep:
    """Return what a turn w in one step does.

    With t = |w| these are

        exp(w / 2)                                                      as a quaternion
        a + (1 - cos t)/t^2 w x a + (t - sin t)/t^3 w x (w x a)              once
        a/2 + (t - sin t)/t^3 w x a + (t^2/2 - 1 + cos t)/t^4 w x (w x a)    twice

    The factors are series in t^2, which lose less than 1e-10 up to 2 rad and 1e-7 up to half a
    turn; a filter whose body turns farther between two samples is lost anyway.
    """
    s = ca.sumsqr(turn)
    cosine, sine = _series(s, 0, 4), _series(s, 1, 4) / 2
    rest, second = _series(s, 3), _series(s, 4)
    across = ca.cross(turn, a)
    twice_across = ca.cross(turn, across)
    once = a + (0.5 - s * second) * across + rest * twice_across
    return _TurningStep(
        ca.vertcat(cosine, sine * turn), once, a / 2 + rest * across + second * twice_across
    )


def _series(s: Matrix, first: int, share: int = 1) -> Matrix:
    """Return the sum of (-s / share)^k / (2 k + first)!."""
    value: Matrix = 0.0
    for k in reversed(range(_TERMS)):
        value = value * s + (-1.0 / share) ** k / factorial(2 * k + first)
    return value


def _error_steps(turn: Matrix, a: Matrix, h: Matrix) -> tuple[Matrix, Matrix]:
    """Return what one period does to an error xi: first a drift in axes that stand, then a turn.

    In axes that stand the IMU's force is exp(s w) a, and only its integrals count:

        phi -= J beta_w,    nu -= once x phi + J beta_a - ...,    rho += h nu - twice x phi - ...

    with the left Jacobian J of the turn; what biases do is right to third order in the period.
    """
    step, O, A = _turning_step(turn, a), wed(turn), wed(a)
    one, OO = ca.SX.eye(3), wed(turn) @ wed(turn)
    drift, T = ca.SX.eye(N), ca.SX.eye(N)
    drift[_PHI, _BETA_W] = drift[_NU, _BETA_A] = -h * (one + O / 2 + OO / 6)
    drift[_NU, _PHI] = -wed(step.once)
    drift[_NU, _BETA_W] = h * (A / 2 + wed(ca.cross(turn, a)) / 3 + A @ O / 6)
    drift[_RHO, _PHI], drift[_RHO, _NU] = -h * wed(step.twice), h * one
    drift[_RHO, _BETA_W] = h**2 / 6 * A
    drift[_RHO, _BETA_A] = -(h**2) * (one / 2 + O / 6 + OO / 24)
    for block in (_PHI, _NU, _RHO):
        T[block, block] = quaternion.to_rotation(step.wxyz).T
    return drift, T


def _congruent(S: Matrix, P: Matrix) -> Matrix:
    """Return ``S P S^T`` of a symmetric P."""
    half = S @ P
    return _mirrored([half[: k + 1, :] @ S[k, :].T for k in range(S.shape[0])])


def _mirrored(columns: Sequence[Matrix]) -> Matrix:
    """Return the symmetric matrix whose columns down to the diagonal are given."""
    P = ca.SX(len(columns), len(columns))
    for k, column in enumerate(columns):
        P[: k + 1, k] = column
        P[k, : k + 1] = column.T
    return P
