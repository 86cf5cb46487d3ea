"""Plain chain of poses over a machine's joints, to compare what was read with other engines."""

from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import casadi
import numpy as np

from framefree.geometry import se3
from framefree.machine import Machine


def example_urdfs() -> dict[str, Path]:
    """URDF files of the package example-robot-data by short name; none if it is not installed."""
    try:
        package = metadata.distribution("example-robot-data")
    except metadata.PackageNotFoundError:
        return {}
    files = [file for file in package.files or () if file.suffix == ".urdf"]
    return {f"{f.parts[-3]}/{f.name}": Path(str(package.locate_file(f))) for f in sorted(files)}


class Chain:
    """Poses of all bodies and frames of a machine as one numeric function of x."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        x = casadi.SX.sym("x", machine.nx)
        found = {"world": casadi.SX.eye(4)}
        for body, joint in zip(machine.bodies, machine.joints, strict=True):
            local = casadi.DM(np.array(joint.parent_pose)) @ joint.kind.pose(
                x[machine.x_slice[joint.name]]
            )
            inverse = np.linalg.inv(joint.child_pose)
            found[body.name] = found[joint.parent] @ local @ casadi.DM(inverse)
        for frame in machine.frames:
            found[frame.name] = found[frame.body] @ casadi.DM(np.array(frame.pose))
        self.names = list(found)
        columns = [casadi.vec(casadi.densify(casadi.SX(pose))) for pose in found.values()]
        self.function = casadi.Function("poses", [x], [casadi.horzcat(*columns)])

    def __call__(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Poses by name at one configuration."""
        return next(self.batch(x[None]))

    def batch(self, x: np.ndarray) -> Iterator[dict[str, np.ndarray]]:
        """Poses by name at each of several configurations (batch, nx)."""
        columns = self.function.map(len(x))(x.T).full()
        matrices = columns.T.reshape(len(x), len(self.names), 4, 4).swapaxes(2, 3)
        return (dict(zip(self.names, state, strict=True)) for state in matrices)


def center_of_mass(machine: Machine, poses: dict[str, np.ndarray]) -> tuple[float, np.ndarray]:
    """Total mass and center of mass in the world."""
    total, first = 0.0, np.zeros(3)
    for body in machine.bodies:
        m = body.moments
        pose = poses[body.name]
        total += m.total
        first += pose[:3, :3] @ m.first + m.total * pose[:3, 3]
    return total, first / total if total else first


class Inertia:
    """Mass matrix of a machine as a plain sum over bodies, M = sum J^T I J + armature."""

    def __init__(self, machine: Machine) -> None:
        x = casadi.SX.sym("x", machine.nx)
        jacobians, M = [], casadi.diag(casadi.DM(np.concatenate([[], *_armatures(machine)])))
        for i, (body, joint) in enumerate(zip(machine.bodies, machine.joints, strict=True)):
            q = x[machine.x_slice[joint.name]]
            child = casadi.DM(np.array(joint.child_pose))
            local = casadi.DM(np.array(joint.parent_pose)) @ joint.kind.pose(q) @ se3.inverse(child)
            J = casadi.SX.zeros(6, machine.nv)
            if machine.parent[i] >= 0:
                J = se3.adjoint(se3.inverse(local)) @ jacobians[machine.parent[i]]
            J[:, machine.v_slice[joint.name]] += se3.adjoint(child) @ joint.kind.jacobian(q)
            jacobians.append(J)
            M = M + J.T @ casadi.DM(body.moments.matrix6) @ J
        self.function = casadi.Function("mass", [x], [casadi.densify(casadi.SX(M))])

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.function(x).full()


def _armatures(machine: Machine) -> list[np.ndarray]:
    return [np.asarray(joint.armature) for joint in machine.joints]


def mujoco_mass(model, data) -> np.ndarray:
    """MuJoCo's mass matrix, whose arguments changed their order in its version 4."""
    import mujoco

    M = np.zeros((model.nv, model.nv))
    try:
        mujoco.mj_fullM(model, data, M)
    except TypeError:
        mujoco.mj_fullM(model, M, data.qM)
    return M
