"""Blocks as FMUs (FMI 2.0 and 3.0): C sources, a binary where a compiler is there, no Python.

- `variables.py`: the numbers of a block as variables with value references;
- `description.py`: `modelDescription.xml`; `units.py`: units by base units;
- `runtime_c.py`, `interface_2.py`, `interface_3.py`: the functions of the standard, in C;
- `package.py`: the files in one archive.
"""

from framefree.export.fmu.package import export_fmu

__all__ = ["export_fmu"]
