"""Default figures: what they show is what was recorded."""

import base64
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
import pytest
from simulate_machines import PD, free_body, pendulum

from framefree.control.references.base import Reference
from framefree.gallery.machines.arms import revolute_chain
from framefree.geometry import se3, so3
from framefree.look.report import Figure, default_animation, default_figures
from framefree.look.report.defaults import FIGURES, LINES
from framefree.look.report.plot import plot
from framefree.machine import Loop, Spherical
from framefree.simulate import simulate


@dataclass(frozen=True)
class Constant(Reference):
    """Joint angles and a pose of the tip that stay."""

    x: tuple[float, ...]
    pose: tuple[tuple[float, ...], ...]

    def at(self, t):
        return {"x": ca.DM(self.x), "tip.pose": ca.DM(np.array(self.pose))}


def by_title(run):
    figures = default_figures(run)
    assert len({figure.title for figure in figures}) == len(figures)
    return {figure.title: figure for figure in figures}


def test_energy_is_the_sum(swing_run):
    lines = {line.name: line.y for line in by_title(swing_run)["Energy"].lines}
    np.testing.assert_array_equal(lines["kinetic"] + lines["potential"], lines["total"])


def test_errors_against_references_of_joints_and_frames():
    machine = pendulum(2)
    turn = np.array(so3.exp([0.1, 0.2, 0.3]))
    pose = np.array(se3.pose(turn, [0.3, 0.4, -1.0]))
    given = Constant((0.5, 0.25), tuple(map(tuple, pose)))
    run = simulate(machine, PD(machine), given, duration=0.1, dt=1e-2)
    figures = by_title(run)
    (first, second) = figures["Tracking error of the joints"].lines
    np.testing.assert_allclose(first.y, 0.5 - run.x[:, 0])
    np.testing.assert_allclose(second.y, 0.25 - run.x[:, 1])
    assert figures["Tracking error of the joints"].y_label == "error (rad)"
    # At the start the tip hangs at (0, 0, -1) in the axes of the world.
    (distance,) = figures["Position error of tip"].lines
    (angle,) = figures["Attitude error of tip"].lines
    assert distance.y[0] == pytest.approx(0.5)
    assert angle.y[0] == pytest.approx(np.sqrt(0.14))
    shown = figures["Configuration"].lines
    assert [line.dashed for line in shown] == [False, True, False, True]
    np.testing.assert_array_equal(shown[1].y, 0.5)
    animation = default_animation(run)
    assert animation.trails == ("tip",)
    np.testing.assert_allclose(animation.paths["tip reference"], [(0.3, 0.4, -1.0)] * len(run))


def test_units_are_kept_apart():
    run = simulate(free_body(), duration=0.02, dt=1e-2)
    figures = [f for f in default_figures(run) if f.title == "Velocity"]
    assert [figure.y_label for figure in figures] == ["v (m/s)", "v (rad/s)"]
    assert [len(figure.lines) for figure in figures] == [3, 3]


def test_joint_wrenches_by_their_size(swing_run):
    figures = by_title(swing_run)
    wrench = swing_run["joint_wrench"]
    np.testing.assert_allclose(
        figures["Joint forces"].lines[1].y, np.linalg.norm(wrench[:, 1, :3], axis=1)
    )
    np.testing.assert_allclose(
        figures["Joint moments"].lines[0].y, np.linalg.norm(wrench[:, 0, 3:], axis=1)
    )
    assert [line.name for line in figures["Joint forces"].lines] == ["j0", "j1"]


def test_constraint_errors_are_the_largest_ones():
    machine = pendulum(2, driven=False, kinds=[Spherical(), Spherical()])
    machine = machine.attach(Loop("close", "ball", "world", "tip", rest=(0, 0, -1)))
    run = simulate(machine, duration=0.02, dt=1e-2)
    figure = by_title(run)["Constraint error, positions"]
    np.testing.assert_array_equal(figure.lines[0].y, np.abs(run["position_error"]).max(axis=1))
    assert figure.logarithmic


def test_a_lyapunov_function_that_falls_far_is_logarithmic(swing_run):
    figure = by_title(swing_run)["Lyapunov function"]
    assert figure.y_label == "V (J)"
    far = replace(
        swing_run, signals=swing_run.signals | {"V": np.exp(-np.linspace(0, 30, len(swing_run)))}
    )
    assert by_title(far)["Lyapunov function"].logarithmic


def test_signals_of_the_law_are_shown(swing_run):
    other = replace(swing_run, signals=swing_run.signals | {"error": swing_run["error"] ** 2})
    lines = by_title(other)["Error"].lines
    assert [line.name for line in lines] == ["error[0]", "error[1]"]
    np.testing.assert_array_equal(lines[1].y, other["error"][:, 1])


def test_nothing_is_shown_twice_and_nothing_that_is_empty(swing_run):
    """The error of a law without a reference is the configuration itself."""
    titles = by_title(swing_run)
    assert "Configuration" in titles
    assert "Error" not in titles
    nothing = np.full_like(swing_run["error"], np.nan)
    empty = replace(swing_run, signals=swing_run.signals | {"error": nothing})
    assert "Error" not in by_title(empty)


def test_titles_name_the_joints_of_a_part():
    machine = revolute_chain(LINES + 2)
    run = simulate(machine, x0=np.full(machine.nx, 0.1), duration=0.02, dt=1e-2)
    titles = [f.title for f in default_figures(run) if f.title.startswith("Configuration")]
    names = machine.x_names
    assert titles == [
        f"Configuration: {names[0]} to {names[LINES - 1]}",
        f"Configuration: {names[LINES]} to {names[-1]}",
    ]


def test_all_bodies_are_traced_in_one_picture(swing_run):
    figure = by_title(swing_run)["Paths of the bodies"]
    bodies = [body.name for body in swing_run.machine.bodies]
    assert [line.name for line in figure.lines] == [*bodies, "start"]
    assert figure.equal
    center = swing_run.machine.bodies[0].moments.center
    way = np.hypot(np.ptp(figure.lines[0].x), np.ptp(figure.lines[0].y))
    assert 0 < way <= 2 * np.linalg.norm(center) + 1e-9


def test_a_logarithmic_axis_survives_an_exact_zero():
    values = np.array([0.0, 1e-12, 1e-3, 0.0])
    line = {"e": values}
    drawn = plot(Figure.over_time("E", "e", np.arange(4.0), line, logarithmic=True))
    assert drawn["layout"]["yaxis"]["type"] == "log"
    kept = drawn["traces"][0]["y"]
    numbers = np.frombuffer(base64.b64decode(kept["bdata"]), f"<{kept['dtype']}")
    np.testing.assert_allclose(numbers, [np.nan, 1e-12, 1e-3, np.nan], rtol=1e-6)
    still = {"e": np.zeros(4)}
    drawn = plot(Figure.over_time("E", "e", np.arange(4.0), still, logarithmic=True))
    assert "type" not in drawn["layout"]["yaxis"]


def test_lines_that_a_logarithmic_axis_cannot_show_are_told_in_the_legend():
    t = np.arange(4.0)
    lines = {"rises": t + 1, "rests": 0 * t, "falls": -t - 1, "none": np.nan * t}
    drawn = plot(Figure.over_time("E", "e", t, lines, logarithmic=True))
    names = [trace["name"] for trace in drawn["traces"]]
    assert names == ["rises", "rests (zero)", "falls (zero or less)", "none"]


def test_many_entries_are_split_and_what_is_left_out_is_said():
    machine = pendulum(2)
    run = simulate(machine, PD(machine), duration=0.02, dt=1e-2)
    count = LINES * FIGURES + 5
    channel = replace(run.channels[-1], name="wide", shape=(count,), entries=(), units=())
    wide = replace(
        run,
        channels=(*run.channels, channel),
        signals=run.signals | {"wide": np.random.default_rng(0).normal(size=(len(run), count))},
    )
    figures = [f for f in default_figures(wide) if f.title.startswith("Wide")]
    assert [len(figure.lines) for figure in figures] == [LINES] * FIGURES
    assert figures[-1].caption == "5 more are in the table."
