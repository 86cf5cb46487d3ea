"""The crane and the five-bar as machines: facts, closed forms, other formulations, MuJoCo."""

import numpy as np
import pytest

from framefree.gallery.machines.crane import (
    COORDINATES,
    arm_moments,
    closed_form,
    crane,
    crane_model,
    crane_state,
    elbow,
    elbow_slope,
)
from framefree.gallery.machines.five_bar import LOWER, UPPER, five_bar, five_bar_at
from framefree.gallery.scenarios.series_parallel.crane_checks import CHECKS, PUSH, published_error
from framefree.machine import MachineError
from framefree.motion import equations
from framefree.motion.embedded import Embedded
from framefree.simulate import simulate
from published import published


@pytest.fixture(scope="module")
def model():
    return Embedded(crane_model())


def relative(found, expected):
    return np.abs(np.asarray(found) - expected).max() / np.abs(expected).max()


def test_check_states(model):
    """Inertia, gravity force, force of the push and tip position, computed independently."""
    facts = published("series_parallel")
    assert len(facts["rows"]) == 4
    for row, ours in zip(facts["rows"], CHECKS, strict=True):
        q = np.array(row["q"], float)
        assert np.allclose(q, ours[0])
        assert relative(model.mass(q), np.array(row["Gamma"])) < 1e-12
        assert relative(-model.gravity(q), np.array(row["Q_gravity"])) < 1e-12
        push = model.jacobian(q, "tip").T @ PUSH
        assert relative(push, np.array(row["Q_disturbance_25N"])) < 1e-12
        tip = np.asarray(model.kernel("frame_pose:tip")(q))[:3, 3]
        assert relative(tip, np.array(row["p_F3_rel_B1origin"])) < 1e-12
    for delta, degrees in facts["zeta_deg"].items():
        assert np.isclose(np.rad2deg(elbow(float(delta))), degrees, rtol=1e-12)
        assert np.isclose(elbow_slope(float(delta)), facts["dzeta"][delta], rtol=1e-12)


def test_check_states_that_are_kept_here(model):
    assert published_error(model) < 1e-12
    assert published_error(Embedded(crane_model(1.01))) > 1e-3


def random_states(count, seed=0):
    rng = np.random.default_rng(seed)
    q = rng.uniform((-3, -0.5, 0.0), (3, 1.4, 0.2), (count, 3))
    return q, rng.normal(size=(count, 3)) * (1, 1, 0.2), rng.normal(size=(count, 3)) * 1000


def test_E_in_closed_form_is_that_of_the_solved_loop():
    """Xi and E: by the triangle, by hand, and by solving the loop."""
    machine = crane()
    q, qd, _ = random_states(10)
    x, v = crane_state(machine, q, qd)
    given = closed_form(machine)
    solved = Embedded(machine, independent=COORDINATES, start=x[0])
    x_given, v_given, E = given.kernel("tree_state")(q, qd)
    _, v_solved, E_solved = solved.kernel("tree_state")(x, qd)
    assert np.allclose(x_given, x, atol=1e-14)
    assert np.allclose(v_given, v, atol=1e-13)
    assert np.allclose(v_solved, v, atol=1e-12)
    assert np.allclose(E, E_solved, atol=1e-12)
    zeta, delta = machine.v_names.index("zeta"), 2
    assert np.allclose(E[:, zeta, delta], elbow_slope(q[:, 2]), rtol=1e-13)
    off = x[0] + np.array([0, 0, 0.02, -0.03, 0])
    assert np.allclose(solved.close(off), x[0], atol=1e-10)


def test_forward_dynamics_agree():
    """The triangle in closed form, the loop solved, the loop as a constraint: to 1e-9."""
    machine = crane()
    q, qd, force = random_states(20)
    x, v = crane_state(machine, q, qd)
    places = [machine.x_names.index(name) for name in COORDINATES]
    joint_force = np.zeros((20, machine.nv))
    joint_force[:, places] = force
    a = closed_form(machine).forward(q, qd, force)
    solved = Embedded(machine, independent=COORDINATES, start=x[0]).forward(x, qd, force)
    constrained = equations(machine, "constrained").forward(x, v, joint_force)
    for k in range(20):
        assert relative(solved[k], a[k]) < 1e-9
        assert relative(np.asarray(constrained)[k][places], a[k]) < 1e-9


def test_forward_dynamics_agree_with_mujoco():
    """MuJoCo's mass matrix, bias and rows of its equality, solved without its softness.

    MuJoCo regularises equality constraints (solref, solimp), so its own accelerations of a chain
    with light members are off by their own size. Its M, its bias and its constraint Jacobian J are
    exact: the accelerations that minimise Gauss's function on J a = -dJ/dt v are compared, dJ/dt
    from differences of J of fourth order, whose error of 1e-10 sets the tolerance of 1e-9.
    """
    mujoco = pytest.importorskip("mujoco")
    machine = crane()
    engine = mujoco.MjModel.from_xml_string(machine.to_mjcf())
    data = mujoco.MjData(engine)
    names = tuple(engine.joint(i).name for i in range(engine.njnt))
    assert names == machine.v_names

    def rows(x):
        data.qpos[:], data.qvel[:] = x, 0.0
        mujoco.mj_forward(engine, data)
        return data.efc_J.reshape(-1, engine.nv)[: data.ne].copy()

    q, qd, force = random_states(10, seed=4)
    a = closed_form(machine).forward(q, qd, force)
    for k in range(10):
        x, v = crane_state(machine, q[k], qd[k])
        data.qpos[:], data.qvel[:] = x, v
        mujoco.mj_forward(engine, data)
        M, bias, h = np.zeros((5, 5)), data.qfrc_bias.copy(), 2e-3
        _full_mass(mujoco, engine, data, M)
        J = rows(x)
        weights = ((-2, 1), (-1, -8), (1, 8), (2, -1))
        J_rate = sum(c * rows(x + i * h * v) for i, c in weights) / (12 * h)
        _, values, vectors = np.linalg.svd(J)
        free = vectors[int((values > 1e-9).sum()) :].T
        particular = -np.linalg.pinv(J) @ (J_rate @ v)
        tau = np.zeros(5)
        tau[[0, 1, 4]] = force[k]
        left = free.T @ (tau - bias - M @ particular)
        theirs = particular + free @ np.linalg.solve(free.T @ M @ free, left)
        assert relative(theirs[[0, 1, 4]], a[k]) < 1e-9


def _full_mass(mujoco, engine, data, M):
    try:
        mujoco.mj_fullM(engine, data, M)
    except TypeError:  # until version 3 the sparse matrix is passed
        mujoco.mj_fullM(engine, M, data.qM)


def test_cylinder_and_piston_are_what_the_model_lacks():
    """The plant's inertia is the model's and that of two bodies of 2.5 kg."""
    machine = crane()
    q = random_states(5)[0]
    parts = np.asarray(closed_form(machine).kernel("body_mass")(q))
    small = [machine.body_index[name] for name in ("cylinder", "piston")]
    links = [k for k in range(5) if k not in small]
    expected = np.asarray(Embedded(crane_model()).mass(q))
    assert np.allclose(parts[:, links].sum(axis=1), expected, rtol=1e-12, atol=1e-10)
    assert (np.linalg.eigvalsh(parts[:, small].sum(axis=1)) > 0).all()
    assert (parts[:, small].sum(axis=1)[:, 1, 1] < 2.5 * 2.4**2).all()


def test_the_longer_arm():
    moments, old = arm_moments(1.3), arm_moments()
    assert np.isclose(moments.total, 78.0)
    assert np.allclose(moments.center, np.ravel(old.center) * (1.3, 1, 1))
    slender = np.asarray(moments.moment_at_center) / np.asarray(old.moment_at_center)
    assert np.allclose(slender[[1, 2], [1, 2]], 1.3**3, rtol=2e-2)
    assert not moments.problems()


def test_energy_of_the_free_crane_is_kept():
    """Swinging without drives, in minimal coordinates: kinetic and potential energy add up."""
    machine = crane()
    x, v = crane_state(machine, (0.2, 0.5, 0.08), (0.8, 0.3, 0.05))
    run = simulate(
        machine, None, None, x, v, duration=0.2, dt=5e-4, formulation=closed_form(machine)
    )
    assert np.abs(run.energy - run.energy[0]).max() < 1e-7 * np.abs(run["kinetic"]).max()


def test_five_bar_closes_where_it_is_said_to():
    machine = five_bar(0.7)
    eom = Embedded(machine)
    assert eom.v_names == ("left", "right")
    rng = np.random.default_rng(2)
    for tip in rng.uniform((-0.1, 0.3), (0.1, 0.5), (10, 2)):
        x = five_bar_at(machine, tip)
        margin, error = eom.kernel("closure")(x)
        assert np.abs(error).max() < 1e-14
        assert margin > 0.1
        assert np.allclose(np.asarray(eom.kernel("frame_pose:tip")(x))[[0, 2], 3], tip)
    reach = np.hypot(0.1, UPPER + LOWER)
    with pytest.raises(MachineError, match="cannot be at"):
        five_bar_at(machine, (0.0, 1.1 * reach))


def test_forward_dynamics_of_the_five_bar_agree():
    machine = five_bar(0.7)
    x = five_bar_at(machine, (0.04, 0.4))
    eom, rng = Embedded(machine, start=x), np.random.default_rng(0)
    for _ in range(5):
        qd, force = rng.normal(size=2), rng.normal(size=2)
        full = np.zeros(4)
        full[list(eom.map.independent)] = force
        a = equations(machine, "constrained").forward(x, eom.expand(x, qd)[1], full)
        assert relative(np.asarray(a)[list(eom.map.independent)], eom.forward(x, qd, force)) < 1e-9
