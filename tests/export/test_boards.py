"""Controllers on Cortex-M processors in QEMU give what the desk gives, and fit."""

import numpy as np
import pytest
from exported_runs import arm_run, linear_run

from framefree.export import ExportedPart, ExportError
from framefree.export.board import missing_tools, run_on_board
from framefree.export.struct_c import BlockInC

needs_board = pytest.mark.skipif(bool(missing_tools()), reason="needs arm-none-eabi-gcc and QEMU")


@needs_board
@pytest.mark.slow
@pytest.mark.parametrize(("board", "single", "limit"), [("m4f", True, 1e-5), ("m7", False, 1e-14)])
def test_steps_on_a_board_are_those_of_the_desk(board, single, limit):
    for run in (linear_run(), arm_run()):
        part = ExportedPart(run, "law")
        result = run_on_board(BlockInC(part.block, single), part.steps, board, 20)
        wanted = part.steps.outputs[result.rows]
        assert np.abs(result.outputs - wanted).max() <= limit * np.abs(part.steps.outputs).max()
        assert 0 < result.stack <= result.ram < 4096
        assert 500 < result.flash < 16384
        assert 20 < result.instructions < 5000


@needs_board
@pytest.mark.slow
def test_the_quadcopter_controller_with_estimator_fits_a_cortex_m4f():
    from framefree.benchmarks.board import controller, difference

    part = controller()
    result = run_on_board(BlockInC(part.block, True), part.steps, "m4f", 50)
    assert result.flash < 128 * 1024
    assert result.ram < 16 * 1024
    assert result.instructions < 168_000
    assert difference(part, result, True) < 1e-5


def test_missing_tools_are_told_in_one_line(monkeypatch):
    monkeypatch.setenv("PATH", "")
    part = ExportedPart(linear_run(), "law", steps=5)
    with pytest.raises(ExportError, match=r"^`arm-none-eabi-gcc` is not installed; on Debian: apt"):
        run_on_board(BlockInC(part.block, True), part.steps)
