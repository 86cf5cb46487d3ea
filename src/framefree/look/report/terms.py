"""Words of control engineers that a report uses, explained where they appear."""

import re
from collections.abc import Iterable

TERMS = {
    "published": "printed in a paper or another program's documents: an answer that is not ours",
    "printed": "as a document prints it, faults included; the errata page says what is wrong",
    "the document": "the text whose experiment is repeated here; its numbers are the bar",
    "closed form": "the solution as a formula, which shares no code with the simulation",
    "critically damped": "damped just enough that an error does not swing over",
    "critical": "with gains that damp just enough for an error not to swing over",
    "strict": "a task of lower rank may not disturb one of higher rank at all",
    "nominal": "without anything that the law's model does not know",
    "certificate": "numbers that come with a solution and show that no better one exists",
    "rms": "root of the mean square over time: one typical size of what varies",
    "relative error": "error divided by the size of what is measured; it has no unit",
    "Lyapunov function": "a positive number, V, that is zero without errors; while it falls, "
    "errors do",
    "V": "the law's Lyapunov function: zero without errors; while it falls, errors do",
    "W": "the error energy of a prototype, the Lyapunov function of its law",
    "error energy": "energy that the prototype has for an error: zero without one",
    "prototype": "a simpler machine, with springs and dampers of our choice, that the law imitates",
    "matching conditions": "what must hold for a machine with fewer inputs than velocities to "
    "imitate its prototype",
    "approach": "how the prototype is transferred to the machine: by energy, body or particle",
    "kappa": "force that the law can set against what its model does not know",
    "uncertainty": "force that the law's model does not know",
    "ultimate bound": "size below which the proof promises errors to end",
    "its level": "the value of V that the proof promises V to stay below",
    "Lambda": "rate (1/s) at which errors decay once the law has its way",
    "coupling": "the demand that hands move as if one rigid body joined them",
    "friction cone": "directions that a contact force may have without slipping",
    "virtual port": "place where wrenches on bodies are commanded instead of motors",
    "skew": "v^T (dM/dt - 2C) v is zero for every v: on this rests the proof that V falls",
    "adjoint form": "a Coriolis matrix C by adjoint operators, which is not skew here",
    "the bias": "force of gravity, Coriolis and centrifugal terms at zero acceleration",
    "observer": "estimates a force that the law does not know, from how the machine moves",
    "base parameters": "the combinations of masses and inertias that a motion can tell at all",
    "midpoint rule": "an integrator that keeps volumes in state space, so that energy errors stay "
    "bounded",
    "native": "simulated by the compiled equations of framefree",
    "MuJoCo": "another simulator, used as an independent plant",
    "plant": "what is controlled, as simulated: not the law's own model of it",
    "guard": "limits what was learned to where the data reach",
    "median": "half of the runs are above it, half below",
}
"""What a term means, by the term as it is written."""


def terms_in(texts: Iterable[str]) -> dict[str, str]:
    """Return the terms that texts use, with what each means, in the order of `TERMS`."""
    text = re.sub(r"`[^`]*`", " ", "\n".join(texts))
    found = set()
    for term in sorted(TERMS, key=len, reverse=True):  # "critically damped" is not "critical"
        text, count = _pattern(term).subn(" ", text)
        found |= {term} if count else set()
    return {term: words for term, words in TERMS.items() if term in found}


def _pattern(term: str) -> re.Pattern[str]:
    """Return what finds a term; letters and names are written as they are, others in any case."""
    exact = 0 if term[0].isupper() else re.IGNORECASE
    # A letter is a quantity where nothing makes it a unit: "V falls", not "12 W" or "power (W)".
    before, after = (r"(?<!\d )(?<![\w(/])", r"(?![\w)/])") if len(term) == 1 else (r"\b", r"\w*")
    return re.compile(f"{before}{re.escape(term)}{after}", exact)
