"""What drag turns into heat: power of the twist relative to the fluid, whoever looks at it."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

from framefree.geometry import Moments, quaternion, se3
from framefree.machine import Body, Damper, Fluid, Frame, Free, Immersed, Joint, Machine, Revolute
from framefree.motion import equations
from framefree.motion.tree import Tree

CURRENT = np.array([0.4, -0.7, 0.25])


def moments(rng):
    return Moments.of_points(rng.normal(size=(5, 3)) * 0.3, rng.uniform(0.5, 1.5, 5))


def wet(rng, frame):
    root = rng.normal(size=(6, 6))
    drag = rng.uniform(0.1, 2, 6), rng.uniform(0.1, 2, 6)
    return Immersed(frame, 0.02, rng.normal(size=3) * 0.2, root @ root.T, *drag)


def swimmer(rng, current=CURRENT):
    """Return a hull with a fin, a damper between them, each immersed by a frame of its own."""
    poses = [np.array(se3.exp(rng.normal(size=6) * 0.5)) for _ in range(3)]
    return Machine(
        (Body("hull", moments(rng)), Body("fin", moments(rng))),
        (
            Joint("base", Free(), "world", "hull"),
            Joint("fin", Revolute((0.6, 0.0, 0.8)), "hull", "fin", poses[0], damping=0.3),
        ),
        (Frame("wet_hull", "hull", poses[1]), Frame("wet_fin", "fin", poses[2])),
        dampers=(Damper("d", "wet_hull", "wet_fin", moments(rng)),),
        fluid=Fluid((wet(rng, "wet_hull"), wet(rng, "wet_fin")), current=current),
    )


def value(function, *state):
    return float(function(*state))


def rotation(x):
    return np.array(quaternion.to_rotation(ca.DM(x[3:7])))


@pytest.mark.parametrize("seed", range(4))
def test_losses_are_those_seen_by_one_who_drifts_along(seed):
    """Heat does not depend on the observer: seen from the moving water the water is at rest."""
    rng = np.random.default_rng(seed)
    flowing = swimmer(rng)
    still = replace(flowing, fluid=replace(flowing.fluid, current=(0, 0, 0)))
    one, two = (Tree(machine).functions["dissipation"] for machine in (flowing, still))
    for _ in range(5):
        x, v = flowing.random(rng), rng.normal(size=flowing.nv)
        seen = v.copy()
        seen[:3] -= rotation(x).T @ CURRENT
        assert value(one, x, v) == pytest.approx(value(two, x, seen), rel=1e-12)
        assert value(one, x, v) > 0
        assert abs(value(one, x, v) / value(one, x, seen) - 1) > 1e-3


def test_what_drifts_with_the_current_loses_nothing():
    rng = np.random.default_rng(5)
    machine = swimmer(rng)
    x, v = machine.random(rng), np.zeros(machine.nv)
    v[:3] = rotation(x).T @ CURRENT
    dissipation = Tree(machine).functions["dissipation"]
    assert value(dissipation, x, v) == pytest.approx(0, abs=1e-14)
    assert value(dissipation, x, 0 * v) > 0.1  # what stands still in it is heated


@pytest.mark.parametrize("formulation", ["tree", "constrained", "embedded"])
def test_the_current_pays_for_what_is_lost(formulation):
    """Power of passive forces = -losses - current . drag: the water that drags gives the rest."""
    rng = np.random.default_rng(6)
    machine = swimmer(rng)
    dry = [replace(part, added_mass=0.0, volume=0.0) for part in machine.fluid.immersed]
    machine = replace(machine, fluid=replace(machine.fluid, immersed=dry), gravity=(0, 0, 0))
    functions = equations(machine, formulation).functions
    x, v = machine.random(rng), rng.normal(size=machine.nv)
    drag = np.zeros(3)
    for part in dry:
        pose = functions[f"frame_pose:{part.frame}"](x).full()
        twist = functions[f"jacobian:{part.frame}"](x).full() @ v
        twist[:3] -= pose[:3, :3].T @ CURRENT
        resisting = part.linear_drag @ twist + part.quadratic_drag @ (np.abs(twist) * twist)
        drag += pose[:3, :3] @ resisting[:3]
    power = value(functions["power"], x, v, np.zeros(machine.nv))
    assert power == pytest.approx(
        -value(functions["dissipation"], x, v) - CURRENT @ drag, rel=1e-12
    )
