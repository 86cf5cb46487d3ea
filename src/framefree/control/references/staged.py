"""A reference seen from another frame."""

from dataclasses import dataclass

import casadi as ca

from framefree.control.law import ControlError
from framefree.control.references.base import Matrix, Reference
from framefree.geometry import se3
from framefree.machine import Machine
from framefree.machine.part import set_field
from framefree.machine.values import constant_pose


@dataclass(frozen=True, eq=False)
class InFrame(Reference):
    """A reference of frames or bodies, described in a frame that is fixed to the world.

    Poses become G_frame pose, velocities in world axes turn with the frame, body-fixed signals
    stay. The frame may be tunable, so that one compiled run serves many places.

    Parameters
    ----------
    reference : Reference
    machine : Machine
        That has the frame.
    frame : str
    """

    reference: Reference
    machine: Machine
    frame: str

    def __post_init__(self) -> None:
        if self.machine.body_index[self.machine.frame(self.frame).body] >= 0:
            raise ControlError(f"the frame `{self.frame}` of InFrame must be fixed to the world")
        set_field(self, "times", self.reference.times)
        set_field(self, "units", self.reference.units)

    def at(self, t: Matrix) -> dict[str, Matrix]:
        """Return all signals at time t."""
        G = constant_pose(self.machine.frame(self.frame).pose)
        R, signals = se3.rotation(G), {}
        for name, value in self.reference.at(t).items():
            what = name.rpartition(".")[2]
            if what == "pose":
                value = se3.compose(G, value)
            elif what in ("velocity", "velocity_rate"):
                value = ca.vertcat(R @ value[:3], R @ value[3:])
            elif what not in ("twist", "acceleration"):
                raise ControlError(f"InFrame does not know how the signal `{name}` turns")
            signals[name] = value
        return signals
