"""Bodies that share native code keep their own values: each value graded along a long chain.

Loops over bodies let alike bodies share code. What differs from body to body must reach it as a
number; here one thing at a time differs, and the tree formulation, which shares nothing, is right.
"""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from random_machines import evaluate, random_pose, relative_error

from framefree.control.port import VelocityControl, looped
from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Damper,
    Fluid,
    Frame,
    Immersed,
    Joint,
    Machine,
    Revolute,
    Spring,
    Wrench,
)
from framefree.motion.maximal import Maximal
from framefree.motion.maximal.maximal import LOOPED
from framefree.motion.tree import Tree

GRADED = (
    *("mass", "center", "inertia", "offset", "child", "axis", "armature", "damping", "friction"),
    *("friction_width", "stiffness", "rest", "spring", "spring_frame", "damper", "drag"),
    *("quadratic_drag", "buoyancy", "added_mass"),
)


def graded_chain(count, what):
    """A chain with everything that acts, all bodies alike but for one value, which grows along."""
    rng = np.random.default_rng(0)
    at_parent, at_child, on_body = (random_pose(rng, 0.3) for _ in range(3))
    bodies, joints, frames, springs, dampers, immersed = [], [], [], [], [], []
    for i in range(count):
        grown = 1 + 2.0 * i / count

        def value(name, number, grown=grown):
            return number * (grown if what in (name, "everything") else 1.0)

        center = (0.1, value("center", 0.05), 0.0)
        inertia = value("inertia", 0.02) * np.diag([1.0, 1.3, 1.7])
        bodies.append(Body(f"b{i}", Moments.of_body(value("mass", 0.8), center, inertia)))
        parent, frame = "world" if i == 0 else f"b{i - 1}", np.array(at_parent)
        frame[:3, 3] *= value("offset", 1.0)
        child = np.array(at_child)
        child[:3, 3] *= value("child", 1.0)
        joints.append(
            Joint(
                f"j{i}",
                Revolute((value("axis", 0.5), 1, 2)),
                parent,
                f"b{i}",
                frame,
                child,
                armature=value("armature", 0.05),
                damping=value("damping", 0.3),
                friction=value("friction", 0.2),
                friction_width=value("friction_width", 0.3),
                stiffness=value("stiffness", 1.5),
                rest=value("rest", 0.4),
            )
        )
        pose = np.array(on_body)
        pose[:3, 3] *= value("spring_frame", 1.0)
        frames += [Frame(f"p{i}", parent, frame), Frame(f"f{i}", f"b{i}", pose)]
        springs.append(Spring.torsional(f"s{i}", f"p{i}", f"f{i}", value("spring", 0.7)))
        dampers.append(
            Damper(f"d{i}", f"p{i}", f"f{i}", value("damper", 0.2) * np.diag(np.arange(1.0, 7)))
        )
        immersed.append(
            Immersed(
                f"f{i}",
                volume=value("buoyancy", 1e-4),
                center=(0.02, 0, 0.01),
                added_mass=value("added_mass", 0.05) * np.arange(1.0, 7),
                linear_drag=value("drag", 0.1) * np.arange(1.0, 7),
                quadratic_drag=value("quadratic_drag", 0.1) * np.arange(1.0, 7),
            )
        )
    fluid = Fluid(immersed, current=(0.1, 0.2, 0.0))
    return Machine(bodies, joints, frames, springs=springs, dampers=dampers, fluid=fluid)


def in_motion(machine):
    """A random state, and the accelerations of the bodies by the tree formulation."""
    rng = np.random.default_rng(1)
    x, v = rng.normal(size=machine.nv), 0.5 * rng.normal(size=machine.nv)
    force, tree = rng.normal(size=machine.nv), Tree(machine)
    a = evaluate(tree.functions["forward"], x, v, force).ravel()
    accelerations = evaluate(tree.functions["body_acceleration"], x, v, a)
    pose, twist = evaluate(Maximal(machine).functions["from_joints"], x, v)
    return (pose.ravel(), twist.ravel(), 0 * twist.ravel(), force), accelerations


@pytest.mark.parametrize("what", ["damper", "stiffness", "everything"])
def test_every_body_of_a_long_chain_has_its_own_values(what):
    machine = graded_chain(LOOPED, what)
    state, expected = in_motion(machine)
    assert (
        relative_error(Maximal(machine).kernel("forward:both")(*state).reshape(-1, 6), expected)
        < 1e-9
    )


@pytest.mark.parametrize("what", GRADED)
def test_every_value_that_may_differ_is_kept(what):
    machine = graded_chain(5, what)
    state, expected = in_motion(machine)
    program = Maximal(machine).looped.programs["forward:both"]().function()
    assert relative_error(evaluate(program, *state).reshape(-1, 6), expected) < 1e-9
    # The value matters: with that of the first body throughout, the answer is another.
    _, other = in_motion(graded_chain(5, None))
    assert relative_error(other, expected) > 1e-4


@pytest.mark.parametrize("what", GRADED)
def test_every_body_has_its_own_values_in_a_law(what):
    """A port law as a loop over bodies, against the same law as one expression."""
    machine = graded_chain(4, what)
    ports = [Wrench(f"port{i}", body.name, np.eye(6)) for i, body in enumerate(machine.bodies)]
    machine = replace(machine, actuators=ports)
    law = VelocityControl(machine, damping=np.diag(np.arange(1.0, 7)))
    rng = np.random.default_rng(2)
    shapes = {name: (6, 1) for name in law.needs}
    kernel = looped(law, shapes)
    x, v = rng.normal(size=machine.nx), rng.normal(size=machine.nv)
    signals = {name: rng.normal(size=6) for name in law.needs}
    symbols = {name: ca.SX.sym("r", 6) for name in law.needs}
    state = [ca.SX.sym("t"), ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)]
    command = law.control(*state, symbols, ca.SX(0, 1))
    whole = ca.Function("law", [*state, *symbols.values()], [command.u, command.signals["V"]])
    u, V = evaluate(whole, 0.0, x, v, *signals.values())
    tau, V_looped, _ = kernel(x, v, *signals.values())
    assert relative_error(tau, u.ravel()) < 1e-9
    assert np.isclose(float(V_looped.ravel()[0]), float(V.ravel()[0]), rtol=1e-10)
