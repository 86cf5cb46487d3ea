"""What the vehicles with arms have in common: residuals of their matrices, jumps of commands."""

from typing import Any

import numpy as np

from framefree.certify.forms import compare
from framefree.gallery.shared.scenario import Promise
from framefree.machine import Machine

STATES = 200
FORMS = ("skew", "kirchhoff", "adjoint", "printed")


def residuals(machine: Machine) -> dict[str, float]:
    """Return residuals of the Coriolis matrices at random states, a third at pitch 90 degrees.

    `skew_residual` and `bias_residual` are the larger of the two skew forms: of dM/dt = C + C^T and
    of C v = c, relative.
    """
    forms = {form.name: form for form in compare(machine, FORMS, states=STATES)[0]}
    good = [forms["skew"], forms["kirchhoff"]]
    return {
        "skew_residual": max(form.skew.value for form in good),
        "bias_residual": max(form.bias.value for form in good),
        "adjoint_skew_residual": forms["adjoint"].skew.value,
        "adjoint_bias_residual": forms["adjoint"].bias.value,
        "printed_skew_residual": forms["printed"].skew.value,
        "printed_bias_residual": forms["printed"].bias.value,
    }


def residual_promises(m: dict[str, Any]) -> tuple[Promise, ...]:
    """Return a promise for every verdict."""
    bar = 1e-11
    return (
        Promise("dM/dt - 2C is skew-symmetric for both skew forms", m["skew_residual"], bar),
        Promise("C v is the bias for both of them", m["bias_residual"], bar),
        Promise("C v is the bias for the plain adjoint form", m["adjoint_bias_residual"], bar),
        Promise.at_least("but that form is not skew", m["adjoint_skew_residual"], 1e-3),
        Promise("the form as printed is skew", m["printed_skew_residual"], bar),
        Promise.at_least("but its C v is not the bias", m["printed_bias_residual"], 1e-3),
    )


def largest_jump(u: Any) -> float:
    """Return by how much a change of a command exceeds those just before and after it.

        max_k |u[k+1] - u[k]| / max(|u[k] - u[k-1]|, |u[k+2] - u[k+1]|)

    About 1 for what is continuous, however steep; where something jumps, the larger the shorter the
    steps are. Changes of a millionth of a command's range are not looked at.

    Parameters
    ----------
    u : (n, nu)
    """
    u = np.asarray(u, float)
    change = np.abs(np.diff(u, axis=0))
    around = np.maximum(change[:-2], change[2:])
    return float((change[1:-1] / (around + 1e-6 * np.ptp(u, axis=0) + 1e-300)).max())


def frame_distance(pose: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the distance (n,) between the origins of poses (n, 4, 4), m."""
    return np.linalg.norm(pose[..., :3, 3] - wanted[..., :3, 3], axis=-1)
