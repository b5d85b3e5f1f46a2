"""Network links in software: live between two networks, or in virtual time.

>>> import longwire
>>> with longwire.link(delay="20ms", rate="10mbit") as link:
...     link.near.run(["ping", "-c", "1", "far"])
>>> longwire.Link("rate=10mbit loss=1%", seed=7).simulate([0, 1_000, 2_000], 1514)
"""

from .errors import (
    CaptureError,
    EndedError,
    FidelityError,
    LongwireError,
    Problem,
    ProgramNotFoundError,
    RefusedError,
    SpecificationError,
    StartError,
)
from .capture import Capture
from .figure import Figure, FigureError
from .live import LiveLink, link
from .log import Log
from .networks import LiveNetwork, network
from .node import Node
from .offline import VERDICTS, Link, Results, simulate
from .report import Report
from .run import Direction, Run

__all__ = [
    "Capture",
    "CaptureError",
    "Direction",
    "EndedError",
    "FidelityError",
    "Figure",
    "FigureError",
    "Link",
    "LiveLink",
    "LiveNetwork",
    "Log",
    "LongwireError",
    "Node",
    "Problem",
    "ProgramNotFoundError",
    "RefusedError",
    "Report",
    "Results",
    "Run",
    "SpecificationError",
    "StartError",
    "VERDICTS",
    "link",
    "network",
    "simulate",
]
