"""The scenario `auv-arm`."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import casadi as ca
import numpy as np

from framefree.certify.forms import eigenvalues_through_pitch_90
from framefree.control.passive import EndEffectorPassivity, EulerPassivity, PassivityControl
from framefree.control.references import Shifted
from framefree.gallery.machines.auv import THRUST, auv
from framefree.gallery.scenarios.vehicles.auv_arm_parts import (
    DiveLoop,
    gripper_error,
    hull_sizes,
    pitch,
)
from framefree.gallery.scenarios.vehicles.vehicle_checks import (
    largest_jump,
    residual_promises,
    residuals,
)
from framefree.gallery.shared.metrics import VehicleArmScenario
from framefree.gallery.shared.scenario import Outcome, Promise
from framefree.look.report import Animation, Figure, Line
from framefree.machine import Machine
from framefree.simulate import Run, SimulationError, simulate
from framefree.simulate.measures import rate, rate_error, rms

OFF = (0.01, -0.02, 0.01, 0.0, 0.0, 0.0, *(0.03,) * 7)
"""How far hull (m, rad) and arm (rad) are off at the start of the main run."""
FAR_OFF = (0.05, -0.08, 0.05, 0.2, -0.15, 0.2, *(0.15,) * 7)
"""The same for the comparison of the laws."""


class Tried(NamedTuple):
    """A law in the comparison: its run, the gripper's error (m), and why it broke off, if so."""

    run: Run
    error: np.ndarray
    trouble: str


@dataclass(frozen=True)
class AuvArm(VehicleArmScenario):
    """An underwater vehicle tumbles through pitch 90 degrees while its gripper follows a path.

    A BlueROV2 Heavy with a seven-joint arm dives in a full loop, through pitch 90 and -90 degrees,
    in a current that its model knows. The gripper has a path of its own; hull and arm share its
    motion. The law has no attitude at which it is not defined; it is evaluated 100 times a second,
    and eight thrusters share out what it asks for within their limits. At the start hull and
    gripper are some centimetres off.

    Then the same law is tried in three versions from a worse start just before pitch 90 degrees,
    with ideal actuators: with a skew-symmetric Coriolis matrix, its V falls as stated; with the
    plain adjoint form it does not; in roll, pitch and yaw it breaks down.

    Parameters
    ----------
    period : float
        Time of the loop, s.
    dt : float
        Step of the main run, s.
    compare_dt : float
        Step of the three versions, s.
    compare_s : float
        How long they run, s; they begin where the loop has 27 percent of its time behind it.

    Metrics
    -------
    end_position_max_late_m
        Largest distance after the first sixth of the loop.
    pitch_*_deg
        Largest and least pitch of the hull.
    command_jump
        Largest change of a command from step to step, by those at the steps beside it.
    thrust_max_n
        Largest thrust.
    lyapunov_fall
        V in the end, by V at first.
    adjoint_lyapunov_rate_error
        By how much the rate of V misses the stated one with the plain adjoint form,
        relative.
    skew_command_jump
        Largest jump of a command with the skew form.
    *_command_max
        Largest command (N, Nm) with the skew form, or in Euler angles.
    euler_finished
        Whether the law in Euler angles came to the end.
    euler_end_s
        When it ended.
    skew_end_error_m
        Distance of the gripper in the end, skew form.
    """

    name: ClassVar[str] = "auv-arm"

    period: float = 30.0
    dt: float = 5e-3
    compare_dt: float = 5e-4
    compare_s: float = 6.0

    def run(self, progress: bool | None = None) -> Outcome:
        """Follow the path; then compare three versions of the law."""
        machine = auv()
        loop = DiveLoop(machine, self.period)
        main = self._follow(loop, progress)
        error = gripper_error(main, loop)
        tried = self._tried(loop, progress)
        metrics = self._metrics(machine, main, error, tried)
        runs = {"auv_arm": main, **{name: one.run for name, one in tried.items()}}
        return Outcome(
            runs=runs,
            metrics=metrics,
            promises=_promises(metrics),
            figures=(*_figures(main, error), *_comparison(tried), _eigenvalues(loop)),
            animations=(
                Animation(
                    "The loop", main, trails=("gripper",),
                    paths={"reference of the gripper": loop.wanted(main.t[::10])[:, :3, 3]},
                    caption="The hull turns all the way round; the gripper stays on its path.",
                ),
            ),
            notes=_notes(metrics, tried["euler"]),
        )  # fmt: skip

    # ------------------------------------------------------------------ the runs

    def _follow(self, loop: DiveLoop, progress: bool | None) -> Run:
        machine, size = loop.machine, hull_sizes(loop)
        law = EndEffectorPassivity(
            machine, K=6 * size, frame="gripper", stiffness=(30.0, 0.3), rates=(2.0, 2.0),
            weights=(*(400.0,) * 3, *(100.0,) * 3, *(1.0,) * 7), follow_posture=True,
            posture_gain=(*(1.0,) * 6, *(0.1,) * 7), within_limits=True,
        )  # fmt: skip
        x0 = machine.integrate(loop.rest, np.array(OFF))
        return simulate(
            machine, law, loop.reference(), x0, np.zeros(machine.nv), duration=self.period,
            dt=self.dt, control_dt=max(1, round(0.01 / self.dt)) * self.dt, record=("energy",),
            progress=progress,
        )  # fmt: skip

    def _tried(self, loop: DiveLoop, progress: bool | None) -> dict[str, Tried]:
        machine, size, begin = loop.machine, hull_sizes(loop), 0.27 * self.period
        gains: dict[str, Any] = {"K": 6 * size, "stiffness": 9 * size, "Lambda": 1.5 / (9 * size)}
        laws = {
            "skew": PassivityControl(machine, **gains, drag="met"),
            "adjoint": PassivityControl(machine, **gains, drag="met", form="adjoint"),
            "euler": EulerPassivity(machine, **gains, drag="met"),
        }
        path = Shifted(loop.joints(), -begin)
        x = np.array(ca.DM(path.at(0.0)["x"])).ravel()
        tried = {}
        for name, law in laws.items():
            trouble = ""
            try:
                run = simulate(
                    machine, law, path, machine.integrate(x, np.array(FAR_OFF)),
                    np.zeros(machine.nv), duration=self.compare_s, dt=self.compare_dt, limits=False,
                    every=max(1, round(5e-4 / self.compare_dt)), record=("energy",),
                    progress=progress,
                )  # fmt: skip
            except SimulationError as error:
                if error.run is None:
                    raise
                run, trouble = error.run, str(error)
            tried[name] = Tried(run, gripper_error(run, loop, begin), trouble)
        return tried

    # ------------------------------------------------------------------ what came of it

    def _metrics(
        self, machine: Machine, main: Run, error: np.ndarray, tried: dict[str, Tried]
    ) -> dict[str, Any]:
        angle = pitch(main.x)
        skew, adjoint, euler = (tried[name] for name in ("skew", "adjoint", "euler"))
        return {
            **residuals(machine),
            "end_position_rms_m": rms(error),
            "end_position_max_late_m": float(error[main.t > self.period / 6].max()),
            "pitch_max_deg": float(angle.max()),
            "pitch_min_deg": float(angle.min()),
            "command_jump": largest_jump(main.u),
            "thrust_max_n": float(np.abs(main.u[:, :8]).max()),
            "torque_max_nm": float(np.abs(main.u[:, 8:]).max()),
            "task_pivot_min": float(main["task_pivot"].min()),
            "lyapunov_rate_error": _rate_error(skew.run),
            "lyapunov_fall": float(skew.run["V"][-1] / skew.run["V"][0]),
            "adjoint_lyapunov_rate_error": _rate_error(adjoint.run),
            "skew_command_jump": largest_jump(skew.run.u),
            "skew_command_max": float(np.abs(skew.run.u).max()),
            "euler_command_max": float(np.abs(euler.run.u).max()),
            "euler_finished": not euler.trouble,
            "euler_end_s": float(euler.run.t[-1]),
            "skew_end_error_m": float(skew.error[-1]),
        }


def _rate_error(run: Run) -> float:
    return rate_error(run.t, run["V"], run["V_rate"])


def _promises(m: dict[str, Any]) -> tuple[Promise, ...]:
    failed = not m["euler_finished"] or m["euler_command_max"] > 100 * m["skew_command_max"]
    return (
        *residual_promises(m),
        Promise("the gripper keeps to its path, rms", m["end_position_rms_m"], 5e-3, "m"),
        Promise.at_least("the hull passes pitch 90 degrees", m["pitch_max_deg"], 89.0, "°"),
        Promise("and pitch -90 degrees", m["pitch_min_deg"], -89.0, "°"),
        Promise("no command jumps: change by those at the steps beside it", m["command_jump"], 2.0,
                "times"),
        Promise("thrusters keep within their limits", m["thrust_max_n"], THRUST, "N"),
        Promise("V falls as the law states, relative error", m["lyapunov_rate_error"], 1e-6),
        Promise.at_least(
            "with the plain adjoint form it does not, relative error",
            m["adjoint_lyapunov_rate_error"], 0.01,
        ),
        Promise.that("in Euler angles the law breaks down, or asks for 100 times as much", failed),
    )  # fmt: skip


def _figures(main: Run, error: np.ndarray) -> tuple[Figure, ...]:
    thrust = {f"thruster {k + 1}": main.u[:, k] for k in range(8)}
    torque = {f"joint {k + 1}": main.u[:, 8 + k] for k in range(7)}
    return (
        Figure.over_time(
            "Distance of the gripper from its path", "distance (m)", main.t, {"gripper": error},
            logarithmic=True, caption="The first error decays at the rate of the gains.",
        ),
        Figure.over_time(
            "Pitch of the hull", "pitch (deg)", main.t, {"pitch": pitch(main.x)},
            caption="At 90 and -90 degrees roll and yaw are not defined; nothing else happens.",
        ),
        Figure.over_time("Thrusters", "thrust (N)", main.t, thrust),
        Figure.over_time("Joints of the arm", "torque (Nm)", main.t, torque),
        Figure.over_time(
            "Angles of the arm", "angle (rad)", main.t,
            {f"joint {k + 1}": main.x[:, 7 + k] for k in range(7)},
        ),
    )  # fmt: skip


def _comparison(tried: dict[str, Tried]) -> tuple[Figure, ...]:
    words = {"skew": "skew", "adjoint": "plain adjoint", "euler": "Euler angles"}
    falling, missed, asked = [], [], []
    for name, (run, _, _) in tried.items():
        t, V = run.t[2:-2], run["V"]
        falling.append(Line(words[name], run.t, _shown(V, 1e3)))
        asked.append(Line(words[name], run.t, _shown(np.abs(run.u).max(axis=1), 1e5)))
        if name != "euler":
            missed.append(Line(words[name], t, rate(run.t, V) - run["V_rate"][2:-2]))
    return (
        Figure(
            "V of three versions of the law", "time (s)", "V (J)", tuple(falling), logarithmic=True,
            caption="Pitch 90 degrees is passed about 2.5 s after the start.",
        ),
        Figure(
            "dV/dt as measured, less what is stated", "time (s)", "power (W)", tuple(missed),
            caption="What the plain adjoint form leaves out is s.(dM/dt - 2C)s/2.",
        ),
        Figure(
            "Largest command of three versions", "time (s)", "command (N, Nm)", tuple(asked),
            logarithmic=True, caption="In Euler angles it grows without bound at pitch 90 degrees.",
        ),
    )  # fmt: skip


def _shown(y: np.ndarray, most: float) -> np.ndarray:
    """Return values with gaps where they are too large to be shown."""
    return np.where(np.isfinite(y) & (y < most), y, np.nan)


def _eigenvalues(loop: DiveLoop) -> Figure:
    angle, on_group, in_angles = eigenvalues_through_pitch_90(loop.machine, loop.rest)
    lines = (
        Line("least, on the group", angle, on_group[:, 0]),
        Line("greatest, on the group", angle, on_group[:, -1]),
        Line("least, Euler angles", angle, np.maximum(in_angles[:, 0], 1e-18), dashed=True),
        Line("greatest, Euler angles", angle, in_angles[:, -1], dashed=True),
    )
    return Figure(
        "Eigenvalues of the mass matrix over pitch", "pitch (deg)", "eigenvalue (kg, kg m^2)",
        lines,
        logarithmic=True,
        caption="On the group M does not depend on attitude at all; in roll, pitch and yaw it "
        "loses rank at 90 degrees.",
    )  # fmt: skip


def _notes(m: dict[str, Any], euler: Tried) -> tuple[str, ...]:
    end = euler.trouble or "It came to its end all the same."
    return (
        "Hull parameters are those of the BlueROV2 Heavy as they circulate [vonBenzon2022]; where "
        "its thrusters sit is rounded, and the arm with its added mass and drag is ours.",
        f"The version in Euler angles: {end}",
        "In the comparison drag is made up for at the actual velocity: quadratic drag has kinks "
        "where a relative velocity changes sign, and differences of V across one say little.",
    )
