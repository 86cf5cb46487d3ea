"""What a reader did not ask for: every attribute, element and text of a file is read or listed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from framefree.machine.formats.markup import TEXT, Element


@dataclass
class Unread:
    """What nobody read, once for each kind of thing.

    Attributes
    ----------
    known : list of str
        What is known to move nothing.
    unknown : list of str
        What may be a mistake: misspelt names, second elements, settings that do not apply.
    """

    known: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def unread(file: str, root: Element, moves_nothing: Mapping[str, str | None]) -> Unread:
    """List what of a document its reader did not ask for.

    Parameters
    ----------
    file : str
    root : Element
        After reading.
    moves_nothing : mapping
        Why something moves nothing, by "parent/child" for an element, "element@attribute" for an
        attribute, and "element/*" for everything below an element. "*" instead of the parent or
        element stands for any. None marks what would move something, within what does not.
    """
    places: dict[tuple[bool, str, str], list[Element]] = {}
    for element, words, keys in _leftovers(root, moves_nothing):
        # The first key that is known decides: it is the most particular one.
        reason = next((moves_nothing[key] for key in keys if key in moves_nothing), None)
        places.setdefault((reason is not None, words, reason or ""), []).append(element)
    result = Unread()
    for (known, words, reason), elements in places.items():
        times = "" if len(elements) == 1 else f"{len(elements)} times, first "
        at = f"({times}at line {elements[0].line})"
        if known:
            result.known.append(f"{words} {at}{': ' if reason else ''}{reason}")
        else:
            result.unknown.append(f"{file}: {words} is not read {at}")
    return result


def _leftovers(
    root: Element, moves_nothing: Mapping[str, str | None]
) -> Iterator[tuple[Element, str, tuple[str, ...]]]:
    """Yield elements with words for what is unread of each, and the keys that would explain it."""
    stack: list[tuple[Element, str]] = [(root, "")]
    while stack:
        element, above = stack.pop()
        tag = element.tag
        inside = f"{tag}/*" if f"{tag}/*" in moves_nothing else above
        for name in element.attributes:
            if name not in element.asked and not name.startswith("xmlns"):
                keys = (f"{tag}@{name}", f"*@{name}", inside)
                yield element, f"attribute `{name}` of <{tag}>{_near(name, element)}", keys
        if element.text.strip() and TEXT not in element.asked:
            yield element, f"text in <{tag}>", (f"{tag}@{TEXT}", inside)
        for child in reversed(element.children):
            if child.taken:
                stack.append((child, inside))
        for child in element.children:
            if not child.taken:
                second = any(other.taken for other in element.children if other.tag == child.tag)
                words = f"<{child.tag}> of <{tag}>"
                keys = (f"{tag}/{child.tag}", f"*/{child.tag}", inside)
                yield child, f"a second {words}" if second else words, () if second else keys


def _near(name: str, element: Element) -> str:
    """Return a question if the attribute looks like one that was asked for and is not there."""
    missing = element.asked - set(element.attributes) - {TEXT}
    if not missing:
        return ""
    import difflib

    near = difflib.get_close_matches(name, sorted(missing), n=1)
    return f" (did you mean `{near[0]}`?)" if near else ""
