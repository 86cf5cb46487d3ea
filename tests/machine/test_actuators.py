"""Actuators: wrenches, servo laws and limits, against the multicopters' published matrices."""

import casadi
import numpy as np
import pytest

from framefree.machine import (
    JointForce,
    MachineError,
    Propeller,
    Revolute,
    Spherical,
    SpinningPropeller,
    TiltingPropeller,
    Wrench,
    motors,
)
from framefree.machine.joint import Joint


def numeric(value):
    return np.array(casadi.DM(value))


def at(position, wrench):
    """Wrench columns at a point, taken to the origin (axes parallel)."""
    force, moment = wrench[:3], wrench[3:]
    return np.vstack([force, moment + np.cross(position, force, axisb=0, axisc=0)])


def test_quadcopter_input_matrix():
    """The published matrix of [Konz2024]: rows F_z and torques, columns thrusts 1 to 4."""
    r, c = 0.24, 0.01701
    columns = []
    for k, (angle, spin) in enumerate(zip((0, 90, 180, 270), (1, -1, 1, -1), strict=True)):
        position = r * np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle)), 0.0])
        propeller = Propeller(f"p{k}", "base", "z", c, spin)
        columns.append(at(position, numeric(propeller.columns)))
    expected = [[1, 1, 1, 1], [0, r, 0, -r], [-r, 0, r, 0], [-c, c, -c, c]]
    assert np.allclose(np.hstack(columns)[2:], expected, atol=1e-15)


def test_tricopter_input_matrix():
    """Columns of H (sine) and V (cosine), with the signs of the generic formula."""
    r, h, c, s = 0.24, -6e-3, 0.01701, np.sqrt(3) / 2
    sines, cosines = [], []
    for angle, spin in zip((60, 180, 300), (-1, 1, 1), strict=True):
        radial = np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle)), 0.0])
        propeller = TiltingPropeller("p", "base", "z", radial, c, spin)
        wrenches = at(r * radial + [0, 0, h], numeric(propeller.columns))
        sines.append(wrenches[:, 0])
        cosines.append(wrenches[:, 1])
    expected = np.array(
        [
            [0, 0, 0, s, 0, -s],
            [0, 0, 0, -1 / 2, 1, -1 / 2],
            [1, 1, 1, 0, 0, 0],
            [s * r, 0, -s * r, h / 2 + s * c, -h, h / 2 + s * c],
            [-r / 2, r, -r / 2, s * h - c / 2, -c, c / 2 - s * h],
            [c, -c, -c, -r, -r, -r],
        ]
    )
    assert np.allclose(np.column_stack(cosines + sines), expected, atol=1e-15)


def bicopter_propeller():
    return TiltingPropeller("p", "base", force=(2.0, 14.0), tilt=np.radians([-30.0, 30.0]))


def test_tilting_polytope_is_the_published_hexagon():
    A, b = bicopter_propeller().polytope
    vertices = [
        (-1.154701, 2),
        (1.154701, 2),
        (7, 12.124356),
        (2.431074, 13.787309),
        (-2.431074, 13.787309),
        (-7, 12.124356),
    ]
    for vertex in vertices:
        active = np.abs(A @ vertex - b) < 1e-5
        assert active.sum() == 2
        assert (A @ vertex <= b + 1e-5).all()


def test_tilting_polytope_is_inside_the_true_set():
    propeller = bicopter_propeller()
    A, b = propeller.polytope
    rng = np.random.default_rng(0)
    points = rng.uniform(propeller.lower, propeller.upper, (5000, 2))
    inside = (points @ A.T <= b).all(axis=1)
    thrust = np.linalg.norm(points[inside], axis=1)
    tilt = np.arctan2(points[inside, 0], points[inside, 1])
    assert inside.sum() > 1000
    assert (thrust >= 2.0).all()
    assert (thrust <= 14.0).all()
    assert (np.abs(tilt) <= np.radians(30.0)).all()
    assert propeller.u_names == ("p.sine", "p.cosine")


def test_tilting_without_upper_limit():
    propeller = TiltingPropeller("p", "base", tilt=(0.0, 0.5))
    assert propeller.lower.tolist() == [0.0, 0.0]
    assert propeller.upper.tolist() == [np.inf, np.inf]
    assert len(propeller.polytope[1]) == 3


def test_spinning_propeller():
    propeller = SpinningPropeller("p", "blade", "spin", "z", 1.44e-5, 2.45e-7, spin=-1)
    wrench = numeric(propeller.bias(casadi.DM(0), casadi.DM(-400.0))).ravel()
    assert np.allclose(wrench, [0, 0, 1.44e-5 * 400**2, 0, 0, 2.45e-7 * 400**2])
    assert propeller.nu == 0


def test_joint_force_through_a_gear():
    motor = JointForce("m", "j", gear=(0.0, 3.0, 4.0), gain=2.0)
    assert np.allclose(numeric(motor.columns).ravel(), [0, 6, 8])
    assert motor.bias(casadi.DM.zeros(3), casadi.DM.zeros(3)) is None


def test_position_servo():
    k, d, gear = 100.0, 7.0, 3.0
    servo = JointForce("m", "j", gear=gear, gain=k, bias_terms=(0.5, -k, -d))
    x, v = casadi.DM(0.2), casadi.DM(-0.4)
    expected = gear * (0.5 - k * gear * 0.2 - d * gear * -0.4)
    assert numeric(servo.bias(x, v)).item() == pytest.approx(expected)


def test_motors_for_all_velocities():
    joints = [
        Joint("hip", Spherical(), "world", "a", effort_limit=(1.0, 2.0, 3.0)),
        Joint("knee", Revolute(), "a", "b"),
    ]
    made = motors(joints)
    assert [m.name for m in made] == ["hip.wx", "hip.wy", "hip.wz", "knee"]
    assert np.allclose(np.hstack([numeric(m.columns) for m in made[:3]]), np.eye(3))
    assert [m.upper.item() for m in made] == [1.0, 2.0, 3.0, np.inf]


def test_wrench_with_several_inputs():
    wrench = Wrench("w", "f", np.eye(6)[:, :2], lower=-1, upper=(2, 3), A=[[1, 1]], b=[4])
    assert wrench.nu == 2
    assert wrench.u_names == ("w.0", "w.1")
    assert wrench.upper.tolist() == [2, 3]
    assert wrench.polytope[0].tolist() == [[1, 1]]
    assert Wrench("w", "f", np.arange(6.0)).u_names == ("w",)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Propeller("p", "f", (0, 0, 0)), "must not be zero"),
        (lambda: Propeller("p", "f", spin=0), r"\+1"),
        (lambda: Propeller("p", "f", lower=2, upper=1), "inverted"),
        (lambda: JointForce("m", "j", lower=np.nan), "numbers"),
        (lambda: JointForce("m", "j", force_lower=1, force_upper=0), "inverted"),
        (lambda: TiltingPropeller("p", "f", tilt_axis="z"), "across"),
        (lambda: TiltingPropeller("p", "f", force=(3, 2)), "0 <= lower < upper"),
        (lambda: TiltingPropeller("p", "f", tilt=(-2, 2)), "90 degrees"),
        (lambda: TiltingPropeller("p", "f", chords=0), "chord"),
        (lambda: Wrench("w", "f", np.eye(5)), "6x5"),
        (lambda: Wrench("w", "f", np.eye(6), A=np.eye(6)), "both"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(MachineError, match=message):
        make()
