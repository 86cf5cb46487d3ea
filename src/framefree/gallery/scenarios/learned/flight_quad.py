"""A simulated quadcopter in air that its law does not know, and what it learns from one flight.

The air drags each propeller across its axis where it is, over the middle of the craft, and the hull
by the square of the speed; and a constant wrench acts in body axes (propellers that differ, a load
off the middle):

    f_k = -c (u_k - (u_k . z) z),  u_k = v + w x r_k,      f = -k |v| v - c_z (v . z) z,      bias

None of this depends on a heading. Drag has the fourfold symmetry of the craft, the bias has none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.prototype import PrototypeControl
from framefree.control.prototype.lean import Lean
from framefree.control.references.base import Reference
from framefree.control.references.flat import FlatReference
from framefree.control.references.flat_curves import Curve
from framefree.gallery.machines import multicopters
from framefree.geometry import Moments, batch, quaternion
from framefree.identify import Recording
from framefree.learn import (
    C4,
    BodyMotion,
    LearnedModel,
    PolynomialLibrary,
    Samples,
    Training,
    TrimmedLibrary,
    Trivial,
    WrenchModel,
    fit_basis,
)
from framefree.learn.library import smooth_length
from framefree.learn.measured import measured_samples
from framefree.learn.plain import learn_world_network
from framefree.learn.samples import gyration
from framefree.machine import Machine
from framefree.motion import equations
from framefree.simulate import Run, simulate
from framefree.simulate.measures import rms

ROTOR, HULL, ALONG, HEIGHT = 0.10, 0.12, 0.20, 0.04
"""N s/m of a propeller, N s^2/m^2 of the hull, N s/m along z, and m of the propellers above."""
BIAS = (0.25, -0.15, -0.30, 0.04, -0.03, 0.01)
"""N and Nm, in body axes."""
GAINS: dict[str, Any] = {
    "inertia": {"body": Moments.of(1.001, (0, 0, 0.043), np.diag([0.0095, 0.0095, 0.0307]))},
    "damping": {"body": Moments.of(4.4, (0, 0, 0.255), np.diag([0.4, 0.4, 0.1]))},
    "stiffness": {"body": Moments.of(8.0, (0, 0, 0.255), np.diag([2.6, 2.6, 0.2]))},
}
"""Of the prototype: those of the recorded flights [Konz2024, ch. 5]."""
DURATION, PERIOD = 12.0, 0.005
"""s, of a flight and of control."""
SETTLED = 2.0
"""s, from which on errors count."""
PLACE, ANGLE = 2e-4, 1e-3
"""Noise of recorded positions (m) and angles (rad)."""
WINDOW, EVERY = 0.2, 10
"""Local polynomials, s, and rows from sample to sample."""
HEADINGS = (0.0, 45.0, 90.0, 200.0)
"""Degree, of the flights that judge; it learns at the first."""

Matrix = Any


@dataclass(frozen=True, eq=False)
class TrueAir(WrenchModel):
    """The air as the plant feels it."""

    names = ()
    units = ()
    linear = ()
    coefficients = np.zeros(0)

    def wrench(self, motion: BodyMotion, numbers: Matrix | None = None) -> Matrix:
        """Return the wrench (6) on the body."""
        v, w = motion.twist[:3], motion.twist[3:]
        total = ca.SX(ca.DM(BIAS))
        for angle in multicopters.QUADCOPTER_AZIMUTHS:
            r = ca.DM([multicopters.ARM * np.cos(angle), multicopters.ARM * np.sin(angle), HEIGHT])
            u = v + ca.cross(w, r)
            f = -ROTOR * ca.vertcat(u[:2], 0)
            total = total + ca.vertcat(f, ca.cross(r, f))
        hull = -HULL * smooth_length(v) * v - ALONG * ca.vertcat(0, 0, v[2])
        return total + ca.vertcat(hull, ca.SX(3, 1))

    def turned(self, R: Any) -> "TrueAir":
        """Return itself: nothing of it is fixed in the world."""
        return self

    def with_coefficients(self, values: Any) -> "TrueAir":
        """Return itself."""
        return self

    def parts(self) -> dict[str, Any]:
        """Return its kind."""
        return {"kind": "TrueAir"}

    @classmethod
    def of_parts(cls, parts: Mapping[str, Any]) -> "TrueAir":
        """Return the air."""
        return cls()


@dataclass(frozen=True)
class Weave(Curve):
    """A path in one vertical plane: forwards and back, up and down, faster and slower.

    Parameters
    ----------
    direction : float
        Of forwards, rad from the world's x.
    phase : float
        rad; flights that judge have another than the one that teaches.
    """

    direction: float = 0.0
    phase: float = 0.0

    def at(self, t: Matrix) -> Matrix:
        """Return the position (3) at time t."""
        forward = 0.9 * ca.sin(1.6 * t + self.phase) + 0.3 * ca.sin(2.9 * t + 2 * self.phase)
        up = 1.0 + 0.25 * ca.sin(2.1 * t + 1 + self.phase)
        return ca.vertcat(np.cos(self.direction) * forward, np.sin(self.direction) * forward, up)


@dataclass(frozen=True)
class LeaningReference(Reference):
    """A reference whose attitude leans against what a machine knows and no input can match.

    `Lean` says how far at every moment; rates and accelerations are those of the leaning attitude.

    Parameters
    ----------
    reference : FlatReference
    machine : Machine
        The law's.
    """

    reference: FlatReference
    machine: Machine

    def at(self, t: Matrix) -> dict[str, Matrix]:
        """Return "x", "v" and "a" of the free joint."""
        return dict(zip("xva", self.function(t), strict=True))

    @cached_property
    def function(self) -> ca.Function:
        """From t to x, v and a."""
        t = ca.SX.sym("t")
        lean = Lean(equations(self.machine, "tree"))
        x = lean(self.reference.at(t), ca.SX(self.machine.nv, 1))["x"]
        r, wxyz = x[:3], x[3:7]
        turning = 2 * quaternion.product(quaternion.conjugate(wxyz), ca.jacobian(wxyz, t))[1:4]
        moving = quaternion.to_rotation(wxyz).T @ ca.jacobian(r, t)
        v = ca.vertcat(moving, turning)
        return ca.Function("leaning", [t], [x, v, ca.jacobian(v, t)])


def craft() -> Machine:
    """Return what the law knows: the quadcopter without air."""
    return multicopters.quadcopter(drag=False)


def fly(
    model: WrenchModel | None,
    heading: float,
    direction: float,
    phase: float,
    progress: bool | None = None,
) -> Run:
    """Fly in the true air, with a model of it or none; angles in rad."""
    machine = craft()
    known = machine if model is None else model.added_to(machine)
    path = FlatReference(machine, Weave(direction, phase), heading)
    reference = LeaningReference(path, known)
    x, v = (np.array(one).ravel() for one in path.function(0.0)[:2])
    return simulate(
        TrueAir().added_to(machine),
        PrototypeControl(known, **GAINS),
        reference,
        x,
        v,
        duration=DURATION,
        dt=PERIOD / 5,
        control_dt=PERIOD,
        progress=progress,
    )


def path_error(run: Run, direction: float, phase: float) -> np.ndarray:
    """Return distances (rows,) of the center of mass from its path, m."""
    machine = run.machine
    assert machine is not None
    center = np.asarray(machine.bodies[0].moments.center, float)
    there = run.x[:, :3] + batch.rotation(run.x[:, 3:7]) @ center
    t = ca.SX.sym("t")
    path = ca.Function("path", [t], [Weave(direction, phase).at(t)])
    wanted = np.array(path.map(len(run.t))(run.t[None])).T
    return np.linalg.norm(there - wanted, axis=1)


def settled_error(run: Run, distance: np.ndarray) -> float:
    """Return the root mean square of distances (rows,) once settled, m."""
    return rms(distance[run.t > SETTLED])


@dataclass(frozen=True)
class AirLessons:
    """What is learned from one flight at heading 0, forwards and back along x.

    Parameters
    ----------
    seed : int
        Of noise and of networks.
    progress : bool or None
    """

    seed: int = 0
    progress: bool | None = None

    @cached_property
    def samples(self) -> Samples:
        """The flight as it would be recorded: poses with noise, and thrusts."""
        machine, rng = craft(), np.random.default_rng(self.seed)
        run = fly(None, 0.0, 0.0, 0.0, self.progress)
        noise = rng.normal(size=(len(run.t), 6)) * np.repeat([PLACE, ANGLE], 3)
        recording = Recording(run.t, machine.integrate(run.x, noise), u=run.u)
        return measured_samples(machine, [recording], window=WINDOW, every=EVERY)

    @property
    def length(self) -> float:
        """Radius of gyration of the craft, m."""
        return gyration(craft(), "body")

    def basis(self, *, symmetric: bool) -> LearnedModel:
        """Return a basis with the craft's fourfold symmetry or none, and a bias."""
        symmetry = C4() if symmetric else Trivial()
        drag = PolynomialLibrary(symmetry, self.length, features=("velocity", "rate"))
        still = np.zeros(3)
        fitted = fit_basis(TrimmedLibrary(drag), self.samples, current=still, threshold=symmetric)
        return fitted.model

    @property
    def world(self) -> WrenchModel:
        """A plain network in world axes."""
        training = Training(hidden=(16,), decay=1e-4, seed=self.seed)
        return learn_world_network(self.samples, training)[0]

    @cached_property
    def models(self) -> dict[str, WrenchModel | None]:
        """All models by name; None for no learning."""
        return {
            "none": None,
            "learned": self.basis(symmetric=True),
            "no_symmetry": self.basis(symmetric=False),
            "world": self.world,
        }
