"""One HTML file that opens offline: text, tables, figures and animations."""

from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from plotly.offline import get_plotlyjs

from framefree.files import MADE_BY, write_file
from framefree.look.report.content import (
    Animation,
    Figure,
    Page,
    Promise,
    ReportError,
    Setting,
    Table,
)
from framefree.look.report.facts import facts_of, machine_text
from framefree.look.report.packing import compressed, script_json
from framefree.look.report.plot import PAGE_POINTS, plot
from framefree.look.report.prose import body, headline, inline, metric_name, number, paragraphs
from framefree.look.report.scene import drawn_machine, scene
from framefree.look.report.terms import terms_in
from framefree.simulate.describe import versions
from framefree.simulate.run import Run

_ICONS = (
    '<svg class="start" viewBox="0 0 16 16" aria-hidden="true"><path d="M3 1.5v13l11-6.5z"/></svg>'
    '<svg class="stop" viewBox="0 0 16 16" aria-hidden="true">'
    '<path d="M3 2h3.5v12H3zM9.5 2H13v12H9.5z"/></svg>'
)
BESIDE = 12
"""Most promises that stand beside an animation; more of them stand below, in columns."""


def write(page: Page, path: Any) -> Path:
    """Write a page as one HTML file, making its folder; return its path.

    A page that framefree has made is replaced, any other file refused.

    Raises
    ------
    ReportError
        If the system does not let it be written: a full disk, a folder that is read-only. Nothing
        is left of it then, and a page that was there stays.
    """
    text = html(page)
    try:
        return write_file(path, text, guard=True)
    except OSError as error:
        raise ReportError(
            f"the report `{path}` cannot be written: {error.strerror or error}"
        ) from error


def html(page: Page) -> str:
    """Return a page as HTML."""
    data: list[str] = []
    shown, hidden = _animations(page, data)
    notes = (*page.notes, *hidden)
    sections = [
        _header(page),
        _top(shown, page),
        _words(page),
        _section("Notes", "".join(paragraphs(note) for note in notes)),
        *(
            _section(escape(table.title), _table(table))
            for table in page.tables
            if not table.folded
        ),
        _section("Figures", _figures(page.figures, data)),
        *(_folded(escape(t.title), _table(t)) for t in page.tables if t.folded),
        _section("Metrics", _metrics(page.metrics, page.meanings)),
        _section("What was simulated", _simulated(page)),
        f"<footer>Written by framefree {escape(versions().get('framefree', ''))}.</footer>",
    ]
    assets = files("framefree.look.report") / "assets"
    script = (assets / "report.js").read_text(encoding="utf-8")
    style = (assets / "report.css").read_text(encoding="utf-8")
    return "\n".join(
        [
            f"<!doctype html>\n<!-- {MADE_BY} -->",
            '<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            # Nothing outside this file is ever asked for.
            '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
            "script-src 'unsafe-inline' 'unsafe-eval' blob:; style-src 'unsafe-inline'; "
            'img-src data: blob:; font-src data:; connect-src data: blob:; worker-src blob:">',
            f'<link rel="icon" href="data:,">\n<title>{escape(page.title)}</title>',
            f"<style>\n{style}</style>\n</head>\n<body>\n<main>",
            *(section for section in sections if section),
            "</main>",
            *data,
            f'<script type="text/plain" id="plotly">{_library()}</script>',
            f"<script>{script}</script>\n</body>\n</html>\n",
        ]
    )


@cache
def _library() -> str:
    """Return the library that draws, compressed and as text."""
    return compressed(get_plotlyjs())


# ---------------------------------------------------------------------- sections


def _header(page: Page) -> str:
    text = headline(page.text) if page.text else ""
    parts = ['<header><div class="kind">framefree report</div>', f"<h1>{escape(page.title)}</h1>"]
    if text:
        parts.append(f'<p class="lead">{inline(text)}</p>')
    parts.append(_verdict(page))
    if page.text:
        parts.append(paragraphs(body(page.text)))
    return "\n".join([*parts, "</header>"])


def _verdict(page: Page) -> str:
    if page.trouble:
        return f'<div class="trouble bad">{escape(page.trouble)}</div>'
    if not page.promises:
        return ""
    failed = sum(not promise.holds for promise in page.promises)
    count = len(page.promises)
    if failed:
        words = f"{failed} of {count} promises {'does' if failed == 1 else 'do'} not hold"
        return f'<span class="badge bad">{words}</span>'
    words = "the promise holds" if count == 1 else f"all {count} promises hold"
    return f'<span class="badge good">{words}</span>'


def _top(animations: list[str], page: Page) -> str:
    """Return the first animation beside the promises, or above many, and further ones below."""
    promises = _promises(page.promises)
    if not animations:
        return promises
    split = " split" if 0 < len(page.promises) <= BESIDE else ""
    first = f'<div class="top{split}">{animations[0]}{promises}</div>'
    rest = "".join(animations[1:])
    return first + (f'<div class="grid">{rest}</div>' if rest else "")


def _section(title: str, content: str) -> str:
    return f"<section><h2>{title}</h2>\n{content}\n</section>" if content else ""


def _folded(title: str, content: str) -> str:
    return f'<details class="card"><summary>{title}</summary>{content}</details>' if content else ""


def _promises(promises: tuple[Promise, ...]) -> str:
    if not promises:
        return ""
    rows = "".join(
        f'<tr><td class="mark">{_mark(promise.holds)}</td><td>{inline(promise.text)}'
        f'<div class="figures"><span class="measured">{escape(promise.measured)}</span>'
        f'<span class="bound">{escape(promise.limit)}</span></div></td></tr>'
        for promise in promises
    )
    kind = f"card promises{' many' if len(promises) > BESIDE else ''}"
    return f'<section class="{kind}"><h3>Promises</h3><table>{rows}</table></section>'


def _words(page: Page) -> str:
    """Return what the terms mean that the page uses."""
    texts = [body(page.text), headline(page.text), *page.notes]
    texts += [promise.text for promise in page.promises]
    texts += [
        text for part in (*page.figures, *page.animations) for text in (part.title, part.caption)
    ]
    texts += page.meanings.values()
    rows = "".join(
        f"<div><dt>{escape(term)}</dt><dd>{escape(words)}</dd></div>"
        for term, words in terms_in(texts).items()
    )
    return (
        _section("Words used here", f'<div class="card"><dl class="terms">{rows}</dl></div>')
        if rows
        else ""
    )


def _mark(holds: bool) -> str:
    if holds:
        return '<span class="good" role="img" aria-label="holds">✓</span>'
    return '<span class="bad" role="img" aria-label="does not hold">✗</span>'


def _metrics(metrics: Mapping[str, Any], meanings: Mapping[str, str]) -> str:
    if not metrics:
        return ""
    rows = "".join(_metric(key, value, meanings.get(key, "")) for key, value in metrics.items())
    return f'<div class="card"><div class="metrics">{rows}</div></div>'


def _metric(key: str, value: Any, meaning: str) -> str:
    name, unit = metric_name(key)
    shown = f"{number(value)} {unit}" if isinstance(value, float | int) and unit else number(value)
    kind = "words" if isinstance(value, str) else "number"
    return (
        f'<div class="metric"><div><span class="key" title="{escape(key)}">{escape(name)}</span>'
        f'<span class="{kind}" title="{escape(repr(value))}">{escape(shown)}</span></div>'
        f"{_caption(meaning)}</div>"
    )


def _table(table: Table) -> str:
    kinds = ["key", *(_kind(column) for column in list(zip(*table.rows, strict=True))[1:])]
    head = "".join(
        f'<th class="{kind}">{escape(name)}</th>'
        for kind, name in zip(kinds, table.columns, strict=False)
    )
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td class="{kind}" data-column="{escape(name)}">'
            f"{escape(value if isinstance(value, str) else number(value))}</td>"
            for kind, name, value in zip(kinds, table.columns, row, strict=True)
        )
        + "</tr>"
        for row in table.rows
    )
    return (
        f'<div class="card scroll"><table><tr class="head">{head}</tr>{rows}</table></div>'
        if rows
        else ""
    )


def _kind(column: Sequence[Any]) -> str:
    """Tell a column of sentences, which wrap, from one of numbers or single words."""
    texts = any(isinstance(value, str) and len(value) > 24 for value in column)
    return "words" if texts else "value"


def _animations(page: Page, data: list[str]) -> tuple[list[str], list[str]]:
    """Return the animations, and notes on those that cannot be shown."""
    shown, hidden = [], []
    for animation in page.animations:
        if animation.run.machine is None or not len(animation.run.t):
            hidden.append(
                f"{animation.title}: no animation, because the machine of the run has parts that "
                "live only in Python, or nothing was recorded."
            )
        else:
            shown.append(_animation(animation, _stored(scene(animation), data)))
    return shown, hidden


def _animation(animation: Animation, stored: str) -> str:
    return (
        f'<section class="card animation"><h3>{inline(animation.title)}</h3>'
        f'<div class="scene" tabindex="0" aria-label="Motion: space plays, '
        f'arrow keys move in time" data-of="{stored}"></div><div class="controls">'
        f'<button type="button" aria-label="Play">{_ICONS}</button>'
        '<input type="range" min="0" max="1" step="any" value="0" aria-label="Time">'
        '<output></output><select aria-label="Speed"></select></div>'
        f"{_caption(animation.caption)}</section>"
    )


def _figures(figures: tuple[Figure, ...], data: list[str]) -> str:
    cards, points = [], PAGE_POINTS // max(len(figures), 1)
    for figure in figures:
        wide = " wide" if len(figures) == 1 or figure.z_label else ""
        kind = "figure space" if figure.z_label else "figure"
        cards.append(
            f'<section class="card{wide}"><h3>{inline(figure.title)}</h3>'
            f'<div class="{kind}" data-of="{_stored(plot(figure, points), data)}"></div>'
            f"{_caption(figure.caption)}</section>"
        )
    return f'<div class="grid">{"".join(cards)}</div>' if cards else ""


def _caption(text: str) -> str:
    return f'<p class="caption">{inline(text)}</p>' if text else ""


def _stored(content: dict[str, Any], data: list[str]) -> str:
    """Put the data of a figure into the page; return the name of its element."""
    name = f"data-{len(data)}"
    text = script_json(content)
    data.append(f'<script type="application/json" id="{name}">{text}</script>')
    return name


# ---------------------------------------------------------------------- what was simulated


def _simulated(page: Page) -> str:
    parts = [_settings(page.settings)]
    parts += [_run(name, run, i == 0) for i, (name, run) in enumerate(page.runs.items())]
    parts += _machines(_with_different_machines(page.runs))
    return "\n".join(part for part in parts if part)


def _settings(settings: tuple[Setting, ...]) -> str:
    if not settings:
        return ""
    rows = "".join(
        f'<tr><td class="key">{escape(setting.name)}</td>'
        f'<td class="key">{escape(number(setting.value))}</td>'
        f"<td>{inline(setting.meaning)}</td></tr>"
        for setting in settings
    )
    table = f'<div class="scroll"><table class="settings">{rows}</table></div>'
    return f'<div class="card"><h3>Settings</h3>{table}</div>'


def _run(name: str, run: Run, first: bool) -> str:
    rows = "".join(
        f'<tr><th>{escape(label)}</th><td class="words">{inline(text)}</td></tr>'
        for label, text in facts_of(run).items()
    )
    return (
        f'<details class="card"{" open" if first else ""}><summary>Run <code>{escape(name)}</code>'
        f'</summary><table class="facts">{rows}</table></details>'
    )


def _with_different_machines(runs: Mapping[str, Run]) -> dict[str, Run]:
    shown: dict[str, Run] = {}
    for name, run in runs.items():
        if run.machine is not None and all(run.machine != one.machine for one in shown.values()):
            shown[name] = run
    return shown


def _machines(runs: Mapping[str, Run]) -> list[str]:
    """Return what machines consist of; those of one name are told apart by a run."""
    machines = {run: drawn_machine(one) for run, one in runs.items()}
    names = {run: machine.name or "the machine" for run, machine in machines.items()}
    found = []
    for run, machine in machines.items():
        again = list(names.values()).count(names[run]) > 1
        of = f" (run <code>{escape(run)}</code>)" if again else ""
        found.append(
            f'<details class="card"><summary>{escape(names[run])}{of}: bodies, joints, masses'
            f"</summary><pre>{escape(machine_text(machine))}</pre></details>"
        )
    return found
