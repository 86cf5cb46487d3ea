"""Speed of roll-outs with contact against `mujoco.rollout`: balls in a box, a standing quadruped.

Both engines start from the same states, run on one thread and record every step. MuJoCo has its
default solver, contact settings and integrator, and steps of 2 ms. Ours has compliant contacts as
soft as MuJoCo's: their stiffness is the mean of force over depth in MuJoCo's own settled scene. It
takes the largest step at which the normal forces of all contacts are within 1 percent of those of
the converged solution. Balls that collide are chaotic: whatever the step, two solutions drift apart
after a few impacts. Forces are therefore compared over windows of 20 ms, longer than an impact
lasts, each from a state of the converged solution.

What differs: MuJoCo solves for the forces that make its contacts stick, in one implicit step, and
is not converged at 2 ms; it finds pairs that are near, while ours computes all pairs. Our friction
creeps below its slip speed, as MuJoCo's does by its own softness; which pairs touch is the same.

Beside them, the servos of `framefree.benchmarks.servos`.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.benchmarks.balls import balls_in_box
from framefree.benchmarks.peers import MujocoRollout, mujoco
from framefree.benchmarks.servos import figures as servo_figures
from framefree.benchmarks.timing import best_seconds, circumstances
from framefree.control.law import OpenLoop
from framefree.errors import FramefreeError
from framefree.gallery.machines.quadruped import quadruped, standing
from framefree.kernel import Kernel, compile
from framefree.machine import Contact, Machine
from framefree.machine.actuators import JointForce
from framefree.machine.formats.write_mjcf import to_mjcf
from framefree.motion import forces
from framefree.motion.tree import Tree
from framefree.simulate.integrators import RungeKuttaMuntheKaas4
from framefree.simulate.loop import ControlLoop
from framefree.simulate.plants import native_plant

PEER_STEP = 2e-3  # s
DURATION = 0.5  # s
TRAJECTORIES = 128
WITHIN = 0.01
"""Largest relative error of the contact forces."""
COMPARED = 4e-3  # s
"""Time from one comparison of forces to the next."""
PARTS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 40)
"""Parts of that time that are tried as our step; a quarter of the least counts as converged."""
WINDOW = 2e-2  # s
SAMPLES = 16
"""Trajectories over which the error is measured."""
ROUNDS = 5
SLIP_SPEED = 0.1  # m/s
DAMPING = 1.0  # s/m
LIMITS = ("range", "velocity_limit", "effort_limit")
"""Of joints; neither engine has them here."""
SERVO = (150.0, 6.0)  # Nm/rad, Nm s/rad
BALLS, WIDTH, RADIUS = 10, 0.3, 0.05


States = tuple[np.ndarray, np.ndarray]
"""Configurations (n, nx) and velocities (n, nv)."""


@dataclass
class TouchingScene:
    """A machine with its contacts, and states to start from."""

    name: str
    machine: Machine
    x: np.ndarray
    v: np.ndarray
    steady: float
    """Time after which MuJoCo's scene has settled, s."""

    @property
    def u(self) -> np.ndarray:
        """Inputs: servos hold the joints where they are at first."""
        names = [actuator.joint for actuator in self.machine.actuators]
        places = [self.machine.x_slice[name].start for name in names]
        return self.x[0, places]

    @cached_property
    def contacts(self) -> list[Contact]:
        """All contacts of the machine."""
        return [part for part in self.machine.interactions if isinstance(part, Contact)]

    def as_soft_as(self, stiffness: float) -> "TouchingScene":
        """Return the scene with linear contacts of this stiffness, N/m."""
        material = {
            "stiffness": stiffness,
            "exponent": 1.0,
            "damping": DAMPING,
            "slip_speed": SLIP_SPEED,
        }
        parts = tuple(replace(contact, **material) for contact in self.contacts)
        return replace(self, machine=replace(self.machine, interactions=parts))


def run() -> dict[str, object]:
    """Return the figures of `framefree bench contact`."""
    figures: dict[str, object] = {"trajectories": TRAJECTORIES, "simulated_seconds": DURATION}
    for scene in (falling_balls(), standing_quadruped()):
        found = compare(scene)
        figures |= {f"{scene.name}.{key}": value for key, value in found.items()}
    speedups = [value for key, value in figures.items() if key.endswith(".speedup")]
    figures |= {f"servo.{key}": value for key, value in servo_figures().items()}
    figures["contact_speedup"] = min(map(float, speedups))  # type: ignore[arg-type]
    return figures | circumstances("mujoco")


def falling_balls() -> TouchingScene:
    """Return ten balls that fall into a box from places that differ from run to run."""
    rng = np.random.default_rng(0)
    machine = balls_in_box(BALLS, RADIUS, width=WIDTH)
    x = np.array(np.broadcast_to(machine.neutral(), (TRAJECTORIES, machine.nx)))
    grid = WIDTH / 2 - 1.6 * RADIUS
    for i in range(BALLS):
        corner = np.array([(-1.0) ** (i & 1) * grid, (-1.0) ** (i >> 1 & 1) * grid])
        x[:, 7 * i : 7 * i + 2] = corner + rng.uniform(-0.2, 0.2, (TRAJECTORIES, 2)) * RADIUS
        x[:, 7 * i + 2] = (1.2 + 2.2 * (i // 4)) * RADIUS
    return TouchingScene("balls", machine, x, np.zeros((TRAJECTORIES, machine.nv)), 3.0)


def standing_quadruped() -> TouchingScene:
    """Return the quadruped with servos, dropped from up to a centimetre and pushed a little."""
    rng = np.random.default_rng(0)
    machine = quadruped()
    k, d = SERVO
    servos = tuple(
        JointForce(motor.name, motor.joint, gain=k, bias_terms=(0, -k, -d))
        for motor in machine.actuators
    )
    machine = replace(machine, actuators=servos)
    x = np.array(np.broadcast_to(standing(machine), (TRAJECTORIES, machine.nx)))
    x[:, machine.x_slice["base"].start + 2] += rng.uniform(0.0, 0.01, TRAJECTORIES)
    v = np.zeros((TRAJECTORIES, machine.nv))
    v[:, :3] = 0.2 * rng.standard_normal((TRAJECTORIES, 3))
    return TouchingScene("quadruped", machine, x, v, 3.0)


def compare(scene: TouchingScene) -> dict[str, object]:
    """Run both engines and return their speeds, our step and what it was chosen by."""
    peer = _MujocoScene(scene)
    stiffness = peer.stiffness()
    ours = _OurScene(scene.as_soft_as(stiffness))
    dt, error = ours.largest_step()
    seconds = [np.inf, np.inf]
    for _ in range(ROUNDS):
        seconds[0] = min(seconds[0], best_seconds(lambda: ours.roll(dt), repeats=2))
        seconds[1] = min(seconds[1], best_seconds(peer.roll, repeats=1))
    simulated = TRAJECTORIES * DURATION
    return {
        "speedup": seconds[1] / seconds[0],
        "simulated_seconds_a_second": simulated / seconds[0],
        "mujoco_simulated_seconds_a_second": simulated / seconds[1],
        "step": dt,
        "force_error": error,
        "stiffness": stiffness,
        "contacts": len(scene.contacts),
    }


class _OurScene:
    """Our roll-outs of a scene, and the normal forces along them."""

    def __init__(self, scene: TouchingScene) -> None:
        self.scene = scene
        loop = ControlLoop(
            native_plant(scene.machine, None), OpenLoop(scene.machine, lambda t: ca.DM(scene.u))
        )
        step = loop.step(RungeKuttaMuntheKaas4())
        self.kernel = compile(step, shapes={"time": (), "h": ()})

    def roll(self, dt: float, count: int = TRAJECTORIES) -> Any:
        """Run the first trajectories of the scene."""
        return self._roll((self.scene.x[:count], self.scene.v[:count]), dt, DURATION)

    def _roll(self, starts: States, dt: float, duration: float) -> Any:
        steps = round(duration / dt)
        return self.kernel.rollout(
            x=starts[0],
            v=starts[1],
            h=dt,
            steps=steps,
            sequences={"time": dt * np.arange(steps)},
        )

    def largest_step(self) -> tuple[float, float]:
        """Return the largest step with forces within `WITHIN` of converged ones, and their error.

        Of all contacts in windows along `SAMPLES` trajectories, every `COMPARED`, by the
        root of the sum of squares.
        """
        fine = COMPARED / (4 * PARTS[-1])
        starts = self._states(self.roll(fine, SAMPLES), fine, WINDOW)
        exact = self._forces(starts, fine)
        for parts in PARTS:
            dt = COMPARED / parts
            error = np.linalg.norm(self._forces(starts, dt) - exact) / np.linalg.norm(exact)
            if error <= WITHIN:
                return dt, float(error)
        raise FramefreeError(
            f"no step of the `{self.scene.name}` scene down to {dt:g} s has contact forces within "
            f"{WITHIN:g} of converged ones: {error:.3g} at the last"
        )

    def _forces(self, starts: States, dt: float) -> np.ndarray:
        """Return normal forces every `COMPARED`, over a window from each start."""
        record = self._roll(starts, dt, WINDOW)
        return np.asarray(self._normal(*self._states(record, dt, COMPARED)))

    def _states(self, record: Any, dt: float, every: float) -> States:
        """Return configurations and velocities at multiples of a time, the first left out."""
        stride = round(every / dt)
        x, v = (np.asarray(record[name])[:, stride::stride] for name in ("x", "v"))
        return x.reshape(-1, x.shape[-1]), v.reshape(-1, v.shape[-1])

    @cached_property
    def _normal(self) -> Kernel:
        """Normal forces (contacts) from x and v."""
        machine = self.scene.machine
        x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
        bodies = Tree(machine).at(x, v).bodies
        found = []
        for contact in self.scene.contacts:
            at = forces.pair_motion(bodies, contact)
            found.append(contact.records(at.pose, at.twist, 0)["normal_force"][0])
        return compile(ca.Function("normal", [x, v], [ca.densify(ca.vertcat(*found))]))


class _MujocoScene(MujocoRollout):
    """The scene in MuJoCo."""

    def __init__(self, scene: TouchingScene) -> None:
        self.scene, self.engine = scene, mujoco()
        steps = round(DURATION / PEER_STEP)
        super().__init__(self._scene_model(), scene.x, scene.v, scene.u, steps)

    def stiffness(self) -> float:
        """Return the mean of force over depth (N/m) of the contacts of the settled scene."""
        engine, data = self.engine, self.data
        engine.mj_resetData(self.model, data)
        data.qpos[:], data.qvel[:], data.ctrl[:] = self.scene.x[0], self.scene.v[0], self.scene.u
        for _ in range(round(self.scene.steady / PEER_STEP)):
            engine.mj_step(self.model, data)
        engine.mj_forward(self.model, data)
        pressed, depths, wrench = 0.0, 0.0, np.zeros(6)
        for i in range(data.ncon):
            engine.mj_contactForce(self.model, data, i, wrench)
            pressed, depths = pressed + wrench[0], depths + max(-data.contact[i].dist, 0.0)
        return float(pressed / depths)

    def _scene_model(self) -> Any:
        """Return the machine without our contacts, each of their shapes as a geom of the file."""
        from framefree.simulate.runners.mujoco_contacts import add_geom

        machine = self.scene.machine
        bare = replace(machine, interactions=(), geometry=())
        spec = self.engine.MjSpec.from_string(to_mjcf(bare, without=LIMITS))
        spec.option.timestep = PEER_STEP
        shapes = {}
        for contact in self.scene.contacts:
            for end in "ab":
                where = getattr(contact, f"frame_{end}"), getattr(contact, f"shape_{end}")
                shapes[where] = float(contact.friction)
        for (frame, shape), friction in shapes.items():
            add_geom(spec, machine, frame, shape, friction=(friction, 0.005, 0.0001))
        return spec.compile()
