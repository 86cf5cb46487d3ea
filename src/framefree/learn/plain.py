"""Plain networks, for comparison: they know nothing of frames or symmetries.

- `WorldNetwork` sees a body as the world does, R_b, R_b v and R_b w, and gives its wrench in world
  axes. It is shared by all bodies, but what it learns at one heading says nothing of another.
- `JointNetwork` maps joint coordinates and velocities (x, v) to T^T tau at once. It belongs to one
  machine: neither another heading nor another number of bodies is anything it knows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.learn.errors import LearnError
from framefree.learn.learning import LOW, whitened_maps
from framefree.learn.model import BodyMotion, WrenchModel
from framefree.learn.samples import Samples, check_enough
from framefree.learn.training import Lesson, Trained, Training, network_values, train

Matrix = Any
Layers = tuple[tuple[np.ndarray, np.ndarray], ...]


@dataclass(frozen=True, eq=False)
class WorldNetwork(WrenchModel):
    """A network from world axes to world axes.

    Parameters
    ----------
    layers : tuple of (W, b)
    means, widths : (15,)
        By which its inputs are shifted and divided.
    scale : (6,)
        N and Nm, by which its outputs are multiplied.
    """

    layers: Layers
    means: Any
    widths: Any
    scale: Any

    names = ()
    units = ()
    linear = ()
    coefficients = np.zeros(0)

    def wrench(self, motion: BodyMotion, numbers: Matrix | None = None) -> Matrix:
        """Return the wrench (6) in body axes."""
        R = motion.rotation
        z = ca.vertcat(ca.vec(R.T), R @ motion.twist[:3], R @ motion.twist[3:])
        h = (z - ca.DM(self.means)) / ca.DM(self.widths)
        for k, (W, b) in enumerate(self.layers):
            h = ca.DM(W) @ h + ca.DM(b)
            h = ca.tanh(h) if k + 1 < len(self.layers) else h
        h = h * ca.DM(self.scale)
        return ca.vertcat(R.T @ h[:3], R.T @ h[3:])

    def turned(self, R: Any) -> "WorldNetwork":
        """Return itself: it has no way to turn along."""
        return self

    def with_coefficients(self, values: Any) -> "WorldNetwork":
        """Return itself: it has no adjustable numbers."""
        if np.size(values):
            raise LearnError("a plain network has no adjustable numbers")
        return self

    def parts(self) -> dict[str, Any]:
        """Return what makes it again."""
        arrays = {f"W{k}": W for k, (W, _) in enumerate(self.layers)}
        arrays |= {f"b{k}": b for k, (_, b) in enumerate(self.layers)}
        plain = {name: np.asarray(getattr(self, name)) for name in ("means", "widths", "scale")}
        return {"kind": "WorldNetwork", **plain, **arrays}

    @classmethod
    def of_parts(cls, parts: Mapping[str, Any]) -> "WorldNetwork":
        """Return the network that `parts` describes."""
        count = sum(1 for key in parts if key.startswith("W"))
        layers = tuple((parts[f"W{k}"], parts[f"b{k}"]) for k in range(count))
        return cls(layers, parts["means"], parts["widths"], parts["scale"])


def learn_world_network(samples: Samples, training: Training) -> tuple[WorldNetwork, Trained]:
    """Train a plain network in world axes."""
    check_enough(samples)
    parts = samples.split(training.held, training.seed)
    scale = _wrench_scale(samples)
    inputs = [_world_inputs(part) for part in parts]
    means, widths = _standard(inputs[0])
    lessons = []
    for part, own in zip(parts, inputs, strict=True):
        back = np.zeros((len(part), len(part.bodies), 6, 6))
        back[..., :3, :3] = back[..., 3:, 3:] = part.rotation.swapaxes(-1, -2)
        maps = whitened_maps(part, back * scale)
        lessons.append(Lesson((own - means) / widths, maps, part.whiten(part.labels)))
    trained = train(lessons[0], lessons[1], training)
    return WorldNetwork(trained.layers, means, widths, scale), trained


@dataclass(frozen=True, eq=False)
class JointNetwork:
    """A network from (x, v) of one machine to T^T tau.

    Parameters
    ----------
    layers : tuple of (W, b)
    means, widths : (nx + nv,)
    scale : float
    """

    layers: Layers
    means: np.ndarray
    widths: np.ndarray
    scale: float

    def predicted(self, samples: Samples) -> np.ndarray:
        """Return T^T tau (n, m) at samples of its machine."""
        inputs = np.hstack([samples.x, samples.v])
        if inputs.shape[1] != len(self.means):
            raise LearnError(
                f"the network was trained on a machine with {len(self.means)} coordinates and "
                f"velocities, got {inputs.shape[1]}"
            )
        values = network_values(self.layers, (inputs - self.means) / self.widths, np.tanh)
        return self.scale * values


def learn_joint_network(samples: Samples, training: Training) -> tuple[JointNetwork, Trained]:
    """Train a plain network in joint coordinates."""
    check_enough(samples)
    parts = samples.split(training.held, training.seed)
    inputs = [np.hstack([part.x, part.v])[:, None] for part in parts]
    means, widths = _standard(inputs[0])
    scale = float(np.sqrt(np.mean(samples.labels**2)))
    lessons = []
    for part, own in zip(parts, inputs, strict=True):
        n, m = part.labels.shape
        maps = part.whiten(np.broadcast_to(scale * np.eye(m), (n, m, m)))
        lessons.append(Lesson((own - means) / widths, maps[:, :, None], part.whiten(part.labels)))
    trained = train(lessons[0], lessons[1], training)
    return JointNetwork(trained.layers, means, widths, scale), trained


def _world_inputs(samples: Samples) -> np.ndarray:
    n, count = samples.twist.shape[:2]
    R, xi = samples.rotation, samples.twist
    turned = [np.einsum("nbij,nbj->nbi", R, xi[..., part]) for part in (slice(3), slice(3, 6))]
    return np.concatenate([R.reshape(n, count, 9), *turned], axis=-1)


def _standard(inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    flat = inputs.reshape(-1, inputs.shape[-1])
    return flat.mean(axis=0), np.maximum(flat.std(axis=0), LOW)


def _wrench_scale(samples: Samples) -> np.ndarray:
    force = samples.size() / np.sqrt(len(samples.bodies))
    return force * np.r_[np.ones(3), np.full(3, float(np.mean(samples.lengths)))]
