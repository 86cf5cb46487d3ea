"""Kinds of parts that are loaded when they are asked for."""

import json
import subprocess
import sys

import framefree.machine
from framefree.gallery.machines.touching import ball
from framefree.lazy import resolved
from framefree.machine import Machine
from framefree.machine.later import PLACES
from framefree.machine.part import Part

READ = """
import json, sys
from framefree.machine import Machine
data = json.load(sys.stdin)
assert "framefree.machine.contact" not in sys.modules
print(json.dumps(Machine.from_dict(data).to_dict()) == json.dumps(data))
"""


def test_each_is_where_it_is_said_to_be():
    for name, place in PLACES.items():
        kind = resolved(place)
        assert kind is getattr(framefree.machine, name)
        assert kind.__name__ == name
        assert issubclass(kind, Part) or name == "Stops"


def test_a_record_is_read_by_a_process_that_has_not_loaded_them():
    machine = ball()
    data = machine.to_dict()
    assert Machine.from_dict(data) == machine
    done = subprocess.run(
        [sys.executable, "-c", READ],
        input=json.dumps(data),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "True", done.stderr
