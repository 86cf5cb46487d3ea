"""The implicit midpoint rule on a group: symmetric in time, so that energy does not drift."""

from framefree.simulate.integrators.base import ImplicitIntegrator

IMPLICIT_MIDPOINT = ImplicitIntegrator(order=2, rows=((0.5,),), weights=(1.0,))
"""``v1 = v + dt a(t + dt/2, xm, vm), x1 = x exp(dt vm), vm = (v + v1)/2, xm = x exp(dt/2 vm)``.

Reversing time and the sign of v runs the same steps backwards; reversible machines without losses
keep their energy to within a bounded oscillation of second order. It is stable however stiff the
machine is, but what decays within a step swings on with changing sign: see `sdirk2`.
"""
