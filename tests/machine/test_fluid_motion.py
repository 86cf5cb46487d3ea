"""Fluid forces in motion: against textbook equations, in every frame, in any uniform current."""

from dataclasses import replace

import casadi as ca
import numpy as np

from framefree.geometry import Moments, quaternion, se3
from framefree.machine import Body, Fluid, Frame, Free, Immersed, Joint, Machine, Revolute
from framefree.motion.tree import Tree
from published import published

CURRENT = np.array([0.4, -0.7, 0.25])


def numeric(value):
    return np.array(ca.DM(value))


def random_immersed(rng, frame):
    A = rng.normal(size=(6, 6))
    return Immersed(
        frame, 0.02, rng.normal(size=3) * 0.2, A @ A.T, rng.uniform(0, 2, 6), rng.uniform(0, 2, 6)
    )


def moments(rng):
    return Moments.of_points(rng.normal(size=(5, 3)) * 0.3, rng.uniform(0.5, 1.5, 5))


def swimmer(rng, current=CURRENT, gravity=(0.2, -0.5, -9.7)):
    """Return a hull with a fin, each immersed by a frame that is not its own."""
    poses = [numeric(se3.exp(rng.normal(size=6) * 0.5)) for _ in range(3)]
    return Machine(
        (Body("hull", moments(rng)), Body("fin", moments(rng))),
        (
            Joint("base", Free(), "world", "hull"),
            Joint("fin", Revolute((0.6, 0.0, 0.8)), "hull", "fin", parent_pose=poses[0]),
        ),
        (Frame("wet_hull", "hull", poses[1]), Frame("wet_fin", "fin", poses[2])),
        fluid=Fluid(
            (random_immersed(rng, "wet_hull"), random_immersed(rng, "wet_fin")), current=current
        ),
        gravity=gravity,
        name="swimmer",
    )


def state(machine, rng):
    return machine.random(rng), rng.normal(size=machine.nv), rng.normal(size=machine.nv)


def skew(a):
    return np.cross(np.eye(3), np.asarray(a))


def test_hull_moves_as_in_the_textbook():
    """M_RB dv + C_RB v + M_A dv_r + C_A(v_r) v_r + D(v_r) v_r + g = tau, written with NumPy."""
    rng = np.random.default_rng(0)
    body, wet = moments(rng), random_immersed(rng, "hull")
    gravity = np.array([0.2, -0.5, -9.7])
    machine = Machine(
        (Body("hull", body),), (Joint("base", Free(), "world", "hull"),),
        fluid=Fluid((wet,), density=1026.0, current=CURRENT), gravity=gravity,
    )  # fmt: skip
    inverse = Tree(machine).functions["inverse"]
    m, c = body.total, body.first / body.total
    M_A, M = wet.added_mass, numeric(body.matrix6)
    for _ in range(20):
        x, v, a = state(machine, rng)
        R = numeric(quaternion.to_rotation(ca.DM(x[3:])))
        w, flow = v[3:], R.T @ CURRENT
        v_r = v - np.concatenate([flow, np.zeros(3)])
        a_r = a + np.concatenate([np.cross(w, flow), np.zeros(3)])

        def coriolis(matrix, nu):
            p, l = np.split(matrix @ nu, 2)
            return -np.block([[np.zeros((3, 3)), skew(p)], [skew(p), skew(l)]]) @ nu

        weight, lift = m * R.T @ gravity, -1026.0 * wet.volume * R.T @ gravity
        restoring = -np.concatenate(
            [weight + lift, np.cross(c, weight) + np.cross(wet.center, lift)]
        )
        drag = wet.linear_drag @ v_r + wet.quadratic_drag @ (np.abs(v_r) * v_r)
        expected = M @ a + coriolis(M, v) + M_A @ a_r + coriolis(M_A, v_r) + drag + restoring
        assert np.allclose(numeric(inverse(x, v, a)).ravel(), expected, rtol=0, atol=1e-10)


def test_a_current_is_the_same_as_a_frame_that_goes_with_it():
    """Seen from a frame carried by the water the water is at rest, and forces are the same."""
    rng = np.random.default_rng(1)
    flowing = swimmer(rng)
    still = replace(flowing, fluid=replace(flowing.fluid, current=(0, 0, 0)))
    one, two = Tree(flowing).functions["inverse"], Tree(still).functions["inverse"]
    for _ in range(20):
        x, v, a = state(flowing, rng)
        flow = numeric(quaternion.to_rotation(ca.DM(x[3:7]))).T @ CURRENT
        v_seen, a_seen = v.copy(), a.copy()
        v_seen[:3] -= flow
        a_seen[:3] += np.cross(v[3:6], flow)
        assert np.allclose(numeric(one(x, v, a)), numeric(two(x, v_seen, a_seen)), atol=1e-10)


def test_forces_do_not_depend_on_the_world_frame():
    rng = np.random.default_rng(2)
    machine = swimmer(rng)
    turn = numeric(se3.exp(rng.normal(size=6)))
    Q = turn[:3, :3]
    turned = replace(
        machine,
        gravity=Q @ machine.gravity,
        fluid=replace(machine.fluid, current=Q @ CURRENT),
    )
    one, two = Tree(machine).functions["inverse"], Tree(turned).functions["inverse"]
    for _ in range(10):
        x, v, a = state(machine, rng)
        G = turn @ numeric(Free().pose(ca.DM(x[:7])))
        y = x.copy()
        y[:3], y[3:7] = G[:3, 3], numeric(quaternion.from_rotation(ca.DM(G[:3, :3]))).ravel()
        assert np.allclose(numeric(one(x, v, a)), numeric(two(y, v, a)), atol=1e-9)


def test_forces_do_not_depend_on_the_frames_of_the_bodies():
    """The hull described in another frame of it: poses on it move along, forces stay."""
    rng = np.random.default_rng(3)
    machine = swimmer(rng)
    move = numeric(se3.exp(rng.normal(size=6)))  # the new frame seen from the old one
    back = np.linalg.inv(move)
    hull, fin = machine.bodies
    base, joint = machine.joints
    other = replace(
        machine,
        bodies=(replace(hull, inertia=hull.inertia.moved(back)), fin),
        joints=(
            replace(base, child_pose=back @ base.child_pose),
            replace(joint, parent_pose=back @ joint.parent_pose),
        ),
        frames=tuple(
            replace(f, pose=back @ f.pose) if f.body == "hull" else f for f in machine.frames
        ),
    )
    one, two = Tree(machine).functions["inverse"], Tree(other).functions["inverse"]
    for _ in range(10):
        given = state(machine, rng)
        assert np.allclose(numeric(one(*given)), numeric(two(*given)), atol=1e-9)


def test_added_mass_moves_with_its_matrix_to_another_frame():
    """Added mass and linear drag given at another frame, transformed, do the same."""
    rng = np.random.default_rng(4)
    machine = swimmer(rng)
    smooth = [replace(b, quadratic_drag=0.0) for b in machine.fluid.immersed]
    machine = replace(machine, fluid=replace(machine.fluid, immersed=smooth))
    move = numeric(se3.exp(rng.normal(size=6)))
    Ad = numeric(se3.adjoint(ca.DM(move)))
    first = machine.fluid.immersed[0]
    carried = replace(
        first,
        frame="elsewhere",
        center=(np.linalg.inv(move) @ [*first.center, 1.0])[:3],
        added_mass=Ad.T @ first.added_mass @ Ad,
        linear_drag=Ad.T @ first.linear_drag @ Ad,
    )
    at = machine.frame("wet_hull").pose @ move
    other = replace(
        machine,
        frames=(*machine.frames, Frame("elsewhere", "hull", at)),
        fluid=replace(machine.fluid, immersed=(carried, machine.fluid.immersed[1])),
    )
    one, two = Tree(machine).functions["inverse"], Tree(other).functions["inverse"]
    for _ in range(10):
        given = state(machine, rng)
        assert np.allclose(numeric(one(*given)), numeric(two(*given)), atol=1e-9)


def test_power_is_the_rate_of_energy_in_a_current():
    rng = np.random.default_rng(5)
    machine = swimmer(rng)
    tree = Tree(machine)
    x, v, force = (ca.SX.sym(n, s) for n, s in (("x", machine.nx), ("v", 7), ("f", 7)))
    energy = sum(tree.functions["energy"](x, v), ca.SX(0))
    a = tree.functions["forward"](x, v, force)
    rate = ca.jtimes(energy, x, machine.rate_matrix(x) @ v) + ca.jtimes(energy, v, a)
    gap = ca.Function("gap", [x, v, force], [rate - tree.functions["power"](x, v, force)])
    for _ in range(10):
        assert abs(float(gap(*state(machine, rng)))) < 1e-8


def test_remus_has_its_published_matrices_and_natural_frequencies():
    given = published("vehicles")["remus100"]
    down = np.diag([1.0, -1.0, -1.0])  # from z down to z up
    m, low = given["m"], down @ [0.0, 0.0, 0.02]
    body = Moments.of_body(m, low, np.diag([given["Ix"], given["Iy"], given["Iy"]]))
    wet = Immersed("hull", m / 1026.0, added_mass=given["MA_diag"])
    machine = Machine(
        (Body("hull", body),), (Joint("base", Free(), "world", "hull"),),
        fluid=Fluid((wet,), density=1026.0), gravity=(0, 0, -given["W"] / m),
    )  # fmt: skip
    flip, tree = np.kron(np.eye(2), down), Tree(machine)
    M = tree.functions["mass"](machine.neutral()).full()
    together = np.array(given["MRB"]) + np.diag(given["MA_diag"])
    assert np.allclose(M, flip @ together @ flip, rtol=0, atol=1e-10)
    x = ca.SX.sym("x", 7)
    slope = ca.jacobian(tree.functions["bias"](x, np.zeros(6)), x) @ machine.rate_matrix(x)
    K = ca.Function("K", [x], [slope])(machine.neutral()).full()
    for k, name in ((3, "w_roll"), (4, "w_pitch")):
        assert np.isclose(np.sqrt(K[k, k] / M[k, k]), given[name], rtol=1e-9)
