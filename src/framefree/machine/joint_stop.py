"""Stops at the limits of joints, of the same kind as contact.

Beyond its range a coordinate q presses into the stop by a depth d. With the rate d' of the depth

    f = k d max(1 + c d', 0)     back into the range

which has the energy k d^2 / 2 and turns (f - k d) d' >= 0 into heat. It cannot pull, is continuous
where the stop is met, and a joint that runs into it without other forces comes back with the speed
of Hunt and Crossley's law: c (v_in + v_out) = log((1 + c v_in) / (1 - c v_out)).

A stop is a tendon over one coordinate, so that all formulations and both plants have it. Limits of
joints by themselves stay data for controllers; `Stops` says how they become stops in a run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import casadi
import numpy as np

from framefree.machine.part import set_field
from framefree.machine.problems import MachineError
from framefree.machine.tendon import Tendon, TendonReach
from framefree.machine.tree import unknown
from framefree.machine.values import is_symbolic, scalar

if TYPE_CHECKING:
    from framefree.machine.machine import Machine

GIVE = 0.01
"""Share of its range by which the largest motor force presses a joint into a default stop."""
RESTITUTION = 0.5
"""Share of the largest speed with which a joint comes back from a default stop."""


@dataclass(frozen=True, eq=False, kw_only=True)
class JointStop(Tendon):
    """A stop at either end of the range of one coordinate.

    Parameters
    ----------
    name : str
    coordinate : str
        As named in `machine.x_names`; its joint has plain coordinates (`JointKind.vector`).
    stiffness : number
        k, Nm/rad or N/m.
    rest : (2,)
        The range without force, rad or m; either end may be infinite.
    impact_damping : number
        c, s/rad or s/m.
    """

    name: str
    coordinate: str
    impact_damping: Any = 0.0

    coordinate_fields = ("coordinate",)

    def __post_init__(self) -> None:
        ends = np.asarray(self.rest, float).ravel() if not is_symbolic(self.rest) else None
        # An infinite end is one that is never reached: the largest number serves.
        if ends is not None:
            far = np.finfo(float).max
            set_field(self, "rest", np.clip(np.broadcast_to(ends, 2), -far, far))
        set_field(
            self, "impact_damping", scalar(self.impact_damping, self._words("impact_damping"))
        )
        super().__post_init__()
        if not is_symbolic(self.stiffness) and not (
            self.stiffness.shape == (1,) and self.stiffness[0] > 0
        ):
            raise MachineError(
                f"{self._words('stiffness')} must be one positive number, got "
                f"{self.stiffness.tolist()}"
            )
        if not is_symbolic(self.impact_damping) and self.impact_damping < 0:
            raise MachineError(
                f"{self._words('impact_damping')} must be zero or more, got {self.impact_damping:g}"
            )

    @property
    def coordinates(self) -> tuple[str, ...]:  # type: ignore[override]
        """The one coordinate."""
        return (self.coordinate,)

    @property
    def lossy(self) -> bool:
        """Whether a joint loses speed at the stop, or there is damping as of any tendon."""
        return is_symbolic(self.impact_damping) or bool(self.impact_damping) or super().lossy

    def reach(self, coordinates: Sequence[Any], poses: Sequence[Any]) -> TendonReach:
        """Return the coordinate."""
        return TendonReach(coordinates[0], (casadi.SX(1),))

    def lost_force(self, length: Any, rate: Any) -> Any:
        """Return f - k d along the coordinate, and damping and friction as of any tendon."""
        depth = self.stretch(length)
        inward = casadi.sign(depth) * rate
        factor = casadi.fmax(1 + self.impact_damping * inward, 0) - 1
        return self.spring_force(length) * factor + super().lost_force(length, rate)


@dataclass(frozen=True)
class Stops:
    """How the limits of joints are made into stops.

    Joints without plain coordinates, such as ball joints, have none.

    Parameters
    ----------
    stiffness : number or mapping of coordinates to numbers, optional
        k, Nm/rad or N/m. By default the largest motor force of a joint presses it into its stop
        by 1 percent of its range.
    damping : number or mapping of coordinates to numbers, optional
        c, s/rad or s/m. By default about half of the largest speed (`velocity_limit`) comes back;
        none is lost where a joint has no largest speed.
    joints : sequence of str, optional
        Joints that have stops; by default all that have limits.
    """

    stiffness: Any = None
    damping: Any = None
    joints: Sequence[str] | None = None

    def parts(self, machine: "Machine") -> list[JointStop]:
        """Return a stop for every coordinate that has a limit, called "stop of NAME" after it.

        Raises
        ------
        MachineError
            If nothing has a limit, a name is not known, or a joint has neither a largest motor
            force nor a given stiffness.
        """
        machine = machine.numeric
        known = {joint.name: joint for joint in machine.joints}
        chosen = known if self.joints is None else self.joints
        for name in chosen:
            if name not in known:
                raise MachineError(unknown("joint", name, known))
        limited = [
            (joint, k)
            for joint in machine.joints
            if joint.name in chosen and joint.kind.vector
            for k in range(joint.nx)
            if np.isfinite([joint.lower[k], joint.upper[k]]).any()
        ]
        if not limited:
            raise MachineError(f"no joint of `{machine.name}` has a limit to put a stop at")
        names = [joint.x_names[k] for joint, k in limited]
        for given in (self.stiffness, self.damping):
            for name in given if isinstance(given, Mapping) else ():
                if name not in names:
                    raise MachineError(unknown("coordinate with a stop", name, names))
        return [self._part(joint, k) for joint, k in limited]

    def _part(self, joint: Any, k: int) -> JointStop:
        name, low, high = joint.x_names[k], float(joint.lower[k]), float(joint.upper[k])
        stiffness, damping = _value(self.stiffness, name), _value(self.damping, name)
        if stiffness is None:
            effort = float(np.max(np.abs([side[k] for side in joint.effort_range])))
            if not (0 < effort < np.inf and 0 < high - low < np.inf):
                raise MachineError(
                    f"the stop of joint `{joint.name}` has no default stiffness, which follows "
                    "from a largest motor force and a range with two ends: give "
                    f"`Stops(stiffness={{{name!r}: ...}})`"
                )
            stiffness = effort / (GIVE * (high - low))
        if damping is None:
            speed = float(joint.velocity_limit[k])
            damping = _damping_for(RESTITUTION) / speed if 0 < speed < np.inf else 0.0
        return JointStop(
            name=f"stop of {name}",
            coordinate=name,
            stiffness=stiffness,
            rest=(low, high),
            impact_damping=damping,
        )

    def on(self, machine: "Machine") -> "Machine":
        """Return the machine with these stops, and with the same tunable numbers as before."""
        stopped = replace(machine, tendons=(*machine.tendons, *self.parts(machine)))
        if len(machine.parameters):
            set_field(stopped, "parameters", machine.parameters)
            set_field(stopped, "_numeric_form", self.on(machine.numeric))
        return stopped


def stops_of(machine: Any) -> list[JointStop]:
    """Return the stops of a machine; a system in coordinates of its own has none."""
    return [part for part in getattr(machine, "tendons", ()) if isinstance(part, JointStop)]


def _value(given: Any, name: str) -> Any:
    return given.get(name) if isinstance(given, Mapping) else given


def _damping_for(restitution: float) -> float:
    """Return c v_in for v_out / v_in, from c (v_in + v_out) = log((1 + c v_in) / (1 - c v_out))."""
    from scipy.optimize import root_scalar  # scipy takes long to import

    def gap(share: float) -> float:
        return np.log((1 + share) / (1 - restitution * share)) - share * (1 + restitution)

    return float(root_scalar(gap, bracket=(1e-3, (1 - 1e-9) / restitution)).root)
