"""All scenarios by name; apart from the machines, because they load simulation and reports."""

from framefree.gallery.double_pendulum import DoublePendulum
from framefree.gallery.four_bar import FourBar
from framefree.gallery.free_body import FreeBody
from framefree.gallery.heavy_top import HeavyTop
from framefree.gallery.scenario import Scenario

_CLASSES: tuple[type[Scenario], ...] = (HeavyTop, FourBar, DoublePendulum, FreeBody)

SCENARIOS: dict[str, type[Scenario]] = {found.name: found for found in _CLASSES}
