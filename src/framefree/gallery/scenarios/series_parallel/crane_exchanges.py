"""What is exchanged on the crane while it runs: its second link, or the place of a pin."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from framefree.gallery.machines.crane import LONGER, Triangle, crane_model
from framefree.gallery.scenarios.series_parallel.crane_parts import longer_arm
from framefree.machine import Machine

MOVED = 0.40
"""Where the cylinder's pin sits on the arm after it is moved, m from the elbow."""


@dataclass(frozen=True)
class Exchange:
    """Numbers that change in the plant and in the law's model.

    Attributes
    ----------
    what, uninformed : str
        In words, and what comes of it where the law is not told.
    plant, law : mapping of str to float
        Tunable numbers of `crane` and of `crane_model`, and their new values.
    fresh : callable
        Builds the model with the new numbers from scratch.
    """

    what: str
    uninformed: str
    plant: Mapping[str, float]
    law: Mapping[str, float]
    fresh: Callable[[], Machine]


EXCHANGES = {
    "arm": Exchange(
        "a second link 30 percent longer and heavier",
        "Boom and stroke give way to the weight.",
        longer_arm(),
        longer_arm(),
        lambda: crane_model(LONGER),
    ),
    "mount": Exchange(
        "the cylinder's pin on the arm moved from 0.35 m to 0.40 m",
        "The stroke is off: the law takes the weight of the arm at another elbow angle.",
        {"frame:mount.pose.x": MOVED},
        {"triangle.arm_side": MOVED},
        lambda: crane_model(triangle=Triangle(arm_side=MOVED)),
    ),
}
