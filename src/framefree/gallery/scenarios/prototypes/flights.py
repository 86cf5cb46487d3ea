"""What the flights have in common: gains, references, errors, figures.

References and gains are those flown in [Konz2024, ch. 5], and so are the figures they are compared
with.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from framefree.control.estimation import ForceObserver, InvariantFilter
from framefree.control.prototype import PrototypeControl
from framefree.control.prototype.feasible import feasibility
from framefree.control.references.compose import Shifted
from framefree.control.references.flat import FlatReference
from framefree.control.references.flat_curves import FLIP, LOOP, Curve, Manoeuvres, Moves
from framefree.gallery.machines import multicopters
from framefree.gallery.scenarios.prototypes.drives import quadcopter_drive, tricopter_drive
from framefree.geometry import Moments
from framefree.machine import Machine, Propeller
from framefree.simulate import (
    Drive,
    Imu,
    Noise,
    PoseSensor,
    Pulse,
    Run,
    SimulationError,
    simulate,
)

PERIOD = 0.005
"""s, of control in the flights."""
DRAG = 0.30 / 1.001
"""1/s: the quadcopter's linear drag across its thrust, by mass."""
WINDOW = 35.0
"""s, over which errors of a flight are averaged."""
QUADCOPTER_LEAD, TRICOPTER_LEAD = 0.020, 0.045
"""s: delay, half a period of control, and the lag 2 zeta/w of force filter or servo."""

FORCE_RATE, MOMENT_RATE = 1.0, 4.0
"""1/s, at which the observer follows forces and moments: noise of the velocity leaves 0.02 N
and 0.0015 Nm in them, a fifth and a thirtieth of what is there to find."""
IMU = Imu(
    accelerometer=0.05,
    gyroscope=0.005,
    accelerometer_bias=(0.05, -0.03, 0.08),
    gyroscope_bias=(0.01, -0.008, 0.005),
)
"""m/s^2 and rad/s, as of a small IMU after its calibration; read in every control period."""
CAMERAS = PoseSensor(position=2e-3, angle=5e-3, every=20, delay=7)
"""Poses at 10 Hz that arrive 35 ms late, as in the flights."""

QUADCOPTER_GAINS = {
    "inertia": {"body": Moments.of(1.001, (0, 0, 0.043), np.diag([0.0095, 0.0095, 0.0307]))},
    "damping": {"body": Moments.of(4.4, (0, 0, 0.255), np.diag([0.4, 0.4, 0.1]))},
    "stiffness": {"body": Moments.of(8.0, (0, 0, 0.255), np.diag([2.6, 2.6, 0.2]))},
}
TRICOPTER_GAINS = {
    "inertia": {"body": Moments.of(1.251, (0, 0, 0), np.diag([0.0192, 0.0192, 0.0308]))},
    "damping": {"body": Moments.of(6.0, (0, 0, 0), np.diag([0.3, 0.3, 0.25]))},
    "stiffness": {"body": Moments.of(8.0, (0, 0, 0), np.diag([1.7, 1.7, 0.7]))},
}


def loops(machine: Machine) -> FlatReference:
    """Return four vertical loops of 2 m, two towards each side."""
    starts = (2.62, 10.78, 21.28, 28.38)
    path = Manoeuvres(LOOP, (1.258, 0.222, 0.323), starts, (0.0, 0.0, np.pi, np.pi))
    return FlatReference(machine, path, np.deg2rad(51.88), path.normal, DRAG)


def flips(machine: Machine, slower: float = 1.0) -> FlatReference:
    """Return six flips, each in another direction; `slower` as in `Manoeuvre.slowed`."""
    starts = (4.28, 9.28, 14.28, 19.28, 24.29, 29.29)
    directions = np.deg2rad([0.0, 180.0, 90.0, -90.0, 45.0, -135.0])
    path = Manoeuvres(FLIP.slowed(slower), (-0.069, 0.396, 0.791), starts, tuple(directions))
    return FlatReference(machine, path, np.deg2rad(0.38), path.normal, DRAG)


def transitions(machine: Machine) -> FlatReference:
    """Return the quadcopter's moves from place to place, and turns of its heading."""
    position = Moves(
        (0.5, -0.4, 1.0),
        (
            (4.095, 2.0, (-0.5, -0.4, 1.0)),
            (7.095, 2.5, (1.5, -0.4, 1.0)),
            (10.095, 1.5, (-0.5, -0.4, 1.0)),
            (13.095, 2.0, (1.5, -0.4, 1.3)),
            (16.095, 2.0, (-0.5, -0.4, 1.0)),
            (19.095, 1.2, (0.5, -0.4, 1.0)),
            (22.095, 1.0, (0.5, -0.4, 1.5)),
            (25.095, 1.0, (0.5, -0.4, 1.0)),
        ),
    )
    quarter, whole = np.pi / 2, 2 * np.pi
    heading = Moves(
        0.0, ((13.095, 2.0, quarter), (16.095, 2.0, 0.0), (28.095, 4.0, whole)), degree=5
    )
    return FlatReference(machine, position, heading, drag=DRAG)


def free_transitions(machine: Machine) -> FlatReference:
    """Return the tricopter's moves: level, leaning, and tilted at a place."""
    position = Moves(
        (0.0, 0.0, 1.0),
        (
            (2.225, 2.0, (-1.0, 0.0, 1.0)),
            (5.225, 2.3, (1.0, 0.0, 1.0)),
            (8.225, 2.3, (-1.0, 0.0, 1.0)),
            (11.225, 2.3, (1.0, 0.0, 1.0)),
            (14.225, 2.3, (-1.0, 0.0, 1.0)),
            (17.225, 2.0, (0.0, 0.0, 1.0)),
            (20.225, 1.3, (0.0, 0.0, 1.5)),
            (29.225, 2.0, (0.0, 0.0, 0.8)),
        ),
    )
    quarter, whole, tilt = np.pi / 2, 2 * np.pi, np.deg2rad(15.0)
    heading = Moves(
        0.0, ((14.225, 2.3, quarter), (17.225, 2.0, 0.0), (29.225, 2.0, whole)), degree=5
    )
    tilts = Moves(
        (0.0, 0.0),
        (
            (23.225, 1.0, (tilt, 0.0)),
            (25.225, 1.0, (tilt, tilt)),
            (27.225, 1.0, (0.0, 0.0)),
        ),
        degree=5,
    )
    return FlatReference(
        machine, position, heading, drag=0.29 / 1.251, lean=_Between(11.0, 20.0), tilt=tilts
    )


class _Between(Curve):
    """One between two times at which everything rests, zero elsewhere."""

    def __init__(self, start: float, stop: float) -> None:
        self.start, self.stop = start, stop

    def at(self, t: Any) -> Any:
        return (t > self.start) * (t < self.stop)


def errors(x: np.ndarray, x_R: np.ndarray) -> dict[str, np.ndarray]:
    """Return position (m), attitude and heading errors (deg) of a free body, as the flights do.

    Attitude: the angle of E = R_R^T R; heading: |atan2(E_yx - E_xy, E_xx + E_yy)|, the part of the
    turn about z.
    """
    E = relative_quaternion(x_R[:, 3:7], x[:, 3:7])
    w, along = np.abs(E[:, 0]), np.linalg.norm(E[:, 1:], axis=1)
    heading = 2 * np.arctan2(E[:, 3] * np.sign(E[:, 0]), w)
    return {
        "position": np.linalg.norm(x[:, :3] - x_R[:, :3], axis=1),
        "attitude": np.rad2deg(2 * np.arctan2(along, w)),
        "heading": np.rad2deg(np.abs(heading)),
    }


def relative_quaternion(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return conj(a) b of rows of unit quaternions wxyz."""
    w = a[:, 0] * b[:, 0] + (a[:, 1:] * b[:, 1:]).sum(axis=1)
    v = a[:, :1] * b[:, 1:] - b[:, :1] * a[:, 1:] - np.cross(a[:, 1:], b[:, 1:])
    return np.column_stack([w, v])


@dataclass(frozen=True)
class Craft:
    """What is flown, and how: machine, gains, drive and reference.

    Attributes
    ----------
    machine : Machine
    gains : mapping
        Arguments of `PrototypeControl`.
    drive : Drive
    reference : FlatReference
    lead : float
        Known lag, s: delay, half a control period, and what the drives take.
    bias : (6,)
        Wrench that was identified beside the model, N and Nm, in body axes.
    busy : float
        A time, s, at which the reference moves and turns.
    """

    machine: Machine
    gains: Mapping[str, Any]
    drive: Drive
    reference: FlatReference
    lead: float
    bias: Any
    busy: float

    def softened(self, share: float) -> "Craft":
        """Return the craft with a share of its prototype's stiffness."""
        if share == 1.0:
            return self
        stiffness = {
            frame: Moments(share * m.total, share * m.first, share * m.second)
            for frame, m in self.gains["stiffness"].items()
        }
        return replace(self, gains={**self.gains, "stiffness": stiffness})

    def law(self, approach: str, **options: Any) -> PrototypeControl:
        """Return the law of one approach."""
        return PrototypeControl(self.machine, **self.gains, approach=approach, **options)

    def start(self, t: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return x, v and u on the reference."""
        function = self.reference.function
        x, v, _ = (np.array(value).ravel() for value in function(t))
        return x, v, feasibility(self.machine, self.reference, [t]).u[0]

    def fly(
        self,
        approach: str,
        *,
        lead: float,
        seed: int = 0,
        plant: str = "native",
        duration: float = WINDOW,
        bias: float = 0.0,
        observed: bool = False,
        sensed: bool = False,
        progress: bool | None = None,
    ) -> Run:
        """Return a flight with noise, delay, drives and limits; `lead` is what is predicted.

        `bias` is the share of the unknown wrench that acts, and `observed` whether it is observed;
        `sensed` flies by IMU and cameras instead of the state with noise. A craft that is lost
        before the end has flown until then.
        """
        x, v, u = self.start()
        wind = (Pulse("body", bias * np.asarray(self.bias), axes="frame"),) if bias else ()
        seen: dict[str, Any] = self.senses if sensed else {"noise": self.noise}
        try:
            return simulate(
                self.machine,
                self.law(approach),
                self.reference,
                x,
                v,
                duration=duration,
                dt=PERIOD / 5,
                control_dt=PERIOD,
                lag=self.drive,
                delay=1,
                predict=lead,
                u0=u,
                seed=seed,
                plant=plant,
                disturbances=wind,
                observer=self.observer if observed else None,
                **seen,
                record=("energy",),
                progress=progress,
            )
        except SimulationError as error:
            if error.run is None:
                raise
            return error.run

    @property
    def observer(self) -> ForceObserver:
        """What observes the unknown wrench, from zero on."""
        return ForceObserver(self.machine, (FORCE_RATE,) * 3 + (MOMENT_RATE,) * 3)

    @property
    def senses(self) -> dict[str, Any]:
        """Sensors of the flights, and a filter that knows their noise and delay but no bias."""
        estimator = InvariantFilter(
            self.machine,
            accelerometer=IMU.accelerometer,
            gyroscope=IMU.gyroscope,
            position=CAMERAS.position,
            angle=CAMERAS.angle,
            delay=CAMERAS.delay,
        )
        return {"sensors": (IMU, CAMERAS), "estimator": estimator}

    def ideal(
        self, approach: str, error: Any, *, duration: float = 3.0, progress: bool | None = None
    ) -> Run:
        """Return a run from an error (6: m, rad) with ideal actuators and a law without delay.

        It begins in the middle of a move, at `busy`. Propellers push and pull at will, for the law
        as for the plant: what the law says of W counts the limits of its own machine.
        """
        x, v, _ = self.start(self.busy)
        ideal = replace(self, machine=_without_limits(self.machine))
        return simulate(
            ideal.machine,
            ideal.law(approach),
            Shifted(self.reference, -self.busy),
            self.machine.integrate(x, np.asarray(error, float)),
            v,
            duration=duration,
            dt=2.5e-4,
            limits=False,
            record=("energy",),
            progress=progress,
        )

    @property
    def noise(self) -> Noise:
        """White noise of the state: 3 mm, 0.02 m/s, 0.3 deg, 0.02 rad/s."""
        return Noise.by_unit(
            self.machine, position=3e-3, velocity=0.02, angle=np.deg2rad(0.3), rate=0.02
        )


def _without_limits(machine: Machine) -> Machine:
    """Return a machine whose plain propellers push and pull at will."""
    free = [
        replace(a, lower=-np.inf, upper=np.inf) if isinstance(a, Propeller) else a
        for a in machine.actuators
    ]
    return replace(machine, actuators=free)


def quadcopter_craft(reference: Callable[[Machine], FlatReference], busy: float) -> Craft:
    """Return the quadcopter with the gains of its flights; see `Craft` for `busy`."""
    machine = multicopters.quadcopter()
    bias = (0.09, 0.02, -0.09, 0.049, -0.015, -0.012)
    return Craft(
        machine,
        QUADCOPTER_GAINS,
        quadcopter_drive(machine),
        reference(machine),
        QUADCOPTER_LEAD,
        bias,
        busy,
    )


def tricopter_craft() -> Craft:
    """Return the tricopter with the gains of its flight."""
    machine = multicopters.tricopter()
    bias = (-0.21, -0.02, 0.03, 0.037, -0.024, -0.003)
    reference = free_transitions(machine)
    drive = tricopter_drive(machine)
    return Craft(machine, TRICOPTER_GAINS, drive, reference, TRICOPTER_LEAD, bias, 14.6)
