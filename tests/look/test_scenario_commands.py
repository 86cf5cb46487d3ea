"""The commands list, run and compare."""

import json
import sys
from dataclasses import replace

import pytest

from framefree import cli
from framefree.gallery.scenarios import SCENARIOS
from framefree.simulate import Run


@pytest.fixture
def command(monkeypatch, swing, tmp_path, capsys):
    """Run the command line in an empty folder, with one more scenario; return code and texts."""
    monkeypatch.setitem(SCENARIOS, swing.name, swing)
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["framefree", *arguments])
        with pytest.raises(SystemExit) as end:
            cli.main()
        texts = capsys.readouterr()
        return end.value.code or 0, texts.out, " ".join(texts.err.split())

    return call


def test_list_has_scenarios_and_machines(command):
    code, text, _ = command("list")
    assert code == 0
    assert "Two rods <swing> & settle under a `PD` law." in " ".join(text.split())
    assert "revolute-chain" in text
    code, text, _ = command("list", "--json")
    found = json.loads(text)
    assert found["scenarios"]["swing"].startswith("Two rods")
    assert all(words.endswith(".") for words in found["machines"].values()), found["machines"]


def test_every_scenario_of_the_gallery_has_a_line(command):
    assert all(len(scenario.summary()) > 10 for scenario in SCENARIOS.values())
    assert all(scenario() for scenario in SCENARIOS.values())


def test_run_prints_promises_metrics_and_the_place_of_the_report(command, tmp_path):
    code, text, _ = command("run", "swing", "--set", "duration=0.3")
    assert code == 0
    assert "✓ the last error is <small>" in text
    assert "last_error_rad" in text
    assert "report: runs/swing/report.html" in text
    assert (tmp_path / "runs/swing/report.html").exists()
    assert Run.load(tmp_path / "runs/swing/swing-0.parquet").t[-1] == 0.3


def test_results_are_numbered_refused_or_replaced(command, tmp_path):
    def duration(folder):
        return json.loads((tmp_path / folder / "metrics.json").read_text())["setting_duration"]

    for number, text in (("", "0.1"), ("-2", "0.2"), ("-3", "0.3")):
        code, _, errors = command("run", "swing", "--set", f"duration={text}", "--json")
        assert code == 0
        assert errors == (f"results: runs/swing{number}" if number else "")
    assert [duration(f"runs/swing{number}") for number in ("", "-2", "-3")] == [0.1, 0.2, 0.3]
    code, _, errors = command("run", "swing", "--out", "runs/swing")
    assert code == 2
    assert "`runs/swing` is not empty: choose another folder, or replace" in errors
    assert duration("runs/swing") == 0.1
    assert command("run", "swing", "--replace", "--set", "duration=0.4")[0] == 0
    assert command("run", "swing", "--replace", "--out", "runs/swing-2", "--json")[0] == 0
    assert [duration(f"runs/swing{number}") for number in ("", "-2", "-3")] == [0.4, 0.5, 0.3]
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"swing", "swing-2", "swing-3"}


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("show", "iiwa"), "iiwa.svg"),
        (("export", "iiwa", "mass"), "mass.h"),
        (("export", "crane", "law", "--out", "."), "Makefile"),
        (("export", "crane", "law", "--format", "fmu", "--out", "."), "crane-law-fmi2.fmu"),
        (("check", "iiwa", "--report", "thesis.html"), "thesis.html"),
        (("compare", "a", "a", "--out", "thesis.html"), "thesis.html"),
    ],
)
def test_files_of_the_user_are_not_overwritten(command, tmp_path, arguments, name):
    (tmp_path / name).write_text("mine")
    code, _, errors = command(*arguments)
    assert code == 2
    assert f"`{name}` exists and was not made by framefree" in errors
    assert "running" not in errors  # it is refused before any work
    assert (tmp_path / name).read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_run_prints_only_json_for_scripts(command, tmp_path):
    code, text, errors = command("run", "swing", "--json", "--out", "here/there")
    assert code == 0
    assert errors == ""
    metrics = json.loads(text)
    assert metrics == json.loads((tmp_path / "here/there/metrics.json").read_text())
    assert metrics["ok"] is True


def test_a_broken_promise_is_exit_code_1(command):
    code, text, _ = command("run", "swing", "--set", "bound=-1", "--set", "duration=0.1")
    assert code == 1
    assert "✗ the last error is <small>" in text
    code, text, _ = command("run", "swing", "--set", "bound=-1", "--json")
    assert code == 1
    assert json.loads(text)["ok"] is False


def test_a_run_that_explodes_is_exit_code_1_and_has_a_report(command):
    code, text, errors = command("run", "swing", "--set", "explode=true", "--set", "duration=9")
    assert code == 1
    assert "finite" in errors
    assert "report: runs/swing/report.html" in text


def test_interrupts_are_exit_code_130_and_have_a_report(command):
    code, text, errors = command("run", "swing", "--set", "stop_at=0", "--set", "duration=100")
    assert code == 130
    assert "Interrupted" in errors
    assert "report: runs/swing/report.html" in text


def test_an_interrupted_run_is_not_exported(command, tmp_path):
    """Nor do the scenario's other runs begin."""
    long = ("--set", "duration=100", "--set", "count=3")
    code, _, errors = command("export", "swing", "plant", "--set", "stop_at=0.01", *long)
    assert code == 130
    assert errors.startswith("running swing ...")
    assert not list(tmp_path.iterdir())


def test_an_export_of_a_run_too_short_for_its_metrics_is_refused(command, swing, monkeypatch):
    class Late(swing):
        def run(self, progress=None):
            made = super().run(progress)
            times = made.runs["swing-0"].t
            return replace(made, metrics={"late": times[times > 0.4].max()})

    monkeypatch.setitem(SCENARIOS, "swing", Late)
    code, _, errors = command("export", "swing", "plant", "--set", "duration=0.1")
    assert code == 2
    assert "error: `swing` cannot be evaluated with duration=0.1: zero-size array" in errors


def test_plants(command):
    pytest.importorskip("mujoco")
    code, text, _ = command("run", "swing", "--plant", "mujoco", "--json")
    assert code == 0
    assert json.loads(text)["setting_plant"] == "mujoco"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "swung"), "there is no scenario `swung`; did you mean `swing`?"),
        (("run", "qqqqqqqq"), "there is no scenario `qqqqqqqq`; the gallery has: "),
        (("run", "swing", "--set", "duration"), "`--set` takes KEY=VALUE, got `duration`"),
        (("run", "swing", "--set", "length=1"), "`swing` has no setting `length`"),
        (("run", "swing", "--set", "count=x"), "must be an integer, got x"),
        (("run", "swing", "--plant", "x"), "`--plant` must be native or mujoco, got `x`"),
        (("run", "swing", "--set", "duration=-1"), "duration"),
        (("compare", "a", "b"), "`a` is neither a folder with runs nor a Parquet file"),
    ],
)
def test_mistakes_of_scenarios_are_exit_code_2(command, tmp_path, arguments, words):
    code, _, errors = command(*arguments)
    assert code == 2
    assert words in errors
    assert list(tmp_path.iterdir()) == []


def test_files_that_cannot_be_written_are_exit_code_2(command, tmp_path):
    command("run", "swing", "--out", "a", "--json")
    (tmp_path / "page.html").mkdir()
    for arguments in (
        ("compare", "a", "a", "--out", "page.html"),
        ("run", "swing", "--out", "a/metrics.json"),
    ):
        code, _, errors = command(*arguments)
        assert code == 2
        assert "error: " in errors
        assert "Traceback" not in errors


def test_compare_prints_and_draws_both(command, tmp_path):
    command("run", "swing", "--out", "a", "--json")
    command("run", "swing", "--out", "b", "--json", "--set", "duration=0.3")
    code, text, _ = command("compare", "a", "b")
    assert code == 0
    assert "last error" in text
    assert " rad" in text
    assert "largest difference" not in text  # as far as both go, they are the same
    assert "figures: compare.html" in text
    page = (tmp_path / "compare.html").read_text(encoding="utf-8")
    assert "<title>a and b</title>" in page
    code, text, _ = command("compare", "a", "b", "--json", "--out", "sub/c.html")
    assert json.loads(text)["metrics"]["setting_duration"]["difference"] == pytest.approx(-0.2)
    assert (tmp_path / "sub/c.html").exists()
