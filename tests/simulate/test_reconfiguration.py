"""Loops, bodies and laws that change while a run goes on, on both plants and within limits."""

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
import pytest

from framefree.control.references.joints import Hold
from framefree.control.robust import RobustControl
from framefree.geometry import Moments
from framefree.machine import Body, Coupling, Frame, Joint, JointForce, Loop, Machine, Revolute
from framefree.motion import Constrained, Embedded
from framefree.simulate import Change, SetParameters, SimulationError, simulate

GAINS = {"Lambda": 6.0, "K": 5.0, "kappa": 5.0, "eps": 0.05}
PLANTS = ["native", pytest.param("mujoco", marks=pytest.mark.filterwarnings("ignore"))]


def bar(name, mass=1.0):
    return Body(name, Moments.of_body(mass, (0.3, 0, 0), mass * np.diag([0.01, 0.1, 0.1])))


def linkage(rod=0.9, kind="distance", upper=np.inf, mass=1.0, drive=np.inf):
    """Two bars on the ground, a crank of 0.5 m and a rocker of 0.6 m, and a rod between them."""
    joints = [
        Joint("crank", Revolute("y"), "world", "a"),
        Joint("rocker", Revolute("y"), "world", "c", (1.0, 0, 0), upper=upper),
    ]
    bodies, frames = [bar("a"), bar("c", mass)], [Frame("ea", "a", (0.5, 0, 0))]
    frames.append(Frame("ec", "c", (0.6, 0, 0)))
    loop = Loop("rod", "distance", "ea", "ec", length=rod)
    if kind != "distance":
        bodies.append(bar("b"))
        joints.append(Joint("coupler", Revolute("y"), "a", "b", (0.5, 0, 0)))
        frames.append(Frame("eb", "b", (rod, 0, 0)))
        loop = Loop("pin", kind, "eb", "ec", axis="y" if kind == "hinge" else None)
    motor = JointForce("motor", "crank", lower=-drive, upper=drive)
    return Machine(bodies, joints, frames, loops=(loop,), actuators=(motor,), name="linkage")


def rocker_by_cosines(crank, rod):
    """The rocker's angle by the law of cosines, on the branch of these tests."""
    tip = 0.5 * np.array([np.cos(crank), -np.sin(crank)])  # (x, z)
    reach = tip - (1.0, 0.0)
    distance = np.linalg.norm(reach)
    inner = np.arccos((distance**2 + 0.36 - rod**2) / (1.2 * distance))
    return -(np.arctan2(reach[1], reach[0]) - inner)


def start(machine):
    first = np.zeros(machine.nx)
    first[:2] = -1.2, -1.4
    return Constrained(machine).project(first, hold=("crank",)).x


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("formulation", [None, "embedded", "maximal"])
def test_a_rod_of_another_length_closes_again(plant, formulation):
    """The driven crank stays, the rocker goes where the law of cosines says."""
    if plant == "mujoco":
        pytest.importorskip("mujoco")
        if formulation:
            pytest.skip("MuJoCo has its own")
    machine = linkage().tunable("rod.length")
    x0 = start(machine)
    assert np.isclose(x0[1], rocker_by_cosines(x0[0], 0.9), atol=1e-9)
    law = RobustControl(machine, **GAINS, start=x0)
    run = simulate(
        machine, law, Hold(machine, x0), x0, duration=0.2, dt=1e-3, plant=plant,
        formulation=formulation, events=[SetParameters(0.1, plant={"rod.length": 0.97})],
    )  # fmt: skip
    k = int(np.argmin(np.abs(run.t - 0.1)))
    assert abs(run.x[k, 0] - x0[0]) < 1e-4
    assert np.isclose(run.x[k, 1], rocker_by_cosines(run.x[k, 0], 0.97), atol=1e-6)
    late = [rocker_by_cosines(q, 0.97) for q in run.x[k:, 0]]
    assert np.abs(run.x[k:, 1] - late).max() < 1e-4
    event = run.meta["events"][0]
    assert np.isclose(event["jump_x"], abs(run.x[k, 1] - x0[1]), rtol=0.02)


@pytest.mark.parametrize("kind", ["distance", "hinge", "ball"])
def test_mujoco_moves_loops_of_these_kinds_alike(kind):
    """Free motion: MuJoCo with a string or with connects, ours with rows."""
    pytest.importorskip("mujoco")
    machine = linkage(kind=kind)
    x0 = start(machine)
    native, mujoco = (
        simulate(machine, x0=x0, duration=0.4, dt=5e-4, plant=plant, every=10)
        for plant in ("native", "mujoco")
    )
    assert np.abs(native.x[-1] - x0).max() > 0.1
    assert np.abs(native.x - mujoco.x).max() < 2e-3


@pytest.mark.parametrize("plant", PLANTS)
def test_bodies_and_laws_are_exchanged_within_drive_limits(plant):
    """A heavier rocker on a longer rod, and a law that knows it, under a limited motor."""
    if plant == "mujoco":
        pytest.importorskip("mujoco")
    machine, heavy = (linkage(*numbers, drive=40.0) for numbers in ((0.9,), (0.97,)))
    heavy = replace(heavy, bodies=(bar("a"), bar("c", 3.0)))
    x0 = start(machine)
    law, other = (RobustControl(m, **GAINS, start=x0) for m in (machine, heavy))
    goal = Hold(machine, x0)
    events = [Change(0.2, machine=heavy, law=other)]
    run = simulate(machine, law, goal, x0, duration=1.0, dt=1e-3, plant=plant, events=events)
    kept = simulate(
        machine, law, goal, x0, duration=1.0, dt=1e-3, plant=plant,
        events=[Change(0.2, machine=heavy)],
    )  # fmt: skip
    assert np.abs(run.u).max() <= 40.0
    assert abs(run["e"][-1].item()) < 1e-3 < abs(kept["e"][-1].item())
    late = run.t > 0.2 + 1e-9
    gaps = [rocker_by_cosines(q, 0.97) for q in run.x[late, 0]] - run.x[late, 1]
    assert np.abs(gaps).max() < 1e-4


def test_what_closes_only_beyond_limits_is_refused():
    machine = linkage(upper=-1.36).tunable("rod.length")
    x0 = start(machine)
    law = RobustControl(machine, **GAINS, start=x0)
    options = {"duration": 0.2, "dt": 1e-3}
    longer = SetParameters(0.1, plant={"rod.length": 0.97}, hold=("crank",))
    with pytest.raises(SimulationError, match=r"at 0\.1 s an event opens loops .*limits of joints"):
        simulate(machine, law, Hold(machine, x0), x0, events=[longer], **options)
    # Without holding the crank both bars move, and the rocker ends at its limit.
    run = simulate(
        machine, law, Hold(machine, x0), x0, events=[replace(longer, hold=None)], **options
    )
    k = int(np.argmin(np.abs(run.t - 0.1)))
    assert run.x[k, 1] <= -1.36 + 1e-6
    assert np.isclose(run.x[k, 1], rocker_by_cosines(run.x[k, 0], 0.97), atol=1e-6)
    torn = SetParameters(0.1, plant={"rod.length": 9.0})
    with pytest.raises(SimulationError, match="cannot be closed again"):
        simulate(machine, law, Hold(machine, x0), x0, events=[torn], **options)


def test_a_changed_machine_gets_equations_of_its_own():
    machine, longer = linkage(), linkage(0.97)
    x0 = start(machine)

    def solved(given):
        return Embedded(given, independent=("crank",), start=x0)

    options = {"duration": 0.1, "dt": 1e-3, "events": [Change(0.05, machine=longer)]}
    run = simulate(machine, x0=x0, formulation=solved, **options)
    plain = simulate(machine, x0=x0, **options)
    assert run.meta["formulation"] == "solved"
    assert np.abs(run.x - plain.x).max() < 1e-7
    with pytest.raises(SimulationError, match="as a function from a machine to its equations"):
        simulate(machine, x0=x0, formulation=solved(machine), **options)
    with pytest.raises(SimulationError, match="must return the equations of a machine, got int"):
        simulate(machine, x0=x0, formulation=lambda given: 3, **options)


@dataclass(frozen=True)
class Cam:
    """A follower of the user's own: size times the sine of the source."""

    size: float

    def __call__(self, q):
        return self.size * ca.sin(q)


def test_numbers_of_couplings_are_tuned_in_a_run():
    machine = replace(
        linkage(), loops=(), couplings=(Coupling("cam", "rocker", "crank", Cam(0.5)),)
    ).tunable("cam.size")
    assert machine.parameters.defaults.tolist() == [0.5]
    x0 = np.array([0.4, 0.5 * np.sin(0.4)])
    run = simulate(
        machine, x0=x0, duration=0.2, dt=1e-3, events=[SetParameters(0.1, plant={"cam.size": 0.8})]
    )
    size = np.where(run.t < 0.1 - 1e-9, 0.5, 0.8)
    assert np.abs(run.x[:, 1] - size * np.sin(run.x[:, 0])).max() < 1e-8
