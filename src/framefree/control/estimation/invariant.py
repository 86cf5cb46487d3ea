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

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
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
from framefree.motion.spatial import solve_symmetric

Matrix = Any

N = 15
"""Size of the error: phi, nu, rho, beta_w, beta_a."""
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
        R, turn = quaternion.to_rotation(self.wxyz), w * h
        once = h * (so3.left_jacobian(turn) @ a)
        twice = h**2 * _second_integral(turn, a)
        return self._replace(
            wxyz=quaternion.normalise(quaternion.product(self.wxyz, quaternion.exp(turn))),
            velocity=self.velocity + h * gravity + R @ once,
            position=self.position + h * self.velocity + h**2 / 2 * gravity + R @ twice,
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
        P, at = ca.SX(N, N), 0
        for k in range(N):
            P[: k + 1, k] = upper[at : at + k + 1]
            P[k, : k + 1] = upper[at : at + k + 1].T
            at += k + 1
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
        a = sample[:3] - state.accelerometer_bias
        W, A = wed(sample[3:] - state.gyroscope_bias), wed(a)
        F = ca.SX(N, N)
        for block in (_PHI, _NU, _RHO):
            F[block, block] = -W
        F[_PHI, _BETA_W] = F[_NU, _BETA_A] = -ca.SX.eye(3)
        F[_NU, _PHI], F[_RHO, _NU] = -A, ca.SX.eye(3)
        F = F * h
        Phi = ca.SX.eye(N) + F + F @ F / 2 + F @ F @ F / 6
        noise = ca.SX(N, 1)
        noise[_PHI], noise[_NU] = self.gyroscope**2 * h**2, self.accelerometer**2 * h**2
        noise[_BETA_W] = self.gyroscope_walk**2 * h
        noise[_BETA_A] = self.accelerometer_walk**2 * h
        P = Phi @ state.P @ Phi.T + ca.diag(noise)
        return state.moved(sample[:3], sample[3:], gravity, h)._replace(P=P)

    def _measured(self, state: FlightState, reading: Reading) -> FlightState:
        """Return the state after a pose (position, wxyz), where that is fresh."""
        place, P = self._places[1], state.P
        wxyz = quaternion.normalise(reading.value[3:7])
        Y = se3.pose(quaternion.to_rotation(wxyz), reading.value[:3])
        off = se3.log(se3.compose(se3.inverse(se3.compose(state.pose, place)), Y))
        H = ca.SX(6, N)
        carried = se3.adjoint(se3.inverse(place))
        H[:, _RHO], H[:, _PHI] = carried[:, :3], carried[:, 3:]
        noise = np.repeat([self.position**2, self.angle**2], 3)
        PH = P @ H.T
        X = solve_symmetric(ca.densify(H @ PH + ca.diag(ca.DM(noise))), ca.densify(PH.T))
        corrected = state.corrected(reading.fresh * (X.T @ off))
        return corrected._replace(P=P - reading.fresh * (PH @ X))


def _second_integral(w: Matrix, a: Matrix) -> Matrix:
    """Return the integral of (1 - s) exp(s w) a over s from 0 to 1, for turns w below 1 rad."""
    total, term = a / 2, a
    for k in range(3, 10):
        term = ca.cross(w, term) / k
        total = total + term / 2
    return total
