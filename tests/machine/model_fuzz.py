"""Mutations of model files. Run as a script it reads mutants of MJCF, so that a crash is seen."""

import random
import re
import sys

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


_CHANGES = [_cut, _noise, _value, _value, _value, _name, _tag, _lines]


def run_mjcf(first: int, count: int) -> None:
    """Read mutants; print how many were read and refused. Anything else ends the process."""
    from mjcf_samples import EVERYTHING, LINKAGE, random_mjcf

    from framefree.errors import FramefreeError
    from framefree.machine.read import read

    samples, read_well, refused = [EVERYTHING, LINKAGE, random_mjcf(3)], 0, 0
    for seed in range(first, first + count):
        print("seed", seed, file=sys.stderr, flush=True)
        try:
            read(mutant(samples[seed % len(samples)], seed))
            read_well += 1
        except FramefreeError:
            refused += 1
    print(read_well, refused)


if __name__ == "__main__":
    run_mjcf(int(sys.argv[1]), int(sys.argv[2]))
