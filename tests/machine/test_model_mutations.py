"""No change of a URDF or SDFormat file is dropped in silence.

What is known to move nothing is written down here and in the tables `MOVES_NOTHING` of the
readers, which `machine.ignored` repeats.
"""

from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from model_kinematics import example_urdfs
from model_mutations import UNKNOWN, Mutation, mutations, outcome, silent

from framefree.machine.formats import sdf, urdf_elements
from framefree.machine.formats.markup import ReadError, parse
from framefree.machine.formats.options import ReadOptions
from framefree.machine.formats.source import Source
from framefree.machine.formats.urdf import read_urdf
from framefree.machine.read import read

MODELS = Path(__file__).parents[1] / "data" / "models"
FILES = [f"{name}.urdf" for name in ("arm", "walker", "loops")]
FILES += [f"{name}.sdf" for name in ("linkage", "mixed", "hanging", "cart")]
TABLES = {".urdf": urdf_elements.MOVES_NOTHING, ".sdf": sdf.MOVES_NOTHING}
TYPES = {
    ".urdf": ["fixed", "revolute", "continuous", "prismatic", "floating", "planar", "nonsense"],
    ".sdf": ["fixed", "revolute", "continuous", "prismatic", "ball", "screw", "nonsense"],
}
ElementTree.register_namespace("drake", "http://drake.mit.edu")

SUBTREES = ("visual", "collision", "material", "gazebo", "transmission", "physics", "plugin")
"""Elements whose every content is drawn, concerns contact, or belongs to another program."""

DEFAULTS = {
    "origin@xyz": "0 0 0",
    "origin@rpy": "0 0 0",
    "axis@xyz": "1 0 0",
    "mimic@multiplier": "1",
    "mimic@offset": "0",
    "dynamics@damping": "0",
    "dynamics@friction": "0",
    "limit@lower": "0",
    "limit@upper": "0",
    "link1@rpy": "0 0 0",
    "link2@rpy": "0 0 0",
    "robot@version": "",
    "model@canonical_link": "the first link",
    "frame@attached_to": "the canonical link",
}
"""Attributes that may be missing, and what is then taken; "" where any value means the same."""

TEXTS = {"gravity": "true", "linear": "0", "angular": "0", "xyz": "0 0 1", "mass": "1"}
"""Elements of SDFormat that may be missing, and the text that is then taken."""

SAME_LOOP = ({"revolute", "continuous"}, {"spherical", "ball"})
"""Types of joints that close a loop alike."""


def moves_nothing(mutation: Mutation, table: dict) -> bool:
    """Whether a change is of something that is known to move nothing."""
    return _is_listed(mutation, table) or _is_default(mutation) or _closes_alike(mutation)


def _is_listed(mutation: Mutation, table: dict) -> bool:
    """Whether the change is inside of something that the reader's table has."""
    if any(tag in SUBTREES for tag in mutation.place):
        return True
    names = [_name(tag) for tag in mutation.place]
    keys = [f"{a}/{b}" for a, b in pairwise(names)]
    keys += [f"{names[-1]}@{mutation.attribute}"] if mutation.attribute else []
    return any(table.get(key) is not None for key in keys)


def _name(tag) -> str:
    return f"{tag} type=fixed" if tag == "joint" and tag.attributes.get("type") == "fixed" else tag


def _is_default(mutation: Mutation) -> bool:
    tag = mutation.place[-1]
    if mutation.kind == "removed":
        names = [mutation.attribute]
    elif mutation.kind == "removed element":
        if tag in TEXTS or tag == "velocity_decay":
            return True
        names = list(tag.attributes)
    else:
        return False
    return bool(names) and all(
        f"{tag}@{name}" in DEFAULTS and _same(tag.attributes[name], DEFAULTS[f"{tag}@{name}"])
        for name in names
    )


def _same(given: str, default: str) -> bool:
    try:
        expected = [float(word) for word in default.split()]
        return not expected or [float(word) for word in given.split()] == expected
    except ValueError:
        return True  # words: see the table


def _closes_alike(mutation: Mutation) -> bool:
    if mutation.attribute != "type":
        return False
    old, new = (word.strip("'") for word in mutation.detail.split(" -> "))
    loops = ("loop", "loop_joint")
    closing = mutation.place[-1].attributes.get("name") == "closing" or mutation.place[-1] in loops
    return closing and any({old, new} == pair for pair in SAME_LOOP)


def reader(path, **options):
    """Return a function that reads a text as if it stood in the file's place."""
    chosen = read_urdf if path.suffix == ".urdf" else sdf.read_sdf

    def read_text(text):
        source = Source(path.name, text.encode(), path.parent.resolve(), {}, ())
        return chosen(source, parse(source.data, source.name), ReadOptions(**options))

    return read_text


@pytest.mark.parametrize("name", FILES)
@pytest.mark.first_cases(1)
def test_no_change_is_dropped_in_silence(name):
    path = MODELS / name
    table = TABLES[path.suffix]
    # The root floats and fixed links are kept as bodies, so that none of them is out of sight.
    read_text = reader(path, keep_fixed=True, base="free")
    missed = silent(
        read_text,
        path.read_text(),
        lambda mutation: moves_nothing(mutation, table),
        choices={"type": TYPES[path.suffix]},
    )
    assert missed == []


@pytest.mark.parametrize("name", FILES)
@pytest.mark.first_cases(1)
def test_strict_refuses_what_is_unknown(name):
    path = MODELS / name
    read_text = reader(path, strict=True)
    read_text(path.read_text())
    for mutation in mutations(path.read_text()):
        if mutation.kind.startswith("unknown") and not _is_listed(mutation, TABLES[path.suffix]):
            with pytest.raises(ReadError, match=UNKNOWN):
                read_text(mutation.text)


def test_seconds_and_misspelt_names_of_shipped_robots_are_listed():
    """Panda's own names for friction, anymal's for limits, and a limit of a continuous joint."""
    files = example_urdfs()
    if not files:
        pytest.skip("example-robot-data is not installed")
    for name, words in (
        ("panda_description/panda.urdf", "attribute `mu_viscous` of <dynamics>"),
        ("anymal_b_simple_description/anymal.urdf", "attribute `gear_velocity` of <limit>"),
        ("double_pendulum_description/double_pendulum_continuous.urdf", "`lower` of <limit>"),
        ("kinova_description/kinova.urdf", "attribute `upper` of <limit>"),
    ):
        assert any(words in message for message in read(files[name]).problems)
        with pytest.raises(ReadError, match="is not read"):
            read(files[name], strict=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["panda_description/panda.urdf", "double_pendulum_description/double_pendulum_continuous.urdf"],
)
def test_no_change_of_a_shipped_robot_is_dropped_in_silence(name):
    files = example_urdfs()
    if not files:
        pytest.skip("example-robot-data is not installed")
    path = Path(files[name])
    read_text = reader(path, keep_fixed=True, base="free")
    before = read_text(path.read_text())
    table = TABLES[".urdf"]
    for mutation in mutations(path.read_text(), {"type": TYPES[".urdf"]}):
        if outcome(read_text, before, mutation) == "silent":
            unread = f"attribute `{mutation.attribute}` of <{mutation.place[-1]}>"
            listed = any(unread in message for message in before.problems)
            assert listed or moves_nothing(mutation, table), str(mutation)
