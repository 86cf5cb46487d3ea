"""Integrators on groups, one file each."""

from framefree.simulate.integrators.base import Integrator
from framefree.simulate.integrators.dormand_prince import DormandPrince
from framefree.simulate.integrators.midpoint import ImplicitMidpoint
from framefree.simulate.integrators.rkmk4 import RungeKuttaMuntheKaas4
from framefree.simulate.integrators.semi_implicit import SemiImplicitEuler

INTEGRATORS: dict[str, Integrator] = {
    "rk4": RungeKuttaMuntheKaas4(),
    "euler": SemiImplicitEuler(),
    "midpoint": ImplicitMidpoint(),
}
"""Integrators with a fixed step, by name."""

__all__ = [
    "INTEGRATORS",
    "DormandPrince",
    "ImplicitMidpoint",
    "Integrator",
    "RungeKuttaMuntheKaas4",
    "SemiImplicitEuler",
]
