"""Which unknown numbers are whole bodies, not negative, or bounded by others."""

import numpy as np

from framefree.identify.possible import Bounds
from framefree.identify.rows import UnknownModel
from framefree.machine.paths import leaves
from framefree.motion.regressor import PAIRS


def bounds_of(model: UnknownModel) -> Bounds:
    """Return which unknown numbers are whole bodies, not negative, or bounded by others."""
    found = leaves(model.machine.numeric, model.names)
    bodies: dict[tuple, dict[int, int]] = {}
    positive, within = [], []
    friction = {(leaf.owner, leaf.key[1]): k for k, leaf in enumerate(found)
                if leaf.key[0] == "friction"}  # fmt: skip
    for k, leaf in enumerate(found):
        if leaf.owner[0] == "bodies" and leaf.key[0] == "moments":
            number = _number(leaf.key)
            if number is not None:
                bodies.setdefault(leaf.owner, {})[number] = k
        elif leaf.key[0] in ("armature", "damping", "friction") and leaf.owner[0] == "joints":
            positive.append(k)
        elif leaf.key[0] == "friction_asymmetry":
            joint = model.machine.numeric.joint(leaf.owner[1])
            limit = friction.get((leaf.owner, leaf.key[1]), float(joint.friction[leaf.key[1]]))
            within.append((k, limit))
        elif leaf.owner == ("fluid",) and leaf.key[1:2] in (("linear_drag",), ("quadratic_drag",)):
            positive += [k] if leaf.key[2][0] == leaf.key[2][1] else []
    whole = tuple(
        np.array([one[i] for i in range(10)]) for one in bodies.values() if len(one) == 10
    )
    return Bounds(whole, tuple(positive), tuple(within))


def _number(key: tuple) -> int | None:
    if key[1] == "total":
        return 0
    if key[1] == "first":
        return 1 + key[2]
    return 4 + PAIRS.index(key[2]) if key[1] == "second" else None
