"""The desk of a lexicographic program: names of its counters, states of rows, and tolerances.

The basis Q of what is settled has rows that are fixed, then those of the working set, then own ones
of the level: basis row k stems from row `row_of[k]` of the program, which is T[k] . Q. `count` has
the sizes of these parts, and what else is counted. The state of a row says whether it is free,
fixed, at a bound in the working set, or left out because it depends on that set; its guess, at
which bound it will end by its sign, and the level (from 1) that first takes it there by its size.
"""

from framefree.rounding import rounding

FREE, FIXED, UPPER, LOWER, LEFT_OUT = 0.0, 1.0, 2.0, 3.0, 4.0
RANK, WORKING, OWN, STALE, STEPS, DAMPING, SIGMA, LEVEL = 0, 1, 2, 3, 4, 5, 6, 7
"""Places in `count`; STALE is 1 where the own part of the basis is not that of the rows that count,
LEVEL the number of the level, from 1."""

MET = rounding(1e-11)
"""What a row may miss, relative to the numbers in it, to count as met."""
COUNTS = rounding(1e-13)
"""What it may miss for its bound to be out of sight, while a level is solved."""
NEW = rounding(1e-10)
"""Share of a bounded row that must be new for it to block a step."""
STILL = rounding(1e-14)
"""Length of a step, relative to the variables, below which a level is at its least value."""
ROUNDED = 1e-3
"""Share of what a gradient could be that counts beside what it is: it is rounded by much less."""
SIGN = rounding(1e-10)
"""Share of a multiplier in the gradient below which its sign says nothing."""
LOCKED = rounding(1e-7)
"""Share above which it says that the bound cannot be left: with less nothing is lost if it is."""
REFINED = 4
"""How often a step is repeated with the same rows."""
