"""The cache of compiled code: private, verified, shared, limited, and never in the way."""

import os
import stat
import subprocess
import sys
import time

import casadi as ca
import numpy as np
import pytest

from framefree.kernel import build as build_module
from framefree.kernel import cache, compile, emission
from framefree.kernel.target import host

KEY = bytes(range(32))
POSIX = pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FRAMEFREE_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("FRAMEFREE_CACHE", raising=False)
    return tmp_path / "kernels"


def function(factor=2.0) -> ca.Function:
    x = ca.SX.sym("x", 3)
    return ca.Function("f", [x], [factor * ca.sin(x)])


@pytest.fixture
def compiled(monkeypatch):
    """Count how often LLVM is asked to compile."""
    calls = []
    real = emission.compile_object

    def counted(*arguments):
        calls.append(1)
        return real(*arguments)

    monkeypatch.setattr(emission, "compile_object", counted)
    return calls


def test_second_compilation_loads(folder, compiled):
    first, second = compile(function()), compile(function())
    assert len(compiled) == 1
    np.testing.assert_array_equal(first(np.ones(3)), second(np.ones(3)))


def test_key_tells_apart(folder, compiled):
    compile(function())
    compile(function(3.0))
    compile(function(), lanes=1)
    compile(function(), shapes={"i0": (3, 1)})
    assert len(compiled) == 4
    ports = build_module.build.__globals__["Port"]("x", (3,))
    keys = {build_module.graph_key(function(), (ports,), (ports,), host(n)) for n in (1, 2, 4, 8)}
    assert len(keys) == 4


def test_a_loaded_kernel_rolls_out(folder, compiled):
    x = ca.SX.sym("x", 2)
    step = ca.Function("step", [x], [ca.cos(x)], ["x"], ["x_next"])
    first, second = compile(step), compile(step)
    assert len(compiled) == 1
    one, two = (kernel.rollout([0.1, 0.2], steps=9)["x"] for kernel in (first, second))
    np.testing.assert_array_equal(one, two)


def test_can_be_turned_off(folder, compiled, monkeypatch):
    compile(function(), cache=False)
    assert not folder.exists()
    for word in ("off", "0", "OFF", "no"):
        monkeypatch.setenv("FRAMEFREE_CACHE", word)
        compile(function())
        assert not folder.exists()
    assert len(compiled) == 5


@POSIX
def test_is_private(folder):
    compile(function())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for entry in folder.iterdir():
        assert stat.S_IMODE(entry.stat().st_mode) == 0o600


@POSIX
@pytest.mark.parametrize("mode", [0o755, 0o770, 0o777, 0o701])
def test_open_folder_is_not_used(folder, compiled, mode):
    compile(function())
    folder.chmod(mode)
    compile(function())
    assert len(compiled) == 2
    folder.chmod(0o700)
    compile(function())
    assert len(compiled) == 2


@POSIX
def test_folder_behind_a_link_is_not_used(folder, compiled, tmp_path):
    compile(function())
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    compile(function())
    assert len(compiled) == 2


@POSIX
def test_entry_behind_a_link_or_open_to_others_is_not_used(folder, compiled, tmp_path):
    compile(function())
    entry = next(folder.iterdir())
    entry.chmod(0o622)
    compile(function())
    assert len(compiled) == 2
    entry.rename(tmp_path / "entry")
    entry.symlink_to(tmp_path / "entry")
    assert cache.load(bytes.fromhex(entry.name.split(".")[0])) is None
    compile(function())
    assert len(compiled) == 3
    assert not entry.is_symlink()


@POSIX
def test_folder_of_another_user_is_not_used(folder, compiled, monkeypatch):
    compile(function())
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    compile(function())
    assert len(compiled) == 2


def test_every_damage_is_noticed(folder):
    cache.store(KEY, b"content" * 100)
    entry = folder / f"{KEY.hex()}.kernel"
    whole = entry.read_bytes()
    assert cache.load(KEY) == b"content" * 100
    rng = np.random.default_rng(0)
    for place in rng.integers(len(whole), size=100):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        entry.write_bytes(damaged)
        assert cache.load(KEY) is None
    for length in [0, 1, 10, 40, 60, len(whole) - 1]:
        entry.write_bytes(whole[:length])
        assert cache.load(KEY) is None
    entry.write_bytes(whole + b"x")
    assert cache.load(KEY) is None
    entry.write_bytes(whole)
    assert cache.load(KEY) == b"content" * 100


def test_entry_under_a_foreign_name_is_not_used(folder):
    other = bytes(32)
    cache.store(KEY, b"content")
    (folder / f"{KEY.hex()}.kernel").rename(folder / f"{other.hex()}.kernel")
    assert cache.load(other) is None
    assert cache.load(KEY) is None


def test_damaged_entry_is_rebuilt(folder, compiled):
    compile(function())
    entry = next(folder.iterdir())
    entry.write_bytes(b"garbage")
    kernel = compile(function())
    assert len(compiled) == 2
    np.testing.assert_allclose(kernel(np.ones(3)), 2 * np.sin(1))
    compile(function())
    assert len(compiled) == 2


def test_limit_removes_what_was_not_used_for_longest(folder, monkeypatch):
    monkeypatch.setenv("FRAMEFREE_CACHE_MB", "0.01")
    keys = [bytes([k]) * 32 for k in range(6)]
    for age, key in enumerate(keys[:5]):
        cache.store(key, bytes(1500))
        os.utime(folder / f"{key.hex()}.kernel", (1e9 + age, 1e9 + age))
    assert cache.load(keys[0]) is not None  # used now: the youngest
    cache.store(keys[5], bytes(4000))
    assert cache.load(keys[0]) is not None
    assert cache.load(keys[1]) is None
    assert cache.load(keys[5]) is not None
    assert sum(entry.stat().st_size for entry in folder.iterdir()) <= 10_000


def test_orphans_are_removed(folder):
    cache.store(KEY, b"content")
    orphan, young = folder / "abc.part", folder / "def.part"
    for one in (orphan, young):
        one.write_bytes(b"half")
    os.utime(orphan, (time.time() - 1e5,) * 2)
    cache.store(bytes(32), b"content")
    assert not orphan.exists()
    assert young.exists()


def test_unusable_place_is_no_error(tmp_path, monkeypatch, compiled):
    blocker = tmp_path / "file"
    blocker.write_text("not a folder")
    monkeypatch.setenv("FRAMEFREE_CACHE_DIR", str(blocker))
    compile(function())
    kernel = compile(function())
    assert len(compiled) == 2
    np.testing.assert_allclose(kernel(np.ones(3)), 2 * np.sin(1))


@POSIX
@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may write everywhere")
def test_unwritable_place_is_no_error(tmp_path, monkeypatch, compiled):
    tmp_path.chmod(0o500)
    monkeypatch.setenv("FRAMEFREE_CACHE_DIR", str(tmp_path / "sub"))
    compile(function())
    compile(function())
    assert len(compiled) == 2


def test_full_disk_is_no_error(folder, compiled, monkeypatch):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    compile(function())
    assert list(folder.iterdir()) == []


@POSIX
@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "huge"])
def test_what_is_no_file_is_not_used_and_does_not_hang(folder, compiled, kind):
    compile(function())
    entry = next(folder.iterdir())
    entry.unlink()
    if kind == "pipe":
        os.mkfifo(entry, 0o600)
    elif kind == "folder":
        entry.mkdir(0o700)
    elif kind == "device":
        entry.symlink_to("/dev/zero")
    else:
        with entry.open("wb") as file:
            file.truncate(1 << 40)
        entry.chmod(0o600)
    kernel = compile(function())
    assert len(compiled) == 2
    np.testing.assert_allclose(kernel(np.ones(3)), 2 * np.sin(1))


NO_HOME = """
import os, pwd, sys
def nobody(uid):
    raise KeyError(f"getpwuid(): uid not found: {uid}")
pwd.getpwuid = nobody
os.environ.pop("HOME", None)
import casadi as ca, numpy as np
from framefree.kernel import compile
for factor in (1, 2):
    x = ca.SX.sym("x", 3)
    kernel = compile(ca.Function("f", [x], [factor * ca.sin(x)]), cache=sys.argv[1] == "cache")
    assert np.allclose(kernel(np.ones(3)), factor * np.sin(1))
print("fine")
"""


@POSIX
@pytest.mark.parametrize("setting", ["cache", "argument", "environment"])
@pytest.mark.first_cases(1)
def test_a_user_without_a_home_gets_one_warning_and_no_cache(tmp_path, setting):
    """As in a container that is run with a user number of its own."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("HOME", "XDG_CACHE_HOME", "FRAMEFREE_CACHE_DIR", "FRAMEFREE_CACHE")
    }
    if setting == "environment":
        environment["FRAMEFREE_CACHE"] = "off"
    done = subprocess.run(
        [sys.executable, "-c", NO_HOME, "argument" if setting == "argument" else "cache"],
        capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=120, check=False,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("fine\n", 0), done.stderr
    assert done.stderr.count("this user has no home folder") == (setting == "cache")
    assert list(tmp_path.iterdir()) == []


def test_a_relative_place_of_caches_is_ignored(tmp_path, monkeypatch):
    """As the specification of XDG_CACHE_HOME demands: it would follow the working folder."""
    monkeypatch.delenv("FRAMEFREE_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "caches")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.place().is_relative_to(tmp_path)


WORK = """
import casadi as ca, numpy as np, sys
from framefree.kernel import compile
for k in range(12):
    x = ca.SX.sym("x", 3)
    kernel = compile(ca.Function("f", [x], [(k % 4 + 1) * ca.sin(x)]))
    assert np.allclose(kernel(np.ones(3)), (k % 4 + 1) * np.sin(1))
print("fine")
"""


def test_two_processes_at_once(folder):
    several = [
        subprocess.Popen([sys.executable, "-c", WORK], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for process in several:
        output, _ = process.communicate(timeout=120)
        assert output == "fine\n"
        assert process.returncode == 0
    assert len(list(folder.iterdir())) == 4
    assert all(entry.suffix == ".kernel" for entry in folder.iterdir())
