"""Single precision: floats throughout, measured in every step and in the closed loop."""

import ctypes
import re
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from exported_runs import ROD, Linear, arm, arm_run, cart, linear_run

from framefree.control import ComputedTorque
from framefree.control.law import Command, Law
from framefree.control.references.frames import Circle
from framefree.control.tasks import (
    FrameControl,
    JointControl,
    LimitedTaskControl,
    StrictPriority,
    TaskControl,
    UdwadiaKalaba,
)
from framefree.export import ExportError, export_c
from framefree.export.compiler import build
from framefree.geometry import Moments
from framefree.identify.excitation import FourierMotion
from framefree.kernel.single_c import in_single
from framefree.machine import Body, Joint, Machine, Prismatic, Revolute
from framefree.machine.actuators import motors
from framefree.simulate import simulate

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


def test_types_constants_and_functions_become_single():
    text = (
        "double f(const double *x) { return 1.5 * sin(x[0]) + 2e-3 + fma(x[1], 3.0, (double)k); }"
    )
    wanted = (
        "float f(const float *x) { return 1.5f * sinf(x[0]) + 2e-3f + fmaf(x[1], 3.0f, (float)k); }"
    )
    assert in_single(text) == wanted


def test_whole_numbers_comments_and_own_names_stay():
    text = "/* 1.5 double sin(x) */ long row[12] = {3, 4}; maximum(n12, work[3]); my_sin(x);"
    assert in_single(text) == text


def test_constants_beyond_single_precision_stay_guards():
    assert in_single("1e-300") == "1.17549435e-38f"
    assert in_single("1e300") == "3.40282347e+38f"
    assert in_single("0.0") == "0.0f"


@needs_gcc
@pytest.mark.slow
def test_no_double_is_left_and_the_report_says_what_is_lost(tmp_path):
    report = export_c(arm_run(), "law", tmp_path, single=True).report
    assert report.step < 1e-4
    assert report.steps == 250
    assert report.loop.kept
    assert report.loop.rounded is None
    assert "1 percent" not in report.text()
    assert 0 < report.loop.apart < 1e-4
    # The double loop with the compiled controller is the run itself.
    off = np.sqrt(np.mean((arm_run().x - arm_run().reference["x"]) ** 2, axis=0))
    assert np.allclose(list(report.loop.double.values()), off, rtol=1e-9)
    for path in tmp_path.glob("controller*.[ch]"):
        code = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        assert not re.search(r"\bdouble\b|\bsin\(|\bcos\(|\d\.\d+[^\df]", code), path.name
    assert "Single precision: 250 steps" in (tmp_path / "README.md").read_text()


@needs_gcc
def test_a_law_that_loses_too_much_is_refused_with_its_figure(tmp_path):
    """A difference of large numbers: 1e6 (x + 1e6) - 1e12."""

    class Cancelling(Linear):
        def control(self, t, x, v, reference, memory):
            made = super().control(t, x, v, reference, memory)
            return made._replace(u=made.u + ((x + 1e5 * (1 + v)) - 1e5 * (1 + v)))

    run = simulate(
        cart(), Cancelling(cart()), x0=[0.3, -0.2], duration=0.3, dt=0.01, control_dt=0.01,
        progress=False,
    )  # fmt: skip
    with pytest.raises(ExportError) as told:
        export_c(run, "law", tmp_path, single=True)
    figures = re.fullmatch(
        r"`--single` is refused: `u\.\w+` differs by (\S+) of its recorded span from double "
        r"precision in one step, more than 0.0001; rounding what goes into the step changes it "
        r"by (\S+) already",
        str(told.value),
    )
    assert float(figures[1]) > 1e-3
    assert float(figures[2]) < 1e-6
    assert not list(tmp_path.iterdir())
    assert export_c(linear_run(), "law", tmp_path, single=True).report.step < 1e-5


@needs_gcc
def test_errors_from_a_motion_for_identification_are_told(tmp_path):
    """Its samples are named as those of every reference."""
    machine, law = arm(), ComputedTorque(arm(), stiffness=60.0, damping=16.0)
    motion = FourierMotion(machine, [0.1, 0.2], [[0.3, 0.2]], [[0.0, 0.0]], period=2.0)
    run = simulate(machine, law, motion, duration=0.1, dt=2e-3, control_dt=2e-3, progress=False)
    report = export_c(run, "law", tmp_path, single=True).report
    assert set(report.loop.double) == set(machine.v_names)
    assert report.loop.kept


@needs_gcc
@pytest.mark.parametrize("moves", [1e-15, 1e-5])
def test_commands_that_move_by_rounding_alone_are_constant(moves, tmp_path):
    """As those of a quadcopter that hovers; others are measured by their span, small as it is."""

    class Hovering(Linear):
        def control(self, t, x, v, reference, memory):
            made = super().control(t, x, v, reference, memory)
            return made._replace(u=2.5 + moves * made.u)

    run = simulate(
        cart(), Hovering(cart()), x0=[0.3, -0.2], duration=0.1, dt=0.01, control_dt=0.01,
        progress=False,
    )  # fmt: skip
    if moves < 1e-12:
        assert export_c(run, "law", tmp_path, single=True).report.step < 1e-7
        return
    with pytest.raises(ExportError, match="`--single` is refused"):
        export_c(run, "law", tmp_path, single=True)


@needs_gcc
def test_a_loop_that_rounding_leads_astray_is_reported(tmp_path):
    """A cart that rests where its law drives it away: rounding of its place grows by exp(10 t)."""
    body = Moments.of_body(2.0, (0, 0, 0), np.eye(3))
    joints = [Joint(name, Prismatic(name), "world", f"cart_{name}") for name in "xy"]
    machine = Machine([Body(f"cart_{name}", body) for name in "xy"], joints, gravity=(0, 0, 0))
    machine = machine.attach(*motors(machine.joints))

    @dataclass(frozen=True)
    class Repelling(Law):
        machine: Machine

        def control(self, t, x, v, reference, memory):
            return Command(ca.vertcat(200 * (10 * x[0] ** 2 - x[0]), -50 * x[1]))

    run = simulate(
        machine, Repelling(machine), x0=[0.1, 2.0], duration=1.9, dt=0.01, control_dt=0.01,
        progress=False,
    )  # fmt: skip
    report = export_c(run, "law", tmp_path, single=True).report
    assert report.step < 1e-4
    assert not report.loop.kept
    assert report.loop.apart > 0.05 < report.loop.rounded
    readme = (tmp_path / "README.md").read_text()
    assert "changes the motion by more than 1 percent and 1e-5 rad or m. With the law in" in readme
    assert f"the motions are {report.loop.rounded:.2g} apart" in readme


@cache
def chain_law(solver=None):
    """The tip of five rods on a circle and their posture, of whose rows three depend."""
    joints = [
        Joint(f"j{k}", Revolute("xy"[k % 2]), f"b{k - 1}" if k else "world", f"b{k}", (0, 0, -0.5))
        for k in range(5)
    ]
    machine = Machine([Body(f"b{k}", ROD) for k in range(5)], joints, name="chain")
    machine = machine.attach(*motors(machine.joints))
    levels = [[FrameControl("b4", "goal", 4.0, only="position")], [JointControl(machine, Kp=4.0)]]
    path = Circle("goal", (0.3, 0.2, -1.8), 0.1, 0.5)
    if solver is None:
        return LimitedTaskControl(machine, levels), path
    return TaskControl(machine, levels, solver), path


@pytest.mark.parametrize("solver", [UdwadiaKalaba(), StrictPriority()])
def test_rows_that_depend_on_others_are_known_in_single_precision_in_all_states(solver):
    law, path = chain_law(solver)
    rng = np.random.default_rng(6)
    given = (np.zeros(4000), *rng.uniform(-0.8, 0.8, (2, 4000, 5)))
    double = law.kernel(path, signals=False)(*given)
    single = law.kernel(path, signals=False, precision="single")(*given)
    assert np.abs(single - double).max() < 1e-4 * np.abs(double).max()


@pytest.mark.parametrize("in_c", [False, pytest.param(True, marks=needs_gcc)], ids=["llvm", "c"])
@pytest.mark.parametrize("solver", [UdwadiaKalaba(), StrictPriority()])
@pytest.mark.first_cases(2)
def test_rows_that_depend_on_others_are_known_in_single_precision(solver, in_c):
    law, path = chain_law(solver)
    rng = np.random.default_rng(5)
    given = (np.zeros(40), rng.uniform(-0.8, 0.8, (40, 5)), rng.normal(size=(40, 5)))
    double = law.kernel(path, signals=False)(*given)
    if in_c:
        text = law.c_source("law", path, signals=False).single()
        single = np.array([called(text, *row) for row in zip(*given, strict=True)])
    else:
        single = law.kernel(path, signals=False, precision="single")(*given)
    assert np.abs(single - double).max() < 1e-4 * np.abs(double).max()


def called(source, t, x, v):
    """Return what a law in C, in single precision, gives."""
    library = shared_library(source.source, source.header)
    out = np.zeros(5, np.float32)
    arrays = [np.atleast_1d(np.float32(one)) for one in (t, x, v)]
    library.law(*(ctypes.c_void_p(one.ctypes.data) for one in (*arrays, out)))
    return out


@cache
def shared_library(source, header):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "law.c").write_text(source)
        Path(folder, "law.h").write_text(header)
        target = Path(folder, "law.so")
        build([Path(folder, "law.c")], target, "-std=c99", "-O1", "-shared", "-fPIC")
        return ctypes.CDLL(str(target))


@needs_gcc
@pytest.mark.slow
def test_a_solver_within_limits_keeps_its_tolerances_in_single_precision(tmp_path):
    law, path = chain_law()
    run = simulate(law.machine, law, path, duration=1.0, dt=0.01, control_dt=0.01, progress=False)
    assert export_c(run, "law", tmp_path, single=True).report.step < 1e-4
