"""Laws of machines that touch: motion and force of a frame."""

from framefree.control.contact.hybrid import HybridControl

__all__ = ["HybridControl"]
