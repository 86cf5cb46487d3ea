"""What is known of the plant when a control period begins: its state, and forces unknown before.

    sensors --> estimators --> x, v --> observer --> unknown force
       |
       +--> readings that the law itself asks for (`measures`)

Without estimators x and v are those that are measured, noise included. The observer is told the
inputs that acted since the period before: those of the drive at both of its ends, under the command
that was held.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.estimation import ForceObserver, Reading, StateEstimator
from framefree.control.shared.correspondence import Correspondence
from framefree.machine import Machine
from framefree.motion import State
from framefree.simulate.actuation import Drive
from framefree.simulate.errors import SimulationError
from framefree.simulate.plant_forces import PlantForces
from framefree.simulate.sensors import SensorArray

Matrix = Any


class Estimated(NamedTuple):
    """What is known where a control period begins.

    Attributes
    ----------
    x, v : columns
        State of the law's machine.
    force : (nv) or None
        The unknown force on it.
    memory : column
        The next memory.
    signals : mapping of str to casadi matrix
        What to record.
    readings : mapping of str to column
        What the law measures beside the state, by the names of the sensors.
    """

    x: Matrix
    v: Matrix
    force: Matrix | None
    memory: Matrix
    signals: Mapping[str, Matrix]
    readings: Mapping[str, Matrix]


@dataclass(frozen=True)
class Estimation:
    """Sensors, estimators and observer of a loop; see the top of this file.

    Attributes
    ----------
    known : Correspondence
        Of the plant and the law's machine.
    sensors : SensorArray or None
    estimators : tuple of StateEstimator
        For all joints of the law's machine, or none.
    observer : ForceObserver or None
    drive : Drive or None
    period : float
        Control period, s.
    measures : tuple of str
        Names of the sensors that the law itself reads.
    """

    known: Correspondence
    sensors: SensorArray | None
    estimators: tuple[StateEstimator, ...]
    observer: ForceObserver | None
    drive: Drive | None
    period: float
    measures: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._check_machines()
        if self.sensors is None and self.estimators:
            raise SimulationError("an `estimator` needs `sensors` to read")
        self._check_readers()
        if not self.estimators:
            return
        estimated = [name for estimator in self.estimators for name in estimator.joints]
        for joint in self.model.joints:
            if joint.nv and estimated.count(joint.name) != 1:
                raise SimulationError(
                    f"with an `estimator` the state of every joint of the law comes from one; that "
                    f"of `{joint.name}` comes from {estimated.count(joint.name)}"
                )

    def _check_readers(self) -> None:
        """Refuse readers without a sensor, and sensors without a reader."""
        there = [] if self.sensors is None else [sensor.name for sensor in self.sensors.sensors]
        readers = [(type(part).__name__, part.reads) for part in self.estimators]
        for reader, names in (*readers, ("the law", self.measures)):
            for name in names:
                if name not in there:
                    listed = ", ".join(f"`{known}`" for known in sorted(there)) or "none"
                    raise SimulationError(f"{reader} reads the sensor `{name}`; given: {listed}")
        read = {name for _, names in (*readers, ("", self.measures)) for name in names}
        for name in there:
            if name not in read:
                raise SimulationError(
                    f"nothing reads the sensor `{name}`: give an `estimator` that does, or a law "
                    "that measures it"
                )

    def _check_machines(self) -> None:
        """Refuse estimators of machines other than the law's."""
        parts = (*self.estimators, *((self.observer,) if self.observer else ()))
        for part in parts:
            if part.machine is not self.model:
                raise SimulationError(
                    f"{type(part).__name__} must be made for the law's own machine, "
                    f"`{self.model.name}`"
                )

    @property
    def model(self) -> Machine:
        """The law's machine."""
        return self.known.model

    # ------------------------------------------------------------------ memory

    def first_memory(self, state: State, acting: PlantForces, drive: Matrix) -> Matrix:
        """Return the memory at the first state of the plant and of its drive."""
        x, v = self.known.x(state.joint_x), self.known.v(state.joint_v)
        parts = [estimator.first_memory(x, v) for estimator in self.estimators]
        if self.sensors is not None:
            parts.insert(0, self.sensors.first_memory(state, acting))
        if self.observer is not None:
            parts += [ca.DM(self.observer.memory), drive]
        return ca.densify(ca.vertcat(ca.SX(0, 1), *parts))

    @cached_property
    def _sizes(self) -> list[int]:
        """Sizes of all memories, but for that of the drive."""
        model = self.model
        x, v = ca.SX.sym("x", model.nx), ca.SX.sym("v", model.nv)
        own = [estimator.first_memory(x, v).shape[0] for estimator in self.estimators]
        return [*own, 0 if self.observer is None else len(self.observer.memory)]

    # ------------------------------------------------------------------ one period

    def __call__(
        self,
        memory: Matrix,
        state: State,
        acting: PlantForces,
        measured: tuple[Matrix, Matrix],
        noise: Matrix,
        drive: Matrix,
        held: Matrix,
    ) -> Estimated:
        """Return what is known at a state of the plant.

        `measured` are x and v where there are no estimators; `held` is the command that has acted
        since the period before, `drive` the state of the drive now.
        """
        count = memory.shape[0] - self.own_size(drive.shape[0])
        readings: dict[str, Reading] = {}
        kept = ca.SX(0, 1)
        if self.sensors is not None:
            readings, kept = self.sensors.read(memory[:count, :], state, acting, noise)
        law_state = self.known.x(measured[0]), self.known.v(measured[1])
        estimated = self.from_readings(memory[count:, :], readings, law_state, drive, held)
        return estimated._replace(memory=ca.densify(ca.vertcat(kept, estimated.memory)))

    def own_size(self, drives: int) -> int:
        """Return the size of the memory without that of the sensors, `drives` that of the drive."""
        return sum(self._sizes) + (drives if self.observer is not None else 0)

    def from_readings(
        self,
        memory: Matrix,
        readings: Mapping[str, Reading],
        measured: tuple[Matrix, Matrix],
        drive: Matrix,
        held: Matrix,
    ) -> Estimated:
        """Return what is known from the readings of sensors, with the memory of what reads them.

        `measured` are x and v of the law's machine where there are no estimators.
        """
        parts, observed, drive_before = self._split(memory, drive.shape[0])
        x, v = measured
        kept: list[Matrix] = []
        signals: dict[str, Matrix] = {}
        if self.estimators:
            x, v = ca.SX(self.model.nx, 1), ca.SX(self.model.nv, 1)
            for estimator, part in zip(self.estimators, parts, strict=True):
                estimate = estimator.update(part, readings, self.period)
                kept.append(estimate.memory)
                signals |= estimate.signals
                for name in estimator.joints:
                    x[self.model.x_slice[name]] = estimate.x[name]
                    v[self.model.v_slice[name]] = estimate.v[name]
            signals |= {"estimated_x": x, "estimated_v": v}
        force = None
        if self.observer is not None:
            inputs = [self._inputs(z, held) for z in (drive_before, drive)]
            force, following = self.observer.update(
                observed, x, v, (inputs[0], inputs[1]), self.period
            )
            kept += [following, drive]
            signals["unknown_force"] = force
        following = ca.densify(ca.vertcat(ca.SX(0, 1), *kept))
        measured_too = {name: readings[name].value for name in self.measures}
        return Estimated(x, v, force, following, signals | measured_too, measured_too)

    def _split(self, memory: Matrix, drives: int) -> tuple[list[Matrix], Matrix, Matrix]:
        """Return memories of every estimator and of the observer; and the drive."""
        sizes = [*self._sizes, drives if self.observer is not None else 0]
        ends = np.cumsum([0, *sizes]).tolist()
        *own, observed, drive = (memory[a:b, :] for a, b in pairwise(ends))
        return own, observed, drive

    def _inputs(self, drive: Matrix, held: Matrix) -> Matrix:
        """Return the model's inputs at a state of the drive."""
        return self.known.u_of_model(held if self.drive is None else self.drive.u(drive, held))
