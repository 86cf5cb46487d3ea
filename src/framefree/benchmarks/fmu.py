"""`framefree bench fmu`: a plant as an FMU beside the same equations in NumPy by PythonFMU3."""

import tempfile
from ctypes import byref, c_bool, c_double
from pathlib import Path
from typing import Any

import numpy as np

from framefree import simulate
from framefree.benchmarks.timing import circumstances, in_turns
from framefree.errors import FramefreeError
from framefree.export import export_fmu
from framefree.gallery import MACHINES
from framefree.simulate import Run

STEP = 1e-3
"""s; that of `numpy_top.py`, which knows nothing of this package."""
STEPS = 500
"""Steps of the run that both are compared over."""


def run() -> dict[str, object]:
    """Measure steps of both under the same master, FMPy."""
    try:
        from fmpy import extract, read_model_description
        from fmpy.fmi3 import FMU3Slave
        from pythonfmu3 import FmuBuilder
    except ImportError as error:
        raise FramefreeError(f"`{error.name}` is not installed: install `framefree[fmu]`") from None
    top = top_run(STEPS)
    with tempfile.TemporaryDirectory() as folder:
        ours = export_fmu(top, "plant", folder, title="top", versions=(3,))[0]
        FmuBuilder.build_FMU(Path(__file__).with_name("numpy_top.py"), folder)
        files = {"framefree": ours, "numpy": Path(folder, "NumpyTop.fmu")}
        masters = {}
        for name, path in files.items():
            about: Any = read_model_description(str(path), validate=False)
            place = extract(str(path), unzipdir=str(Path(folder, name)))
            slave: Any = FMU3Slave(
                guid=about.guid,
                unzipDirectory=place,
                modelIdentifier=about.coSimulation.modelIdentifier,
                instanceName=name,
            )
            masters[name] = _Master(slave, about, top)
        ends = {name: master.final() for name, master in masters.items()}
        calls = {name: master.step for name, master in masters.items()}
        times = in_turns(calls, repeats=9, loops=200)
        for master in masters.values():
            master.free()
    true = np.concatenate([top.x[-1], top.v[-1]])
    scale = np.abs(true).max()
    return {
        "fmu_speedup": round(times["numpy"].best / times["framefree"].best, 2),
        "fmu_step_us": round(1e6 * times["framefree"].best, 3),
        "numpy_step_us": round(1e6 * times["numpy"].best, 3),
        "fmu_difference": float(np.abs(ends["framefree"] - true).max() / scale),
        "numpy_difference": float(np.abs(ends["numpy"] - true).max() / scale),
        **circumstances("fmpy", "pythonfmu3", "numpy"),
    }


def top_run(steps: int) -> Run:
    """Return a run of the heavy top: it spins and falls a little."""
    machine = MACHINES["heavy-top"]()
    x0 = machine.integrate(machine.neutral(), np.array([0.3, 0.0, 0.1]))
    return simulate(
        machine, x0=x0, v0=[0.2, 30.0, -0.1], duration=steps * STEP, dt=STEP,
        progress=False,
    )  # fmt: skip


class _Master:
    """Steps one FMU: the function of the standard, called through FMPy."""

    def __init__(self, slave: Any, about: Any, top: Run) -> None:
        self.slave, self.time = slave, 0.0
        state = [v.valueReference for v in about.modelVariables if v.causality == "local"][:7]
        slave.instantiate()
        slave.enterInitializationMode(startTime=0.0)
        slave.setFloat64(state, np.concatenate([top.x[0], top.v[0]]).tolist())
        slave.exitInitializationMode()
        self.state = state
        self._flags = [c_bool() for _ in range(3)]
        self._last = c_double()

    def step(self) -> None:
        """Move on by one step."""
        event, terminate, early = (byref(flag) for flag in self._flags)
        self.slave.fmi3DoStep(
            self.slave.component, self.time, STEP, True, event, terminate, early,
            byref(self._last),
        )  # fmt: skip
        self.time += STEP

    def final(self) -> np.ndarray:
        """Return the state after the run."""
        for _ in range(STEPS):
            self.step()
        return np.array(self.slave.getFloat64(self.state))

    def free(self) -> None:
        """End it."""
        self.slave.terminate()
        self.slave.freeInstance()
