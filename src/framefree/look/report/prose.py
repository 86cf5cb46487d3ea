"""Docstrings and numbers for the reader: HTML paragraphs, meanings of settings, short numbers."""

import inspect
import math
import re
from collections.abc import Collection, Iterable
from fnmatch import fnmatch
from html import escape
from typing import Any

import numpy as np

_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)


def headline(text: str) -> str:
    """Return the first line of a docstring."""
    return inspect.cleandoc(text).partition("\n")[0]


def body(text: str) -> str:
    """Return a docstring without its first line and without sections such as Parameters."""
    rest = inspect.cleandoc(text).partition("\n")[2]
    section = _SECTION.search(rest)
    return (rest[: section.start()] if section else rest).strip()


def meanings(text: str, sections: Collection[str] = ("Parameters", "Attributes")) -> dict[str, str]:
    """Return what sections of a docstring say of each name."""
    text = inspect.cleandoc(text)
    words: dict[str, str] = {}
    marks = [*_SECTION.finditer(text)]
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    for mark, end in zip(marks, ends, strict=False):
        if mark[1] not in sections:
            continue
        names: list[str] = []
        for line in text[mark.end() : end].splitlines():
            if line and not line[0].isspace():
                names = [name.strip() for name in line.partition(":")[0].split(",")]
            elif line.strip():
                for name in names:
                    words[name] = f"{words.get(name, '')} {line.strip()}".strip()
    return words


def paragraphs(text: str) -> str:
    """Return text as HTML: paragraphs, lists, indented blocks as they are, `code` marked."""
    parts = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        lines = block.splitlines()
        if not block.strip():
            continue
        if all(line.startswith("    ") for line in lines):
            parts.append(f"<pre>{escape(inspect.cleandoc(block))}</pre>")
        elif all(re.match(r"[-*] |  ", line) for line in lines):
            items = re.split(r"\n(?=[-*] )", block)
            rows = "".join(f"<li>{inline(item[2:])}</li>" for item in items)
            parts.append(f"<ul>{rows}</ul>")
        else:
            parts.append(f"<p>{inline(' '.join(line.strip() for line in lines))}</p>")
    return "\n".join(parts)


def inline(text: str) -> str:
    """Return one line of text as HTML, with `code` marked."""
    pieces = re.split(r"(``[^`]+``|`[^`]+`)", text)
    return "".join(
        f"<code>{escape(piece.strip('`'))}</code>" if piece.startswith("`") else escape(piece)
        for piece in pieces
    )


def number(value: Any, digits: int = 6) -> str:
    """Return a number, or anything else, as short text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, float | int):
        return str(value)
    if isinstance(value, int):
        return f"{value:d}" if abs(value) < 10**12 else f"{value:.6g}"
    if math.isnan(value):
        return "not a number"
    # Adding zero takes the sign from a zero.
    return re.sub(r"e([+-])0*(?=\d)", r"e\1", f"{value + 0.0:.{digits}g}").replace("e+", "e")


UNITS = {
    "m_per_s": "m/s", "mps": "m/s", "m_s": "m/s", "rad_per_s": "rad/s", "rad_s": "rad/s",
    "deg_per_s": "°/s", "deg_s": "°/s", "kg_m2": "kg m²", "per_s": "1/s", "nms": "Nm s",
    "ns": "N s", "n_s": "N s", "m": "m", "mm": "mm", "um": "µm",
    "rad": "rad", "deg": "°", "s": "s", "seconds": "s", "ms": "ms", "us": "µs", "n": "N",
    "nm": "Nm", "w": "W", "j": "J", "kg": "kg", "hz": "Hz", "percent": "%",
}  # fmt: skip
"""Units by the suffix of a metric's key."""


NAMES = {
    "mujoco": "MuJoCo", "pinocchio": "Pinocchio", "scipy": "SciPy", "casadi": "CasADi",
    "lyapunov": "Lyapunov", "rk4": "Runge-Kutta 4", "jax": "JAX", "imu": "IMU", "qp": "QP",
    "euler": "Euler", "lagrangian": "Lagrangian", "rmse": "rms error", "dbar": "unknown force",
}  # fmt: skip
"""Words of keys that people write otherwise."""


def metric_name(key: str) -> tuple[str, str]:
    """Return the name of a metric for people, and its unit: "end rms" and "m" of "end_rms_m".

    A number before the unit is part of the name: "error at 2 ms" of "error_2_ms".
    """
    if key == "wall_seconds":
        return "time on the clock", "s"
    for suffix, unit in UNITS.items():
        name = key.removesuffix(f"_{suffix}")
        where = re.fullmatch(r"(.+)_(\d+)", name) if name != key else None
        if where:
            return f"{_in_words(where[1])} at {where[2]} {unit}", ""
        if name != key:
            return _in_words(name), unit
    return _in_words(key), ""


def _in_words(key: str) -> str:
    return " ".join(NAMES.get(word, word) for word in key.split("_"))


def said_of(kind: type, *sections: str, below: type = object) -> dict[str, str]:
    """Return what sections of the docstrings of a class and its bases say, its own first.

    Only of classes below a base: what that base and its own bases say is left out.
    """
    said: dict[str, str] = {}
    for part in kind.__mro__[: kind.__mro__.index(below)]:
        own = meanings(part.__dict__.get("__doc__") or "", sections)
        said |= {name: words for name, words in own.items() if name not in said}
    return said


def metric_meanings(kind: type, keys: Iterable[str]) -> dict[str, str]:
    """Return a sentence on each metric, from the sections Metrics of a class and its bases.

    A name there may be a pattern, as in "*_rms_m"; what is said first counts.
    """
    said, found = said_of(kind, "Metrics"), {}
    for key in keys:
        near = [key] if key in said else [name for name in said if fnmatch(key, name)]
        if near:
            found[key] = said[near[0]]
    return found


def brief(value: Any, most: int = 280) -> str:
    """Return nested data of a header as one line."""
    text = _brief(value)
    return text if len(text) <= most else f"{text[: most - 2]} …"


def _brief(value: Any) -> str:
    if isinstance(value, dict):
        if "framefree_machine" in value or "not_recorded" in value:
            return str(value.get("name") or "a machine")
        kind = value.get("type", "")
        if kind == "SX" or (kind == "Parameters" and value.get("names")):
            return "live numbers"
        left_out = ("type", "name")
        items = {k: v for k, v in value.items() if k not in left_out and v not in (None, [], ())}
        inner = ", ".join(f"{key} {_brief(item)}" for key, item in items.items())
        return f"{kind} ({inner})" if kind and inner else kind or inner
    if isinstance(value, list | tuple):
        return ", ".join(
            f"[{_brief(i)}]" if isinstance(i, list | tuple) else _brief(i) for i in value
        )
    if isinstance(value, str):
        # Functions are recorded by where they were written, which tells a reader nothing.
        return "a function" if re.search(r"<(lambda|locals|[\w.]+\.\w+)>", value) else value
    return number(value, 6) if isinstance(value, float) else str(value)
