"""Laws, plants and loops of a run taken elsewhere: C projects, FMUs, boards.

- `exporting.py`: from a run to a block, and its recorded steps; `write.py` writes them;
- `block.py`: what a block is; `controller.py` and `plant.py` make them of a loop;
- `struct_c.py`, `bench_c.py`, `project.py`: a block as a C project with its test-bench;
- `fmu/`: a block as an FMU;
- `compiler.py`: calling it from Python; `precision.py`: what single precision loses.
"""

from framefree.export.errors import ExportError
from framefree.export.exporting import PARTS, ExportedPart
from framefree.export.fmu import export_fmu
from framefree.export.write import export_c

__all__ = ["PARTS", "ExportError", "ExportedPart", "export_c", "export_fmu"]
