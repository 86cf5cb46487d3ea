"""`<coupling>` of URDF+: joints from one link to another by a ratio [Chignoli2024].

    <coupling name="belt">
      <predecessor link="a"/> <successor link="b"/> <ratio value="2"/>
    </coupling>

says that the joints between the nearest link which carries both and the successor turn, in sum,
`ratio` times as far as those to the predecessor: sum(q_successor) = ratio sum(q_predecessor). The
joint marked `independent="false"` follows the others; by default it is the successor's own.
"""

from __future__ import annotations

from collections.abc import Mapping

from framefree.machine.coupling import Coupling, Linear
from framefree.machine.formats.markup import Place
from framefree.machine.formats.records import CouplingRecord, JointRecord
from framefree.machine.joints import Continuous, Fixed, Prismatic, Revolute


def read_coupling(place: Place, name: str) -> CouplingRecord | None:
    """Return what a <coupling> says, or note what is wrong."""
    values = {}
    for tag, attribute in (("predecessor", "link"), ("successor", "link"), ("ratio", "value")):
        element = place.element.first(tag)
        if element is None:
            place.problem(f"<coupling> needs <{tag} {attribute}=.../>")
            return None
        inside = place.inside(element)
        values[tag] = (
            inside.numbers(attribute, 1, None) if tag == "ratio" else inside.text(attribute)
        )
    if any(value is None for value in values.values()):
        return None
    (ratio,) = values["ratio"]
    if not ratio:
        place.problem("the ratio of a <coupling> must not be zero")
        return None
    return CouplingRecord(name, place, values["predecessor"], values["successor"], ratio)


def coupled(record: CouplingRecord, moved_by: Mapping[str, JointRecord]) -> Coupling | None:
    """Return the coupling of joints, or note what is wrong.

    Parameters
    ----------
    record : CouplingRecord
    moved_by : mapping of link name to the joint that moves it
    """
    ways = [_way(link, moved_by) for link in (record.predecessor, record.successor)]
    while ways[0] and ways[1] and ways[0][-1] is ways[1][-1]:
        ways = [way[:-1] for way in ways]
    moving = [[joint for joint in way if not isinstance(joint.kind, Fixed)] for way in ways]
    for joint in (*moving[0], *moving[1]):
        if not isinstance(joint.kind, Continuous | Prismatic | Revolute):
            record.place.problem(
                f"joint `{joint.name}` between its links is none with one coordinate, but "
                f"{type(joint.kind).__name__}"
            )
            return None
    if not moving[0] or not moving[1]:
        side = "predecessor" if not moving[0] else "successor"
        record.place.problem(
            f"no joint moves the {side} `{getattr(record, side)}` against the nearest link that "
            "carries both"
        )
        return None
    # ratio sum(predecessor) - sum(successor) = 0, solved for the joint that follows.
    weights = {joint.name: record.ratio for joint in moving[0]}
    weights |= {joint.name: -1.0 for joint in moving[1]}
    marked = [joint.name for way in moving for joint in way if _follows(joint)]
    target = marked[0] if len(marked) == 1 else moving[1][0].name
    own = weights.pop(target)
    return Coupling(
        record.name,
        target,
        tuple(weights),
        Linear(tuple(-weight / own for weight in weights.values())),
    )


def _way(link: str, moved_by: Mapping[str, JointRecord]) -> list[JointRecord]:
    """Return the joints from a link up to the root."""
    joints = []
    while link in moved_by:
        joints.append(moved_by[link])
        link = joints[-1].parent
    return joints


def _follows(joint: JointRecord) -> bool:
    return (joint.place.element.get("independent") or "").strip().lower() in ("false", "0")
