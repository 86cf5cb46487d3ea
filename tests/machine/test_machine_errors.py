"""What users read when a machine is wrong: whole messages, all problems together."""

import numpy as np
import pytest
from machine_samples import some_moments

from framefree.geometry.moments import Moments
from framefree.machine import (
    Body,
    Coupling,
    Fluid,
    Frame,
    Immersed,
    Joint,
    JointForce,
    Keyframe,
    Loop,
    Machine,
    MachineError,
    Problems,
    Propeller,
    Revolute,
    Shape,
    Spherical,
    SpinningPropeller,
    Spring,
)

A, B = Body("a", some_moments()), Body("b", some_moments())
JA, JB = Joint("ja", Revolute(), "world", "a"), Joint("jb", Revolute(), "a", "b")


def problems_of(*arguments, **fields):
    with pytest.raises(MachineError) as caught:
        Machine(*arguments, **fields)
    return caught.value.problems


def message_of(make):
    with pytest.raises(MachineError) as caught:
        make()
    return str(caught.value)


def test_duplicate_names():
    frames = [Frame("a", "b"), Frame("tip", "b"), Frame("tip", "a")]
    loops = [Loop("l", "ball", "a", "b"), Loop("l", "ball", "tip", "a")]
    assert problems_of([A, B], [JA, JB], frames, loops=loops) == (
        "bodies and frames must have different names, but `a` occurs more than once",
        "bodies and frames must have different names, but `tip` occurs more than once",
        "loops must have different names, but `l` occurs more than once",
    )


def test_duplicate_bodies_and_joints():
    found = problems_of([A, A], [JA, JA])
    assert found[0] == "bodies and frames must have different names, but `a` occurs more than once"
    assert found[1] == "joints must have different names, but `ja` occurs more than once"


def test_unknown_names():
    assert problems_of(
        [A, B],
        [JA, Joint("jb", Revolute(), "aa", "b")],
        [Frame("tip", "elbow")],
        springs=[Spring("s", "tip", "c", some_moments())],
        actuators=[JointForce("m", "jc"), Propeller("p", "rotor")],
        geometry=[Shape("nose", "sphere", 0.1)],
        fluid=Fluid((Immersed("hull"),)),
    ) == (
        "the body of frame `tip`: `elbow` is unknown; known: `a`, `b`, `world`",
        "Spring `s`: frame `c` is unknown; known: `a`, `b`, `tip`, `world`",
        "JointForce `m`: joint `jc` is unknown; known: `ja`, `jb`",
        "Propeller `p`: frame `rotor` is unknown; known: `a`, `b`, `tip`, `world`",
        "Shape: frame `nose` is unknown; known: `a`, `b`, `tip`, `world`",
        "Immersed `hull`: frame `hull` is unknown; known: `a`, `b`, `tip`, `world`",
        "the parent of joint `jb`: `aa` is unknown; did you mean `a`?",
    )


def test_cycles_and_strays():
    assert problems_of([A, B], [JA, JB, Joint("jc", Spherical(), "world", "b")]) == (
        "body `b` is the child of joint `jb` and of joint `jc`, which closes a cycle; close it "
        "with a "
        "Loop between `world` and `b` instead of joint `jc`",
    )
    assert problems_of([A, B], [JA]) == (
        "body `b` is not connected: no joint has it as child; a body that flies freely needs "
        'Joint("b_free", Free(), "world", "b")',
    )
    ring = [Joint("ja", Revolute(), "b", "a"), Joint("jb", Revolute(), "a", "b")]
    assert problems_of([A, B], ring) == (
        "bodies `a`, `b` hang on each other in a cycle and not on the world; replace one joint, "
        "for "
        "instance `ja`, by a Loop, and connect one of the bodies to `world`",
    )


def test_joints_that_lead_wrong():
    assert problems_of([A], [Joint("ja", Revolute(), "a", "world")]) == (
        "joint `ja`: the world cannot be the child; swap parent and child",
        "body `a` is not connected: no joint has it as child; a body that flies freely needs "
        'Joint("a_free", Free(), "world", "a")',
    )
    assert problems_of([A], [Joint("ja", Revolute(), "a", "a")])[0] == (
        "joint `ja` connects body `a` to itself"
    )


def test_wrong_types():
    assert problems_of([A, "b"], [JA], springs=[B], fluid=3, keyframes=["home"]) == (
        "`bodies` must hold Body, got str",
        "`springs` must hold Spring or EulerSpring or ConstantForce, got Body",
        "`keyframes` must hold Keyframe, got str",
        "`fluid` must be a Fluid or None, got int",
    )


def test_actuators_that_do_not_fit():
    ball = Joint("jb", Spherical(), "a", "b")
    assert problems_of(
        [A, B],
        [JA, ball],
        actuators=[
            JointForce("m", "jb"),
            JointForce("servo", "jb", (0, 0, 1), bias_terms=(0, -3, 0)),
            SpinningPropeller("p", "b", "jb"),
        ],
    ) == (
        "the gear of actuator `m` must be 3 numbers, one for each velocity of joint `jb`, got 1",
        "actuator `servo` feeds back the position of joint `jb`, whose coordinates are not a plain "
        "vector "
        "(Spherical)",
        "propeller `p` needs a joint with one velocity, but joint `jb` has 3",
    )


def test_couplings_that_do_not_fit():
    ball = Joint("jb", Spherical(), "a", "b")
    assert problems_of(
        [A, B], [JA, ball], couplings=[Coupling("c", "ja", "jb.qw"), Coupling("d", "jb", "ja")]
    ) == (
        "coupling `c`: `jb.qw` is not a plain coordinate; use a Revolute joint without limits "
        "where "
        "the angle itself is needed",
        "coupling `d`: coordinate `jb` is unknown; known: `ja`",
    )
    ring = [Coupling("c", "ja", "jb"), Coupling("d", "jb", "ja")]
    assert problems_of([A, B], [JA, JB], couplings=ring) == (
        "couplings must not depend on each other in a ring: ja <- jb <- ja",
    )
    twice = [Coupling("c", "ja", "jb"), Coupling("d", "ja", "jb")]
    assert problems_of([A, B], [JA, JB], couplings=twice) == (
        "the targets of couplings must have different names, but `ja` occurs more than once",
    )


def test_keyframes_that_do_not_fit():
    frames = [Keyframe("home", {"ja": [1, 2], "jc": [1]}, u={"m": [1]})]
    assert problems_of([A, B], [JA, JB], keyframes=frames) == (
        "keyframe `home`: `x` of joint `ja` must be 1 numbers, got 2",
        "keyframe `home`: joint `jc` is unknown; known: `ja`, `jb`",
        "keyframe `home`: actuator `m` is unknown; there are none",
    )


def test_ends_that_are_one():
    assert problems_of([A], [JA], loops=[Loop("l", "ball", "a", "a")]) == (
        "Loop `l` must connect two different frames, got `a` twice",
    )


def test_gravity():
    assert problems_of([A], [JA], gravity=(0, np.nan, 0)) == (
        "`gravity` must be finite, got (0, nan, 0)",
    )


def test_bodies():
    def of_mass(mass):
        return lambda: Body("a", Moments.of_body(mass, (0, 0, 0), np.eye(3)))

    assert message_of(of_mass(-1.0)) == (
        "the mass of body `a` must be positive, got -1 kg; a body without mass is declared by "
        "`inertia=None`"
    )
    assert message_of(of_mass(0.0)).startswith("the mass of body `a` must be positive, got 0 kg")
    assert message_of(lambda: Body("a", 3.0)) == (
        "the inertia of body `a` must be Moments, or None for a body without mass, got float"
    )
    thin = Moments.of_body(1.0, (0, 0, 0), np.diag([1.0, 1.0, 3.0]))
    assert message_of(lambda: Body("a", thin)).startswith(
        "the inertia of body `a` is not that of any distribution of mass: the 4x4 form is not "
        "positive semidefinite (triangle inequality"
    )
    assert message_of(lambda: Body("a", -1.0 * thin, strict=False)).startswith("the mass of body")
    assert message_of(lambda: Body("world", None)) == (
        "a body must not be named `world`: that is the fixed world"
    )
    assert message_of(lambda: Frame("world", "a")) == (
        "a frame must not be named `world`: that is the frame of the world"
    )


def test_numbered_list_of_several():
    with pytest.raises(MachineError) as caught:
        Machine([A, B], [Joint("ja", Revolute(), "world", "c")])
    assert str(caught.value).splitlines()[:2] == [
        "3 problems:",
        "  1. the child of joint `ja`: `c` is unknown; known: `a`, `b`, `world`",
    ]


def test_collecting_with_places():
    problems = Problems()
    with problems.at("robot.urdf, link `a`, line 7"):
        Body("a", Moments.of_body(-1.0, (0, 0, 0), np.eye(3)))
    with problems.at("robot.urdf, joint `j`, line 9"):
        Joint("j", Revolute(), "world", "a", lower=1, upper=0)
    problems.add("nothing else")
    assert len(problems.messages) == 3
    with pytest.raises(MachineError, match=r"2\. robot.urdf, joint `j`, line 9: the limits of `j`"):
        problems.raise_if_any()
    Problems().raise_if_any()
