"""XML of untrusted model files as a tree of elements that know their line.

Parsed by the standard library's expat, one event at a time, so that a document type (and with
it every entity), too many elements or too deep nesting stop the parser before they cost anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.parsers import expat

from framefree.machine.problems import MachineError, Problems

MAX_BYTES = 64 * 2**20
MAX_DEPTH = 400
MAX_ELEMENTS = 200_000

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


class ReadError(MachineError):
    """A model file cannot be read, or asks for something that framefree does not have."""


@dataclass(slots=True)
class Element:
    """An XML element: tag, attributes, children, text, and the line it starts on.

    It notes what a reader asks for, so that what nobody asked for can be listed (`unread`).
    """

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)
    text: str = ""
    asked: set[str] = field(default_factory=set, repr=False, compare=False)
    taken: bool = field(default=False, repr=False, compare=False)

    def get(self, name: str, default: str | None = None) -> str | None:
        """Value of an attribute, or `default`."""
        self.asked.add(name)
        return self.attributes.get(name, default)

    def all(self, *tags: str) -> list[Element]:
        """Children of these tags, in their order."""
        found = [child for child in self.children if child.tag in tags]
        for child in found:
            child.taken = True
        return found

    def first(self, tag: str) -> Element | None:
        """First child of this tag, or None."""
        for child in self.children:
            if child.tag == tag:
                child.taken = True
                return child
        return None

    def content(self) -> str:
        """Text between the element's tags, without the blanks around it."""
        self.asked.add(TEXT)
        return self.text.strip()

    def take_whole(self) -> None:
        """Count everything in this element as read."""
        stack: list[Element] = [self]
        while stack:
            element = stack.pop()
            element.taken = True
            element.asked.update((*element.attributes, TEXT))
            stack.extend(element.children)


TEXT = "#text"
"""Stands for an element's text among what a reader has asked for."""


def parse(data: bytes, name: str) -> Element:
    """Return the root element of an XML document.

    Parameters
    ----------
    data : bytes
    name : str
        What to call the document in messages, usually its file name.

    Raises
    ------
    ReadError
        If it is not well-formed, has a document type, or is larger than any model file is.
    """
    if len(data) > MAX_BYTES:
        raise ReadError(
            f"{name}: a model file has at most {MAX_BYTES // 2**20} MiB, got {len(data)} bytes"
        )
    if not data.strip():
        raise ReadError(f"{name} is empty")
    builder = _Builder(name)
    try:
        builder.parser.Parse(data, True)
    except expat.ExpatError as error:
        words = expat.errors.messages.get(error.code, str(error.code))
        raise ReadError(
            f"{name}, line {error.lineno}, column {error.offset + 1}: not well-formed XML: {words}"
        ) from None
    except (LookupError, ValueError, UnicodeError) as error:
        # expat asks Python for encodings that it does not know itself
        raise ReadError(f"{name}: cannot be decoded: {error}") from None
    if builder.root is None:
        raise ReadError(f"{name}: not well-formed XML: there is no element")
    return builder.root


class _Builder:
    """Collects expat's events into elements, and stops at what no model file needs."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.root: Element | None = None
        self.open: list[Element] = []
        self.count = 0
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self.doctype

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.count += 1
        if self.count > MAX_ELEMENTS:
            raise self.refused(f"more than {MAX_ELEMENTS} elements")
        if len(self.open) >= MAX_DEPTH:
            raise self.refused(f"elements nested more than {MAX_DEPTH} deep")
        element = Element(tag, attributes, self.parser.CurrentLineNumber)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)

    def end(self, tag: str) -> None:
        self.open.pop()

    def characters(self, data: str) -> None:
        if self.open and not data.isspace():
            self.open[-1].text += data

    def doctype(self, *_: object) -> None:
        raise self.refused("a document type (<!DOCTYPE ...>), which model files do not need")

    def refused(self, what: str) -> ReadError:
        return ReadError(f"{self.name}, line {self.parser.CurrentLineNumber}: refused: {what}")


@dataclass(frozen=True)
class Place:
    """An element of a file with a name for people, and where its problems are collected."""

    file: str
    element: Element
    label: str
    problems: Problems

    @property
    def words(self) -> str:
        """The place in words: file, element and line."""
        return f"{self.file}, {self.label}, line {self.element.line}"

    def problem(self, message: str) -> None:
        """Note a problem of this element."""
        self.problems.add(message, self.words)

    def inside(self, element: Element) -> Place:
        """Return the place of a child element."""
        label = f"<{element.tag}> of {self.label}"
        return Place(self.file, element, label, self.problems)

    def text(self, name: str) -> str | None:
        """Value of an attribute that must be there and must not be empty."""
        value = (self.element.get(name) or "").strip()
        if not value:
            self.problem(f"<{self.element.tag}> needs the attribute `{name}`")
            return None
        return value

    def numbers(self, name: str, size: int, default: tuple[float, ...] | None) -> tuple | None:
        """Return the `size` numbers of an attribute; without a default it must be there."""
        value = self.element.get(name)
        if value is None and default is not None:
            return default
        if value is None:
            self.problem(f"<{self.element.tag}> needs the attribute `{name}`")
            return None
        return self._parsed(f"`{name}`", value, size)

    def _parsed(self, what: str, value: str, size: int) -> tuple | None:
        words = value.split()
        if len(words) != size or not all(_NUMBER.fullmatch(word) for word in words):
            expected = "one number" if size == 1 else f"{size} numbers"
            self.problem(f"{what} must be {expected}, got {_short(value)}")
            return None
        parsed = tuple(map(float, words))
        if any(abs(number) == float("inf") for number in parsed):
            self.problem(f"{what} must be finite, got {_short(value)}")
            return None
        return parsed

    def content_numbers(self, size: int) -> tuple | None:
        """Return the `size` numbers that are the element's text."""
        text = self.element.content()
        return self._parsed(f"the text of <{self.element.tag}>", text, size)

    def content_number(self) -> float | None:
        """Return the number that is the element's text."""
        parsed = self.content_numbers(1)
        return None if parsed is None else parsed[0]

    def number(self, name: str, default: float | None = None) -> float | None:
        """Return the number of an attribute; without a default it must be there."""
        parsed = self.numbers(name, 1, None if default is None else (default,))
        return None if parsed is None else parsed[0]


def _short(value: str, limit: int = 60) -> str:
    return repr(value if len(value) <= limit else f"{value[:limit]}...")


def quoted(value: str) -> str:
    """Return an attribute's value in quotes (the standard library's way loads a web client)."""
    for sign, name in _ESCAPES:
        value = value.replace(sign, name)
    return f'"{value}"'


_ESCAPES = (
    ("&", "&amp;"),
    ("<", "&lt;"),
    (">", "&gt;"),
    ('"', "&quot;"),
    ("\n", "&#10;"),
    ("\r", "&#13;"),
    ("\t", "&#9;"),
)
