"""Network links in software: live between two networks, or in virtual time.

>>> import longwire
>>> with longwire.link(delay="20ms", rate="10mbit") as link:
...     link.near.run(["ping", "-c", "1", "far"])
>>> longwire.Link("rate=10mbit loss=1%", seed=7).simulate([0, 1_000, 2_000], 1514)
"""

from .errors import (
    EndedError,
    FidelityError,
    LongwireError,
    Problem,
    ProgramNotFoundError,
    RefusedError,
    SpecificationError,
    StartError,
)
from .live import Direction, LiveLink, link
from .node import Node
from .offline import VERDICTS, Link, Results, simulate
from .report import Report

__all__ = [
    "Direction",
    "EndedError",
    "FidelityError",
    "Link",
    "LiveLink",
    "LongwireError",
    "Node",
    "Problem",
    "ProgramNotFoundError",
    "RefusedError",
    "Report",
    "Results",
    "SpecificationError",
    "StartError",
    "VERDICTS",
    "link",
    "simulate",
]
