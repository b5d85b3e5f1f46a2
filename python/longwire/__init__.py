"""Network links in software: emulation with a fidelity report of every run.

>>> import longwire
>>> with longwire.link(delay="20ms", rate="10mbit") as link:
...     link.near.run(["ping", "-c", "1", "far"])
"""

from .errors import (
    EndedError,
    FidelityError,
    LongwireError,
    Problem,
    ProgramNotFoundError,
    RefusedError,
    StartError,
)
from .live import Direction, Link, link
from .node import Node
from .report import Report

__all__ = [
    "Direction",
    "EndedError",
    "FidelityError",
    "Link",
    "LongwireError",
    "Node",
    "Problem",
    "ProgramNotFoundError",
    "RefusedError",
    "Report",
    "StartError",
    "link",
]
