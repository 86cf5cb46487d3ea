"""What MuJoCo warns of is told by us, and not written to a file in the current folder."""

import threading
import warnings

import pytest

from framefree.errors import FramefreeWarning
from framefree.machine.formats.mjcf_engine import mujoco_messages, mujoco_warnings

mujoco = pytest.importorskip("mujoco")

BALL = '<mujoco><worldbody><body><joint/><geom size="1"/></body></worldbody></mujoco>'


def unstable(times=1):
    """Make MuJoCo warn, at other times each time."""
    model = mujoco.MjModel.from_xml_string(BALL)
    data = mujoco.MjData(model)
    for k in range(times):
        data.time, data.qpos[0] = k, float("nan")
        mujoco.mj_step(model, data)
        data.warning.number[:] = 0


@pytest.fixture(autouse=True)
def empty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield
    assert list(tmp_path.iterdir()) == []
    assert mujoco.get_mju_user_warning() is None


def test_warnings_are_ours_and_come_once():
    words = "MuJoCo: .*QPOS at DOF 0.*Time = 0.0"
    with pytest.warns(FramefreeWarning, match=words) as warned, mujoco_warnings():
        unstable(3)
    assert len(warned) == 1
    with warnings.catch_warnings(), mujoco_warnings():
        warnings.simplefilter("error")


def test_the_users_own_handler_comes_back():
    heard = []
    mujoco.set_mju_user_warning(heard.append)
    try:
        with mujoco_messages() as messages:
            unstable()
        assert len(messages) == 1
        assert heard == []
        unstable()
        assert len(heard) == 1
    finally:
        mujoco.set_mju_user_warning(None)


def test_several_listen_at_once():
    """Whoever ends first takes nothing from the others."""
    found = []

    def listen(begin, end):
        with mujoco_messages() as messages:
            begin.set()
            end.wait(10)
            unstable()
        found.append(len(messages))

    begun, release = threading.Event(), threading.Event()
    thread = threading.Thread(target=listen, args=(begun, release))
    with mujoco_messages() as messages:
        thread.start()
        begun.wait(10)
    release.set()
    thread.join(10)
    assert found == [1]
    assert messages == []
