"""Flights predicted over many steps: identified physics, and a network on what it leaves.

Recorded motions of a craft with propellers, whose log has commands and no forces, tell little of
accelerations row by row and much over half a second. So what is learned here is a model in discrete
time, by the error of its predictions over many steps. Needs the extra `learn`.
"""
