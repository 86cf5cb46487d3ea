"""All scenarios by name; apart from the machines, because they load simulation and reports."""

from collections.abc import Mapping

from framefree.gallery.scenarios.classics.double_pendulum import DoublePendulum
from framefree.gallery.scenarios.classics.four_bar import FourBar
from framefree.gallery.scenarios.classics.free_body import FreeBody
from framefree.gallery.scenarios.classics.heavy_top import HeavyTop
from framefree.gallery.scenarios.contact.bounce import Bounce
from framefree.gallery.scenarios.contact.carry import Carry
from framefree.gallery.scenarios.contact.stand import Stand
from framefree.gallery.scenarios.contact.wipe import Wipe
from framefree.gallery.scenarios.cooperation.arm_pose import ArmPose
from framefree.gallery.scenarios.cooperation.dual_arm import DualArm
from framefree.gallery.scenarios.cooperation.dual_arm_limits import DualArmLimits
from framefree.gallery.scenarios.cooperation.two_arms import TwoArms
from framefree.gallery.scenarios.identification.identify_arm import IdentifyArm
from framefree.gallery.scenarios.identification.identify_flight import IdentifyFlight
from framefree.gallery.scenarios.learned.learned_chain import LearnedChain
from framefree.gallery.scenarios.learned.learned_flight import LearnedFlight
from framefree.gallery.scenarios.learned.learned_wall import LearnedWall
from framefree.gallery.scenarios.learned.space_arm_friction import SpaceArmFriction
from framefree.gallery.scenarios.ports.chain_free import ChainFree
from framefree.gallery.scenarios.ports.chain_pose import ChainPose
from framefree.gallery.scenarios.ports.chain_reach import ChainReach
from framefree.gallery.scenarios.ports.chain_velocity import ChainVelocity
from framefree.gallery.scenarios.prototypes.attitude import Attitude
from framefree.gallery.scenarios.prototypes.bicopter_circle import BicopterCircle
from framefree.gallery.scenarios.prototypes.cart_pole import CartPole
from framefree.gallery.scenarios.prototypes.own_coordinates import OwnCoordinates
from framefree.gallery.scenarios.prototypes.pvtol import Pvtol
from framefree.gallery.scenarios.prototypes.quad_flip import QuadFlip
from framefree.gallery.scenarios.prototypes.quad_loop import QuadLoop
from framefree.gallery.scenarios.prototypes.quad_transitions import QuadTransitions
from framefree.gallery.scenarios.prototypes.scara import Scara
from framefree.gallery.scenarios.prototypes.tricopter import Tricopter
from framefree.gallery.scenarios.prototypes.tricopter_load import TricopterLoad
from framefree.gallery.scenarios.series_parallel.crane import Crane
from framefree.gallery.scenarios.series_parallel.crane_reconfigured import CraneReconfigured
from framefree.gallery.scenarios.series_parallel.five_bar import FiveBar
from framefree.gallery.scenarios.unknowns.payload import Payload
from framefree.gallery.scenarios.vehicles.aerial_arm import AerialArm
from framefree.gallery.scenarios.vehicles.auv_arm import AuvArm
from framefree.gallery.scenarios.vehicles.auv_current import AuvCurrent
from framefree.gallery.scenarios.vehicles.rover_arm import RoverArm
from framefree.gallery.scenarios.vehicles.ship_arm import ShipArm
from framefree.gallery.scenarios.vehicles.space_arm import SpaceArm
from framefree.gallery.shared.catalogue import Catalogue
from framefree.gallery.shared.scenario import Scenario

_CLASSES: tuple[type[Scenario], ...] = (
    HeavyTop,
    FourBar,
    DoublePendulum,
    FreeBody,
    Bounce,
    Wipe,
    Stand,
    Carry,
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
    CartPole,
    OwnCoordinates,
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
    AuvCurrent,
    Payload,
    SpaceArm,
    RoverArm,
    ShipArm,
    AerialArm,
    IdentifyArm,
    IdentifyFlight,
    LearnedChain,
    SpaceArmFriction,
    LearnedWall,
    LearnedFlight,
)

SCENARIOS: Mapping[str, type[Scenario]] = Catalogue(
    "scenario", {scenario.name: scenario for scenario in _CLASSES}
)
