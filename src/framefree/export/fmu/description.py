"""`modelDescription.xml` of a block, in the words of FMI 2.0 and of FMI 3.0."""

from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from framefree import __version__
from framefree.export.fmu.units import base_units
from framefree.export.fmu.variables import FmuLayout, FmuVariable
from framefree.files import MADE_BY


class FmuModel(NamedTuple):
    """What a model is called and how it is stepped.

    Attributes
    ----------
    title, about : str
    identifier : str
        Name of the binary and prefix of nothing: functions have the names of the standard.
    token : str
        By which a binary knows its description.
    period, duration : float
        s.
    sources : tuple of str
        Names of the C files.
    """

    title: str
    about: str
    identifier: str
    token: str
    period: float
    duration: float
    sources: tuple[str, ...]


def description(model: FmuModel, layout: FmuLayout, version: int) -> str:
    """Return the text for FMI 2 or 3."""
    root = Element("fmiModelDescription")
    root.set("fmiVersion", f"{version}.0")
    root.set("modelName", model.title)
    root.set("guid" if version == 2 else "instantiationToken", model.token)
    root.set("description", model.about)
    root.set("generationTool", f"framefree {__version__}")
    root.set("variableNamingConvention", "flat")
    if version == 2:
        root.set("numberOfEventIndicators", "0")
    _interfaces(root, model, layout, version)
    _units(root, layout)
    experiment = SubElement(root, "DefaultExperiment")
    experiment.set("startTime", "0.0")
    experiment.set("stopTime", repr(model.duration))
    experiment.set("stepSize", repr(model.period))
    variables = SubElement(root, "ModelVariables")
    for one in layout.variables:
        (_variable_2 if version == 2 else _variable_3)(variables, one)
    if version == 3:
        time = SubElement(variables, "Float64", name="time", valueReference="0")
        time.set("causality", "independent")
        time.set("variability", "continuous")
        time.set("description", "time")
        time.set("unit", "s")
    (_structure_2 if version == 2 else _structure_3)(root, layout)
    return _page(root)


def build_description(model: FmuModel) -> str:
    """Return `buildDescription.xml` of FMI 3, which says how the sources are compiled."""
    root = Element("fmiBuildDescription", fmiVersion="3.0")
    part = SubElement(root, "BuildConfiguration", modelIdentifier=model.identifier)
    files = SubElement(part, "SourceFileSet", language="C99")
    for name in model.sources:
        SubElement(files, "SourceFile", name=name)
    SubElement(part, "Library", name="m")
    return _page(root)


def _page(root: Element) -> str:
    indent(root)
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n<!-- {MADE_BY} -->\n'
    return head + tostring(root, encoding="unicode") + "\n"


def _interfaces(root: Element, model: FmuModel, layout: FmuLayout, version: int) -> None:
    saves = "canGetAndSetFMUstate" if version == 2 else "canGetAndSetFMUState"
    for kind in ("ModelExchange", "CoSimulation"):
        if kind == "ModelExchange" and not layout.continuous:
            continue
        part = SubElement(root, kind, modelIdentifier=model.identifier)
        part.set(saves, "true")
        if kind == "CoSimulation":
            part.set("canHandleVariableCommunicationStepSize", "true")
            if version == 3:
                part.set("fixedInternalStepSize", repr(model.period))
        if version == 2:
            files = SubElement(part, "SourceFiles")
            for name in model.sources:
                SubElement(files, "File", name=name)


def _units(root: Element, layout: FmuLayout) -> None:
    units = {one.unit for one in layout.variables if base_units(one.unit) is not None} | {"s"}
    part = SubElement(root, "UnitDefinitions")
    for name in sorted(units):
        powers = base_units(name) or {}
        unit = SubElement(part, "Unit", name=name)
        SubElement(unit, "BaseUnit", {key: str(power) for key, power in powers.items()})


def _common(one: FmuVariable) -> dict[str, str]:
    words = {"name": one.name, "valueReference": str(one.reference), "causality": one.causality}
    words["variability"] = one.variability
    if one.causality != "input":
        words["initial"] = "calculated" if one.start is None else "exact"
    if one.about:
        words["description"] = one.about
    return words


def _variable_2(parent: Element, one: FmuVariable) -> None:
    real = SubElement(SubElement(parent, "ScalarVariable", _common(one)), "Real")
    if one.start is not None:
        real.set("start", repr(one.start))
    if base_units(one.unit) is not None:
        real.set("unit", one.unit)
    if one.state is not None:
        real.set("derivative", str(one.state))  # references count from 1, as indices do


def _variable_3(parent: Element, one: FmuVariable) -> None:
    real = SubElement(parent, "Float64", _common(one))
    if one.start is not None:
        real.set("start", repr(one.start))
    if base_units(one.unit) is not None:
        real.set("unit", one.unit)
    if one.state is not None:
        real.set("derivative", str(one.state))


def _structure_2(root: Element, layout: FmuLayout) -> None:
    part = SubElement(root, "ModelStructure")
    outputs, rates = layout.of("output"), layout.rates
    for kind, listed in (
        ("Outputs", outputs),
        ("Derivatives", rates),
        ("InitialUnknowns", [*outputs, *rates]),
    ):
        if listed:
            group = SubElement(part, kind)
            for one in listed:
                SubElement(group, "Unknown", index=str(one.reference))


def _structure_3(root: Element, layout: FmuLayout) -> None:
    part = SubElement(root, "ModelStructure")
    outputs, rates = layout.of("output"), layout.rates
    for kind, listed in (
        ("Output", outputs),
        ("ContinuousStateDerivative", rates),
        ("InitialUnknown", [*outputs, *rates]),
    ):
        for one in listed:
            SubElement(part, kind, valueReference=str(one.reference))
