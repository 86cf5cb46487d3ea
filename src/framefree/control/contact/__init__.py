"""Laws of machines that touch: motion, force and impedance of a frame."""

from framefree.control.contact.hybrid import HybridControl
from framefree.control.contact.passive_impedance import PassiveImpedance

__all__ = ["HybridControl", "PassiveImpedance"]
