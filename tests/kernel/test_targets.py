"""Processors other than this one: without fused products, and with wider registers."""

import platform
import shutil
import subprocess
from dataclasses import replace

import llvmlite.binding as llvm
import numpy as np
import pytest
from test_same_bits import everything, states

from framefree.kernel import emission, interpreter, native
from framefree.kernel import kernel as kernel_module
from framefree.kernel.agreed import EXTERNALS, LIBM
from framefree.kernel.call import Caller
from framefree.kernel.optimise import optimise
from framefree.kernel.program import lay_out
from framefree.kernel.reading import read
from framefree.kernel.target import Target, host

ARM_GCC = "aarch64-linux-gnu-gcc"
X86 = pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="x86 only")
PLAIN = Target("x86-64", "+sse2", lanes=2, fma=False, rounding=False, spreads=False)
WIDE = Target(
    "skylake-avx512", "+avx512f,+avx2,+fma", lanes=8, fma=True, rounding=True, spreads=True
)


def object_for(target: Target) -> bytes:
    function = everything()
    inputs, outputs = kernel_module._ports(function, {})
    program = lay_out(optimise(read(function, inputs, outputs), fma=target.fma))
    return native.compile_object(emission.assembly(program, target), target)


@X86
def test_a_processor_without_fused_products():
    function = everything()
    inputs, outputs = kernel_module._ports(function, {})
    code = native.load_object(object_for(PLAIN), PLAIN)
    caller = Caller("plain", inputs, outputs, code, native.TileLayout(16, 1000))
    x, y = states(50)
    x = np.where(np.isfinite(x) & (np.abs(x) < 1e3), x, 0.5)
    ours = kernel_module.compile(function, cache=False)
    for plain, usual in zip(caller(x, y), ours(x, y), strict=True):
        np.testing.assert_allclose(plain, usual, rtol=1e-9, atol=1e-9)


@X86
@pytest.mark.parametrize("lanes", [8, 16])
def test_wider_registers_compile(lanes):
    assert len(object_for(replace(WIDE, lanes=lanes, single=lanes == 16))) > 1000


def arm_target(single: bool) -> Target:
    """Return a 64-bit ARM processor with its registers of 16 bytes."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return Target(
        *("cortex-a72", "+neon"),
        lanes=4 if single else 2,
        fma=True,
        rounding=True,
        spreads=False,
        single=single,
        triple="aarch64-unknown-linux-gnu",
    )


@pytest.mark.parametrize("single", [False, True])
def test_arm_compiles(single):
    code = object_for(arm_target(single))
    assert code[:4] == b"\x7fELF"
    assert int.from_bytes(code[18:20], "little") == 0xB7  # AArch64


ARM_MAIN = """
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
void **table_address(void);
int run(void *ports, long first, long last);
int main(void) {
  static void *table[] = {%s};
  void **room = table_address();
  for (unsigned k = 0; k < sizeof table / sizeof *table; k++) room[k] = table[k];
  long rows;
  if (fread(&rows, 8, 1, stdin) != 1) return 1;
  static double data[4][100000];
  long sizes[] = {6, 6, 84, 1}, ports[4][3];
  for (int k = 0; k < 4; k++) {
    ports[k][0] = (long)data[k], ports[k][1] = sizes[k], ports[k][2] = 0;
    if (k < 2 && fread(data[k], 48, rows, stdin) != (size_t)rows) return 2;
  }
  if (run(ports, 0, rows)) return 3;
  for (int k = 2; k < 4; k++) fwrite(data[k], 8 * sizes[k], rows, stdout);
  return 0;
}
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not (shutil.which("qemu-aarch64") and shutil.which(ARM_GCC)),
    reason="needs Debian's qemu-user, gcc-aarch64-linux-gnu and libc6-dev-arm64-cross",
)
@pytest.mark.parametrize("single", [False, True])
def test_arm_gives_the_same(single, tmp_path):
    """Results under emulation: bit for bit, but for functions of the C library."""
    entries = [
        {"PyMem_RawMalloc": "malloc", "PyMem_RawFree": "free"}.get(name, name)
        if name in LIBM or name.startswith("PyMem")
        else "0"
        for name in EXTERNALS
    ]
    (tmp_path / "main.c").write_text(ARM_MAIN % ", ".join(entries))
    (tmp_path / "kernel.o").write_bytes(object_for(arm_target(single)))
    command = [ARM_GCC, "-static", "main.c", "kernel.o", "-lm", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    rng, rows = np.random.default_rng(3), 101
    x, y = rng.uniform(-3, 3, size=(2, rows, 6)).astype(np.float32).astype(float)
    given = np.int64(rows).tobytes() + x.tobytes() + y.tobytes()
    done = subprocess.run(
        ["qemu-aarch64", str(tmp_path / "main")], input=given, capture_output=True, check=True
    )
    got = np.frombuffer(done.stdout)[: rows * 84].reshape(rows, 14, 6)
    precision = "single" if single else "double"
    ours = kernel_module.compile(everything(), cache=False, precision=precision)(x, y)[0]
    ours = ours.reshape(rows, 14, 6)
    library = [5, 11, 12, 13]  # tan, fmod, erf, hypot
    others = [k for k in range(14) if k not in library]
    assert np.array_equal(got[:, others], ours[:, others], equal_nan=True)
    np.testing.assert_allclose(got[:, library], ours[:, library], rtol=1e-6 if single else 1e-13)


def test_lanes_fit_this_processor():
    target = host()
    assert target.lanes in (2, 4, 8)
    assert host(1).lanes == 1
    assert host() is target


def test_the_slow_path_alone_gives_the_same(monkeypatch, same_bits):
    """Where the interpreter's objects look different, everything still works."""
    usual = kernel_module.compile(everything(), cache=False)
    monkeypatch.setattr(interpreter, "available", lambda: False)
    careful = kernel_module.compile(everything(), cache=False)
    x, y = states(20)
    assert all(same_bits(a, b) for a, b in zip(usual(x, y), careful(x, y), strict=True))
    assert all(same_bits(a, b) for a, b in zip(usual(x[0], y), careful(x[0], y), strict=True))
    with pytest.raises(ValueError, match="`x` must have shape"):
        careful(x[:, 1:], y)


def test_layout_of_objects_is_checked():
    assert interpreter.available()
    assert all(interpreter.addresses()[k] for k in range(len(EXTERNALS)))
    assert not interpreter._layout_holds(np.zeros(4, dtype=np.float32)[::2])
