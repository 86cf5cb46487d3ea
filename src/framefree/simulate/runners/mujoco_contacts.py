"""Contacts that MuJoCo solves itself, where it is the plant.

Each `Contact` of the machine becomes two geoms and a pair that may touch; geoms of the model file
touch as they do there (`mujoco_geoms`), and nothing else does. What carries over of a `Contact` is
where the shapes are and the coefficient of friction. Stiffness, damping and slip speed do not:
MuJoCo finds the forces that keep shapes apart at the end of a step, softened by its impedance d and
the reference -b r' - k r for the depth r. A body that lies still sinks until

    (1 - d) g = d k r,    d, k by `solimp` and `solref`

whatever its mass. Forces are those at the recorded states, found anew for each row, so that they do
not depend on how a run was cut into pieces.
"""

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np

from framefree.machine import WORLD, Contact, Machine
from framefree.machine.contact_shape import ContactShape
from framefree.machine.formats.poses import quaternion_of_rotation
from framefree.machine.formats.writing import is_fixed
from framefree.simulate.columns import Channel
from framefree.simulate.errors import SimulationError
from framefree.simulate.runners.mujoco_geoms import FileContacts, body_of
from framefree.simulate.storage import Arrays
from framefree.simulate.touching import contacts_of

RECORDS = {"gap": "m", "normal_force": "N", "friction_force": "N", "slip": "m/s"}
"""What is recorded of a contact: the words of `Contact.records`, and units."""
ONLY_IN_PAIRS = {"contype": 0, "conaffinity": 0}
"""A geom touches only where a pair says so."""
SETTINGS: dict[str, tuple[float, ...]] = {
    "solref": (0.02, 1.0),
    "solreffriction": (0.0, 0.0),
    "solimp": (0.9, 0.95, 0.001, 0.5, 2.0),
    "impratio": (10.0,),
}
"""MuJoCo's defaults of time constant (s; at least two steps) and damping ratio of a contact, the
same of its friction (0 for as `solref`), its impedance at depth zero and from 1 mm on; and how much
harder friction is than the normal force, so that what sticks creeps less."""


class EngineContacts:
    """The contacts of a machine as MuJoCo's: its `Contact` parts, and geoms of its model file.

    Parameters
    ----------
    machine : Machine
        With its contacts; tunable numbers and all.
    settings : mapping of str to number or numbers, optional
        Of the solver for `Contact` parts, other than those of `SETTINGS`.

    Raises
    ------
    SimulationError
        If it has none, or naming all that MuJoCo cannot have.
    """

    def __init__(self, machine: Machine, settings: Mapping[str, Any] | None = None) -> None:
        self.machine = machine
        self._solver = SETTINGS | _checked(settings or {})
        self.parts: list[Contact] = contacts_of(machine)
        self.file = FileContacts(machine)
        if not self.parts and not self.file.shapes:
            raise SimulationError(
                "`contacts=True`, but the machine has no contact shapes: attach `Contact` parts, "
                "such as Contact(name, 'world', body, ContactShape('half_space'), "
                "ContactShape('sphere', radius), stiffness), read it from a MJCF file whose geoms "
                "touch, or leave `contacts` out"
            )
        reasons = [reason for part in self.parts for reason in _unmapped(machine, part)]
        reasons += self.file.reasons
        if reasons:
            raise SimulationError("MuJoCo cannot have these contacts: " + "; ".join(reasons))
        self._geoms: dict[tuple[int, int], int] = {}
        self._bodies: list[str] = []

    @property
    def settings(self) -> dict[str, Any]:
        """What MuJoCo's solver is given, for the header of a run."""
        chosen: dict[str, Any] = {"cone": "elliptic", "impratio": self._solver["impratio"][0]}
        if self.file.settings:
            chosen = {name: list(values) for name, values in self.file.settings.items()}
        if self.parts:
            chosen |= {n: list(row) for n, row in self._solver.items() if n != "impratio"}
            chosen["not_used"] = ["stiffness", "damping", "slip_speed", "exponent"]
        return chosen

    def model(self, text: str, machine: Machine) -> Any:
        """Return MuJoCo's model of a machine, in numbers, written as MJCF, with its contacts."""
        spec = mujoco.MjSpec.from_string(text)
        spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        spec.option.impratio = self._solver["impratio"][0]
        self.file.add(spec, machine)
        names = []
        for part in contacts_of(machine):
            pair = tuple(f"contact {part.name} {end}" for end in "ab")
            add_geom(spec, machine, part.frame_a, part.shape_a, name=pair[0], **ONLY_IN_PAIRS)
            add_geom(spec, machine, part.frame_b, part.shape_b, name=pair[1], **ONLY_IN_PAIRS)
            mu = float(part.friction)
            spec.add_pair(
                name=f"contact {part.name}",
                geomname1=pair[0],
                geomname2=pair[1],
                condim=3 if mu else 1,
                friction=(mu, mu, 0.0, 0.0, 0.0),
                solref=self._solver["solref"],
                solreffriction=self._solver["solreffriction"],
                solimp=self._solver["solimp"],
            )
            names.append(pair)
        try:
            model = spec.compile()
        except ValueError as error:
            raise SimulationError(f"MuJoCo does not take the contacts: {error}") from None
        self._geoms = {(model.geom(a).id, model.geom(b).id): k for k, (a, b) in enumerate(names)}
        self._bodies = []
        for name, pairs in self.file.body_pairs(model).items():
            self._geoms |= dict.fromkeys(pairs, len(self.parts) + len(self._bodies))
            self._bodies.append(name)
        return model

    # ------------------------------------------------------------------ what is recorded

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of `values`: a row for each contact and each pair of bodies."""
        return len(self.parts) + len(self._bodies), len(RECORDS)

    @property
    def channels(self) -> tuple[Channel, ...]:
        """What is recorded: of contacts by their names, of geoms of the file by pairs of bodies."""
        own = [
            Channel("signals", f"{part.name}.{word}", (), units=(unit,))
            for part in self.parts
            for word, unit in RECORDS.items()
        ]
        bodies = tuple(self._bodies)
        file = [
            Channel("signals", f"contact_{word}", (len(bodies),), bodies, (unit,) * len(bodies))
            for word, unit in (RECORDS.items() if bodies else ())
        ]
        return (*own, *file)

    def arrays(self, rows: np.ndarray) -> Arrays:
        """Return values of many states (n, pairs, 4) by channel."""
        count = len(self.parts)
        own = rows[:, :count].reshape(len(rows), -1).T
        file = np.moveaxis(rows[:, count:], 2, 0)
        keys = [channel.key for channel in self.channels]
        return dict(zip(keys, [*own, *file], strict=False))

    def values(self, model: Any, data: Any) -> np.ndarray:
        """Return gap, forces and slip of each pair after `mj_forward`: (pairs, 4)."""
        count = self.shape[0]
        normal, slipping, across = np.zeros(count), np.zeros(count), np.zeros((count, 3))
        force = np.zeros(6)
        for i in range(data.ncon):
            contact = data.contact[i]
            first, second = (int(geom) for geom in contact.geom)
            k = self._geoms.get((first, second), self._geoms.get((second, first)))
            if k is None:
                continue
            mujoco.mj_contactForce(model, data, i, force)
            axes = np.asarray(contact.frame).reshape(3, 3)
            side = 1.0 if (first, second) in self._geoms else -1.0  # all on the same of two bodies
            normal[k] += force[0]
            across[k] += side * (force[1] * axes[1] + force[2] * axes[2])
            slipping[k] += force[0] * _slip(model, data, (first, second), contact.pos, axes[0])
        floor = np.where(normal > 0, normal, 1.0)
        rows = (self._gaps(model, data), normal, np.linalg.norm(across, axis=1), slipping / floor)
        return np.stack(rows, axis=1)

    def wrenches(self, model: Any, data: Any) -> np.ndarray:
        """Return the wrenches of contacts on all bodies, each in its own axes: (6 bodies,).

        As MuJoCo has found them last, at the poses that it then had.
        """
        index = self.machine.body_index
        total, force = np.zeros((len(self.machine.bodies), 6)), np.zeros(6)
        for i in range(data.ncon):
            contact = data.contact[i]
            mujoco.mj_contactForce(model, data, i, force)
            axes = np.asarray(contact.frame).reshape(3, 3)
            # The contact's axes point from its first geom to its second, which feels the force.
            pushed = axes.T @ force[:3], axes.T @ force[3:]
            for geom, sign in zip(contact.geom, (-1.0, 1.0), strict=True):
                body = int(model.geom_bodyid[int(geom)])
                k = index.get(model.body(body).name, -1) if body else -1
                if k < 0:
                    continue
                R, arm = data.xmat[body].reshape(3, 3), contact.pos - data.xpos[body]
                moment = pushed[1] + np.cross(arm, pushed[0])
                total[k] += sign * np.concatenate([R.T @ pushed[0], R.T @ moment])
        return total.ravel()

    def _gaps(self, model: Any, data: Any) -> np.ndarray:
        """Return the smallest distance (m) of each pair; balls around geoms tell which are far."""
        gaps = np.full(self.shape[0], _FAR)
        for (a, b), k in self._geoms.items():
            around = model.geom_rbound[a], model.geom_rbound[b]
            apart = np.linalg.norm(data.geom_xpos[a] - data.geom_xpos[b]) - sum(around)
            if min(around) <= 0 or apart < gaps[k]:
                found = mujoco.mj_geomDistance(model, data, a, b, float(gaps[k]), None)
                gaps[k] = min(gaps[k], found)
        return gaps


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


def _checked(settings: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
    """Return settings of the solver as numbers; refuse others, naming what there is."""
    numbers = {}
    for name, value in settings.items():
        if name not in SETTINGS:
            raise SimulationError(
                f"MuJoCo's contacts have no setting `{name}`; choose from: {', '.join(SETTINGS)}"
            )
        row = tuple(np.atleast_1d(np.asarray(value, float)).tolist())
        if len(row) != len(SETTINGS[name]) or not np.isfinite(row).all():
            raise SimulationError(
                f"`{name}` of MuJoCo's contacts must be {len(SETTINGS[name])} finite numbers, got "
                f"{value!r}"
            )
        numbers[name] = row
    return numbers


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


def add_geom(
    spec: Any, machine: Machine, frame: str, shape: ContactShape, **attributes: Any
) -> None:
    """Add a contact shape to a model's specification, with attributes of MuJoCo's geoms."""
    at = machine.frame(frame)
    body = body_of(spec, at.body, f"`{attributes.get('name', shape.kind)}`")
    pose = np.asarray(at.pose) @ np.asarray(shape.pose)
    kind, sizes = _GEOMS[shape.kind]
    body.add_geom(
        type=kind,
        size=np.array(sizes(shape.size), float),
        pos=pose[:3, 3],
        quat=quaternion_of_rotation(pose[:3, :3]),
        **attributes,
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
