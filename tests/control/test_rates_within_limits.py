"""The stated rate of V is that of the record, also where drives are at their limits.

Every law that states V (or W) moves its own model, with drives as strong as it asks for and with
drives that are too weak: limits of inputs, of motors' forces and of the effort of joints. The rate
that it states is compared with differences of what it recorded, away from the moments at which a
drive comes to or from its limit.
"""

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import pytest
from law_checks import Fixed, driven, floating, unlimited

from framefree.control import (
    ComputedTorque,
    EndEffectorControl,
    EndEffectorPassivity,
    Impedance,
    PassivityControl,
    PDGravity,
    PoseControl,
    PrototypeControl,
    RobustControl,
    StationKeeping,
    VelocityControl,
)
from framefree.control.passive import EulerPassivity, FreeFloating, Rolling
from framefree.control.prototype.tuning import free_body
from framefree.control.references import FramePath, Hold, JointPath
from framefree.control.references.bodies import BodyPoses, BodyVelocities
from framefree.gallery.machines.arms import iiwa, revolute_chain
from framefree.gallery.machines.five_bar import five_bar, five_bar_at
from framefree.gallery.machines.multicopters import quadcopter
from framefree.geometry import Moments, se3
from framefree.machine import Body, Fluid, Free, Immersed, Joint, Machine, Planar, Revolute
from framefree.machine.actuators import JointForce, Wrench
from framefree.motion import equations
from framefree.motion.constrained import Constrained
from framefree.motion.constrained.rows import Nonholonomic
from framefree.simulate import simulate

DT = 2e-5
STEPS = 60


# ---------------------------------------------------------------------- drives


def weak(machine, share, kind):
    """Return the machine with drives limited to a force, by one of the kinds of limits."""
    for drive in machine.actuators:
        name = f"actuator:{drive.name}"
        if kind == "weak" or not isinstance(drive, JointForce):
            bound = np.full(drive.nu, share)
            machine = machine.replace(name, lower=-bound, upper=1.2 * bound)
        elif kind == "weak motors":
            machine = machine.replace(name, force_lower=-share, force_upper=1.2 * share)
    if kind == "weak joints":
        for joint in machine.joints:
            machine = machine.replace(f"joint:{joint.name}", effort_limit=share)
    return machine


# ---------------------------------------------------------------------- machines


def arm():
    return unlimited(driven(revolute_chain(3)))


def seven():
    return unlimited(driven(iiwa()))


def submarine():
    """A vehicle with an arm in a current, with more thrusters than it needs."""
    hull = Moments.of_body(4.0, (0, 0, -0.02), np.diag([0.8, 1.0, 1.1]))
    link = Moments.of_body(1.0, (0.3, 0, 0), np.diag([0.2, 0.3, 0.3]))
    added = np.diag([1.0, 2.0, 3.0, 0.3, 0.5, 0.4])
    water = Fluid(
        (Immersed("hull", 5e-3, (0, 0, 0.02), added, 1.0, 3.0),), current=(0.3, -0.2, 0.1)
    )
    thrusters = np.random.default_rng(0).normal(size=(6, 8))
    return Machine(
        (Body("hull", hull), Body("arm", link)),
        (
            Joint("base", Free(), "world", "hull"),
            Joint("arm", Revolute("y"), "hull", "arm", parent_pose=(0.4, 0, 0), damping=0.2),
        ),
        actuators=(Wrench("jets", "hull", thrusters), JointForce("motor", "arm")),
        fluid=water,
        name="submarine",
    )


def in_space():
    """An arm of seven joints on a base that nothing pushes."""
    arm = iiwa().replace(gravity=(0, 0, 0))
    base = Machine(
        (Body("hull", Moments.of_body(20.0, (0.1, 0, 0), np.diag([2.0, 3.0, 2.5]))),),
        (Joint("base", Free(), "world", "hull"),),
        gravity=(0, 0, 0),
    )
    machine = base.merge(arm, at="hull")
    return machine.attach(*(JointForce(f"m_{j.name}", j.name) for j in machine.joints[1:]))


def cart():
    """A cart on two driven wheels and a turning mast: the base goes where they roll."""
    cart = Moments.of_body(5.0, (0.05, 0, 0), np.diag([0.2, 0.3, 0.3]))
    wheel = Moments.of_body(0.5, (0, 0, 0), np.diag([0.01, 0.02, 0.01]))
    mast = Moments.of_body(1.0, (0.2, 0, 0.1), np.diag([0.05, 0.05, 0.05]))
    machine = Machine(
        (Body("cart", cart), Body("left", wheel), Body("right", wheel), Body("mast", mast)),
        (
            Joint("base", Planar(), "world", "cart"),
            Joint("wl", Revolute("y"), "cart", "left", parent_pose=(0, 0.2, 0)),
            Joint("wr", Revolute("y"), "cart", "right", parent_pose=(0, -0.2, 0)),
            Joint("mast", Revolute("z"), "cart", "mast", parent_pose=(0.1, 0, 0.2)),
        ),
        actuators=tuple(JointForce(f"m_{name}", name) for name in ("wl", "wr", "mast")),
        gravity=(0, 0, 0),
        name="cart",
    )

    def rolling(x, v, t):
        forward, sideways, turn = v[0], v[1], v[2]
        left, right = v[3], v[4]
        return ca.vertcat(
            sideways, forward - 0.2 * turn - 0.1 * left, forward + 0.2 * turn - 0.1 * right
        )

    return machine, Nonholonomic("rolling", rolling)


# ---------------------------------------------------------------------- references


def swinging(machine, x, size=0.3):
    """Joints that swing about a configuration."""
    rng = np.random.default_rng(7)
    away, pace = size * rng.normal(size=machine.nv), rng.uniform(1, 3, machine.nv)
    return JointPath(
        machine, lambda t: machine.integrate(ca.SX(ca.DM(x)), ca.DM(away) * ca.sin(ca.DM(pace) * t))
    )


def pose(machine, frame, x):
    return equations(machine.tree, "tree").functions[f"frame_pose:{frame}"](x).full()


def leaving(frame, G, size=0.2):
    """A frame that leaves a pose near G."""
    rng = np.random.default_rng(8)
    off, twist, bend = size * rng.normal(size=(3, 6))
    start = G @ se3.exp(off).full()
    return FramePath(
        frame, lambda t: se3.compose(ca.DM(start), se3.exp(t * ca.DM(twist) + t * t * ca.DM(bend)))
    )


# ---------------------------------------------------------------------- cases


@dataclass
class Case:
    """A law on its own model, what it follows, and where it starts."""

    law: Any
    reference: Any
    x: np.ndarray
    v: np.ndarray
    formulation: Any = None


def near(machine, x, size, seed=1):
    rng = np.random.default_rng(seed)
    return machine.integrate(x, size * rng.normal(size=machine.nv)), size * rng.normal(
        size=machine.nv
    )


BENT = np.array([0.3, 0.6, 0.2, -1.2, 0.4, 0.8, 0.1])


def _arm(make):
    def case(limit):
        machine = limit(arm())
        x, v = near(machine, np.array([0.3, 0.5, -0.4]), 0.4)
        return Case(make(machine), swinging(machine, np.array([0.3, 0.5, -0.4])), x, v)

    return case


def _floating(make):
    def case(limit):
        machine = limit(floating())
        x, v = near(machine, machine.neutral(), 0.3)
        return Case(make(machine), swinging(machine, machine.neutral()), x, v)

    return case


def _five_bar(make, reference=None):
    def case(limit):
        machine = limit(unlimited(five_bar(0.5)))
        x = five_bar_at(machine, (0.03, 0.4))
        goal = five_bar_at(machine, (0.06, 0.45))
        eom = Constrained(machine)
        v = np.asarray(eom.project(x, 0.5 * np.ones(machine.nv)).v)
        return Case(make(machine), Hold(machine, goal), x, v)

    return case


def _frame(make, held=False):
    def case(limit):
        machine = limit(seven())
        x, v = near(machine, BENT, 0.1)
        G = pose(machine, "tool", BENT)
        reference = Fixed("tool", G) if held else leaving("tool", G)
        return Case(make(machine), reference, x, v)

    return case


def _submarine(make, reference=True):
    def case(limit):
        machine = limit(submarine())
        x, v = near(machine, machine.neutral(), 0.4)
        return Case(
            make(machine), swinging(machine, machine.neutral()) if reference else None, x, v
        )

    return case


def _space(limit):
    machine = limit(in_space())
    place = machine.neutral()
    place[7:] = BENT
    x, v = near(machine, place, 0.2)
    law = EndEffectorPassivity(
        machine, K=3.0, freedom=FreeFloating("base"), frame="tool", stiffness=(60.0, 5.0)
    )
    return Case(law, leaving("tool", pose(machine, "tool", place)), x, v)


def _cart(limit):
    machine, rolling = cart()
    machine = limit(machine)
    law = PassivityControl(machine, K=2.0, freedom=Rolling((rolling,)), stiffness=5.0, Lambda=0.4)
    eom = Constrained(machine, (rolling,))
    x, v = near(machine, machine.neutral(), 0.3)
    v = np.asarray(eom.project(x, v).v)
    return Case(law, swinging(machine, machine.neutral()), x, v, eom)


def _port(make):
    def case(limit):
        machine = limit(arm())
        place = np.array([0.3, 0.5, -0.4])
        x, v = near(machine, place, 0.3)
        return Case(*make(machine, swinging(machine, place)), x, v)

    return case


def _port_floating(make):
    def case(limit):
        machine = limit(floating())
        x, v = near(machine, machine.neutral(), 0.2)
        return Case(*make(machine, swinging(machine, machine.neutral())), x, v)

    return case


def velocity_control(machine, path):
    return VelocityControl(machine, damping=4.0), BodyVelocities(BodyPoses(path))


def pose_control(machine, path):
    return PoseControl(machine, damping=4.0, rate=2.0), BodyPoses(path)


def port_frame(limit):
    machine = limit(seven())
    x, v = near(machine, BENT, 0.1)
    law = EndEffectorControl(machine, damping=4.0, frame="tool", rate=2.0, turn_rate=2.0)
    return Case(law, leaving("tool", pose(machine, "tool", BENT)), x, v)


def prototype(machine, approach, **options):
    rng = np.random.default_rng(3)
    frames = [body.name for body in machine.bodies]
    if approach == "energy":
        parents = [machine.bodies[p].name if p >= 0 else "world" for p in machine.parent]
        frames = list(zip(parents, frames, strict=True))
    moments = [
        {f: Moments.of_points(rng.uniform(-0.4, 0.4, (6, 3)), rng.uniform(0.2, 1, 6) * size)
         for f in frames}
        for size in (1.0, 6.0, 20.0)
    ]  # fmt: skip
    return PrototypeControl(machine, *moments, approach=approach, **options)


def _quadcopter(limits):
    def case(limit):
        machine = quadcopter()
        gains = free_body(0.7, (0.02, 0.02, 0.03), (3.0, 0.8), (8.0, 0.8))
        law = PrototypeControl(
            machine, **gains.on(machine.bodies[0].name), approach="body", limits=limits
        )
        x, v = near(machine, machine.neutral(), 0.6)
        return Case(law, Hold(machine, machine.neutral()), x, v)

    return case


def pd(**options):
    return lambda machine: PDGravity(machine, 30.0, 4.0, **options)


def torque(**options):
    return lambda machine: ComputedTorque(machine, 60.0, 12.0, **options)


def impedance(inertia=None, **options):
    def make(machine):
        return Impedance(
            machine, "tool", (300.0, 5.0), (10.0, 0.2), inertia, null_damping=0.5, **options
        )

    return make


def passivity(**options):
    return lambda machine: PassivityControl(
        machine, K=8.0, stiffness=20.0, Lambda=0.2, drag="met", **options
    )


def robust(machine):
    return RobustControl(machine, Lambda=2.0, K=20.0, kappa=2.0, eps=20.0)


CASES = {
    "PDGravity": (_arm(pd()), 1.0),
    "PDGravity, limited": (_arm(pd(limits=True)), 1.0),
    "PDGravity, floating": (_floating(pd()), 3.0),
    "PDGravity, closed": (_five_bar(pd()), 0.5),
    "ComputedTorque": (_arm(torque()), 1.0),
    "ComputedTorque, limited": (_arm(torque(limits=True)), 1.0),
    "ComputedTorque, along the force": (_floating(torque(limits="direction")), 3.0),
    "ComputedTorque, floating": (_floating(torque()), 3.0),
    "ComputedTorque, closed": (_five_bar(torque()), 0.5),
    "Impedance": (_frame(impedance(), held=True), 10.0),
    "Impedance, moving": (_frame(impedance(limits=True)), 10.0),
    "Impedance, inertia": (_frame(impedance((2.0, 0.2))), 10.0),
    "PassivityControl": (_arm(passivity()), 1.0),
    "PassivityControl, floating": (_submarine(passivity()), 2.0),
    "PassivityControl, shared": (_submarine(passivity(within_limits=True)), 2.0),
    "PassivityControl, rolling": (_cart, 0.3),
    "EulerPassivity": (
        _submarine(lambda m: EulerPassivity(m, K=8.0, stiffness=20.0, Lambda=0.2, drag="met")),
        2.0,
    ),
    "StationKeeping": (
        _submarine(
            lambda m: StationKeeping(m, K=8.0, stiffness=20.0, Lambda=0.2, drag="met"), False
        ),
        2.0,
    ),
    "EndEffectorPassivity": (
        _frame(lambda m: EndEffectorPassivity(m, K=5.0, frame="tool", posture=BENT)),
        10.0,
    ),
    "EndEffectorPassivity, floating": (_space, 0.5),
    "VelocityControl": (_port(velocity_control), 1.0),
    "VelocityControl, floating": (_port_floating(velocity_control), 3.0),
    "PoseControl": (_port(pose_control), 1.0),
    "PoseControl, floating": (_port_floating(pose_control), 3.0),
    "EndEffectorControl": (port_frame, 10.0),
    "RobustControl": (_arm(robust), 1.0),
    "RobustControl, closed": (_five_bar(robust), 0.5),
    "PrototypeControl, energy": (_arm(lambda m: prototype(m, "energy")), 1.0),
    "PrototypeControl, particle": (_arm(lambda m: prototype(m, "particle", limits=True)), 1.0),
    "PrototypeControl, floating": (_floating(lambda m: prototype(m, "body")), 3.0),
    "PrototypeControl, closed": (_five_bar(lambda m: prototype(m, "body")), 0.5),
    "PrototypeControl, four propellers": (_quadcopter(False), None),
    "PrototypeControl, four propellers, limited": (_quadcopter(True), None),
}


def recorded(case):
    options = {} if case.formulation is None else {"formulation": case.formulation}
    return simulate(
        case.law.machine, case.law, case.reference, case.x, case.v,
        duration=STEPS * DT, dt=DT, record=(), progress=False, **options,
    )  # fmt: skip


def rates(run):
    """Return stated rates, differences of fourth order, and where they may be compared."""
    V, stated = (run["W"], run["W_rate"]) if "W" in run.signals else (run["V"], run["V_rate"])
    V, stated = V.ravel(), stated.ravel()
    seen = (V[:-4] - 8 * V[1:-3] + 8 * V[3:-1] - V[4:]) / (12 * DT)
    missing = run["unrealised"].reshape(len(V), -1)
    # A drive that comes to or from a limit within the five rows bends the rate.
    jump = np.abs(np.diff(np.abs(missing) > 1e-12, axis=0)).any(axis=1)
    bend = np.abs(np.diff(missing, 2, axis=0)).max(axis=1, initial=0.0)
    smooth = bend < 30 * np.median(bend) + 1e-12
    inside = np.array([
        not jump[k : k + 4].any() and smooth[max(k - 1, 0) : k + 4].all() for k in range(len(seen))
    ])  # fmt: skip
    return stated[2:-2], seen, inside, missing


ALL_LIMITS = ("PDGravity", "ComputedTorque, limited", "PassivityControl, floating",
              "PoseControl", "RobustControl, closed", "PrototypeControl, energy")  # fmt: skip
RUNS = [
    *(
        (name, drives)
        for name in CASES
        for drives in ("strong", "weak")
        if drives == "weak" or CASES[name][1]
    ),
    *((name, drives) for name in ALL_LIMITS for drives in ("weak motors", "weak joints")),
]


def marked(name, drives):
    """Return a run; those with a large program of limits take long to compile."""
    slow = drives == "weak" and name in ("VelocityControl, floating", "PoseControl, floating")
    return pytest.param(name, drives, id=f"{name}: {drives}", marks=[pytest.mark.slow] * slow)


@pytest.mark.parametrize(("name", "drives"), [marked(*run) for run in RUNS])
@pytest.mark.first_cases(3)
def test_stated_rate_is_that_of_the_record(name, drives):
    make, share = CASES[name]
    case = make(lambda m: m if drives == "strong" or share is None else weak(m, share, drives))
    run = recorded(case)
    stated, seen, inside, missing = rates(run)
    assert inside.sum() >= STEPS // 4
    size = np.abs(stated).max() + np.abs(seen).max()
    assert np.abs(stated - seen)[inside].max() < 2e-6 * size
    if drives == "weak" and share is not None:
        assert np.abs(missing[2:-2][inside]).max() > 0.05 * share
        assert set(run.units("unrealised")) == {"N, Nm"}
    elif drives == "strong" and share is not None:
        assert np.abs(missing).max() < 1e-6
