"""Coriolis matrices and coordinates side by side, with the properties that each one has.

M_dot = C + C^T            skew: what Lyapunov proofs use
C v = c                    right: a wrong matrix can be skew
v^T (M_dot - 2C) v = 0     weaker than skew; energy conservation gives it to every right C
d1 I <= M <= d2 I          bounded: Euler angles lose it at pitch 90 degrees, and every form
                           does where a joint that slides without limits changes M

Whether a number counts as zero does not depend on units: see `framefree.machine.units`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from framefree.certify.mass_search import unbounded_coordinates
from framefree.certify.report import Finding, Verdict
from framefree.certify.subject import evaluate, without_forces
from framefree.errors import FramefreeError
from framefree.machine import Machine
from framefree.machine.joints import Free, Spherical
from framefree.machine.units import Units, definiteness, linear_velocities
from framefree.motion.tree import Tree, coriolis
from framefree.motion.tree.euler import configuration, from_angles, velocity_map

BAR = 1e-11
DEFINITE = 1e-10
"""Least eigenvalue of M with unit diagonal that counts as different from zero."""
WORDS = {
    "skew": "Levi-Civita coefficients of the bodies",
    "kirchhoff": "Kirchhoff form",
    "adjoint": "plain adjoint form",
    "quasi": "quasi-coordinates (Boltzmann-Hamel)",
    "christoffel": "Christoffel symbols of plain coordinates",
    "euler": "roll, pitch and yaw",
    "printed": "as printed in [From2010], eq. (22)",
}


@dataclass(frozen=True)
class Residual:
    """The largest residual over all states, relative, and the state (x, v) that gave it."""

    value: float
    x: np.ndarray
    v: np.ndarray

    @property
    def holds(self) -> bool:
        """Whether nothing but rounding is left."""
        return self.value <= BAR


@dataclass(frozen=True)
class Form:
    """One Coriolis matrix, or one choice of coordinates, measured.

    Attributes
    ----------
    name : str
        One of `framefree.motion.tree.coriolis.NAMES`.
    skew, bias, weak : Residual
        Residuals of M_dot = C + C^T, C v = c and v^T (M_dot - 2C) v = 0, relative to M times a
        rate.
    smallest : float
        Smallest eigenvalue of M over the states.
    smallest_x : (nx,)
        Where M is nearest to singular; angles eta (nv) for "euler".
    definite : float
        How far M is from singular there, whatever its units.
    unbounded : tuple of str
        Coordinates without limits along which eigenvalues of M grow without bound, or vanish.
    """

    name: str
    skew: Residual
    bias: Residual
    weak: Residual
    smallest: float
    smallest_x: np.ndarray
    definite: float
    unbounded: tuple[str, ...]

    @property
    def bounded(self) -> bool:
        """Whether d1 I <= M <= d2 I with 0 < d1 <= d2 < infinity: `reason` tells why not."""
        return not self.reason

    @property
    def reason(self) -> str:
        """The reason why M is not bounded; empty where it is."""
        reasons = []
        if not self.definite > DEFINITE:
            reasons.append("M is singular")
        if self.unbounded:
            names = ", ".join(f"`{name}`" for name in self.unbounded)
            reasons.append(f"M has no bound along {names}, which has no limits")
        return "; ".join(reasons)

    @property
    def words(self) -> str:
        """The name of the matrix in words."""
        return WORDS[self.name]


def compare(
    machine: Machine, names: Sequence[str] = (), *, states: int = 200, seed: int = 0
) -> tuple[tuple[Form, ...], dict[str, str]]:
    """Measure the named forms (default all) at random states; also give why some do not apply.

    Base and ball joints are at pitch exactly 90 degrees in every third state, but for the residuals
    in Euler angles, which are not defined there.
    """
    bare = without_forces(machine.numeric.tree)
    rng = np.random.default_rng(seed)
    tree, units, forms, refused = Tree(bare), Units.of(bare), [], {}
    growing, vanishing = unbounded_coordinates(tree, units, units.random(bare, rng, 8))
    unbounded = tuple(dict.fromkeys((*growing, *vanishing)))
    for name in known(names):
        try:
            forms.append(replace(_measured(tree, units, name, states, rng), unbounded=unbounded))
        except FramefreeError as error:
            refused[name] = str(error)
    return tuple(forms), refused


def known(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names if all are those of forms; all forms for none, or for "all"."""
    if not names or "all" in names:
        return coriolis.NAMES
    for name in names:
        if name not in coriolis.NAMES:
            choices = ", ".join((*coriolis.NAMES, "all"))
            raise FramefreeError(f"there is no parametrisation `{name}`; choose from: {choices}")
    return tuple(names)


def attitudes_at_pitch_90(machine: Machine, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return configurations (n, nx) with every free or ball joint turned to pitch 90 degrees."""
    x = x.copy()
    for joint in machine.joints:
        if isinstance(joint.kind, Free | Spherical):
            place = machine.x_slice[joint.name]
            for row in x:
                roll, yaw = rng.uniform(-np.pi, np.pi, 2)
                turn = np.array(ca.DM(from_angles(ca.DM([roll, np.pi / 2, yaw])))).ravel()
                row[place.stop - 4 : place.stop] = turn
    return x


def _measured(tree: Tree, units: Units, name: str, count: int, rng: np.random.Generator) -> Form:
    machine = tree.machine
    v = rng.normal(size=(count, machine.nv))
    if name == "euler":
        eta = rng.uniform(-1.4, 1.4, (count, machine.nv))
        return _measured_euler(tree, units, eta * _angle_units(machine, units), v)
    x = units.random(machine, rng, count)
    x[::3] = attitudes_at_pitch_90(machine, x[::3], rng)
    xs, vs = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    mass = tree.functions["mass"](xs)
    rate = ca.jtimes(ca.vec(mass), xs, machine.rate_matrix(xs) @ vs)
    C = tree.functions[f"coriolis:{name}"](xs, vs)
    bias = tree.functions["bias"](xs, vs)
    outputs = [mass, ca.reshape(rate, *mass.shape), C, bias]
    return _form(name, [xs, vs], outputs, x, v * units.velocity, units.velocity, units.inertia)


def _angle_units(machine: Machine, units: Units) -> np.ndarray:
    """Return L for the Euler coordinates (nv,) that are lengths; they stand where velocities do."""
    return np.where(linear_velocities(machine), units.length, 1.0)


def _measured_euler(tree: Tree, units: Units, eta: np.ndarray, rate: np.ndarray) -> Form:
    """Measure the form in Euler angles; c from the Lagrange equations of the kinetic energy."""
    nv, D = tree.machine.nv, _angle_units(tree.machine, units)
    s, r = ca.SX.sym("eta", nv), ca.SX.sym("rate", nv)
    mass = tree.functions["mass:euler"](s)
    M_dot = ca.reshape(ca.jtimes(ca.vec(mass), s, r), nv, nv)
    bias = _lagrange_bias(tree.machine, mass, s, r)
    C = tree.functions["coriolis:euler"](s, r)
    form = _form("euler", [s, r], [mass, M_dot, C, bias], eta, rate * D, D, units.inertia)
    upright = _upright(tree.machine, eta[:1])
    if upright is None:
        return form
    (M,) = evaluate(tree.functions["mass:euler"], upright)
    smallest, definite = float(np.linalg.eigvalsh(M)[0, 0]), definiteness(M[0], units.inertia)
    if definite > form.definite:
        return form
    return replace(
        form,
        smallest=min(form.smallest, smallest),
        smallest_x=upright[0],
        definite=definite,
    )


def _lagrange_bias(machine: Machine, mass: ca.SX, s: ca.SX, r: ca.SX) -> ca.SX:
    """Return c of Lagrange's equations of the bodies, and of rotors, which resist dv/dt alone.

    With v = T r the force of rotors A is T^T A dv/dt; it does not follow from their energy in
    angles, as velocities of a ball joint are not rates of angles.
    """
    armature = np.concatenate([np.zeros(0), *(joint.armature for joint in machine.joints)])
    A, T = ca.DM(np.diag(armature)), velocity_map(machine, s)
    bodies = mass - T.T @ A @ T
    momentum_rate = ca.jtimes(bodies @ r, s, r)
    rotors = T.T @ (A @ ca.jtimes(T @ r, s, r))
    return momentum_rate - ca.gradient(r.T @ bodies @ r, s) / 2 + rotors


def _upright(machine: Machine, eta: np.ndarray) -> np.ndarray | None:
    """Return angles with pitch 90 degrees; None for a machine without such an angle."""
    pitching = [joint for joint in machine.joints if isinstance(joint.kind, Free | Spherical)]
    eta = eta.copy()
    for joint in pitching:
        eta[:, machine.v_slice[joint.name].stop - 2] = np.pi / 2
    return eta if pitching else None


def _form(
    name: str,
    symbols: list[ca.SX],
    outputs: list[ca.SX],
    x: np.ndarray,
    v: np.ndarray,
    D: np.ndarray,
    inertia: np.ndarray,
) -> Form:
    """Return a form with its residuals; D (nv,) holds the natural units of the velocities."""
    function = ca.Function("form", symbols, [ca.densify(one) for one in outputs])
    M, M_dot, C, bias = evaluate(function, x, v)
    M_nat, M_dot, C = (D[:, None] * matrix * D for matrix in (M, M_dot, C))
    bias, rates = D * bias[..., 0], v / D
    scale = _largest(C) + _largest(M_nat) * _largest(rates)
    skew = M_dot - C - C.swapaxes(1, 2)
    wrong = np.einsum("nij,nj->ni", C, rates) - bias
    weak = np.einsum("ni,nij,nj->n", rates, M_dot - 2 * C, rates)
    sizes = (scale, scale * _largest(rates), scale * _largest(rates) ** 2)
    residuals: list[Residual] = []
    for gap, size in zip((skew, wrong, weak[:, None]), sizes, strict=True):
        values = _largest(gap) / size
        worst = int(values.argmax())
        residuals.append(Residual(float(values[worst]), x[worst], v[worst]))
    definite = np.array([definiteness(one, inertia) for one in M])
    least = int(definite.argmin())
    smallest = float(np.linalg.eigvalsh(M)[:, 0].min())
    one, two, three = residuals
    return Form(name, one, two, three, smallest, x[least], float(definite[least]), ())


def _largest(values: np.ndarray) -> np.ndarray:
    """Return the largest entry of each state (n,); infinite where one is not finite."""
    flat = np.abs(values.reshape(len(values), -1))
    return np.where(np.isfinite(flat), flat, np.inf).max(axis=1, initial=1e-300)


def findings(machine: Machine, names: Sequence[str] = (), **options: int) -> Iterator[Finding]:
    """Give the comparison as findings; what other forms lose is a warning, not a failure."""
    forms, refused = compare(machine, names, **options)
    for form in forms:
        for which, meaning, remedy in _PROPERTIES:
            residual: Residual = getattr(form, which)
            yield Finding(
                f"{form.name}_{which}_residual",
                Verdict.PASS if residual.holds else Verdict.WARN,
                f"{form.words}: {meaning}",
                residual.value,
                BAR,
                remedy=remedy,
                x=tuple(residual.x.tolist()),
            )
        yield Finding(
            f"{form.name}_mass_eigenvalue_min",
            Verdict.PASS if form.bounded else Verdict.WARN,
            f"{form.words}: smallest eigenvalue of M, and d1 I <= M <= d2 I at every configuration",
            form.smallest,
            0.0,
            note=form.reason,
            remedy="where coordinates lose rank, as Euler angles do at pitch 90 degrees, use the "
            "form on the group; where a joint slides without end, give it limits",
            at_least=True,
            x=tuple(form.smallest_x.tolist()),
        )
    for name, reason in refused.items():
        yield Finding.skipped(f"{name}_skew_residual", WORDS[name], reason)


_PROPERTIES = (
    ("skew", "M_dot - 2C is skew-symmetric", "do not use it in a Lyapunov function"),
    ("bias", "C v is the velocity force", "a law that uses it compensates the wrong force"),
    ("weak", "v^T (M_dot - 2C) v = 0", "energy is not balanced"),
)


def eigenvalues_through_pitch_90(
    machine: Machine, x: np.ndarray | None = None, count: int = 361
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return pitch angles (count,) from -180 to 180 degrees and eigenvalues of M on the way.

    The first free joint, or ball joint, pitches. Eigenvalues (count, nv) are those of the form on
    the group, and those in Euler angles.
    """
    joints = [j for j in machine.joints if isinstance(j.kind, Free | Spherical)]
    if not joints:
        raise FramefreeError(f"`{machine.name}` has no free or ball joint that could pitch")
    bare = without_forces(machine.numeric.tree)
    tree = Tree(bare)
    pitch = np.linspace(-np.pi, np.pi, count)
    eta = np.zeros((count, machine.nv))
    if x is not None:
        for joint in bare.joints:
            if joint.kind.vector:
                eta[:, bare.v_slice[joint.name]] = x[bare.x_slice[joint.name]]
    eta[:, bare.v_slice[joints[0].name].stop - 2] = pitch
    s = ca.SX.sym("eta", machine.nv)
    mass = tree.functions["mass"](configuration(bare, s))
    on_group, in_angles = evaluate(
        ca.Function("masses", [s], [ca.densify(mass), tree.functions["mass:euler"](s)]), eta
    )
    return np.rad2deg(pitch), np.linalg.eigvalsh(on_group), np.linalg.eigvalsh(in_angles)
