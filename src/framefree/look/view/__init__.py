"""A live view in the browser: machines, runs, and closed loops that run while one looks on.

    ff.view(machine)                     # sliders for its joints, loops stay closed
    ff.view(run)                         # its states over time, with figures
    ff.view(machine, live=True)          # a loop in real time: drag the handle, grab a body
    ff.view(machine, law, reference)     # the same with a law of one's own

Needs the extra `view`. The page is answered on this computer alone, unless another `host` is given.
"""

from framefree.look.view.errors import ViewError
from framefree.look.view.page import View
from framefree.look.view.show import view

__all__ = ["View", "ViewError", "view"]
