"""Links in virtual time: frames as arrays, or as captures."""

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
"""The names of verdicts, by their codes: ``delivered``, and reasons of drops."""


class Results:
    """What became of frames: four columns of the same length.

    The first rows are the frames in their order; rows after them are further deliveries of
    duplicated frames. Each column has the Arrow PyCapsule interface and that of numpy, without a
    copy. For numpy ``verdict`` is the index in :data:`VERDICTS`, and times of dropped frames are 0;
    for Arrow they are null.
    """

    def __init__(self, columns: Sequence[_engine.Column]) -> None:
        frame, verdict, departure_ns, release_ns = columns
        self.frame: _engine.Column = frame
        """The frame of a row, counted from 0 in the order of arrivals."""
        self.verdict: _engine.Column = verdict
        """The code of the verdict, an index in ``VERDICTS``."""
        self.departure_ns: _engine.Column = departure_ns
        """The time at which the last bit left the queue."""
        self.release_ns: _engine.Column = release_ns
        """The time at which the frame left the link."""

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        return f"<longwire results: {len(self)} rows>"

    def columns(self) -> dict[str, _engine.Column]:
        """Returns the columns by name, as data frames are made of."""
        return {
            "frame": self.frame,
            "verdict": self.verdict,
            "departure_ns": self.departure_ns,
            "release_ns": self.release_ns,
        }


class Link:
    """A link as a specification, for simulations in this process.

    ``text`` has ``NAME=VALUE`` pairs between blanks, as in ``"rate=10mbit delay=20ms loss=1%"``;
    options by keyword are added to it: ``Link(rate="10mbit", delay="20ms")``.

    :raises SpecificationError: with the option and the reason, if a value is wrong.
    """

    def __init__(self, text: str = "", *, seed: int = 1, **options: str) -> None:
        words = [text] + [f"{name.replace('_', '-')}={value}" for name, value in options.items()]
        self.seed: int = seed
        """The seed of all random draws: the same seed, the same verdicts."""
        self._specification = _engine.Specification(" ".join(words))

    def __repr__(self) -> str:
        return f"<longwire specification: {self}, seed {self.seed}>"

    def _repr_html_(self) -> str:
        """Its options, for Jupyter."""
        return table(("option", "value"), [*self._specification.given(), ("seed", self.seed)])

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self._specification.given())

    def simulate(self, arrival_ns: Any, length: Any) -> Results:
        """Passes frames through the link, in virtual time.

        :param arrival_ns: times of arrival in nanoseconds, which do not decrease: a list, an
            array of numpy, or a column of polars, pandas or pyarrow.
        :param length: lengths in bytes, with the Ethernet header: one for each frame, or a
            number for all.

        Other threads go on, and Ctrl-C ends it. Frames have no bytes: a queue that
        distinguishes flows sees one, and filters of contents match none.
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

    :param source: a capture (pcap, pcapng, compressed too), or the file of a network.
    :param target: the capture to write.
    :param inputs: of a network: the capture that enters at each port.
    :param outputs: of a network: the capture to write at each port.
    :param options: those of ``longwire simulate``, with ``_`` for ``-``.
    :raises StartError: if an option or a file is wrong.
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
