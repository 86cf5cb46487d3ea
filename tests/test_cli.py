"""The command line: versions, helpful errors, exit codes, output for scripts."""

import json
import subprocess
import sys

import pytest

import framefree
from framefree.cli.arguments import scenario_of


def framefree_command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "framefree.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_version():
    assert framefree_command("--version").stdout.strip() == f"framefree {framefree.__version__}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("bench", "nothing"), "there is no benchmark `nothing`; choose one of: kernel"),
        (("show", "nothing"), "`nothing` is neither a file nor a machine of the gallery"),
        (("check", "quadcoptr"), "a machine of the gallery; did you mean `quadcopter`"),
        (("bench", "kernal"), "there is no benchmark `kernal`; did you mean `kernel`? choose"),
        (("check", "iiwa", "--base", "free"), "the base of `iiwa` cannot be free: the machine"),
        (("show", "crane", "--base", "x"), "`base` must be one of None, 'free', 'fixed', got 'x'"),
        (("check", "nothing.urdf"), "`nothing.urdf` does not exist"),
        (("run", "heavy-tob"), "there is no scenario `heavy-tob`; did you mean `heavy-top`?"),
        (("run", "heavy-top", "--set", "nothing=1"), "`heavy-top` has no setting `nothing`"),
        (
            ("compare", "nothing", "nothing"),
            "`nothing` is neither a folder with runs nor a Parquet",
        ),
        (
            ("learn", "heavy-top", "--out", "nowhere"),
            "`heavy-top` declares nothing that is to be learned; scenarios that do: learned-chain",
        ),
        (("learn", "learnt-chain", "--out", "nowhere"), "did you mean `learned-chain`"),
        (("export", "scara", "lawx"), "called `lawx` to export; did you mean `law`?"),
        (("export", "iiwa", "nothing"), "`nothing` is not a quantity of the tree formulation"),
        (("export", "iiwa", "mass", "--formulation", "x"), "there is no formulation `x`"),
        (("export", "iiwa", "mass", "--single"), "`--single` is for law, plant and loop of a"),
        (("export", "iiwa", "mass", "--name", "2nd"), "`2nd` is no name for functions in C"),
        (("export", "iiwa", "mass", "--set", "a=1"), "`--set` is for law, plant and loop of a"),
        (("export", "crane", "law", "--base", "fixed"), "`--base` is for quantities of a machine"),
        (("export", "crane", "law", "--name", "2nd"), "`2nd` is no name for functions in C"),
        (("export", "crane", "law", "--format", "fmu", "--single"), "leave out `--single`"),
        (("export", "crane", "law", "--format", "x"), "`--format` must be one of c, fmu, got `x`"),
        (("export", "crane", "law", "--out", "/dev/null/x"), "`/dev/null` is not a folder"),
        (("run", "heavy-top", "--plant", "mujco"), "got `mujco`; did you mean `mujoco`?"),
        (("run", "heavy-top", "--out", "/proc/none/x"), "`/proc/none/x` cannot be made"),
        (("export", "iiwa", "law"), "`iiwa` is a machine; this needs a scenario"),
        (("view", "iiwa", "--frame", "tool"), "add `--live`"),
        (("check", "/"), "`/` is a folder: give a file"),
        (("campaign", "heavy-top", "--vary", "spn=1:2", "--runs", "2"), "did you mean `spin`?"),
        (
            ("export", "crane", "law", "--format", "fmu", "--out", "/dev/null/x"),
            "`/dev/null` is not a folder",
        ),
    ],
)
def test_mistakes_end_with_a_message(arguments, words):
    done = framefree_command(*arguments)
    assert done.returncode == 2
    assert words in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_list_names_the_gallery():
    done = framefree_command("list")
    assert done.returncode == 0
    assert "heavy-top" in done.stdout
    assert "iiwa" in done.stdout


def test_help_of_a_scenario_lists_its_settings():
    done = framefree_command("run", "heavy-top", "--help")
    assert done.returncode == 0
    assert "-4.61538" in done.stdout
    assert "Step of the integrator, s." in done.stdout
    assert "----" not in done.stdout
    assert "settling_s" not in done.stdout
    assert "energy_drift_j" in done.stdout  # said of several scenarios, by a base
    assert "-4.61538" not in framefree_command("run", "--help").stdout


def test_a_missing_extra_is_named_before_anything_runs(monkeypatch):
    monkeypatch.setattr("framefree.gallery.shared.scenario.find_spec", lambda name: None)
    with pytest.raises(framefree.FramefreeError, match=r'pip install "framefree\[learn\]"'):
        scenario_of("learned-wall", [], None)
    assert scenario_of("heavy-top", [], None).name == "heavy-top"


def test_run_of_the_gallery(tmp_path):
    arguments = ("--set", "long_steps=2000", "--json", "--out", str(tmp_path))
    done = framefree_command("run", "heavy-top", *arguments)
    assert done.returncode == 0
    assert json.loads(done.stdout)["ok"] is True
    assert (tmp_path / "report.html").stat().st_size > 1_000_000


def test_check_prints_json_and_succeeds():
    done = framefree_command("check", "iiwa", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["skew_residual_verdict"] == "pass"


def test_check_of_a_broken_machine_fails(tmp_path):
    file = tmp_path / "broken.urdf"
    file.write_text(framefree.machine.Machine.to_urdf(_light_tip()))
    done = framefree_command("check", str(file), "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["failures"]


def test_export_writes_c(tmp_path):
    done = framefree_command("export", "iiwa", "mass", "--out", str(tmp_path))
    assert done.returncode == 0
    assert {path.name for path in tmp_path.iterdir()} == {"mass.c", "mass.h"}
    named = framefree_command(
        "export", "iiwa", "mass", "--name", "arm", "--out", str(tmp_path / "a")
    )
    assert named.returncode == 0
    assert "void arm(const double *x" in (tmp_path / "a/arm.h").read_text()


def test_show_draws(tmp_path):
    picture = tmp_path / "iiwa.svg"
    done = framefree_command("show", "iiwa", "--picture", str(picture))
    assert done.returncode == 0
    assert "joint7" in done.stdout
    assert picture.read_text().startswith("<?xml") or "<svg" in picture.read_text()


@pytest.mark.parametrize("name", ["auv-arm", "chain", "quadcopter", "rover-arm"])
def test_vehicles_chains_and_multicopters_can_be_named(name, tmp_path):
    picture = tmp_path / "machine.svg"
    assert framefree_command("show", name, "--picture", str(picture)).returncode == 0
    assert framefree_command("export", name, "mass", "--out", str(tmp_path)).returncode == 0
    assert {"machine.svg", "mass.c", "mass.h"} == {path.name for path in tmp_path.iterdir()}


def test_the_base_of_a_machine_of_the_gallery_is_held(tmp_path):
    done = framefree_command(
        "show", "space-arm", "--base", "fixed", "--picture", f"{tmp_path}/a.svg"
    )
    assert done.returncode == 0
    assert "6 velocities" in done.stdout


def test_a_folder_of_the_same_name_does_not_hide_a_machine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wheel").mkdir()
    assert framefree_command("show", "wheel").returncode == 0


def _light_tip():
    """A pendulum whose tip joint moves nothing: its mass matrix is singular."""
    from framefree import Body, Joint, Machine, Moments
    from framefree.machine import Revolute

    rod = Moments.of_body(1.0, (0, 0, 0.5), [[0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.01]])
    return Machine(
        (Body("rod", rod), Body("tip", None)),
        (
            Joint("swing", Revolute("x"), "world", "rod"),
            Joint("spin", Revolute("z"), "rod", "tip", parent_pose=(0, 0, 1)),
        ),
        name="pendulum",
    )


def test_every_command_that_takes_a_file_takes_packages_and_left_out_parts(tmp_path):
    pytest.importorskip("mujoco")
    file = tmp_path / "arm.xml"
    file.write_text(
        '<mujoco><worldbody><body name="b"><joint name="j"/><geom size="0.1"/></body></worldbody>'
        '<actuator><motor name="m" joint="j"/></actuator></mujoco>'
    )
    options = ("--packages", str(tmp_path), "--without", "actuator")
    shown = framefree_command("show", str(file), *options, "--picture", str(tmp_path / "a.svg"))
    assert shown.returncode == 0
    assert "0 inputs" in " ".join(shown.stdout.split())
    assert framefree_command("check", str(file), *options, "--json").returncode == 0
    out = ("--out", str(tmp_path))
    assert framefree_command("export", str(file), "mass", *options, *out).returncode == 0
    wrong = framefree_command("show", "iiwa", *options)
    assert wrong.returncode == 2
    assert "is no file" in wrong.stderr
