"""An implicit rule of second order for stiff servos, dampers and springs."""

from math import sqrt

from framefree.simulate.integrators.base import ImplicitIntegrator

_OWN = 1 - sqrt(0.5)

SDIRK2 = ImplicitIntegrator(order=2, rows=((_OWN,), (1 - _OWN, _OWN)), weights=(1 - _OWN, _OWN))
"""Alexander's method with two stages [Alexander1977]: L-stable, and its last stage is the result.

What decays within a step is gone after it, as it should be; slow motions are right to second order.
An oscillation of w rad/s loses ``0.0073 (w dt)^4`` of its energy a step, for small w dt. Impacts on
contacts and stops that are shorter than two steps give no energy (`framefree.simulate.impacts`).
"""
