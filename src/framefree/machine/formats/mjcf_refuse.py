"""Refuse features of a compiled MuJoCo model that framefree does not support."""

from __future__ import annotations

from typing import Any

from framefree.machine.formats.mjcf_engine import column, enabled
from framefree.machine.formats.mjcf_text import Document
from framefree.machine.formats.mjcf_tree import FREE
from framefree.machine.formats.options import ReadOptions
from framefree.machine.problems import Problems


def refuse(model: Any, document: Document, options: ReadOptions, problems: Problems) -> list[str]:
    """Report what changes the motion and is not supported; return what was ignored."""
    ignored: list[str] = []
    report = _Report(document, options, problems, ignored)
    _joints(model, report)
    if model.ngeom:
        ignored.append(
            f"contact of {model.ngeom} geoms: contact is not modelled, "
            "except by MuJoCo itself as the plant"
        )
        ignored += [
            f"<{tag}> of <contact> ({count} times): as contact of geoms"
            for tag, count in (("pair", model.npair), ("exclude", model.nexclude))
            if count
        ]
    if model.nmocap:
        ignored.append(f"{model.nmocap} mocap bodies: they stay where they are")
    return ignored


class _Report:
    """Sends refusals to the problems, or to the ignored features if the caller allows that."""

    def __init__(
        self, document: Document, options: ReadOptions, problems: Problems, ignored: list[str]
    ) -> None:
        self.document = document
        self.without = options.without
        self.problems = problems
        self.ignored = ignored

    def __call__(
        self, group: str, name: str, index: int, message: str, leave_out: str = ""
    ) -> None:
        where = self.document.where(group, name, index)
        if leave_out and leave_out in self.without:
            self.ignored.append(f"{where}: {message} (left out on request)")
            return
        hint = f'; `without="{leave_out}"` leaves it out' if leave_out else ""
        self.problems.add(f"{message}{hint}", where)


def _joints(model: Any, report: _Report) -> None:
    for j in range(model.njnt):
        name, kind = model.joint(j).name, int(model.jnt_type[j])
        dof = int(model.jnt_dofadr[j])
        if column(model, "jnt_plasticadr", j, -1) >= 0:
            report("joint", name, j, "a spring that yields (`springyield`) is not supported")
        if kind == FREE:
            _free_joint(model, j, dof, report)


def _free_joint(model: Any, j: int, dof: int, report: _Report) -> None:
    """MuJoCo's free joint moves along world axes, ours along those of the body."""
    refused = {
        "stiffness": model.jnt_stiffness[j] if enabled(model, "SPRING") else 0.0,
        "armature": model.dof_armature[dof],
        "frictionloss": model.dof_frictionloss[dof] if enabled(model, "FRICTIONLOSS") else 0.0,
    }
    for name, number in refused.items():
        if number != 0.0:
            message = (
                f"`{name}` = {number:g} of a free joint is not supported; <freejoint/> takes no "
                "defaults of <joint>"
            )
            report("joint", model.joint(j).name, j, message)
