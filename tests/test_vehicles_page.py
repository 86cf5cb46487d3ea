"""The page on vehicles runs as it stands, on machines that it speaks of."""

import re
import textwrap
from pathlib import Path

import numpy as np

from framefree.gallery.machines.aerial_arm import aerial_arm
from framefree.gallery.machines.planar import planar_body
from framefree.motion.tree import Tree

PAGE = Path(__file__).parents[1] / "docs" / "vehicles.md"


def block(word):
    """Return the indented block of the page that begins with an import and has a word in it."""
    blocks = re.findall(r"(?:^    .*\n)+", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    (found,) = [b for b in blocks if b.startswith("    from framefree") and word in b]
    return textwrap.dedent(found)


def test_a_matrix_of_ones_own_is_looked_at():
    from framefree.certify import check

    machine = planar_body()
    eom = Tree(machine)
    names = {
        "machine": machine,
        "my_M": eom.functions["mass"],
        "my_C": eom.functions["coriolis"],
        "Mhat": np.eye(machine.nv),
    }
    text = block("check(").replace(
        'parametrisations=["all"], frame="gripper", delta=0.1', "states=8"
    )
    exec(text, names)
    assert names["check"] is check
    assert names["report"]["own_skew_residual"].value < 1e-11


def test_the_law_of_a_craft_with_an_arm_is_made():
    names = {"machine": aerial_arm()}
    exec(block("Underactuated"), names)
    assert len(names["law"].velocities) == 7
