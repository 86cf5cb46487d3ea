"""Law III: a frame follows a pose, the rest keeps clear of obstacles."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.port.base import PortCommand, PortLaw
from framefree.control.port.bodies import PlacedLink
from framefree.control.port.obstacles import Avoidance
from framefree.control.port.sweeps import (
    BodyChain,
    FrameOnLink,
    FrameTask,
    LoadWithRate,
    VelocityRequest,
)
from framefree.control.shared.frame_error import frame_signals
from framefree.control.shared.gains import positive
from framefree.control.shared.input_map import rank
from framefree.control.shared.model import at_configurations
from framefree.geometry import se3
from framefree.geometry.operators import vee2
from framefree.machine.part import plain
from framefree.machine.values import constant_pose
from framefree.motion.loops import BodyMath
from framefree.motion.spatial import Matrix, Step
from framefree.motion.tree import Tree
from framefree.motion.tree.links import links_of

SAMPLES = 4


@dataclass(frozen=True, eq=False)
class EndEffectorControl(PortLaw):
    """One frame follows a pose, the other bodies keep clear of obstacles by what is left.

        nu_r = Jbar nu_er + (I - Jbar J_t) Phi_c (-kappa grad U)
        Jbar = Phi_c J_t^T (J_t Phi_c J_t^T)^-1

    with nu_er = nu_ed less the gradient of the frame's error: `rate` times its position error, and
    `turn_rate` times vee2(R_d^T R)/2, which is sin(angle) about the axis of the turn. Then
    J_t nu_r = nu_er exactly. Reference signals FRAME.pose, FRAME.twist, FRAME.acceleration.

    Signals: `task_mobility`, the least pivot of J_t Phi_c J_t^T relative to its diagonal entry,
    which goes to 0 where the machine cannot move the frame in all directions; `clearance` of the
    spheres that cover the bodies.

    Parameters
    ----------
    frame : str
    rate, turn_rate : float
        1/s.
    avoidance : Avoidance, optional
        Of all bodies but that of the frame.
    """

    frame: str = "end"
    rate: float = 3.0
    turn_rate: float = 3.0
    avoidance: Avoidance | None = None

    units: ClassVar[Mapping[str, str]] = {**PortLaw.units, "clearance": "m"}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._body < 0:
            raise ControlError(f"the frame `{self.frame}` of EndEffectorControl must be on a body")
        for name in ("rate", "turn_rate"):
            positive(getattr(self, name), name)
        if self.avoidance is not None:
            self.avoidance.check(self.machine)
        self._check_reach()

    @property
    def _body(self) -> int:
        return self.machine.body_index[self.machine.frame(self.frame).body]

    def _check_reach(self) -> None:
        """Refuse a machine whose joints never let the frame move in six directions."""
        way, i = [], self._body
        while i >= 0:
            way.append(i)
            i = self.machine.parent[i]
        freedom = sum(self.machine.joints[i].nv for i in way)
        if freedom < 6:
            raise ControlError(
                f"the frame `{self.frame}` cannot follow a pose: the joints that carry it have "
                f"{freedom} velocities, and 6 are needed"
            )
        if len(self.machine.parameters) or len(way) > 30:
            return
        x, rng = ca.SX.sym("x", self.machine.nx), np.random.default_rng(0)
        J = Tree(self.machine).at(x).jacobian(self.frame).value
        samples = at_configurations(self.machine, x, J, self.machine.random(rng, SAMPLES))
        most = max(map(rank, samples))
        if most < 6:
            raise ControlError(
                f"the frame `{self.frame}` cannot follow a pose: it moves in only {most} directions"
            )

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the reference signals."""
        return frame_signals(self.frame)

    def body_key(self, body: str) -> Any:
        """Return the points of the covering spheres, and whether it is the frame's body."""
        ends = self.machine.frame(self.frame).body == body
        return (ends, plain(self._points[body]) if self.avoidance is not None else None)

    @cached_property
    def _points(self) -> Mapping[str, np.ndarray]:
        return {} if self.avoidance is None else self.avoidance.points_of(self.machine)

    def ask(self, chain: BodyChain, reference: Mapping[str, Any]) -> VelocityRequest:
        """Return h = -kappa grad U, and the task."""
        tape, end = chain.tape, self._body

        def load(i: int) -> LoadWithRate | None:
            name = self.machine.bodies[i].name
            if i == end or self.avoidance is None or not len(self._points[name]):
                return None
            return LoadWithRate(*tape.call(self.avoid, i, chain.placed[i]))

        signals = [reference[name] for name in self.needs]
        twist, rate = tape.call(self.follow, end, chain.placed[end], *signals)
        task = FrameTask(end, twist, rate, FrameOnLink(self._on_link))
        return VelocityRequest(load, [None] * chain.count, task)

    @cached_property
    def _on_link(self) -> Step:
        """Pose of the frame on the link of its body."""
        G = se3.compose(
            links_of(self.machine)[self._body].to_body,
            constant_pose(self.machine.frame(self.frame).pose),
        )
        return Step(se3.rotation(G), se3.position(G))

    def follow(
        self, body: BodyMath, placed: PlacedLink, pose: Matrix, twist: Matrix, rate: Matrix
    ) -> tuple[Matrix, Matrix]:
        """Return nu_er (6) and its rate, in the axes of the frame."""
        step = self._on_link
        G = se3.compose(placed.pose.matrix, se3.pose(step.rotation, step.r))
        return _FOLLOWED(G, step.twist_into(placed.twist).vector, pose, twist, rate,
                     self.rate, self.turn_rate)  # fmt: skip

    def avoid(self, body: BodyMath, placed: PlacedLink) -> tuple[Matrix, Matrix]:
        """Return -kappa grad U (6) of one body and its rate, in link axes."""
        assert self.avoidance is not None
        R, r = placed.pose
        v, w = placed.twist
        to_body = body.link.to_body
        force, rate = [ca.SX(3, 1)] * 2, [ca.SX(3, 1)] * 2
        for point in self._points[body.joint.child]:
            q = se3.rotation(to_body) @ ca.DM(point) + se3.position(to_body)
            push, turned = self.avoidance.pushes(self.machine, r + R @ q, R @ (v + ca.cross(w, q)))
            f = R.T @ push
            df = R.T @ turned - ca.cross(w, f)
            force = [force[0] + f, force[1] + ca.cross(q, f)]
            rate = [rate[0] + df, rate[1] + ca.cross(q, df)]
        return ca.densify(ca.vertcat(*force)), ca.densify(ca.vertcat(*rate))

    def signals(self, chain: BodyChain, asked: PortCommand) -> dict[str, Matrix]:
        """Return the least pivot of the task and the clearance."""
        signals: dict[str, Matrix] = {}
        if asked.reference.pivot is not None:
            signals["task_mobility"] = asked.reference.pivot
        if self.avoidance is not None:
            least = ca.SX(np.inf)
            for i, body in enumerate(self.machine.bodies):
                math, placed = chain.tape.bodies[i], chain.placed[i]  # type: ignore[union-attr]
                G = math.body_pose(placed.pose)
                for point in self._points[body.name]:
                    c = se3.rotation(G) @ ca.DM(point) + se3.position(G)
                    least = ca.fmin(least, self.avoidance.clearance(self.machine, c))
            signals["clearance"] = least
        return signals


def _followed() -> ca.Function:
    G, Gd = ca.SX.sym("G", 4, 4), ca.SX.sym("Gd", 4, 4)
    xi, twist, rate = (ca.SX.sym(name, 6) for name in ("xi", "twist", "rate"))
    k, k_turn = ca.SX.sym("k"), ca.SX.sym("k_turn")
    R, Rd = G[:3, :3], Gd[:3, :3]
    turn = R.T @ Rd
    linear = turn @ twist[:3] - k * (R.T @ (G[:3, 3] - Gd[:3, 3]))
    angular = turn @ twist[3:] - k_turn / 2 * vee2(turn.T)
    followed = ca.vertcat(linear, angular)
    moving = ca.vertcat(ca.vec(G), ca.vec(Gd), twist)
    speed = ca.vertcat(ca.vec(G @ se3.wed(xi)), ca.vec(Gd @ se3.wed(twist)), rate)
    changed = ca.jtimes(followed, moving, speed)
    return ca.Function("followed", [G, xi, Gd, twist, rate, k, k_turn], [followed, changed])


_FOLLOWED = _followed()
"""From pose and twist of a frame, their desired values and gains to nu_er and its rate."""
