"""Equality constraints of a compiled MuJoCo model: loops and couplings."""

from __future__ import annotations

from typing import Any

import numpy as np

from framefree.machine.coupling import Coupling, Linear, Polynomial
from framefree.machine.formats.mjcf_engine import enabled, part_names, value
from framefree.machine.formats.mjcf_tree import SLIDE, MjcfTree
from framefree.machine.formats.poses import pose_of_quaternion, posed
from framefree.machine.frame import Frame
from framefree.machine.joints import Prismatic, Revolute
from framefree.machine.loop import Loop
from framefree.machine.problems import MachineError, Problems
from framefree.machine.spatial_tendon import SpatialTendon
from framefree.machine.tendon import JointTendon, Tendon


def equalities(
    model: Any, tree: MjcfTree, tendons: dict[int, Tendon], problems: Problems
) -> tuple[list[Loop], list[Coupling], list[Frame]]:
    """Return loops, couplings, and the frames that the loops are made between."""
    result = _Equalities(model, tree, tendons)
    names = part_names(model, "equality", model.neq)
    for i in range(model.neq if enabled(model, "EQUALITY") else 0):
        where = tree.document.where("equality", model.equality(i).name, i)
        if not model.eq_active0[i]:
            tree.ignored.append(f"{where}: not active")
            continue
        with problems.at(where):
            result.add(i, names[i])
    if result.loops or result.couplings:
        tree.ignored.append("softness of equality constraints (solref, solimp): they are rigid")
    return result.loops, result.couplings, result.frames


class _Equalities:
    def __init__(self, model: Any, tree: MjcfTree, tendons: dict[int, Tendon]) -> None:
        self.model = model
        self.tree = tree
        self.tendons = tendons
        self.loops: list[Loop] = []
        self.couplings: list[Coupling] = []
        self.frames: list[Frame] = []

    def add(self, i: int, name: str) -> None:
        kind = int(self.model.eq_type[i])
        if kind == value("mjtEq", "mjEQ_CONNECT"):
            self._connect(i, name)
        elif kind == value("mjtEq", "mjEQ_WELD"):
            self._weld(i, name)
        elif kind == value("mjtEq", "mjEQ_JOINT"):
            self._joint(i, name)
        elif kind == value("mjtEq", "mjEQ_TENDON"):
            self._tendon(i, name)
        else:
            raise MachineError(
                "only connect, weld, joint and tendon constraints are supported; "
                '`without="equality"` leaves all out'
            )

    def _connect(self, i: int, name: str) -> None:
        data = self.model.eq_data[i]
        if self._between_sites(i):
            a, b = self._sites(i)
        else:
            a, b = (
                self._frame(self._body(i, end), data[3 * k : 3 * k + 3], f"{name}_{'ab'[k]}")
                for k, end in enumerate(("eq_obj1id", "eq_obj2id"))
            )
        self.loops.append(Loop(name, "ball", a, b))

    def _weld(self, i: int, name: str) -> None:
        data = self.model.eq_data[i]
        if data[10] <= 0:
            raise MachineError(f"`torquescale` must be positive, got {data[10]:g}")
        if self._between_sites(i):
            a, b = self._sites(i)
            self.loops.append(Loop(name, "weld", a, b))
            return
        # data: point of body 2, its place in body 1, rotation of body 2 seen from body 1
        pose = pose_of_quaternion(np.zeros(3), data[6:10])
        pose[:3, 3] = data[3:6]
        at_1 = self._posed(self._body(i, "eq_obj1id"), pose, f"{name}_a")
        at_2 = self._frame(self._body(i, "eq_obj2id"), data[:3], f"{name}_b")
        self.loops.append(Loop(name, "weld", at_1, at_2))

    def _joint(self, i: int, name: str) -> None:
        model = self.model
        target, source = int(model.eq_obj1id[i]), int(model.eq_obj2id[i])
        coefficients = np.array(model.eq_data[i][:5])
        coefficients[0] += model.qpos0[model.jnt_qposadr[target]]
        if source < 0:
            self._hold(target, float(coefficients[0]), name)
            return
        at = float(model.qpos0[model.jnt_qposadr[source]])
        names = self.tree.joint_names
        if any(coefficients[2:]):
            law = Polynomial(coefficients, at)
            coupling = Coupling(name, names[target], (names[source],), law)
        else:
            offset, slope = coefficients[:2]
            coupling = Coupling.mimic(
                name, names[target], names[source], slope, offset - slope * at
            )
        self.couplings.append(coupling)

    def _tendon(self, i: int, name: str) -> None:
        """Couple tendons over joints: (L1 - L1_0) = c0 + c1 (L2 - L2_0), solved for a joint.

        A string between two frames that keeps its length is a distance.
        """
        model = self.model
        one, two = (int(getattr(model, f"eq_obj{k}id")[i]) for k in (1, 2))
        string = self.tendons.get(one)
        if two < 0 and isinstance(string, SpatialTendon) and _straight(string):
            length = float(model.eq_data[i][0] + model.tendon_length0[one])
            self.loops.append(Loop(name, "distance", *string.path, length=length))
            return
        hint = '`without="equality"` leaves all out'
        chosen = [self.tendons.get(k) for k in ((one,) if two < 0 else (one, two))]
        if not all(isinstance(tendon, JointTendon) for tendon in chosen):
            raise MachineError(f"a constraint of a tendon that is not a sum of joints; {hint}")
        c0, c1, *higher = (float(c) for c in model.eq_data[i][:5])
        if two >= 0 and any(higher):
            raise MachineError(f"a constraint with powers of a tendon's length; {hint}")
        offset = c0 + float(model.tendon_length0[one])
        shares = _shares(chosen[0])
        if two >= 0:
            offset -= c1 * float(model.tendon_length0[two])
            for joint, share in _shares(chosen[1]).items():
                shares[joint] = shares.get(joint, 0.0) - c1 * share
        taken = {coupling.target for coupling in self.couplings}
        free = {joint: share for joint, share in shares.items() if share and joint not in taken}
        if not free:
            raise MachineError(f"all its joints are led by other constraints already; {hint}")
        target = max(free, key=lambda joint: abs(free[joint]))
        others = {joint: -c / free[target] for joint, c in shares.items() if joint != target and c}
        offset /= free[target]
        if not others:
            joint = next(j for j, own in self.tree.joint_names.items() if own == target)
            self._hold(joint, offset, name)
            return
        law = Linear(list(others.values()), offset)
        self.couplings.append(Coupling(name, target, tuple(others), law))

    def _hold(self, target: int, angle: float, name: str) -> None:
        """Hold one joint still: weld its two bodies as they are at this coordinate."""
        joint = next(j for j in self.tree.joints if j.name == self.tree.joint_names[target])
        if not isinstance(joint.kind, Revolute | Prismatic):
            raise MachineError("an equality that holds a ball or free joint is not supported")
        axis = np.asarray(joint.kind.axis)
        if self.model.jnt_type[target] == SLIDE:
            moved = posed(np.eye(3), angle * axis)
        else:
            half = angle / 2
            moved = pose_of_quaternion(np.zeros(3), [np.cos(half), *(np.sin(half) * axis)])
        a = Frame(self.tree.unused(f"{name}_a"), joint.parent, joint.parent_pose @ moved)
        b = Frame(self.tree.unused(f"{name}_b"), joint.child, joint.child_pose)
        self.frames += [a, b]
        self.loops.append(Loop(name, "weld", a.name, b.name))

    def _between_sites(self, i: int) -> bool:
        return int(self.model.eq_objtype[i]) == value("mjtObj", "mjOBJ_SITE")

    def _sites(self, i: int) -> tuple[str, str]:
        names = self.tree.site_names
        return names[int(self.model.eq_obj1id[i])], names[int(self.model.eq_obj2id[i])]

    def _body(self, i: int, end: str) -> int:
        return max(0, int(getattr(self.model, end)[i]))

    def _frame(self, body: int, position: Any, name: str) -> str:
        return self._posed(body, posed(np.eye(3), position), name)

    def _posed(self, body: int, pose: np.ndarray, name: str) -> str:
        frame = self.tree.frame_at(body, pose, name)
        self.frames.append(frame)
        return frame.name


def _straight(string: SpatialTendon) -> bool:
    """Whether a tendon is a string between two frames and nothing else."""
    return len(string.path) == 2 and all(isinstance(step, str) for step in string.path)


def _shares(tendon: Any) -> dict[str, float]:
    """Return the coefficients of a tendon over joints, by joint."""
    return dict(zip(tendon.coordinates, tendon.coefficients.tolist(), strict=True))
