"""The scenario `space-arm`."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from framefree.control.passive import EndEffectorPassivity, FreeFloating
from framefree.control.references import FrameWaypoints
from framefree.gallery.machines.space_arm import space_arm
from framefree.gallery.scenarios.vehicles.vehicle_checks import (
    frame_distance,
    residual_promises,
    residuals,
)
from framefree.gallery.shared.metrics import VehicleArmScenario
from framefree.gallery.shared.rotations import angle_between
from framefree.gallery.shared.scenario import Outcome, Promise
from framefree.geometry import batch
from framefree.look.report import Animation, Figure
from framefree.machine import Machine
from framefree.motion.tree import Tree
from framefree.simulate import Run, simulate
from framefree.simulate.measures import rate_error, rms

START = (0.3, 0.5, 0.9, -0.6, 0.9, 0.0)
GOALS = ((1.3, 0.9, 0.6, -0.9, 1.1, 0.6), (0.6, 0.2, 1.5, -0.5, 0.8, -0.4))
"""Angles of the arm (rad) that give the poses to reach, were the satellite to stay as it is."""
OFF = 0.03
"""How far every joint is off at the start, rad."""


@dataclass(frozen=True)
class SpaceArm(VehicleArmScenario):
    """A satellite that nothing holds reaches out with its arm, and turns as it must.

    The satellite ETS-VII and its arm float freely: no thruster, no wheel, no gravity. The gripper
    goes to two poses in space; what the arm does, the satellite answers, so that momentum stays
    what it is. The law commands the six joints through the generalised Jacobian and knows the
    satellite only through momentum. Part of the manoeuvre is repeated by MuJoCo, with commands held
    for 0.1 s on both sides, at two steps each, which tell how large the error of integration is.

    Parameters
    ----------
    duration : float
        How long to simulate, s. The second pose is reached at nine tenths of it.
    dt : float
        Step, s.
    mujoco_s : float
        How long MuJoCo repeats the manoeuvre, s; 0 leaves it out, as where it is not installed.

    Metrics
    -------
    mujoco_gap
        Largest difference of the motion on MuJoCo to ours with the shorter step.
    *_step_error
        Largest difference of the motion between two steps on each plant.
    momentum_drift
        Largest change of momentum, by the sum of its parts.
    base_turn_max_deg
        Largest turn of the satellite.
    base_shift_max_m
        Largest shift of the satellite.
    generalised_jacobian_error
        Largest relative error of the gripper's twist by the generalised Jacobian.
    """

    name: ClassVar[str] = "space-arm"

    duration: float = 100.0
    dt: float = 0.005
    mujoco_s: float = 20.0

    def run(self, progress: bool | None = None) -> Outcome:
        """Reach two poses; repeat a part with MuJoCo."""
        machine = space_arm()
        law, reference, x0 = self._task(machine)
        run = simulate(
            machine, law, reference, x0, duration=self.duration, dt=self.dt,
            every=max(1, round(0.05 / self.dt)), record=("energy", "momentum"), progress=progress,
        )  # fmt: skip
        metrics = {**residuals(machine), **_measured(machine, run, reference)}
        fine = simulate(
            machine, law, reference, x0, duration=min(10.0, self.duration), dt=self.dt,
            record=(), progress=progress,
        )  # fmt: skip
        metrics["lyapunov_rate_error"] = rate_error(fine.t, fine["V"], fine["V_rate"])
        if self.mujoco_s and find_spec("mujoco") is not None:
            metrics |= self._with_mujoco(machine, progress)
        return Outcome(
            runs={"space_arm": run, "start": fine},
            metrics=metrics,
            promises=_promises(metrics),
            figures=_figures(machine, run, reference),
            animations=(
                Animation(
                    "The manoeuvre", run, trails=("gripper",),
                    paths={"reference of the gripper": run["gripper.pose"][:, :3, 3]},
                ),
            ),
            notes=_notes(metrics),
        )  # fmt: skip

    def _task(self, machine: Machine) -> tuple[EndEffectorPassivity, FrameWaypoints, np.ndarray]:
        gripper = Tree(machine).functions["frame_pose:gripper"]
        poses = [gripper(_arm_at(machine, angles)).full() for angles in (START, *GOALS)]
        times = np.array([0.0, 0.45, 0.9]) * self.duration
        x0 = _arm_at(machine, np.array(START) + OFF)
        size = np.diag(Tree(machine).functions["mass"](x0).full())[6:]
        law = EndEffectorPassivity(
            machine, K=size, freedom=FreeFloating(), frame="gripper", stiffness=(20.0, 2.0),
            rates=(0.5, 0.5), posture=x0, posture_gain=0.0,
        )  # fmt: skip
        return law, FrameWaypoints("gripper", poses, times), x0

    def _with_mujoco(self, machine: Machine, progress: bool | None) -> dict[str, float]:
        """Return the largest gap to MuJoCo, and what the steps of both explain of it."""
        law, reference, x0 = self._task(machine)
        runs: dict[tuple[str, int], Run] = {}
        for plant in ("native", "mujoco"):
            for half in (1, 2):
                runs[plant, half] = simulate(
                    machine, law, reference, x0, duration=self.mujoco_s, dt=0.05 / half,
                    control_dt=0.1, plant=plant, record=(), progress=progress,
                )  # fmt: skip

        def gap(a: Run, b: Run) -> float:
            apart = machine.difference(a.x, b.x)
            return float(max(np.abs(apart).max(), np.abs(a.v - b.v).max()))

        return {
            "mujoco_gap": gap(runs["native", 2], runs["mujoco", 2]),
            "native_step_error": gap(runs["native", 1], runs["native", 2]),
            "mujoco_step_error": gap(runs["mujoco", 1], runs["mujoco", 2]),
        }


def _arm_at(machine: Machine, angles: Any) -> np.ndarray:
    x = machine.neutral()
    x[7:] = angles
    return x


def _measured(machine: Machine, run: Run, reference: FrameWaypoints) -> dict[str, float]:
    tree = Tree(machine)
    pose = np.asarray(tree.kernel("frame_pose:gripper")(run.x))
    wanted = run["gripper.pose"]
    linear, angular = _magnitudes(machine, tree, run)
    drift = max(
        float(_apart(run["linear_momentum"]).max() / linear.max()),
        float(_apart(run["angular_momentum"]).max() / angular.max()),
    )
    error = frame_distance(pose, wanted)
    return {
        "momentum_drift": drift,
        "end_position_rms_m": rms(error),
        "end_position_m": float(error[-1]),
        "end_angle_rad": float(angle_between(pose[-1, :3, :3], wanted[-1, :3, :3])),
        "base_turn_max_deg": float(np.rad2deg(_turned(run)).max()),
        "base_shift_max_m": float(np.linalg.norm(run.x[:, :3], axis=1).max()),
        "generalised_jacobian_error": _jacobian_error(tree, run),
        "task_pivot_min": float(run["task_pivot"].min()),
        "torque_max_nm": float(np.abs(run.u).max()),
    }


def _apart(momentum: np.ndarray) -> np.ndarray:
    return np.linalg.norm(momentum - momentum[0], axis=1)


def _turned(run: Run) -> np.ndarray:
    R = batch.rotation(run.x[:, 3:7])
    return angle_between(R, np.broadcast_to(R[0], R.shape))


def _magnitudes(machine: Machine, tree: Tree, run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums over bodies of |momentum| and of |angular momentum| about the origin."""
    G = np.asarray(tree.kernel("body_pose")(run.x))
    xi = np.asarray(tree.kernel("body_velocity")(run.x, run.v))
    own = np.stack(
        [
            xi[:, b] @ np.asarray(body.moments.matrix6, float)
            for b, body in enumerate(machine.bodies)
        ],
        axis=1,
    )
    R, r = G[..., :3, :3], G[..., :3, 3]
    p = np.einsum("nbij,nbj->nbi", R, own[..., :3])
    turning = np.einsum("nbij,nbj->nbi", R, own[..., 3:]) + np.cross(r, p)
    return np.linalg.norm(p, axis=2).sum(axis=1), np.linalg.norm(turning, axis=2).sum(axis=1)


def _jacobian_error(tree: Tree, run: Run) -> float:
    """Return the largest gap between the gripper's twist and J_g qd, relative to its peak."""
    J = np.asarray(tree.kernel("jacobian:gripper")(run.x))
    M = np.asarray(tree.kernel("mass")(run.x))
    follow = np.linalg.solve(M[:, :6, :6], M[:, :6, 6:])
    generalised = J[:, :, 6:] - J[:, :, :6] @ follow
    twist = np.einsum("nij,nj->ni", J, run.v)
    gap = twist - np.einsum("nij,nj->ni", generalised, run.v[:, 6:])
    return float(np.abs(gap).max() / np.abs(twist).max())


def _promises(m: dict[str, Any]) -> tuple[Promise, ...]:
    with_mujoco = ()
    if "mujoco_gap" in m:
        explained = m["native_step_error"] + m["mujoco_step_error"]
        with_mujoco = (
            Promise(
                "MuJoCo agrees to the error of integration", m["mujoco_gap"], explained, "m, rad"
            ),
        )
    return (
        *residual_promises(m),
        Promise("momentum stays, by its parts", m["momentum_drift"], 1e-10),
        Promise("the gripper reaches its place", m["end_position_m"], 1e-3, "m"),
        Promise("and its attitude", m["end_angle_rad"], 1e-3, "rad"),
        Promise.at_least("the satellite turns as the arm moves", m["base_turn_max_deg"], 1.0, "°"),
        Promise(
            "the generalised Jacobian gives the twist of the gripper, relative error",
            m["generalised_jacobian_error"], 1e-8,
        ),
        Promise("V falls as the law states, relative error", m["lyapunov_rate_error"], 1e-6),
        *with_mujoco,
    )  # fmt: skip


def _figures(machine: Machine, run: Run, reference: FrameWaypoints) -> tuple[Figure, ...]:
    linear, angular = _magnitudes(machine, Tree(machine), run)
    return (
        Figure.over_time(
            "Distance of the gripper from where it should be", "distance (m)", run.t,
            {"gripper": run["frame_distance"]}, logarithmic=True,
        ),
        Figure.over_time(
            "Turn of the satellite", "angle (deg)", run.t, {"satellite": np.rad2deg(_turned(run))},
            caption="No torque acts on it from outside: it turns because the arm moves.",
        ),
        Figure.over_time(
            "Momentum that is not constant, of the sum of its parts", "share", run.t,
            {
                "linear": _apart(run["linear_momentum"]) / linear.max(),
                "angular": _apart(run["angular_momentum"]) / angular.max(),
            },
        ),
        Figure.over_time(
            "Momentum in the bodies", "sum of magnitudes (N s, Nm s)", run.t,
            {"linear (N s)": linear, "angular (Nm s)": angular},
        ),
        Figure.over_time(
            "Joints of the arm", "torque (Nm)", run.t,
            {f"joint {k + 1}": run.u[:, k] for k in range(6)},
        ),
        Figure.over_time(
            "How near the generalised Jacobian is to singular", "least pivot", run.t,
            {"task": run["task_pivot"]},
            caption="It can be singular where the arm's own Jacobian is not.",
        ),
    )  # fmt: skip


def _notes(m: dict[str, Any]) -> tuple[str, ...]:
    compared = (
        f"In the part that MuJoCo repeats both engines differ by {m['mujoco_gap']:.1e} (m, rad, "
        f"m/s, rad/s); halving the step changes ours by {m['native_step_error']:.1e} and MuJoCo's "
        f"by {m['mujoco_step_error']:.1e}."
        if "mujoco_gap" in m
        else "MuJoCo was not asked, or is not installed."
    )
    return (
        compared,
        "The published tensors of links 1 to 3 are not those of any body; their greatest moments "
        "are cut here. With the published ones, mass matrix and generalised Jacobian are those of "
        "the published model (see the tests).",
    )
