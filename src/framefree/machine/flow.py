"""Velocity fields of a fluid: rotating as a whole, or as the user writes them down.

The fluid at a place r (3, m, in world axes) and a time t moves with v(r, t), m/s, and turns with
half of its curl, w = curl v / 2, rad/s. A body in it feels the motion of the fluid at the origin of
its frame: bodies are taken to be small beside the lengths over which the field changes.
"""

import inspect
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import casadi
import numpy as np

from framefree.machine.part import Part, set_field
from framefree.machine.problems import MachineError
from framefree.machine.values import vector

ARGUMENTS = ("position", "time")


class FlowMotion(NamedTuple):
    """How a fluid moves at a place, in world axes.

    Attributes
    ----------
    v, w : (3, 1)
        Velocity and rate of turning.
    v_slope, w_slope : (3, 3)
        Their slopes by the place.
    v_rate, w_rate : (3, 1)
        Their rates at a fixed place.
    """

    v: Any
    w: Any
    v_slope: Any
    w_slope: Any
    v_rate: Any
    w_rate: Any

    def along(self, velocity: Any) -> tuple[Any, Any]:
        """Return the rates (3) of v and w for somebody who moves with a velocity (3)."""
        return self.v_rate + self.v_slope @ velocity, self.w_rate + self.w_slope @ velocity

    @property
    def acceleration(self) -> Any:
        """Acceleration (3) of the fluid itself: Dv/Dt."""
        return self.along(self.v)[0]


@dataclass(frozen=True, eq=False)
class Flow(Part):
    """A velocity field in world axes.

    Parameters
    ----------
    velocity : callable or casadi.Function -> (3,)
        Of `position` (3) and, where it changes by itself, `time` (s), taken by name and written in
        casadi operations. It must have slopes.
    moment : number, optional
        Holds `time` at this value, s.
    """

    velocity: Any
    moment: float | None = None

    def __post_init__(self) -> None:
        set_field(self, "velocity", _traced(self.velocity))

    @classmethod
    def rotating(
        cls, rate: Any, center: Any = (0.0, 0.0, 0.0), velocity: Any = (0.0, 0.0, 0.0)
    ) -> "Flow":
        """Return a fluid that moves like a rigid body: v = velocity + rate x (r - center).

        `rate` (3) in rad/s, `center` (3) in m, `velocity` (3) in m/s, all in world axes.
        """
        rate, center, velocity = (
            casadi.DM(vector(value, f"`{name}` of a rotating flow"))
            for value, name in ((rate, "rate"), (center, "center"), (velocity, "velocity"))
        )
        return cls(lambda position: velocity + casadi.cross(rate, position - center))

    @cached_property
    def timed(self) -> bool:
        """Whether the field changes by itself."""
        if self.moment is not None:
            return False
        r, t = self.velocity.sx_in()
        return casadi.depends_on(self.velocity(r, t), t)

    def held_at(self, time: float) -> "Flow":
        """Return the field as it is at one moment."""
        return replace(self, moment=float(time)) if self.timed else self

    def at(self, position: Any, time: Any) -> FlowMotion:
        """Return how the fluid moves at a place (3) and a time."""
        held = time if self.moment is None else self.moment
        return FlowMotion(*self._motion(casadi.SX(position), casadi.SX(held)))

    @cached_property
    def _motion(self) -> casadi.Function:
        r, t = casadi.SX.sym("position", 3), casadi.SX.sym("time")
        v = self.velocity(r, t)
        slope = casadi.jacobian(v, r)
        w = casadi.vertcat(
            slope[2, 1] - slope[1, 2], slope[0, 2] - slope[2, 0], slope[1, 0] - slope[0, 1]
        )
        w = w / 2
        outputs = [v, w, slope, casadi.jacobian(w, r), casadi.jacobian(v, t), casadi.jacobian(w, t)]
        return casadi.Function("flow", [r, t], [casadi.densify(value) for value in outputs])


def _traced(velocity: Any) -> casadi.Function:
    """Return a field as a function of position and time."""
    r, t = casadi.SX.sym("position", 3), casadi.SX.sym("time")
    known = {"position": r, "time": t}
    what = "the `velocity` of a flow"
    value: Any
    try:
        if isinstance(velocity, casadi.Function):
            names = velocity.name_in()
            value = velocity.call([known[name] for name in names])[0]
        elif callable(velocity):
            names = list(inspect.signature(velocity).parameters)
            value = velocity(**{name: known[name] for name in names})
        else:
            raise MachineError(f"{what} must be a function, got {velocity!r}")
        value = casadi.vertcat(*value) if isinstance(value, list | tuple) else value
        value = casadi.densify(casadi.SX(value))
    except KeyError as error:
        raise MachineError(
            f"{what} asks for {error}, which there is none of; it can have `position` and `time`"
        ) from None
    except (TypeError, ValueError, RuntimeError, NotImplementedError) as error:
        raise MachineError(
            f"{what} must be written in casadi operations, but could not be traced: "
            f"{str(error).splitlines()[0]}"
        ) from None
    if value.shape != (3, 1):
        raise MachineError(f"{what} must be 3 numbers, got shape {value.shape}")
    foreign = [s for s in casadi.symvar(value) if not casadi.depends_on(casadi.vertcat(r, t), s)]
    if foreign:
        raise MachineError(f"{what} depends on `{foreign[0]}`, which it is not handed")
    function = casadi.Function("velocity", [r, t], [value], list(ARGUMENTS), ["velocity"])
    at = function(np.array([0.31, -0.47, 0.73]), 0.5)
    if not np.isfinite(np.array(at)).all():
        raise MachineError(f"{what} has no value at (0.31, -0.47, 0.73) m: {np.array(at).ravel()}")
    return function
