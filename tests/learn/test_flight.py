"""Flights predicted over many steps: symmetry, closed forms, training, and what is refused."""

from itertools import pairwise

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="needs the extra `learn`")

from framefree.errors import FramefreeError  # noqa: E402
from framefree.geometry import batch  # noqa: E402
from framefree.learn import C4, C2v, LearnError, Training  # noqa: E402
from framefree.learn.flight.fitting import fit_flights  # noqa: E402
from framefree.learn.flight.model import (  # noqa: E402
    FIRST,
    GRAVITY,
    PHYSICS,
    RESIDUALS,
    UNITS,
    Propellers,
)
from framefree.learn.flight.pieces import (  # noqa: E402
    FlightPieces,
    RecordedFlight,
    flight_pieces,
    lagging_inputs,
    usual_command,
)
from framefree.learn.flight.prediction import (  # noqa: E402
    FlightModel,
    FlightMotion,
    constant_velocity,
    prediction_errors,
)
from framefree.learn.training import double_precision  # noqa: E402

QUAD = Propellers(np.array([[1, -1], [-1, -1], [-1, 1], [1, 1]]) * 0.03, np.array([1, -1, 1, -1.0]))
"""Front right, back right, back left, front left."""
LAGS = (0.02, 0.08, 0.4)


def random_model(kind, seed=0):
    """Return a model with random weights everywhere, the last layer too."""
    rng = np.random.default_rng(seed)
    sizes = RESIDUALS[kind].sizes(len(LAGS))
    layers = ()
    if sizes is not None:
        shape = (sizes[0], 8, sizes[1])
        layers = tuple((rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in pairwise(shape))
    return FlightModel(QUAD, kind, {"physics": FIRST / UNITS, "layers": layers})


def accelerations(model, R, v, w, y):
    """Return specific force and angular acceleration in body axes, of one state."""
    with double_precision(jax):
        arrays = [jax.numpy.asarray(one[None], float) for one in (R, v, w, y)]
        weights = jax.tree.map(lambda one: jax.numpy.asarray(one, float), dict(model.weights))
        a, alpha = (np.asarray(one)[0] for one in model.accelerations(weights, *arrays))
    return R.T @ (a + np.array([0, 0, GRAVITY])), alpha


# A quarter turn anticlockwise brings front right to front left, back right to front right, ...
TURNED, MIRRORED = (1, 2, 3, 0), (1, 0, 3, 2)
GROUPS = (C4(turned=TURNED), C2v(mirrored=MIRRORED, half_turned=(2, 3, 0, 1)))


def commutator(kind, element, seed):
    """Return |f(g z) - g f(z)| at a random state, and |f|."""
    rng = np.random.default_rng(seed)
    model = random_model(kind, seed)
    v, w, y = rng.normal(size=3), rng.normal(size=3), 1 + 0.3 * rng.normal(size=(3, 4))
    R = batch.rotation_exp(rng.normal(size=3))
    up = R[2]
    force, turning = accelerations(model, R, v=R @ v, w=w, y=y)
    # An attitude at which up is g up; which of them does not matter to what the body meets.
    there = element.matrix @ up
    axis = np.cross(there, [0, 0, 1.0])
    angle = np.arctan2(np.linalg.norm(axis), there[2])
    Q = batch.rotation_exp(axis / np.linalg.norm(axis) * angle)
    assert np.allclose(Q[2], there)
    moved = accelerations(
        model, Q, v=Q @ (element.matrix @ v), w=element.axial @ w, y=y @ element.inputs.T
    )
    gap = np.r_[moved[0] - element.matrix @ force, moved[1] - element.axial @ turning]
    return np.abs(gap).max(), np.abs(np.r_[force, turning]).max()


@pytest.mark.parametrize("group", GROUPS)
def test_the_symmetric_model_commutes_with_the_craft(group):
    """f(g z) = g f(z) with propellers that change places, whatever the weights are."""
    for seed, element in enumerate(group.elements):
        gap, size = commutator("symmetric", element, seed)
        assert gap < 1e-12 * max(size, 1)
        plain, size = commutator("world", element, seed)
        assert plain > 1e-3 * size or seed == 0  # the identity comes first


def test_a_wrong_change_of_propellers_is_seen():
    element = C4(turned=(3, 0, 1, 2)).elements[1]
    gap, size = commutator("symmetric", element, 1)
    assert gap > 1e-3 * size


def pieces_of(position, velocity, rotation, rate, inputs, dt):
    return FlightPieces(position, velocity, rotation, rate, inputs, np.zeros(len(rate)), dt)


def still_pieces(steps, dt, v, w, inputs):
    """Return one piece that begins level at the origin; its later rows do not matter here."""
    rows = np.ones((1, steps + 1, 1))
    return pieces_of(0 * rows * v, rows * v, rows[..., None] * np.eye(3), rows * w, inputs, dt)


def test_predictions_have_closed_forms():
    """A level craft that hovers and drifts: v decays by drag, the heading by damping."""
    numbers = dict(zip(PHYSICS, FIRST, strict=True)) | {"drag_across": 0.7, "damping_along": 1.3}
    weights = {"physics": np.array(list(numbers.values())) / UNITS, "layers": ()}
    model = FlightModel(QUAD, "physics", weights)
    errors = []
    for steps in (50, 100):
        dt = 0.5 / steps
        pieces = still_pieces(steps, dt, np.array([2.0, -1, 0]), np.array([0, 0, 0.0]),
                              np.ones((1, steps, 3, 4)))  # fmt: skip
        end = model.predict(pieces)
        v = np.array([2.0, -1, 0]) * np.exp(-0.7 * 0.5)
        r = np.array([2.0, -1, 0]) * (1 - np.exp(-0.7 * 0.5)) / 0.7
        errors.append(
            [np.abs(end.velocity[0, -1] - v).max(), np.abs(end.position[0, -1] - r).max()]
        )
        spin = still_pieces(steps, dt, np.zeros(3), np.array([0, 0, 1.5]), pieces.inputs)
        end = model.predict(spin)
        angle = 1.5 * (1 - np.exp(-1.3 * 0.5)) / 1.3
        assert np.arctan2(end.rotation[0, -1, 1, 0], end.rotation[0, -1, 0, 0]) == pytest.approx(
            angle, abs=0.02
        )
        assert np.abs(end.rotation[0, -1] @ end.rotation[0, -1].T - np.eye(3)).max() < 1e-12
    # First order in the step, as Euler's method is.
    assert (np.array(errors[1]) < 0.55 * np.array(errors[0])).all()
    assert max(errors[1]) < 5e-3


def test_thrusts_lift_lean_and_twist_as_placed():
    """More in front pitches up (about -y), more at the left rolls right, spins turn against."""
    model = random_model("physics")
    at = (np.eye(3), np.zeros(3), np.zeros(3))
    hover = accelerations(model, *at, np.ones((3, 4)))
    assert np.allclose(hover[0], [0, 0, GRAVITY])
    assert np.allclose(hover[1], 0)
    front, left, anticlockwise = (1, 0, 0, 1), (0, 0, 1, 1), (1, 0, 1, 0)
    turning = [
        accelerations(model, *at, np.ones((3, 4)) + 0.1 * np.array(more))[1]
        for more in (front, left, anticlockwise)
    ]
    signs = np.array([[0, -1, 0], [1, 0, 0], [0, 0, -1.0]])
    assert np.allclose(np.sign(np.round(turning, 9)), signs)


def test_lags_are_exact_and_never_look_ahead():
    commands = np.ones((200, 4))
    commands[50:] = 2.0
    y = lagging_inputs(commands, 0.01, 1.0, LAGS)
    t = 0.01 * np.arange(150)
    for j, lag in enumerate(LAGS):
        assert np.allclose(y[:51, j], 1.0)
        assert np.allclose(y[50:, j, 0], 1 + 3 * (1 - np.exp(-t / lag)))
    commands[100] = np.nan
    held = lagging_inputs(commands, 0.01, 1.0, LAGS)
    assert np.allclose(held, y)


def flights(count, rows=400, seed=0):
    """Return flights that physics alone explains: predictions of a model, of one long piece."""
    numbers = dict(zip(PHYSICS, FIRST, strict=True)) | {"lean_effect": 30.0, "drag_across": 0.6}
    weights = {"physics": np.array(list(numbers.values())) / UNITS, "layers": ()}
    model = FlightModel(QUAD, "physics", weights)
    made = []
    for k in range(count):
        rng = np.random.default_rng(seed + k)
        t = 0.01 * np.arange(rows)
        waves = [sum(rng.normal() * np.sin(rng.uniform(2, 9) * t + rng.uniform(0, 6))
                     for _ in range(3)) for _ in range(4)]  # fmt: skip
        commands = np.sqrt(1 + 0.02 * np.array(waves).T)
        # One lag, that of the motors: at both rows of a step the same.
        y = lagging_inputs(commands, 0.01, 1.0, LAGS)[None]
        first = still_pieces(rows - 1, 0.01, rng.normal(size=3), 0.1 * rng.normal(size=3), y[:, 1:])
        r, v, R, w = (one[0] for one in model.predict(first))
        made.append(RecordedFlight(r, v, batch.wxyz(R), w, commands))
    return made


def pieces(several, **options):
    return flight_pieces(several, period=0.01, usual=1.0, lags=LAGS, **{"every": 5, **options})


@pytest.mark.slow
def test_training_finds_the_physics_and_turning_changes_nothing():
    taught, judged = pieces(flights(6), every=15), pieces(flights(2, seed=50))
    fitted = fit_flights("physics", taught, QUAD, Training(steps=150, patience=150, decay=0.0))
    found = dict(zip(PHYSICS, fitted.model.weights["physics"] * UNITS, strict=True))
    assert found["lean_effect"] == pytest.approx(30.0, rel=0.15)
    measured, step = FlightMotion.of(judged), judged.steps
    errors = prediction_errors(fitted.model.predict(judged), measured, step)
    coasting = prediction_errors(constant_velocity(judged), measured, step)
    assert (errors < 0.25 * coasting).all()
    turn = batch.rotation_exp(np.array([0, 0, 2.0]))
    for kind, least, most in (("symmetric", 0.0, 1e-9), ("world", 1e-3, np.inf)):
        one = fit_flights(kind, taught, QUAD, Training(hidden=(8,), steps=10, patience=10))
        there = judged.turned(turn)
        a = prediction_errors(one.model.predict(judged), measured, step)
        b = prediction_errors(one.model.predict(there), FlightMotion.of(there), step)
        assert least <= np.abs(b / a - 1).max() <= most


def test_errors_are_norms_and_missing_angles():
    judged = pieces(flights(1))
    measured = FlightMotion.of(judged)
    turn = batch.rotation_exp(np.array([0.3, 0, 0]))
    off = measured._replace(
        position=measured.position + np.array([3, 4, 0]), rotation=measured.rotation @ turn
    )
    assert np.allclose(prediction_errors(off, measured, 10), [5, 0, 0.3, 0])


def test_pieces_with_unknown_commands_are_left_out():
    flight = flights(1)[0]
    whole = pieces([flight])
    broken = flight.commands.copy()
    broken[200, 2] = np.nan
    fewer = pieces([flight._replace(commands=broken)])
    # Those that hold row 200, or have it among the 30 rows before.
    assert len(whole) - len(fewer) == 16
    assert np.isfinite(fewer.inputs).all()


def test_bad_input_is_refused():
    made = flights(2)
    whole = pieces(made)
    training = Training(hidden=(4,), steps=5, patience=5)
    with pytest.raises(LearnError, match="one flight is too few"):
        fit_flights("physics", pieces(made[:1]), QUAD, training)
    with pytest.raises(LearnError, match="choose one of `physics`, `symmetric`, `world`"):
        fit_flights("magic", whole, QUAD, training)
    with pytest.raises(LearnError, match="even number of rows, got 7"):
        pieces(made, rows=7)
    with pytest.raises(LearnError, match="ascending"):
        flight_pieces(made, period=0.01, usual=1.0, lags=(0.1, 0.05))
    with pytest.raises(LearnError, match="no piece of 50 rows"):
        pieces(made, first=390)
    with pytest.raises(LearnError, match="`rate` of flight 0 must have shape"):
        pieces([made[0]._replace(rate=made[0].rate[:, :2])])
    nowhere = made[0].position.copy()
    nowhere[5] = np.nan
    with pytest.raises(LearnError, match="`position` of flight 0 is not a number in row 5"):
        pieces([made[0]._replace(position=nowhere)])
    with pytest.raises(LearnError, match="no row in which all commands are known"):
        pieces([made[0]._replace(commands=np.full((400, 4), np.nan))])
    resting = FlightPieces(
        0 * whole.position, 0 * whole.velocity, 0 * whole.rotation + np.eye(3), 0 * whole.rate,
        whole.inputs, whole.flight, whole.dt,
    )  # fmt: skip
    with pytest.raises(FramefreeError, match="nothing to learn"):
        fit_flights("physics", resting, QUAD, training)


def test_the_usual_command_leaves_out_what_is_not_known():
    flight = flights(1)[0]
    commands = np.full((400, 4), 3.0)
    commands[7, 1] = np.nan
    assert usual_command([flight._replace(commands=commands)]) == 3.0
