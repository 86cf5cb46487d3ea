"""What is known of the plant when a control period begins: its state, and forces unknown before.

    sensors --> estimators --> x, v --> observer --> unknown force

Without sensors x and v are those that are measured, noise included. The observer is told the inputs
that acted since the period before: those of the drive at both of its ends, under the command that
was held.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.estimation import ForceObserver, StateEstimator
from framefree.control.shared.correspondence import Correspondence
from framefree.machine import Machine
from framefree.motion import State
from framefree.simulate.actuation import Drive
from framefree.simulate.errors import SimulationError
from framefree.simulate.sensors import Acceleration, SensorArray

Matrix = Any


class Estimated(NamedTuple):
    """State of the law's machine, the unknown force on it, the next memory, and what to record."""

    x: Matrix
    v: Matrix
    force: Matrix | None
    memory: Matrix
    signals: Mapping[str, Matrix]


@dataclass(frozen=True)
class Estimation:
    """Sensors, estimators and observer of a loop; see the top of this file.

    Attributes
    ----------
    known : Correspondence
        Of the plant and the law's machine.
    sensors : SensorArray or None
    estimators : tuple of StateEstimator
        For all joints of the law's machine where there are sensors.
    observer : ForceObserver or None
    drive : Drive or None
    period : float
        Control period, s.
    """

    known: Correspondence
    sensors: SensorArray | None
    estimators: tuple[StateEstimator, ...]
    observer: ForceObserver | None
    drive: Drive | None
    period: float

    def __post_init__(self) -> None:
        self._check_machines()
        if self.sensors is None and self.estimators:
            raise SimulationError("an `estimator` needs `sensors` to read")
        if self.sensors is None:
            return
        there = {sensor.name for sensor in self.sensors.sensors}
        for estimator in self.estimators:
            for name in estimator.reads:
                if name not in there:
                    listed = ", ".join(f"`{known}`" for known in sorted(there))
                    raise SimulationError(
                        f"{type(estimator).__name__} reads the sensor `{name}`; given: {listed}"
                    )
        estimated = [name for estimator in self.estimators for name in estimator.joints]
        for joint in self.model.joints:
            if joint.nv and estimated.count(joint.name) != 1:
                raise SimulationError(
                    f"with `sensors` the state of every joint of the law comes from one "
                    f"`estimator`; that of `{joint.name}` comes from "
                    f"{estimated.count(joint.name)}"
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

    def first_memory(self, state: State, acceleration: Acceleration, drive: Matrix) -> Matrix:
        """Return the memory at the first state of the plant and of its drive."""
        x, v = self.known.x(state.joint_x), self.known.v(state.joint_v)
        parts = [estimator.first_memory(x, v) for estimator in self.estimators]
        if self.sensors is not None:
            parts.insert(0, self.sensors.first_memory(state, acceleration))
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
        acceleration: Acceleration,
        measured: tuple[Matrix, Matrix],
        noise: Matrix,
        drive: Matrix,
        held: Matrix,
    ) -> Estimated:
        """Return what is known at a state of the plant.

        `measured` are x and v where there are no sensors; `held` is the command that has acted
        since the period before, `drive` the state of the drive now.
        """
        own, drive_before = self._split(memory, drive.shape[0])
        first, *parts, observed = own
        x, v = (self.known.x(measured[0]), self.known.v(measured[1]))
        kept: list[Matrix] = []
        signals: dict[str, Matrix] = {}
        if self.sensors is not None:
            readings, following = self.sensors.read(first, state, acceleration, noise)
            kept.append(following)
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
        return Estimated(x, v, force, ca.densify(ca.vertcat(ca.SX(0, 1), *kept)), signals)

    def _split(self, memory: Matrix, drives: int) -> tuple[list[Matrix], Matrix]:
        """Return memories of the sensors, of every estimator and of the observer; and the drive."""
        drives = drives if self.observer is not None else 0
        sizes = [memory.shape[0] - sum(self._sizes) - drives, *self._sizes, drives]
        ends = np.cumsum([0, *sizes]).tolist()
        *own, drive = (memory[a:b, :] for a, b in pairwise(ends))
        return own, drive

    def _inputs(self, drive: Matrix, held: Matrix) -> Matrix:
        """Return the model's inputs at a state of the drive."""
        return self.known.u_of_model(held if self.drive is None else self.drive.u(drive, held))
