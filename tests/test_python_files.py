"""Commands take a Python file that defines a machine; what is wrong in it is told by its line."""

import json

import pytest

from framefree.cli.python_file import python_file
from framefree.errors import FramefreeError
from test_cli import framefree_command

PENDULUM = """
import casadi as ca
import numpy as np
from framefree.geometry import Moments
from framefree.machine import Body, Joint, Machine, Revolute

def machine():
    rod = Moments.of_body(2.0, (0, 0, 0.3), np.diag([0.1, 0.2, 0.1]))
    joint = Joint("hinge", Revolute("y"), "world", "rod", lower=-1, upper=1)
    return Machine([Body("rod", rod)], [joint], name="pendulum")

def mass(x):
    return ca.SX(MASS)

def coriolis(x, v):
    return ca.SX(0.0)

mass_estimate = [[0.3]]
"""


@pytest.mark.parametrize(("mass", "code"), [("2.0 * 0.3**2 + 0.2", 0), ("0.2", 1)])
def test_a_machine_of_ones_own_is_checked_with_its_matrices(tmp_path, mass, code):
    file = tmp_path / "my.py"
    file.write_text(PENDULUM.replace("MASS", mass))
    done = framefree_command("check", str(file), "--json")
    assert done.returncode == code, done.stderr
    found = json.loads(done.stdout)
    assert found["machine"] == "pendulum"
    assert found["own_mass_residual_verdict"] == ("pass" if code == 0 else "fail")
    assert found["own_bias_residual_verdict"] == "pass"
    assert found["mass_estimate_error"] == pytest.approx(1 - 0.3 / 0.38)


def test_other_commands_take_it_too(tmp_path):
    file = tmp_path / "my.py"
    file.write_text(PENDULUM.replace("MASS", "1"))
    done = framefree_command("show", str(file), "--picture", str(tmp_path / "my.svg"))
    assert done.returncode == 0
    assert "hinge" in done.stdout
    refused = framefree_command("show", str(file), "--base", "free")
    assert refused.returncode == 2
    assert "makes its machine itself" in refused.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n", "defines no `machine`: a framefree.Machine"),
        ("machine = 3\n", "must be a framefree.Machine, or a function .* got int"),
        ("a = 1\nb = a / 0\n", "my.py`, line 2: ZeroDivisionError"),
        ("a = (\n", "my.py`, line 1: SyntaxError"),
        ("def machine():\n    return nothing\n", "my.py`, line 2: NameError"),
    ],
)
def test_what_is_wrong_in_the_file_is_told(tmp_path, text, words):
    file = tmp_path / "my.py"
    file.write_text(text)
    with pytest.raises(FramefreeError, match=words):
        python_file(str(file))


def test_a_file_that_is_not_there_is_told():
    with pytest.raises(FramefreeError, match=r"there is no file `nothing\.py`"):
        python_file("nothing.py")
