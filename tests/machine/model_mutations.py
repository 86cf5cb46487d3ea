"""Single changes of a model file, and whether reading shows them.

Every attribute is changed and removed, every element removed and doubled, and an attribute and an
element that the format does not know are added everywhere. A reader must not drop any of these in
silence: the machine differs, or a message names the change, or the file is refused.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any
from xml.etree import ElementTree

from framefree.errors import FramefreeError
from framefree.machine import Machine
from framefree.machine.part import plain

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LINE = re.compile(r"line \d+")
UNKNOWN = "misspelt"
"""The attribute and the element that no format knows."""


class Tag(str):
    """The tag of an element, which also knows the element's attributes before the change."""

    attributes: dict[str, str]

    @classmethod
    def of(cls, element: Any) -> "Tag":
        """Return the tag of an element."""
        tag = cls(element.tag)
        tag.attributes = dict(element.attrib)
        return tag


@dataclass(frozen=True)
class Mutation:
    """One change of a model: what was done, to which element, and the text that results.

    `place` lists tags from the root, each a `Tag`; `attribute` is empty for changes of elements.
    """

    kind: str
    place: tuple[Tag, ...]
    attribute: str
    text: str
    detail: str = ""

    def __str__(self) -> str:
        where = "/".join(self.place) + (f" @{self.attribute}" if self.attribute else "")
        return f"{self.kind}: {where} {self.detail}".strip()


def mutations(text: str, choices: dict[str, list[str]] | None = None) -> Iterator[Mutation]:
    """Yield all single changes of a model.

    `choices` lists the words that an attribute may have, for instance
    ``{"type": ["hinge", "slide"]}``: each one is tried.
    """
    root = ElementTree.fromstring(text)
    for element, parent, place in _elements(root):
        yield from _of_attributes(root, element, place, choices or {})
        yield from _of_text(root, element, place)
        if parent is not None:
            yield from _of_element(root, element, parent, place)
        extra = ElementTree.SubElement(element, UNKNOWN)
        yield Mutation("unknown element in", place, "", _text(root))
        element.remove(extra)


def silent(
    read: Callable[[str], Machine], text: str, known: Callable[[Mutation], bool], **options: Any
) -> list[str]:
    """Return the changes that reading does not show, but for those known to move nothing."""
    plain_text = _text(ElementTree.fromstring(text))
    before = read(plain_text)
    missed = []
    for mutation in mutations(text, **options):
        if outcome(read, before, mutation) == "silent" and not known(mutation):
            missed.append(str(mutation))
    return missed


def outcome(read: Callable[[str], Machine], before: Machine, mutation: Mutation) -> str:
    """Return how reading shows a change: "refused", "differs", "listed", or "silent"."""
    try:
        after = read(mutation.text)
    except FramefreeError:
        return "refused"
    if _moving_parts(after) != _moving_parts(before):
        return "differs"
    return "listed" if _messages(after) != _messages(before) else "silent"


def _moving_parts(machine: Machine) -> tuple:
    names = [field.name for field in fields(machine) if field.name not in ("remarks", "ignored")]
    return tuple(plain(getattr(machine, name)) for name in names)


def _messages(machine: Machine) -> list[str]:
    return sorted(_LINE.sub("", note) for note in (*machine.problems, *machine.ignored))


def _elements(root: Any) -> Iterator[tuple[Any, Any, tuple[Tag, ...]]]:
    """Yield every element with its parent and its place, from a list that changes cannot upset."""
    found: list[tuple[Any, Any, tuple[Tag, ...]]] = [(root, None, (Tag.of(root),))]
    for element, _, place in found:
        found.extend((child, element, (*place, Tag.of(child))) for child in list(element))
    yield from found


def _of_attributes(
    root: Any, element: Any, place: tuple[Tag, ...], choices: dict[str, list[str]]
) -> Iterator[Mutation]:
    own = dict(element.attrib)
    for name, value in own.items():
        for new in _other_values(name, value, choices):
            element.set(name, new)
            detail = f"{value[:30]!r} -> {new[:30]!r}"
            yield Mutation("changed", place, name, _text(root), detail)
            element.set(name, value)
        del element.attrib[name]
        yield Mutation("removed", place, name, _text(root), f"was {value[:30]!r}")
        element.attrib.clear()
        element.attrib.update(own)
    element.set(UNKNOWN, "1")
    yield Mutation("unknown attribute of", place, "", _text(root))
    del element.attrib[UNKNOWN]


def _of_text(root: Any, element: Any, place: tuple[Tag, ...]) -> Iterator[Mutation]:
    """Change and remove the text of an element, where it has one: SDFormat keeps numbers there."""
    text = element.text
    if not (text or "").strip():
        return
    for new in ("", *_other_values("", text.strip(), {})):
        element.text = new
        yield Mutation("changed text of", place, "", _text(root), f"{text[:30]!r} -> {new[:30]!r}")
    element.text = text


def _of_element(root: Any, element: Any, parent: Any, place: tuple[Tag, ...]) -> Iterator[Mutation]:
    at = list(parent).index(element)
    detail = " ".join(f'{name}="{value[:20]}"' for name, value in element.attrib.items())[:60]
    parent.remove(element)
    yield Mutation("removed element", place, "", _text(root), detail)
    parent.insert(at, element)
    parent.insert(at, element)
    yield Mutation("doubled element", place, "", _text(root), detail)
    del parent[at]


def _other_values(name: str, value: str, choices: dict[str, list[str]]) -> list[str]:
    words = value.split()
    if name in choices:
        return [word for word in choices[name] if word != value]
    if value in ("true", "false"):
        return ["false" if value == "true" else "true"]
    if words and all(_NUMBER.fullmatch(word) for word in words):
        changed = (repr(1.1 * float(word) + 0.01 * (i + 1)) for i, word in enumerate(words))
        if all("." not in word and "e" not in word.lower() for word in words):
            changed = (str(int(word) + 1 + i) for i, word in enumerate(words))
        return [" ".join(changed)]
    return [value + "_"]


def _text(root: Any) -> str:
    return ElementTree.tostring(root, encoding="unicode")
