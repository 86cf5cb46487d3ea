"""Mutations of model files. Run as a script it reads mutants, so that a crash is seen.

Changes are of bytes (cuts, noise), of values and names, and of whole elements (removed, doubled,
moved elsewhere, nested in themselves, repeated many times).
"""

import random
import re
import sys
import time
from copy import deepcopy
from pathlib import Path
from xml.etree import ElementTree

WORDS = [
    *("nan", "inf", "-1", "0", "1e308", "-1e308", "1e-320", "999999999999", "1 2 3", "0 0 0", ""),
    *("../../etc/passwd", "/etc/passwd", "true", "world", "a b c", "1e5000", "0x10", "free"),
    *("ball", "mesh", "hfield", "9" * 400, "é"),
]
TAGS = [
    *("body", "joint", "geom", "site", "freejoint", "frame", "replicate", "default", "mesh"),
    *("equality", "motor", "connect", "tendon", "spatial", "fixed", "key", "inertial", "option"),
    *("compiler", "include", "hfield", "worldbody", "position", "link", "mass", "limit", "origin"),
    *("composite", "flexcomp", "plugin", "attach", "muscle", "mimic", "parent", "general", "weld"),
]
NOISE = ["<", ">", '"', "&", "\0", "/", "é", "&#0;", "<![CDATA[", "<!--", "<!DOCTYPE a [", "]]>"]


def mutant(text: str, seed: int) -> bytes:
    """Return the text with a few random changes: cuts, noise, values, names, tags, lines."""
    rng = random.Random(seed)
    for _ in range(rng.choice([1, 1, 2, 3, 8])):
        text = rng.choice(_CHANGES)(rng, text) or "<"
    data = bytearray(text.encode("utf-8"))
    if rng.random() < 0.1:
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def _cut(rng, text):
    return text[: rng.randrange(len(text))]


def _noise(rng, text):
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(NOISE) + text[at:]


def _replace(rng, text, pattern, words):
    found = list(re.finditer(pattern, text))
    if not found:
        return text
    place = rng.choice(found)
    word = rng.choice(words or [match.group(1) for match in found])
    return text[: place.start(1)] + word + text[place.end(1) :]


def _value(rng, text):
    return _replace(rng, text, r'="([^"]*)"', WORDS)


def _name(rng, text):
    return _replace(rng, text, r' (\w+)="', None)


def _tag(rng, text):
    return _replace(rng, text, r"<(\w+)", TAGS)


def _lines(rng, text):
    lines = text.replace("><", ">\n<").split("\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[i] = lines[j] if rng.random() < 0.5 else lines[i] + lines[j]
    return "\n".join(lines)


def _text_value(rng, text):
    return _replace(rng, text, r">([^<>]+)<", WORDS)


def _elements(rng, text):
    """Change whole elements; a text that is broken already stays."""
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError):
        return text
    pairs = [(parent, child) for parent in root.iter() for child in parent]
    if not pairs:
        return text
    (parent, child), (other, _) = rng.choice(pairs), rng.choice(pairs)
    copy = deepcopy(child)
    change = rng.randrange(6)
    if change == 0:
        parent.remove(child)
    elif change == 1:
        parent.append(copy)
    elif change == 2:
        other.append(copy)
    elif change == 3:
        child.append(copy)
    elif change == 4:
        parent.extend([child] * rng.choice([3, 30, 300]))
    else:
        child.text = rng.choice(WORDS)
    return ElementTree.tostring(root, encoding="unicode")


_CHANGES = [_cut, _noise, _value, _value, _value, _name, _tag, _lines, _text_value]
_CHANGES += [_elements, _elements, _elements]


def samples(format: str) -> list[str]:
    """Return small models of a format."""
    if format == "mjcf":
        from mjcf_samples import EVERYTHING, LINKAGE, random_mjcf

        return [EVERYTHING, LINKAGE, random_mjcf(3)]
    models = Path(__file__).parents[1] / "data" / "models"
    return [path.read_text() for path in sorted(models.glob(f"*.{format}"))]


def run(format: str, first: int, count: int) -> None:
    """Read mutants; print how many were read and refused, and the longest time (s) of one.

    Anything else, as an error that is not ours or too much memory, ends the process.
    """
    import resource

    from framefree.errors import FramefreeError
    from framefree.machine.read import read

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    models, read_well, refused, longest = samples(format), 0, 0, 0.0
    for seed in range(first, first + count):
        print("seed", seed, file=sys.stderr, flush=True)
        data = mutant(models[seed % len(models)], seed)
        begin = time.process_time()
        try:
            str(read(data).problems)
            read_well += 1
        except FramefreeError as error:
            str(error)
            refused += 1
        longest = max(longest, time.process_time() - begin)
    print(read_well, refused, longest)


MEMORY = 4 * 2**30
"""Bytes of address space that reading may take, with all libraries."""

if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
