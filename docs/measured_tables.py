"""Tables of what `framefree bench NAME --out docs/measured` wrote, for the page that shows them.

The directive ``{measured}`` of conf.py, with the name of a benchmark, becomes its circumstances,
its table and the command that repeats it. A sentence beside a figure says what it means; figures
without one are listed by their names. ``{headlines}`` is a short table of single figures of
several benchmarks.
"""

import json
from pathlib import Path

from framefree.cli.bench import medians, spreads

FOLDER = Path(__file__).parent / "measured"


def record(name):
    """Return what was kept of a benchmark."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def shown(value):
    """Return a figure with three digits, as people read it."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return str(value)
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:.1e}"


def table(kept, meanings):
    """Return Markdown: where, when and how it was measured, and each figure with its spread."""
    middle, ends = medians(kept["runs"]), spreads(kept["runs"])
    versions = [f"framefree {kept['framefree']}", f"Python {kept['python']}"]
    versions += [f"{key[8:]} {value}" for key, value in middle.items() if key.startswith("version")]
    facts = f"{kept['date']}; {middle['machine']}; {', '.join(versions)}."
    lines = [kept["about"], "", f"Measured {facts} Repeat it:", ""]
    lines += ["```sh", kept["command"], "```", ""]
    lines += ["| figure | median | from | to |", "|---|--:|--:|--:|"]
    for key, (low, high) in ends.items():
        if "spread" in key:  # of turns within a run; here runs are compared
            continue
        means = f"{meanings[key]}<br>`{key}`" if key in meanings else f"`{key}`"
        lines.append(f"| {means} | {shown(middle[key])} | {shown(low)} | {shown(high)} |")
    return "\n".join(lines)


def headlines(lines):
    """Return Markdown: what was compared with whom, how many times as fast, how to repeat it."""
    rows = ["| what | peer | times as fast | repeat it |", "|---|---|--:|---|"]
    for line in filter(str.strip, lines):
        place, what, peer = (part.strip() for part in line.split("|"))
        name, key = place.split()
        kept = record(name)
        value = medians(kept["runs"])[key]
        rows.append(f"| {what} | {peer} | {shown(value)} | `{kept['command']}` |")
    return "\n".join(rows)
