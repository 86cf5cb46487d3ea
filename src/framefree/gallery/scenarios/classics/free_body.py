"""The scenario `free-body`."""

from dataclasses import dataclass
from itertools import permutations, product
from typing import ClassVar

import numpy as np

from framefree.gallery.machines.classics import box, cylinder
from framefree.gallery.scenarios.classics.closed_forms import (
    Turning,
    asymmetric_body,
    axisymmetric_body,
)
from framefree.gallery.shared.rotations import angle_between
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.geometry import batch
from framefree.look.report import Animation, Figure, Line
from framefree.simulate import Run, simulate

_FIRST_RATE = (2.0, -4.0, 6.0)  # of the cylinder, rad/s
_THROWN = (0.0, 0.0, 10.0)  # and its velocity, m/s
# Time in s, and attitude (wxyz) of the cylinder with these rates: numbers of an integration to
# 1e-12 beside the closed form of [Kane1983, sec. 3.1] and [Drake, free_body].
PUBLISHED = np.array([
    (0.5, -0.207310377212, -0.22867955781, -0.776646988975, 0.549133428099),
    (1.0, -0.30493638853, -0.310210857804, -0.183614479704, -0.881515028513),
    (2.0, -0.555437916551, 0.369536158671, -0.534121786803, 0.519274171469),
    (5.0, -0.191789212346, -0.443699452078, -0.473264426305, 0.736456704123),
    (10.0, -0.185871916512, -0.746336566135, 0.314829687309, -0.556161513134),
])  # fmt: skip


@dataclass(frozen=True)
class FreeBody(Scenario):
    """Bodies that tumble through every attitude, against their closed forms.

    A box spun about its middle axis turns over again and again; a cylinder thrown up tumbles and
    precesses. The box starts from many attitudes at once, among them the 24 in which its axes are
    those of the world: wherever Euler angles of any kind lock, some box passes. All of them must
    move alike, because nothing here prefers a frame.

    Parameters
    ----------
    dt : float
        Step of the integrator, s.
    duration : float
        How long to simulate, s.
    attitudes : int
        Random attitudes from which boxes start, beside the 24 along the axes.
    rate : float
        First rate about the middle axis, rad/s.
    nudge : float
        First rate about another axis, which makes the box turn over, rad/s.
    plant : str
        "native" or "mujoco".
    seed : int
        Of the random attitudes.

    Metrics
    -------
    box_attitude_error_rad
        Largest angle between the box and its closed form.
    box_rate_error_rad_s
        Largest error of the box's rates against the closed form.
    cylinder_attitude_error_rad
        Largest angle between the cylinder and its closed form.
    cylinder_rate_error_rad_s
        Largest error of the cylinder's rates against the closed form.
    cylinder_fall_error_m
        Largest error of the cylinder's place against a parabola.
    energy_drift_j
        How far the kinetic energy of the box moves, which nothing should change.
    momentum_drift_nms
        Largest change of the box's angular momentum in the world.
    times_turned_over
        How often the box turned over.
    boxes
        Number of boxes that started from attitudes of their own.
    worst_box_attitude_error_rad
        Largest angle of any of them to the closed form.
    difference_between_boxes_rad
        Largest difference between two of them, each seen from its own start.
    farthest_from_gimbal_lock_deg
        For the sequence of Euler angles that was met least closely: how near to its lock
        some box came.
    published_attitude_error_rad
        Largest angle to the published attitudes of the cylinder.
    """

    name: ClassVar[str] = "free-body"

    duration: float = 10.0
    dt: float = 5e-4
    attitudes: int = 100
    rate: float = 8.0
    nudge: float = 0.05
    plant: str = "native"
    seed: int = 0

    def run(self, progress: bool | None = None) -> Outcome:
        """Simulate one box in detail, many boxes at once, and a thrown cylinder."""
        spin = np.array([self.nudge, self.rate, self.nudge / 2])
        every = max(1, round(5e-3 / self.dt))
        thrown = np.array([*_THROWN, *_FIRST_RATE])
        runs = {
            name: simulate(
                machine,
                v0=v0,
                duration=self.duration,
                dt=self.dt,
                every=every,
                plant=self.plant,
                record=("energy", "momentum"),
                progress=progress,
            )
            for name, machine, v0 in (
                ("box", box(), np.concatenate([np.zeros(3), spin])),
                ("cylinder", cylinder(), thrown),
            )
        }
        starts = _starts(self.attitudes, self.seed)
        many = simulate(
            box(),
            x0=np.concatenate([np.zeros((len(starts), 3)), starts], axis=1),
            v0=np.tile(np.concatenate([np.zeros(3), spin]), (len(starts), 1)),
            duration=self.duration,
            dt=self.dt,
            every=4 * every,
            record=(),
            progress=progress,
        )
        motion = _TumblingMotion(runs["box"], runs["cylinder"], many, spin)
        return Outcome(
            runs={**runs, "many": many},
            metrics=motion.metrics(),
            promises=motion.promises(),
            figures=motion.figures(),
            animations=(
                Animation(
                    "The box turns over",
                    runs["box"],
                    caption="Spun about the axis of its middle moment of inertia, it cannot keep "
                    "to it.",
                ),
            ),
            notes=_NOTES,
        )


_NOTES = (
    "Rates of a free body are elliptic functions of Jacobi; its attitude follows from them and "
    "from the momentum, which stands still in the world. For the cylinder all of it is elementary.",
    "A sequence of three Euler angles locks where one entry of the rotation matrix is 1 or -1: the "
    "nine entries are those of all twelve sequences. The report says how near to all of them boxes "
    "have come.",
)


def _starts(count: int, seed: int) -> np.ndarray:
    """Return quaternions (n, 4): the 24 that turn axes into axes, and `count` at random."""
    first = []
    for order in permutations(range(3)):
        for signs in product((1.0, -1.0), repeat=3):
            R = np.zeros((3, 3))
            R[range(3), order] = signs
            if np.linalg.det(R) > 0:
                first.append(_quaternion(R))
    spread = np.random.default_rng(seed).normal(size=(count, 4))
    return np.concatenate([first, spread / np.linalg.norm(spread, axis=1, keepdims=True)])


def _quaternion(R: np.ndarray) -> np.ndarray:
    """Return the quaternion (wxyz) of a rotation, the top eigenvector of [Davenport1968]."""
    K = np.zeros((4, 4))
    K[0, 0] = np.trace(R)
    K[0, 1:] = K[1:, 0] = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    K[1:, 1:] = R + R.T - np.trace(R) * np.eye(3)
    return np.linalg.eigh(K)[1][:, -1]


class _TumblingMotion:
    """The runs beside their closed forms."""

    def __init__(self, box_run: Run, cylinder_run: Run, many: Run, spin: np.ndarray) -> None:
        self.box, self.cylinder, self.many, self.t = box_run, cylinder_run, many, box_run.t
        inertia = np.diag(box().bodies[0].moments.moment)
        self.exact = asymmetric_body(self.t, spin, inertia)
        across, _, axial = np.diag(cylinder().bodies[0].moments.moment)
        self.exact_cylinder = axisymmetric_body(self.t, _FIRST_RATE, across, axial)
        self.rotation = {"box": _attitude(box_run), "cylinder": _attitude(cylinder_run)}
        self.error = {
            name: angle_between(self.rotation[name], exact.rotation)
            for name, exact in (("box", self.exact), ("cylinder", self.exact_cylinder))
        }
        turned = batch.rotation(many.x[..., 3:7])
        own = asymmetric_body(many.t, spin, inertia).rotation
        self.many_error = angle_between(turned, turned[:, :1] @ own)
        since = np.swapaxes(turned[:, :1], -1, -2) @ turned
        self.alike = float(angle_between(since, since[:1]).max())
        self.entries = np.abs(turned).max(axis=(0, 1))

    def _rate_error(self, run: Run, exact: Turning) -> float:
        return float(np.abs(run.v[:, 3:] - exact.rate).max())

    def _fall_error(self) -> float:
        t, g = self.t[:, None], np.array([0, 0, -9.81])
        return float(np.abs(self.cylinder.x[:, :3] - (np.array(_THROWN) * t + g * t**2 / 2)).max())

    def _published_error(self) -> float | None:
        rows = [(int(np.argmin(np.abs(self.t - row[0]))), row) for row in PUBLISHED]
        rows = [(k, row) for k, row in rows if abs(self.t[k] - row[0]) < 1e-9]
        attitude = self.rotation["cylinder"]
        gaps = [float(angle_between(attitude[k], batch.rotation(row[1:]))) for k, row in rows]
        return max(gaps, default=None)

    def metrics(self) -> dict[str, float | int]:
        """Return errors, conserved quantities, and how many attitudes were passed."""
        momentum = self.box["centroidal_momentum"]
        turns = np.count_nonzero(np.diff(np.sign(self.box.v[:, 4])))
        metrics: dict[str, float | int] = {
            "box_attitude_error_rad": float(self.error["box"].max()),
            "box_rate_error_rad_s": self._rate_error(self.box, self.exact),
            "cylinder_attitude_error_rad": float(self.error["cylinder"].max()),
            "cylinder_rate_error_rad_s": self._rate_error(self.cylinder, self.exact_cylinder),
            "cylinder_fall_error_m": self._fall_error(),
            "energy_drift_j": float(np.ptp(self.box["kinetic"])),
            "momentum_drift_nms": float(np.abs(momentum - momentum[0]).max()),
            "times_turned_over": int(turns),
            "boxes": len(self.many.x),
            "worst_box_attitude_error_rad": float(self.many_error.max()),
            "difference_between_boxes_rad": self.alike,
            "farthest_from_gimbal_lock_deg": float(
                np.rad2deg(np.arccos(min(self.entries.min(), 1.0)))
            ),
        }
        published = self._published_error()
        return (
            metrics if published is None else {**metrics, "published_attitude_error_rad": published}
        )

    def promises(self) -> tuple[Promise, ...]:
        """Return what must hold."""
        m = self.metrics()
        bounds = {
            "box_attitude_error_rad": ("the attitude of the box keeps to the closed form", 1e-6),
            "box_rate_error_rad_s": ("the rates of the box keep to the closed form", 1e-6),
            "cylinder_attitude_error_rad": ("so does the attitude of the cylinder", 1e-6),
            "cylinder_fall_error_m": ("the cylinder falls along a parabola", 1e-6),
            "published_attitude_error_rad": ("published attitudes are met", 1e-6),
            "momentum_drift_nms": ("the angular momentum is kept", 1e-8),
            "worst_box_attitude_error_rad": (
                "all boxes keep to the closed form, whatever their start",
                1e-6,
            ),
            "difference_between_boxes_rad": ("all boxes move alike", 1e-9),
        }
        return tuple(
            Promise.of(m, key, text, bound) for key, (text, bound) in bounds.items() if key in m
        )

    def figures(self) -> tuple[Figure, ...]:
        """Return rates, attitudes, Euler rates and errors."""
        t, axes = self.t, "xyz"
        rates = {f"about {a}": self.box.v[:, 3 + i] for i, a in enumerate(axes)}
        rates |= {f"about {a}, closed form *": self.exact.rate[:, i] for i, a in enumerate(axes)}
        pointing = {f"{a} of the box": self.rotation["box"][:, 2, i] for i, a in enumerate(axes)}
        errors = {**self.error, "momentum of the box (Nm s)": self._momentum_error()}
        return (
            Figure.over_time(
                "Rates of the box in its own axes", "rate (rad/s)", t, rates,
                caption="Spun about its middle axis, the box turns over at equal times.",
            ),
            Figure.over_time(
                "Height of the axes of the box", "component along the vertical", t, pointing
            ),
            self._euler_figure(),
            Figure.over_time(
                "Error against the closed form", "error (rad)", t, errors, logarithmic=True
            ),
            Figure(
                "The worst of all boxes", "time (s)", "error (rad)",
                (Line("largest", self.many.t, self.many_error.max(axis=0)),
                 Line("smallest", self.many.t, self.many_error.min(axis=0))),
                "Each from another attitude; the two lines are one.", logarithmic=True,
            ),
        )  # fmt: skip

    def _momentum_error(self) -> np.ndarray:
        momentum = self.box["centroidal_momentum"]
        return np.linalg.norm(momentum - momentum[0], axis=1)

    def _euler_figure(self) -> Figure:
        """Rate that roll-pitch-yaw angles would need beside the rate of the body."""
        R, w = self.rotation["cylinder"], self.cylinder.v[:, 3:]
        # Yaw turns about the vertical at (w_y sin(roll) + w_z cos(roll)) / cos(pitch).
        across = R[:, 2, 1] ** 2 + R[:, 2, 2] ** 2
        yaw = np.abs(w[:, 1] * R[:, 2, 1] + w[:, 2] * R[:, 2, 2]) / across
        return Figure.over_time(
            "What Euler angles would need", "rate (rad/s)", self.t,
            {
                "yaw of the cylinder in roll-pitch-yaw angles": yaw,
                "rate of the cylinder": np.linalg.norm(w, axis=1),
            },
            logarithmic=True,
            caption="Near gimbal lock angles must race although the body does not.",
        )  # fmt: skip


def _attitude(run: Run) -> np.ndarray:
    return batch.rotation(run.x[:, 3:7])
