"""The site builds without a warning; its pages lead somewhere and load nothing from elsewhere."""

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

ROOT = Path(__file__).parents[1]


class PageLinks(HTMLParser):
    """What a page links to, what it loads, and the places that can be linked to."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.places = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.places |= {found[key] for key in ("id", "name") if found.get(key)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in ("script", "img", "iframe", "video", "source") and found.get("src"):
            self.loaded.append(found["src"])
        if tag == "link" and "canonical" not in (found.get("rel") or ""):
            self.loaded.append(found.get("href", ""))


def dead_links(site):
    """Return internal links of a built site whose page or place is not there."""
    pages = {path.resolve(): PageLinks(path.read_text("utf-8")) for path in site.rglob("*.html")}
    dead = []
    for path, page in pages.items():
        for link in page.links:
            target, place = urldefrag(link)
            if "://" in link or link.startswith("mailto:"):
                continue
            goal = (path.parent / unquote(target)).resolve() if target else path
            known = pages[goal].places if goal in pages else set()
            if not goal.exists() or (goal in pages and place and unquote(place) not in known):
                dead.append((path.name, link))
    return dead


def loaded_from_elsewhere(site):
    """Return what pages load from other hosts."""
    pages = {path.name: PageLinks(path.read_text("utf-8")) for path in site.rglob("*.html")}
    return [(name, u) for name, page in pages.items() for u in page.loaded if "//" in u]


def test_dead_links_and_other_hosts_are_noticed(tmp_path):
    (tmp_path / "a.html").write_text('<p id="x"><a href="b.html#y"></a><a href="#x"></a></p>')
    (tmp_path / "b.html").write_text('<script src="https://other.org/a.js"></script>')
    assert dead_links(tmp_path) == [("a.html", "b.html#y")]
    assert loaded_from_elsewhere(tmp_path) == [("b.html", "https://other.org/a.js")]
    (tmp_path / "b.html").write_text('<h1 id="y"></h1><script src="a.js"></script>')
    assert dead_links(tmp_path) == loaded_from_elsewhere(tmp_path) == []


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_leads_somewhere(tmp_path):
    pytest.importorskip("myst_nb")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", str(ROOT / "docs"), str(tmp_path)]
    built = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
    assert built.returncode == 0, built.stderr[-3000:]
    assert dead_links(tmp_path) == []
    assert loaded_from_elsewhere(tmp_path) == []
