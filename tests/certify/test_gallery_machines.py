"""Every machine of the gallery passes the check that `framefree check NAME` makes."""

import pytest

from framefree.certify import Verdict, check
from framefree.gallery import MACHINES

LARGE = {
    "iiwa",
    "seven-joint-arm",
    "six-joint-arm",
    "tricopter-with-load",
    "revolute-chain",
    "ball-chain",
    "chain",
    "three-arms",
    "two-armed-robot",
    "two-armed-robot-with-object",
    "auv-arm",
    "rover-arm",
    "space-arm",
}
"""Machines that take long to derive in all formulations."""


def failures(name, **options):
    return [
        f.name for f in check(MACHINES[name](), **options).findings if f.verdict is Verdict.FAIL
    ]


@pytest.mark.parametrize("name", sorted(set(MACHINES) - LARGE))
@pytest.mark.first_cases(3)
def test_machines_of_the_gallery_pass(name):
    assert failures(name, samples=32, states=4) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MACHINES))
def test_all_machines_of_the_gallery_pass_as_the_command_checks_them(name):
    assert failures(name) == []
