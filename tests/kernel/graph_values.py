"""A graph evaluated node by node with NumPy: what compiled code is compared with."""

import numpy as np

from framefree.kernel.graph import ZERO, Graph

REFERENCE = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "exp": np.exp,
    "abs": np.abs,
    "min": np.fmin,
    "max": np.fmax,
    "lt": np.less,
    "le": np.less_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.logical_and,
    "not": lambda a: a == 0,
    "select": lambda c, a, b: np.where(c != 0, a, b),
    "fma": lambda a, b, c: a * b + c,
    "fms": lambda a, b, c: a * b - c,
    "fnma": lambda a, b, c: c - a * b,
}


def evaluate(graph: Graph, *arguments) -> list[np.ndarray]:
    """Evaluate a graph node by node with NumPy."""
    values: list = []
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            if node[0] == "const":
                values.append(np.float64(node[1]))
            elif node[0] == "input":
                values.append(np.asarray(arguments[node[1]], dtype=float).ravel()[node[2]])
            else:
                result = REFERENCE[node[0]](*[values[k] for k in node[1:]])
                values.append(np.float64(result))
    return [
        np.array([0.0 if k == ZERO else values[k] for k in elements]).reshape(port.shape)
        for elements, port in zip(graph.results, graph.outputs, strict=True)
    ]
