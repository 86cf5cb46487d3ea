"""A law of the port beside the same law that ignores the joints, as the document's do.

Long chains (`ALONE` bodies and more) are shown with the law alone, and without the wrenches in
their joints: what these are, and what the other law does, is seen on short ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from framefree.control.law import Law
from framefree.control.references import Reference
from framefree.gallery.scenarios.ports.chain_measures import violations_of_s
from framefree.gallery.shared.figures import positive
from framefree.gallery.shared.scenario import Promise
from framefree.look.report import Figure
from framefree.machine import Machine
from framefree.simulate import Pulse, Run, simulate
from framefree.simulate.measures import rate_error

NAMES = {"follows": "this law", "printed": "joints ignored"}
"""Names of the two runs, and what figures call them."""
ALONE = 16
"""Number of bodies from which on the printed law is left out."""


@dataclass(frozen=True)
class BesidePrinted:
    """Two runs of a law, each with the same push: as it should be, and as printed.

    Attributes
    ----------
    runs : dict of str to Run
        By the names of `NAMES`; of a long chain the first alone.
    pulse : Pulse
    """

    runs: dict[str, Run]
    pulse: Pulse

    @classmethod
    def of(
        cls,
        machine: Machine,
        law: Callable[[bool], Law],
        reference: Reference,
        start: tuple[Any, ...],
        pulse: Pulse,
        **options: Any,
    ) -> "BesidePrinted":
        """Simulate both.

        Parameters
        ----------
        law : function
            From whether the law is the printed one to the law.
        start : tuple
            First configuration and, optionally, velocity.
        **options
            Of `simulate`.
        """
        options |= {"disturbances": [pulse], "record": ("energy",)}
        shown = {"follows": False}
        if len(machine.bodies) < ALONE:
            options["record"] = ("energy", "joint_wrench")
            shown["printed"] = True
        runs = {
            name: simulate(machine, law(printed), reference, *start, **options)
            for name, printed in shown.items()
        }
        return cls(runs, pulse)

    @property
    def words(self) -> dict[str, str]:
        """What figures call the runs, by their names."""
        return {key: word for key, word in NAMES.items() if key in self.runs}

    @property
    def t(self) -> np.ndarray:
        """Times of the rows, s."""
        return self.runs["follows"].t

    @property
    def before(self) -> np.ndarray:
        """Whether a row lies before the push."""
        return self.t < self.pulse.start - 1e-9

    @cached_property
    def metrics(self) -> dict[str, float]:
        """Errors of the stated rate of V before the push, and largest J s, of both."""
        rows, metrics = self.before, {}
        for key, run in self.runs.items():
            prefix = "" if key == "follows" else "ignoring_joints_"
            error = rate_error(self.t[rows], run["V"][rows], run["V_rate"][rows])
            metrics[f"{prefix}lyapunov_rate_error"] = error
            metrics[f"{prefix}js_max"] = float(violations_of_s(run).max())
        return metrics

    def promises(self, plant: str) -> tuple[Promise, ...]:
        """Return what tells the law from the printed one; rates of V on a native plant only."""
        m, native = self.metrics, plant == "native"
        promises = [
            Promise("the velocity errors s fit the joints: |J s|", m["js_max"], 1e-10, "m/s")
        ]
        if native:
            words = "V falls as the law states, relative error"
            promises.append(Promise(words, m["lyapunov_rate_error"], 1e-6))
        if "printed" not in self.runs:
            return tuple(promises)
        violated = m["ignoring_joints_js_max"]
        words = "under the printed law, which ignores the joints, s does not fit them"
        promises.append(Promise.at_least(words, violated, 1e-3, "m/s"))
        if native:
            error = m["ignoring_joints_lyapunov_rate_error"]
            words = "and V does not fall as that law states, relative error"
            promises.append(Promise.at_least(words, error, 1e-3))
        return tuple(promises)

    def figure(
        self, title: str, axis: str, quantity: Callable[[Run], np.ndarray], **options: Any
    ) -> Figure:
        """Return a quantity of both runs over time."""
        values = {word: quantity(self.runs[key]) for key, word in self.words.items()}
        return Figure.over_time(title, axis, self.t, values, **options)

    def violation_figure(self) -> Figure:
        """Return how far the velocity errors s violate the joints."""
        return self.figure(
            "Velocity errors against the joints", "|J s| (m/s)",
            lambda run: positive(violations_of_s(run)), logarithmic=True,
        )  # fmt: skip
