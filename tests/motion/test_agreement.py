"""The contract: same machine, state and forces, same motion from every formulation that applies.

At least 500 machine-state pairs over 60 machines: 44 trees and 16 closed chains, over all joint
kinds, with springs, dampers and fluids. Body accelerations, joint wrenches and power agree to 1e-9.
"""

import numpy as np
import pytest
from constrained_machines import closed_state, random_closed
from random_machines import evaluate, random_machine, random_state, relative_error

from framefree.motion.constrained import Constrained
from framefree.motion.embedded import Embedded
from framefree.motion.maximal import Maximal
from framefree.motion.redundant import Redundant
from framefree.motion.tree import Tree

BAR = 1e-9
STATES = 9
QUICK = {"tree": range(1000, 1044), "closed": range(2000, 2016)}
SLOW = {"tree": range(3000, 3400), "closed": range(4000, 4100)}


def seeds(kind):
    yield from QUICK[kind]
    yield from (pytest.param(seed, marks=pytest.mark.slow) for seed in SLOW[kind])


def joint_answers(eom, x, v, force):
    """Body accelerations, joint wrenches and power of a formulation in the joints' coordinates."""
    a = evaluate(eom.functions["forward"], x, v, force).ravel()
    return (
        evaluate(eom.functions["body_acceleration"], x, v, a),
        evaluate(eom.functions["joint_wrench"], x, v, force),
        evaluate(eom.functions["power"], x, v, force),
    )


def maximal_answers(eom, x, v, force):
    pose, twist = (a.ravel() for a in evaluate(eom.functions["from_joints"], x, v))
    inputs = (pose, twist, force)
    return (
        evaluate(eom.functions["forward:joint_force"], *inputs).reshape(-1, 6),
        evaluate(eom.functions["joint_wrench:joint_force"], *inputs),
        evaluate(eom.functions["power:joint_force"], *inputs),
    )


def assert_agree(name, found, expected):
    for quantity, one, other in zip(
        ("acceleration", "joint wrench", "power"), found, expected, strict=True
    ):
        error = relative_error(one, other)
        assert error < BAR, f"{name}, {quantity}: {error:.1e}"


@pytest.mark.first_cases(20)
@pytest.mark.parametrize("seed", list(seeds("tree")))
def test_trees(seed):
    rng = np.random.default_rng(seed)
    # The redundant formulation differentiates everything; small machines are enough for it.
    large = seed % 3 == 0
    machine = random_machine(rng, None if large else int(rng.integers(1, 6)))
    others = {"constrained": Constrained(machine), "embedded": Embedded(machine)}
    if not large:
        others["redundant"] = Redundant(machine)
    tree, maximal = Tree(machine), Maximal(machine)
    for _ in range(STATES):
        x, v, force = random_state(rng, machine)
        expected = joint_answers(tree, x, v, force)
        assert_agree("maximal", maximal_answers(maximal, x, v, force), expected)
        for name, eom in others.items():
            assert_agree(name, joint_answers(eom, x, v, force), expected)


@pytest.mark.first_cases(8)
@pytest.mark.parametrize("seed", list(seeds("closed")))
def test_closed_chains(seed):
    rng = np.random.default_rng(seed)
    machine, x0 = random_closed(rng)
    constrained, maximal = Constrained(machine), Maximal(machine)
    embedded = Embedded(machine, start=x0)
    for _ in range(STATES):
        x, v = closed_state(rng, constrained, x0)
        force = rng.normal(size=machine.nv) * 3
        expected = joint_answers(constrained, x, v, force)
        assert_agree("maximal", maximal_answers(maximal, x, v, force), expected)
        minimal = v[list(embedded.map.independent)]
        given = evaluate(embedded.functions["generalised_force"], x, force).ravel()
        a = evaluate(embedded.functions["forward"], x, minimal, given).ravel()
        motion = evaluate(embedded.functions["body_acceleration"], x, minimal, a)
        wrench = evaluate(embedded.functions["joint_wrench:joint_force"], x, minimal, force)
        power = evaluate(embedded.functions["power"], x, minimal, given)
        assert_agree("embedded", (motion, wrench, power), expected)
