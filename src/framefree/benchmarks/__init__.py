"""Speed, measured as ratios against a peer library in the same run; never as a test."""

from collections.abc import Callable

BENCHMARKS: dict[str, Callable[[], dict[str, object]]] = {}
"""Benchmark name to the function that measures it and gives its figures."""
