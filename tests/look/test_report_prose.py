"""Docstrings as HTML, meanings of settings, numbers for readers."""

import numpy as np
import pytest

from framefree.look.report.prose import (
    body,
    brief,
    headline,
    inline,
    meanings,
    metric_meanings,
    metric_name,
    number,
    paragraphs,
)
from framefree.look.report.terms import terms_in

TEXT = """First line.

    A paragraph
    of two lines with `code` and ``more``.

        a = b

    - one
      goes on
    - two

    Parameters
    ----------
    a, b : float
        Both
        mean this.
    c : int

    Returns
    -------
    d : float
        Not a setting.
    """


def test_parts_of_a_docstring():
    assert headline(TEXT) == "First line."
    assert meanings(TEXT) == {"a": "Both mean this.", "b": "Both mean this."}
    assert "Parameters" not in body(TEXT)
    assert body("Only a line.") == ""


def test_paragraphs_blocks_and_lists():
    assert paragraphs(body(TEXT)).splitlines() == [
        "<p>A paragraph of two lines with <code>code</code> and <code>more</code>.</p>",
        "<pre>a = b</pre>",
        "<ul><li>one",
        "  goes on</li><li>two</li></ul>",
    ]


def test_inline_text_is_escaped():
    assert inline("a < b `c < d`") == "a &lt; b <code>c &lt; d</code>"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.23456789, "1.23457"),
        (np.float64(1e-12), "1e-12"),
        (1e-6, "1e-6"),
        (2.5e20, "2.5e20"),
        (-0.0, "0"),
        (np.int64(7), "7"),
        (20000, "20000"),
        (True, "True"),
        (np.True_, "True"),
        (float("nan"), "not a number"),
        (float("-inf"), "-inf"),
        ("word", "word"),
    ],
)
def test_numbers(value, text):
    assert number(value) == text


def test_nested_data_in_a_line():
    data = {
        "type": "Noise",
        "x": 0.1,
        "other": None,
        "list": [1, 2.5],
        "none": [],
        "path": "<framefree.gallery.scenarios.vehicles.auv_arm_parts.DiveLoop.gripper>",
        "machine": {"name": "arm", "framefree_machine": 1},
    }
    assert brief(data) == "Noise (x 0.1, list 1, 2.5, path a function, machine arm)"
    assert len(brief(list(range(1000)))) == 280


def test_metrics_have_names_and_units():
    assert metric_name("end_position_rms_m") == ("end position rms", "m")
    assert metric_name("top_speed_rad_per_s") == ("top speed", "rad/s")
    assert metric_name("torque_max_nm") == ("torque max", "Nm")
    assert metric_name("speedup") == ("speedup", "")
    assert metric_name("rate_error_2_ms") == ("rate error at 2 ms", "")
    assert metric_name("mujoco_error_rad") == ("MuJoCo error", "rad")


class Measured:
    """Something.

    Metrics
    -------
    one_*
        First.
    one_m
        Exactly this.
    """


class Nearer(Measured):
    """Something.

    Metrics
    -------
    one_n
        Of the class itself.
    """


def test_sentences_on_metrics_come_from_the_class_then_its_bases():
    assert metric_meanings(Nearer, ["one_m", "one_s", "one_n", "two"]) == {
        "one_m": "Exactly this.",
        "one_s": "First.",
        "one_n": "Of the class itself.",
    }


def test_terms_are_found_where_they_are_meant():
    assert set(terms_in(["V falls", "the power (W) is 12 W"])) == {"V"}
    assert set(terms_in(["a critically damped arm"])) == {"critically damped"}
    assert set(terms_in(["`strict` is a name here"])) == set()
    assert set(terms_in(["Published numbers, the STRICT law"])) == {"published", "strict"}
