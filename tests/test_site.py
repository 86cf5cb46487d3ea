"""The documentation names everything public, and its tutorials stay short."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

from framefree.errors import FramefreeError
from framefree.machine.read import read

DOCS = Path(__file__).parents[1] / "docs"
REFERENCE = {
    module: page.read_text(encoding="utf-8")
    for page in sorted((DOCS / "reference").glob("*.md"))
    for module in re.findall(r"automodule:: ([\w.]+)", page.read_text(encoding="utf-8"))
}
TUTORIALS = sorted(p for p in (DOCS / "tutorials").glob("*.md") if p.stem != "index")
LONGEST = 30
"""Lines of code that a task may take."""


def public(module):
    return getattr(importlib.import_module(module), "__all__", ())


def test_every_public_name_has_an_entry():
    documented = {id(getattr(importlib.import_module(m), n)) for m in REFERENCE for n in public(m)}
    documented |= {id(read), id(FramefreeError)}  # on the page of files and errors
    top = importlib.import_module("framefree")
    without = [
        name
        for name in public("framefree")
        if not inspect.ismodule(getattr(top, name)) and id(getattr(top, name)) not in documented
    ]
    assert without == []
    packages = {f"framefree.{n}" for n in public("framefree") if inspect.ismodule(getattr(top, n))}
    assert packages - set(REFERENCE) - {"framefree.look.report", "framefree.report"} == set()


@pytest.mark.parametrize("module", REFERENCE)
def test_every_public_name_has_a_docstring(module):
    own = importlib.import_module(module)
    things = {name: getattr(own, name) for name in public(module)}
    callables = {n: t for n, t in things.items() if inspect.isclass(t) or inspect.isroutine(t)}
    assert [name for name, thing in callables.items() if not inspect.getdoc(thing)] == []


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda path: path.stem)
def test_tutorials_are_short_and_python(page):
    cells = re.findall(r"```\{code-cell\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert cells
    for cell in cells:
        ast.parse(cell)
        lines = [line for line in cell.splitlines() if line.strip()]
        assert len(lines) <= LONGEST


def test_every_page_is_in_a_list_of_pages():
    listed = set()
    for page in DOCS.rglob("*.md"):
        for tree in re.findall(r"```\{toctree\}(.*?)```", page.read_text("utf-8"), re.DOTALL):
            names = [line for line in tree.splitlines() if line and not line.startswith(":")]
            listed |= {(page.parent / f"{name}.md").resolve() for name in names}
    pages = {page.resolve() for page in DOCS.rglob("*.md")} - {(DOCS / "index.md").resolve()}
    assert sorted(page.name for page in pages - listed) == []
    assert sorted(page.name for page in listed - pages) == []
