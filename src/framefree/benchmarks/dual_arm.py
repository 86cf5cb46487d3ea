"""Speed of the complete coupling and control law of two arms, against the same law in Python.

The peer is written with Pinocchio for kinematics and dynamics and with ProxSuite, warm-started, for
the quadratic program. Both are asked at the states of the published run, in their order.
"""

from math import cos, sin
from typing import Any

import casadi as ca
import numpy as np

from framefree.benchmarks.peers import pinocchio, to_pinocchio
from framefree.benchmarks.timing import best_seconds, circumstances, speedup
from framefree.control.tasks import Kkt, Weighted
from framefree.errors import FramefreeError
from framefree.gallery.machines.dual_arm import HOLD, START, dual_arm
from framefree.gallery.scenarios.cooperation.dual_arm_parts import CIRCLE, WEIGHT, published_law
from framefree.kernel import Kernel, compile
from framefree.kernel.measure import peak_share
from framefree.simulate import simulate

STATES = 1024


def run() -> dict[str, object]:
    """Return the figures of `framefree bench dual-arm`."""
    case = _TaskCase()
    return {
        "single_speedup": case.single_speedup(),
        "batch_speedup": case.batch_speedup(),
        "single_microseconds": case.single_seconds() * 1e6,
        "batch_microseconds": case.batch_seconds() / STATES * 1e6,
        "peer_microseconds": case.peer_seconds() / STATES * 1e6,
        "flops_share": peak_share(case.kernel, STATES, case.batch_seconds()),
        "max_relative_error": case.relative_error(),
        **circumstances("pin", "proxsuite"),
    }


class _TaskCase:
    def __init__(self) -> None:
        self.kernel = _compiled()
        run = simulate(
            dual_arm(), published_law(), CIRCLE, START, duration=5.12, dt=0.005, control_dt=0.005
        )
        self.t, self.x, self.v = (a[:STATES].copy() for a in (run.t, run.x, run.v))
        self.rows = [
            (float(t), x.copy(), v.copy()) for t, x, v in zip(self.t, self.x, self.v, strict=True)
        ]
        self.peer = _PeerLaw(accuracy=1e-4)

    def _theirs(self) -> list[np.ndarray]:
        peer = self.peer
        return [peer(t, x, v) for t, x, v in self.rows]

    def _ours(self) -> np.ndarray:
        return self.kernel(self.t, self.x, self.v)

    def _one_by_one(self) -> None:
        kernel = self.kernel
        for t, x, v in self.rows:
            kernel(t, x, v)

    def single_speedup(self) -> float:
        return speedup(self._one_by_one, self._theirs, repeats=15)

    def batch_speedup(self) -> float:
        return speedup(self._ours, self._theirs, repeats=15)

    def single_seconds(self) -> float:
        return best_seconds(self._one_by_one) / STATES

    def batch_seconds(self) -> float:
        return best_seconds(self._ours, repeats=25)

    def peer_seconds(self) -> float:
        return best_seconds(self._theirs, repeats=15)

    def relative_error(self) -> float:
        peer = _PeerLaw(accuracy=1e-9)
        theirs = np.array([peer(t, x, v) for t, x, v in self.rows])
        return float((np.abs(self._ours() - theirs).max(1) / np.abs(theirs).max(1)).max())


def _compiled() -> Kernel:
    """Return the law, with its reference, as a kernel from t, x and v to torques."""
    law = published_law(solver=Weighted(WEIGHT, Kkt()))
    t, x, v = ca.SX.sym("t"), ca.SX.sym("x", law.machine.nx), ca.SX.sym("v", law.machine.nv)
    u = law.control(t, x, v, CIRCLE.at(t), ca.SX(0, 1)).u
    return compile(ca.Function("law", [t, x, v], [u], ["t", "x", "v"], ["u"]), shapes={"t": ()})


class _PeerLaw:
    """The law [Milioshin2024, eq. 4.2] with Pinocchio and ProxSuite.

    Buffers are made once; kinematics are computed once for all quantities; the hands are joints, so
    that no frames are updated; bias accelerations are classical ones at zero joint acceleration;
    products with skew matrices stand for `numpy.cross`, which is slow.
    """

    def __init__(self, accuracy: float) -> None:
        self.pin = pin = pinocchio()
        law = published_law()
        (coupling,), (control,) = law.levels
        self.model = to_pinocchio(law.machine)
        self.data = self.model.createData()
        names = [body.name for body in law.machine.bodies]
        self.a, self.b = (names.index(frame) + 1 for frame in (coupling.frame_a, coupling.frame_b))
        self.gains = coupling.Kp, coupling.Kd, control.Kp, control.Kd
        self.weight = WEIGHT
        self.p_ab, self.R_ab = HOLD[:3, 3].copy(), HOLD[:3, :3].copy()
        self.axes = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        n = law.machine.nv
        self.zero, self.A, self.b_c, self.velocity = (
            np.zeros(n),
            np.zeros((6, n)),
            *np.zeros((2, 6)),
        )
        self.b_u, self.p_D, self.v_D, self.a_D = np.zeros(6), *np.zeros((3, 3))
        self.qp, self.started = _dense_qp(n, 6, accuracy), False

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        pin, model, data = self.pin, self.model, self.data
        pin.forwardKinematics(model, data, q, v, self.zero)
        pin.computeJointJacobians(model, data)
        M = pin.crba(model, data, q)
        h = pin.nonLinearEffects(model, data, q, v)
        hand = self._motion(self.a)
        self._couple(hand, self._motion(self.b))
        self._follow(t, hand)
        A_u, weight = hand[2], self.weight
        # The target keeps the attitude of the world, so its rows are those of the hand, negative.
        H = M + (weight * A_u.T) @ A_u
        g = h + weight * (self.b_u @ A_u)
        a = self._solve(H, g)
        return M @ a + h

    def _motion(self, joint: int) -> tuple[Any, ...]:
        """Return pose, velocity, Jacobian and bias acceleration of a joint, in world axes."""
        pin, model, data, axes = self.pin, self.model, self.data, self.axes
        return (
            data.oMi[joint],
            pin.getVelocity(model, data, joint, axes).vector,
            pin.getJointJacobian(model, data, joint, axes),
            pin.getClassicalAcceleration(model, data, joint, axes).vector,
        )

    def _couple(self, one: tuple[Any, ...], two: tuple[Any, ...]) -> None:
        skew, A, rate, error = self.pin.skew, self.A, self.b_c, self.velocity
        (G1, V1, J1, a1), (G2, V2, J2, a2) = one, two
        R1, R2 = G1.rotation, G2.rotation
        Kp, Kd = self.gains[:2]
        r = R1 @ self.p_ab
        W, back, w1 = skew(r), R2.T, V1[3:]
        np.subtract(J2, J1, out=A)
        A[:3] += W @ J1[3:]
        A[3:] = back @ A[3:]
        turned = W @ w1
        relative = V2[3:] - w1
        error[:3] = V2[:3] - V1[:3] + turned
        error[3:] = back @ relative
        np.subtract(a1, a2, out=rate)
        rate[:3] -= W @ a1[3:] + skew(w1) @ turned
        rate[3:] = back @ (rate[3:] + skew(V2[3:]) @ relative)
        rate -= Kd * error
        rate[:3] -= Kp * (G2.translation - G1.translation - r)
        rate[3:] -= Kp * self.pin.log3((R1 @ self.R_ab).T @ R2)

    def _follow(self, t: float, hand: tuple[Any, ...]) -> None:
        G, V, _, bias = hand
        p, v, a, b = self.p_D, self.v_D, self.a_D, self.b_u
        Kp, Kd = self.gains[2:]
        radius, rate, center = CIRCLE.radius, CIRCLE.rate, CIRCLE.center
        s, c = radius * sin(rate * t), radius * cos(rate * t)
        p[0], p[1], p[2] = center[0] - s, center[1], center[2] + c
        v[0], v[2] = -rate * c, -rate * s
        a[0], a[2] = rate * rate * s, -rate * rate * c
        np.add(bias, Kd * V, out=b)
        b[:3] -= a + Kd * v + Kp * (p - G.translation)
        b[3:] -= Kp * self.pin.log3(G.rotation.T)

    def _solve(self, H: np.ndarray, g: np.ndarray) -> np.ndarray:
        if self.started:
            self.qp.update(H=H, g=g, A=self.A, b=self.b_c)
        else:
            self.qp.init(H, g, self.A, self.b_c)
            self.started = True
        self.qp.solve()
        return self.qp.results.x


def _dense_qp(n: int, equalities: int, accuracy: float) -> Any:
    """Return a solver of the dense kind that starts where it ended before."""
    try:
        import proxsuite
    except ImportError:
        raise FramefreeError(
            "this needs ProxSuite, which is not installed; install it with: "
            'pip install "framefree[qp]"'
        ) from None
    qp = proxsuite.proxqp.dense.QP(n, equalities, 0)
    qp.settings.eps_abs = accuracy
    qp.settings.initial_guess = proxsuite.proxqp.InitialGuess.WARM_START_WITH_PREVIOUS_RESULT
    return qp
