"""All scenarios by name; apart from the machines, because they load simulation and reports."""

from framefree.gallery.arm_pose import ArmPose
from framefree.gallery.attitude import Attitude
from framefree.gallery.auv_arm import AuvArm
from framefree.gallery.bicopter_circle import BicopterCircle
from framefree.gallery.chain_free import ChainFree
from framefree.gallery.chain_pose import ChainPose
from framefree.gallery.chain_reach import ChainReach
from framefree.gallery.chain_velocity import ChainVelocity
from framefree.gallery.crane import Crane
from framefree.gallery.crane_reconfigured import CraneReconfigured
from framefree.gallery.double_pendulum import DoublePendulum
from framefree.gallery.dual_arm import DualArm
from framefree.gallery.dual_arm_limits import DualArmLimits
from framefree.gallery.five_bar import FiveBar
from framefree.gallery.four_bar import FourBar
from framefree.gallery.free_body import FreeBody
from framefree.gallery.heavy_top import HeavyTop
from framefree.gallery.pvtol import Pvtol
from framefree.gallery.quad_flip import QuadFlip
from framefree.gallery.quad_loop import QuadLoop
from framefree.gallery.quad_transitions import QuadTransitions
from framefree.gallery.rover_arm import RoverArm
from framefree.gallery.scara import Scara
from framefree.gallery.scenario import Scenario
from framefree.gallery.space_arm import SpaceArm
from framefree.gallery.tricopter import Tricopter
from framefree.gallery.tricopter_load import TricopterLoad
from framefree.gallery.two_arms import TwoArms

_CLASSES: tuple[type[Scenario], ...] = (
    HeavyTop,
    FourBar,
    DoublePendulum,
    FreeBody,
    Crane,
    CraneReconfigured,
    FiveBar,
    QuadLoop,
    QuadFlip,
    QuadTransitions,
    Tricopter,
    BicopterCircle,
    Attitude,
    Scara,
    Pvtol,
    TricopterLoad,
    ArmPose,
    TwoArms,
    ChainFree,
    ChainReach,
    ChainPose,
    ChainVelocity,
    DualArm,
    DualArmLimits,
    AuvArm,
    SpaceArm,
    RoverArm,
)

SCENARIOS: dict[str, type[Scenario]] = {found.name: found for found in _CLASSES}
