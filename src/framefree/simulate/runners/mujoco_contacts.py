"""Contacts that MuJoCo solves itself, where it is the plant.

Each `Contact` of the machine becomes two geoms and a pair that may touch; nothing else does. What
carries over is where the shapes are and the coefficient of friction. Stiffness, damping and slip
speed do not: MuJoCo finds the forces that keep shapes apart at the end of a step, softened by its
impedance d and the reference -b r' - k r for the depth r. A body that lies still sinks until

    (1 - d) g = d k r,    d, k by `solimp` and `solref`

whatever its mass. Forces are those at the recorded states, found anew for each row, so that they do
not depend on how a run was cut into pieces.
"""

from typing import Any, NamedTuple

import mujoco
import numpy as np

from framefree.machine import WORLD, Contact, Machine
from framefree.machine.contact_shape import ContactShape
from framefree.machine.formats.poses import quaternion_of_rotation
from framefree.machine.formats.writing import is_fixed
from framefree.simulate.columns import Channel
from framefree.simulate.errors import SimulationError
from framefree.simulate.touching import contacts_of

RECORDS = {"gap": "m", "normal_force": "N", "friction_force": "N", "slip": "m/s"}
"""What is recorded of a contact: the words of `Contact.records`, and units."""
SOLREF = (0.02, 1.0)
"""MuJoCo's default: time constant (s; at least two steps) and damping ratio of a contact."""
SOLIMP = (0.9, 0.95, 0.001, 0.5, 2.0)
"""MuJoCo's default: impedance at depth zero and from 1 mm on."""
IMPEDANCE_RATIO = 10.0
"""Friction is this much harder than the normal force, so that what sticks creeps less."""


class GeomPair(NamedTuple):
    """Names of the two geoms of a contact, in frame a and in frame b."""

    a: str
    b: str


class EngineContacts:
    """The contacts of a machine as MuJoCo's.

    Parameters
    ----------
    machine : Machine
        With its contacts; tunable numbers and all.

    Raises
    ------
    SimulationError
        If it has none, or naming all that MuJoCo cannot have.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.parts: list[Contact] = contacts_of(machine)
        if not self.parts:
            raise SimulationError(
                "`contacts=True`, but the machine has no contact shapes: attach `Contact` parts, "
                "such as Contact(name, 'world', body, ContactShape('half_space'), "
                "ContactShape('sphere', radius), stiffness), or leave `contacts` out"
            )
        reasons = [reason for part in self.parts for reason in _unmapped(machine, part)]
        if reasons:
            raise SimulationError("MuJoCo cannot have these contacts: " + "; ".join(reasons))
        self.pairs = [GeomPair(f"contact {p.name} a", f"contact {p.name} b") for p in self.parts]
        self.channels = tuple(
            Channel("signals", f"{part.name}.{word}", (), units=(unit,))
            for part in self.parts
            for word, unit in RECORDS.items()
        )
        self._geoms: dict[tuple[int, int], int] = {}

    @property
    def settings(self) -> dict[str, Any]:
        """What MuJoCo's solver is given, for the header of a run."""
        return {
            "solref": list(SOLREF),
            "solimp": list(SOLIMP),
            "cone": "elliptic",
            "impratio": IMPEDANCE_RATIO,
            "not_used": ["stiffness", "damping", "slip_speed", "exponent"],
        }

    def model(self, text: str, machine: Machine) -> Any:
        """Return MuJoCo's model of a machine, in numbers, written as MJCF, with its contacts."""
        spec = mujoco.MjSpec.from_string(text)
        spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        spec.option.impratio = IMPEDANCE_RATIO
        for part, names in zip(contacts_of(machine), self.pairs, strict=True):
            _add_geom(spec, machine, part.frame_a, part.shape_a, names.a)
            _add_geom(spec, machine, part.frame_b, part.shape_b, names.b)
            pair = spec.add_pair(name=f"contact {part.name}", geomname1=names.a, geomname2=names.b)
            mu = float(part.friction)
            pair.condim = 3 if mu else 1
            pair.friction = (mu, mu, 0.0, 0.0, 0.0)
            pair.solref, pair.solimp = SOLREF, SOLIMP
        model = spec.compile()
        self._geoms = {
            (model.geom(names.a).id, model.geom(names.b).id): k
            for k, names in enumerate(self.pairs)
        }
        return model

    # ------------------------------------------------------------------ what is recorded

    def values(self, model: Any, data: Any) -> np.ndarray:
        """Return gap, forces and slip of each contact after `mj_forward`: (contacts, 4)."""
        normal, slipping = np.zeros(len(self.parts)), np.zeros(len(self.parts))
        across = np.zeros((len(self.parts), 3))
        force = np.zeros(6)
        for i in range(data.ncon):
            contact = data.contact[i]
            first, second = (int(geom) for geom in contact.geom)
            k = self._geoms.get((first, second), self._geoms.get((second, first)))
            if k is None:
                continue
            mujoco.mj_contactForce(model, data, i, force)
            axes = np.asarray(contact.frame).reshape(3, 3)
            side = 1.0 if (first, second) in self._geoms else -1.0  # force on frame b
            normal[k] += force[0]
            across[k] += side * (force[1] * axes[1] + force[2] * axes[2])
            slipping[k] += force[0] * _slip(model, data, (first, second), contact.pos, axes[0])
        gaps = [mujoco.mj_geomDistance(model, data, *pair, _FAR, None) for pair in self._geoms]
        floor = np.where(normal > 0, normal, 1.0)
        rows = (np.array(gaps), normal, np.linalg.norm(across, axis=1), slipping / floor)
        return np.stack(rows, axis=1)


_FAR = 1e6
"""Distance (m) up to which gaps are measured."""

_GEOMS = {
    "sphere": (mujoco.mjtGeom.mjGEOM_SPHERE, lambda s: (s[0], 0, 0)),
    "capsule": (mujoco.mjtGeom.mjGEOM_CAPSULE, lambda s: (s[0], s[1] / 2, 0)),
    "cylinder": (mujoco.mjtGeom.mjGEOM_CYLINDER, lambda s: (s[0], s[1] / 2, 0)),
    "box": (mujoco.mjtGeom.mjGEOM_BOX, lambda s: s / 2),
    "half_space": (mujoco.mjtGeom.mjGEOM_PLANE, lambda s: (0, 0, 1)),
}
"""MuJoCo's kind and half sizes of our shapes; a plane without sizes has no end."""


def _unmapped(machine: Machine, part: Contact) -> list[str]:
    """Return why MuJoCo cannot have a contact, one reason for each shape."""
    reasons = []
    for frame, shape in ((part.frame_a, part.shape_a), (part.frame_b, part.shape_b)):
        where = f"contact `{part.name}`, {shape.kind} in frame `{frame}`"
        if shape.kind not in _GEOMS:
            reasons.append(f"{where}: MuJoCo has no rim without thickness; take a thin cylinder")
        elif shape.kind == "half_space" and not _still(machine, machine.frame(frame).body):
            reasons.append(f"{where}: MuJoCo's planes do not move; take a box")
    return reasons


def _still(machine: Machine, body: str) -> bool:
    """Whether a body cannot move."""
    while body != WORLD:
        joint = machine.joint_of(machine.body_index[body])
        if not is_fixed(joint):
            return False
        body = machine.frame(joint.parent).body
    return True


def _add_geom(spec: Any, machine: Machine, frame: str, shape: ContactShape, name: str) -> None:
    at = machine.frame(frame)
    body = spec.worldbody if at.body == WORLD else spec.body(at.body)
    if body is None:
        raise SimulationError(
            f"MuJoCo cannot have `{name}`: body `{at.body}`, which carries it, has no mass and is "
            "written as one body with the next"
        )
    pose = np.asarray(at.pose) @ np.asarray(shape.pose)
    kind, sizes = _GEOMS[shape.kind]
    body.add_geom(
        name=name,
        type=kind,
        size=np.array(sizes(shape.size), float),
        pos=pose[:3, 3],
        quat=quaternion_of_rotation(pose[:3, :3]),
        contype=0,
        conaffinity=0,
    )


def _slip(model: Any, data: Any, geoms: tuple[int, int], point: Any, normal: np.ndarray) -> float:
    """Return the speed (m/s) of one geom relative to another at a point, across the normal."""
    speeds, twist = [], np.zeros(6)
    for geom in geoms:
        body = int(model.geom_bodyid[geom])
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body, twist, 0)
        speeds.append(twist[3:] + np.cross(twist[:3], point - data.xpos[body]))
    relative = speeds[1] - speeds[0]
    return float(np.linalg.norm(relative - normal * (normal @ relative)))
