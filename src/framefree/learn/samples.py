"""Samples: states, and what the equations lack there, as far as it can be seen.

Of the unknown wrenches tau_b on the bodies a motion shows only what the joints do not carry,

    y = sum_b J_b^T tau_b = T^T tau = M a + c - B u          (nv numbers, not 6 a body)

and on a closed machine only its part along the motions that the loops allow. Misfits e of y count
in a metric that no change of frames or coordinates alters,

    |e|^2 = e^T W^-1 e,     W = sum_b J_b^T diag(1, l_b^2) J_b,

over all bodies, J_b at the body's mass center and l_b its radius of gyration: the square of the
least forces f and moments m on the bodies, |f|^2 + |m/l|^2, that amount to e. In M^-1 light turns
about thin axes would outweigh everything else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.kernel import Kernel, compile
from framefree.learn.errors import LearnError
from framefree.learn.model import gravity_direction
from framefree.machine import Machine
from framefree.machine.units import extent
from framefree.motion import equations
from framefree.motion.tree import Tree

LEAST = 8
"""Samples below which nothing is learned."""
STILL = 1e-9
"""Share by which states must differ to count as motion."""


@dataclass(frozen=True, eq=False)
class Samples:
    """States of one machine and the projected residual of its equations there.

    Attributes
    ----------
    machine : Machine
    x, v : (n, nx), (n, nv)
    labels : (n, m)
        y, N and Nm; m is nv, or less on a closed machine.
    motion : (n,)
        Number of the motion that a sample comes from: samples of one motion are alike, and are
        kept together when some are held out.
    inputs : (n, bodies, k)
        What a model takes as inputs, body by body.
    bodies : tuple of str
        Bodies on which an unknown wrench acts; default all.
    """

    machine: Machine
    x: np.ndarray
    v: np.ndarray
    labels: np.ndarray
    motion: np.ndarray
    inputs: np.ndarray
    bodies: tuple[str, ...]

    @classmethod
    def of_states(
        cls,
        machine: Machine,
        x: Any,
        v: Any,
        labels: Any,
        *,
        motion: Any = None,
        inputs: Any = None,
        bodies: Sequence[str] | None = None,
    ) -> "Samples":
        """Return samples from states and forces T^T tau (n, nv) there, checked."""
        x, v, labels = (np.array(one, float) for one in (x, v, labels))
        names = tuple(bodies) if bodies is not None else tuple(b.name for b in machine.bodies)
        for name in names:
            machine.body(name)
        n = len(x)
        shapes = {"x": (x, machine.nx), "v": (v, machine.nv), "labels": (labels, machine.nv)}
        for what, (value, size) in shapes.items():
            if value.shape != (n, size):
                raise LearnError(f"`{what}` must have shape {(n, size)}, got {value.shape}")
            _check_finite(value, what)
        which = np.zeros(n, int) if motion is None else np.asarray(motion)
        if which.shape != (n,):
            raise LearnError(f"`motion` must have shape {(n,)}, got {which.shape}")
        given = np.zeros((n, len(names), 0)) if inputs is None else np.array(inputs, float)
        if given.ndim != 3 or given.shape[:2] != (n, len(names)):
            raise LearnError(f"`inputs` must have shape {(n, len(names), 'k')}, got {given.shape}")
        _check_finite(given, "inputs")
        samples = cls(machine, x, v, labels, which, given, names)
        return replace(samples, labels=samples.along(labels))

    def __len__(self) -> int:
        return len(self.x)

    def take(self, rows: Any) -> "Samples":
        """Return some of the samples."""
        picked = {name: getattr(self, name)[rows] for name in _ARRAYS}
        return replace(self, **picked)

    def of_motions(self, motions: Any) -> "Samples":
        """Return the samples of some motions."""
        return self.take(np.isin(self.motion, motions))

    def split(self, share: float = 0.2, seed: int = 0) -> tuple["Samples", "Samples"]:
        """Return samples to learn from and samples held out, whole motions each.

        With fewer than three motions, pieces of a tenth of the rows stand for motions.
        """
        groups = self.motion
        if len(np.unique(groups)) < 3:
            groups = np.arange(len(self)) * 10 // max(len(self), 1)
        names = np.random.default_rng(seed).permutation(np.unique(groups))
        count = min(max(1, round(share * len(names))), len(names) - 1)
        held = np.isin(groups, names[:count])
        return self.take(~held), self.take(held)

    # ------------------------------------------------------------------ what bodies meet

    @cached_property
    def allowed(self) -> np.ndarray | None:
        """Bases (n, nv, m) of the motions that loops allow; None without loops."""
        if not self.machine.closed:
            return None
        A = equations(self.machine, "constrained").kernel("constraint")(self.x, self.v)[0]
        _, sizes, Vt = np.linalg.svd(A)
        rank = int(np.max(np.sum(sizes > 1e-6 * sizes.max(), axis=1)))
        return Vt[:, rank:].swapaxes(1, 2)

    def along(self, forces: np.ndarray) -> np.ndarray:
        """Return forces (n, nv) along the motions that loops allow (n, m)."""
        if self.allowed is None:
            return forces
        return np.einsum("nvm,nv->nm", self.allowed, forces)

    @cached_property
    def _kinematics(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        kernel = kinematics(self.machine, self.bodies)
        rotation, twist, jacobian, position = kernel(self.x, self.v)
        n, count = len(self), len(self.bodies)
        jacobian = jacobian.reshape(n, count, 6, self.machine.nv)
        if self.allowed is not None:
            jacobian = jacobian @ self.allowed[:, None]
        places = position.reshape(n, count, 3)
        return rotation.reshape(n, count, 3, 3), twist.reshape(n, count, 6), jacobian, places

    @property
    def rotation(self) -> np.ndarray:
        """R_b (n, bodies, 3, 3)."""
        return self._kinematics[0]

    @property
    def twist(self) -> np.ndarray:
        """xi_b (n, bodies, 6)."""
        return self._kinematics[1]

    @property
    def jacobian(self) -> np.ndarray:
        """J_b (n, bodies, 6, m)."""
        return self._kinematics[2]

    @property
    def position(self) -> np.ndarray:
        """Places (n, bodies, 3) of the bodies' origins in the world, m."""
        return self._kinematics[3]

    @cached_property
    def down(self) -> np.ndarray:
        """Direction of gravity in body axes (n, bodies, 3); zero without gravity."""
        return np.einsum("nbji,j->nbi", self.rotation, gravity_direction(self.machine))

    @cached_property
    def lengths(self) -> np.ndarray:
        """Radius of gyration (bodies,) of every body, m."""
        return np.array([gyration(self.machine, name) for name in self.bodies])

    @cached_property
    def factor(self) -> np.ndarray:
        """Lower triangular L (n, m, m) with L L^T = W, of all bodies of the machine."""
        every = tuple(body.name for body in self.machine.bodies)
        if self.bodies != every:
            nothing = np.zeros((len(self), len(every), 0))
            return replace(self, bodies=every, inputs=nothing).factor
        moved = self.jacobian.copy()
        for i, name in enumerate(self.bodies):
            moments = self.machine.body(name).moments
            if moments.total:
                center = np.asarray(moments.first, float) / float(moments.total)
                moved[:, i, :3] -= _wedge(center) @ moved[:, i, 3:]
        moved[:, :, 3:] *= self.lengths[:, None, None]
        stacked = moved.reshape(len(self), -1, moved.shape[-1])
        W = stacked.swapaxes(1, 2) @ stacked
        sizes = np.linalg.eigvalsh(W)
        if len(W) and not (sizes[:, 0] > 1e-14 * sizes[:, -1]).all():
            raise LearnError(
                "some velocities of the machine move none of its bodies that have an extent: what "
                "acts on them cannot be weighed"
            )
        return np.linalg.cholesky(W)

    def whiten(self, values: np.ndarray) -> np.ndarray:
        """Return L^-1 values, (n, m) or (n, m, k): the metric becomes the plain sum of squares."""
        columns = values[..., None] if values.ndim == 2 else values
        result = np.linalg.solve(self.factor, columns)
        return result[..., 0] if values.ndim == 2 else result

    def project(self, wrenches: np.ndarray) -> np.ndarray:
        """Return sum_b J_b^T w_b of wrenches (n, bodies, 6) or (n, bodies, 6, k)."""
        if wrenches.ndim == 3:
            return np.einsum("nbiv,nbi->nv", self.jacobian, wrenches)
        return np.einsum("nbiv,nbik->nvk", self.jacobian, wrenches, optimize=True)

    # ------------------------------------------------------------------ judging models

    def predicted(self, model: Any) -> np.ndarray:
        """Return T^T tau (n, m) of a model."""
        flat = (-1,)
        n, count = len(self), len(self.bodies)
        wrench = model(
            self.twist.reshape(*flat, 6),
            self.rotation.reshape(*flat, 3, 3),
            self.down.reshape(*flat, 3),
            self.inputs.reshape(n * count, self.inputs.shape[-1]),
            position=self.position.reshape(*flat, 3),
        )
        return self.project(np.asarray(wrench).reshape(n, count, 6))

    def size(self) -> float:
        """Return the root mean square of the labels in the metric, N."""
        return _rms(self.whiten(self.labels))

    def error(self, model: Any) -> float:
        """Return the error of a model's T^T tau relative to the labels, in the metric."""
        return self.misfit(self.predicted(model))

    def misfit(self, forces: np.ndarray) -> float:
        """Return the same for forces (n, m)."""
        return _rms(self.whiten(forces - self.labels)) / self.size()


_ARRAYS = ("x", "v", "labels", "motion", "inputs")


def noisy(samples: Samples, share: float, seed: int = 0) -> Samples:
    """Return samples whose labels have noise of a share of their size in the metric."""
    rng = np.random.default_rng(seed)
    n, m = samples.labels.shape
    noise = np.einsum("nij,nj->ni", samples.factor, rng.normal(size=(n, m)))
    return replace(samples, labels=samples.labels + share * samples.size() / np.sqrt(m) * noise)


def joined(parts: Sequence[Samples]) -> Samples:
    """Return samples of one machine in one; motions of different parts count as different."""
    first, offset, motions = parts[0], 0, []
    for part in parts:
        if part.machine != first.machine or part.bodies != first.bodies:
            raise LearnError("samples to be joined must be of one machine and the same bodies")
        numbers = np.unique(part.motion, return_inverse=True)[1]
        motions.append(numbers + offset)
        offset += int(numbers.max(initial=-1)) + 1
    arrays: Mapping[str, np.ndarray] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in _ARRAYS
        if name != "motion"
    }
    return replace(first, **arrays, motion=np.concatenate(motions))


def check_enough(samples: Samples, numbers: int = 0) -> None:
    """Refuse samples that are too few for so many numbers, or that do not move."""
    n, m = samples.labels.shape
    if n < LEAST or n * m < 2 * numbers:
        raise LearnError(
            f"{n} samples of {m} forces are too few: {max(LEAST, -(-2 * numbers // m))} or more "
            f"are needed{f' for {numbers} numbers' if numbers else ''}"
        )
    moved = np.concatenate([samples.twist, samples.down, samples.inputs], axis=-1)
    spread = np.ptp(moved, axis=0).max(initial=0.0)
    if not spread > STILL * max(1.0, float(np.abs(moved).max(initial=0.0))):
        raise LearnError(
            "all samples are of one and the same motion (constant velocities and attitude): a "
            "model cannot be learned from them; record motions that change speed and direction"
        )
    if not samples.size() > 0:
        raise LearnError("the residual of the equations is zero in all samples: nothing to learn")


# ---------------------------------------------------------------------- kinematics


def kinematics(machine: Machine, bodies: Sequence[str]) -> Kernel:
    """Return (x, v) -> rotations, twists, Jacobians and places of bodies, row by row, compiled."""
    numeric = machine.numeric.tree
    state = Tree(numeric).at(ca.SX.sym("x", numeric.nx), ca.SX.sym("v", numeric.nv))
    index = numeric.body_index
    rotations = [ca.vec(ca.densify(ca.SX(state.poses[index[b]][:3, :3])).T) for b in bodies]
    twists = [state.twists[index[b]] for b in bodies]
    jacobians = [ca.vec(ca.densify(state.jacobian(b).value).T) for b in bodies]
    places = [state.poses[index[b]][:3, 3] for b in bodies]
    columns = (rotations, twists, jacobians, places)
    outputs = [ca.densify(ca.SX(ca.vertcat(*one))) for one in columns]
    names = ["rotation", "twist", "jacobian", "position"]
    function = ca.Function("kinematics", [state.x, state.v], outputs, ["x", "v"], names)
    return compile(function)


def gyration(machine: Machine, body: str) -> float:
    """Return sqrt(tr(I_c) / (2 m)), m: how far a body's mass lies from its center, rms."""
    moments = machine.numeric.body(body).moments
    mass = float(moments.total)
    if mass > 0:
        second = np.asarray(moments.second, float)
        center = np.asarray(moments.first, float) / mass
        square = float(np.trace(second) / mass - center @ center)
        if square > 0:
            return float(np.sqrt(square))
    return float(extent(machine.numeric))


def _wedge(r: np.ndarray) -> np.ndarray:
    return np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]], float)


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.sum(values**2, axis=1)))) if len(values) else float("nan")


def _check_finite(values: np.ndarray, what: str) -> None:
    if not np.isfinite(values).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
        raise LearnError(f"`{what}` is not a number in sample {place[0]}, entry {place[1:]}")
