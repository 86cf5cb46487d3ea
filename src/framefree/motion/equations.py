"""What every formulation offers: named quantities, each a casadi function and a compiled call.

A formulation is a subclass of `Equations` that

1. gives the sizes of its own coordinates in `sizes` (input name to length);
2. gives in `quantities` a function for each quantity it knows, from the dictionary of input symbols
   to the outputs of that quantity (`Quantity`);
3. raises `MachineError` at construction for a machine it does not apply to, saying what does.

Tracing and compiling happen when a quantity is first asked for.
"""

from abc import ABC
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.errors import FramefreeError
from framefree.kernel import Kernel, compile
from framefree.machine import Machine


class EquationsError(FramefreeError):
    """A quantity or formulation that does not exist for this machine."""


class Output(NamedTuple):
    """An output: its expression, and the NumPy shape of one state's value (row-major)."""

    value: Any
    shape: tuple[int, ...]


class Quantity(NamedTuple):
    """Names of the inputs, in order, and the function from their symbols to the named outputs."""

    inputs: tuple[str, ...]
    trace: Callable[..., dict[str, Output]]


class Functions(Mapping[str, ca.Function]):
    """The casadi functions of a formulation by name, traced when first asked for."""

    def __init__(self, equations: "Equations") -> None:
        self._equations = equations
        self._traced: dict[str, tuple[ca.Function, dict[str, tuple[int, ...]]]] = {}

    def __getitem__(self, name: str) -> ca.Function:
        return self.traced(name)[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._equations.quantities)

    def __len__(self) -> int:
        return len(self._equations.quantities)

    def traced(self, name: str) -> tuple[ca.Function, dict[str, tuple[int, ...]]]:
        """Return the function and the NumPy shapes of its outputs."""
        if name not in self._traced:
            self._traced[name] = self._trace(name)
        return self._traced[name]

    def _trace(self, name: str) -> tuple[ca.Function, dict[str, tuple[int, ...]]]:
        equations = self._equations
        quantity = equations.quantity(name)
        symbols = {i: ca.SX.sym(i, equations.sizes[i]) for i in quantity.inputs}
        outputs = quantity.trace(**symbols)
        parameters = equations.machine.parameters
        if len(parameters):
            symbols["parameters"] = parameters.symbols
        function = ca.Function(
            name.partition(":")[0],
            list(symbols.values()),
            [ca.densify(ca.SX(output.value)) for output in outputs.values()],
            list(symbols),
            list(outputs),
        )
        return function, {key: output.shape for key, output in outputs.items()}


class Equations(ABC):
    """Equations of motion of a machine in one formulation.

    Calls take one state, arrays of shape ``(n,)``, or many, ``(batch, n)``. A machine with tunable
    parameters adds their values as the last argument.

    Attributes
    ----------
    machine : Machine
    sizes : dict
        Length of every input: x, v, a, force, ...
    functions : mapping
        Name of a quantity to its `casadi.Function`.
    """

    name: str
    sizes: dict[str, int]
    quantities: dict[str, Quantity]

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.functions = Functions(self)
        self._kernels: dict[str, Kernel] = {}

    def quantity(self, name: str) -> Quantity:
        """Return the recipe of a quantity; formulations extend this for `jacobian:FRAME`."""
        if name not in self.quantities:
            raise EquationsError(
                f"`{name}` is not a quantity of the {self.name} formulation; it has: "
                + ", ".join(self.quantities)
            )
        return self.quantities[name]

    def kernel(self, name: str) -> Kernel:
        """Return the compiled call of any quantity in `functions`."""
        if name not in self._kernels:
            function, shapes = self.functions.traced(name)
            self._kernels[name] = compile(function, shapes=shapes)
        return self._kernels[name]

    @cached_property
    def mass(self) -> Kernel:
        """Mass matrix: ``mass(x)`` (nv, nv)."""
        return self.kernel("mass")

    @cached_property
    def bias(self) -> Kernel:
        """Force at zero acceleration, all passive forces included: ``bias(x, v)`` (nv,)."""
        return self.kernel("bias")

    @cached_property
    def coriolis(self) -> Kernel:
        """Matrix C with M_dot - 2C skew-symmetric: ``coriolis(x, v)`` (nv, nv)."""
        return self.kernel("coriolis")

    @cached_property
    def gravity(self) -> Kernel:
        """Force that holds the machine against gravity: ``gravity(x)`` (nv,)."""
        return self.kernel("gravity")

    @cached_property
    def forward(self) -> Kernel:
        """Acceleration: ``forward(x, v, force)`` (nv,)."""
        return self.kernel("forward")

    @cached_property
    def inverse(self) -> Kernel:
        """Force for an acceleration: ``inverse(x, v, a)`` (nv,)."""
        return self.kernel("inverse")

    @cached_property
    def body_pose(self) -> Kernel:
        """Poses of all bodies: ``body_pose(x)`` (bodies, 4, 4)."""
        return self.kernel("body_pose")

    @cached_property
    def body_velocity(self) -> Kernel:
        """Body twists, linear first: ``body_velocity(x, v)`` (bodies, 6)."""
        return self.kernel("body_velocity")

    @cached_property
    def body_acceleration(self) -> Kernel:
        """Rates of the body twists: ``body_acceleration(x, v, a)`` (bodies, 6)."""
        return self.kernel("body_acceleration")

    @cached_property
    def energy(self) -> Kernel:
        """Kinetic and potential energy, J: ``kinetic, potential = energy(x, v)``."""
        return self.kernel("energy")

    @cached_property
    def dissipation(self) -> Kernel:
        """Power lost in dampers, friction and drag, W: ``dissipation(x, v)``."""
        return self.kernel("dissipation")

    @cached_property
    def momentum(self) -> Kernel:
        """Momenta in world axes: ``linear, angular, centroidal = momentum(x, v)``.

        The angular momentum is taken about the world's origin, the centroidal one about the center
        of mass.
        """
        return self.kernel("momentum")

    @cached_property
    def joint_wrench(self) -> Kernel:
        """Wrench each joint carries: ``joint_wrench(x, v, force)`` (bodies, 6).

        What the parent exerts on the child through the joint, motor and friction included, in the
        child's joint frame.
        """
        return self.kernel("joint_wrench")

    @cached_property
    def power(self) -> Kernel:
        """Rate of change of the energy, W: ``power(x, v, force)``."""
        return self.kernel("power")

    @cached_property
    def forward_derivatives(self) -> Kernel:
        """Slopes of `forward`: ``da_dx, da_dv, da_dforce = forward_derivatives(x, v, force)``.

        Each (nv, nv); by x along its tangent directions, ``x (+) eps e_j``.
        """
        return self.kernel("forward_derivatives")

    @cached_property
    def inverse_derivatives(self) -> Kernel:
        """Slopes of `inverse` by x, v and a: ``inverse_derivatives(x, v, a)``, (nv, nv) each."""
        return self.kernel("inverse_derivatives")

    @cached_property
    def input_matrix(self) -> Kernel:
        """Joint forces per unit of each actuator input: ``input_matrix(x)`` (nv, nu)."""
        return self.kernel("input_matrix")

    @cached_property
    def input_bias(self) -> Kernel:
        """Joint forces of the actuators at zero input: ``input_bias(x, v)`` (nv,)."""
        return self.kernel("input_bias")

    def jacobian(self, x: np.ndarray, frame: str) -> np.ndarray:
        """Return the body Jacobian (6, nv) of a frame: its twist, in its own axes, is J v."""
        return self.kernel(f"jacobian:{frame}")(x)

    def jacobian_rate(self, x: np.ndarray, v: np.ndarray, frame: str) -> np.ndarray:
        """Return the time derivative (6, nv) of `jacobian`."""
        return self.kernel(f"jacobian_rate:{frame}")(x, v)
