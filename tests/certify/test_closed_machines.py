"""Every closed machine of the gallery passes, at configurations where loops determine motion."""

import numpy as np
import pytest

from framefree.certify import Verdict, check
from framefree.certify.subject import Subject
from framefree.gallery import MACHINES
from framefree.machine.closure import WELL_POSED, LoopClosure

CLOSED = ["crane", "five-bar", "four-bars", "two-armed-robot-with-object"]


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.first_cases(1)
def test_closed_machines_of_the_gallery_pass(name):
    report = check(MACHINES[name](), samples=64)
    assert [f.name for f in report.findings if f.verdict is Verdict.FAIL] == []
    (agreement,) = (f for f in report.findings if f.name == "agreement_embedded_residual")
    assert agreement.verdict is Verdict.PASS


@pytest.mark.parametrize("name", ["crane", "four-bars"])
def test_states_are_apart_from_singular_positions_and_within_limits(name):
    machine = MACHINES[name]()
    x = Subject(machine, {}).closed_configurations(np.random.default_rng(0), 24)
    assert len(x) > 3
    values = np.linalg.svd(LoopClosure(machine).jacobians(x), compute_uv=False)
    counted = np.where(values > 1e-9 * values[:, :1], values, np.inf).min(axis=1)
    assert (counted >= WELL_POSED * values[:, 0]).all()
    for row in x:
        machine.validate(row, limits=True)
