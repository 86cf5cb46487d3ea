"""Single precision: floats throughout, measured in every step and in the closed loop."""

import re
import shutil

import numpy as np
import pytest
from exported_runs import Linear, arm_run, cart, linear_run

from framefree.export import ExportError, export_c
from framefree.kernel.single_c import in_single
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
    with pytest.raises(ExportError, match=r"`--single` is refused: `u\.\w+` differs by \S+ of its"):
        export_c(run, "law", tmp_path, single=True)
    assert not list(tmp_path.iterdir())
    assert export_c(linear_run(), "law", tmp_path, single=True).report.step < 1e-5
