"""How the documentation is built: ``sphinx-build -W docs site``, in an environment with `[docs]`.

Pages with code cells are executed, and what they print is part of the page. Nothing is loaded from
elsewhere: no fonts, no scripts, no counters. Formulas become MathML, which browsers show by
themselves.
"""

import re
import sys
from pathlib import Path

import latex2mathml.converter
from docutils.nodes import SkipNode
from sphinx.util.docutils import SphinxDirective

import framefree

sys.path.insert(0, str(Path(__file__).parent))
from measured_tables import FOLDER, headlines, record, table

project = "framefree"
author = "the framefree developers"
copyright = "the framefree developers; MIT licence"
version = release = framefree.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]

nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_merge_streams = True
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4

default_role = "code"  # back-ticks in docstrings name things in code
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True, "imported-members": True}
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_use_ivar = True

# Types of attributes, such as (nu,), look like names to Sphinx; that several things are called so
# is no fault.
suppress_warnings = ["ref.python"]

html_theme = "pydata_sphinx_theme"
html_title = "framefree"
html_show_sourcelink = False
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {"**": ["globaltoc.html"]}
html_theme_options = {
    "navbar_center": [],
    "navbar_end": ["theme-switcher"],
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_math_renderer = "mathml"


def escaped(line: str) -> str:
    """Return a line of a docstring with its norms |v| as text, outside of code."""
    parts = re.split(r"(`+[^`]*`+)", line)
    return "".join(p if p.startswith("`") else p.replace("|", "\\|") for p in parts)


def escape_norms(app, what, name, obj, options, lines):
    """Keep |v| from being read as a substitution."""
    literal = False
    for k, line in enumerate(lines):
        if literal and line and not line.startswith(" "):
            literal = False
        if not literal:
            lines[k] = escaped(line)
        literal = literal or line.rstrip().endswith("::")


def inline_math(self, node):
    """Write a formula within a line."""
    self.body.append(latex2mathml.converter.convert(node.astext()))
    raise SkipNode


def displayed_math(self, node):
    """Write a formula on lines of its own."""
    self.body.append(latex2mathml.converter.convert(node.astext(), display="block"))
    raise SkipNode


class Measured(SphinxDirective):
    """``{measured} NAME``; its lines say what figures mean, ``figure: sentence``."""

    required_arguments = 1
    has_content = True

    def run(self):
        """Return the table as nodes."""
        name = self.arguments[0]
        self.env.note_dependency(str(FOLDER / f"{name}.json"))
        kept = record(name)
        meanings = dict(line.split(": ", 1) for line in self.content if line.strip())
        unknown = sorted(set(meanings) - set(kept["runs"][0]))
        if unknown:
            raise self.error(f"{name} has no figures {unknown}")
        return self.parse_text_to_nodes(table(kept, meanings))


class Headlines(SphinxDirective):
    """A line a figure, ``benchmark figure | what | peer``: a table with the commands."""

    has_content = True

    def run(self):
        """Return the table as nodes."""
        return self.parse_text_to_nodes(headlines(list(self.content)))


def setup(app):
    """Tell Sphinx of what is written above."""
    app.connect("autodoc-process-docstring", escape_norms)
    app.add_directive("measured", Measured)
    app.add_directive("headlines", Headlines)
    app.add_html_math_renderer("mathml", (inline_math, None), (displayed_math, None))
