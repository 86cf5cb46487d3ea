"""All scenarios by name; apart from the machines, because they load simulation and reports."""

from framefree.gallery.crane import Crane
from framefree.gallery.crane_reconfigured import CraneReconfigured
from framefree.gallery.double_pendulum import DoublePendulum
from framefree.gallery.five_bar import FiveBar
from framefree.gallery.four_bar import FourBar
from framefree.gallery.free_body import FreeBody
from framefree.gallery.heavy_top import HeavyTop
from framefree.gallery.scenario import Scenario

_CLASSES: tuple[type[Scenario], ...] = (
    HeavyTop,
    FourBar,
    DoublePendulum,
    FreeBody,
    Crane,
    CraneReconfigured,
    FiveBar,
)

SCENARIOS: dict[str, type[Scenario]] = {found.name: found for found in _CLASSES}
