"""The quadcopter's model beside a recorded flight, and references beside recorded ones."""

from pathlib import Path

import numpy as np
import pytest

from framefree.control.references.flat_curves import FLIP, LOOP
from framefree.errors import FramefreeError
from framefree.gallery.scenarios.prototypes import recorded

FLIGHTS = Path(__file__).parents[3] / "shared" / "facts" / "flight"


def at_hand(name):
    path = FLIGHTS / name
    if not path.exists():
        pytest.skip("the recorded flights are not at hand")
    return path


def test_model_predicts_recorded_accelerations_and_rates():
    found = recorded.compare(at_hand("quad_validation.npz"))
    values = found.metrics()
    for name, unit, share in (
        ("force", "m_s2", 0.30),
        ("turning", "rad_s2", 0.45),
        ("rate", "rad_s", 0.45),
    ):
        residual = values[f"recorded_{name}_residual_{unit}"]
        assert residual < share * values[f"recorded_{name}_variation_{unit}"]
    # By axis: across the thrust most of what is measured is noise and drag that is not known.
    for name, shares in (("force", (0.72, 0.81, 0.17)), ("turning", (0.73, 0.39, 0.36))):
        for axis, share in zip("xyz", shares, strict=True):
            assert values[f"recorded_{name}_{axis}_residual_share"] == pytest.approx(
                share, abs=0.01
            )
    # Thrust and yaw, which the propellers make most of, are predicted best.
    up = found.force[:, 2] - found.force_model[:, 2]
    assert up.std() < 0.2 * found.force[:, 2].std()
    yaw = found.turning[:, 2] - found.turning_model[:, 2]
    assert yaw.std() < 0.4 * found.turning[:, 2].std()


def test_a_model_with_wrong_signs_does_not():
    path = at_hand("quad_validation.npz")
    right = recorded.compare(path)
    wrong = right.turning - (2 * right.offset[3:] - right.turning_model)
    assert wrong.std() > 2 * (right.turning - right.turning_model).std()


@pytest.mark.parametrize(
    ("manoeuvre", "key", "bound"), [(LOOP, "loop", 1.3e-3), (FLIP, "flip", 3e-4)]
)
def test_manoeuvres_are_the_recorded_ones(manoeuvre, key, bound):
    with np.load(at_hand("reference_profiles.npz")) as data:
        t, way = data[f"{key}_t"] - data[f"{key}_t"][0], np.asarray(data[f"{key}_dpos"], float)
    best = np.inf
    for start in np.linspace(0.05, 0.25, 81):
        s = 2 * np.clip((t - start) / manoeuvre.duration, 0, 1) - 1
        forward, up = manoeuvre.at(s)
        off = np.hypot(forward - way[:, 0], up - way[:, 2])
        best = min(best, float(off.max()))
    assert best < 2 * bound


def test_a_missing_record_is_named():
    with pytest.raises(FramefreeError, match=r"nothing\.npz"):
        recorded.compare("nothing.npz")
