"""The published experiment with the two-armed robot of a file.

What is published is promised where the robot has the published masses.
"""

from typing import Any

from framefree.gallery.machines.dual_arm_file import RobotOfFile
from framefree.gallery.scenarios.cooperation.dual_arm_figures import published_figures
from framefree.gallery.scenarios.cooperation.dual_arm_parts import (
    CIRCLE,
    HoldErrors,
    experiment,
    printed_promises,
    published_law,
    ring,
)
from framefree.gallery.shared.scenario import Outcome, Promise
from framefree.look.report import Animation

SAME = 1e-4
"""Difference of mass matrices, relative, up to which a robot counts as the published one."""


def published_run(robot: RobotOfFile, **options: Any) -> Outcome:
    """Run the published experiment with a robot."""
    law = published_law(robot.model, hands=robot.hands)
    run = experiment(robot.machine, law, robot.start, **options)
    errors = HoldErrors(run)
    metrics = {
        **errors.published(),
        "settling_s": errors.settling(),
        "mass_difference": robot.mass_difference,
    }
    same = metrics["mass_difference"] < SAME
    promises = [
        Promise(
            "the hands keep their coupling, mean after the start",
            metrics["published_coupling_error"],
            0.02,
            "m, rad",
        ),
        Promise(
            "the hand keeps to the circle, mean after the start",
            metrics["published_control_error"],
            0.05,
            "m, rad",
        ),
    ]
    promises += printed_promises(metrics) if same else ()
    note = (
        "The robot of the file has the masses of the published one."
        if same
        else f"Its mass matrix differs from that of the published robot by "
        f"{metrics['mass_difference']:.2g} of its largest entry, so that errors are its own."
    )
    return Outcome(
        {"published": run},
        metrics,
        tuple(promises),
        published_figures(run, robot.machine, robot.hands),
        (Animation("The published run, robot of the file", run, robot.hands, ring(CIRCLE)),),
        (note,),
    )
