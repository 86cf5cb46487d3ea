"""Rigid-body machines: equations of motion and control that hold in every frame.

Start with ``machine = framefree.read("robot.urdf")`` and ``framefree.equations(machine, "tree")``.
"""

__version__ = "0.1.0"
