"""What the documentation points at is there: links, names, files, errata, sources, offers."""

import importlib
import re
from pathlib import Path

import pytest

import framefree
from framefree.gallery import MACHINES
from framefree.motion import Embedded, Maximal, Redundant, Tree, equations
from framefree.motion.redundant.lagrange import Lagrange

SOURCE = Path(framefree.__file__).parent
ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
ERRATUM = r"\bE\d+-\d+\b"


def text(path):
    return path.read_text(encoding="utf-8")


def every_source():
    return "\n".join(text(path) for path in SOURCE.rglob("*.py"))


def resolves(name):
    """Whether a dotted name is a module or what one has; a last part in capitals is any."""
    parts = [part for part in name.split(".") if not (part.isupper() and part != name)]
    for k in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        return all((value := getattr(value, part, None)) is not None for part in parts[k:])
    return False


def test_names_that_do_not_exist_are_noticed():
    assert resolves("framefree.motion.state.State")
    assert resolves("framefree.control.NAME")
    assert not resolves("framefree.motion.state.Nothing")
    assert not resolves("framefree.motion.nothing.NAME")
    assert not resolves("framefree.motion.nothing")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    prose = re.sub(r"```.*?```", "", text(page), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose)
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_dotted_names_exist(page):
    written = re.findall(r"\b(?:framefree|ff)(?:\.[A-Za-z_]\w*)+", text(page))
    names = {re.sub(r"^ff\.", "framefree.", name) for name in written}
    assert sorted(name for name in names if not resolves(name)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_files_exist(page):
    named = set(re.findall(r"`((?:[a-z_0-9.]+/)+(?:[a-z_0-9]+\.\w+)?)`", text(page)))
    roots = (SOURCE, ROOT, page.parent)
    assert sorted(n for n in named if not any((root / n).exists() for root in roots)) == []


def test_the_glossary_names_modules():
    rows = re.findall(r"\| `([\w.]+)` \|$", text(ROOT / "docs" / "glossary.md"), re.MULTILINE)
    assert len(rows) > 20
    assert [name for name in rows if not resolves(f"framefree.{name}")] == []


def test_errata_that_the_code_cites_are_listed():
    listed = set(re.findall(ERRATUM, text(ROOT / "docs" / "errata.md")))
    cited = set(re.findall(ERRATUM, every_source()))
    tests = (text(path) for path in (ROOT / "tests").rglob("*.py"))
    cited |= {name for one in tests for name in re.findall(ERRATUM, one)}
    assert sorted(cited - listed) == []


def test_sources_that_the_code_cites_are_listed():
    listed = re.findall(r"\*\*\[(\w+)\]\*\*", text(ROOT / "docs" / "bibliography.md"))
    cited = set(re.findall(r"\[([A-Za-z]+\d{4})\b[^\]]*\]", every_source()))
    pages = (text(page) for page in PAGES)
    cited |= {key for page in pages for key in re.findall(r"\[([A-Z][a-z]+\d{4})\b", page)}
    assert sorted(cited - set(listed)) == []
    assert listed == sorted(set(listed), key=str.lower)


def test_the_table_of_formulations_lists_what_they_offer():
    page = text(ROOT / "docs" / "formulations.md").partition("<!-- offers -->")[2]
    rows = [re.split(r" *\| *", line.strip("| ")) for line in page.strip().splitlines()]
    head, rows = rows[0][2:], rows[2 : rows.index([""])]
    constrained = equations(MACHINES["four-bars"](), "constrained")
    offers = {
        "tree": Tree.offers,
        "maximal": Maximal.offers,
        "embedded": Embedded.offers,
        "constrained": constrained.offers,
        "redundant": Redundant.offers,
        "Lagrangian": ("mass", "coriolis", *Lagrange.offers),
    }
    for k, name in enumerate(head):
        yes = [row[0].strip("`") for row in rows if (row[2:] + [""] * len(head))[k] == "yes"]
        assert sorted(yes) == sorted(offers[name]), name
