"""One way to run over the bodies of a machine: at once, or natively in loops.

A computation over bodies is written as *steps*, plain functions ``step(body, *values)`` of one
body's constants (`bodies.BodyMath`) and of what its neighbours hand over, and a *sweep* that calls
them for one body after another on a tape (`tape`):

    for i in reversed(range(count)):
        shown[i] = tape.call(step, i, values[i], shown_by_children)

`DirectTape` runs a step where it stands, so that the sweep becomes one expression. `LoopTape`
writes down that it is to be run: bodies that are alike share one native function (`packing`), and
the code does not grow with the machine. `passive` adds springs, dampers and fluid to any sweep.
"""

from framefree.motion.loops.bodies import BodyMath, LinkPose
from framefree.motion.loops.passive import passive_wrenches
from framefree.motion.loops.tape import DirectTape, LoopTape, Tape, inwards, summed

__all__ = [
    "BodyMath",
    "DirectTape",
    "LinkPose",
    "LoopTape",
    "Tape",
    "inwards",
    "passive_wrenches",
    "summed",
]
