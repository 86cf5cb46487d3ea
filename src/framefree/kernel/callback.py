"""A kernel with loops in it as a `casadi.Function`: CasADi calls it, and knows nothing of it."""

from typing import Any

import casadi as ca
import numpy as np

from framefree.kernel.kernel import Kernel


class KernelFunction(ca.Callback):
    """A compiled program that stands in casadi expressions (MX) as one call.

    Derivatives are finite differences. CasADi does not keep the object alive: whoever made it must.

    Parameters
    ----------
    kernel : Kernel
    """

    def __init__(self, kernel: Kernel) -> None:
        ca.Callback.__init__(self)
        self.kernel = kernel
        self.construct(kernel.name, {"enable_fd": True})

    def get_n_in(self) -> int:
        """Return the number of inputs."""
        return len(self.kernel.inputs)

    def get_n_out(self) -> int:
        """Return the number of outputs."""
        return len(self.kernel.outputs)

    def get_name_in(self, k: int) -> str:
        """Return the name of an input."""
        return self.kernel.inputs[k].name

    def get_name_out(self, k: int) -> str:
        """Return the name of an output."""
        return self.kernel.outputs[k].name

    def get_sparsity_in(self, k: int) -> ca.Sparsity:
        """Return the size of an input."""
        return ca.Sparsity.dense(*_size(self.kernel.inputs[k].shape))

    def get_sparsity_out(self, k: int) -> ca.Sparsity:
        """Return the size of an output."""
        return ca.Sparsity.dense(*_size(self.kernel.outputs[k].shape))

    def eval(self, arguments: Any) -> list[ca.DM]:
        """Return the outputs at numbers."""
        ports = zip(arguments, self.kernel.inputs, strict=True)
        results = self.kernel(*(value.full().reshape(port.shape) for value, port in ports))
        results = results if isinstance(results, tuple) else (results,)
        ports = zip(results, self.kernel.outputs, strict=True)
        return [ca.DM(np.reshape(value, _size(port.shape))) for value, port in ports]


def _size(shape: tuple[int, ...]) -> tuple[int, int]:
    return {0: (1, 1), 1: (*shape, 1)}.get(len(shape), shape)  # type: ignore[return-value]
