"""Verdict logs of runs and simulations."""

from __future__ import annotations

import html
import importlib
import os
from typing import Any, Sequence

from .errors import LongwireError
from .figure import Figure, draw


class Log:
    """A verdict log, written by the option ``log`` of :func:`link`, :func:`network` and
    :func:`simulate`: one row per verdict.

    Notebooks display its figures. Data frame libraries read the file:
    ``polars.read_parquet(log.path)``.

    :param path: file with the suffix ``.csv`` or ``.parquet``.
    :raises LongwireError: if the file does not exist, or has another suffix.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: str = os.fspath(path)
        """Path of the file."""
        if not self.path.endswith((".csv", ".parquet")):
            raise LongwireError(f"{self.path}: not a .csv or .parquet file")
        if not os.path.isfile(self.path):
            raise LongwireError(f"{self.path}: no such file")

    def __repr__(self) -> str:
        return f"<longwire log {self.path}>"

    def plot(
        self,
        kind: str | Sequence[str] | None = None,
        *,
        other: Sequence[Log] = (),
        title: str | None = None,
        from_: str | None = None,
        until: str | None = None,
        bin: str | None = None,
        queue_unit: str | None = None,
        width: int | None = None,
        height: int | None = None,
    ) -> Figure:
        """Draws the log with ``longwire plot``.

        :param kind: ``"throughput"``, ``"queue"``, ``"delay"``, ``"delay-cdf"``,
            ``"loss-runs"``, ``"drops"``, or several of them; default: all that apply.
        :param other: logs to overlay, each relative to its own first frame.
        :param title: title; default: the file names.
        :param from_: start of the figure, relative to the first frame, such as ``"2s"``.
        :param until: end of the figure.
        :param bin: bin width of throughput, such as ``"100ms"``.
        :param queue_unit: ``"packets"`` or ``"bytes"``.
        :param width: width in pixels.
        :param height: height in pixels.
        :raises FigureError: if the file is not a log, or an option is invalid.
        """
        options = {
            "title": title,
            "from": from_,
            "until": until,
            "bin": bin,
            "queue_unit": queue_unit,
            "width": width,
            "height": height,
        }
        return draw([self.path, *(log.path for log in other)], kind, options)

    def to_arrow(self) -> Any:
        """Returns the log as a pyarrow table; needs pyarrow."""
        if self.path.endswith(".parquet"):
            return importlib.import_module("pyarrow.parquet").read_table(self.path)
        return importlib.import_module("pyarrow.csv").read_csv(self.path)

    def _repr_html_(self) -> str:
        """Returns the figures as HTML, or why there are none."""
        try:
            return self.plot()._repr_html_()
        except LongwireError as error:
            return f"<p>{html.escape(self.path)}: {html.escape(str(error))}</p>"
