"""Which law lets a machine follow a handle, where the user gives none.

- Machines with a motor for every (independent) velocity: impedance of the end of the arm, or of
  what it holds, chosen by the inertia that is felt there: K = m w^2 and D = 2 zeta m w.
- A single free body that hangs on its thrust: a prototype that it can follow.
- All others: no law. They move as they are, and can be grabbed.
"""

from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from framefree.control import Impedance
from framefree.control.law import AnyLaw, ControlError
from framefree.control.prototype import PrototypeControl
from framefree.control.prototype.tuning import characteristic, free_body, thrust_borne
from framefree.control.shared.model import Model
from framefree.errors import FramefreeError
from framefree.look.view.handle import HandleReference, handle_numbers
from framefree.machine import Free, Machine, motors
from framefree.machine.parameters import Parameters
from framefree.solve import project

RATE, RATIO = 14.0, 1.0
"""Frequency (rad/s) and damping ratio of the end of an arm about its handle."""
NULL_RATE = 4.0
"""1/s, at which motions that the end does not feel are damped."""
ARM_HANDLE, FLYING_HANDLE = 15.0, 4.0
"""1/s, at which arms and flying bodies follow their handle."""
HANDLE = "handle"
GOOD = 0.03
"""Margin from singular positions from which on a configuration is kept as it is."""


@dataclass(frozen=True)
class Following:
    """A machine that follows a handle.

    Attributes
    ----------
    machine : Machine
        The plant, with motors where it had none.
    law : AnyLaw or None
    reference : HandleReference or None
    frame : str
        That follows; "" where nothing does.
    rate : float
        Of the filter behind the handle, 1/s.
    gains : dict of str to (low, first, high, unit)
        Live numbers that are gains of the law.
    numbers : tuple of Parameters
        The live numbers of handle and gains.
    turns : bool
        Whether the frame's attitude follows as well.
    notes : tuple of str
    """

    machine: Machine
    law: AnyLaw | None = None
    reference: HandleReference | None = None
    frame: str = ""
    rate: float = ARM_HANDLE
    gains: dict[str, tuple[float, float, float, str]] = field(default_factory=dict)
    numbers: tuple[Parameters, ...] = ()
    turns: bool = True
    notes: tuple[str, ...] = ()


def following(machine: Machine, x0: np.ndarray, frame: str = "") -> Following:
    """Return how a machine follows a handle, by default at its end."""
    frame = frame or end_of(machine)
    roots = [joint for joint in machine.joints if joint.parent == "world"]
    if len(machine.joints) == 1 and isinstance(roots[0].kind, Free) and machine.nu:
        return _flying(machine)
    notes: tuple[str, ...] = ()
    if not machine.nu and not machine.closed and not any(isinstance(j.kind, Free) for j in roots):
        machine = machine.attach(*motors(machine.joints))
        notes = ("The machine has no actuators: motors without limits drive its joints here.",)
    try:
        return _arm(machine, x0, frame, notes)
    except ControlError as error:
        why = f"{error}."
        if machine.nu < machine.nv and any(isinstance(joint.kind, Free) for joint in roots):
            why = "the machine floats, and no motor drives its base."
        words = f"No law runs, and nothing follows a handle here: {why} Bodies can be grabbed."
        return Following(machine, notes=(f"{words} ff.view(machine, law) runs a law of your own.",))


def end_of(machine: Machine) -> str:
    """Return the frame that is dragged: what is held by loops, or the end of the longest chain.

    Of the frames of that body it is the one that is furthest from the body's joint; of one free
    body it is the body.
    """
    held = {machine.frame(n).body for loop in machine.loops for n in (loop.frame_a, loop.frame_b)}
    for joint in machine.joints:
        if isinstance(joint.kind, Free) and joint.child in held:
            return joint.child
    if not machine.bodies:
        return "world"
    if len(machine.bodies) == 1 and isinstance(machine.joint_of(0).kind, Free):
        return machine.bodies[0].name
    depth: list[int] = []
    for parent in machine.parent:
        depth.append(0 if parent < 0 else depth[parent] + 1)
    parents = set(machine.parent)
    leaves = [i for i in range(len(machine.bodies)) if i not in parents]
    # Frames that close loops or hold springs are no tools: a body with another one comes first.
    parts = (*machine.loops, *machine.springs, *machine.dampers)
    used = {name for part in parts for name in (part.frame_a, part.frame_b)}
    tools = [frame for frame in machine.frames if frame.name not in used]
    names = [body.name for body in machine.bodies]
    with_tools = {frame.body for frame in tools}
    ends = [i for i in leaves if names[i] in with_tools and machine.closed] or leaves
    last = max(ends, key=lambda i: (depth[i], -i))
    joint = np.asarray(machine.joint_of(last).child_pose, float)[:3, 3]
    away = {
        frame.name: float(np.linalg.norm(np.asarray(frame.pose, float)[:3, 3] - joint))
        for frame in tools
        if frame.body == names[last]
    }
    return max(away, key=lambda name: away[name]) if away else names[last]


class FeltInertia:
    """The inertia of a machine that is felt at a frame."""

    def __init__(self, machine: Machine, frame: str) -> None:
        self.machine, self.model = machine, Model(machine)
        x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
        own = machine.parameters
        state = self.model.at(x, v)
        outputs = [ca.densify(state.mass), ca.densify(state.jacobian(frame).value)]
        self._function = ca.Function("felt", [x, v, own.symbols], outputs)

    def mass(self, x: np.ndarray) -> np.ndarray:
        """Return the mass matrix over the independent velocities."""
        return self._at(x)[0]

    def mobility(self, x: np.ndarray) -> np.ndarray:
        """Return J M^-1 J^T (6 x 6): accelerations of the frame by forces on it."""
        M, J = self._at(x)
        return J @ np.linalg.solve(M, J.T)

    def felt(self, x: np.ndarray) -> list[float]:
        """Return mass (kg) and moment of inertia (kg m^2) in the mean of all directions."""
        mobility = np.diag(self.mobility(x))
        return [1 / max(float(part.mean()), 1e-9) for part in (mobility[:3], mobility[3:])]

    def margin(self, x: np.ndarray) -> float:
        """Return how far from singular the frame's motion is, between 0 and 1."""
        mobility = self.mobility(x)
        if not np.isfinite(mobility).all():
            return 0.0
        size = 6 if self.model.n >= 6 else 3
        scale = np.sqrt(np.maximum(np.diag(mobility)[:size], 1e-30))
        part = mobility[:size, :size] / np.outer(scale, scale)
        return float(max(np.linalg.eigvalsh(part)[0], 0.0))

    def _at(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values = self._function(x, np.zeros(self.machine.nv), self.machine.parameters.defaults)
        M, J = (np.array(value) for value in values)
        return M, J


def bent(machine: Machine, frame: str, x: np.ndarray, tries: int = 60) -> np.ndarray:
    """Return a configuration near one, in which the frame can move in all directions.

    That itself where it is good enough; else the best of some around it, within the limits.
    """
    felt, rng = FeltInertia(machine, frame), np.random.default_rng(1)
    best, margin = x, felt.margin(x)
    for _ in range(tries if margin < GOOD else 0):
        near = machine.integrate(x, 0.7 * rng.uniform(-1, 1, machine.nv))
        if machine.closed:
            try:
                near = project(machine, near).x
            except FramefreeError:
                continue
        try:
            machine.validate(near, limits=True)
        except FramefreeError:
            continue
        if felt.margin(near) > margin:
            best, margin = near, felt.margin(near)
    return np.asarray(best, float)


def _arm(machine: Machine, x0: np.ndarray, frame: str, notes: tuple[str, ...]) -> Following:
    inertia = FeltInertia(machine, frame)
    felt, turns = inertia.felt(x0), inertia.model.n >= 6
    names = ("stiffness", "damping", "turning stiffness", "turning damping")
    firsts = [felt[0] * RATE**2, 2 * RATIO * felt[0] * RATE]
    firsts += [felt[1] * RATE**2, 2 * RATIO * felt[1] * RATE]
    units = ("N/m", "N s/m", "Nm/rad", "Nm s/rad")
    used = names if turns else names[:2]
    gains = {
        f"gain.{name}": (0.1 * first, first, 4 * first, unit)
        for name, first, unit in zip(used, firsts, units, strict=False)
    }
    symbols = ca.vertcat(*(ca.SX.sym(name) for name in gains))
    numbers = Parameters(tuple(gains), symbols, [first for _, first, _, _ in gains.values()])
    none = ca.SX(0)
    K = ca.vertcat(*[symbols[0]] * 3, *[symbols[2] if turns else none] * 3)
    D = ca.vertcat(*[symbols[1]] * 3, *[symbols[3] if turns else none] * 3)
    handle = handle_numbers(HANDLE)
    # By the inertia of each joint where all others give way: by more, light ends of long chains
    # would be damped faster than the loop is.
    null = NULL_RATE / np.diag(np.linalg.inv(inertia.mass(x0)))
    law = Impedance(machine, frame, K, D, null_damping=null)
    reference = HandleReference(handle, frame)
    return Following(
        machine, law, reference, frame, ARM_HANDLE, gains, (handle, numbers), turns, notes
    )


def _flying(machine: Machine) -> Following:
    body = machine.bodies[0]
    mass, center = float(body.moments.total), np.asarray(body.moments.center, float)
    moment = np.diag(np.asarray(body.moments.moment_at_center, float))
    if machine.nu >= 6:
        gains, turns = free_body(mass, moment, (4.0, 1.0), (10.0, 1.0)).moved(center), True
    else:
        poles = characteristic((3.0, 0.9), (9.0, 0.8))
        yaw = (5.0, 1.0)
        gains = thrust_borne(mass, poles, yaw, float(moment[2]), center=tuple(center))
        turns = False
    handle = handle_numbers(HANDLE)
    law = PrototypeControl(machine, **gains.on(body.name))
    reference = HandleReference(handle)
    return Following(machine, law, reference, body.name, FLYING_HANDLE, {}, (handle,), turns=turns)
