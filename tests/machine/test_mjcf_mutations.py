"""No change of a MJCF file is dropped in silence.

What is known to move nothing is written down here and in `MOVES_NOTHING` of the reader, which
`machine.ignored` repeats.
"""

from pathlib import Path

import pytest
from model_mutations import Mutation, mutations, outcome, silent

from framefree.machine.formats.mjcf_ignored import MOVES_NOTHING
from framefree.machine.formats.mjcf_schema import schema
from framefree.machine.read import read

pytest.importorskip("mujoco")
DATA = Path(__file__).parents[1] / "data" / "mjcf"
ROBOTS = ("arm", "finger", "flapper", "gripper", "hand", "linkage", "muscled_arm", "walker")

SUBTREES = ("visual", "statistic", "sensor", "contact", "light", "camera", "adhesion")
"""Elements whose every content is drawn, measures, or concerns contact."""

DEFAULTS = {
    ("compiler", "angle"): "degree",
    ("compiler", "autolimits"): "true",
    ("option", "gravity"): "0 0 -9.81",
    ("geom", "type"): "sphere",
    ("general", "gaintype"): "fixed",
}
"""Attributes that may be missing, and what is then taken."""

SAID_TWICE = ("compiler", "option", "default")
"""Sections that may be there several times: what is said twice in the same words is said once."""

REASONS = {
    ("joint", "actuatorgravcomp"): "who carries the weight matters to limits of effort only",
    ("general", "group"): "a group that is not disabled",
    ("geom", "material"): "how it is drawn",
    ("connect", "class"): "here its defaults are softness alone",
}
"""Further attributes of these files that move nothing."""


def moves_nothing(mutation: Mutation) -> bool:
    """Whether a change is of something that is known to move nothing."""
    tag, attribute = str(mutation.place[-1]), mutation.attribute
    if any(str(place) in SUBTREES for place in mutation.place):
        return True
    if mutation.kind == "doubled element":
        return tag in SAID_TWICE
    if mutation.kind == "removed" and attribute.endswith("limited"):
        return True  # `autolimits` takes a range for a limit
    if mutation.kind == "removed element":
        return tag in ("flag", "option", "compiler", "equality") and _is_silent_content(mutation)
    if mutation.kind == "removed" and (tag, attribute) in DEFAULTS:
        return DEFAULTS[tag, attribute] in mutation.detail
    if tag == "weld":  # that of `linkage` is not active
        return attribute in ("body2", "relpose")
    return (tag, attribute) in MOVES_NOTHING or (tag, attribute) in REASONS


def _is_silent_content(mutation: Mutation) -> bool:
    """Whether each attribute of a removed element is a default, or moves nothing."""
    tag = str(mutation.place[-1])
    names = [word.partition("=")[0] for word in mutation.detail.split() if "=" in word]
    known = {name for key, name in (*MOVES_NOTHING, *DEFAULTS) if key == tag}
    return set(names) <= known


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.first_cases(1)
def test_every_change_is_seen_listed_or_refused(name):
    text = (DATA / f"{name}.xml").read_text()
    assert silent(read, text, moves_nothing) == []


def test_the_fixtures_use_what_the_reader_knows():
    used = {
        (str(mutation.place[-1]), mutation.attribute)
        for name in ROBOTS
        for mutation in mutations((DATA / f"{name}.xml").read_text())
        if mutation.attribute
    }
    assert len(used) > 120
    assert {tag for tag, _ in used} >= {"fixed", "freejoint", "connect", "replicate", "frame"}


def test_what_is_called_still_is_an_attribute_of_mjcf():
    root = schema()
    if root is None:
        pytest.skip("this MuJoCo has no list of its elements")
    known: dict[str, set[str]] = {}
    stack, seen = [("", root)], set()
    while stack:
        tag, element = stack.pop()
        if (tag, id(element)) not in seen:
            seen.add((tag, id(element)))
            known.setdefault(tag, set()).update(element.attributes)
            stack += element.children.items()
    assert [key for key in MOVES_NOTHING if key[1] not in known.get(key[0], set())] == []


def test_what_is_still_is_named():
    notes = read(DATA / "walker.xml").ignored
    assert (
        "`cone`, `iterations`, `solver`, `timestep`: how MuJoCo computes, not what moves" in notes
    )


def test_the_test_can_fail():
    text = (DATA / "gripper.xml").read_text()

    first = next(m for m in mutations(text) if m.attribute == "kp" and m.kind == "removed")
    assert outcome(lambda _: read(text), read(text), first) == "silent"
    assert outcome(read, read(text), first) == "differs"
