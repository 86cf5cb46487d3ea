"""Tracking by a prototype where loops are closed: least squares over what they allow."""

import casadi as ca
import numpy as np
import pytest

from framefree.control.law import ControlError
from framefree.control.prototype import PrototypeControl
from framefree.control.prototype.feasible import feasibility
from framefree.control.prototype.tuning import matching
from framefree.control.references import Hold
from framefree.gallery.machines.five_bar import five_bar
from framefree.geometry import Moments
from framefree.machine import JointForce
from framefree.motion.constrained import Constrained
from framefree.simulate import simulate


def gains(rng):
    frames = ("left_upper", "left_lower", "right_upper", "right_lower", ("left_upper", "tip"))
    return [
        {f: Moments.of_points(rng.uniform(-0.3, 0.3, (6, 3)), rng.uniform(0.2, 1, 6) * size)
         for f in frames}
        for size in (1.0, 8.0, 30.0)
    ]  # fmt: skip


def states(machine, rng, spread=0.1):
    """Two states on the loops."""
    eom = Constrained(machine)
    found = []
    for _ in range(2):
        near = eom.assemble() + spread * rng.normal(size=machine.nx)
        at = eom.project(near, rng.normal(size=machine.nv))
        found.append((np.asarray(at.x), np.asarray(at.v)))
    return eom, found


@pytest.mark.parametrize("approach", ["particle", "body"])
def test_inputs_are_nearest_among_what_the_loops_allow(approach):
    rng = np.random.default_rng(2)
    machine = five_bar()
    law = PrototypeControl(machine, *gains(rng), approach=approach)
    eom, ((x, v), (x_R, v_R)) = states(machine, rng)
    a_R = np.array(eom.functions["forward"](x_R, v_R, rng.normal(size=4))).ravel()
    names = {"x": 4, "v": 4, "x_R": 4, "v_R": 4, "a_R": 4}
    s = {name: ca.SX.sym(name, size) for name, size in names.items()}
    reference = {"x": s["x_R"], "v": s["v_R"], "a": s["a_R"]}
    u = law.control(0, s["x"], s["v"], reference, ca.SX(0, 1)).u
    template = law.template(s["x"], s["v"], reference)
    B = law.kinetics(s["x"], s["v"]).B
    outputs = [u, ca.densify(template.M), template.b, ca.densify(B)]
    function = ca.Function("law", list(s.values()), outputs)
    u, M, b, B = (np.array(value) for value in function(x, v, x_R, v_R, a_R))
    root = np.linalg.cholesky(M).T

    # The solver of the loops gives accelerations that keep them, for any joint forces.
    def off(force):
        a = np.array(eom.functions["forward"](x, v, force)).ravel()
        return root @ (a + np.linalg.solve(M, b).ravel())

    zero = np.zeros(4)
    slope = np.column_stack([off(column) - off(zero) for column in B.T])
    best = np.linalg.lstsq(slope, -off(zero), rcond=None)[0]
    assert np.allclose(u.ravel(), best, rtol=1e-8, atol=1e-8 * np.abs(best).max())


def test_error_energy_falls_by_the_dampers_about_a_place():
    """As many motors as freedoms: the template holds along all motions that the loop allows."""
    rng = np.random.default_rng(3)
    machine = five_bar()
    law = PrototypeControl(machine, *gains(rng), approach="body")
    _, ((x, v), (x_R, _)) = states(machine, rng)
    run = simulate(
        machine, law, Hold(machine, x_R), x, v, duration=1.0, dt=1e-3, record=(), progress=False
    )
    assert np.allclose(run["W_rate"], -run["W_loss"], rtol=1e-6, atol=1e-6 * run["W_loss"].max())
    assert run["W"][-1] < 0.1 * run["W"][0]


def test_feasibility_counts_the_forces_of_the_loops():
    machine = five_bar()
    x = Constrained(machine).assemble()
    found = feasibility(machine, Hold(machine, x), [0.0])
    assert found.u.shape == (1, 2)
    assert found.largest_force < 1e-9


def test_motors_that_strain_the_loops_share_the_work():
    """Three motors for two freedoms: the accelerations of two, by the smallest inputs."""
    rng = np.random.default_rng(4)
    two = five_bar()
    three = two.attach(JointForce("third", "left_elbow"))
    parameters = gains(rng)
    _, ((x, v), (x_R, _)) = states(two, rng)
    found = []
    s = [ca.SX.sym(name, 4) for name in "xv"]
    reference = {"x": ca.SX(ca.DM(x_R)), "v": ca.SX(4, 1), "a": ca.SX(4, 1)}
    for machine in (two, three):
        law = PrototypeControl(machine, *parameters, approach="body")
        u = law.control(0, *s, reference, ca.SX(0, 1)).u
        plant = law.kinetics(*s)
        outputs = [u, plant.accelerations(plant.B @ u + plant.bias), plant.per_input]
        found.append([np.array(o) for o in ca.Function("law", s, outputs)(x, v)])
    (_, a_two, _), (u, a_three, N) = found
    assert np.allclose(a_three, a_two, rtol=1e-8, atol=1e-8 * np.abs(a_two).max())
    idle = np.linalg.svd(N)[2][2]
    assert abs(idle @ u.ravel()) < 1e-7 * np.linalg.norm(u)
    assert np.linalg.norm(N @ idle) < 1e-8 * np.linalg.norm(N)


def test_what_has_no_answer_is_refused():
    rng = np.random.default_rng(4)
    machine = five_bar()
    with pytest.raises(ControlError, match="no transport map"):
        PrototypeControl(machine, *gains(rng), approach="energy")
    with pytest.raises(ControlError, match="loops"):
        matching(PrototypeControl(machine, *gains(rng), approach="body"))
