"""The page on exporting kernels does what it says."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "export.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.S | re.M)


@pytest.mark.slow
def test_examples_run(tmp_path, monkeypatch):
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    try:
        for block in blocks("python"):
            exec(block, names)
    finally:
        jax.config.update("jax_enable_x64", before)
    if shutil.which("gcc"):
        Path("board/main.c").write_text("".join(blocks("c")), encoding="ascii")
        for command in blocks("sh"):
            subprocess.run(command, shell=True, cwd="board", check=True)
        run = subprocess.run(["board/main"], capture_output=True, text=True, check=True)
        board = np.array(run.stdout.split(), dtype=float)
        np.testing.assert_allclose(board, names["desk"], rtol=1e-12)
