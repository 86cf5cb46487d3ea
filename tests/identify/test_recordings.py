"""Damaged data are refused with row and column, never fitted in silence."""

import json

import numpy as np
import pytest
from identify_samples import UNKNOWN, guessed, record, two_links
from typer.testing import CliRunner

from framefree.cli import app
from framefree.gallery.machines.five_bar import five_bar, five_bar_at
from framefree.geometry import Moments
from framefree.identify import IdentifyError, Recording, fit
from framefree.identify.recording import checked
from framefree.machine import Body, Free, Joint, Machine


def table(data, machine):
    columns = {"t": data.t}
    columns |= {name: data.x[:, i] for i, name in enumerate(machine.x_names)}
    columns |= {f"force.{name}": data.force[:, i] for i, name in enumerate(machine.v_names)}
    return columns


def write_csv(path, columns):
    rows = zip(*columns.values(), strict=True)
    text = "\n".join([",".join(columns), *(",".join(repr(float(v)) for v in row) for row in rows)])
    path.write_text(text + "\n")
    return path


@pytest.fixture(scope="module")
def machine():
    return two_links()


@pytest.fixture(scope="module")
def data(machine):
    return record(machine, rate=200.0)


def changed(data, **values):
    fields = {name: getattr(data, name) for name in ("t", "x", "v", "a", "force", "u")}
    return Recording(**{**fields, **values})


def test_columns_are_mapped_by_name(tmp_path, machine, data):
    columns = table(data, machine)
    columns["tau_1"] = columns.pop("force.shoulder")
    path = write_csv(tmp_path / "data.csv", columns)
    found = Recording.of_file(path, machine, {"force.shoulder": "tau_1"})
    assert np.allclose(found.x, data.x, rtol=1e-14)
    assert np.allclose(found.force, data.force, rtol=1e-14)
    with pytest.raises(IdentifyError, match=r"lacks the column `force\.shoulder`"):
        Recording.of_file(path, machine)
    with pytest.raises(IdentifyError, match=r"tau_2.*did you mean `tau_1`"):
        Recording.of_file(path, machine, {"force.shoulder": "tau_2"})


def test_parquet_of_a_run_is_read(tmp_path, machine):
    from framefree.simulate import simulate

    run = simulate(machine, x0=np.array([0.3, 0.2]), duration=0.2, dt=1e-3)
    run.save(tmp_path)
    found = Recording.of_file(tmp_path, machine)
    assert np.array_equal(found.x, run.x)
    assert np.array_equal(found.u, run.u)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: ("force", (70, 1), np.nan), r"row 71 \(t = 0\.35 s\), column `force\.elbow`"),
        (lambda d: ("x", (3, 0), np.inf), r"row 4 .*column `x\.shoulder`"),
    ],
)
def test_values_that_are_no_numbers(machine, data, damage, message):
    group, place, value = damage(data)
    values = getattr(data, group).copy()
    values[place] = value
    with pytest.raises(IdentifyError, match=message):
        checked(changed(data, **{group: values}), machine)


def test_text_in_a_column_of_numbers(tmp_path, machine, data):
    path = write_csv(tmp_path / "data.csv", table(data, machine))
    lines = path.read_text().splitlines()
    lines[3] = lines[3].rpartition(",")[0] + ",broken"
    path.write_text("\n".join(lines))
    with pytest.raises(IdentifyError, match=r"column `force\.elbow` does not hold numbers"):
        Recording.of_file(path, machine)


def test_gaps_and_uneven_rates(machine, data):
    t = data.t.copy()
    t[50:] += 0.1
    with pytest.raises(IdentifyError, match=r"a gap of 0\.105 s after row 50 .*column `t`"):
        checked(changed(data, t=t), machine)
    t = data.t.copy()
    t[50:] = t[50] + (t[50:] - t[50]) * 1.3
    with pytest.raises(IdentifyError, match=r"the rate is not even: column `t`.*row"):
        checked(changed(data, t=t), machine)
    t = data.t.copy()
    t[10] = t[9]
    with pytest.raises(IdentifyError, match="does not increase from row 10"):
        checked(changed(data, t=t), machine)


def test_rates_that_are_wrong(machine):
    exact = record(machine, rate=200.0, exact=True)
    degrees = exact.v * [1.0, 180 / np.pi]
    with pytest.raises(IdentifyError, match=r"column `v\.elbow` is 57\.3 times the rate"):
        checked(changed(exact, v=degrees), machine)
    with pytest.raises(IdentifyError, match=r"column `t`, are wrong"):
        checked(changed(exact, t=exact.t * 2), machine)
    with pytest.raises(IdentifyError, match=r"`v\.shoulder` and `v\.elbow` look swapped"):
        checked(changed(exact, v=exact.v[:, ::-1]), machine)


def exchanged(values):
    return values[:, ::-1]


def in_degrees(values):
    return values * [1.0, 180 / np.pi]


MISREAD = [
    ("force", exchanged, r"`force\.shoulder` and `force\.elbow` look swapped"),
    ("u", exchanged, r"`u\.shoulder_motor` and `u\.elbow_motor` look swapped"),
    ("x", exchanged, r"`x\.shoulder` and `x\.elbow` look swapped"),
    ("x", in_degrees, r"`x\.elbow` looks as if it were in degrees"),
]


@pytest.mark.parametrize(("group", "damage", "message"), MISREAD)
def test_columns_that_were_misread_are_named(machine, data, group, damage, message):
    whole = changed(data, force=None, u=data.force) if group == "u" else data
    broken = changed(whole, **{group: damage(getattr(whole, group))})
    with pytest.raises(IdentifyError, match=message):
        fit(guessed(machine), broken, UNKNOWN, cutoff=8.0)


@pytest.mark.parametrize("group", ["force", "u"])
def test_a_wrong_sign_is_doubted(machine, data, group):
    reversed_elbow = {"force": None, group: data.force * [1.0, -1.0]}
    found = fit(guessed(machine), changed(data, **reversed_elbow), UNKNOWN, cutoff=8.0)
    assert any("a sign or a unit of their columns is wrong" in doubt for doubt in found.doubts)


@pytest.fixture(scope="module")
def tumbling():
    """A body that tumbles under wrenches known in full."""
    inertia = Moments.of_body(2.0, (0.05, -0.02, 0.1), np.diag([0.05, 0.08, 0.1]))
    body = Machine([Body("body", inertia)], [Joint("base", Free(), "world", "body")])
    return body, record(body, rate=200.0, size=0.3)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([0, 1, 2, 4, 5, 6, 3], "quaternion were in the order x, y, z, w"),
        ([2, 1, 0, 3, 4, 5, 6], r"`x\.base\.px` and `x\.base\.pz` look swapped"),
    ],
)
@pytest.mark.slow
def test_a_pose_that_was_misread(tumbling, order, message):
    machine, data = tumbling
    with pytest.raises(IdentifyError, match=message):
        fit(machine, changed(data, x=data.x[:, order]), ("bodies",), cutoff=8.0)


def test_right_data_are_not_suspected(tumbling):
    machine, data = tumbling
    assert not fit(machine, data, ("bodies",), cutoff=8.0).doubts


def test_loops_that_do_not_close():
    machine = five_bar()
    tips = [(0.02 * np.cos(s), 0.4 + 0.02 * np.sin(s)) for s in np.linspace(0, 6, 40)]
    x = np.array([five_bar_at(machine, tip) for tip in tips])
    forces = np.zeros_like(x)
    order = [machine.x_names.index(name) for name in ("left", "right")]
    swapped = x.copy()
    swapped[:, order] = x[:, order[::-1]]
    record = Recording(0.01 * np.arange(len(x)), swapped, force=forces)
    with pytest.raises(IdentifyError, match=r"row 1 .*loops of the machine are open by"):
        fit(machine, record, ("bodies",), cutoff=8.0)


def test_what_is_missing_is_named(machine, data):
    with pytest.raises(IdentifyError, match="give a `cutoff`"):
        fit(machine, data, UNKNOWN)
    with pytest.raises(IdentifyError, match="needs a rate above"):
        fit(machine, data, UNKNOWN, cutoff=90.0)
    with pytest.raises(IdentifyError, match="neither forces"):
        Recording(data.t, data.x)
    with pytest.raises(IdentifyError, match="4 rows"):
        checked(data.rows(slice(0, 4)), machine)


def test_the_command(tmp_path, machine, data):
    pytest.importorskip("clarabel", reason="needs the extra `identify`")
    (tmp_path / "arm.urdf").write_text(
        without_asymmetry(guessed(machine)).to_urdf(without=("actuator", "armature"))
    )
    path = write_csv(tmp_path / "data.csv", table(data, machine))
    arguments = ["identify", str(tmp_path / "arm.urdf"), str(path), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, [*arguments, "--cutoff", "8", "--unknown", "bodies",
                                      "--unknown", "armature", "--unknown", "damping"])  # fmt: skip
    assert result.exit_code in (0, 1), result.output
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"fit.json", "report.html"}
    assert "shoulder" in result.output
    told = json.loads((tmp_path / "out" / "fit.json").read_text())
    identified = Machine.from_dict(told["machine"])
    assert identified.bodies[0].moments.total > 0
    assert any("friction" not in one["name"] for one in told["base_parameters"])


def without_asymmetry(machine):
    from dataclasses import replace

    joints = [replace(j, friction_asymmetry=0.0, friction_width=0.01) for j in machine.joints]
    return replace(machine, joints=joints)
