"""Exported blocks do in C what the run did, step by step and from the first step on."""

import shutil
import subprocess

import numpy as np
import pytest
from exported_runs import arm_run, limited_run, linear_run, top_run
from gallery_laws import replayed

from framefree.errors import FramefreeError
from framefree.export import ExportedPart, ExportError, export_c, export_fmu
from framefree.export.compiler import CompiledBlock, build
from framefree.export.struct_c import BlockInC
from framefree.simulate import simulate

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
RUNS = {"linear": linear_run, "arm": arm_run, "limited": limited_run, "top": top_run}
PARTS = [("linear", "law"), ("linear", "loop"), ("arm", "law"), ("top", "plant")]
SLOW = [("limited", "law"), ("limited", "loop"), ("arm", "loop"), ("arm", "plant")]


@needs_gcc
@pytest.mark.parametrize(
    ("name", "what"), [*PARTS, *(pytest.param(*one, marks=pytest.mark.slow) for one in SLOW)]
)
@pytest.mark.first_cases(1)
def test_replays_of_recorded_steps(name, what, tmp_path):
    run = RUNS[name]()
    export_c(run, what, tmp_path)
    told, code = replayed(tmp_path, "-fsanitize=address,undefined")
    assert code == 0
    assert told["steps"] == (len(run.t) - 1) * (2 if (name, what) == ("arm", "plant") else 1)
    assert told["largest_difference"] <= 1e-12
    assert told["free_running_difference"] <= 1e-9


@needs_gcc
def test_a_law_without_elementary_functions_agrees_to_the_bit(tmp_path):
    export_c(linear_run(), "law", tmp_path)
    told, _ = replayed(tmp_path)
    assert told["largest_difference"] == 0.0
    assert told["free_running_difference"] == 0.0


@needs_gcc
def test_the_bench_sees_a_wrong_number(tmp_path):
    export_c(linear_run(), "law", tmp_path)
    core = tmp_path / "controller_core.c"
    text = core.read_text()
    assert "3.1" in text
    core.write_text(text.replace("3.1", "3.1000001"))
    told, code = replayed(tmp_path)
    assert code == 1
    assert 1e-12 < told["largest_difference"] < 1e-5


@pytest.mark.parametrize("name", ["linear", "arm", pytest.param("limited", marks=pytest.mark.slow)])
def test_the_controller_is_the_law_side_of_the_run(name):
    """Its commands are those of the run, and each step's memory is where the next one begins."""
    run = RUNS[name]()
    steps = ExportedPart(run, "law").steps
    commands = run.signals.get("command", run.u)[: steps.rows]
    assert np.abs(steps.outputs - commands).max() <= 1e-12 * np.abs(commands).max()
    assert np.abs(steps.following[:-1] - steps.memory[1:]).max(initial=0) <= 1e-12


def test_a_short_run_goes_on_beyond_its_end():
    """A test-bench of more steps than the run has; its first rows are those of the run."""
    run = linear_run()
    short, long = ExportedPart(run, "law").steps, ExportedPart(run, "law", steps=300).steps
    assert (short.rows, long.rows) == (100, 300)
    assert np.array_equal(long.table[:100], short.table)
    assert np.abs(long.following[:-1] - long.memory[1:]).max() <= 1e-15
    with pytest.raises(ExportError, match="`steps` must be a number of steps from 1 on, got 0"):
        ExportedPart(run, "law", steps=0)


@pytest.mark.parametrize("what", ["law", "plant", "loop"])
def test_a_bench_has_the_steps_that_were_asked_for(what):
    """Also that of a plant, which makes two steps in each period of the law."""
    assert ExportedPart(arm_run(), what, steps=7).steps.rows == 7


def test_the_loop_is_the_run():
    run = arm_run()
    steps = ExportedPart(run, "loop").steps
    nx, nv = run.x.shape[1], run.v.shape[1]
    assert np.abs(steps.outputs[:, :nx] - run.x[1:]).max() <= 1e-12
    assert np.abs(steps.outputs[:, nx : nx + nv] - run.v[1:]).max() <= 1e-12
    assert np.abs(steps.outputs[:, nx + nv :] - run.u[:-1]).max() <= 1e-11


@needs_gcc
def test_a_compiled_controller_keeps_its_memory():
    part = ExportedPart(arm_run(), "law")
    controller, steps = CompiledBlock(BlockInC(part.block)), part.steps
    sizes = [sum(p.size for p in ports) for ports in part.block.groups.values()]
    for row, wanted in zip(steps.inputs, steps.outputs, strict=True):
        u = controller.step(sensors=row[: sizes[0]], reference=row[sizes[0] :])
        assert np.allclose(u, wanted, rtol=0, atol=1e-9 * np.abs(steps.outputs).max())


@needs_gcc
def test_wrong_sizes_are_refused_in_one_line():
    controller = CompiledBlock(BlockInC(ExportedPart(linear_run(), "law").block))
    with pytest.raises(ExportError, match=r"^`x` of `sensors` must have 2 numbers, got 3$"):
        controller.step(sensors={"t": 0.0, "x": [1, 2, 3], "v": [0, 0]})
    with pytest.raises(ExportError, match=r"^`sensors` needs `v`; given: t, x$"):
        controller.step(sensors={"t": 0.0, "x": [1, 2]})


def test_a_missing_compiler_is_told_in_one_line(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(ExportError, match=r"^the compiler `no-such-compiler` of CC is not inst"):
        CompiledBlock(BlockInC(ExportedPart(linear_run(), "law").block))


@needs_gcc
def test_a_compiler_with_arguments(monkeypatch, tmp_path):
    """CC as build systems set it; and one that makes nothing is told, whatever it says."""
    source, target = tmp_path / "one.c", tmp_path / "one.so"
    source.write_text("int one(void) { return ONE; }\n")
    monkeypatch.setenv("CC", "gcc -DONE=1")
    assert build([source], target, "-shared", "-fPIC") == target
    for words in ("false", "true"):
        monkeypatch.setenv("CC", words)
        with pytest.raises(ExportError, match=r"^\w+ failed: \S"):
            build([source], tmp_path / "other.so")


def test_names_that_c_cannot_have(tmp_path):
    for name in ("2nd", "my law", "double", "größe", "", 5):
        with pytest.raises(ExportError, match=f"^`{name}` is no name for functions in C"):
            export_c(linear_run(), "law", tmp_path, name=name)
    assert not list(tmp_path.iterdir())


def test_folders_that_cannot_be_made_are_told_in_one_line(tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    for export in (export_c, export_fmu):
        with pytest.raises(FramefreeError, match=r"^`.*` cannot be written: `.*file` is not a"):
            export(linear_run(), "law", file / "folder")
        with pytest.raises(FramefreeError, match=r"`/proc/none.*` cannot be (made|wr)"):
            export(linear_run(), "law", "/proc/none/folder")
    assert file.read_text() == "mine"


def test_another_name(tmp_path):
    paths = export_c(linear_run(), "law", tmp_path, name="pilot").paths
    assert {"pilot.h", "pilot_core.c", "main.c", "CMakeLists.txt"} <= {p.name for p in paths}
    assert "void pilot_step(const pilot_sensors *sensors" in (tmp_path / "pilot.h").read_text()


def test_an_export_replaces_one_before_it(tmp_path):
    first = export_c(linear_run(), "law", tmp_path).paths
    assert export_c(linear_run(), "law", tmp_path).paths == first


def test_laws_in_python_and_runs_without_a_law_are_refused(tmp_path):
    machine = linear_run().machine
    run = simulate(machine, lambda t, x, v: -x, duration=0.05, dt=0.01, progress=False)
    with pytest.raises(Exception, match=r"is evaluated in Python and cannot be compiled"):
        export_c(run, "law", tmp_path)
    with pytest.raises(ExportError, match="this run has no law"):
        export_c(top_run(), "law", tmp_path)
    with pytest.raises(ExportError, match="`what` must be one of law, plant, loop"):
        export_c(top_run(), "plan", tmp_path)


def test_what_is_no_run_is_told_in_one_line(tmp_path):
    for export in (export_c, export_fmu):
        with pytest.raises(ExportError, match=r"^`run` must be a run that `simulate` has made"):
            export("quad-loop", "law", tmp_path)
    with pytest.raises(ExportError, match=r"^`steps` must be a number of steps from 1 on, got 1.5"):
        export_c(linear_run(), "law", tmp_path, steps=1.5)
    for versions in (4, (), (3, 1)):
        with pytest.raises(ExportError, match=r"^`versions` of FMI must be of \(2, 3\), got"):
            export_fmu(linear_run(), "law", tmp_path, versions=versions)
    assert not list(tmp_path.iterdir())


@needs_gcc
@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs CMake")
@pytest.mark.parametrize("name", ["controller", "test", "bench", "m"])
@pytest.mark.first_cases(2)
def test_cmake_builds_and_ctest_replays(name, tmp_path):
    """Under names, too, that targets of CMake and libraries have."""
    export_c(linear_run(), "law", tmp_path, name=name)
    build = tmp_path / "build"
    for words in (["cmake", "-S", ".", "-B", "build"], ["cmake", "--build", "build"]):
        subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    subprocess.run(["ctest"], cwd=build, check=True, capture_output=True)
