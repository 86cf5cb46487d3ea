"""The fluid of `learned-chain` as something to learn in rounds: `framefree learn learned-chain`."""

from framefree.control.port import PoseControl
from framefree.control.references.bodies import BodyPoses
from framefree.gallery.scenarios.learned.closed_loop import DAMPING, RATE
from framefree.gallery.scenarios.learned.fluid_chain import LENGTH, Swimming, TrueFluid, swimmer
from framefree.gallery.scenarios.learned.open_loop import FEATURES, STYLES
from framefree.learn import (
    GuardedModel,
    RodLibrary,
    Samples,
    SimulatedTask,
    Training,
    WrenchModel,
    learn,
)

KINDS = {
    "slow": Swimming(fastest=0.2),
    "usual": Swimming(),
    "fast": Swimming(slowest=0.3, fastest=0.8),
    "spinning": Swimming(spin=2.0),
    "bent": Swimming(bend=0.6),
    "space": Swimming(space=True),
}
"""Motions to choose from, several of each kind."""
EACH = 3
"""Motions of a kind."""
HELD_OUT = ("plane", "yaw", "space")
"""Styles of the motions that only judge."""
FIRST, FIRST_HELD = 500, 777
"""Seeds of motions, before that of the scenario."""


def chain_task(name: str, seed: int, duration: float, dt: float, plant: str) -> SimulatedTask:
    """Return the task: five rods, the port law, and a basis with a network, guarded.

    The guard matters: what one slow motion tells of the fluid, used at three times its speed, makes
    the law unstable.
    """
    machine, library = swimmer(), RodLibrary(LENGTH)

    def model(samples: Samples) -> WrenchModel:
        training = Training(decay=1e-5, seed=seed)
        learned = learn(samples, library=library, training=training, features=FEATURES)
        return GuardedModel.of(learned.model, samples)

    motions = {
        f"{kind}-{k + 1}": style.path(machine, FIRST + 100 * seed + 10 * i + k)
        for k in range(EACH)
        for i, (kind, style) in enumerate(KINDS.items())
    }
    held_out = {style: STYLES[style].path(machine, FIRST_HELD) for style in HELD_OUT}
    return SimulatedTask(
        name,
        machine,
        TrueFluid().added_to(machine),
        lambda known: PoseControl(known, DAMPING, rate=RATE, floor=1.0),
        motions,
        held_out,
        model,
        symmetry=library.symmetry,
        reference=BodyPoses,
        duration=duration,
        dt=dt,
        settled=min(2.0, duration / 2),
        plant=plant,
    )
