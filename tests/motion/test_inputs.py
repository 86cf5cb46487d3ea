"""Actuators: the power of the inputs is that of the joint forces they give."""

import casadi as ca
import numpy as np
import pytest
from random_machines import evaluate, random_machine, random_pose, random_state

import framefree as ff
from framefree.machine import Frame
from framefree.machine.actuators import JointForce, Propeller, Wrench
from framefree.motion.tree import Tree


def test_input_power_is_joint_power():
    for seed in range(8):
        rng = np.random.default_rng(seed)
        machine = random_machine(rng, bodies=5, passive=False, fluid=False)
        machine = machine.attach(Frame("thrust", "b4", random_pose(rng)))
        single = [j.name for j in machine.joints if j.nv == 1]
        machine = machine.attach(
            Propeller("prop", "thrust", "x", torque_ratio=0.1, spin=-1),
            Wrench("push", "f2", np.array([[0, 1, 0, 1, 0, 0]]).T),
            *(JointForce(f"motor_{name}", name, gear=3.0) for name in single),
        )
        eom = Tree(machine)
        x, v, _ = random_state(rng, machine)
        u = rng.normal(size=machine.nu)
        power = v @ evaluate(eom.functions["input_matrix"], x) @ u
        xi = {f: evaluate(eom.functions[f"jacobian:{f}"], x) @ v for f in ("thrust", "f2")}
        expected = sum(
            3.0 * u[machine.u_slice[f"motor_{name}"]][0] * v[machine.v_slice[name]][0]
            for name in single
        )
        prop = np.array([1, 0, 0, 0.1, 0, 0])  # turning clockwise, its drag turns the frame back
        expected += u[machine.u_slice["prop"]][0] * prop @ xi["thrust"]
        expected += u[machine.u_slice["push"]][0] * np.array([0, 1, 0, 1, 0, 0]) @ xi["f2"]
        assert abs(power - expected) < 1e-12 * (1 + abs(expected))


def test_servo_bias_is_a_joint_force():
    rng = np.random.default_rng(4)
    machine = random_machine(rng, bodies=6, passive=False, fluid=False)
    name = next(j.name for j in machine.joints if j.nv == 1 and j.nx == 1)
    servo = JointForce("servo", name, gain=20.0, bias_terms=(1.0, -20.0, -2.0))
    eom = Tree(machine.attach(servo))
    x, v, _ = random_state(rng, machine)
    bias = evaluate(eom.functions["input_bias"], x, v).ravel()
    q, rate = x[machine.x_slice[name]], v[machine.v_slice[name]]
    assert np.allclose(bias[machine.v_slice[name]], 1.0 - 20 * q - 2 * rate)
    assert np.count_nonzero(bias) == 1
    assert isinstance(eom.functions["input_bias"], ca.Function)


@pytest.mark.parametrize("formulation", ["tree", "maximal", "constrained", "redundant"])
def test_inputs_move_the_machine_as_the_forces_they_amount_to(formulation):
    """`forward:u` loads joints and bodies one by one; B u and the bias are derived apart."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        machine = random_machine(rng, bodies=3, passive=False, fluid=False)
        single = next((j.name for j in machine.joints if j.nv == 1 and j.nx == 1), None)
        motors = [JointForce("servo", single, gain=20.0, bias_terms=(1, -2, -3))] if single else []
        machine = machine.attach(
            Frame("thrust", "b2", random_pose(rng)),
            Propeller("prop", "thrust", "x", torque_ratio=0.1, spin=-1),
            Wrench("push", "f1", rng.normal(size=(6, 2))),
            *motors,
        )
        eom = ff.equations(machine, formulation)
        x, v, _ = random_state(rng, machine)
        x, v = (np.asarray(value) for value in eom.start(x, v))
        u = rng.normal(size=machine.nu)
        (B,) = eom.numbers("input_matrix", x=x, v=v)
        (bias,) = eom.numbers("input_bias", x=x, v=v)
        (a,) = eom.numbers("forward:u", x=x, v=v, u=u)
        (expected,) = eom.numbers("forward", x=x, v=v, force=B @ u + bias)
        (idle,) = eom.numbers("forward", x=x, v=v, force=0 * bias)
        scale = 1 + np.abs(expected).max() + np.abs(idle).max()
        assert np.abs(a - expected).max() < 1e-9 * scale
        assert np.abs(a - idle).max() > 1e-6 * scale
