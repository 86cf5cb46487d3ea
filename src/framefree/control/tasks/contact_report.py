"""Contacts that could not be loaded in a run: which, when and for how long."""

from typing import NamedTuple

import numpy as np

from framefree.control.law import ControlError
from framefree.control.tasks.law import LawOfTasks


class UnloadedContact(NamedTuple):
    """A time in which a closed contact could not be held, or carried no more than its least force.

    Attributes
    ----------
    name : str
    start, end : float
        First and last recorded time, s.
    """

    name: str
    start: float
    end: float

    def __str__(self) -> str:
        return (
            f"contact `{self.name}` could not be loaded from {self.start:.4g} to {self.end:.4g} s"
        )


def unloaded_contacts(
    law: LawOfTasks, t: np.ndarray, unloaded: np.ndarray
) -> tuple[UnloadedContact, ...]:
    """Return when contacts of a law could not be loaded, the earliest first.

    Parameters
    ----------
    law : TaskControl or LimitedTaskControl
    t : (rows,)
        Times of a run, s: ``run.t``.
    unloaded : (rows, contacts)
        What it recorded: ``run["unloaded"]``.
    """
    t, values = np.asarray(t, float), np.asarray(unloaded, float)
    if values.shape != (len(t), len(law.contacts)):
        raise ControlError(
            f"`unloaded` must have shape {(len(t), len(law.contacts))}, a row for every time and a "
            f"column for every contact of the law; got {values.shape}"
        )
    found = []
    for name, column in zip(law.contact_names, values.T, strict=True):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], column > 0, [0]])))
        for first, after in edges.reshape(-1, 2):
            found.append(UnloadedContact(name, float(t[first]), float(t[after - 1])))
    return tuple(sorted(found, key=lambda one: (one.start, one.name)))
