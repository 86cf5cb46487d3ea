"""Models of an SDFormat file, and of the files that it includes.

Included files lie in the model's own folder or in the packages that the caller gave; nothing is
fetched from the network.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from framefree.machine.formats.markup import Element, Place, ReadError, parse
from framefree.machine.formats.sdf_scope import Scope, boolean, read_pose, version_numbers
from framefree.machine.formats.source import Source, bytes_of
from framefree.machine.problems import Problems

MAX_INCLUDES = 200
MAX_NESTED = 40


class Includer:
    """Makes scopes of models, with included files in place.

    Attributes
    ----------
    documents : list of Element
        Roots of the files that were included.
    names : dict of int to str
        Name of the file of each document, by identity of the root.
    """

    def __init__(self, source: Source, problems: Problems) -> None:
        self.source = source
        self.problems = problems
        self.documents: list[Element] = []
        self.names: dict[int, str] = {}
        self.sources: dict[str, Source] = {source.name: source}
        self._count = 0

    def models(self, holder: Place, parent: Scope, depth: int = 0) -> list[Scope]:
        """Return the scopes of the models in an element, which become nested in `parent`."""
        self._contents(holder, parent)
        result = []
        for element in holder.element.all("model", "include"):
            place = holder.inside(element)
            scope = None
            with self.problems.at(place.words):
                if depth >= MAX_NESTED:
                    raise ReadError(f"models are nested more than {MAX_NESTED} deep")
                if element.tag == "include":
                    scope = self._included(place, parent, depth)
                else:
                    scope = self._model(element, place.file, parent, parent.version, depth)
            if scope is None:
                continue
            if scope.name in parent.names():
                place.problem(f"the name `{scope.name}` is taken")
                continue
            parent.nested[scope.name] = scope
            result.append(scope)
        return result

    def _model(
        self, element: Element, file: str, parent: Scope, version: tuple[int, int], depth: int
    ) -> Scope:
        name = _name(Place(file, element, "<model>", self.problems))
        place = Place(file, element, f"model `{name}`", self.problems)
        scope = Scope(place, version, name, parent)
        scope.canonical = (element.get("canonical_link") or "").strip()
        scope.placement = (element.get("placement_frame") or "").strip()
        static = element.first("static")
        scope.static = parent.static
        if static is not None:
            scope.static |= boolean(place, static.content(), "<static>")
        pose = element.first("pose")
        if pose is not None:
            scope.own_pose = read_pose(place.inside(pose))
        self.models(place, scope, depth + 1)
        return scope

    def _contents(self, holder: Place, scope: Scope) -> None:
        for tag, target in (
            ("link", scope.links),
            ("joint", scope.joints),
            ("frame", scope.frames),
        ):
            for element in holder.element.all(tag):
                place = holder.inside(element)
                name = _name(place)
                if name in scope.names():
                    place.problem(f"the name `{name}` is taken")
                elif "::" in name or name in ("world", "__model__", "__root__"):
                    place.problem(f"the name `{name[:60]}` is reserved")
                elif name:
                    target[name] = element

    # ------------------------------------------------------------------ included files

    def _included(self, place: Place, parent: Scope, depth: int) -> Scope:
        self._count += 1
        if self._count > MAX_INCLUDES:
            raise ReadError(f"more than {MAX_INCLUDES} models are included")
        element = place.element
        if boolean(place, element.get("merge") or "false", "`merge`"):
            raise ReadError('merge="true" is not supported; write the model out, or include it')
        source, root = self._document(place)
        version = (root.get("version") or "").strip()
        models = root.all("model")
        if root.tag != "sdf" or len(models) != 1 or not version:
            raise ReadError(f"`{source.name}` must be <sdf version=...> with one <model>")
        self.sources[source.name] = source
        numbers = version_numbers(version) if _is_version(version) else parent.version
        scope = self._model(models[0], source.name, parent, numbers, depth + 1)
        self._override(place, scope)
        return scope

    def _override(self, place: Place, scope: Scope) -> None:
        """Apply what the <include> says of the model."""
        element = place.element
        name, pose = element.first("name"), element.first("pose")
        static, placement = element.first("static"), element.first("placement_frame")
        if name is not None and name.content():
            scope.name = name.content()
        if pose is not None:
            scope.own_pose = read_pose(place.inside(pose))
        elif placement is not None:
            scope.own_pose = (np.eye(4), None)
        if placement is not None:
            scope.placement = placement.content()
        if static is not None:
            scope.static |= boolean(place, static.content(), "<static>")

    def _document(self, place: Place) -> tuple[Source, Element]:
        uri = place.element.first("uri")
        reference = "" if uri is None else uri.content()
        if not reference:
            raise ReadError("<include> needs an element <uri>")
        if reference.startswith(("http://", "https://", "fuel://")):
            raise ReadError(
                f"`{reference[:200]}` is on the network, from which nothing is fetched; save the "
                "model and give its folder with `packages`"
            )
        within = self.sources[place.file]
        path = within.find(reference) or self._in_folder(within, reference)
        if path is None:
            raise ReadError(f"`{reference[:200]}` is not found; `packages` says where models are")
        source = replace(within, name=path.name, data=bytes_of(path), folder=path.parent)
        # two files of one name are told apart by their folders
        if source.name in self.sources and self.sources[source.name].folder != source.folder:
            source = replace(source, name=f"{path.parent.name}/{path.name}")
        root = parse(source.data, source.name)
        self.documents.append(root)
        self.names[id(root)] = source.name
        return source, root

    def _in_folder(self, source: Source, reference: str) -> Path | None:
        """Return the file of a model whose folder is named, as its model.config says."""
        base = reference.rstrip("/")
        config = source.find(f"{base}/model.config")
        if config is not None:
            root = parse(bytes_of(config), config.name)
            listed = [one for one in root.all("sdf") if one.content()]
            if listed:
                return source.find(f"{base}/{listed[-1].content()}")
        return source.find(f"{base}/model.sdf")


def _is_version(text: str) -> bool:
    major, _, minor = text.partition(".")
    return major.isdecimal() and minor.isdecimal() and len(text) < 8


def _name(place: Place) -> str:
    return place.text("name") or ""
