"""What every formulation is: coordinates, the states in them, and named quantities of these.

A formulation is a subclass of `Equations` that

1. gives `sizes` (of the inputs x, v, ... of its quantities) and `group`, on which x lives;
2. gives `at(x, v, t)`, a `State` in its coordinates, and `rate_matrix(x)` with dx/dt = A v;
3. lists in `offers` the quantities that it has, by the names in `framefree.motion.quantities`;
   further ones of its own are recipes in `own`;
4. gives `start(x, v)`, its coordinates of a state of the machine's joints; and, where states must
   be brought back onto constraints, `keeps` and `restore`;
5. raises `MachineError` at construction for a machine it does not apply to, saying what does.

Tracing and compiling happen when a quantity is first asked for.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.errors import FramefreeError, near
from framefree.kernel import Kernel, compile_known
from framefree.machine import Machine
from framefree.motion.groups import Group
from framefree.motion.identity import identity
from framefree.motion.quantities import (
    FORCED,
    FRAMES,
    LOAD_DERIVATIVES,
    LOADS,
    OF_PARAMETERS,
    SHARES,
    UNDER_LOAD,
    XV,
    Outputs,
    Recipe,
    recipe,
)
from framefree.motion.spatial import Matrix
from framefree.motion.state import State
from framefree.motion.tangent import Tangent, velocity_deviation

if TYPE_CHECKING:
    from framefree.kernel.loops import Calls
    from framefree.solve.linearise import LinearSystem


class EquationsError(FramefreeError):
    """A quantity or formulation that does not exist for this machine."""


class Quantity(NamedTuple):
    """Names of the inputs, in order, and the function from their symbols to the named outputs."""

    inputs: tuple[str, ...]
    trace: Callable[..., Outputs]


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
        values = [ca.densify(ca.SX(output.value)) for output in outputs.values()]
        names = list(symbols), list(outputs)
        function = ca.Function(name.partition(":")[0], list(symbols.values()), values, *names)
        shapes = {key: output.shape for key, output in outputs.items()}
        return self._of_any_length(function, symbols), shapes

    def _of_any_length(self, function: ca.Function, symbols: dict[str, Matrix]) -> ca.Function:
        """Return the function for quaternions and (cos, sin) pairs of any length.

        They are brought to unit length before anything else; others would scale what turns, with
        nothing to show it.
        """
        if "x" not in symbols:
            return function
        unit = ca.densify(ca.SX(self._equations.group.normalise(symbols["x"])))
        if ca.is_equal(unit, symbols["x"], 1):
            return function
        results = function.call([*{**symbols, "x": unit}.values()])
        names = function.name_in(), function.name_out()
        return ca.Function(function.name(), list(symbols.values()), results, *names)


class Equations(ABC):
    """Equations of motion of a machine in one formulation; see the contract in this file.

    Calls take one state, arrays of shape ``(n,)``, or many, ``(batch, n)``. A machine with tunable
    parameters adds their values as the last argument. Quaternions and (cos, sin) pairs in x may
    have any length: quantities are those at unit length.

    Attributes
    ----------
    machine : Machine
    sizes : dict
        Length of every input: x, v, a, force, ...
    x_names, v_names : tuple of str
        A name for every coordinate and velocity.
    group : Group
        What x lives on, as integrators need it.
    offers : tuple of str
        The quantities it has; those that take a load are there in several versions, and those of
        frames are called `jacobian:FRAME`: see `framefree.motion.quantities`.
    rheonomic : bool
        Whether the equations depend on time. Then t is the last input of what does (`takes_time`).
    keeps : bool
        Whether states must be brought back onto constraints after every step (`restore`).
    functions : mapping
        Name of a quantity to its `casadi.Function`.
    made_by : (str, dict) or None
        Formulation and options by which `framefree.equations` made them from their machine.
    loop_program : callable or None
        Gives, of these equations and the name of a quantity, a program of native loops, or None.
    """

    name: str
    sizes: dict[str, int]
    x_names: tuple[str, ...]
    v_names: tuple[str, ...]
    group: Group
    offers: tuple[str, ...]
    own: Mapping[str, Recipe] = {}
    rheonomic: bool = False
    keeps: bool = False
    made_by: tuple[str, Mapping[str, Any]] | None = None
    loop_program: Callable[["Equations", str], "Calls | None"] | None = None

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.rheonomic = machine.timed
        if len(machine.parameters):
            self.offers = (*self.offers, *OF_PARAMETERS)
        self.functions = Functions(self)
        self._kernels: dict[str, Kernel] = {}
        self._latest: State | None = None

    def __repr__(self) -> str:
        sizes = ", ".join(f"{self.sizes[key]} {key}" for key in ("x", "v"))
        return f"<{self.name} equations of `{self.machine.name}`: {sizes}>"

    # ------------------------------------------------------------------ the contract

    @abstractmethod
    def at(self, x: Matrix, v: Matrix | None = None, t: Any = 0) -> State:
        """Return a symbolic state; without v the machine is at rest."""

    @abstractmethod
    def rate_matrix(self, x: Matrix) -> Matrix:
        """Return A (nx x nv) with dx/dt = A v, of a casadi column."""

    def integrate(self, x: Any, dv: Any) -> Any:
        """Move x by dv on the groups of the coordinates: casadi columns, or arrays of one state."""
        if isinstance(x, ca.SX) or isinstance(dv, ca.SX):
            return self.group.integrate(x, self.group.velocity(x, dv))
        symbols = ca.SX.sym("x", self.sizes["x"]), ca.SX.sym("dv", self.sizes["v"])
        parameters = self.machine.parameters
        moved = ca.Function(
            "moved", [*symbols, parameters.symbols], [ca.densify(self.integrate(*symbols))]
        )
        return moved(x, dv, parameters.values()).full().ravel()

    def normalise(self, x: Any) -> np.ndarray:
        """Return one x in numbers, its quaternions and (cos, sin) pairs brought to unit length."""
        symbol = ca.SX.sym("x", self.sizes["x"])
        unit = ca.Function("unit", [symbol], [ca.densify(ca.SX(self.group.normalise(symbol)))])
        return unit(x).full().ravel()

    def deviation(self, x: Matrix, v: Matrix, a: Matrix) -> tuple[Matrix, Matrix]:
        """Return W (nv x nv), ``W_ij = gamma^i_kj v^k``, and its rate along (v, a)."""
        return velocity_deviation(Tangent(x, ca.SX(self.rate_matrix(x))), v, a)

    def start(
        self, x: np.ndarray, v: np.ndarray, parameters: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the formulation's own coordinates of one state of the machine's joints."""
        return x, v

    def restore(self, x: Matrix, v: Matrix, t: Matrix, rounds: int) -> tuple[Matrix, Matrix]:
        """Return a symbolic state brought back onto the constraints by Newton's method."""
        return x, v

    # ------------------------------------------------------------------ quantities

    @cached_property
    def quantities(self) -> dict[str, Quantity]:
        """All quantities by name, but for those of a frame and for versions of loads."""
        return {name: self.quantity(name) for name in (*self.offers, *self.own)}

    def quantity(self, name: str) -> Quantity:
        """Return a quantity by its name: inputs, and the function from their symbols to outputs."""
        made = self.own_recipe(name)
        if made is None and self._offered(name):
            made = recipe(name)
            if made is not None and name == "input_matrix" and self._inputs_by_speed:
                made = made._replace(inputs=XV)
        if made is None:
            raise EquationsError(
                f"`{name}` is not a quantity of the {self.name} formulation; "
                f"{near(name, (*self.offers, *self.own))}it has: "
                + ", ".join((*self.offers, *self.own))
            )
        chosen = made
        inputs = (*chosen.inputs, "t") if self.takes_time(name) else chosen.inputs
        others = [key for key in chosen.inputs if key not in ("x", "v")]

        def trace(
            x: Matrix | None = None, v: Matrix | None = None, t: Any = 0, **more: Matrix
        ) -> Outputs:
            return chosen.trace(self._state(x, v, t), *(more[key] for key in others))

        return Quantity(inputs, trace)

    def _state(self, x: Matrix | None, v: Matrix | None, t: Any) -> State | None:
        """Return a state; the latest is kept, so that quantities of the same symbols share it."""
        if x is None:
            return None
        latest = self._latest
        same = latest is not None and latest.x is x and (v is None or latest.v is v)
        if latest is None or not same or not (isinstance(t, int) or latest.t is t):
            latest = self.at(x, v, t)
            self._latest = latest
        return latest

    def takes_time(self, name: str) -> bool:
        """Tell whether a quantity depends on time, so that t is its last input."""
        return self.rheonomic and name.partition(":")[0] in FORCED

    @property
    def _inputs_by_speed(self) -> bool:
        """Whether forces per input depend on speed, as those of muscles."""
        return any(actuator.speed_dependent for actuator in self.machine.actuators)

    def own_recipe(self, name: str) -> Recipe | None:
        """Return the recipe of a quantity that only this formulation has; None for none."""
        return self.own.get(name)

    def _offered(self, name: str) -> bool:
        kind, _, which = name.partition(":")
        if which and kind in (*UNDER_LOAD, *LOAD_DERIVATIVES):
            possible = which != "u" or "input_matrix" in self.offers
            return kind in self.offers and which in LOADS and possible
        if which and kind in FRAMES:
            self.machine.frame(which)  # refuses a frame that does not exist, by name
            return "body_pose" in self.offers
        if which and kind in SHARES:
            self.machine.body(which)  # likewise a body
            return kind in self.offers
        return name in self.offers

    def kernel(self, name: str) -> Kernel:
        """Return the compiled call of any quantity in `functions`."""
        if name not in self._kernels and self.loop_program is not None:
            program = self.loop_program(self, name)
            if program is not None:
                self._kernels[name] = program.compile()
        if name not in self._kernels:
            key = self._identity_of(name)
            self._kernels[name] = compile_known(key, lambda: self.functions.traced(name))
        return self._kernels[name]

    @cached_property
    def _identity(self) -> bytes | None:
        return None if self.made_by is None else identity(self.machine, *self.made_by)

    def _identity_of(self, name: str) -> bytes | None:
        """Return what a quantity depends on, as a digest, so that kept code needs no tracing."""
        if self._identity is None:
            return None
        return hashlib.sha256(self._identity + name.encode()).digest()

    def numbers(self, name: str, parameters: Any = None, **inputs: Any) -> list[np.ndarray]:
        """Return the outputs of a quantity at one state, by the graph interpreter, not compiled.

        Inputs that the quantity does not have are left out.
        """
        function, shapes = self.functions.traced(name)
        if "parameters" in function.name_in():
            inputs["parameters"] = self.machine.parameters.values(parameters)
        results = function(**{key: inputs[key] for key in function.name_in()})
        return [np.asarray(results[key].full()).reshape(shapes[key]) for key in function.name_out()]

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
        """Joint forces per unit of each actuator input: ``input_matrix(x)`` (nv, nu).

        With muscles, whose force depends on speed, ``input_matrix(x, v)``.
        """
        return self.kernel("input_matrix")

    @cached_property
    def input_bias(self) -> Kernel:
        """Joint forces of the actuators at zero input: ``input_bias(x, v)`` (nv,)."""
        return self.kernel("input_bias")

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the rows of `state_matrices`: "x.elbow", ..., "v.elbow", ..."""
        return tuple(f"{kind}.{name}" for kind in "xv" for name in self.v_names)

    @cached_property
    def state_matrices(self) -> Kernel:
        """A (2 nv, 2 nv) and B (2 nv, nu) of small motions: ``A, B = state_matrices(x, v, u)``.

        About a motion under inputs u, ``d/dt (eps, dv) = A (eps, dv) + B du``: eps and dv are
        deviations of x and v, named in `state_names`, du those of the inputs, named in
        `machine.u_names`. Constraints are not taken out: `linearise` does that, and its result
        carries the names.
        """
        return self.kernel("state_matrices:u")

    def linearise(self, x: Any, v: Any = None, u: Any = None, **options: Any) -> "LinearSystem":
        """Return the linear equations of small motions about a state, with names of their entries.

        See `framefree.linearise` for the options.
        """
        from framefree.solve.linearise import linearise

        return linearise(self, x, v, u, **options)

    def frame_pose(self, x: np.ndarray, frame: str) -> np.ndarray:
        """Return the pose (4, 4) of a frame in the world."""
        return self.kernel(f"frame_pose:{frame}")(x)

    def jacobian(self, x: np.ndarray, frame: str) -> np.ndarray:
        """Return the body Jacobian (6, nv) of a frame: its twist, in its own axes, is J v."""
        return self.kernel(f"jacobian:{frame}")(x)

    def jacobian_rate(self, x: np.ndarray, v: np.ndarray, frame: str) -> np.ndarray:
        """Return the time derivative (6, nv) of `jacobian`."""
        return self.kernel(f"jacobian_rate:{frame}")(x, v)
