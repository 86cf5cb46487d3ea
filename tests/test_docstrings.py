"""Every example in a docstring is run."""

import doctest
import importlib
from pathlib import Path

import pytest

import framefree

ROOT = Path(framefree.__file__).parent
MODULES = sorted(
    ".".join(("framefree", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for path in ROOT.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_docstrings_print_what_they_say(module):
    failed, tried = doctest.testmod(importlib.import_module(module))
    assert tried > 0
    assert failed == 0


def test_what_most_people_call_has_an_example():
    names = ("Moments", "compile", "equations", "linearise", "read", "simulate")
    without = [n for n in names if ">>> " not in getattr(framefree, n).__doc__ + _called(n)]
    assert without == []


def _called(name):
    """Return the docstring of the function in a package that can be called."""
    return getattr(getattr(framefree, name), name, framefree).__doc__ or ""
