"""Small errors along moving references: closed forms, Mathieu's chart, and differences of runs."""

import casadi as ca
import numpy as np
import pytest
from scipy.special import mathieu_a, mathieu_b

from framefree.control.closed_loop import ClosedLoop
from framefree.control.law import ControlError
from framefree.control.prototype import PrototypeControl
from framefree.control.prototype.integral import PrototypeIntegral
from framefree.control.prototype.tuning import characteristic, free_body, thrust_borne
from framefree.control.references import JointPath
from framefree.control.references.flat import FlatReference
from framefree.control.references.flat_curves import CircleCurve
from framefree.control.robust import RobustControl
from framefree.gallery.machines.multicopters import quadcopter, tricopter
from framefree.gallery.machines.planar import slider, wheel
from framefree.geometry import Moments
from framefree.machine import Body, Frame, Joint, JointForce, Loop, Machine, Revolute
from framefree.simulate import simulate

INERTIA, DAMPING, STIFFNESS = 0.2, 0.3, 1.7


def turning_law(approach, damping=DAMPING, stiffness=STIFFNESS):
    """A wheel with a prototype that turns about the same axis."""

    def about_z(value):
        return Moments.of(0.0, (0, 0, 0), np.diag([0.0, 0.0, value]))

    parameters = [{"wheel": about_z(value)} for value in (INERTIA, damping, stiffness)]
    return PrototypeControl(wheel(INERTIA), *parameters, approach=approach)


@pytest.mark.parametrize(
    ("approach", "softened"), [("particle", True), ("body", False), ("energy", False)]
)
def test_a_turning_reference_softens_the_particle_approach(approach, softened):
    """Theta e'' + sigma e' + (kappa - Theta phi_R'^2) e = 0 for particles, without for others."""
    law, speed = turning_law(approach), 2.5
    reference = JointPath(law.machine, lambda t: [speed * t])
    found = ClosedLoop(law).small_errors(reference, [0.0, 0.7])
    kappa = STIFFNESS - softened * INERTIA * speed**2
    roots = np.roots([INERTIA, DAMPING, kappa])
    assert np.allclose(np.sort_complex(found.eigenvalues[1]), np.sort_complex(roots), atol=1e-9)
    assert np.abs(found.missed).max() < 1e-12


@pytest.mark.parametrize("share", [0.97, 1.03])
@pytest.mark.parametrize("edge", [(mathieu_b, 1), (mathieu_a, 1), (mathieu_b, 2)])
def test_floquet_multipliers_follow_mathieus_chart(edge, share):
    """Without damping e'' + (kappa/Theta - phi_R'^2) e = 0 is Mathieu's equation.

    For phi_R' = r cos(w t) and s = w t: e_ss + (a - 2 q cos 2s) e = 0 with
    a = (kappa/Theta - r^2/2)/w^2 and q = r^2/(4 w^2). Errors grow where a lies between the
    characteristic values b_m(q) and a_m(q).
    """
    values, order = edge
    q, w = 0.4, 2.0
    a = share * float(values(order, q))
    r = 2 * w * np.sqrt(q)
    law = turning_law("particle", 0.0, INERTIA * (a * w**2 + r * r / 2))
    reference = JointPath(law.machine, lambda t: [r / w * ca.sin(w * t)])
    largest = np.abs(ClosedLoop(law).floquet(reference, np.pi / w).multipliers).max()
    low, high = (float(f(order, q)) for f in (mathieu_b, mathieu_a))
    assert (largest > 1 + 1e-3) == (low < a < high)
    if not low < a < high:
        assert largest == pytest.approx(1.0, abs=1e-7)


def test_frozen_eigenvalues_do_not_decide():
    """All frozen eigenvalues are on the left at all times, and yet errors grow."""
    q, w = 0.4, 2.0
    a = float(mathieu_b(1, q) + mathieu_a(1, q)) / 2
    r = 2 * w * np.sqrt(q)
    law = turning_law("particle", 0.01, INERTIA * (a * w**2 + r * r / 2))
    reference = JointPath(law.machine, lambda t: [r / w * ca.sin(w * t)])
    loop = ClosedLoop(law)
    assert loop.small_errors(reference, np.linspace(0, np.pi / w, 33)).slowest.max() < 0
    assert not loop.floquet(reference, np.pi / w).stable


def test_the_body_approach_of_a_free_body_decays_alike_along_every_reference():
    """Its error is autonomous: Floquet exponents along a circle are the prototype's poles."""
    machine = tricopter(drag=False)
    gains = free_body(1.3, (0.02, 0.03, 0.04), (2.0, 0.8), (5.0, 0.7))
    law = PrototypeControl(machine, **gains.on("body"), approach="body")
    circle = CircleCurve((0, 0, 1), (1, 0, 0), (0, 1, 0), 2.0)
    reference = FlatReference(machine, circle)
    found = ClosedLoop(law).floquet(reference, np.pi)
    roots = np.roots(characteristic((2.0, 0.8), (5.0, 0.7))[::-1])
    expected = np.exp(np.pi * np.repeat(roots, 3))
    assert np.allclose(np.sort(np.abs(found.multipliers)), np.sort(np.abs(expected)), rtol=1e-5)


def test_transition_is_what_a_run_makes_of_small_errors():
    """A quadcopter on a circle: differences of runs from both sides of the reference."""
    machine = quadcopter(drag=False, offset=False)
    poles = characteristic((3.0, 0.8), (12.0, 0.8))
    law = PrototypeControl(
        machine, **thrust_borne(1.001, poles, (2.5, 0.7), 0.0307).on("body"), approach="particle"
    )
    period = 1.5
    circle = CircleCurve((0, 0, 1), (0.6, 0, 0), (0, 0.6, 0), 2 * np.pi / period)
    reference = FlatReference(machine, circle)
    found = ClosedLoop(law).floquet(reference, period)
    x_R, v_R = (np.array(value).ravel() for value in reference.function(0.0)[:2])
    rng, size = np.random.default_rng(0), 1e-4
    first = rng.normal(size=(3, 12))
    starts = np.concatenate([size * first, -size * first])
    x0 = np.array([machine.integrate(x_R, z[:6]) for z in starts])
    run = simulate(
        machine,
        law,
        reference,
        x0,
        v_R + starts[:, 6:],
        duration=period,
        dt=5e-4,
        limits=False,
        every=3000,
        progress=False,
    )
    last = run.reference["x"][..., -1, :].reshape(-1, 7)[0]
    eps = np.array([machine.difference(last, x) for x in run.x[:, -1]])
    ends = np.hstack([eps, run.v[:, -1] - v_R])
    slopes = (ends[:3] - ends[3:]) / (2 * size)
    assert np.allclose(slopes, first @ found.transition.T, atol=2e-5)


def test_integral_action_adds_its_pole():
    """e'' = -d e' - k e - z/M and z' = K/M (Mbar e' + T Kbar e): a polynomial of third degree."""
    M, Mbar, Dbar, Kbar, gain, time = 0.5, 0.8, 3.0, 7.0, 2.0, 0.05
    straight = [
        {"slider": Moments.of(value, (0, 0, 0), np.zeros((3, 3)))} for value in (Mbar, Dbar, Kbar)
    ]
    law = PrototypeControl(
        slider(M), *straight, approach="body", integral=PrototypeIntegral(gain, time)
    )
    reference = JointPath(law.machine, lambda t: [ca.sin(2 * t)])
    share = gain / M**2
    roots = np.roots([1, Dbar / Mbar, Kbar / Mbar + share * Mbar, share * time * Kbar])
    found = ClosedLoop(law).small_errors(reference, [0.3])
    assert np.allclose(np.sort_complex(found.eigenvalues[0]), np.sort_complex(roots), atol=1e-9)
    multipliers = ClosedLoop(law).floquet(reference, np.pi).multipliers
    assert np.allclose(
        np.sort_complex(multipliers), np.sort_complex(np.exp(np.pi * roots)), atol=1e-8
    )
    with pytest.raises(ControlError, match="laws without memory"):
        ClosedLoop(law).about_rest()


GAINS = {"Lambda": 3.0, "K": 0.4, "kappa": 0.05, "eps": 0.1}


def bars():
    """A crank of 0.5 m and a rocker of 0.6 m on a ground of 1 m, with a rod of 0.9 m between."""
    bar = Moments.of_body(1.0, (0.3, 0, 0), np.diag([0.01, 0.1, 0.1]))
    return Machine(
        (Body("a", bar), Body("c", bar)),
        (
            Joint("crank", Revolute("y"), "world", "a"),
            Joint("rocker", Revolute("y"), "world", "c", (1.0, 0, 0)),
        ),
        (Frame("ea", "a", (0.5, 0, 0)), Frame("ec", "c", (0.6, 0, 0))),
        loops=(Loop("rod", "distance", "ea", "ec", length=0.9),),
        actuators=(JointForce("motor", "crank"),),
        name="bars",
    )


def rocker(crank, sin=np.sin, cos=np.cos, acos=np.arccos, atan2=np.arctan2):
    """The rocker's angle by the law of cosines."""
    x, z = 0.5 * cos(crank) - 1.0, -0.5 * sin(crank)
    far = (x * x + z * z) ** 0.5
    return acos((far**2 + 0.36 - 0.81) / (1.2 * far)) - atan2(z, x)


def test_errors_of_a_closed_chain_decay_as_the_proof_of_its_law_says():
    """Gamma ds/dt + (dGamma/dt)/2 s = -(K + kappa/eps) s, s = e' + Lambda e, of one coordinate.

    Gamma = 0.19 (1 + (d rocker / d crank)^2) is that of two bars about their pivots.
    """
    machine, pace = bars(), 2.0
    by_casadi = {"sin": ca.sin, "cos": ca.cos, "acos": ca.acos, "atan2": ca.atan2}

    def path(t):
        crank = -1.2 + 0.3 * ca.sin(pace * t)
        return [crank, rocker(crank, **by_casadi)]

    def inertia(t):
        crank, step = -1.2 + 0.3 * np.sin(pace * t), 1e-5
        return 0.19 * (1 + ((rocker(crank + step) - rocker(crank - step)) / (2 * step)) ** 2)

    reference = JointPath(machine, path)
    first = np.array([-1.2, rocker(-1.2)])
    loop = ClosedLoop(RobustControl(machine, **GAINS, start=first))
    pull = GAINS["K"] + GAINS["kappa"] / GAINS["eps"]
    moments = np.array([0.1, 0.9])
    found = loop.small_errors(reference, moments)
    assert np.abs(found.missed).max() < 1e-9
    for t, values in zip(moments, found.eigenvalues, strict=True):
        rate = (inertia(t + 1e-4) - inertia(t - 1e-4)) / 2e-4
        wanted = sorted([-GAINS["Lambda"], -(pull + rate / 2) / inertia(t)])
        assert np.allclose(np.sort(values.real), wanted, atol=1e-4)
    period = 2 * np.pi / pace
    times = np.linspace(0, period, 200, endpoint=False)
    decay = pull * period * np.mean([1 / inertia(t) for t in times])
    multipliers = np.sort(loop.floquet(reference, period).multipliers.real)
    assert np.allclose(multipliers, sorted(np.exp([-GAINS["Lambda"] * period, -decay])), rtol=1e-5)


def test_a_reference_that_opens_loops_is_refused():
    machine = bars()
    first = np.array([-1.2, rocker(-1.2)])
    loop = ClosedLoop(RobustControl(machine, **GAINS, start=first))
    reference = JointPath(machine, lambda t: [-1.2 + t, float(first[1])])
    with pytest.raises(ControlError, match="does not keep the loops of `bars`"):
        loop.small_errors(reference, [0.0, 0.1])
    with pytest.raises(ControlError, match="errors about rest are those of free velocities"):
        loop.about_rest(first)


def test_what_does_not_repeat_is_refused():
    law = turning_law("particle")
    reference = JointPath(law.machine, lambda t: [t * t])
    with pytest.raises(ControlError, match="do not repeat themselves after 1 s"):
        ClosedLoop(law).floquet(reference, 1.0)
    with pytest.raises(ControlError, match="`period` must be positive"):
        ClosedLoop(law).floquet(reference, 0.0)


def test_a_reference_that_cannot_be_followed_is_refused():
    machine = quadcopter(drag=False, offset=False)
    gains = thrust_borne(1.001, characteristic((3, 0.8), (12, 0.8)), (2.5, 0.7), 0.0307)
    law = PrototypeControl(machine, **gains.on("body"), approach="body")
    reference = JointPath(machine, lambda t: [ca.cos(t), ca.sin(t), 0, 1, 0, 0, 0])
    with pytest.raises(ControlError, match="does not follow this reference at no error"):
        ClosedLoop(law).floquet(reference, 2 * np.pi)
