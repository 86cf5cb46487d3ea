"""The chain when what it learned is no longer so: the current jumps, or the last rod gets a load.

`Adaptive` moves the current of the model, and `Adaptation` beside it all ten numbers of the last
rod. V contains the true fluid and the true rod; what the model cannot express is counted in its
stated rate as s' eps.
"""

from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from framefree.control import Adaptation, Adaptive
from framefree.control.port import PoseControl
from framefree.control.references.bodies import BodyPoses
from framefree.gallery.scenarios.learned.closed_loop import DAMPING, MOTION, RATE
from framefree.gallery.scenarios.learned.fluid_chain import LENGTH, Swimming, TrueFluid, swimmer
from framefree.geometry import Moments
from framefree.learn import LearnedModel
from framefree.machine import Machine
from framefree.motion.actuation import input_bias, input_matrix
from framefree.motion.load import Load
from framefree.motion.tree import Tree
from framefree.simulate import Run, simulate

JUMPED = (-0.15, 0.25, 0.1)
"""The current after its jump, m/s: by 0.37 m/s from what it was."""
PAYLOAD = 0.5
"""kg, at the end of the last rod, whose own mass is 1 kg."""
GAIN = {"current": 0.1}
"""Of the current, m/s per W s for each m/s."""
COST = 1.0
"""J, of the last rod."""


def with_payload(machine: Machine) -> Machine:
    """Return the chain with a load at the end of its last rod."""
    last = machine.bodies[-1]
    load = Moments.of_points(np.array([[LENGTH / 2, 0, 0]]), [PAYLOAD])
    return replace(
        machine, bodies=(*machine.bodies[:-1], replace(last, inertia=last.moments + load))
    )


@dataclass(frozen=True)
class ChangedChain:
    """One motion of the chain after a change: at 0 s, the law knows nothing of it.

    Parameters
    ----------
    style : Swimming
    duration, dt : float
        s.
    payload : bool
        Whether the last rod has a load; else the current is another.
    plant : str
    progress : bool or None
    """

    style: Swimming
    duration: float
    dt: float
    payload: bool
    plant: str = "native"
    progress: bool | None = None

    @property
    def fluid(self) -> TrueFluid:
        """The fluid after the change."""
        return TrueFluid() if self.payload else TrueFluid(current=JUMPED)

    @property
    def machine(self) -> Machine:
        """The chain after the change."""
        return with_payload(swimmer()) if self.payload else swimmer()

    def law(self, model: LearnedModel | None) -> PoseControl:
        """Return the law that adapts a model, or the one without learning."""
        law = PoseControl(swimmer(), DAMPING, rate=RATE, floor=1.0)
        if model is None:
            return law
        if self.payload:
            last = Adaptation((law.machine.bodies[-1].name,), cost=COST, truth=self.machine)
            law = replace(law, unknown=last)
        return Adaptive(law, model, GAIN, truth=self.fluid)

    def run(self, model: LearnedModel | None) -> Run:
        """Simulate from the path on, every step recorded."""
        path = self.style.path(swimmer(), MOTION)
        x, v = (np.array(one).ravel() for one in path.function(0.0)[:2])
        return simulate(
            self.fluid.added_to(self.machine), self.law(model), BodyPoses(path), x, v,
            duration=self.duration, dt=self.dt, plant=self.plant, progress=self.progress,
        )  # fmt: skip


# ---------------------------------------------------------------------- V, exactly


def in_span_gap(style: Swimming, count: int = 5, seed: int = 0) -> float:
    """Return how far dV/dt along the loop is from the stated rate if the fluid is in the span, W.

    Drag does not halve, and all terms of the library adapt from half their values: then
    dV/dt = -s' Kd s, whatever the estimates are. Differentiated exactly at states near a motion.
    """
    machine, fluid = swimmer(), TrueFluid(crisis=False)
    true = fluid.spanned
    terms = {name: 1.0 for name in true.linear}
    halved = true.with_coefficients(np.r_[true.coefficients[:-3] / 2, true.coefficients[-3:]])
    law = Adaptive(PoseControl(machine, DAMPING, rate=RATE, floor=1.0), halved, terms, truth=true)
    path = style.path(machine, MOTION)
    loop = loop_rates(law, fluid.added_to(machine), BodyPoses(path))
    rng, gap = np.random.default_rng(seed), 0.0
    for t in rng.uniform(0, 10, count):
        x, v = (np.array(one).ravel() for one in path.function(t)[:2])
        x = machine.integrate(x, 0.05 * rng.normal(size=machine.nv))
        v = v + 0.1 * rng.normal(size=machine.nv)
        memory = halved.coefficients * rng.uniform(0.5, 1.5, halved.size)
        memory[-3:] = halved.coefficients[-3:]
        found, stated = (float(one) for one in loop(t, x, v, memory))
        gap = max(gap, abs(found - stated))
    return gap


def loop_rates(law: Any, plant: Machine, reference: BodyPoses) -> ca.Function:
    """Return (t, x, v, memory) -> dV/dt along the loop by the chain rule, and as the law states."""
    machine = law.machine
    t, x, v = ca.SX.sym("t"), ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    memory = ca.SX.sym("memory", len(law.memory))
    command = law.control(t, x, v, reference.at(t), memory)
    state = Tree(plant.numeric).at(x, v)
    force = input_matrix(state) @ command.u + input_bias(state)
    a = state.forward(Load(plant.numeric, force=force))
    columns = ca.vertcat(t, x, v, memory)
    speeds = ca.vertcat(1, machine.rate_matrix(x) @ v, a, command.rate)
    found = ca.jtimes(command.signals["V"], columns, speeds)
    return ca.Function("rates", [t, x, v, memory], [found, command.signals["V_rate"]])
