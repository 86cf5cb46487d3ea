"""Where a page looks from: the machine is seen, as a whole and as large as can be."""

import numpy as np
import pytest

from framefree.gallery import MACHINES
from framefree.look.view import view
from framefree.look.view.camera import FOV, free_part, placed

PAGES = [(1400, 900), (1000, 560), (400, 800), (390, 700), (700, 900)]


def seen(points, place, width, height):
    """Return where points are on a page, in halves of it from its middle."""
    ahead = place.look_at - place.position
    ahead = ahead / np.linalg.norm(ahead)
    right = np.cross(ahead, [0, 0, 1.0])
    right /= np.linalg.norm(right)
    local = (points - place.position) @ np.stack([right, np.cross(right, ahead), ahead], axis=1)
    assert (local[:, 2] > 0).all()
    slopes = np.tan(FOV / 2) * np.array([width / height, 1.0])
    return local[:, :2] / local[:, 2:] / slopes


@pytest.mark.parametrize("size", PAGES)
@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 0.1, 0.1), (0.1, 0.1, 9), (3, 4, 0)])
def test_a_machine_is_within_what_the_controls_leave_free(size, shape):
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (40, 3)) * shape + [10.0, -3.0, 1.0]
    on_page, (low, high) = seen(points, placed(points, *size), *size), free_part(*size)
    assert (on_page > low - 1e-9).all()
    assert (on_page < high + 1e-9).all()
    # It fills it: in one direction at least by two thirds.
    assert (np.ptp(on_page, axis=0) / (high - low)).max() > 0.66


@pytest.mark.parametrize("name", ["ship-arm", "quadruped", "crane", "chain"])
def test_all_of_a_machine_is_seen_at_first(name):
    machine = MACHINES[name]()
    with view(machine, port=18690) as shown:
        points = shown.drawing.corners(shown.poses)
        place = placed(points, 1400, 900)
        np.testing.assert_allclose(shown.server.initial_camera.position, place.position)
        assert np.ptp(points, axis=0).max() > 0.3 * shown.drawing.reach


def test_a_run_is_seen_from_where_all_of_its_motion_is(swing_run):
    with view(swing_run, port=18690) as shown:
        camera = shown.server.initial_camera
        place = type("", (), {"position": camera.position, "look_at": camera.look_at})
        for row in range(0, len(swing_run), 25):
            points = shown.drawing.corners(shown.poses_of(swing_run.x[row]))
            assert np.abs(seen(points, place, 1400, 900)).max() < 1.0
