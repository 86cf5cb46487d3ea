"""Names explain themselves: one class of each name, and a docstring on everything public."""

import ast
from collections import Counter, defaultdict
from pathlib import Path

import framefree

SOURCE = Path(framefree.__file__).parent


def _definitions(kinds):
    """Yield (file, definition) for what stands at the level of a module."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, kinds):
                yield path.relative_to(SOURCE).as_posix(), node


def test_no_two_classes_have_one_name():
    places = defaultdict(list)
    for file, node in _definitions(ast.ClassDef):
        places[node.name].append(f"{file}:{node.lineno}")
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert not twice


def test_everything_public_has_a_docstring():
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    silent = [
        f"{file}:{node.lineno} {node.name}"
        for file, node in _definitions(kinds)
        if not node.name.startswith("_") and not ast.get_docstring(node)
    ]
    assert not silent


def test_no_two_test_files_have_one_name():
    """Pytest imports them by their names alone."""
    names = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []
