"""Units by the base units of the SI, as FMI wants them."""

import re

BASE = {"m": {"m": 1}, "s": {"s": 1}, "kg": {"kg": 1}, "rad": {"rad": 1}, "A": {"A": 1}}
DERIVED = {
    "N": {"kg": 1, "m": 1, "s": -2},
    "Nm": {"kg": 1, "m": 2, "s": -2},
    "J": {"kg": 1, "m": 2, "s": -2},
    "W": {"kg": 1, "m": 2, "s": -3},
    "Hz": {"s": -1},
    "1": {},
}
_KNOWN = {**BASE, **DERIVED}


def base_units(unit: str) -> dict[str, int] | None:
    """Return the powers of base units of, say, "m/s^2"; None for what is not understood."""
    powers: dict[str, int] = {}
    above, *below = unit.split("/")
    for sign, text in ((1, above), *((-1, part) for part in below)):
        for word in text.split():
            match = re.fullmatch(r"([A-Za-z]+|1)(?:\^(\d+))?", word)
            if match is None or match[1] not in _KNOWN:
                return None
            for name, power in _KNOWN[match[1]].items():
                powers[name] = powers.get(name, 0) + sign * power * int(match[2] or 1)
    return {name: power for name, power in powers.items() if power} if unit else None
