"""Files are complete or absent; a place belongs to one process, and to none that is dead."""

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from framefree.errors import FramefreeError
from framefree.files import (
    PlaceTaken,
    check_place,
    exchange,
    is_taken,
    take,
    whole,
    write_file,
    write_files,
)

POSIX = pytest.mark.skipif(os.name != "posix", reason="of POSIX")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_folders_are_made_and_files_replaced(tmp_path):
    path = tmp_path / "new" / "spaced name é.txt"
    for content, found in (("ä", b"\xc3\xa4"), (b"b", b"b"), (lambda f: f.write(b"c"), b"c")):
        assert write_file(path, content) == path
        assert path.read_bytes() == found
    assert names(path.parent) == [path.name]


@pytest.mark.parametrize("error", [OSError(28, "No space left"), KeyboardInterrupt(), ValueError()])
def test_what_fails_half_way_changes_nothing(tmp_path, error):
    path, other = tmp_path / "a", tmp_path / "b"
    path.write_text("old")

    def fails(file):
        file.write(b"half")
        raise error

    with pytest.raises(type(error)):
        write_file(path, fails)
    with pytest.raises(type(error)):
        write_files({other: "first of two", path: fails})
    assert names(tmp_path) == ["a"]
    assert path.read_text() == "old"
    if isinstance(error, OSError):
        assert error.filename == str(path)


FULL = """
import resource, sys
from framefree.files import write_file
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    write_file(sys.argv[1], "x" * 1_000_000)
except OSError as error:
    print(error.filename)
"""


@POSIX
def test_the_systems_own_limit_changes_nothing(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    done = subprocess.run(
        [sys.executable, "-c", FULL, path], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(path)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a"]


@POSIX
def test_devices_and_pipes_are_written_to(tmp_path):
    assert write_file("/dev/null", "x") == Path("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    if Path("/dev/full").exists():
        with pytest.raises(OSError, match="No space left") as caught:
            write_file("/dev/full", "x")
        assert caught.value.filename == "/dev/full"
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_file(pipe, "through")
    reader.join(10)
    assert read == ["through"]
    assert names(tmp_path) == ["pipe"]


@POSIX
def test_links_and_permissions_stay(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    real.chmod(0o664)
    link.symlink_to("real")
    write_file(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o664
    usual = tmp_path / "usual"
    usual.write_text("")
    write_file(tmp_path / "written", "")
    assert usual.stat().st_mode == (tmp_path / "written").stat().st_mode


def test_only_what_we_have_made_is_replaced(tmp_path):
    ours, empty, other = tmp_path / "ours", tmp_path / "empty", tmp_path / "other"
    write_file(ours, f"<!-- {whole.MADE_BY} -->", guard=True)
    empty.write_text("")
    other.write_text("<svg>mine</svg>")
    for path in (ours, empty):
        check_place(path, guard=True)
        write_file(path, "new", guard=True)
    for refused in (check_place, lambda path, guard: write_file(path, "new", guard=guard)):
        with pytest.raises(FramefreeError, match=r"`.*other` exists and was not made by framefree"):
            refused(other, guard=True)
    assert other.read_text() == "<svg>mine</svg>"


def test_places_that_cannot_be_written_are_refused(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(FramefreeError, match="it is a folder"):
        check_place(tmp_path)
    with pytest.raises(FramefreeError, match=r"`.*file` is not a folder"):
        check_place(tmp_path / "file" / "below" / "page.html")
    check_place(tmp_path / "new" / "page.html")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(FramefreeError, match="is read-only"):
        check_place(tmp_path / "new" / "page.html")
    assert names(tmp_path) == ["file"]


def test_orphans_of_processes_that_were_killed_go(tmp_path):
    old, young = tmp_path / ".framefree-1.part", tmp_path / ".framefree-2.part"
    for orphan in (old, young):
        orphan.write_text("half")
    os.utime(old, (1e9, 1e9))
    write_file(tmp_path / "a", "")
    assert names(tmp_path) == [".framefree-2.part", "a"]


# ---------------------------------------------------------------------- places


HOLD = """
import sys, time
from pathlib import Path
from framefree.files import take
lock = take(Path(sys.argv[1]), "the place")
print("taken", flush=True)
time.sleep(600)
"""


@POSIX
def test_a_claim_lives_as_long_as_its_process(tmp_path):
    path = tmp_path / "lock"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "taken\n"
        assert is_taken(path)
        with pytest.raises(PlaceTaken, match=f"`here` is being written by process {process.pid} "):
            take(path, "here")
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert path.exists()
    assert not is_taken(path)
    lock = take(path, "here")
    assert is_taken(path)
    lock.release()
    lock.release()
    assert names(tmp_path) == []


def test_one_process_does_not_take_a_place_twice(tmp_path):
    path = tmp_path / "lock"
    lock = take(path, "here")
    with pytest.raises(PlaceTaken, match=f"by process {os.getpid()} "):
        take(path, "here")
    lock.release()
    take(path, "here").release()


@pytest.mark.parametrize("at_once", [True, False])
def test_folders_change_places(tmp_path, monkeypatch, at_once):
    if not at_once:
        monkeypatch.setattr("framefree.files.swap._at_once", lambda *_: False)
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        (folder / folder.name).write_text("")
    exchange(first, second, tmp_path / "spare")
    assert names(first) == ["second"]
    assert names(second) == ["first"]
    assert names(tmp_path) == ["first", "second"]
    with pytest.raises(OSError, match="nothing"):
        exchange(first, tmp_path / "nothing", tmp_path / "spare")
    assert names(tmp_path) == ["first", "second"]
