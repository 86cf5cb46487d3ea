"""`framefree bench board`: the quadcopter's controller with estimator on Cortex-M processors."""

from typing import Any

import numpy as np

from framefree.benchmarks.timing import circumstances
from framefree.export import ExportedPart
from framefree.export.board import BOARDS, BoardResult, run_on_board
from framefree.export.compiler import CompiledBlock
from framefree.export.struct_c import BlockInC
from framefree.gallery.scenarios.prototypes.flights import loops, quadcopter_craft

DURATION, ROWS = 2.0, 50
"""Time that is flown, s, and how many of its steps run on the boards."""


def run() -> dict[str, object]:
    """Measure the flight by sensors of `quad-loop`: single precision on M4F, double on M7.

    Keys: `flash_bytes`, `ram_bytes` (static and stack), `stack_bytes`, `instructions_per_step`, and
    `difference`, of the outputs from the desk's as a share of their spans. Those of the Cortex-M4F
    in single precision have no prefix.
    """
    part = controller()
    figures: dict[str, object] = {}
    for prefix, board, single in (("", "m4f", True), ("m7_", "m7", False)):
        result = run_on_board(BlockInC(part.block, single), part.steps, board, ROWS)
        figures |= {
            f"{prefix}flash_bytes": result.flash,
            f"{prefix}ram_bytes": result.ram,
            f"{prefix}stack_bytes": result.stack,
            f"{prefix}instructions_per_step": round(result.instructions),
            f"{prefix}difference": difference(part, result, single),
            f"{prefix}board": BOARDS[board].machine,
        }
    return {**figures, "steps": ROWS, **circumstances()}


def controller() -> ExportedPart:
    """Return the controller of a quadcopter that flies loops by IMU and late, seldom poses."""
    craft = quadcopter_craft(loops, 3.4)
    options: dict[str, Any] = {"observed": True, "sensed": True, "lead": craft.lead, "seed": 0}
    options |= {"plant": "native", "duration": DURATION, "bias": 1.0, "progress": False}
    return ExportedPart(craft.fly("particle", **options), "law")


def difference(part: ExportedPart, result: BoardResult, single: bool) -> float:
    """Return the largest difference to the desk's version, as a share of the recorded spans."""
    desk, steps = CompiledBlock(BlockInC(part.block, single)), part.steps
    sizes = [sum(port.size for port in ports) for ports in part.block.groups.values()]
    ends = np.cumsum([0, *sizes])
    wanted = []
    for row in result.rows:
        desk.memory[: steps.memory.shape[1]] = steps.memory[row]
        groups = {
            name: steps.inputs[row, a:b]
            for name, a, b in zip(part.block.groups, ends[:-1], ends[1:], strict=True)
        }
        wanted.append(desk.step(**groups))
    scale = steps.scales(True)[: steps.outputs.shape[1]]
    return float(np.max(np.abs(result.outputs - np.array(wanted)) / scale))
