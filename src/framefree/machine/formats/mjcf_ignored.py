"""Attributes of MJCF that are known to move nothing here, with the reason for each."""

from __future__ import annotations

from collections import defaultdict

from framefree.machine.formats.markup import Element
from framefree.machine.problems import known_names

_NUMERICS = "how MuJoCo computes, not what moves"
_CONTACT = "contact is not modelled"
_LIMITS = "limits are data here, and nothing enforces them"
_SOFT = "constraints are rigid here, and friction is smooth"
_DRAWN = "how it is drawn"
_OWN = "data of the user"

_BY_REASON = {
    _NUMERICS: {
        "option": "timestep impratio tolerance iterations solver cone jacobian integrator "
        "ls_iterations ls_tolerance noslip_iterations noslip_tolerance ccd_iterations "
        "ccd_tolerance sdf_iterations sdf_initpoints sleep_tolerance",
        "flag": "warmstart filterparent refsafe midphase eulerdamp autoreset nativeccd island "
        "multiccd fwdinv invdiscrete energy diagexact sleep speculative ipc sensor",
        "body": "sleep simple",
    },
    _CONTACT: {
        "option": "o_margin o_solref o_solimp o_friction",
        "flag": "contact override",
        "geom": "friction condim contype conaffinity priority solmix solref solimp margin gap "
        "adhesion surfacevel",
    },
    _LIMITS: {
        "flag": "limit",
        "joint": "margin solreflimit solimplimit",
        "tendon": "margin solreflimit solimplimit",
        "fixed": "margin solreflimit solimplimit",
        "spatial": "margin solreflimit solimplimit",
    },
    _SOFT: {
        "joint": "solreffriction solimpfriction solref solimp",
        "tendon": "solreffriction solimpfriction solref solimp",
        "fixed": "solreffriction solimpfriction",
        "spatial": "solreffriction solimpfriction",
        "equality": "solref solimp",
        "connect": "solref solimp",
        "weld": "solref solimp",
    },
    _DRAWN: {
        "option": "magnetic",
        "material": "rgba emission specular shininess reflectance metallic roughness texuniform "
        "texrepeat texture",
        "site": "size type rgba material group fromto mesh",
        "joint": "group",
        "tendon": "width rgba material group",
        "fixed": "group",
        "spatial": "width rgba material group",
        "geom": "castshadow",
    },
    _OWN: {
        tag: "user"
        for tag in (
            *("body", "joint", "geom", "site", "fixed", "spatial", "tendon", "general", "motor"),
            *("position", "velocity", "intvelocity", "damper", "cylinder", "muscle", "adhesion"),
        )
    },
}
MOVES_NOTHING = {
    (tag, name): reason
    for reason, tags in _BY_REASON.items()
    for tag, names in tags.items()
    for name in names.split()
}
"""Reason why an attribute of an element moves nothing, by tag and name."""


class StillAttributes:
    """Collects the attributes of a model that move nothing, for one line per reason."""

    def __init__(self) -> None:
        self._found: dict[str, set[str]] = defaultdict(set)

    def note(self, element: Element) -> None:
        """Take in the attributes of an element."""
        for name in element.attributes:
            reason = MOVES_NOTHING.get((element.tag, name))
            if reason is not None:
                self._found[reason].add(name)

    @property
    def notes(self) -> list[str]:
        """One line per reason."""
        return [f"{known_names(names, 6)}: {reason}" for reason, names in self._found.items()]
