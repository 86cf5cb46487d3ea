"""Worked machines, and scenarios that run by name.

- `machines`: what is simulated, one file a family;
- `scenarios`: worked experiments, in a folder for each document they come from;
- `shared`: what all scenarios share.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from framefree.errors import FramefreeError, hint
from framefree.gallery.machines.aerial_arm import aerial_arm
from framefree.gallery.machines.arms import ball_chain, driven_iiwa, iiwa, revolute_chain
from framefree.gallery.machines.auv import auv
from framefree.gallery.machines.balancing import ball_on_plate, cart_pole
from framefree.gallery.machines.carrying_robots import carrying_robots
from framefree.gallery.machines.chains import chain
from framefree.gallery.machines.classics import (
    box,
    cylinder,
    double_pendulum,
    four_bars,
    heavy_top,
)
from framefree.gallery.machines.crane import crane, crane_model
from framefree.gallery.machines.dual_arm import (
    dual_arm,
    dual_arm_with_object,
    seven_joint_arm,
    six_joint_arm,
    three_arms,
)
from framefree.gallery.machines.finger_arm import finger_arm
from framefree.gallery.machines.five_bar import five_bar
from framefree.gallery.machines.multicopter_load import (
    quadcopter_and_load,
    tricopter_and_load,
    tricopter_with_load,
)
from framefree.gallery.machines.multicopters import bicopter, crazyflie, quadcopter, tricopter
from framefree.gallery.machines.planar import (
    planar_body,
    pvtol,
    slider,
    tumbler,
    two_masses,
    wheel,
)
from framefree.gallery.machines.quadruped import quadruped
from framefree.gallery.machines.rover import rover_arm
from framefree.gallery.machines.scara import scara
from framefree.gallery.machines.ship import ship_arm
from framefree.gallery.machines.space_arm import space_arm
from framefree.gallery.machines.touching import ball, block, coin, resting_arm, stack
from framefree.gallery.shared.catalogue import Catalogue
from framefree.lazy import lazy
from framefree.machine import Free, Machine, Planar

if TYPE_CHECKING:
    from framefree.gallery.scenarios import SCENARIOS

__all__ = ["MACHINES", "SCENARIOS", "gallery_machine"]

MACHINES: Mapping[str, Callable[[], Machine]] = Catalogue(
    "machine",
    {
        "heavy-top": heavy_top,
        "double-pendulum": double_pendulum,
        "four-bars": four_bars,
        "cylinder": cylinder,
        "box": box,
        "iiwa": iiwa,
        "driven-iiwa": driven_iiwa,
        "scara": scara,
        "six-joint-arm": six_joint_arm,
        "seven-joint-arm": seven_joint_arm,
        "two-armed-robot": dual_arm,
        "two-armed-robot-with-object": dual_arm_with_object,
        "three-arms": three_arms,
        "crane": crane,
        "crane-model": crane_model,
        "five-bar": five_bar,
        "finger-arm": finger_arm,
        "auv-arm": auv,
        "space-arm": space_arm,
        "rover-arm": rover_arm,
        "ship-arm": ship_arm,
        "aerial-arm": aerial_arm,
        "quadruped": quadruped,
        "carrying-robots": carrying_robots,
        "chain": chain,
        "revolute-chain": revolute_chain,
        "ball-chain": ball_chain,
        "quadcopter": quadcopter,
        "crazyflie": crazyflie,
        "tricopter": tricopter,
        "bicopter": bicopter,
        "tricopter-and-load": tricopter_and_load,
        "tricopter-with-load": tricopter_with_load,
        "pvtol": pvtol,
        "cart-pole": cart_pole,
        "ball-on-plate": ball_on_plate,
        "quadcopter-and-load": quadcopter_and_load,
        "wheel": wheel,
        "slider": slider,
        "two-masses": two_masses,
        "tumbler": tumbler,
        "planar-body": planar_body,
        "ball": ball,
        "block": block,
        "coin": coin,
        "stack": stack,
        "resting-arm": resting_arm,
    },
)
"""Machines that commands take by name, in place of a file."""


def gallery_machine(name: str, base: str | None = None) -> Machine:
    """Return a machine of the gallery.

    Parameters
    ----------
    name : str
        One of `MACHINES`.
    base : None, "free" or "fixed"
        As in `framefree.read`: "fixed" holds a free base where it is at the neutral
        configuration. "free" is refused for a machine that stands on the world, because what it
        stands on is not one of its bodies.

    Raises
    ------
    FramefreeError
        If the base cannot be had.
    """
    machine = MACHINES[name]()
    if base not in (None, "free", "fixed"):
        question = hint(base, ("free", "fixed"))
        raise FramefreeError(f"`base` must be one of None, 'free', 'fixed', got {base!r}{question}")
    roots = [joint for joint in machine.joints if joint.parent == "world"]
    floating = all(isinstance(joint.kind, Free) for joint in roots)
    if base == "free" and not floating:
        raise FramefreeError(
            f"the base of `{name}` cannot be free: the machine stands on the world, and what it "
            "stands on is not one of its bodies; read a model file that has such a link, or build "
            "the machine with a joint of kind `Free`"
        )
    if base == "fixed" and any(isinstance(joint.kind, Planar) for joint in roots):
        raise FramefreeError(
            f"the base of `{name}` moves in a plane and has no fixed variant; "
            "`machine.lock(joint)` holds it in Python"
        )
    for joint in roots if base == "fixed" and floating else ():
        machine = machine.lock(joint.name)
    return machine


__getattr__ = lazy(__name__, {"SCENARIOS": "framefree.gallery.scenarios:SCENARIOS"})


def __dir__() -> list[str]:
    return __all__
