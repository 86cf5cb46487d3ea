"""Which variables of a routine are read later, seen from each of its statements.

A variable is live after a statement where some way on from there reads it before it is given
another value. States that run side by side (`to_lanes.py`) need this: where a statement is for some
of them, what it writes to a variable must be kept from the others only if they will read it.
"""

import ast


class Liveness:
    """Live variables of a routine.

    Attributes
    ----------
    after : dict of ast.stmt to set of str
        Variables that are live after a statement.
    other : dict of ast.stmt to set of str
        Variables that are live where the condition of a branch does not hold.
    head : dict of ast.stmt to set of str
        Variables that are live before each turn of a loop.
    """

    def __init__(self, tree: ast.FunctionDef) -> None:
        self.after: dict[ast.stmt, set[str]] = {}
        self.other: dict[ast.stmt, set[str]] = {}
        self.head: dict[ast.stmt, set[str]] = {}
        self._loops: list[set[str]] = []
        self._block(tree.body, set())

    def _block(self, statements: list[ast.stmt], live: set[str]) -> set[str]:
        for statement in reversed(statements):
            self.after[statement] = live
            live = self._before(statement, live)
        return live

    def _before(self, statement: ast.stmt, live: set[str]) -> set[str]:
        match statement:
            case ast.If():
                self.other[statement] = self._block(statement.orelse, live)
                either = self._block(statement.body, live) | self.other[statement]
                return either | _read(statement.test)
            case ast.For():
                head = self._turns(statement, live, _named(statement.target))
                return head | _read(statement.iter)
            case ast.While():
                return self._turns(statement, live | _read(statement.test), set())
            case ast.Return():
                return _read(statement)
            case ast.Break() | ast.Continue():
                return self._loops[-1]
            case ast.Assign():
                written = set[str]().union(*map(_named, statement.targets))
                return live - written | _read(statement)
            case ast.AugAssign():
                return live | _read(statement) | _named(statement.target)
        return live | _read(statement)

    def _turns(self, loop: ast.For | ast.While, live: set[str], counted: set[str]) -> set[str]:
        """Return what is live before a turn, which is also before those after it."""
        while True:
            self._loops.append(live)
            more = live | (self._block(loop.body, live) - counted)
            self._loops.pop()
            if more == live:
                self.head[loop] = live
                return live
            live = more


def _read(node: ast.AST) -> set[str]:
    """Return names that are read; parts of a target that say where it lies are."""
    names = (one for one in ast.walk(node) if isinstance(one, ast.Name))
    return {one.id for one in names if isinstance(one.ctx, ast.Load)}


def _named(target: ast.expr) -> set[str]:
    """Return variables that an assignment gives their value."""
    elements = target.elts if isinstance(target, ast.Tuple) else [target]
    return {one.id for one in elements if isinstance(one, ast.Name)}
