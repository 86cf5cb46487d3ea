"""The recorded Crazyflie: thrust against command and battery, lag, inertia, drag, by shooting.

State z: position, attitude, body twist, and the lagging voltage of every motor. Thrust is a
quadratic curve of that voltage; only thrust over mass, and moments over inertia, can be told: mass
and inertia are held. `roll_effect` and `pitch_effect` say how much of the moment that thrusts on
their arms should make is seen: at 100 Hz commands explain moments poorly.
"""

import casadi as ca
import numpy as np

from framefree.gallery.machines import multicopters
from framefree.gallery.shared.nano_records import PERIOD, STEPS, Flight
from framefree.geometry import batch, se3
from framefree.identify.shooting import PredictionModel, RecordedPieces
from framefree.motion.load import Load
from framefree.motion.spatial import Matrix
from framefree.motion.tree import Tree

TUNED = tuple(f"fluid.body.linear_drag.{axis}" for axis in ("x", "y", "z", "rx", "ry", "rz"))
_NUMBERS = (
    # name, nominal, unit of the search, least, largest
    ("thrust_linear_n_v", 0.01, 0.01, -0.1, 0.1),
    ("thrust_square_n_v2", 0.0135, 0.01, 0.0, 0.1),
    ("lag_s", 0.05, 0.05, 0.005, 0.3),
    ("roll_effect", 1.0, 0.1, 0.0, 3.0),
    ("pitch_effect", 1.0, 0.1, 0.0, 3.0),
    ("torque_ratio_m", 0.006, 0.006, -0.1, 0.1),
    *((f"drag_{axis}", 0.01, 0.01, 0.0, 0.2) for axis in "xyz"),
    *((f"turning_drag_{axis}", 1e-6, 1e-5, 0.0, 1e-3) for axis in "xyz"),
    *((f"bias_moment_{axis}", 0.0, 1e-5, -1e-3, 1e-3) for axis in "xyz"),
)
NAMES = tuple(name for name, *_ in _NUMBERS)
FIRST, SCALES, LEAST, MOST = (np.array([row[k] for row in _NUMBERS]) for k in range(1, 5))
"""Nominal numbers, units of the search, and bounds."""
SIGMA_Y = np.array([*[0.05] * 3, *[0.2] * 3, *[0.08] * 3, *[0.3] * 3])
"""Deviations of position, velocity, attitude (vector part) and rate that count alike."""
SIGMA_Z = np.array([*[0.001] * 3, *[0.002] * 4, *[0.01] * 3, *[0.03] * 3, *[0.02] * 4])
SETTLED = 30
"""Rows before a piece after which the lag has forgotten a wrong command."""


def pieces(several: list[Flight], every: int) -> RecordedPieces:
    """Return pieces that begin at every so many rows of the flights."""
    z, u, y = [], [], []
    for flight in several:
        R = batch.rotation(flight.wxyz)
        body = np.einsum("nji,nj->ni", R, flight.velocity)
        known = np.where(np.isfinite(flight.voltage), flight.voltage, 0.0)
        lagging = known.copy()
        for k in range(1, len(lagging)):
            lagging[k] = lagging[k - 1] + 0.2 * (known[k] - lagging[k - 1])
        for k in range(100, len(body) - STEPS, every):
            rows = slice(k, k + STEPS)
            if not np.isfinite(flight.voltage[k - SETTLED : k + STEPS]).all():
                continue
            q0 = flight.wxyz[k]
            # One sign of the quaternion throughout a piece.
            signs = np.sign(flight.wxyz[rows] @ q0)[:, None]
            z.append([*flight.position[k], *q0, *body[k], *flight.rate[k], *lagging[k]])
            u.append(flight.voltage[rows])
            half_turn = (signs * flight.wxyz[rows])[:, 1:]
            y.append(
                np.hstack(
                    [flight.position[rows], flight.velocity[rows], 2 * half_turn, flight.rate[rows]]
                )
            )
    return RecordedPieces(np.array(z), np.array(u), np.array(y))


def model() -> PredictionModel:
    """Return the vehicle in discrete time; numbers are in units of `SCALES`."""
    machine = multicopters.crazyflie().tunable(*TUNED)
    tree = Tree(machine)
    z, u, p = ca.SX.sym("z", 17), ca.SX.sym("u", 4), ca.SX.sym("p", len(NAMES))
    numbers = p * ca.DM(SCALES)
    spins = ca.DM(multicopters.CRAZYFLIE_SPINS)
    places = ca.DM([np.asarray(frame.pose)[:2, 3].tolist() for frame in machine.frames])

    def field(z: Matrix) -> Matrix:
        x, v, volts = ca.vertcat(z[:3], z[3:7] / ca.norm_2(z[3:7])), z[7:13], z[13:17]
        state = tree.at(x, v)
        thrusts = numbers[0] * volts + numbers[1] * volts**2
        moments = ca.vertcat(
            numbers[3] * ca.dot(places[:, 1], thrusts),
            -numbers[4] * ca.dot(places[:, 0], thrusts),
            -numbers[5] * ca.dot(spins, thrusts),
        )
        wrench = ca.vertcat(0, 0, ca.sum1(thrusts), moments + numbers[12:15])
        load = Load(machine)
        load.on_frame(machine.frame("body"), wrench)
        a = ca.substitute(state.forward(load), machine.parameters.symbols, numbers[6:12])
        return ca.vertcat(machine.rate_matrix(x) @ v, a, (u - volts) / numbers[2])

    middle = z + PERIOD / 2 * field(z)
    after = z + PERIOD * field(middle)
    after[3:7] = after[3:7] / ca.norm_2(after[3:7])
    x = ca.vertcat(z[:3], z[3:7])
    R = se3.rotation(tree.at(x).poses[0])
    y = ca.vertcat(z[:3], R @ z[7:10], 2 * z[4:7], z[10:13])
    return PredictionModel(
        ca.Function("step", [z, u, p], [after]), ca.Function("output", [z, u, p], [y])
    )


def errors(y: np.ndarray, measured: np.ndarray, h: int) -> dict[str, float]:
    """Return mean norms of the errors of predictions h steps ahead: m, m/s, rad, rad/s."""
    gap = (y - measured)[:, h - 1]
    parts = {"position_m": 0, "velocity_m_s": 3, "attitude_rad": 6, "rate_rad_s": 9}
    norms = {name: np.linalg.norm(gap[:, k : k + 3], axis=1) for name, k in parts.items()}
    return {name: float(norm.mean()) for name, norm in norms.items()}


def constant_velocity(pieces: RecordedPieces) -> np.ndarray:
    """Return predictions (pieces, steps, 12) in which velocity and rate stay what they are."""
    first = pieces.y[:, :1]
    t = np.arange(STEPS)[None, :, None] * PERIOD
    held = np.repeat(first, STEPS, axis=1)
    held[..., 0:3] += t * first[..., 3:6]
    # Turning at a constant rate: near the attitude at the beginning, half the angle is enough.
    held[..., 6:9] += t * first[..., 9:12]
    return held
