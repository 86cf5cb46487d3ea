"""The passivity law with numbers that adapt."""

from dataclasses import dataclass, field

from framefree.control.law import ControlError
from framefree.control.passive.tracking import PassivityControl
from framefree.control.unknown import Adaptation
from framefree.control.unknown.correction import Correction


@dataclass(frozen=True, eq=False)
class AdaptivePassivity(PassivityControl):
    """`PassivityControl` of a machine some of whose numbers are not known, on any base.

        V = 1/2 s^T M s + Ph + (distance of the estimates from the true numbers)
        dV/dt = -s^T (K + D) s - g^T Lambda g - s . unrealised

    as of the law that knows them: s and the error go to zero, whatever the numbers are. V holds the
    true numbers and is recorded where they are given (`Adaptation.truth`).

    Parameters
    ----------
    machine, K, freedom, form, drag, within_limits, stiffness, Lambda :
        As in `PassivityControl`.
    unknown : Adaptation
        Which numbers adapt, and how.
    """

    unknown: Correction | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.freedom.by_inertia:
            raise ControlError(
                f"{self.name} cannot have the freedom {type(self.freedom).__name__}: how what "
                "follows moves with the joints depends on the numbers that are not known"
            )
        super().__post_init__()
        if not isinstance(self.unknown, Adaptation):
            raise ControlError(f"`unknown` of {self.name} must be an Adaptation")
