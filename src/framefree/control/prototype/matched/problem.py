"""The matching problem in numbers without units: velocities of unit energy, times in 1/rate.

Of all prototypes on given pairs of frames, Mbar, Dbar and Kbar (n x n) are combinations of a basis
each. Matched are those whose closed loop eps'' = -A_D eps' - A_K eps, A_K = Mbar^-1 Kbar and
A_D = Mbar^-1 Dbar, differs from the machine's own by what inputs can do: rows B_perp^T of

    Delta = [A_K - K, A_D - D]

are zero. What is sought is the one that costs least, in the sense of linear-quadratic control,

    cost = trace P,    (A + alpha)^T P + P (A + alpha) + Delta^T Delta + 1 = 0

with A the closed loop: accelerations by the inputs count as much as errors of position and velocity
do, and everything decays faster than alpha.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from framefree.control.prototype.rest import RestDynamics

DECAY = 0.05
"""alpha, in units of the rate: little, for a descent that is not cut off from solutions."""
SPANNED = 1e-9
"""Share of the largest singular value below which a combination of parameters does nothing."""


@dataclass(frozen=True, eq=False)
class MatchingProblem:
    """A machine about rest, and what prototypes on the chosen pairs can be.

    Attributes
    ----------
    K, D : (n, n)
        Of the machine.
    B : (n, p)
        Orthonormal basis of the accelerations that inputs give.
    across : (n - p, n)
        Orthonormal rows that are zero on B.
    bases : three arrays (k, n, n)
        Orthonormal bases of what inertia, damping and stiffness can be.
    springs : (m, n, n)
        What one spring on each pair gives, of unit trace.
    root : (n, n)
        L with M = L L^T, of the machine's own units.
    rate : float
        1/s.
    """

    K: np.ndarray
    D: np.ndarray
    B: np.ndarray
    across: np.ndarray
    bases: tuple[np.ndarray, np.ndarray, np.ndarray]
    springs: np.ndarray
    root: np.ndarray
    rate: float

    @classmethod
    def of(
        cls, rest: RestDynamics, forms: Sequence[np.ndarray], springs: np.ndarray, rate: float
    ) -> "MatchingProblem":
        """Return the problem of a machine.

        `forms` are those (k, nv, nv) that parameters of inertia, damping and stiffness can give,
        `springs` (m, nv, nv) what one spring on each pair gives.
        """
        root = np.linalg.cholesky(rest.M)
        back = np.linalg.inv(root)
        B, _ = np.linalg.qr(back @ rest.reached)
        across = np.linalg.svd(B)[0][:, B.shape[1] :].T
        K, D = back @ rest.K @ back.T / rate**2, back @ rest.D @ back.T / rate
        M_basis, D_basis, K_basis = (_orthonormal(back @ own @ back.T) for own in forms)
        own = back @ springs @ back.T
        traces = np.trace(own, axis1=1, axis2=2)
        used = traces > SPANNED * traces.max(initial=0.0)
        own = own[used] / traces[used, None, None]
        return cls(K, D, B, across, (M_basis, D_basis, K_basis), own, root, rate)

    @property
    def n(self) -> int:
        """Number of velocities."""
        return len(self.K)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of parameters of inertia, damping and stiffness."""
        return tuple(len(basis) for basis in self.bases)

    def forms(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return Mbar, Dbar and Kbar (n, n) of parameters."""
        parts = np.split(theta, np.cumsum(self.sizes)[:-1])
        M, D, K = (np.tensordot(c, Q, 1) for c, Q in zip(parts, self.bases, strict=True))
        return M, D, K

    def parameters(self, *forms: np.ndarray) -> np.ndarray:
        """Return the parameters nearest to Mbar, Dbar and Kbar; also, the slopes by them."""
        return np.concatenate(
            [np.tensordot(Q, X, 2) for X, Q in zip(forms, self.bases, strict=True)]
        )

    def in_units(self, form: np.ndarray, power: int) -> np.ndarray:
        """Return a form in the machine's own units; stiffness has the power 2 of the rate."""
        return self.root @ form @ self.root.T * self.rate**power

    def gap(self, theta: np.ndarray) -> np.ndarray:
        """Return B_perp^T Delta (n - p, 2 n), zero where a prototype is matched."""
        M, D, K = self.forms(theta)
        return self.across @ (np.linalg.solve(M, np.hstack([K, D])) - self._own)

    def gap_slope(self, theta: np.ndarray) -> np.ndarray:
        """Return the slopes of `gap`, flattened, by the parameters."""
        M, D, K = self.forms(theta)
        N, A = self.across @ np.linalg.inv(M), np.linalg.solve(M, np.hstack([K, D]))
        none = np.zeros((len(self.across), self.n))
        of_inertia, of_damping, of_stiffness = self.bases
        columns = [(-N @ Q @ A).ravel() for Q in of_inertia]
        columns += [np.hstack([none, N @ Q]).ravel() for Q in of_damping]
        columns += [np.hstack([N @ Q, none]).ravel() for Q in of_stiffness]
        return np.array(columns).T

    @cached_property
    def _own(self) -> np.ndarray:
        return np.hstack([self.K, self.D])

    def closed_loop(self, A_K: np.ndarray, A_D: np.ndarray) -> np.ndarray:
        """Return the matrix (2 n, 2 n) of deviations and their rates."""
        n = self.n
        return np.block([[np.zeros((n, n)), np.eye(n)], [-A_K, -A_D]])

    def feedback(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return A_K and A_D of the feedback that costs least, matched or not; None for none."""
        n, p = self.n, self.B.shape[1]
        A = self.closed_loop(self.K, self.D) + DECAY * np.eye(2 * n)
        B = np.vstack([np.zeros((n, p)), self.B])
        try:
            P = scipy.linalg.solve_continuous_are(A, B, np.eye(2 * n), np.eye(p))
        except np.linalg.LinAlgError:
            return None
        F = self.B @ (B.T @ P)
        return self.K + F[:, :n], self.D + F[:, n:]

    def cost(self, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray] | None:
        """Return the cost and its slopes by A_K and A_D (n, n); None where alpha is not reached."""
        n = self.n
        M, D, K = self.forms(theta)
        A_K, A_D = np.split(np.linalg.solve(M, np.hstack([K, D])), 2, axis=1)
        A = self.closed_loop(A_K, A_D) + DECAY * np.eye(2 * n)
        T, U = scipy.linalg.schur(A)[:2]
        Y = _lyapunov(T, U, np.eye(2 * n), "N", "T")
        # Y is positive definite where A is stable, and there only.
        if not (np.isfinite(Y).all() and np.linalg.eigvalsh((Y + Y.T) / 2)[0] > 0):
            return None
        delta = np.hstack([A_K, A_D]) - self._own
        P = _lyapunov(T, U, delta.T @ delta + np.eye(2 * n), "T", "N")
        slope = 2 * (delta @ Y - (P @ Y)[n:])
        return float(np.trace(P)), slope[:, :n], slope[:, n:]


def _lyapunov(T: np.ndarray, U: np.ndarray, W: np.ndarray, left: str, right: str) -> np.ndarray:
    """Return X with op(A) X + X op'(A) + W = 0 of A = U T U^T."""
    (trsyl,) = scipy.linalg.get_lapack_funcs(("trsyl",), (T, W))
    X, scale, _ = trsyl(T, T, -U.T @ W @ U, trana=left, tranb=right)
    return U @ X @ U.T / scale


def _orthonormal(forms: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis (k, n, n) of what symmetric matrices (m, n, n) span."""
    flat = forms.reshape(len(forms), -1)
    _, sizes, rows = np.linalg.svd(flat, full_matrices=False)
    rank = int((sizes > SPANNED * sizes.max(initial=0.0)).sum())
    basis = rows[:rank].reshape(rank, *forms.shape[1:])
    return (basis + basis.transpose(0, 2, 1)) / 2
