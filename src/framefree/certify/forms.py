"""Coriolis matrices and coordinates side by side, with the properties that each one has.

See `framefree.certify.form` for the properties.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from framefree.certify.coordinates import measured_euler, measured_quaternion, measured_task
from framefree.certify.form import BAR, WORDS, Form, Residual, form_of
from framefree.certify.mass_search import unbounded_coordinates
from framefree.certify.report import Finding, Verdict
from framefree.certify.subject import evaluate, without_forces
from framefree.errors import FramefreeError, near
from framefree.machine import Machine
from framefree.machine.joints import Free, Spherical
from framefree.machine.units import Units
from framefree.motion.tree import Tree, coriolis
from framefree.motion.tree.euler import configuration, from_angles
from framefree.motion.tree.other_rates import TASKS

NAMES = (*coriolis.NAMES, "quaternion", *TASKS)
"""What can be compared."""


def compare(
    machine: Machine,
    names: Sequence[str] = (),
    *,
    states: int = 200,
    seed: int = 0,
    frame: str | None = None,
) -> tuple[tuple[Form, ...], dict[str, str]]:
    """Measure the named forms (default all) at random states; also give why some do not apply.

    Base and ball joints are at pitch exactly 90 degrees in every third state, but for the residuals
    in Euler angles, which are not defined there. `frame` is the end frame of task coordinates, by
    default one on the body that most joints carry.
    """
    bare = without_forces(machine.numeric.tree)
    rng = np.random.default_rng(seed)
    tree, units, forms, refused = Tree(bare), Units.of(bare), [], {}
    growing, vanishing = unbounded_coordinates(tree, units, units.random(bare, rng, 8))
    unbounded = tuple(dict.fromkeys((*growing, *vanishing)))
    for name in known(names):
        try:
            form = _measured(tree, units, name, states, rng, frame)
            forms.append(replace(form, unbounded=unbounded))
        except FramefreeError as error:
            refused[name] = str(error)
    return tuple(forms), refused


def known(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names if all are those of forms; all forms for none, or for "all"."""
    if not names or "all" in names:
        return NAMES
    for name in names:
        if name not in NAMES:
            choices = ", ".join((*NAMES, "all"))
            raise FramefreeError(
                f"there is no parametrisation `{name}`; {near(name, NAMES)}choose from: {choices}"
            )
    return tuple(names)


def attitudes_at_pitch_90(machine: Machine, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return configurations (n, nx) with every free or ball joint turned to pitch 90 degrees."""
    x = x.copy()
    for joint in machine.joints:
        if isinstance(joint.kind, Free | Spherical):
            place = machine.x_slice[joint.name]
            for row in x:
                roll, yaw = rng.uniform(-np.pi, np.pi, 2)
                turn = np.array(ca.DM(from_angles(ca.DM([roll, np.pi / 2, yaw])))).ravel()
                row[place.stop - 4 : place.stop] = turn
    return x


def end_frame(machine: Machine) -> str:
    """Return a frame on the body that most joints carry; the body itself where there is none."""
    depth: dict[str, int] = {"world": 0}
    for joint in machine.joints:
        depth[joint.child] = depth[joint.parent] + joint.nv
    last = max(depth, key=lambda name: depth[name])
    return next((frame.name for frame in machine.frames if frame.body == last), last)


def _measured(
    tree: Tree, units: Units, name: str, count: int, rng: np.random.Generator, frame: str | None
) -> Form:
    machine = tree.machine
    v = rng.normal(size=(count, machine.nv))
    if name == "euler":
        return measured_euler(tree, units, count, rng)
    x = units.random(machine, rng, count)
    if name == "task_euler":
        x = _angles_defined(machine, x)
    if name in TASKS:
        end = end_frame(machine) if frame is None else frame
        return measured_task(tree, units, name, end, x, v[: len(x)] * units.velocity)
    x[::3] = attitudes_at_pitch_90(machine, x[::3], rng)
    if name == "quaternion":
        return measured_quaternion(tree, units, x, v * units.velocity)
    xs, vs = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    mass = tree.functions["mass"](xs)
    rate = ca.jtimes(ca.vec(mass), xs, machine.rate_matrix(xs) @ vs)
    C = tree.functions[f"coriolis:{name}"](xs, vs)
    bias = tree.functions["bias"](xs, vs)
    outputs = [mass, ca.reshape(rate, *mass.shape), C, bias]
    return form_of(name, [xs, vs], outputs, x, v * units.velocity, units.velocity, units.inertia)


def _angles_defined(machine: Machine, x: np.ndarray) -> np.ndarray:
    """Return the configurations at which free joints are 10 degrees or more off pitch 90."""
    kept = np.ones(len(x), bool)
    for joint in machine.joints:
        if isinstance(joint.kind, Free):
            w, a, b, c = x[:, machine.x_slice[joint.name]][:, 3:].T
            kept &= np.abs(2 * (w * b - a * c)) < np.sin(np.deg2rad(80))
    return x[kept]


def findings(machine: Machine, names: Sequence[str] = (), **options: Any) -> Iterator[Finding]:
    """Give the comparison as findings; what other forms lose is a warning, not a failure."""
    forms, refused = compare(machine, names, **options)
    for form in forms:
        for which, meaning, remedy in _PROPERTIES:
            residual: Residual = getattr(form, which)
            yield Finding(
                f"{form.name}_{which}_residual",
                Verdict.PASS if residual.holds else Verdict.WARN,
                f"{form.words}: {meaning}",
                residual.value,
                BAR,
                remedy=remedy,
                x=tuple(residual.x.tolist()),
            )
        yield Finding(
            f"{form.name}_mass_eigenvalue_min",
            Verdict.PASS if form.bounded else Verdict.WARN,
            f"{form.words}: smallest eigenvalue of M, and d1 I <= M <= d2 I at every configuration",
            form.smallest,
            0.0,
            note=form.reason,
            remedy="where coordinates lose rank, as Euler angles do at pitch 90 degrees, use the "
            "form on the group; where a joint slides without end, give it limits",
            at_least=True,
            x=tuple(form.smallest_x.tolist()),
        )
    for name, reason in refused.items():
        yield Finding.skipped(f"{name}_skew_residual", WORDS[name], reason)


_PROPERTIES = (
    ("skew", "M_dot - 2C is skew-symmetric", "do not use it in a Lyapunov function"),
    ("bias", "C v is the velocity force", "a law that uses it compensates the wrong force"),
    ("weak", "v^T (M_dot - 2C) v = 0", "energy is not balanced"),
)


def eigenvalues_through_pitch_90(
    machine: Machine, x: np.ndarray | None = None, count: int = 361
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return pitch angles (count,) from -180 to 180 degrees and eigenvalues of M on the way.

    The first free joint, or ball joint, pitches. Eigenvalues (count, nv) are those of the form on
    the group, and those in Euler angles.
    """
    joints = [j for j in machine.joints if isinstance(j.kind, Free | Spherical)]
    if not joints:
        raise FramefreeError(f"`{machine.name}` has no free or ball joint that could pitch")
    bare = without_forces(machine.numeric.tree)
    tree = Tree(bare)
    pitch = np.linspace(-np.pi, np.pi, count)
    eta = np.zeros((count, machine.nv))
    if x is not None:
        for joint in bare.joints:
            if joint.kind.vector:
                eta[:, bare.v_slice[joint.name]] = x[bare.x_slice[joint.name]]
    eta[:, bare.v_slice[joints[0].name].stop - 2] = pitch
    s = ca.SX.sym("eta", machine.nv)
    mass = tree.functions["mass"](configuration(bare, s))
    on_group, in_angles = evaluate(
        ca.Function("masses", [s], [ca.densify(mass), tree.functions["mass:euler"](s)]), eta
    )
    return np.rad2deg(pitch), np.linalg.eigvalsh(on_group), np.linalg.eigvalsh(in_angles)
