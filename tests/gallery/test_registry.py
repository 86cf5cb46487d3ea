"""Every machine that a scenario builds can be named on the command line; `base` is obeyed."""

import ast
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

from framefree import FramefreeError, Machine, gallery
from framefree.gallery import MACHINES, SCENARIOS, gallery_machine, machines
from framefree.gallery.shared.results import settings_of
from framefree.look.report.prose import meanings, said_of
from framefree.machine import Free

SOURCES = sorted(Path(gallery.__file__).parent.joinpath("scenarios").rglob("*.py"))


def makers():
    """All public functions of gallery/machines that return a machine."""
    for found in pkgutil.iter_modules(machines.__path__):
        module = importlib.import_module(f"{machines.__name__}.{found.name}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            own = function.__module__ == module.__name__ and not name.startswith("_")
            if own and inspect.signature(function).return_annotation is Machine:
                yield function


def test_every_machine_of_the_gallery_has_a_name():
    assert set(makers()) == set(MACHINES.values())


def test_scenarios_take_their_machines_from_the_gallery():
    """None builds a machine beside the registry."""
    assert len(SOURCES) > len(SCENARIOS)
    for path in SOURCES:
        calls = [n.func for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
        named = {c.id for c in calls if isinstance(c, ast.Name)}
        named |= {c.attr for c in calls if isinstance(c, ast.Attribute)}
        assert not named & {"Machine", "read", "from_dict"}, path


def test_scenarios_do_not_look_at_the_clock():
    """Seconds depend on what else the computer does; they are measured by `framefree bench`."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert all(alias.name not in ("time", "timeit") for alias in node.names), path
            elif isinstance(node, ast.ImportFrom):
                assert node.module not in ("time", "timeit"), path


@pytest.mark.parametrize("name", MACHINES)
def test_machines_are_made_and_described(name):
    machine = gallery_machine(name)
    assert machine.bodies
    assert MACHINES[name].__doc__.startswith("Return ")


def test_a_free_base_can_be_held():
    held = gallery_machine("auv-arm", "fixed")
    assert held.nv == 7
    assert gallery_machine("auv-arm", "free") == gallery_machine("auv-arm")


def test_a_machine_on_the_world_cannot_be_let_free():
    assert gallery_machine("iiwa", "fixed") == gallery_machine("iiwa")
    with pytest.raises(FramefreeError, match="the base of `iiwa` cannot be free: the machine"):
        gallery_machine("iiwa", "free")
    with pytest.raises(FramefreeError, match="moves in a plane and has no fixed variant"):
        gallery_machine("rover-arm", "fixed")


def test_what_a_robot_holds_is_not_its_base():
    with pytest.raises(FramefreeError, match="cannot be free"):
        gallery_machine("two-armed-robot-with-object", "free")
    held = gallery_machine("two-armed-robot-with-object", "fixed")
    assert any(isinstance(joint.kind, Free) for joint in held.joints)


def test_base_has_three_values():
    with pytest.raises(FramefreeError, match="`base` must be one of None, 'free', 'fixed'"):
        gallery_machine("iiwa", "x")


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_setting_has_a_meaning_and_metrics_have_sentences(name):
    scenario = SCENARIOS[name]()
    assert [setting.name for setting in settings_of(scenario) if not setting.meaning] == []
    said = said_of(type(scenario), "Metrics")
    assert len(said) > 3
    assert all(words.endswith(".") for words in said.values())


def test_what_a_metric_means_is_said_once():
    """Scenarios of one document share sentences through a base, not by copies."""
    seen = {}
    for scenario in SCENARIOS.values():
        folder = scenario.__module__.rpartition(".")[0]
        for name, words in meanings(scenario.__doc__ or "", ("Metrics",)).items():
            assert seen.setdefault((folder, name, words), scenario) is scenario


def test_promises_say_neither_bound_nor_unit_in_their_words():
    """The report adds both, so that a sentence reads on its natural side."""
    wrong = re.compile(r"\((m|N|J|W|deg|rad|1/s|Nm)\)|to 1e-|, (m|N|J|rad|deg|s|Nm)$|at most \d")
    seen = 0
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and "Promise" in ast.unparse(node.func):
                texts = [c.value for c in ast.walk(node) if isinstance(c, ast.Constant)]
                texts = [text for text in texts if isinstance(text, str) and len(text) > 12]
                seen += bool(texts)
                assert not [text for text in texts if wrong.search(text)], path
    assert seen > 50
