"""What inputs reach of a machine about rest, and velocities that are left as they are."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.linalg

from framefree.control.law import ControlError
from framefree.control.prototype.matched.existence import NoPrototypeError
from framefree.control.prototype.rest import RestDynamics

UNREACHED = 1e-8
"""Share of the size of A below which inputs do not reach a direction of the state."""
NEUTRAL = 1e-6
"""Size of an eigenvalue, in units of the rate, that counts as zero."""


def without(rest: RestDynamics, kept: np.ndarray, left: np.ndarray) -> RestDynamics:
    """Return the dynamics of some of the velocities, where the others have no force on them."""
    square = np.ix_(kept, kept)
    M = rest.M[square]
    if len(left):
        M = M - rest.M[np.ix_(kept, left)] @ carried_along(rest, kept, left)
    return replace(rest, M=M, D=rest.D[square], K=rest.K[square], B=rest.B[kept])


def carried_along(rest: RestDynamics, kept: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Return M_ll^-1 M_lk: minus how what is left is carried along by the others."""
    return np.linalg.solve(rest.M[np.ix_(left, left)], rest.M[np.ix_(left, kept)])


def left_velocities(rest: RestDynamics, leave: Sequence[str]) -> np.ndarray:
    """Return the places of velocities to be left, on which neither inputs nor forces may act."""
    names, scale = rest.machine.v_names, np.sqrt(np.diag(rest.M))
    unknown = [name for name in leave if name not in names]
    if unknown:
        raise ControlError(
            f"`leave` names `{unknown[0]}`, which is no velocity of `{rest.machine.name}`; it has "
            + ", ".join(f"`{name}`" for name in names)
        )
    D, K = (np.abs(X) / np.outer(scale, scale) for X in (rest.D, rest.K))
    B = np.abs(rest.B) / scale[:, None]
    held = (D + K + D.T + K.T).max(axis=1) / max(1.0, float(K.max()), float(D.max()))
    pushed = np.maximum(held, B.max(axis=1) / float(B.max()))
    left = np.array(sorted(names.index(name) for name in leave), int)
    for k in left:
        if pushed[k] > UNREACHED:
            raise ControlError(f"`{names[k]}` cannot be left as it is: forces act on it")
    return left


def check_reach(rest: RestDynamics, left: np.ndarray, rate: float) -> None:
    """Refuse motions that no input reaches and that do not come to rest by themselves."""
    kept = np.setdiff1d(np.arange(len(rest.M)), left)
    seen = without(rest, kept, left)
    n, back = len(kept), np.linalg.inv(np.linalg.cholesky(seen.M))
    K, D = back @ seen.K @ back.T / rate**2, back @ seen.D @ back.T / rate
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-K, -D]])
    B = np.vstack([np.zeros((n, seen.reached.shape[1])), np.linalg.qr(back @ seen.reached)[0]])
    unreached = scipy.linalg.null_space(_krylov(A, B).T)
    if not unreached.shape[1]:
        return
    values, vectors = np.linalg.eig((unreached.T @ A @ unreached).T)
    for value, vector in zip(values, vectors.T, strict=True):
        if value.real >= -NEUTRAL:
            sizes = np.maximum(*(np.abs(back.T @ part) for part in np.split(unreached @ vector, 2)))
            names = [rest.machine.v_names[k] for k in kept[sizes > sizes.max() / 3]]
            raise NoPrototypeError(_unreached_words(rest, rate * complex(value), rate, names))


def _krylov(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of all that inputs reach: the columns of B, A B, A A B, ..."""
    size = UNREACHED * max(1.0, float(np.linalg.norm(A, 2)))
    basis = block = scipy.linalg.orth(B)
    while block.shape[1]:
        block = A @ block
        for _ in range(2):
            block = block - basis @ (basis.T @ block)
        U, sizes, _ = np.linalg.svd(block, full_matrices=False)
        block = U[:, sizes > size]
        basis = np.hstack([basis, block])
    return basis


def _unreached_words(rest: RestDynamics, value: complex, rate: float, names: Sequence[str]) -> str:
    motion = ", ".join(f"`{name}`" for name in names)
    words = (
        f"`{rest.machine.name}` has no prototype that brings it to rest: no input reaches the "
        f"motion of {motion}"
    )
    if abs(value) < NEUTRAL * rate:
        return (
            f"{words}, which nothing holds; an actuator or a spring there would, or `leave` it "
            "as it is"
        )
    imag = abs(value.imag)
    real = value.real if abs(value.real) > NEUTRAL * abs(value) else 0.0
    written = f"{real:.3g} +- {imag:.3g}i" if imag > 1e-6 * abs(value) else f"{real:.3g}"
    return f"{words} with the eigenvalue {written} 1/s; an actuator there, or friction, would help"
