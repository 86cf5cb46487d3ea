"""Craft on their thrust: which way they push, where their mass is, and attitudes that go with it.

All forces of such a craft are along one line of its body. The center of all its mass, arms and
loads included, then moves as m r'' = m g + F R axis, whatever turns inside.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import casadi as ca
import numpy as np
from scipy.spatial.transform import Rotation

from framefree.control.law import ControlError
from framefree.control.references.flat_curves import Curve
from framefree.geometry import quaternion
from framefree.machine import WORLD, Free, Joint, Machine
from framefree.motion import actuation, equations

Matrix = Any

UP = np.array([0.0, 0.0, 1.0])
ALONG = 1e-9
"""Share of the largest force below which one across the thrust is rounding."""
_SAMPLES = 4


def flying_joint(machine: Machine) -> Joint:
    """Return the free joint to the world that carries everything, or say what there is instead."""
    roots = [joint for joint in machine.joints if joint.parent == WORLD]
    if machine.closed or len(roots) != 1 or not isinstance(roots[0].kind, Free):
        found = ", ".join(f"`{j.name}` ({type(j.kind).__name__})" for j in roots)
        closed = ", and loops or couplings" if machine.closed else ""
        raise ControlError(
            f"`{machine.name}` must be one tree on a free joint for a flat reference; from the "
            f"world it has {found}{closed}"
        )
    return roots[0]


def thrust_axis(machine: Machine) -> np.ndarray:
    """Return the unit axis (3), in the flying body's axes, along which all inputs push.

    Craft that push in several directions, or that have no inputs, get z.
    """
    rows = machine.v_slice[flying_joint(machine).name]
    x = ca.SX.sym("x", machine.nx)
    B = actuation.input_matrix(equations(machine.tree).at(x))
    function = ca.Function("B", [x, *_parameters(machine)], [ca.densify(ca.SX(B))])
    defaults = [machine.parameters.defaults] if len(machine.parameters) else []
    places = machine.numeric.random(np.random.default_rng(0), _SAMPLES)
    pushes = np.hstack([function(place, *defaults).full()[rows][:3] for place in places])
    if not pushes.size or not np.abs(pushes).max() > 0:
        return UP
    directions, sizes, _ = np.linalg.svd(pushes)
    if sizes[1] > ALONG * sizes[0]:
        return UP
    axis = directions[:, 0]
    total = axis @ pushes.sum(axis=1)
    return axis if (total if abs(total) > ALONG * sizes[0] else axis[2]) > 0 else -axis


def attitude(
    f: Matrix,
    heading: Matrix,
    axis: np.ndarray = UP,
    normal: Matrix | None = None,
) -> Matrix:
    """Return the attitude (wxyz) whose `axis` is along f (3).

    Parameters
    ----------
    f : (3, 1)
        Not of unit length.
    heading : scalar
        Angle, rad: the turn about the axis that is left when it is brought upright the short way.
    axis : (3,)
        In body axes.
    normal : (3, 1), optional
        Horizontal normal of a vertical plane in which f stays: then it may point straight down.
    """
    upright = ca.vertcat(ca.cos(heading / 2), 0, 0, ca.sin(heading / 2))
    body = quaternion.product(upright, ca.DM(_to_up(axis)))
    if normal is None:
        return quaternion.product(swing(f), body)
    # Turning about the normal takes upright thrust to the side n x e_z.
    half = ca.atan2(f[0] * normal[1] - f[1] * normal[0], f[2]) / 2
    return quaternion.product(ca.vertcat(ca.cos(half), ca.sin(half) * normal), body)


def swing(f: Matrix) -> Matrix:
    """Return the least turn (wxyz) that takes upright to the direction of f, not straight down."""
    z = f / ca.sqrt(ca.sumsqr(f))
    return ca.vertcat(1 + z[2], -z[1], z[0], 0) / ca.sqrt(2 * (1 + z[2]))


def flying_coordinates(machine: Machine, wxyz: Matrix, center: Matrix, inside: Matrix) -> Matrix:
    """Return the free joint's coordinates (7) for an attitude and the place of a point.

    Parameters
    ----------
    machine : Machine
    wxyz : (4, 1)
        Attitude of the flying body, more exactly of its joint's child frame, in the world.
    center, inside : (3, 1)
        A point in the world, and the same point at the joint's neutral place in the world.
    """
    base = np.asarray(flying_joint(machine).parent_pose, float)
    R_P, r_P = base[:3, :3], base[:3, 3]
    own = ca.DM(R_P.T) @ (inside - ca.DM(r_P))
    x, y, z, w = Rotation.from_matrix(R_P).as_quat()
    place = ca.DM(R_P.T) @ (center - quaternion.to_rotation(wxyz) @ own - ca.DM(r_P))
    return ca.vertcat(place, quaternion.product(ca.DM([w, -x, -y, -z]), wxyz))


def center_of_mass(machine: Machine, x: Matrix, bodies: Iterable[str] | None = None) -> Matrix:
    """Return the center (3) of the mass of some bodies, by default all, at x, in world axes."""
    machine = machine.numeric
    chosen = {body.name for body in machine.bodies} if bodies is None else set(bodies)
    total, moment = 0.0, ca.SX(3, 1)
    for body, G in zip(machine.bodies, equations(machine.tree).at(x).poses, strict=True):
        if body.name in chosen and body.inertia is not None:
            moment += body.moments.total * (G[:3, :3] @ ca.SX(body.moments.center) + G[:3, 3])
            total += body.moments.total
    return moment / total


def held_joints(machine: Machine, joints: Mapping[str, Any], *, apart: Iterable[str]) -> Callable:
    """Return the function from t to x whose joints follow curves, or rest where they are neutral.

    Parameters
    ----------
    machine : Machine
    joints : mapping of joint name to Curve or numbers
    apart : names
        Joints that the reference moves itself, neutral here.
    """
    own = set(apart)
    known = [joint.name for joint in machine.joints if joint.nv and joint.name not in own]
    wrong = sorted(set(joints) - set(known))
    if wrong:
        raise ControlError(
            f"`joints` names {', '.join(f'`{name}`' for name in wrong)}; those that can be moved "
            f"are {', '.join(f'`{name}`' for name in known) or 'none'}"
        )

    def configuration(t: Matrix) -> Matrix:
        x = ca.SX(ca.DM(machine.numeric.neutral()))
        for name, curve in joints.items():
            part = machine.x_slice[name]
            x[part] = value_at(curve, t, part.stop - part.start, f"joint `{name}`")
        return x

    return configuration


def value_at(curve: Any, t: Matrix, count: int, what: str) -> Matrix:
    """Return a curve, or numbers that stay, at time t as a column of `count` numbers."""
    value = curve.at(t) if isinstance(curve, Curve) else ca.DM(np.asarray(curve, float).ravel())
    value = ca.densify(ca.SX(value))
    if value.shape != (count, 1):
        raise ControlError(f"the curve of {what} must give {count} numbers, got {value.shape}")
    return value


def moments_of_change(*curves: Any) -> tuple[float, ...]:
    """Return all times (s) at which one of the curves is not smooth."""
    return tuple(sorted({t for curve in curves if isinstance(curve, Curve) for t in curve.times}))


def _to_up(axis: np.ndarray) -> np.ndarray:
    """Return the least turn (wxyz) that takes an axis to z."""
    x, y, z = axis
    if z < -1 + 1e-12:
        return np.array([0.0, 1.0, 0.0, 0.0])
    return np.array([1 + z, y, -x, 0.0]) / np.sqrt(2 * (1 + z))


def _parameters(machine: Machine) -> list[Matrix]:
    return [machine.parameters.symbols] if len(machine.parameters) else []
