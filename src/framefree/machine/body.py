"""A rigid body: a name and the moments of its mass."""

from dataclasses import dataclass, field

from framefree.geometry.moments import Moments
from framefree.machine.part import Part, checked_name, set_field
from framefree.machine.problems import MachineError

WORLD = "world"
"""Name of the fixed world, which is not a body of the machine."""

_NO_MASS = Moments.zero()


@dataclass(frozen=True, eq=False)
class Body(Part):
    """A rigid body.

    Parameters
    ----------
    name : str
    inertia : Moments or None
        Moments of mass in the body frame: kg, kg m, kg m^2. The mass must be positive and the
        moments those of a distribution of positive masses. None declares a body without mass.
    strict : bool
        With False, moments that no distribution of positive masses has (a broken triangle
        inequality, common in model files) are kept and listed in `problems`; a mass that is not
        positive never is.
    source : str
        Where the body was read, for messages.
    """

    name: str
    inertia: Moments | None
    strict: bool = True
    source: str = field(default="", compare=False)
    problems: tuple[str, ...] = field(init=False, compare=False, repr=False, default=())

    def __post_init__(self) -> None:
        checked_name(self.name, "a body")
        if self.name == WORLD:
            raise MachineError("a body must not be named `world`: that is the fixed world")
        if self.inertia is None:
            return
        if not isinstance(self.inertia, Moments):
            raise MachineError(
                f"the inertia of body `{self.name}` must be Moments, or None for a body without "
                "mass, "
                f"got {type(self.inertia).__name__}"
            )
        self._inspect(self.inertia)

    def _inspect(self, inertia: Moments) -> None:
        if inertia.symbolic:
            return
        if not inertia.total > 0.0:
            raise MachineError(
                f"the mass of body `{self.name}` must be positive, got {inertia.total:.6g} kg; "
                "a body without mass is declared by `inertia=None`"
            )
        problems = inertia.problems()
        if not problems:
            return
        message = (
            f"the inertia of body `{self.name}` is not that of any distribution of mass: "
            f"{problems[-1]}"
        )
        if self.strict:
            raise MachineError(message)
        set_field(self, "problems", (f"{self.source}: {message}" if self.source else message,))

    @property
    def massless(self) -> bool:
        """Whether the body was declared to have no mass."""
        return self.inertia is None

    @property
    def moments(self) -> Moments:
        """Moments of mass in the body frame; zero for a body without mass."""
        return _NO_MASS if self.inertia is None else self.inertia
