"""Draws the picture of the start page from a recorded flight.

framefree run quad-loop --set duration=9 --out flight
python docs/pictures/flight.py flight/sensed.parquet
"""

import sys
from pathlib import Path

import numpy as np

import framefree as ff

BEGIN, END, FRAMES = 2.6, 5.9, 50
"""Seconds of the flight that are shown, and in how many frames."""

run = ff.Run.load(sys.argv[1])
rows = np.searchsorted(run.t, np.linspace(BEGIN, END, FRAMES, endpoint=False))
path = Path(__file__).with_suffix(".svg")
ff.look.draw(run.machine, path, run.x[rows], duration=END - BEGIN, trail=run.machine.bodies[0].name)
print(f"{path}: {path.stat().st_size / 1000:.0f} kB")
