"""Calls of routines by several states side by side.

A routine has plain whole numbers and places. Lanes that give it the same ones call it together,
with a mask; where they differ it is called again for the rest.
"""

from framefree.kernel.routines.lanes_values import LanesValues, Version
from framefree.kernel.routines.language import Routine
from framefree.kernel.routines.translate import Value


class LanesCalls(LanesValues):
    """Calls of other routines."""

    def call(self, routine: Routine, values: list[Value]) -> str:
        """Call another routine: once for all lanes whose whole numbers and places agree."""
        differ = [k for k, v in enumerate(values) if v.kind != "float" and v.text in self.vectors]
        if not differ:
            return self._call(routine, values, self._mask() if self.masked else None)
        kind, result, waiting = self.own[routine.returns], self._fresh(), self._fresh()
        if routine.returns != "nothing":
            self._variable(result, kind)
        self._variable(waiting, self.truths)
        self._do(f"store {self.truths} {self._mask()}, ptr %v.{waiting}")
        head, body, done = self._fresh(), self._fresh(), self._fresh()
        self._end(f"br label %{head}")
        self._label(head)
        left = self._put(f"load {self.truths}, ptr %v.{waiting}")
        self._end(f"br i1 {self._any(left)}, label %{body}, label %{done}")
        self._label(body)
        alike, same = self._first(left, values, differ)
        given = self._call(routine, alike, same)
        if routine.returns != "nothing":
            old = self._put(f"load {kind}, ptr %v.{result}")
            new = self._put(f"select {self.truths} {same}, {kind} {given}, {kind} {old}")
            self._do(f"store {kind} {new}, ptr %v.{result}")
        left = self._put(f"xor {self.truths} {left}, {same}")
        self._do(f"store {self.truths} {left}, ptr %v.{waiting}")
        self._end(f"br label %{head}")
        self._label(done)
        if routine.returns == "nothing":
            return ""
        load = f"load {kind}, ptr %v.{result}"
        return self._vector(load) if routine.returns != "float" else self._put(load)

    def _first(self, mask: str, values: list[Value], differ: list[int]) -> tuple[list[Value], str]:
        """Return values as the first lane of a mask has them, and which of its lanes agree."""
        whole = self._put(f"bitcast {self.truths} {mask} to i{self.lanes}")
        lane = self._put(
            f"call i{self.lanes} @llvm.cttz.i{self.lanes}(i{self.lanes} {whole}, i1 true)"
        )
        lane = self._put(f"zext i{self.lanes} {lane} to i64")
        alike, same = list(values), mask
        for k in differ:
            kind, text = values[k].kind, values[k].text
            own = self.own[kind]
            one = self._put(f"extractelement {own} {text}, i64 {lane}")
            if kind == "array":
                back = self._put(f"sub i64 0, {lane}")
                one = self._put(f"getelementptr double, ptr {one}, i64 {back}")
            equal = self._vector(f"icmp eq {own} {text}, {self._wide(one, kind)}")
            alike[k], same = Value(one, kind), self._both(same, equal)
        return alike, same

    def _call(self, routine: Routine, values: list[Value], mask: str | None) -> str:
        """Call another routine; only numbers differ between lanes."""
        self.called.append(Version(routine, mask is not None))
        kinds = {**self.plain, "float": self.floats}
        passed = [f"{kinds[value.kind]} {value.text}" for value in values]
        if mask is not None:
            passed.append(f"{self.truths} {mask}")
        name = f"{self.prefix}{self.called[-1].name}"
        call = f"call {self.own[routine.returns]} @{name}({', '.join(passed)})"
        if routine.returns == "nothing":
            self._do(call)
            return ""
        return self._vector(call) if routine.returns != "float" else self._put(call)
