"""The equations of motion as a sum over bodies: against Pinocchio, Lagrange, and their own sums."""

import numpy as np
import pytest
from constrained_machines import closed_state, random_closed
from model_kinematics import example_urdfs
from random_machines import random_machine, random_state, relative_error, without_forces

from framefree.gallery.machines.crane import closed_form, crane, crane_model
from framefree.machine import MachineError
from framefree.machine.layouts import layout
from framefree.machine.read import read
from framefree.motion import Constrained, Embedded, Maximal, Redundant, Tree
from framefree.motion.embedded import tunable_body

WHOLE = {
    "body_mass": "mass",
    "body_coriolis": "coriolis",
    "body_gravity": "gravity",
    "body_bias": "bias",
    "body_kinetic": "energy",
}


def assert_adds_up(eom, x, v):
    for share, whole in WHOLE.items():
        parts = eom.numbers(share, x=x, v=v)[0]
        assert len(parts) == len(eom.machine.bodies)
        assert relative_error(parts.sum(axis=0), eom.numbers(whole, x=x, v=v)[0]) < 1e-9, share
        last = eom.machine.bodies[-1].name
        assert np.array_equal(eom.numbers(f"{share}:{last}", x=x, v=v)[0], parts[-1])


@pytest.mark.parametrize(
    ("seed", "formulation"),
    [(0, Tree), (1, Tree), (2, Tree), (3, Constrained), (0, Redundant), (1, Maximal), (3, Maximal)],
)
def test_shares_add_up_in_every_formulation_of_a_tree(seed, formulation):
    """With springs, dampers, friction, rotors, and a current in the fluid."""
    rng = np.random.default_rng(seed)
    machine = random_machine(rng, bodies=3, massless=False)
    eom = formulation(machine)
    assert_adds_up(eom, *eom.start(*random_state(rng, machine)[:2]))


@pytest.mark.parametrize("seed", range(2))
def test_shares_add_up_in_closed_chains(seed):
    rng = np.random.default_rng(seed)
    machine, x = random_closed(rng)
    x, v = closed_state(rng, Constrained(machine), x)
    eom = Embedded(machine, start=x)
    assert_adds_up(eom, *eom.start(x, v))


def test_share_of_a_body_is_that_of_a_robot_without_the_others():
    """Pinocchio's panda with the inertia of one link alone."""
    pin = pytest.importorskip("pinocchio", reason="needs the extra `peers`")
    path = next(p for name, p in example_urdfs().items() if name.endswith("/panda.urdf"))
    machine = without_forces(read(path, mimic="independent"), gravity=True)
    model = pin.buildModelFromUrdf(str(path))
    model.armature[:] = 0
    order = layout(machine, "pinocchio", list(model.names[1:]))
    eom, rng = Tree(machine), np.random.default_rng(1)
    x, v = machine.random(rng), rng.normal(size=machine.nv)
    place = order.v_from(x, np.arange(float(machine.nv))).astype(int)
    q, qd = order.x_to(x), order.v_to(x, v)
    whole = [model.inertias[j].copy() for j in range(model.njoints)]
    shares = {name: eom.numbers(name, x=x, v=v)[0] for name in WHOLE}
    for body, joint in zip(machine.bodies, machine.joints, strict=True):
        k = machine.body_index[body.name]
        for j in range(model.njoints):
            kept = j == model.getJointId(joint.name)
            model.inertias[j] = whole[j] if kept else pin.Inertia.Zero()
        data = model.createData()
        C = pin.computeCoriolisMatrix(model, data, q, qd)[np.ix_(place, place)]
        h = pin.nonLinearEffects(model, data, q, qd)[place]
        g = pin.computeGeneralizedGravity(model, data, q)[place]
        upper = np.triu(pin.crba(model, data, q))
        M = (upper + np.triu(upper, 1).T)[np.ix_(place, place)]
        energy = pin.computeKineticEnergy(model, data, q, qd)
        theirs = dict(zip(WHOLE, (M, C, g, h, energy), strict=True))
        for name, value in theirs.items():
            assert np.abs(shares[name][k] - value).max() < 1e-11 * (1 + np.abs(value).max()), name


@pytest.mark.parametrize("build", [lambda: closed_form(crane()), lambda: Embedded(crane_model())])
def test_shares_of_a_closed_chain_obey_lagrange(build):
    """h_b = dGamma_b/dt v - grad(v^T Gamma_b v) / 2 and dGamma_b/dt = C_b + C_b^T, differences."""
    eom, rng = build(), np.random.default_rng(0)
    gamma = eom.kernel("body_mass")
    for _ in range(3):
        x, v = rng.uniform((-3, -0.5, 0.02), (3, 1.4, 0.18)), rng.normal(size=3) * (1, 1, 0.2)
        step = 1e-5
        slopes = [
            (np.asarray(gamma(x + d)) - np.asarray(gamma(x - d))) / (2 * step)
            for d in step * np.eye(3)
        ]
        rate = sum(s * v_k for s, v_k in zip(slopes, v, strict=True))
        h = rate @ v - np.stack([v @ s @ v for s in slopes], axis=-1) / 2
        C = np.asarray(eom.kernel("body_coriolis")(x, v))
        bias = np.asarray(eom.kernel("body_bias")(x, v))
        gravity = np.asarray(eom.kernel("body_gravity")(x))
        scale = np.abs(h).max()
        assert np.abs(bias - gravity - h).max() < 1e-7 * scale
        assert np.abs(C @ v - h).max() < 1e-7 * scale
        assert np.abs(C + C.swapaxes(1, 2) - rate).max() < 1e-7 * np.abs(rate).max()


def test_only_the_shares_of_an_exchanged_body_change():
    machine = tunable_body(crane_model(), "arm", ("tip",))
    eom, rng = Embedded(machine), np.random.default_rng(0)
    x, v = np.array([0.3, 0.8, 0.1]), rng.normal(size=3)
    heavy = machine.parameters.values({"body:arm.mass": 90.0, "body:arm.center.y": 0.2})
    arm = machine.body_index["arm"]
    others = [k for k in range(len(machine.bodies)) if k != arm]
    for name in WHOLE:
        old = eom.numbers(name, x=x, v=v)[0]
        new = eom.numbers(name, heavy.tolist(), x=x, v=v)[0]
        assert np.array_equal(old[others], new[others])
        assert np.abs(old[arm] - new[arm]).max() > 1e-3 * np.abs(old[arm]).max()


def test_the_share_of_an_unknown_body_is_refused():
    with pytest.raises(MachineError, match="body `leg` is unknown"):
        Tree(crane_model().tree).kernel("body_mass:leg")
