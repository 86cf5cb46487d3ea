"""Which joints and actuators of the plant are those of the law's model: by name."""

from typing import Any

import casadi as ca

from framefree.control.law import ControlError
from framefree.errors import FramefreeError
from framefree.machine import Machine
from framefree.machine.problems import Problems

Matrix = Any


class Correspondence:
    """Takes states from a plant to a model and inputs back.

    Parameters
    ----------
    plant, model : Machine
        Every joint and every actuator of the model must be one of the plant, of the same kind. What
        the plant has beyond them is unknown to the law; its inputs are zero.
    error : type of FramefreeError
        What is raised where they are not.
    """

    def __init__(
        self, plant: Machine, model: Machine, error: type[FramefreeError] = ControlError
    ) -> None:
        self.plant, self.model = plant, model
        problems = Problems()
        for joint in model.joints:
            if joint.nv and joint.name not in plant.joint_index:
                problems.add(f"the law's joint `{joint.name}` is not one of the plant")
            elif joint.nv and not _same_kind(joint, plant.joint(joint.name)):
                problems.add(
                    f"joint `{joint.name}` is {type(joint.kind).__name__} for the law and "
                    f"{type(plant.joint(joint.name).kind).__name__} in the plant"
                )
        sizes = {actuator.name: actuator.nu for actuator in plant.actuators}
        for actuator in model.actuators:
            if sizes.get(actuator.name, 0) != actuator.nu:
                problems.add(
                    f"the law's actuator `{actuator.name}` with {actuator.nu} inputs is not one of "
                    "the plant"
                )
        if problems.messages:
            raise error("; ".join(problems.messages))

    def x(self, x: Matrix) -> Matrix:
        """Return the model's configuration."""
        return self._taken(x, self.plant.x_slice, self.model.x_slice)

    def v(self, v: Matrix) -> Matrix:
        """Return the model's velocity."""
        return self._taken(v, self.plant.v_slice, self.model.v_slice)

    def u(self, u: Matrix) -> Matrix:
        """Return the plant's inputs."""
        if self.plant is self.model:
            return u
        whole = ca.SX(self.plant.nu, 1)
        for actuator in self.model.actuators:
            whole[self.plant.u_slice[actuator.name]] = u[self.model.u_slice[actuator.name]]
        return whole

    def u_of_model(self, u: Matrix) -> Matrix:
        """Return the model's inputs among the plant's."""
        return self._taken(u, self.plant.u_slice, self.model.u_slice)

    def _taken(self, values: Matrix, here: Any, there: Any) -> Matrix:
        if self.plant is self.model:
            return values
        parts = [values[here[name]] for name in there if there[name].stop > there[name].start]
        return ca.vertcat(ca.SX(0, 1), *parts)


def _same_kind(a: Any, b: Any) -> bool:
    return type(a.kind) is type(b.kind)
