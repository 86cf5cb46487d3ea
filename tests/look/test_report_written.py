"""A report is written whole, or one message says why not."""

import os
from pathlib import Path

import pytest

from framefree.files import whole
from framefree.look.report import ReportError


def test_a_full_disk_leaves_nothing_and_says_so(swing_run, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(whole.os, "fsync", full)
    place = tmp_path / "report.html"
    with pytest.raises(ReportError, match=r"report\.html` cannot be written: No space left"):
        swing_run.report(place)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_page_that_was_there(swing_run, tmp_path, monkeypatch):
    place = swing_run.report(tmp_path)
    before = place.read_bytes()

    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(whole.os, "replace", full)
    with pytest.raises(ReportError, match="No space left"):
        swing_run.report(tmp_path)
    assert place.read_bytes() == before
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_device_that_is_full_says_so(swing_run, tmp_path):
    link = tmp_path / "report.html"
    link.symlink_to("/dev/full")
    with pytest.raises(ReportError, match="No space left"):
        swing_run.report(link)


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_folder_that_is_read_only_says_so(swing_run, tmp_path, monkeypatch):
    """Who runs this may write everywhere, so that the system is made to refuse."""
    real = os.open

    def refuse(path, flags, *args, **options):
        if flags & os.O_CREAT:
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *args, **options)

    monkeypatch.setattr(whole.os, "open", refuse)
    with pytest.raises(ReportError, match=r"cannot be written: Permission denied"):
        swing_run.report(tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []
