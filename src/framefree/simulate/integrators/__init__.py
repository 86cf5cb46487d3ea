"""Integrators on groups, one file each."""

from framefree.simulate.integrators.base import (
    ExplicitIntegrator,
    ImplicitIntegrator,
    Integrator,
)
from framefree.simulate.integrators.dormand_prince import DormandPrince
from framefree.simulate.integrators.midpoint import IMPLICIT_MIDPOINT
from framefree.simulate.integrators.rkmk4 import RungeKuttaMuntheKaas4
from framefree.simulate.integrators.sdirk2 import SDIRK2
from framefree.simulate.integrators.semi_implicit import SemiImplicitEuler

INTEGRATORS: dict[str, Integrator] = {
    "rk4": RungeKuttaMuntheKaas4(),
    "euler": SemiImplicitEuler(),
    "midpoint": IMPLICIT_MIDPOINT,
    "implicit": SDIRK2,
}
"""Integrators with a fixed step, by name."""

__all__ = [
    "IMPLICIT_MIDPOINT",
    "INTEGRATORS",
    "SDIRK2",
    "DormandPrince",
    "ExplicitIntegrator",
    "ImplicitIntegrator",
    "Integrator",
    "RungeKuttaMuntheKaas4",
    "SemiImplicitEuler",
]
