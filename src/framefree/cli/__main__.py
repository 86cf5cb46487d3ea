"""The command line as ``python -m framefree.cli``."""

from framefree.cli import main

main()
