"""Matrices of the user, looked at like our own: M and C as functions, or as casadi functions.

A function of x, or of x and v, in casadi operations is traced, and its rates are exact. One that
takes and gives numbers, NumPy arrays, is called state by state; rates of such an M are differences,
judged by a wider bar.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.certify.form import BAR, Form, form_at
from framefree.certify.laws import ROUNDING
from framefree.certify.report import Finding, Verdict
from framefree.certify.subject import Subject, evaluate, relative
from framefree.errors import FramefreeError
from framefree.machine.units import SINGULAR, definiteness

DIFFERENCED = 1e-7
"""Bar of what contains differences in the place of derivatives."""
STEP = 2e-3
"""Of differences, in natural units."""


@dataclass(frozen=True)
class OwnMatrix:
    """A matrix (nv, nv) of the user, as a function of x, or of x and v.

    Attributes
    ----------
    name : str
        Of the argument that it was given as.
    size : int
        nv.
    function : casadi.Function or None
        The traced function; None where only numbers can be put into it.
    call : callable
        What the user gave.
    """

    name: str
    size: int
    function: ca.Function | None
    call: Callable[..., Any]

    @classmethod
    def of(cls, name: str, given: Any, sizes: tuple[int, ...], size: int) -> "OwnMatrix":
        """Return a matrix from what was given: a function, a casadi.Function or numbers.

        Parameters
        ----------
        name : str
        given : callable, casadi.Function or (size, size) array
        sizes : tuple of int
            Of its arguments: (nx,) or (nx, nv).
        size : int
            nv.
        """
        arguments = "x" if len(sizes) == 1 else "x and v"
        if isinstance(given, ca.Function):
            wanted = [(k, 1) for k in sizes]
            have = [given.size_in(k) for k in range(given.n_in())]
            if have != wanted or given.n_out() < 1:
                raise FramefreeError(
                    f"`{name}` must be a casadi.Function of {arguments}, columns of "
                    f"{' and '.join(map(str, sizes))} numbers, to a matrix; its inputs have the "
                    f"shapes {have}"
                )
            return cls(name, size, _checked(name, given, sizes, size), given)
        if not callable(given):
            return cls._constant(name, given, sizes, size)
        return cls(name, size, _traced(name, given, sizes, size), given)

    @classmethod
    def _constant(cls, name: str, given: Any, sizes: tuple[int, ...], size: int) -> "OwnMatrix":
        try:
            value = np.array(given, float)
        except (TypeError, ValueError):
            value = np.zeros(0)
        if value.shape != (size, size) or not np.isfinite(value).all():
            raise FramefreeError(
                f"`{name}` must be a function, a casadi.Function or a matrix of {size} x {size} "
                f"finite numbers, got {type(given).__name__} of shape {np.shape(given)}"
            )
        symbols = [ca.SX.sym("x", k) for k in sizes]
        return cls(name, size, ca.Function(name, symbols, [ca.SX(ca.DM(value))]), lambda *_: value)

    @property
    def exact(self) -> bool:
        """Whether there are derivatives."""
        return self.function is not None

    def at(self, *states: np.ndarray) -> np.ndarray:
        """Return values (n, nv, nv) at states (n, nx), (n, nv)."""
        if self.function is not None:
            return evaluate(self.function, *states)[0]
        return np.array([self._one(*row) for row in zip(*states, strict=True)])

    def _one(self, *row: np.ndarray) -> np.ndarray:
        try:
            value = np.asarray(self.call(*row), float)
        except Exception as error:
            place = ", ".join(f"{number:.4g}" for number in row[0])
            raise FramefreeError(
                f"`{self.name}` has no value at x = ({place}): {type(error).__name__}: {error}"
            ) from error
        _check_shape(self.name, value.shape, self.size)
        return value


def _traced(name: str, call: Any, sizes: tuple[int, ...], size: int) -> ca.Function | None:
    """Return the function as casadi expressions; None where it takes numbers alone."""
    symbols = [ca.SX.sym(word, k) for word, k in zip("xv", sizes, strict=False)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's functions on symbols
            value = _matrix(call(*symbols))
        function = ca.Function(name, symbols, [ca.densify(value)])
    except Exception:  # whatever a function for NumPy arrays does with symbols
        return None
    _check_shape(name, value.shape, size)
    return function if _faithful(function, call, sizes) else None


def _faithful(function: ca.Function, call: Any, sizes: tuple[int, ...]) -> bool:
    """Whether a traced function has the values of the original, where that takes numbers.

    Some functions of numbers take a symbol, too, and make something else of it.
    """
    rng = np.random.default_rng(0)
    state = [rng.uniform(0.1, 0.9, k) for k in sizes]
    try:
        expected = np.array(ca.DM(_matrix(call(*state))).full())
    except Exception:  # it takes expressions alone
        return True
    return bool(np.allclose(function(*state).full(), expected, rtol=1e-9, atol=0.0))


def _matrix(value: Any) -> ca.SX:
    """Return expressions as a matrix: also nested lists, and arrays of expressions."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return ca.SX(ca.blockcat(value) if isinstance(value, list | tuple) else value)


def _checked(name: str, given: ca.Function, sizes: tuple[int, ...], size: int) -> ca.Function:
    _check_shape(name, given.size_out(0), size)
    symbols = [ca.SX.sym("s", k) for k in sizes]
    try:
        return ca.Function(name, symbols, [ca.densify(given.call(symbols)[0])])
    except RuntimeError:  # one that cannot be written out, such as a function with a solver in it
        return given


def _check_shape(name: str, shape: tuple[int, ...], size: int) -> None:
    if tuple(shape) != (size, size):
        raise FramefreeError(
            f"`{name}` must give a matrix of {size} x {size} numbers, one row for each velocity of "
            f"the machine, got the shape {tuple(shape)}"
        )


def own_matrices(
    subject: Subject, mass: OwnMatrix | None, coriolis: OwnMatrix | None
) -> Iterator[Finding]:
    """Give findings on M and C of the user, for bodies and added mass without other forces."""
    states = subject.open_states
    (M,) = evaluate(subject.bare.functions["mass"], states.x)
    if mass is not None:
        yield from _own_mass(subject, mass, M)
    if coriolis is None:
        return
    form = _own_form(subject, mass, coriolis, M)
    exact = mass is None or mass.exact
    for which, meaning, remedy in _PROPERTIES:
        residual = getattr(form, which)
        yield Finding.measured(
            f"own_{which}_residual",
            residual.value,
            BAR if exact or which == "bias" else DIFFERENCED,
            meaning,
            remedy,
            x=tuple(residual.x.tolist()),
        )


def _own_form(subject: Subject, mass: OwnMatrix | None, coriolis: OwnMatrix, M: np.ndarray) -> Form:
    states, units = subject.open_states, subject.units
    M_dot = _own_rate(subject, mass) if mass is not None else _rate(subject)
    C = coriolis.at(states.x, states.v)
    (bias,) = evaluate(subject.bare.functions["bias"], states.x, states.v)
    own = M if mass is None else mass.at(states.x)
    matrices = (own, M_dot, C, bias)
    return form_at("own", states.x, states.v, matrices, units.velocity, units.inertia)


def _own_mass(subject: Subject, mass: OwnMatrix, M: np.ndarray) -> Iterator[Finding]:
    states, of_mass = subject.open_states, subject.units.of_mass
    own = mass.at(states.x)
    gaps = np.abs(of_mass(own) - of_mass(M)).max(axis=(1, 2))
    worst = int(np.nan_to_num(gaps, nan=np.inf).argmax())
    row, column = divmod(int(np.abs(of_mass(own - M))[worst].argmax()), subject.open.nv)
    names = " and ".join(f"`{subject.open.v_names[k]}`" for k in (row, column))
    yield Finding.measured(
        "own_mass_residual",
        relative(of_mass(own), of_mass(M)),
        ROUNDING,
        "your M equals that of the machine",
        "compare bodies, frames and the order of velocities; `mass(x)` of the equations gives ours",
        note=f"largest between {names}" if gaps[worst] > 0 else "",
        x=tuple(states.x[worst].tolist()),
    )
    yield Finding.measured(
        "own_mass_symmetry_residual",
        relative(of_mass(own), of_mass(own.swapaxes(1, 2))),
        ROUNDING,
        "your M is symmetric",
        "see entries above and below the diagonal",
    )
    definite = [definiteness((one + one.T) / 2, subject.units.inertia) for one in own]
    least = int(np.argmin(definite))
    yield Finding(
        "own_mass_definiteness",
        Verdict.PASS if definite[least] > SINGULAR else Verdict.FAIL,
        "your M is positive definite: least eigenvalue of M with the diagonal that it could have",
        float(definite[least]),
        SINGULAR,
        remedy="a motion without energy, or a coordinate that loses rank, as Euler angles do",
        at_least=True,
        x=tuple(states.x[least].tolist()),
    )


def _rate(subject: Subject) -> np.ndarray:
    """Return dM/dt (n, nv, nv) of the machine."""
    machine = subject.open
    x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    return _chain_rule(subject, subject.bare.functions["mass"](x), x, v)


def _own_rate(subject: Subject, mass: OwnMatrix) -> np.ndarray:
    """Return dM/dt of the user's M: by the chain rule, or by differences of fourth order."""
    machine, states = subject.open, subject.open_states
    if mass.function is not None:
        x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
        return _chain_rule(subject, mass.function(x), x, v)
    h = STEP * subject.units.time

    def slope(step: float) -> np.ndarray:
        ahead, behind = (
            mass.at(machine.integrate(states.x, sign * step * states.v)) for sign in (1, -1)
        )
        return (ahead - behind) / (2 * step)

    return (4 * slope(h / 2) - slope(h)) / 3


def _chain_rule(subject: Subject, mass: ca.SX, x: ca.SX, v: ca.SX) -> np.ndarray:
    rate = ca.jtimes(ca.vec(ca.densify(mass)), x, subject.open.rate_matrix(x) @ v)
    function = ca.Function("rate", [x, v], [ca.densify(ca.reshape(rate, *mass.shape))])
    return evaluate(function, subject.open_states.x, subject.open_states.v)[0]


_PROPERTIES = (
    (
        "skew",
        "M_dot - 2C is skew-symmetric for your C",
        "do not use it in a Lyapunov function; `coriolis(x, v)` of the equations is skew",
    ),
    (
        "bias",
        "your C v is the velocity force",
        "a law that uses it compensates the wrong force; skew symmetry does not show this",
    ),
    ("weak", "v^T (M_dot - 2C) v = 0 for your C", "energy is not balanced"),
)
