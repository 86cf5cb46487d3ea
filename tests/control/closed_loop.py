"""The exact rate of a law's V in closed loop, memory included, on a plant of its own."""

import casadi as ca
import numpy as np

from framefree.motion.actuation import input_bias, input_matrix
from framefree.motion.load import Load
from framefree.motion.tree import Tree


class ClosedLoop:
    """From a state, a memory and references x, v, a to true dV/dt, the stated one, V and s.

    `push` is a joint force (nv) that acts on the plant and that the law does not know.
    """

    def __init__(self, law, plant=None, push=None):
        machine, plant = law.machine, plant or law.machine
        self.law, self.machine = law, machine
        x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
        memory = ca.SX.sym("memory", len(law.memory))
        reference, moving, rates = self.references(machine)
        command = law.control(ca.SX(0), x, v, reference, memory)
        state = Tree(plant).at(x, v)
        force = input_matrix(state) @ command.u + input_bias(state)
        if push is not None:
            force = force + push(state)
        a = state.forward(Load(plant, force=force))
        assert command.memory is None or ca.is_equal(ca.SX(command.memory), memory, 20)
        columns = ca.vertcat(x, v, memory, *map(ca.vec, moving))
        speeds = ca.vertcat(machine.rate_matrix(x) @ v, a, command.rate, *map(ca.vec, rates))
        V = command.signals["V"]
        true = ca.jtimes(V, columns, speeds)
        self.inputs = [x, v, memory, *reference.values()]
        self.function = ca.Function(
            "closed", self.inputs, [true, command.signals["V_rate"], V, command.rate]
        )
        self.first = ca.Function("first", [x, v], [ca.densify(ca.SX(law.first_memory(x, v)))])

    def references(self, machine):
        names = {"x": machine.nx, "v": machine.nv, "a": machine.nv}
        r = {name: ca.SX.sym(f"{name}_d", size) for name, size in names.items()}
        return r, [r["x"], r["v"]], [machine.rate_matrix(r["x"]) @ r["v"], r["a"]]

    def reference(self, rng):
        m = self.machine
        return [m.random(rng), rng.normal(size=m.nv), rng.normal(size=m.nv)]

    def worst(self, memory_near, count=10, seed=0, extra=None):
        """Return the largest relative gap of true and stated rates at random states."""
        rng, found = np.random.default_rng(seed), 0.0
        for _ in range(count):
            x, v = self.machine.random(rng), rng.normal(size=self.machine.nv)
            memory = memory_near(rng, self.first(x, v).full().ravel())
            values = self.function(x, v, memory, *self.reference(rng))
            true, stated, V = (float(value) for value in values[:3])
            found = max(found, abs(true - stated) / (1 + abs(stated) + abs(V)))
        return found
