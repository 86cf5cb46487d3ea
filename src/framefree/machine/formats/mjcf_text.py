"""MJCF made safe before MuJoCo sees it: one plain document, every file it names vetted.

MuJoCo reads files wherever a model points and allocates whatever a model asks for. So the model
is parsed here, included files are put in place, what moves nothing is dropped, paths are replaced
by vetted absolute ones, and the result is written out again, one element per line. MuJoCo sees only
that text, and its line numbers lead back to the files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from framefree.errors import near
from framefree.machine.formats.markup import Element, Place, ReadError, parse, quoted
from framefree.machine.formats.mjcf_ignored import StillAttributes
from framefree.machine.formats.mjcf_schema import Known, schema
from framefree.machine.formats.mjcf_sizes import Sizes, whole
from framefree.machine.formats.options import ReadOptions
from framefree.machine.formats.source import Source, bytes_of
from framefree.machine.problems import Problems, known_names

_DROPPED = {
    "visual": "",
    "statistic": "",
    "custom": "",
    "size": "",
    "extension": "",
    "sensor": "sensors",
    "texture": "",
    "skin": "",
    "layer": "",
    "light": "",
    "camera": "",
}
_REFUSED = {
    "flex": "deformable bodies are not supported",
    "flexcomp": "deformable bodies are not supported",
    "deformable": "deformable bodies are not supported",
    "composite": "composite bodies are not supported; write the bodies out",
    "plugin": "MuJoCo plugins are not supported",
    "attach": "attached models are not supported; read both and use `machine.merge`",
    "model": "attached models are not supported; read both and use `machine.merge`",
}
_COMPILER_DROPPED = {
    "meshdir",
    "texturedir",
    "assetdir",
    "strippath",
    "discardvisual",
    "fusestatic",
    "usethread",
}
_MAY_BE_EMPTY = {
    *("name", "class", "childclass", "model", "file", "material", "texture", "user", "prefix"),
    *("meshdir", "texturedir", "assetdir", "content_type", "data"),
}
"""Attributes that are words. Of an empty row of numbers MuJoCo 4.0 fails in a way that no later
model survives: its next warning does not return."""
_LINE = re.compile(r"line (\d+)")
_ELEMENT = re.compile(r"Element name '[^']*', id \d+,?|Element '[^']*',?")


@dataclass
class Document:
    """MJCF text for MuJoCo, and where everything in it comes from.

    Attributes
    ----------
    text : str
    ignored : list of str
        What was dropped because it moves nothing.
    meshes : dict of str to str
        Path of each mesh asset by name, of those that come from a file.
    """

    text: str = ""
    ignored: list[str] = field(default_factory=list)
    meshes: dict[str, str] = field(default_factory=dict)
    _lines: list[str] = field(default_factory=list)
    _named: dict[tuple[str, str], str] = field(default_factory=dict)
    _ordered: dict[str, list[str]] = field(default_factory=dict)
    _settings: dict[tuple[str, str], str] = field(default_factory=dict)
    _file: str = ""

    def where(self, group: str, name: str, index: int = 0) -> str:
        """Return file, element and line of an element of one group, as far as they are known."""
        if name:
            return self._named.get((group, name), f"{self._file}, {group} `{name}`")
        ordered = self._ordered.get(group, [])
        if index < len(ordered):
            return ordered[index]
        return f"{self._file}, {group} number {index} (it has no name)"

    def where_set(self, tag: str, attribute: str) -> str:
        """Return where an option was set last: there may be several <option>."""
        return self._settings.get((tag, attribute), f"{self._file}, <{tag}>")

    def explain(self, message: str) -> str:
        """Return MuJoCo's message with its line led back to the file it comes from."""
        message = " ".join(message.replace("XML Error:", "").replace("Error:", "").split())
        mention = _LINE.search(message)
        at = int(mention.group(1)) - 1 if mention else -1
        if mention and 0 <= at < len(self._lines):
            rest = message[: mention.start()] + message[mention.end() :]
            return f"{self._lines[at]}: {_ELEMENT.sub('', rest).strip(' ,')}"
        return f"{self._file}: {message}"


_GROUPS = {"equality": "equality", "actuator": "actuator", "tendon": "tendon", "keyframe": "key"}


def document_of(
    source: Source, root: Element, options: ReadOptions, problems: Problems
) -> Document:
    """Return the safe text of a model, without elements that are refused.

    `problems` gets every element that is refused, every name that MJCF does not have, and every
    file that may not be read.

    Raises
    ------
    ReadError
        If the model asks for too much.
    """
    writer = _MjcfTextWriter(source, options, problems)
    writer.write(root)
    return writer.document


@dataclass(frozen=True)
class _Item:
    """An element in its file, how often it is repeated, and the section it stands in.

    `inside` is what MuJoCo knows of the element that holds it; None where that is not asked.
    """

    element: Element
    file: str
    folder: Path | None
    times: int = 1
    section: str = ""
    closing: bool = False
    depth: int = 0
    inside: Known | None = None

    @property
    def known(self) -> Known | None:
        """What MuJoCo knows of the element."""
        return None if self.inside is None else self.inside.child(self.element.tag)


class _MjcfTextWriter:
    def __init__(self, source: Source, options: ReadOptions, problems: Problems) -> None:
        self.source = source
        self.options = options
        self.problems = problems
        self.document = Document(_file=source.name)
        self.dropped: Counter[str] = Counter()
        self.included: set[Path] = set()
        self.sizes = Sizes()
        self.still = StillAttributes()
        self.folders = {"meshdir": "", "strip": ""}

    def write(self, root: Element) -> None:
        top = _Item(root, self.source.name, self.source.folder, inside=schema())
        items = list(self._expanded(top))
        self._note_folders(items)
        parts = []
        for item in items:
            if item.closing:
                parts.append(f"</{item.element.tag}>")
            else:
                attributes = self._attributes(item)
                parts.append(
                    f"<{item.element.tag}"
                    + "".join(f" {name}={quoted(v)}" for name, v in attributes.items())
                    + ">"
                )
                self._note_name(item)
                self.still.note(item.element)
            self.document._lines.append(_words(item))
        self.document.text = "\n".join(parts)
        for tag, count in self.dropped.items():
            reason = _DROPPED.get(tag) or ("left out on request" if tag not in _DROPPED else "")
            times = f" ({count} times)" if count > 1 else ""
            self.document.ignored.append(f"<{tag}>{times}{': ' if reason else ''}{reason}")
        self.document.ignored += self.still.notes

    # ------------------------------------------------------------------ the order of elements

    def _expanded(self, top: _Item) -> Iterator[_Item]:
        """Yield openings and closings in order, with included files in place."""
        stack = [top]
        while stack:
            item = stack.pop()
            if item.closing:
                yield item
                continue
            kept = self._included(item) if item.element.tag == "include" else [item]
            for one in reversed(kept):
                if one is not item:
                    stack.append(one)
                elif self._keeps(one):
                    yield one
                    stack.append(replace(one, closing=True))
                    stack.extend(self._children(one))

    def _children(self, item: _Item) -> list[_Item]:
        times = item.times
        if item.element.tag == "replicate":
            times *= whole(self._place(item), "count")
        section = item.section or (item.element.tag if item.depth == 1 else "")
        return [
            replace(
                item,
                element=child,
                times=times,
                section=section,
                depth=item.depth + 1,
                inside=item.known,
            )
            for child in reversed(item.element.children)
        ]

    def _has(self, item: _Item) -> bool:
        """Tell whether MJCF has an element where it stands, and note all names that it has not."""
        element, place = item.element, self._place(item)
        if item.inside is None:
            return True
        if item.known is None:
            place.problem(
                f"MJCF has no <{element.tag}> there{_nearest(element.tag, item.inside.children)}"
            )
            return False
        for name in element.attributes:
            if name not in item.known.attributes:
                place.problem(
                    f"MJCF has no attribute `{name}` of <{element.tag}>"
                    f"{_nearest(name, item.known.attributes)}"
                )
        return True

    def _keeps(self, item: _Item) -> bool:
        tag = item.element.tag
        if not self.sizes.fits(self._place(item), item.times, item.depth):
            self.problems.raise_if_any(ReadError)
        # Tendons stay: others may refer to them. What they do is left out after compiling.
        if tag in ("actuator", "equality") and tag in self.options.without and item.depth == 1:
            self.dropped[tag] += len(item.element.children)
            return False
        if tag in _DROPPED:
            self.dropped[tag] += max(1, len(item.element.children) if item.depth == 1 else 1)
            return False
        if tag in _REFUSED:
            if item.section != "default":  # a default that nothing uses moves nothing
                self._place(item).problem(f"<{tag}> is refused: {_REFUSED[tag]}")
            return False
        return self._has(item)

    def _included(self, item: _Item) -> list[_Item]:
        """Return the children of the root of an included file, in place of the <include>."""
        place = self._place(item)
        name = place.text("file")
        if name is None:
            return []
        path = self.source.find(name) or self._beside(item, name)
        if path is None:
            known = "the model's folder or in the given `packages`"
            place.problem(f"`{name}` is not a file in {known}")
            return []
        if path in self.included:
            place.problem(f"`{name}` is included twice")
            return []
        self.included.add(path)
        root = parse(bytes_of(path), name)
        if root.tag not in ("mujoco", "mujocoinclude"):
            place.problem(f"`{name}` must start with <mujocoinclude>, got <{root.tag}>")
            return []
        return [
            replace(item, element=child, file=name, folder=path.parent) for child in root.children
        ]

    def _beside(self, item: _Item, name: str) -> Path | None:
        """Return a file beside the including one, where MuJoCo looks second."""
        if item.folder is None:
            return None
        return self.source.find(str(item.folder / name))

    # ------------------------------------------------------------------ attributes

    def _note_folders(self, items: list[_Item]) -> None:
        for item in items:
            if item.element.tag == "compiler" and not item.closing:
                for name in ("assetdir", "meshdir"):
                    if name in item.element.attributes:
                        self.folders["meshdir"] = item.element.attributes[name]
                self.folders["strip"] = item.element.get("strippath") or self.folders["strip"]

    def _attributes(self, item: _Item) -> dict[str, str]:
        tag, known = item.element.tag, item.known
        attributes = {
            name: value
            for name, value in item.element.attributes.items()
            if known is None or name in known.attributes  # others are noted already
        }
        for name in [k for k, v in attributes.items() if not v.strip() and k not in _MAY_BE_EMPTY]:
            self._place(item).problem(f"`{name}` is empty")
            del attributes[name]
        if tag == "compiler":
            return {k: v for k, v in attributes.items() if k not in _COMPILER_DROPPED}
        if tag == "material":
            attributes.pop("texture", None)
        if tag == "key" and "actuator" in self.options.without:
            attributes.pop("ctrl", None)
            attributes.pop("act", None)
        for name in [name for name in attributes if name.startswith("file")]:
            attributes[name] = self._vetted(item, name, attributes[name])
        return attributes

    def _vetted(self, item: _Item, attribute: str, file: str) -> str:
        """Return the absolute path of a file that the model may read."""
        place = self._place(item)
        if item.element.tag not in ("mesh", "hfield") or attribute != "file":
            place.problem(f"<{item.element.tag}> must not name a file, got `{file}`")
            return ""
        if self.folders["strip"] == "true":
            file = re.split(r"[/\\]", file)[-1]
        path = self._beside_model_or_include(item, file)
        if path is None:
            inside = "the model's folder" if self.source.folder else "a model given as text"
            place.problem(f"`{file}` is not a file in {inside} or in the given `packages`")
            return ""
        if item.element.tag == "mesh":
            name = item.element.get("name") or Path(file).stem
            self.document.meshes[name] = str(path)
        return str(path)

    def _beside_model_or_include(self, item: _Item, file: str) -> Path | None:
        """Return a file in the mesh folder of the model, or of the included file that names it."""
        folder = self.folders["meshdir"]
        named = str(Path(folder) / file) if folder else file
        places = [named]
        if item.folder is not None:
            places += [str(item.folder / named), str(item.folder / file)]
        return next((path for path in map(self.source.find, places) if path is not None), None)

    # ------------------------------------------------------------------ places

    def _note_name(self, item: _Item) -> None:
        name, words = item.element.get("name"), _words(item)
        tag = "joint" if item.element.tag == "freejoint" else item.element.tag
        group = _GROUPS.get(item.section, tag)
        if tag in ("option", "flag", "compiler"):
            for attribute in item.element.attributes:
                self.document._settings[tag, attribute] = words
        if name:
            self.document._named.setdefault((group, name), words)
        if item.section in _GROUPS and item.depth == 2:
            # MuJoCo keeps the order of these; bodies and joints may come from a <replicate>.
            self.document._ordered.setdefault(group, []).append(words)

    def _place(self, item: _Item) -> Place:
        return Place(item.file, item.element, _label(item.element), self.problems)


def _nearest(name: str, known: Iterable[str]) -> str:
    """Return the names most like a misspelt one, in words."""
    return f"; {near(name, known).strip() or f'there are {known_names(known)}'}"


def _label(element: Element) -> str:
    name = element.get("name")
    return f"<{element.tag}> `{name}`" if name else f"<{element.tag}>"


def _words(item: _Item) -> str:
    return f"{item.file}, {_label(item.element)}, line {item.element.line}"
