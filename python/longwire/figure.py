"""Figures of logs and reports in notebooks, drawn by ``longwire plot``."""

from __future__ import annotations

import html
import os
import subprocess
import tempfile
from typing import Any, Mapping, Sequence
from xml.etree import ElementTree

from ._program import program
from .errors import LongwireError, ProgramNotFoundError

SHOWN_MAX = 2 << 20
"""Maximum bytes of an inline figure; larger ones are not stored in the notebook."""

_SVG = "http://www.w3.org/2000/svg"
_ELEMENTS = frozenset({"svg", "g", "title", "rect", "text", "path", "circle", "line"})
_ATTRIBUTES = frozenset(
    "version width height viewBox font-family font-size font-weight x y d r cx cy x1 y1 x2 y2 "
    "points fill fill-opacity stroke stroke-width stroke-opacity stroke-dasharray "
    "stroke-linecap stroke-linejoin text-anchor transform opacity".split()
)


class FigureError(LongwireError):
    """A figure could not be drawn: the file is unreadable, or an option is invalid."""


class Figure:
    """An SVG figure, displayed by notebooks."""

    def __init__(self, svg: str) -> None:
        self.svg: str = svg
        """The SVG text."""

    def __repr__(self) -> str:
        return f"<longwire figure: {len(self.svg)} bytes of SVG>"

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the SVG file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)

    def _repr_html_(self) -> str:
        """Returns the figure as HTML, scaled to the page and restricted to shapes and text, since
        the file is untrusted.
        """
        if len(self.svg) > SHOWN_MAX:
            return (
                f"<p>The figure has {len(self.svg) / 1e6:.1f} MB, more than a notebook should "
                "keep: <code>write(path)</code> writes it to a file.</p>"
            )
        return _safe(self.svg)


def _safe(svg: str) -> str:
    """Returns an SVG without its XML declaration, restricted to shapes and text."""
    root = ElementTree.fromstring(svg)
    _keep_shapes(root)
    root.set("style", "max-width: 100%; height: auto")
    ElementTree.register_namespace("", _SVG)
    return ElementTree.tostring(root, encoding="unicode")


def _keep_shapes(element: ElementTree.Element) -> None:
    for name in set(element.attrib) - _ATTRIBUTES:
        del element.attrib[name]
    for child in list(element):
        if child.tag in {f"{{{_SVG}}}{name}" for name in _ELEMENTS}:
            _keep_shapes(child)
        else:
            element.remove(child)


def draw(
    inputs: Sequence[str | os.PathLike[str]],
    kind: str | Sequence[str] | None,
    options: Mapping[str, Any],
) -> Figure:
    """Draws files with ``longwire plot``.

    :raises FigureError: if a file or an option is refused.
    """
    words = [program(), "plot", "--quiet", *(os.fspath(path) for path in inputs)]
    if kind is not None:
        words.append(f"--panel={kind if isinstance(kind, str) else ','.join(kind)}")
    for name, value in options.items():
        if value is not None:
            words.append(f"--{name.rstrip('_').replace('_', '-')}={value}")
    with tempfile.TemporaryDirectory(prefix="longwire-figure-") as folder:
        target = os.path.join(folder, "figure.svg")
        try:
            ended = subprocess.run(
                [*words, "--output", target],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                check=False,
            )
        except (FileNotFoundError, PermissionError) as error:
            raise ProgramNotFoundError(f"cannot start the program: {error}") from error
        if ended.returncode != 0:
            message = ended.stderr.decode(errors="replace").strip().removeprefix("error: ")
            raise FigureError(message)
        with open(target, encoding="utf-8") as file:
            return Figure(file.read())


def table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Returns an HTML table."""

    def line(cells: Sequence[Any], tag: str) -> str:
        inner = "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells)
        return f"<tr>{inner}</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(names, 'th')}</thead><tbody>{body}</tbody></table>"
