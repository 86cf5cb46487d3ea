"""Names and units of what is recorded, and the columns of a table that hold it."""

from dataclasses import asdict, dataclass, replace
from math import prod
from typing import Any

import numpy as np

from framefree.machine import Machine
from framefree.machine.actuators import JointForce, Propeller, TiltingPropeller, Wrench
from framefree.machine.joint import Joint
from framefree.machine.joints import Custom, Prismatic
from framefree.simulate.errors import SimulationError


@dataclass(frozen=True)
class Channel:
    """One recorded array.

    Attributes
    ----------
    group : "state", "reference" or "signals"
    name : str
    shape : tuple of int
        Of one row.
    entries : tuple of str
        Names of its entries, row-major; numbered where there are none.
    units : tuple of str
        Of its entries, or one for all.
    """

    group: str
    name: str
    shape: tuple[int, ...]
    entries: tuple[str, ...] = ()
    units: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """Group and name."""
        return self.group, self.name

    @property
    def size(self) -> int:
        """Number of entries of a row."""
        return prod(self.shape)

    @property
    def columns(self) -> tuple[str, ...]:
        """A name with its unit for every entry: "x.elbow [rad]"."""
        prefix = self.name if self.group == "state" else f"{self.group}.{self.name}"
        return tuple(
            (f"{prefix}.{entry}" if self.shape else prefix) + (f" [{unit}]" if unit else "")
            for entry, unit in self._named_units
        )

    @property
    def entry_names(self) -> tuple[str, ...]:
        """A name for every entry of a row."""
        if len(self.entries) == self.size:
            return self.entries
        return tuple(",".join(map(str, index)) for index in np.ndindex(*self.shape))

    def widened(self, other: "Channel") -> "Channel":
        """Return the channel with the entries of another one of its name, which need not be its."""
        if self.shape == other.shape and self.entry_names == other.entry_names:
            return self
        if len(self.shape) != 1 or len(other.shape) != 1:
            raise SimulationError(
                f"`{self.name}` has shape {self.shape} before an event and {other.shape} after it: "
                "they cannot be recorded as one signal"
            )
        units = {**dict(other._named_units), **dict(self._named_units)}
        names = tuple(dict.fromkeys((*self.entry_names, *other.entry_names)))
        return replace(
            self, shape=(len(names),), entries=names, units=tuple(units[name] for name in names)
        )

    @property
    def _named_units(self) -> tuple[tuple[str, str], ...]:
        units = self.units if len(self.units) == self.size else (*self.units, "")[:1] * self.size
        return tuple(zip(self.entry_names, units, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for a header."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Channel":
        """Return what `to_dict` described."""
        lists = {key: tuple(data[key]) for key in ("shape", "entries", "units")}
        return cls(data["group"], data["name"], **lists)


def state_channels(machine: Machine) -> tuple[Channel, Channel, Channel]:
    """Return the channels of x, v and u."""
    x_units = sum((_x_units(joint) for joint in machine.joints), ())
    v_units = sum((_v_units(joint) for joint in machine.joints), ())
    u_units = sum((_u_units(machine, actuator) for actuator in machine.actuators), ())
    return (
        Channel("state", "x", (machine.nx,), machine.x_names, x_units),
        Channel("state", "v", (machine.nv,), machine.v_names, v_units),
        Channel("state", "u", (machine.nu,), machine.u_names, u_units),
    )


_LENGTHS = {"px", "py", "pz", "displacement", "vx", "vy", "vz"}
_PURE = {"cos", "sin", "qw", "qx", "qy", "qz"}


def _unit(joint: Joint, part: str) -> str:
    if isinstance(joint.kind, Custom) or part in _PURE:
        return ""
    return "m" if part in _LENGTHS or isinstance(joint.kind, Prismatic) else "rad"


def _x_units(joint: Joint) -> tuple[str, ...]:
    return tuple(_unit(joint, part) for part in joint.kind.x_names)


def _v_units(joint: Joint) -> tuple[str, ...]:
    units = (_unit(joint, part) for part in joint.kind.v_names)
    return tuple(f"{unit}/s" if unit else "" for unit in units)


def _u_units(machine: Machine, actuator: Any) -> tuple[str, ...]:
    if isinstance(actuator, JointForce):
        plain = not np.any(actuator.bias_terms) and np.all(np.asarray(actuator.gain) == 1.0)
        driven = np.flatnonzero(actuator.gear)
        joint = machine.joint(actuator.joint)
        units = {_v_units(joint)[i] for i in driven}
        forces = {"m/s": "N", "rad/s": "Nm"}
        return (forces.get(units.pop(), ""),) if plain and len(units) == 1 else ("",)
    if isinstance(actuator, Propeller | TiltingPropeller):
        return ("N",) * actuator.nu
    if isinstance(actuator, Wrench):
        columns = np.asarray(actuator.directions, float)
        return tuple("N" if np.any(column[:3]) else "Nm" for column in columns.T)
    return ("",) * actuator.nu
