"""The scenario `arm-pose`."""

from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from framefree.control.references.frames import FramePath
from framefree.control.tasks import FrameControl, TaskControl
from framefree.gallery.machines.dual_arm import six_joint_arm
from framefree.gallery.shared.metrics import OscillatorScenario
from framefree.gallery.shared.scenario import Outcome, Promise
from framefree.geometry import euler
from framefree.look.report import Animation, Figure
from framefree.simulate import simulate


@dataclass(frozen=True)
class ArmPose(OscillatorScenario):
    """A six-joint arm brings its hand to a pose, with control as a constraint.

    The wanted motion of the hand is a constraint on the joint accelerations, and the motors give
    its force. The error of position then is that of one oscillator, overdamped, whose closed form
    is known.

    Parameters
    ----------
    duration : float
        How long to simulate, s.
    dt : float
        Step of the integrator, s.
    Kp : float
        Stiffness of the error's oscillator, 1/s^2.
    Kd : float
        Its damping, 1/s.
    plant : str
        "native" or "mujoco".

    Metrics
    -------
    position_error_m
        Distance of the hand from its place in the end.
    attitude_error_rad
        Angle of the hand from its attitude in the end.
    largest_torque_nm
        Largest torque of a motor.
    """

    name: ClassVar[str] = "arm-pose"

    duration: float = 20.0
    dt: float = 1e-3
    Kp: float = 25.0
    Kd: float = 50.0
    plant: str = "native"

    def run(self, progress: bool | None = None) -> Outcome:
        """Run from the arm's zero configuration."""
        arm = six_joint_arm()
        law = TaskControl(arm, [[FrameControl("gripper", "target", self.Kp, self.Kd)]])
        run = simulate(
            arm,
            law,
            FramePath("target", lambda t: ca.DM(_TARGET)),
            duration=self.duration,
            dt=self.dt,
            every=max(round(0.01 / self.dt), 1),
            plant=self.plant,
            record=("energy",),
            progress=progress,
        )
        error = run["control.error"]
        closed = np.outer(decay(run.t, self.Kp, self.Kd), error[0, :3])
        metrics = {
            "position_error_m": float(np.linalg.norm(error[-1, :3])),
            "attitude_error_rad": float(np.linalg.norm(error[-1, 3:])),
            "closed_form_error_m": float(np.abs(error[:, :3] - closed).max()),
            "largest_torque_nm": float(np.abs(run.u).max()),
        }
        # MuJoCo holds torques over a step.
        exact = 1e-8 if self.plant == "native" else 1e-4
        return Outcome(
            {"run": run},
            metrics,
            (
                Promise.of(
                    metrics, "position_error_m", "the hand is at its place in the end", 1e-4
                ),
                Promise.of(metrics, "attitude_error_rad", "it has its attitude in the end", 1e-4),
                Promise.of(
                    metrics, "closed_form_error_m", "errors decay as the closed form says", exact
                ),
            ),
            _figures(run, error, closed),
            (Animation("The arm", run, ("gripper",)),),
        )


def _target() -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3] = euler.to_rotation((0, -np.pi / 2, 0)).full()
    pose[:3, 3] = 0, 0.2, 1.0
    return pose


_TARGET = _target()


def decay(t: np.ndarray, Kp: float, Kd: float) -> np.ndarray:
    """Return the solution (rows,) of ``e'' + Kd e' + Kp e = 0`` with e(0) = 1 at rest."""
    a, b = np.roots([1.0, Kd, Kp]).astype(complex)
    if abs(a - b) < 1e-9 * abs(a):
        return ((1 - a * t) * np.exp(a * t)).real
    return ((b * np.exp(a * t) - a * np.exp(b * t)) / (b - a)).real


def _figures(run: Any, error: np.ndarray, closed: np.ndarray) -> tuple[Figure, ...]:
    values = {}
    for k, axis in enumerate("xyz"):
        values[axis] = error[:, k]
        values[f"{axis}, closed form *"] = closed[:, k]
    torques = {joint.name: run.u[:, k] for k, joint in enumerate(run.machine.joints)}
    return (
        Figure.over_time("Error of position", "error (m)", run.t, values),
        Figure.over_time("Torques", "torque (Nm)", run.t, torques),
    )
