"""The same dynamics from Pinocchio and MuJoCo, where they are installed.

These engines model springs, friction and fluid differently, so that the open tree without them is
compared: the mass matrix, the force for random accelerations, and accelerations where M is well
conditioned.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np

from framefree.certify.pinocchio_model import pinocchio_model
from framefree.certify.report import Finding
from framefree.certify.subject import States, Subject, evaluate, relative, without_forces
from framefree.errors import FramefreeError
from framefree.machine import Machine
from framefree.machine.formats.markup import parse
from framefree.machine.formats.mjcf import compiled
from framefree.machine.formats.mjcf_engine import mujoco_warnings
from framefree.machine.formats.mjcf_text import document_of
from framefree.machine.formats.mjcf_tree import MjcfTree
from framefree.machine.formats.options import ReadOptions
from framefree.machine.formats.source import source_of
from framefree.machine.layouts import EngineLayout, layout
from framefree.machine.problems import Problems
from framefree.machine.units import Units, with_unit_diagonal
from framefree.motion import Equations

BAR = 1e-9
WELL = 1e8
"""Condition number of M up to which accelerations are compared."""
REMEDY = (
    "find which engine misreads the file: compare masses, axes and inertial frames body by body"
)


@dataclass(frozen=True)
class ModelSource:
    """The model file (its path or text) that a machine was read from, if any, and how.

    Attributes
    ----------
    model : path, str or None
    reading : dict
        Options of `framefree.read`.
    """

    model: Any = None
    reading: dict[str, Any] = field(default_factory=dict)

    @property
    def data(self) -> bytes:
        """The text of the file."""
        return b"" if self.model is None else self._source.data

    @property
    def format(self) -> str:
        """The root element of the file: "robot" or "mujoco"; empty where there is no file."""
        return "" if self.model is None else parse(self.data, "model").tag

    @property
    def _source(self) -> Any:
        return source_of(self.model, self.reading.get("packages"))

    def mujoco(self) -> tuple[Any, list[str]]:
        """Return MuJoCo's model of an MJCF file, made safe, and our names of its joints."""
        source = self._source
        chosen = {k: v for k, v in self.reading.items() if k in ReadOptions.__dataclass_fields__}
        without = chosen.get("without", ())
        chosen["without"] = (without,) if isinstance(without, str) else tuple(without)
        options = ReadOptions(**chosen)
        problems = Problems()  # reading has reported them
        document = document_of(source, parse(source.data, source.name), options, problems)
        model, _ = compiled(document, problems)
        tree = MjcfTree(model, document, options, problems)
        return model, [tree.joint_names.get(i, "") for i in range(model.njnt)]


@dataclass(frozen=True)
class Peer:
    """Another engine's mass matrix, force and acceleration at one state, in its own layout."""

    layout: EngineLayout
    mass: Callable[[np.ndarray], np.ndarray]
    inverse: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    forward: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def pinocchio(subject: Subject, source: ModelSource) -> Finding:
    """Compare with Pinocchio, which reads a URDF itself; other machines are handed over."""
    return _compared("Pinocchio", subject, source, _pinocchio_peer)


def mujoco(subject: Subject, source: ModelSource) -> Finding:
    """Compare with MuJoCo, which gets the MJCF file, or the machine written as MJCF."""
    return _compared("MuJoCo", subject, source, _mujoco_peer)


def _compared(
    engine: str,
    subject: Subject,
    source: ModelSource,
    make: Callable[[Any, Machine, ModelSource], Peer],
) -> Finding:
    name = f"{engine.lower()}_residual"
    meaning = f"{engine} gives the same mass matrix, forces and accelerations"
    try:
        module = import_module(engine.lower())
    except ImportError:
        return Finding.skipped(name, meaning, f"{engine} is not installed")
    bare = without_forces(subject.open)
    machine = replace(bare, gravity=subject.open.gravity, fluid=None)
    try:
        peer = make(module, machine, source)
    except FramefreeError as error:
        return Finding.skipped(name, meaning, str(error))
    eom = type(subject.tree)(machine)
    gaps = compare(eom, peer, subject.open_states, subject.units)
    worst = max(gaps, key=lambda quantity: gaps[quantity])
    return Finding.measured(
        name, gaps[worst], BAR, meaning, REMEDY, note=f"largest in {worst}; without passive forces"
    )


def compare(
    eom: Equations, peer: Peer, states: States, units: Units | None = None
) -> dict[str, float]:
    """Return the relative differences of mass matrix, force and acceleration."""
    units = Units.of(eom.machine) if units is None else units
    D, of_mass = units.velocity, units.of_mass
    x, v, a, force = states.x, states.v, states.a, states.force
    to = peer.layout
    q, w = to.x_to(x), to.v_to(x, v)
    (M,) = evaluate(eom.functions["mass"], x)
    theirs = np.array([peer.mass(row) for row in q])
    # Column j of the map from our velocities to theirs, at every state.
    T = np.stack([to.v_to(x, np.tile(unit, (len(x), 1))) for unit in np.eye(v.shape[1])], axis=2)
    accelerations = to.a_to(x, v, a)
    torques = np.array([peer.inverse(*row) for row in zip(q, w, accelerations, strict=True)])
    (inverse,) = evaluate(eom.functions["inverse"], x, v, a)
    gaps = {
        "mass matrix": relative(of_mass(M), of_mass(np.swapaxes(T, 1, 2) @ theirs @ T)),
        "forces": relative(D * inverse[..., 0], D * to.v_from(x, torques)),
    }
    finite = np.isfinite(M).all(axis=(1, 2))
    well = finite & (np.linalg.cond(with_unit_diagonal(np.where(np.isfinite(M), M, 0))) < WELL)
    if well.any():
        pushes = to.v_to(x, force)
        answers = np.array([peer.forward(*row) for row in zip(q, w, pushes, strict=True)])
        (forward,) = evaluate(eom.functions["forward"], x, v, force)
        theirs_a = to.a_from(x, v, answers)[well]
        gaps["accelerations"] = relative(forward[well, :, 0] / D, theirs_a / D)
    return gaps


def _pinocchio_peer(pin: Any, machine: Machine, source: ModelSource) -> Peer:
    try:
        if source.format == "robot":
            root = [pin.JointModelFreeFlyer()] if source.reading.get("base") == "free" else []
            model = pin.buildModelFromXML(source.data.decode(), *root)
        else:
            model = pinocchio_model(pin, machine)
    except (ValueError, RuntimeError) as error:
        raise FramefreeError(f"Pinocchio does not take the machine: {error}") from None
    order = ["base" if name == "root_joint" else name for name in model.names[1:]]
    model.gravity.linear = np.array(machine.gravity)
    to = layout(machine, "pinocchio", order)
    armature = np.concatenate([np.zeros(0), *(joint.armature for joint in machine.joints)])
    model.armature[:] = to.v_to(machine.neutral(), armature)
    data = model.createData()

    def mass(q: np.ndarray) -> np.ndarray:
        upper = np.triu(pin.crba(model, data, q))
        return upper + np.triu(upper, 1).T

    return Peer(
        to,
        mass,
        lambda q, v, a: pin.rnea(model, data, q, v, a).copy(),
        lambda q, v, force: pin.aba(model, data, q, v, force).copy(),
    )


def _mujoco_peer(mj: Any, machine: Machine, source: ModelSource) -> Peer:
    model, names = source.mujoco() if source.format == "mujoco" else _written(mj, machine)
    to = layout(machine, "mujoco", names)
    model.opt.disableflags |= int(mj.mjtDisableBit.mjDSBL_CONSTRAINT)
    data = mj.MjData(model)

    def at(q: np.ndarray, v: np.ndarray | None = None) -> None:
        data.qpos[:], data.qvel[:] = q, 0 if v is None else v
        with mujoco_warnings():
            mj.mj_forward(model, data)

    def mass(q: np.ndarray) -> np.ndarray:
        at(q)
        columns = np.zeros((model.nv, model.nv))
        for unit, column in zip(np.eye(model.nv), columns, strict=True):
            mj.mj_mulM(model, data, column, unit)
        return columns.T

    def inverse(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        M = mass(q)
        at(q, v)
        return M @ a + data.qfrc_bias

    def forward(q: np.ndarray, v: np.ndarray, force: np.ndarray) -> np.ndarray:
        at(q, v)
        a = np.zeros((1, model.nv))
        mj.mj_solveM(model, data, a, (force - data.qfrc_bias)[None])
        return a[0]

    return Peer(to, mass, inverse, forward)


def _written(mj: Any, machine: Machine) -> tuple[Any, list[str]]:
    """Return MuJoCo's model of a machine, and our joints in its order.

    Joints of several motions are several there, called "joint.part".
    """
    bodies = replace(machine, frames=(), geometry=(), keyframes=(), actuators=(), tendons=())
    limits = ("range", "velocity_limit", "effort_limit")
    try:
        with mujoco_warnings():
            model = mj.MjModel.from_xml_string(bodies.to_mjcf(without=limits))
    except (ValueError, RuntimeError) as error:
        raise FramefreeError(f"MuJoCo does not take the machine: {error}") from None
    names = [model.joint(i).name for i in range(model.njnt)]
    ours = [name if name in machine.joint_index else name.rpartition(".")[0] for name in names]
    return model, list(dict.fromkeys(ours))
