"""Links in virtual time, on arrays or captures."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any, Iterator, Mapping, Sequence, Union

from . import _engine
from ._program import program
from .errors import LongwireError, StartError
from .figure import table
from .run import Value, command_words
from .report import Report

VERDICTS: tuple[str, ...] = tuple(_engine.VERDICTS)
"""Names of verdicts by code: ``delivered`` and the drop reasons."""


class Results:
    """Results of a simulation: four columns of equal length.

    The first rows are the frames in order; the rows after them are additional deliveries of
    duplicated frames. Columns support the Arrow PyCapsule and numpy interfaces without
    copying. In numpy, ``verdict`` is an index in :data:`VERDICTS`, and times of dropped
    frames are 0; in Arrow, they are null.
    """

    def __init__(self, columns: Sequence[_engine.Column]) -> None:
        frame, verdict, departure_ns, release_ns = columns
        self.frame: _engine.Column = frame
        """Frame index, from 0 in order of arrival."""
        self.verdict: _engine.Column = verdict
        """Code of the verdict, an index in ``VERDICTS``."""
        self.departure_ns: _engine.Column = departure_ns
        """Time at which the last bit left the queue."""
        self.release_ns: _engine.Column = release_ns
        """Time at which the frame left the link."""

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        return f"<longwire results: {len(self)} rows>"

    def columns(self) -> dict[str, _engine.Column]:
        """Returns the columns by name, for data frames."""
        return {
            "frame": self.frame,
            "verdict": self.verdict,
            "departure_ns": self.departure_ns,
            "release_ns": self.release_ns,
        }


class Link:
    """A link specification for simulations in this process.

    ``text`` contains ``NAME=VALUE`` pairs separated by blanks, such as ``"rate=10mbit
    delay=20ms loss=1%"``. Options may also be keyword arguments:
    ``Link(rate="10mbit", delay="20ms")``.

    :raises SpecificationError: if a value is invalid.
    """

    def __init__(self, text: str = "", *, seed: int = 1, **options: str) -> None:
        words = [text] + [f"{name.replace('_', '-')}={value}" for name, value in options.items()]
        self.seed: int = seed
        """Random seed; equal seeds give equal verdicts."""
        self._specification = _engine.Specification(" ".join(words))

    def __repr__(self) -> str:
        return f"<longwire specification: {self}, seed {self.seed}>"

    def _repr_html_(self) -> str:
        """Returns the options as HTML."""
        return table(("option", "value"), [*self._specification.given(), ("seed", self.seed)])

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self._specification.given())

    def simulate(self, arrival_ns: Any, length: Any) -> Results:
        """Passes frames through the link in virtual time.

        Other threads keep running, and Ctrl-C interrupts the simulation. Frames have no content:
        fair queues treat them as one flow, and content filters never match.

        :param arrival_ns: non-decreasing arrival times in nanoseconds: a list, a numpy array,
            or a column of polars, pandas or pyarrow.
        :param length: lengths in bytes with the Ethernet header, one per frame or one for all.
        """
        return Results(self._specification.simulate(self.seed, arrival_ns, length))


def simulate(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str] | None = None,
    *,
    inputs: Mapping[str, str | os.PathLike[str]] | None = None,
    outputs: Mapping[str, str | os.PathLike[str]] | None = None,
    **options: Value,
) -> Report:
    """Passes a capture through a link, or captures through a network, and returns the report.

    :param source: a capture (pcap or pcapng, optionally compressed), or a topology file.
    :param target: the capture to write.
    :param inputs: with a topology, the capture to read at each port.
    :param outputs: with a topology, the capture to write at each port.
    :param options: those of ``longwire simulate``, with ``_`` for ``-``.
    :raises StartError: if an option or a file is invalid.
    """
    command = [program(), "simulate", "--json", *command_words(options)]
    for flag, files in (("--in", inputs), ("--out", outputs)):
        for port, path in (files or {}).items():
            command += [flag, f"{port}={os.fspath(path)}"]
    command += [os.fspath(path) for path in (source, target) if path is not None]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    message = ended.stderr.decode(errors="replace").strip().removeprefix("error: ")
    if ended.returncode == 2:
        raise StartError(message)
    if not ended.stdout:
        raise LongwireError(message)
    return Report(json.loads(ended.stdout))
