"""Speed of the law of two arms within limits, against the same levels in Python.

The peer is written with Pinocchio for kinematics and dynamics, and a cascade of quadratic programs,
one warm-started solve of ProxSuite a level: the coupling within the limits of torques and joints,
the circle with the coupling kept, the posture with both kept. Both are asked at the states of a run
with motors that are too weak for the circle, in their order, each from where it was before.
"""

from time import perf_counter
from typing import Any

import numpy as np

from framefree.benchmarks.dual_arm import _PeerLaw
from framefree.benchmarks.timing import best_seconds, circumstances, speedup
from framefree.control.tasks import LimitedTaskControl
from framefree.control.tasks.bounds import RESERVE
from framefree.gallery.machines.dual_arm import START_HELD
from framefree.gallery.scenarios.cooperation.dual_arm_limits import robot, task_levels
from framefree.gallery.scenarios.cooperation.dual_arm_parts import CIRCLE, CONTROL_GAINS
from framefree.simulate import simulate

STATES, EFFORT, PERIOD = 1024, 30.0, 0.005
GAIN = 1000.0


def run() -> dict[str, object]:
    """Return the figures of `framefree bench tasks`."""
    case = _LimitedCase()
    return {
        "single_speedup": speedup(case.one_by_one, case.theirs, repeats=5),
        "batch_speedup": speedup(case.ours, case.theirs, repeats=5),
        "single_microseconds": best_seconds(case.one_by_one) / STATES * 1e6,
        "batch_microseconds": best_seconds(case.ours) / STATES * 1e6,
        "peer_microseconds": best_seconds(case.theirs) / STATES * 1e6,
        "compile_seconds": case.compile_seconds,
        "cached_seconds": case.cached_seconds,
        "max_relative_error": case.relative_error(),
        "share_of_states_at_limits": case.at_limits,
        **circumstances("pin", "proxsuite"),
    }


class _LimitedCase:
    def __init__(self) -> None:
        machine = robot(EFFORT)
        self.law = LimitedTaskControl(machine, task_levels(machine, GAIN))
        program: Any = self.law.program(CIRCLE, signals=False).made
        start = perf_counter()
        self.kernel = program.compile(use_cache=False)
        self.compile_seconds = perf_counter() - start
        program.compile()
        start = perf_counter()
        program.compile()
        self.cached_seconds = perf_counter() - start
        done = simulate(
            machine,
            self.law,
            CIRCLE,
            np.array(START_HELD),
            duration=STATES * PERIOD,
            dt=PERIOD,
            control_dt=PERIOD,
            integrator="euler",
            limits=True,
        )
        self.t, self.x, self.v = (np.array(a[:STATES]) for a in (done.t, done.x, done.v))
        self.rows = [
            (float(t), x.copy(), v.copy()) for t, x, v in zip(self.t, self.x, self.v, strict=True)
        ]
        self.peer = _CascadePeer(machine, accuracy=1e-5)
        self.memories = self._memories()
        self.at_limits = float((np.abs(done.u[:STATES]) > EFFORT * (1 - 1e-9)).any(axis=1).mean())

    def _memories(self) -> np.ndarray:
        """Return what the law remembers at each state: it starts where it was before."""
        memories, memory = [], self.law.memory
        for t, x, v in self.rows:
            memories.append(memory)
            memory = self.kernel(t, x, v, memory)[1]
        return np.array(memories)

    def ours(self) -> Any:
        return self.kernel(self.t, self.x, self.v, self.memories)

    def one_by_one(self) -> None:
        kernel, memory = self.kernel, self.memories[0]
        for t, x, v in self.rows:
            _, memory = kernel(t, x, v, memory)

    def theirs(self) -> list[np.ndarray]:
        peer = self.peer
        return [peer(t, x, v) for t, x, v in self.rows]

    def relative_error(self) -> float:
        # From nothing: started from a program that it did not solve, the peer may stay there.
        peer = _CascadePeer(self.law.machine, accuracy=1e-9, warm=False)
        theirs, solved = [], []
        for t, x, v in self.rows:
            theirs.append(peer(t, x, v))
            solved.append(peer.solved)
        u = np.array(theirs)[solved]
        return float((np.abs(self.ours()[0][solved] - u).max(1) / np.abs(u).max(1)).max())


class _CascadePeer(_PeerLaw):
    """The levels within limits, with Pinocchio and three programs of ProxSuite."""

    def __init__(self, machine: Any, accuracy: float, warm: bool = True) -> None:
        super().__init__(accuracy)
        Kp, Ku = GAIN, CONTROL_GAINS[0]
        self.gains = Kp, 2 * np.sqrt(Kp), Ku, 2 * np.sqrt(Ku)
        n = machine.nv
        self.damping = np.array([float(np.ravel(joint.damping)[0]) for joint in machine.joints])
        limits = np.array([joint.velocity_limit[0] for joint in machine.joints])
        self.speed = (1 - RESERVE) * limits
        self.low, self.high = (
            np.array([getattr(joint, side)[0] for joint in machine.joints])
            for side in ("lower", "upper")
        )
        self.rows = np.zeros((2 * n, n))
        self.rows[n:] = np.eye(n)
        self.lower, self.upper = np.zeros(2 * n), np.zeros(2 * n)
        self.programs = [_program(n, k, 2 * n, accuracy, warm) for k in (0, 6, 12)]
        self.begun = False
        self.eye = np.eye(n)

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        pin, model, data = self.pin, self.model, self.data
        n = len(v)
        pin.forwardKinematics(model, data, q, v, self.zero)
        pin.computeJointJacobians(model, data)
        M = pin.crba(model, data, q)
        h = pin.nonLinearEffects(model, data, q, v) + self.damping * v
        hand = self._motion(self.a)
        self._couple(hand, self._motion(self.b))
        self._follow(t, hand)
        self.rows[:n] = M
        self.lower[:n], self.upper[:n] = -EFFORT - h, EFFORT - h
        k = self.law_rate
        fastest, slowest = k * (self.speed - v), -k * (self.speed + v)
        self.lower[n:] = np.minimum(
            np.maximum(-2 * k * v - k * k * (q - self.low), slowest), fastest
        )
        self.upper[n:] = np.maximum(
            np.minimum(-2 * k * v + k * k * (self.high - q), fastest), slowest
        )
        A, A_u = self.A, hand[2]
        a = self._level(0, A.T @ A, -(self.b_c @ A), None, None)
        a = self._level(1, A_u.T @ A_u, self.b_u @ A_u, A, A @ a)
        both = np.vstack([A, A_u])
        a = self._level(2, self.eye, 4.0 * v, both, both @ a)
        self.begun = True
        self.solved = all(
            str(qp.results.info.status).endswith("PROXQP_SOLVED") for qp in self.programs
        )
        return M @ a + h

    law_rate = 20.0

    def _level(self, k: int, H: Any, g: Any, A: Any, b: Any) -> np.ndarray:
        qp = self.programs[k]
        if self.begun:
            qp.update(H=H, g=g, A=A, b=b, C=self.rows, l=self.lower, u=self.upper)
        else:
            qp.init(H, g, A, b, self.rows, self.lower, self.upper)
        qp.solve()
        return qp.results.x


def _program(n: int, equations: int, rows: int, accuracy: float, warm: bool) -> Any:
    import proxsuite

    guesses = proxsuite.proxqp.InitialGuess
    qp = proxsuite.proxqp.dense.QP(n, equations, rows)
    qp.settings.eps_abs = accuracy
    qp.settings.initial_guess = (
        guesses.WARM_START_WITH_PREVIOUS_RESULT if warm else guesses.NO_INITIAL_GUESS
    )
    return qp
