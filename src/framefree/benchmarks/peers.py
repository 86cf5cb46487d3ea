"""Pinocchio and MuJoCo, for comparison."""

from typing import Any

from framefree.certify.pinocchio_model import pinocchio_model
from framefree.errors import FramefreeError
from framefree.machine import Machine
from framefree.machine.formats.write_mjcf import to_mjcf
from framefree.simulate.integrators import INTEGRATORS


def pinocchio() -> Any:
    """Return the module, or say how to install it."""
    try:
        import pinocchio as pin
    except ImportError:
        raise FramefreeError(
            "this needs Pinocchio, which is not installed; install it with: "
            'pip install "framefree[peers]"'
        ) from None
    return pin


def mujoco_model(machine: Machine, dt: float, integrator: str) -> tuple[Any, Any, Any]:
    """Return a machine as a mujoco.MjModel without limits, its MjData, and a Rollout."""
    try:
        import mujoco
        from mujoco.rollout import Rollout

        from framefree.simulate.runners.mujoco import prepare
    except ImportError:
        raise FramefreeError(
            "this needs MuJoCo, which is not installed; install it with: "
            'pip install "framefree[models]"'
        ) from None
    model = mujoco.MjModel.from_xml_string(
        to_mjcf(machine, without=("velocity_limit", "effort_limit"))
    )
    prepare(model, dt, INTEGRATORS[integrator], limits=False)
    return model, mujoco.MjData(model), Rollout(nthread=0)


def to_pinocchio(machine: Machine) -> Any:
    """Return the machine as a pinocchio.Model; joint i + 1 carries body i."""
    return pinocchio_model(pinocchio(), machine)
