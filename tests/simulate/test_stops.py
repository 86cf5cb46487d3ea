"""Joint stops: closed forms of one joint, energy, all formulations, both plants, bad input."""

from dataclasses import replace

import numpy as np
import pytest

import framefree as ff
from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Joint,
    JointStop,
    Machine,
    MachineError,
    Prismatic,
    Revolute,
    Stops,
)
from framefree.motion import equations
from framefree.simulate import SimulationError


def slider(**fields):
    body = Body("cart", Moments.of_body(2.0, (0, 0, 0), 0.01 * np.eye(3)))
    limits = {"lower": -0.2, "upper": 0.3, "velocity_limit": 2.0, "effort_limit": 50.0}
    joint = Joint("rail", Prismatic("x"), "world", "cart", **{**limits, **fields})
    return Machine([body], [joint], gravity=(0, 0, 0))


def two_links():
    rod = Moments.of_body(1.0, (0.25, 0, 0), np.diag([0.001, 0.02, 0.02]))
    limits = {"lower": -1.0, "upper": 1.2, "velocity_limit": 3.0, "effort_limit": 20.0}
    joints = [
        Joint("shoulder", Revolute("y"), "world", "upper", **limits),
        Joint("elbow", Revolute("y"), "upper", "lower", parent_pose=_shifted(0.5), **limits),
    ]
    return Machine([Body("upper", rod), Body("lower", rod)], joints)


def _shifted(x):
    pose = np.eye(4)
    pose[0, 3] = x
    return pose


def test_a_joint_comes_back_from_its_stop_with_the_speed_of_the_closed_form():
    # c (v_in + v_out) = log((1 + c v_in) / (1 - c v_out)), whatever the stiffness and the mass.
    c, v_in = 0.8, 1.5
    for side, stiffness in ((1, 1e3), (-1, 2e4)):
        run = ff.simulate(
            slider(),
            v0=[side * v_in],
            duration=0.6,
            dt=1e-4,
            every=10,
            integrator="rk4",
            stops=Stops(stiffness=stiffness, damping=c),
        )
        v_out = -side * run.v[-1, 0]
        assert 0.3 < v_out < v_in
        assert c * (v_in + v_out) == pytest.approx(
            np.log((1 + c * v_in) / (1 - c * v_out)), rel=1e-4
        )


def test_by_default_half_of_the_largest_speed_comes_back():
    run = ff.simulate(slider(), v0=[2.0], duration=0.5, dt=1e-4, every=10, stops=True)
    assert run.v[-1, 0] == pytest.approx(-1.0, rel=1e-3)
    (stop,) = Stops().parts(slider())
    assert float(stop.stiffness[0]) * 0.01 * 0.5 == pytest.approx(50.0)  # 1 percent at full force


def test_without_stops_nothing_stops_a_joint():
    run = ff.simulate(slider(), v0=[1.5], duration=0.6, dt=1e-3)
    assert run.x[-1, 0] == pytest.approx(0.9)


def test_energy_is_kept_apart_from_what_is_recorded_as_lost():
    machine = two_links()
    stops = Stops(stiffness=500.0, damping=0.3)
    run = ff.simulate(
        machine, x0=[0.4, 0.3], v0=[1.0, -2.0], duration=2.0, dt=5e-4, integrator="rk4", stops=stops
    )
    energy = run.signals["kinetic"] + run.signals["potential"]
    lost = run.signals["dissipation"]
    assert lost.min() >= 0
    assert lost.max() > 1
    heat = np.concatenate([[0.0], np.cumsum((lost[1:] + lost[:-1]) / 2 * np.diff(run.t))])
    assert np.abs(energy + heat - energy[0]).max() < 1e-3 * np.ptp(energy)


def test_force_and_energy_belong_together_and_nothing_acts_inside_the_range():
    machine = Stops(stiffness=300.0, damping=0.0).on(two_links())
    plain = equations(two_links())
    eom = equations(machine)
    rng, rest = np.random.default_rng(0), np.zeros(2)

    def extra(x):
        return eom.energy(x, rest)[1] - plain.energy(x, rest)[1]

    for _ in range(20):
        x, a = rng.uniform(-1.6, 1.6, 2), rng.standard_normal(2)
        own = eom.inverse(x, np.zeros(2), a) - plain.inverse(x, np.zeros(2), a)
        h = 1e-6
        slope = [(extra(x + h * e) - extra(x - h * e)) / (2 * h) for e in np.eye(2)]
        np.testing.assert_allclose(own, np.ravel(slope), atol=1e-5)
        inside = (x > -1.0) & (x < 1.2)
        assert (own[inside] == 0).all()


@pytest.mark.parametrize("formulation", ["maximal", "constrained"])
def test_formulations_agree_beyond_the_range(formulation):
    start = {
        "x0": [1.1, -0.98],
        "v0": [2.0, -3.0],
        "duration": 0.2,
        "dt": 1e-3,
        "integrator": "rk4",
    }
    stops = Stops(stiffness=300.0, damping=0.5)
    expected = ff.simulate(two_links(), **start, stops=stops)
    assert expected.x[:, 0].max() > 1.22
    assert expected.x[:, 1].min() < -1.02
    other = ff.simulate(two_links(), **start, stops=stops, formulation=formulation)
    joints = other.x if formulation == "constrained" else expected.x
    np.testing.assert_allclose(joints, expected.x, atol=1e-9)
    np.testing.assert_allclose(other["potential"], expected["potential"], rtol=1e-6)
    np.testing.assert_allclose(other["stop_force"], expected["stop_force"], atol=1e-5)


@pytest.mark.parametrize("plant", ["native", "mujoco"])
def test_an_arm_that_hangs_in_its_stop_is_carried_by_it(plant):
    machine = two_links()
    joints = [replace(joint, damping=1.0) for joint in machine.joints]
    machine = replace(machine, joints=joints)
    stiffness = 400.0
    run = ff.simulate(
        machine,
        x0=[1.2, 0.0],
        duration=6.0,
        dt=1e-3,
        plant=plant,
        stops=Stops(stiffness=stiffness, damping=0.2),
    )
    depth = run.x[-1] - 1.2
    holding = equations(machine).inverse(run.x[-1], np.zeros(2), np.zeros(2))  # statics, no stop
    stopped = run.signals["stop_force"][-1]
    pressed = depth > 0
    assert pressed.any()
    np.testing.assert_allclose(stopped[pressed], -stiffness * depth[pressed], rtol=1e-6)
    np.testing.assert_allclose(stopped[pressed], np.ravel(holding)[pressed], rtol=1e-3, atol=1e-3)


def test_stops_are_recorded_by_coordinate_with_units_and_need_the_implicit_integrator_when_stiff():
    run = ff.simulate(
        slider(), v0=[1.0], duration=0.5, dt=1e-3, stops=Stops(stiffness=1e8, damping=0.1)
    )
    assert run.meta["integrator"] == "implicit"
    assert "stops" in run.meta["integrator_choice"]
    assert run.units("stop_force") == ("N",)
    assert np.isfinite(run.x).all()
    assert run.x[:, 0].max() < 0.31


def test_tunable_machines_and_batches():
    machine = slider().tunable("cart.mass")
    v0 = np.array([[1.0], [1.2]])
    stops = Stops(stiffness=1e3, damping=0.4)
    both = ff.simulate(
        machine,
        v0=v0,
        x0=np.zeros((2, 1)),
        parameters=np.array([[2.0], [3.0]]),
        duration=0.5,
        dt=1e-3,
        stops=stops,
    )
    one = ff.simulate(
        machine, v0=v0[1], parameters={"cart.mass": 3.0}, duration=0.5, dt=1e-3, stops=stops
    )
    assert np.array_equal(both.x[1], one.x)


def test_a_stop_is_saved_with_its_machine():
    machine = Stops(stiffness=300.0).on(two_links())
    assert Machine.from_dict(machine.to_dict()) == machine


def test_mistakes_are_named():
    free = replace(slider(), joints=[replace(slider().joints[0], lower=-np.inf, upper=np.inf)])
    with pytest.raises(MachineError, match=r"no joint of .* has a limit"):
        ff.simulate(free, duration=0.1, dt=1e-2, stops=True)
    one_sided = slider(lower=-np.inf)
    with pytest.raises(MachineError, match=r"Stops\(stiffness=\{'rail'"):
        ff.simulate(one_sided, duration=0.1, dt=1e-2, stops=True)
    run = ff.simulate(
        one_sided, v0=[-3.0], duration=0.2, dt=1e-2, stops=Stops(stiffness={"rail": 1e3})
    )
    assert run.x[-1, 0] == pytest.approx(-0.6)
    with pytest.raises(MachineError, match="joint `rial` is unknown; did you mean `rail`"):
        ff.simulate(slider(), duration=0.1, dt=1e-2, stops=Stops(joints=["rial"]))
    with pytest.raises(MachineError, match="`nail` is unknown"):
        ff.simulate(slider(), duration=0.1, dt=1e-2, stops=Stops(stiffness={"nail": 1.0}))
    with pytest.raises(SimulationError, match="`stops` must be True, False or Stops"):
        ff.simulate(slider(), duration=0.1, dt=1e-2, stops=3.0)
    with pytest.raises(MachineError, match="one positive number"):
        JointStop(name="s", coordinate="rail", stiffness=-1.0, rest=(0, 1))
    with pytest.raises(MachineError, match="zero or more"):
        JointStop(name="s", coordinate="rail", stiffness=1.0, rest=(0, 1), impact_damping=-1.0)
    machine = slider()
    with pytest.raises(SimulationError, match="by its name"):
        ff.simulate(machine, duration=0.1, dt=1e-2, stops=True, formulation=equations(machine))
