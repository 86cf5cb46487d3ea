"""Writing MJCF: a fluid, whose drag MuJoCo derives from inertias and from geoms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from framefree.machine.formats.markup import Element
from framefree.machine.formats.poses import quaternion_of_rotation
from framefree.machine.formats.writing import UNSEEN, node
from framefree.machine.immersed import ImmersedBox, ImmersedEllipsoid, potential_flow
from framefree.machine.problems import MachineError, Problems

if TYPE_CHECKING:
    from framefree.machine.machine import Machine

MADE_OF_BOXES = 1e-9
"""Share of a body's moments that boxes may miss."""
QUADRATURE = 1e-2
"""MuJoCo integrates the potential flow around an ellipsoid by few points, less exact if flat."""


class Piece(NamedTuple):
    """A part of a body's mass, whose inertia is that of a box."""

    name: str
    pose: np.ndarray
    mass: float
    inertia: np.ndarray

    @property
    def element(self) -> Element:
        """Its <inertial>, with the axes of the box."""
        position, quat = self.pose[:3, 3], quaternion_of_rotation(self.pose[:3, :3])
        return node("inertial", pos=position, quat=quat, mass=self.mass, diaginertia=self.inertia)


class FluidWriter:
    """What a fluid adds to options and bodies, and how bodies must be split for it."""

    def __init__(self, machine: Machine, problems: Problems) -> None:
        self.machine = machine
        self._boxes: dict[str, list[ImmersedBox]] = {}
        self._ellipsoids: dict[str, list[ImmersedEllipsoid]] = {}
        self.pieces: dict[str, list[Piece]] = {}
        if machine.fluid.flow is not None:
            problems.add(
                "the flow of the fluid: MuJoCo has a uniform wind only; "
                '`without="fluid"` leaves the fluid out'
            )
        for part in machine.fluid.immersed:
            body = machine.frame(part.frame).body
            if isinstance(part, ImmersedBox):
                self._boxes.setdefault(body, []).append(part)
            elif isinstance(part, ImmersedEllipsoid):
                self._ellipsoids.setdefault(body, []).append(part)
            else:
                problems.add(
                    f"the body immersed at `{part.frame}`: MuJoCo has drag of boxes and ellipsoids "
                    'only, an ImmersedBox or an ImmersedEllipsoid; `without="fluid"` leaves it out'
                )
                return
        for body in machine.bodies:
            with problems.at(f"body `{body.name}` in the fluid"):
                self._check(body)

    @property
    def options(self) -> dict[str, Any]:
        """Attributes of <option>."""
        fluid = self.machine.fluid
        return {"density": fluid.density, "viscosity": fluid.viscosity, "wind": fluid.current}

    def geoms(self, body: str) -> list[Element]:
        """Return the ellipsoids on a body as geoms that are not seen."""
        return [
            node(
                "geom",
                name=part.frame,
                type="ellipsoid",
                size=part.semi_axes,
                pos=self._pose(part)[:3, 3],
                quat=quaternion_of_rotation(self._pose(part)[:3, :3]),
                fluidshape="ellipsoid",
                fluidcoef=(
                    part.blunt_drag,
                    part.slender_drag,
                    part.angular_drag,
                    part.kutta_lift,
                    part.magnus_lift,
                ),
                **UNSEEN,
            )
            for part in self._ellipsoids.get(body, ())
        ]

    def _pose(self, part: Any) -> np.ndarray:
        return np.asarray(self.machine.frame(part.frame).pose)

    def _check(self, body: Any) -> None:
        boxes, ellipsoids = self._boxes.get(body.name, []), self._ellipsoids.get(body.name, [])
        if body.massless:
            if boxes or ellipsoids:
                raise MachineError("MuJoCo gives no drag to a body without mass")
            return
        if boxes and ellipsoids:
            raise MachineError(
                "MuJoCo gives a body either boxes or ellipsoids; put one on a body of its own, "
                "with a Fixed joint (`keep_fixed=True` when reading)"
            )
        for part in ellipsoids:
            _check_added(part)
        if not ellipsoids:
            self.pieces[body.name] = self._split(body, boxes)

    def _split(self, body: Any, boxes: list[ImmersedBox]) -> list[Piece]:
        """Return masses of the boxes that make up the body's mass, center and inertia."""
        from scipy.optimize import nnls  # scipy takes long to import

        poses = [self._pose(box) for box in boxes]
        squares = [np.square(box.sides) for box in boxes]
        wanted = np.asarray(body.moments.matrix4)
        length = float(np.sqrt(np.trace(wanted[:3, :3]) / wanted[3, 3]))
        scale = np.array([1 / length] * 3 + [1.0])
        units = []
        for pose, square in zip(poses, squares, strict=True):
            second = np.diag([*square / 12, 1.0])
            units.append((scale[:, None] * (pose @ second @ pose.T) * scale).ravel())
        target = (scale[:, None] * wanted * scale).ravel() / wanted[3, 3]
        shares, miss = nnls(np.array(units).T, target) if units else (np.zeros(0), np.inf)
        if not (miss <= MADE_OF_BOXES and (shares > MADE_OF_BOXES).all()):
            raise MachineError(
                "MuJoCo gives a body the drag of a box with the body's own inertia; here "
                + (f"{len(boxes)} boxes do not make up that inertia" if boxes else "there is none")
                + '; `without="fluid"` leaves the fluid out'
            )
        masses = shares * float(body.moments.total)
        return [
            Piece(box.frame, pose, float(mass), mass * (square.sum() - square) / 12)
            for box, pose, mass, square in zip(boxes, poses, masses, squares, strict=True)
        ]


def _check_added(part: ImmersedEllipsoid) -> None:
    own = (part.added_volume, part.added_moment)
    for value, expected in zip(own, potential_flow(np.asarray(part.semi_axes)), strict=True):
        if np.abs(value - expected).max() > QUADRATURE * np.abs(expected).max():
            raise MachineError(
                f"the ellipsoid at `{part.frame}`: MuJoCo derives `added_volume` and "
                f"`added_moment` from the semi-axes, {expected.tolist()}, got {value.tolist()}"
            )
