"""Reports of runs, and requirements on their fidelity."""

from __future__ import annotations

import json
import os
import re
import tempfile
from typing import Any, Callable, Mapping, Sequence

from .errors import FidelityError, LongwireError
from .figure import Figure, draw, table

_EXCUSED = frozenset({"late_paused", "late_start"})
"""Artifacts caused by pauses of the machine and by the start, not by the emulator itself."""

_LOST = frozenset(
    {
        "memory",
        "refused",
        "ring_full",
        "too_long",
        "no_carrier",
        "send_failed",
        "unusable",
    }
)
"""Artifacts that count frames lost by the emulator."""

_GRADES = ["not-faithful", "no-frames", "nearly-faithful", "faithful"]
"""Grades of a run, worst first."""

_UNITS_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}

_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": lambda found, wanted: found <= wanted,
    ">=": lambda found, wanted: found >= wanted,
    "<": lambda found, wanted: found < wanted,
    ">": lambda found, wanted: found > wanted,
    "=": lambda found, wanted: found == wanted,
}

_CLAUSE = re.compile(r"(?P<name>[^<>=]+?)\s*(?P<comparison><=|>=|<|>|=)\s*(?P<value>.+)")

_Row = Mapping[str, Any]


class Report:
    """Report of a run or simulation. :attr:`data` is the program's JSON report."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data: Mapping[str, Any] = data
        """JSON value; docs/reference/report.md describes its fields."""

    def __getitem__(self, key: str) -> Any:
        return self.data[key]

    def __repr__(self) -> str:
        return f"<longwire report: {self.data['duration_s']:.3f} s, {self._sentence()}>"

    @property
    def artifacts(self) -> int:
        """Number of artifacts at all ports: frames handled differently from the models."""
        return sum(sum(row["artifacts"].values()) for row in self._measured())

    def _measured(self) -> list[_Row]:
        """Returns the ports: lateness and artifacts are measured there."""
        rows: list[_Row] = self.data["ports"]
        return rows

    def _sentence(self) -> str:
        rows = self.data["links"]
        drops = sum(sum(row["drops"].values()) for row in rows)
        frames = sum(row["packets_in"] for row in rows)
        return f"{frames} frames, {drops} dropped by models, {self.artifacts} artifacts"

    def unmet(self, expression: str) -> list[str]:
        """Returns a message for each condition that does not hold.

        :param expression: as for ``--require``: ``"nearly-faithful,lateness.p99<50us"``.
        :raises ValueError: if the expression is invalid, or the report lacks a measure.
        """
        clauses = [clause.strip() for clause in expression.split(",")]
        grades = [clause for clause in clauses if clause in _GRADES]
        sentences = [grade for grade in grades if not self._meets(grade)]
        return sentences + [
            sentence
            for clause in clauses
            if clause not in _GRADES
            for sentence in _Clause(clause).unmet(self.data)
        ]

    def _meets(self, wanted: str) -> bool:
        found = self.data.get("verdict", {}).get("grade")
        if found is None:
            raise ValueError(f"'{wanted}': a running link or network has no verdict; end it")
        exact = wanted in ("not-faithful", "no-frames")
        return found == wanted or (not exact and _GRADES.index(found) > _GRADES.index(wanted))

    def require(self, expression: str) -> None:
        """Raises :class:`FidelityError` unless all conditions hold.

        :param expression: see :meth:`unmet`.
        """
        unmet = self.unmet(expression)
        if unmet:
            raise FidelityError(unmet)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the report as JSON."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.data, file, indent=2)

    def plot(self, kind: str | Sequence[str] | None = None, *, title: str = "") -> Figure:
        """Draws the report with ``longwire plot``.

        :param kind: ``"counts"``, ``"drops"``, ``"lateness"``, or several of them; default:
            all.
        :param title: title of the figure.
        :raises FigureError: if there are too many links for a figure.
        """
        with tempfile.TemporaryDirectory(prefix="longwire-report-") as folder:
            path = os.path.join(folder, "report.json")
            self.write(path)
            return draw([path], kind, {"title": title or self._sentence()})

    def _repr_html_(self) -> str:
        """Returns tables as HTML, with the figures of :meth:`plot`."""
        links = [
            (row["name"], row["packets_in"], row["packets_out"], sum(row["drops"].values()))
            for row in self.data["links"]
        ]
        ports = [
            (
                port["name"],
                sum(port["artifacts"].values()),
                *(f"{port['lateness_us'][part]:.1f}" for part in ("p50", "p99", "max")),
            )
            for port in self._measured()
        ]
        tables = table(("link", "frames in", "frames out", "drops"), links) + table(
            ("port", "artifacts", "lateness p50 (us)", "p99 (us)", "max (us)"), ports
        )
        try:
            return tables + self.plot()._repr_html_()
        except LongwireError:
            # Keep the tables if the program is missing, or there are too many links to
            # draw.
            return tables


class _Clause:
    """A condition: name, comparison and value."""

    def __init__(self, text: str) -> None:
        match = _CLAUSE.fullmatch(text)
        if match is None:
            raise ValueError(
                f"'{text}' has no comparison; write a name, a comparison (< <= = >= >) and a value"
            )
        self.text = text
        self.name = match["name"]
        self.value = match["value"].strip()
        self.holds = _COMPARISONS[match["comparison"]]

    def unmet(self, data: Mapping[str, Any]) -> list[str]:
        """Returns a message for each port or link that does not meet the condition."""
        family, _, part = self.name.partition(".")
        if family in ("pauses", "stops"):
            if family not in data:
                raise ValueError(f"'{self.text}': '{family}' is not in this report")
            return self._unmet_by_run(data[family], part)
        rows = list(data.get("ports", [])) + list(data["links"])
        found = [(row, _measure(row, self.name)) for row in rows]
        measured = [(row, value) for row, value in found if value is not None]
        if not measured:
            prefix, measure = self._of_one(rows)
            measured = [
                (row, value)
                for row in rows
                if row["name"] == prefix and (value := _measure(row, measure)) is not None
            ]
        if not measured:
            raise ValueError(f"'{self.text}': '{self.name}' is not in this report")
        sentences = (self._sentence(row, value) for row, value in measured)
        return [sentence for sentence in sentences if sentence is not None]

    def _of_one(self, rows: list[_Row]) -> tuple[str, str]:
        """Splits a name that starts with a port or link: ``link.up.drops``."""
        names = [row["name"] for row in rows if self.name.startswith(f"{row['name']}.")]
        if names:
            # For a port `a` and a direction `a.up`, the longer name wins.
            name = max(names, key=len)
            return name, self.name[len(name) + 1 :]
        # As on the command line, `up.` and `down.` denote directions of the link.
        short = {f"{side}.": f"link.{side}" for side in ("up", "down")}
        for prefix, name in short.items():
            if self.name.startswith(prefix):
                return name, self.name[len(prefix) :]
        return "", self.name

    def _unmet_by_run(self, standstills: Mapping[str, float], part: str) -> list[str]:
        key = part if part == "count" else f"{part}_us"
        if key not in standstills:
            raise ValueError(f"'{self.text}': pauses and stops have only count, max and total")
        factor = 1 if part == "count" else 1e3
        wanted = _count(self.text, self.value) if part == "count" else _time(self.text, self.value)
        found = standstills[key] * factor
        return [] if self.holds(found, wanted) else [f"{self.text}: the run had {found:g}"]

    def _sentence(self, row: _Row, found: float) -> str | None:
        name = row["name"]
        if "lateness" in self.name:
            if self.holds(found, _time(self.text, self.value)):
                return None
            return f"{self.text}: {name} had {found / 1e3:g}us"
        if not self.value.endswith("%"):
            if self.holds(found, _count(self.text, self.value)):
                return None
            return f"{self.text}: {name} had {found:g}"
        frames = _frames(row)
        share = found / max(frames, 1)
        if self.holds(share, _share(self.text, self.value)):
            return None
        return f"{self.text}: {name} had {share:.3%}, {found:g} of {frames} frames"


def _frames(row: _Row) -> int:
    """Returns the number of frames to which percentages refer."""
    artifacts = row.get("artifacts", {})
    lost: int = artifacts.get("ring_full", 0) + artifacts.get("too_long", 0)
    most: int = max(row["packets_in"], row["packets_out"])
    return most + lost


def _measure(row: _Row, name: str) -> float | None:
    """Returns a lateness in nanoseconds, or a count; None if it is missing."""
    family, _, part = name.partition(".")
    if family in ("lateness", "lateness-own"):
        found = row.get(f"{family.replace('-', '_')}_us", {}).get(part)
        return None if found is None else float(found) * 1e3
    counts: Mapping[str, int] = row.get("drops" if family == "drops" else "artifacts", {})
    if family in ("artifacts", "drops"):
        if part:
            return counts.get(part)
        return sum(counts.values()) if counts else None
    if name == "artifacts-own":
        own = (count for kind, count in counts.items() if kind not in _EXCUSED)
        return sum(own) if counts else None
    if name == "artifacts-lost":
        lost = (count for kind, count in counts.items() if kind in _LOST)
        return sum(lost) if counts else None
    found = row.get(name)
    return float(found) if isinstance(found, (int, float)) else None


def _count(clause: str, text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"'{clause}': '{text}' is not a count; write a count such as 5")
    return int(text)


def _share(clause: str, text: str) -> float:
    try:
        return float(text[:-1]) / 100
    except ValueError:
        raise ValueError(f"'{clause}': '{text}' is not a share such as 0.1%") from None


def _time(clause: str, text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]+)", text)
    if match is None or match[2] not in _UNITS_NS:
        raise ValueError(f"'{clause}': '{text}' is not a time such as 50us")
    return float(match[1]) * _UNITS_NS[match[2]]
