"""The documentation names everything public, and its tutorials stay short."""

import ast
import importlib
import inspect
import json
import re
import sys
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
INCLUDED = re.compile(r"\{literalinclude\} (\S+)\n:language: python\n:pyobject: (\S+)")
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


def test_what_pages_import_has_an_entry():
    """A reader who meets a name in a program finds it in the reference."""
    pages = [page.read_text("utf-8") for page in (*DOCS.rglob("*.md"), DOCS.parent / "README.md")]
    imports = r"^ *from (framefree[\w.]*) import (?:\((.*?)\)|(.*?))$"
    found = [hit for page in pages for hit in re.findall(imports, page, re.DOTALL | re.MULTILINE)]
    names = {(m, n.split(" as ")[0].strip()) for m, a, b in found for n in (a or b).split(",")}
    shown = {id(getattr(importlib.import_module(m), n)) for m in REFERENCE for n in public(m)}
    things = {
        f"{module}.{name}": getattr(importlib.import_module(module), name)
        for module, name in names
        if name and module not in REFERENCE and not module.startswith("framefree.gallery")
    }
    own = {name: thing for name, thing in things.items() if not inspect.ismodule(thing)}
    assert sorted(name for name, thing in own.items() if id(thing) not in shown) == []
    assert len(names) > 100


def silent(things):
    """Return the names of classes and functions without a docstring, and of methods of classes."""
    found = []
    for name, thing in things.items():
        if not (inspect.isclass(thing) or inspect.isroutine(thing)):
            continue
        members = vars(thing).items() if inspect.isclass(thing) else ()
        own = {f"{name}.{k}": v for k, v in members if inspect.isfunction(v) and k[0] != "_"}
        found += [k for k, v in {name: thing, **own}.items() if not inspect.getdoc(v)]
    return found


@pytest.mark.parametrize("module", REFERENCE)
def test_every_public_name_has_a_docstring(module):
    own = importlib.import_module(module)
    assert silent({name: getattr(own, name) for name in public(module)}) == []


def test_names_without_a_docstring_are_noticed():
    class Told:
        """Told."""

        def silent(self):
            pass

    assert silent({"Told": Told, "quiet": lambda: 0, "number": 3}) == ["Told.silent", "quiet"]


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda path: path.stem)
def test_tutorials_are_short_and_python(page):
    cells = re.findall(r"```\{code-cell\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert cells
    for cell in cells:
        ast.parse(cell)
        lines = [line for line in cell.splitlines() if line.strip()]
        assert len(lines) <= LONGEST


def test_eight_tasks_take_thirty_lines_each():
    page = (DOCS / "howto" / "eight_tasks.md").read_text("utf-8")
    tasks = page.split("\n## ")[1:]
    assert len(tasks) == 8
    for task in tasks:
        cells = re.findall(r"```\{code-cell\}\n(.*?)```", task, re.DOTALL)
        (program,) = [cell for cell in cells if "remove-cell" not in cell]
        ast.parse(program)
        assert "import framefree as ff" in program  # nothing is taken from the blocks before
        assert len([line for line in program.splitlines() if line.strip()]) <= LONGEST


def test_every_page_is_in_a_list_of_pages():
    listed = set()
    for page in DOCS.rglob("*.md"):
        for tree in re.findall(r"```\{toctree\}(.*?)```", page.read_text("utf-8"), re.DOTALL):
            names = [line for line in tree.splitlines() if line and not line.startswith(":")]
            listed |= {(page.parent / f"{name}.md").resolve() for name in names}
    pages = {page.resolve() for page in DOCS.rglob("*.md")} - {(DOCS / "index.md").resolve()}
    assert sorted(page.name for page in pages - listed) == []
    assert sorted(page.name for page in listed - pages) == []


def test_code_that_pages_include_is_there():
    """Sphinx takes it by name; a name that is gone is noticed here first."""
    included = [
        (page, path, name)
        for page in DOCS.rglob("*.md")
        for path, name in INCLUDED.findall(page.read_text("utf-8"))
    ]
    assert len(included) > 40
    for page, path, name in included:
        body = ast.parse((page.parent / path).read_text("utf-8")).body
        for part in name.split("."):
            inside = [node for node in body if getattr(node, "name", None) == part]
            assert inside, f"{page.name}: {name}"
            body = inside[0].body


def test_every_benchmark_on_the_site_says_where_when_and_how():
    kept = sorted((DOCS / "measured").glob("*.json"))
    shown = re.findall(r"\{measured\} (\S+)", (DOCS / "measured.md").read_text("utf-8"))
    assert sorted(shown) == [path.stem for path in kept]
    for path in kept:
        record = json.loads(path.read_text("utf-8"))
        assert record["command"].startswith(f"framefree bench {path.stem}")
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", record["date"])
        assert record["framefree"]
        assert all("cores" in run["machine"] for run in record["runs"])
        assert len(record["runs"]) > 1  # without, there is no spread


def test_the_numbers_of_the_readme_are_those_that_were_measured(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(DOCS), *sys.path])
    tables = importlib.import_module("measured_tables")
    lines = re.search(r"```\{headlines\}\n(.*?)```", (DOCS / "index.md").read_text("utf-8"), re.S)
    readme = (DOCS.parent / "README.md").read_text("utf-8")
    assert f"<!-- measured -->\n{tables.headlines(lines[1].splitlines())}\n" in readme
