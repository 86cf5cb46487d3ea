"""Tendons: forces along a length, the same in every formulation, and what they cost in energy."""

from dataclasses import dataclass

import casadi as ca
import numpy as np
import pytest
from random_machines import relative_error

from framefree.control.shared.limits import cut
from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Coupling,
    Frame,
    Joint,
    JointTendon,
    Machine,
    MachineError,
    Prismatic,
    Revolute,
    Tendon,
    TendonForce,
)
from framefree.machine.tendon import TendonReach
from framefree.motion import Constrained, Embedded, Maximal, Redundant, Tree
from framefree.motion.load import Load
from framefree.simulate.actuation import actuate

FORCES = {"stiffness": (30.0, 4.0, 9.0), "rest": (-0.1, 0.2), "damping": (0.3, 0.2, 0.1)}


@dataclass(frozen=True, eq=False)
class StraightTendon(Tendon):
    """A straight line between the origins of two frames, the simplest tendon over frames."""

    name: str
    frames: tuple[str, ...]

    frame_fields = ("frames",)

    def reach(self, coordinates, poses):
        (Ra, ra), (Rb, rb) = ((G[:3, :3], G[:3, 3]) for G in poses)
        length = ca.norm_2(rb - ra)
        along = (rb - ra) / length
        none = ca.SX(3, 1)
        return TendonReach(
            length, (), (ca.vertcat(-Ra.T @ along, none), ca.vertcat(Rb.T @ along, none))
        )


def arm(*parts, couplings=()):
    """Three links that turn and slide, with a frame at the tip."""
    bodies = [
        Body(f"b{i}", Moments.of_body(1.0 + i, (0.1, 0.0, 0.2), np.diag((0.02, 0.03, 0.04))))
        for i in range(3)
    ]
    kinds = (Revolute("y"), Prismatic((0.6, 0.0, 0.8)), Revolute((0.6, 0.8, 0.0)))
    joints = [
        Joint(f"j{i}", kind, "world" if i == 0 else f"b{i - 1}", f"b{i}", (0.1, 0.2, 0.3))
        for i, kind in enumerate(kinds)
    ]
    frames = (Frame("tip", "b2", (0.3, 0.1, 0.2)), Frame("anchor", "world", (0.5, -0.4, 0.3)))
    return Machine(tuple(bodies), tuple(joints), frames=frames, couplings=couplings).attach(*parts)


def over_joints(**more):
    return JointTendon("cable", ("j0", "j1", "j2"), (0.5, -2.0, 1.5), **{**FORCES, **more})


def straight(**more):
    return StraightTendon("cable", ("anchor", "tip"), **{**FORCES, **more})


KINDS = {"joints": over_joints, "frames": straight}


@pytest.mark.parametrize("kind", KINDS)
def test_every_formulation_has_the_same_forces(kind):
    rng = np.random.default_rng(1)
    servo = TendonForce("servo", "cable", 2.0, 20.0, (1.0, -20.0, -3.0))
    machine = arm(KINDS[kind](friction=0.4), servo)
    x, v = machine.random(rng), rng.normal(size=3)
    u, force = rng.normal(size=1), rng.normal(size=3)
    tree = Tree(machine)
    inputs = {"x": x, "v": v, "u": u, "joint_force": force, "force": force}
    for other in (Redundant(machine), Constrained(machine), Maximal(machine)):
        own = dict(zip(("x", "v"), other.start(x, v), strict=True))
        for name in ("energy", "dissipation", "power:u", "joint_wrench:u", "body_acceleration"):
            theirs = {**inputs, **own}
            if name == "body_acceleration":
                a = tree.numbers("forward:u", **inputs)[0].ravel()
                (ours,) = tree.numbers(name, **{**inputs, "a": a})
                a = other.numbers("forward:u", **theirs)[0].ravel()
                (seen,) = other.numbers(name, **{**theirs, "a": a})
                assert relative_error(ours, seen) < 1e-10, name
                continue
            for one, two in zip(
                tree.numbers(name, **inputs), other.numbers(name, **theirs), strict=True
            ):
                assert relative_error(one, two) < 1e-10, name


@pytest.mark.parametrize("kind", KINDS)
def test_forces_are_slopes_of_the_energy_and_losses(kind):
    rng = np.random.default_rng(2)
    machine = arm(KINDS[kind](friction=0.3))
    eom, bare, h = Tree(machine), Tree(machine.detach("cable")), 1e-6
    for _ in range(5):
        x, v = machine.random(rng), rng.normal(size=3)
        (with_tendon,), (without,) = (one.numbers("bias", x=x, v=v) for one in (eom, bare))
        power = v @ (with_tendon - without).ravel()
        ends = [
            [float(np.ravel(one.numbers("energy", x=x + s * h * v, v=v)[1])[0]) for s in (1, -1)]
            for one in (eom, bare)
        ]
        rate = np.diff(np.diff(ends, axis=0))[0, 0] / (2 * h)
        lost = float(np.ravel(eom.numbers("dissipation", x=x, v=v)[0])[0])
        assert power == pytest.approx(rate + lost, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_a_machine_with_couplings_feels_its_tendons(kind):
    rng = np.random.default_rng(3)
    held = Coupling.mimic("gear", "j2", "j0", -1.5, 0.1)
    motor = TendonForce("motor", "cable", gear=3.0)
    machine = arm(KINDS[kind](), motor, couplings=(held,))
    constrained, embedded = Constrained(machine), Embedded(machine)
    x = np.array([0.3, 0.1, 0.1 - 1.5 * 0.3])
    v = np.array([0.5, -0.2, -0.75])
    u = rng.normal(size=1)
    own = dict(zip(("x", "v"), embedded.start(x, v), strict=True))
    there = {**own, "u": u}
    (a,) = embedded.numbers("forward:u", **there)
    (b,) = constrained.numbers("forward:u", x=x, v=v, u=u)
    energies = zip(
        embedded.numbers("energy", **own), constrained.numbers("energy", x=x, v=v), strict=True
    )
    assert all(relative_error(one, two) < 1e-12 for one, two in energies)
    rate = embedded.numbers("power:u", **there)[0]
    assert relative_error(rate, constrained.numbers("power:u", x=x, v=v, u=u)[0]) < 1e-10
    assert np.abs(np.ravel(a)[0] - np.ravel(b)[0]) < 1e-9 * np.abs(b).max()


def test_slopes_of_the_acceleration_know_tendons():
    rng = np.random.default_rng(4)
    for make in KINDS.values():
        machine = arm(make())
        eom, h = Tree(machine), 1e-6
        x, v, force = machine.random(rng), rng.normal(size=3), rng.normal(size=3)
        by_x = eom.numbers("forward_derivatives", x=x, v=v, force=force)[0]
        for k in range(3):
            step = h * np.eye(3)[k]
            ends = [eom.forward(x + s * step, v, force) for s in (1, -1)]
            assert np.allclose(by_x[:, k], (ends[0] - ends[1]) / (2 * h), rtol=1e-5, atol=1e-6)


def test_force_limits_of_motor_tendon_and_joint_hold():
    def push(u, tendon_most=np.inf, joint_most=np.inf, motor_most=np.inf):
        tendon = JointTendon(
            "cable", ("j0", "j2"), (1.0, 2.0), effort_lower=-0.5, effort_upper=tendon_most
        )
        motor = TendonForce("motor", "cable", force_upper=motor_most)
        machine = arm(tendon, motor).replace("j2", effort_limit=joint_most)
        state, load = Tree(machine).at(ca.SX.sym("x", 3), ca.SX.sym("v", 3)), Load(machine)
        actuate(load, state, ca.SX(u), limits=True)
        force = np.array(ca.DM(load.joint_force)).ravel()
        own = state.input_matrix @ u + cut(state, ca.SX(u))
        assert np.allclose(np.array(ca.DM(own)).ravel(), force)
        return force

    for limits, applied in (
        ({"tendon_most": 2.0}, (2.0, 0.0, 4.0)),
        ({"motor_most": 3.0}, (3.0, 0.0, 6.0)),
        ({"joint_most": 1.0}, (10.0, 0.0, 1.0)),
    ):
        assert np.allclose(push(10.0, **limits), applied), limits
    assert np.allclose(push(-10.0), (-0.5, 0.0, -1.0))


def test_names_and_references_follow_edits():
    machine = arm(over_joints(), TendonForce("motor", "cable"))
    renamed = machine.replace("j0", name="base").replace("cable", name="rope")
    assert renamed.tendon("rope").coordinates == ("base", "j1", "j2")
    assert renamed.actuators[0].tendon == "rope"
    assert not machine.detach("b2").tendons
    assert not machine.detach("b2").actuators
    assert Machine.from_dict(machine.to_dict()) == machine
    with pytest.raises(MachineError, match="coordinate `nothing`"):
        arm(JointTendon("t", ("nothing",)))
    with pytest.raises(MachineError, match="tendon `nothing`"):
        arm(TendonForce("motor", "nothing"))
    with pytest.raises(MachineError, match="cannot be locked while tendon `cable` uses it"):
        machine.lock("j1")
    with pytest.raises(MachineError, match="must not decrease"):
        over_joints(rest=(0.2, -0.1))
