"""Verdict logs of runs and simulations."""

from __future__ import annotations

import html
import importlib
import os
from typing import Any, Sequence

from .errors import LongwireError
from .figure import Figure, draw


class Log:
    """A verdict log, as the option ``log`` of :func:`link`, :func:`network` and
    :func:`simulate` writes it: a row for each verdict about a frame.

    A notebook shows its figures. Libraries of data frames read the file:
    ``polars.read_parquet(log.path)``.

    :param path: the file, which ends in ``.csv`` or ``.parquet``.
    :raises LongwireError: if there is no such file, or its name ends otherwise.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: str = os.fspath(path)
        """The file."""
        if not self.path.endswith((".csv", ".parquet")):
            raise LongwireError(f"{self.path}: a log ends in .csv or .parquet")
        if not os.path.isfile(self.path):
            raise LongwireError(f"{self.path}: there is no such file")

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
        """Draws the log, as ``longwire plot`` does.

        :param kind: ``"throughput"``, ``"queue"``, ``"delay"``, ``"delay-cdf"``,
            ``"loss-runs"``, ``"drops"``, or several of them; all that suit the log without it.
        :param other: logs to draw over this one, each from its own first frame.
        :param title: the title in place of the names of the files.
        :param from_: the time after the first frame at which the figure begins, as ``"2s"``.
        :param until: the time at which it ends.
        :param bin: the width of a bin of throughput, as ``"100ms"``.
        :param queue_unit: ``"packets"`` or ``"bytes"``.
        :param width: of the figure, in pixels.
        :param height: of the figure, in pixels.
        :raises FigureError: if the file is no log, or an option does not fit.
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
        """Returns the log as a table of pyarrow, which must be installed."""
        if self.path.endswith(".parquet"):
            return importlib.import_module("pyarrow.parquet").read_table(self.path)
        return importlib.import_module("pyarrow.csv").read_csv(self.path)

    def _repr_html_(self) -> str:
        """Its figures, for Jupyter; their reason, if there are none."""
        try:
            return self.plot()._repr_html_()
        except LongwireError as error:
            return f"<p>{html.escape(self.path)}: {html.escape(str(error))}</p>"
