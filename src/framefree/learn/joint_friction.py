"""Friction in the joints, learned from what the equations lack there.

At every joint velocity v the unknown force is

    y = -(damping v + friction s + friction_asymmetry s^2),      s = tanh(v / width)

as a joint of a machine has it (`framefree.machine.Joint`): viscous friction, and Coulomb friction
that is smooth through rest. A joint's velocity is the same in every frame, so nothing here depends
on one. For a given width the three others follow by linear least squares; the width is found by
variable projection [Golub1973]. Of all choices of terms the one with the least value of Bayes'
criterion is taken,

    n log(sum of squares / n) + k log n,

so that what is not needed is zero. Friction cannot drive a joint: damping and friction are not
negative, and the asymmetry is not larger than the friction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from framefree.learn.errors import LearnError
from framefree.learn.samples import LEAST, STILL, Samples
from framefree.machine import Free, Machine
from framefree.machine.part import set_field

TERMS = ("damping", "friction", "friction_asymmetry")
"""Terms that the force is linear in, by the names that a joint has for them."""
WIDTHS = (0.01, 3.0)
"""Widths that are searched, of the largest speed."""


class _Fit(NamedTuple):
    """Of one joint velocity: terms (3,), width, their deviations (4,), and what is left of y."""

    terms: np.ndarray
    width: float
    deviations: np.ndarray
    left: float


@dataclass(frozen=True, eq=False)
class JointFriction:
    """Learned friction of some joints with one velocity each.

    Parameters
    ----------
    joints : tuple of str
    numbers : (joints, 4)
        Damping (Nm s/rad or N s/m), friction and its asymmetry (Nm or N), width (rad/s or m/s).
    deviations : (joints, 4), optional
        Their standard deviations.
    left : (joints,), optional
        What the fit left of the samples, relative.
    """

    joints: tuple[str, ...]
    numbers: Any
    deviations: Any = None
    left: Any = None

    def __post_init__(self) -> None:
        set_field(self, "joints", tuple(self.joints))
        shape = (len(self.joints), 4)
        for name in ("numbers", "deviations"):
            if getattr(self, name) is None:
                continue
            values = np.array(getattr(self, name), float)
            if values.shape != shape or not np.isfinite(values).all():
                raise LearnError(f"`{name}` of joint friction must be {shape} finite numbers")
            set_field(self, name, values)
        if self.left is not None:
            set_field(self, "left", np.array(self.left, float))

    def forces(self, machine: Machine, v: Any) -> np.ndarray:
        """Return the friction (n, joints) that the model gives at velocities (n, nv)."""
        own = np.asarray(v, float)[:, [machine.v_slice[name].start for name in self.joints]]
        damping, friction, asymmetry, width = self.numbers.T
        s = np.tanh(own / width)
        return -(damping * own + friction * s + asymmetry * s**2)

    def added_to(self, machine: Machine, bodies: Sequence[str] | None = None) -> Machine:
        """Return the machine with this friction in its joints: laws made for it make up for it."""
        if bodies is not None:
            raise LearnError("friction acts in joints: it takes no `bodies`")
        table = dict(zip(self.joints, self.numbers, strict=True))
        for name in table:
            _one_velocity(machine, name)
        joints = [
            joint
            if joint.name not in table
            else replace(
                joint,
                **dict(zip(TERMS, table[joint.name][:3, None], strict=True)),
                friction_width=float(table[joint.name][3]),
            )
            for joint in machine.joints
        ]
        return replace(machine, joints=tuple(joints))

    def formula(self) -> str:
        """Return the friction as text, a line for every joint, with deviations where known."""

        def told(row: int, k: int) -> str:
            spread = 0.0 if self.deviations is None else self.deviations[row, k]
            return f"{self.numbers[row, k]:.4g}" + (f" ± {spread:.2g}" if spread else "")

        lines = []
        for i, name in enumerate(self.joints):
            damping, friction, asymmetry, _ = self.numbers[i]
            width = told(i, 3)
            terms = [f"({told(i, 0)}) v"] if damping else []
            terms += [f"({told(i, 1)}) tanh(v / ({width}))"] if friction else []
            terms += [f"({told(i, 2)}) tanh^2(v / ({width}))"] if asymmetry else []
            lines.append(f"{name}: force = -[{' + '.join(terms) or '0'}]")
        units = "force in Nm (N), v and widths in rad/s (m/s), factors of v in Nm s/rad (N s/m)"
        return "\n".join([*lines, units])

    def parts(self) -> dict[str, Any]:
        """Return what makes it again."""
        return {
            "kind": "JointFriction",
            "joints": list(self.joints),
            "numbers": self.numbers,
            "deviations": self.deviations,
            "left": self.left,
        }

    @classmethod
    def of_parts(cls, parts: Mapping[str, Any]) -> "JointFriction":
        """Return the friction that `parts` describes."""
        return cls(tuple(parts["joints"]), parts["numbers"], parts["deviations"], parts["left"])


def fit_friction(samples: Samples, joints: Sequence[str] | None = None) -> JointFriction:
    """Learn the friction of joints from samples.

    Parameters
    ----------
    samples : Samples
        Of a machine without loops, whose joints have no friction or damping of their own.
    joints : sequence of str, optional
        Joints with one velocity each; by default all such joints.

    Raises
    ------
    LearnError
        If there are too few samples, a joint does not move, or it has friction that is known.
    """
    machine = samples.machine
    if machine.closed:
        raise LearnError("friction is learned on machines without loops and couplings")
    if joints is None:
        joints = [one.name for one in machine.joints if one.nv == 1]
    if not joints:
        raise LearnError("there is no joint with one velocity to learn the friction of")
    if len(samples) < LEAST:
        raise LearnError(f"{len(samples)} samples are too few: {LEAST} or more are needed")
    fits = []
    for name in joints:
        place = _one_velocity(machine, name)
        v, y = samples.v[:, place], samples.labels[:, place]
        if not np.ptp(v) > STILL * max(1.0, float(np.abs(v).max())):
            raise LearnError(f"joint `{name}` moves at one speed only: its friction cannot be told")
        fits.append(_fitted(v, y))
    return JointFriction(
        tuple(joints),
        [[*fit.terms, fit.width] for fit in fits],
        [fit.deviations for fit in fits],
        [fit.left for fit in fits],
    )


def _one_velocity(machine: Machine, name: str) -> int:
    """Return the place of a joint's velocity; refuse joints that this friction is not for."""
    joint = machine.joint(name)
    if joint.nv != 1 or isinstance(joint.kind, Free):
        raise LearnError(f"joint `{name}` has {joint.nv} velocities: friction is learned of one")
    if joint.has_friction or np.any(joint.damping):
        raise LearnError(
            f"joint `{name}` has friction or damping that is known: set both to zero to learn them"
        )
    return machine.v_slice[name].start


# ---------------------------------------------------------------------- one joint


def _fitted(v: np.ndarray, y: np.ndarray) -> _Fit:
    """Return the terms that Bayes' criterion chooses, at the best width of each choice."""
    top, n = float(np.abs(v).max()), len(v)
    choices = []
    for count in range(len(TERMS) + 1):
        for kept in combinations(range(len(TERMS)), count):
            if 2 in kept and 1 not in kept:
                continue
            curved = 1 in kept
            width = _best_width(v, y, kept, top) if curved else top
            a, left = _solved(v, y, kept, width)
            square = max(float(left @ left), 1e-28 * float(y @ y), np.finfo(float).tiny)
            price = len(kept) + curved
            choices.append((n * np.log(square / n) + price * np.log(n), kept, width))
    _, kept, width = min(choices)
    a, left = _solved(v, y, kept, width)
    size = float(np.linalg.norm(y)) or 1.0
    return _Fit(a, width, _deviations(v, a, width, kept, left), float(np.linalg.norm(left)) / size)


def _columns(v: np.ndarray, width: float) -> np.ndarray:
    s = np.tanh(v / width)
    return -np.column_stack([v, s, s**2])


def _solved(
    v: np.ndarray, y: np.ndarray, kept: Sequence[int], width: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the terms (3,), possible ones, and what they leave of y."""
    from scipy.optimize import nnls

    a, A = np.zeros(3), _columns(v, width)
    if 2 in kept:
        # friction and asymmetry within |asymmetry| <= friction: forwards and backwards alone.
        forwards, backwards = (A[:, 1] + A[:, 2]) / 2, (A[:, 1] - A[:, 2]) / 2
        columns = [*([A[:, 0]] if 0 in kept else []), forwards, backwards]
        found = nnls(np.column_stack(columns), y)[0]
        a[0] = found[0] if 0 in kept else 0.0
        a[1], a[2] = (found[-2] + found[-1]) / 2, (found[-2] - found[-1]) / 2
    elif kept:
        a[list(kept)] = nnls(A[:, list(kept)], y)[0]
    return a, y - A @ a


def _best_width(v: np.ndarray, y: np.ndarray, kept: Sequence[int], top: float) -> float:
    """Return the width that leaves the least: a search on a grid, then between its neighbours."""
    from scipy.optimize import minimize_scalar

    def left(logarithm: float) -> float:
        return float(np.sum(_solved(v, y, kept, top * np.exp(logarithm))[1] ** 2))

    grid = np.linspace(np.log(WIDTHS[0]), np.log(WIDTHS[1]), 25)
    least = int(np.argmin([left(point) for point in grid]))
    ends = grid[max(least - 1, 0)], grid[min(least + 1, len(grid) - 1)]
    found = minimize_scalar(left, bounds=ends, method="bounded", options={"xatol": 1e-9})
    return top * float(np.exp(found["x"]))  # type: ignore[index]


def _deviations(
    v: np.ndarray, a: np.ndarray, width: float, kept: Sequence[int], left: np.ndarray
) -> np.ndarray:
    """Return standard deviations (4,) of terms and width, zero for what was not fitted."""
    columns = [_columns(v, width)[:, k] for k in kept]
    places = list(kept)
    if 1 in kept:
        step = 1e-6 * width
        slope = (_columns(v, width + step) - _columns(v, width - step)) @ a / (2 * step)
        columns.append(slope)
        places.append(3)
    result = np.zeros(4)
    if columns:
        J = np.column_stack(columns)
        sizes = np.linalg.norm(J, axis=0)
        sizes = np.where(sizes > 0, sizes, 1.0)
        inverse = np.linalg.pinv((J / sizes).T @ (J / sizes))
        variance = float(left @ left) / max(len(v) - len(places), 1)
        result[places] = np.sqrt(np.maximum(np.diag(inverse), 0.0) * variance) / sizes
    return result
