"""The scenario `bounce`."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from framefree.gallery.scenarios.contact import bounce_parts as parts
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.look.report import Animation, Figure

_PROMISES = {
    "restitution_error": ("the ball comes back as its closed form says, relative error", 1e-3),
    "energy_balance": ("energy and heat add up to the first energy, relative error", 1e-6),
    "sliding_error": ("the block slides v^2 / (2 mu g), relative error", 1e-3),
    "sliding_exact_error": ("it slides as smooth friction has it, relative error", 1e-6),
    "creep_error": ("on a slope the block creeps as stated, relative error", 1e-3),
    "rocking_time_error": (
        "the rocking block hits the ground when it should, relative error",
        1e-3,
    ),
    "coin_rate_error": ("the coin precesses as its closed form says, relative error", 1e-3),
    "wheel_speed_error": (
        "the wheel rolls with two thirds of its first speed, relative error",
        1e-3,
    ),
    "wheel_slipping_error": ("the wheel slows down by mu g while it slips, relative error", 1e-3),
    "stack_force_error": ("the settled stack bears its weights, relative error", 1e-6),
    "stack_hard_force_error": ("so it does on MuJoCo's contacts, relative error", 1e-6),
    "arm_force_error": ("the arm at rest leans on its tip as statics say, relative error", 1e-6),
}


@dataclass(frozen=True)
class Bounce(Scenario):
    """A ball, a block, a coin and a wheel touch the ground, against closed forms.

    Contact is compliant: a force that grows with the depth, damping by Hunt and Crossley, and
    Coulomb friction that is smooth below a stated speed. Restitution, the way a block slides, how
    fast it creeps, rocking, the precession of a coin that rolls about its resting center and a
    wheel that slips until it rolls have closed forms. A stack and an arm come to rest, where
    statics tell their forces.

    Parameters
    ----------
    speed : float
        At which the ball hits and the block slides, m/s.
    height : float
        From which the ball falls, m.
    duration : float
        How long to simulate, s.
    slip_share : float
        Speed below which friction fades, as a share of `speed`.
    tilt : float
        Of the coin that rolls, rad.
    rocking_tilt : float
        From which the block that rocks is let go, rad.

    Metrics
    -------
    restitution_error
        Largest relative error of the speed after an impact against its closed form.
    restitution_small_damping
        Relative difference to the formula for small damping that textbooks have.
    energy_balance
        How far energy and heat of the bouncing ball are from the first energy, relative.
    least_dissipation_w
        Least power that contacts turn into heat: negative would mean that they give energy.
    sliding_error
        Relative error of the way of the block against v^2 / (2 mu g).
    sliding_exact_error
        The same against the closed form with friction that is smooth below the slip speed.
    creep_error
        Relative error of the speed at which a block creeps down a slope.
    rocking_time_error
        Relative error of the time of the first impact of the rocking block.
    coin_rate_error
        Relative error of the coin's precession.
    coin_tilt_error_rad
        Largest change of the coin's tilt, which should stay.
    wheel_speed_error
        Relative error of the wheel's speed when it rolls.
    wheel_slipping_error
        Error of the wheel's speed while it slips, by its first speed.
    stack_force_error
        Largest relative error of the forces in the settled stack.
    stack_hard_force_error
        The same on MuJoCo's contacts.
    stack_hard_sinks_m
        How far the stack sinks into MuJoCo's contacts, which are soft as well.
    arm_force_error
        Relative error of the force on which the arm leans.
    arm_angle_rad
        Angle at which the arm comes to rest.
    """

    name: ClassVar[str] = "bounce"
    extras: ClassVar[tuple[str, ...]] = ("models",)

    speed: float = 1.0
    height: float = 0.6
    duration: float = 10.0
    slip_share: float = 0.01
    tilt: float = 0.6
    rocking_tilt: float = 0.15

    def run(self, progress: bool | None = None) -> Outcome:
        """Run all experiments."""
        slip = self.slip_share * self.speed
        scenes = {
            "impacts": parts.impacts(self.speed),
            "ball": parts.falling(self.height, self.duration),
            "block": parts.sliding(self.speed, slip),
            "rocking": parts.rocking(self.rocking_tilt),
            "coin": parts.spinning(self.tilt, 3.0),
            "wheel": parts.rolling(3 * self.speed),
            "stack": parts.settled(self.duration),
        }
        metrics = {name: v for scene in scenes.values() for name, v in scene.metrics.items()}
        metrics["creep_error"] = parts.creeping(slip)
        metrics |= parts.settled_hard(3.0)
        return Outcome(
            runs={name: scene.run for name, scene in scenes.items()},
            metrics=metrics,
            promises=tuple(
                Promise(text, metrics[key], bound) for key, (text, bound) in _PROMISES.items()
            ),
            figures=_figures({name: scene.run for name, scene in scenes.items()}),
            animations=(
                Animation("The coin", scenes["coin"].run, caption="It rolls; its center rests."),
                Animation("The block rocks", scenes["rocking"].run),
            ),
            notes=_NOTES,
        )


_NOTES = (
    "The energy balance is that of the recorded heat, added up by the trapezoidal rule over every "
    "step; the forces themselves have an exact energy.",
    "The block that slides has its mass in its sole: with its mass above, friction tips it forward "
    "and the closed form no longer holds to all digits.",
    "MuJoCo's contacts carry the stack as well; they are soft too, and sink by what "
    "`stack_hard_sinks_m` says.",
    "Friction that is smooth does not stick: on a slope a block creeps, at a speed that is stated "
    "and measured here.",
)


def _figures(runs: dict) -> tuple[Figure, ...]:
    ball, block, wheel, coin = (runs[name] for name in ("ball", "block", "wheel", "coin"))
    thin = slice(None, None, max(1, len(ball) // 4000))
    t = ball.t[thin]
    energies = {
        "kinetic": ball["kinetic"][thin],
        "potential": ball["potential"][thin],
        "heat": parts.lost(ball)[thin],
        "sum *": (ball.energy + parts.lost(ball))[thin],
    }
    spin = np.linalg.norm(wheel.v[:, 3:], axis=1) * 0.2
    return (
        Figure.over_time("Height of the ball", "height (m)", t, {"center": ball.x[thin, 2]}),
        Figure.over_time("Energy of the ball", "energy (J)", t, energies),
        Figure.over_time(
            "The block slides", "speed (m/s)", block.t, {"along x": block.v[:, 0]},
            caption="Below the slip speed friction fades, and the block creeps to rest.",
        ),
        Figure.over_time(
            "The wheel slips, then rolls", "speed (m/s)", wheel.t,
            {"of its center": np.linalg.norm(wheel.v[:, :3], axis=1), "of its rim": spin},
        ),
        Figure.over_time(
            "Slip of the coin", "speed (m/s)", coin.t, {"in the contact": coin["ground.slip"]},
        ),
    )  # fmt: skip
