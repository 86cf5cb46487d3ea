"""FMUs: valid to FMPy without a message, and the same motion as the run."""

import shutil
import zipfile

import numpy as np
import pytest
from exported_runs import Linear, arm_run, cart, linear_run, top_run

from framefree.errors import FramefreeError
from framefree.export import ExportedPart, export_fmu
from framefree.export.fmu.units import base_units
from framefree.simulate import simulate

fmpy = pytest.importorskip("fmpy")
from fmpy.fmi2 import FMU2Slave  # noqa: E402
from fmpy.fmi3 import FMU3Slave  # noqa: E402
from fmpy.validation import validate_fmu  # noqa: E402

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


class Master:
    """Steps an FMU and gets and sets its numbers by name."""

    def __init__(self, path, folder):
        about = fmpy.read_model_description(str(path))
        kind = FMU2Slave if about.fmiVersion == "2.0" else FMU3Slave
        self.fmu = kind(
            guid=about.guid, unzipDirectory=fmpy.extract(str(path), str(folder)),
            modelIdentifier=about.coSimulation.modelIdentifier, instanceName="one",
        )  # fmt: skip
        self.two, self.about = about.fmiVersion == "2.0", about
        self.names = {v.name: v.valueReference for v in about.modelVariables}
        self.fmu.instantiate()
        if self.two:
            self.fmu.setupExperiment(startTime=0.0)
        self.fmu.enterInitializationMode()

    def of(self, causality):
        return [v.name for v in self.about.modelVariables if v.causality == causality]

    def begin(self):
        self.fmu.exitInitializationMode()

    def set(self, names, values):
        call = self.fmu.setReal if self.two else self.fmu.setFloat64
        call([self.names[name] for name in names], [float(v) for v in values])

    def get(self, names):
        call = self.fmu.getReal if self.two else self.fmu.getFloat64
        return np.array(call([self.names[name] for name in names]))

    def step(self, time, size):
        self.fmu.doStep(currentCommunicationPoint=time, communicationStepSize=size)

    def free(self):
        self.fmu.terminate()
        self.fmu.freeInstance()


@pytest.mark.parametrize("version", [3, 2])
def test_a_plant_moves_as_the_run(version, tmp_path):
    run = top_run(0.1)
    (path,) = export_fmu(run, "plant", tmp_path, versions=(version,))
    assert validate_fmu(str(path)) == []
    master = Master(path, tmp_path / "fmu")
    names = master.of("output")
    master.begin()
    motion = [master.get(names)]
    for k in range(len(run.t) - 1):
        master.step(run.t[k], 1e-3)
        motion.append(master.get(names))
    assert np.abs(np.array(motion) - np.hstack([run.x, run.v])).max() <= 1e-12
    master.free()


@pytest.mark.parametrize("version", [3, 2])
def test_a_plant_for_solvers_of_the_master(version, tmp_path):
    run = top_run(0.1)
    (path,) = export_fmu(run, "plant", tmp_path, versions=(version,))
    result = fmpy.simulate_fmu(
        str(path), fmi_type="ModelExchange", stop_time=0.1, relative_tolerance=1e-12,
        output_interval=0.05,
    )  # fmt: skip
    end = np.array([result[name][-1] for name in result.dtype.names if name != "time"])
    assert np.abs(end - np.concatenate([run.x[-1], run.v[-1]])).max() < 1e-7


@pytest.mark.parametrize("version", [3, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_a_law_and_a_loop_do_what_the_run_did(version, tmp_path):
    run = arm_run(0.2)
    for what, limit in (("law", 1e-12), ("loop", 1e-12)):
        (path,) = export_fmu(run, what, tmp_path, versions=(version,))
        assert validate_fmu(str(path)) == []
        steps = ExportedPart(run, what).steps
        master = Master(path, tmp_path / what)
        inputs, outputs = master.of("input"), master.of("output")
        first = 1 if what == "law" else 0  # the master has the time
        master.begin()
        for k in range(steps.rows):
            master.set(inputs, steps.inputs[k, first:])
            master.step(run.t[k], 4e-3)
            off = np.abs(master.get(outputs) - steps.outputs[k]).max()
            assert off <= limit * np.abs(steps.outputs).max()
        master.free()


def test_start_values_several_steps_at_once_and_saved_states(tmp_path):
    run = linear_run()
    (path,) = export_fmu(run, "loop", tmp_path, versions=(3,))
    other = simulate(
        cart(), Linear(cart()), x0=[0.1, 0.2], duration=0.5, dt=0.01, control_dt=0.01,
        progress=False,
    )  # fmt: skip
    master = Master(path, tmp_path / "fmu")
    x = [name for name in master.of("local") if name.startswith("state.x[")]
    out = [name for name in master.of("output") if name.startswith("x[")]
    master.set(x, [0.1, 0.2])
    master.begin()
    assert np.array_equal(master.get(out), [0.1, 0.2])
    saved = master.fmu.getFMUState()
    master.step(0.0, 0.5)
    assert np.abs(master.get(out) - other.x[-1]).max() < 1e-14
    master.fmu.setFMUState(saved)
    assert np.array_equal(master.get(out), [0.1, 0.2])
    with pytest.raises(fmpy.fmi1.FMICallException):
        master.step(0.5, 0.013)
    master.free()


def test_the_description_has_units_parameters_and_words(tmp_path):
    machine = cart().tunable("first.mass")
    run = simulate(machine, x0=[0.3, -0.2], duration=0.05, dt=0.01, progress=False)
    path = export_fmu(run, "plant", tmp_path, versions=(3,))[0]
    about = fmpy.read_model_description(str(path))
    _force_moves_a_lighter_cart_more(path, tmp_path)
    by_name = {v.name: v for v in about.modelVariables}
    assert by_name["x[rail]"].unit == "m"
    assert by_name["v[rail]"].unit == "m/s"
    assert by_name["u[rail]"].unit == "N"
    assert by_name["parameters"].causality == "parameter"
    assert float(by_name["parameters"].start) == 2.0
    assert "coordinates" in by_name["x[rail]"].description
    assert float(by_name["state.x[rail]"].start) == 0.3
    assert by_name["der(state.x[rail])"].derivative is by_name["state.x[rail]"]
    names = zipfile.ZipFile(path).namelist()
    assert "sources/plant_core.c" in names
    assert any(name.startswith("binaries/") for name in names)
    assert not any(name.endswith(".py") for name in names)


def _force_moves_a_lighter_cart_more(path, folder):
    """With the second cart held along by nothing, the first one moves by F/m."""
    speeds = []
    for mass in (2.0, 0.5):
        master = Master(path, folder / f"m{mass}")
        master.set(["parameters"], [mass])
        master.begin()
        master.set(["u[rail]"], [3.0])
        master.step(0.0, 0.01)
        speeds.append(master.get(["v[rail]"])[0])
        master.free()
    assert np.allclose(speeds, [0.01 * 3.0 / 2.0, 0.01 * 3.0 / 0.5], rtol=1e-12)


def test_without_a_compiler_there_are_sources_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    path = export_fmu(linear_run(), "law", tmp_path, versions=(3,))[0]
    names = zipfile.ZipFile(path).namelist()
    assert not any(name.startswith("binaries/") for name in names)
    assert "sources/buildDescription.xml" in names


def test_titles_become_names_of_files(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    paths = export_fmu(linear_run(), "law", tmp_path, title='../my "cart" */ 2', versions=(3,))
    assert paths == [tmp_path / "-my-cart-2.fmu"]
    assert fmpy.read_model_description(str(paths[0])).modelName == '../my "cart" */ 2'


def test_only_archives_of_framefree_are_replaced(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    first = export_fmu(linear_run(), "law", tmp_path)
    assert export_fmu(linear_run(), "law", tmp_path) == first
    with zipfile.ZipFile(first[1], "w", zipfile.ZIP_DEFLATED) as other:
        other.writestr("modelDescription.xml", "<fmiModelDescription/>")
    kept = [path.read_bytes() for path in first]
    with pytest.raises(FramefreeError, match=r"fmi2\.fmu` exists and was not made by framefree"):
        export_fmu(linear_run(), "law", tmp_path)
    assert [path.read_bytes() for path in first] == kept


def test_units_by_base_units():
    assert base_units("m/s^2") == {"m": 1, "s": -2}
    assert base_units("Nm") == {"kg": 1, "m": 2, "s": -2}
    assert base_units("1/s^2") == {"s": -2}
    assert base_units("N, Nm") is None
    assert base_units("") is None
