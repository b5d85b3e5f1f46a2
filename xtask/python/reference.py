"""Generates the Python package's API page from its docstrings, or checks it.

``python reference.py PAGE`` writes the page; ``python reference.py --check PAGE`` compares it
with a newly generated one.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Iterator

import griffe

SOURCES = Path(__file__).resolve().parents[2] / "python"

WIDTH = 88
"""Maximum line length of a signature."""

GROUPS = {
    "Live links and networks": (
        "link network LiveLink LiveNetwork Run Node Direction Capture".split()
    ),
    "Virtual time": "Link Results VERDICTS simulate".split(),
    "Reports, logs and figures": "Report Log Figure".split(),
    "Exceptions": (
        "LongwireError StartError ProgramNotFoundError SpecificationError RefusedError Problem "
        "FidelityError CaptureError FigureError EndedError"
    ).split(),
}

CONSTRUCTED = {"Link", "Log", "Report"}
"""Classes that users instantiate; the package itself instantiates other classes."""

HEAD = """# Python API

<!-- Generated from the docstrings: python xtask/python/reference.py docs/reference/python.md -->

This page lists all names of the package `longwire`; [the how-to](../howto/python.md) begins with
the common cases. Link options such as `delay="20ms"` are those of the
[command line](options.md) and of the [models](../models/README.md), with `_` for `-`.
"""


def main() -> None:
    """Writes or checks the page."""
    *flags, path = sys.argv[1:]
    page = Path(path)
    text = "\n".join(lines()).rstrip() + "\n"
    if "--check" not in flags:
        page.write_text(text, encoding="utf-8")
    elif page.read_text(encoding="utf-8") != text:
        sys.exit(f"{page} is out of date; run python xtask/python/reference.py {page}")


def lines() -> Iterator[str]:
    """Yields the lines of the page."""
    package = griffe.load(
        "longwire", search_paths=[str(SOURCES)], docstring_parser="sphinx", allow_inspection=False
    )
    listed = [name for names in GROUPS.values() for name in names]
    if sorted(listed) != sorted(map(str, package.exports or [])):
        differing = set(listed).symmetric_difference(map(str, package.exports or []))
        sys.exit(f"GROUPS and longwire.__all__ differ: {', '.join(sorted(differing))}")
    yield HEAD
    for title, names in GROUPS.items():
        yield f"## {title}\n"
        for name in names:
            found = package[name]
            yield from item(found.final_target if found.is_alias else found)


def item(found: griffe.Object) -> Iterator[str]:
    """Yields the section for an exported name."""
    yield f"### {found.name}\n"
    if isinstance(found, griffe.Function):
        yield from signature(f"longwire.{found.name}", found)
    elif isinstance(found, griffe.Class) and found.name in CONSTRUCTED:
        yield from signature(f"longwire.{found.name}", found.members["__init__"])
    elif isinstance(found, griffe.Class):
        bases = [base for base in map(str, found.bases) if base != "object"]
        inside = f"({', '.join(bases)})" if bases else ""
        yield f"```python\nclass longwire.{found.name}{inside}\n```\n"
    elif isinstance(found, griffe.Attribute):
        yield f"```python\nlongwire.{found.name}: {found.annotation}\n```\n"
    yield from documentation(found)
    if isinstance(found, griffe.Class):
        for member in sorted(members(found), key=is_function):
            yield from member_lines(member)


def members(owner: griffe.Class) -> list[griffe.Object]:
    """Returns the public members defined by a class itself, without class methods."""
    own = [member for member in owner.members.values() if not member.is_alias]
    public = [member for member in own if not member.name.startswith("_")]
    return [member for member in public if "classmethod" not in member.labels]


def is_function(member: griffe.Object) -> bool:
    """Returns whether a member is a function."""
    return isinstance(member, griffe.Function)


def member_lines(member: griffe.Object) -> Iterator[str]:
    """Yields the part of a class section about a member."""
    if isinstance(member, griffe.Function):
        yield from signature(member.name, member)
    elif member.annotation is None:
        sys.exit(f"{member.path} has no annotation")
    else:
        yield f"```python\n{member.name}: {member.annotation}\n```\n"
    yield from documentation(member)


def signature(name: str, function: griffe.Function) -> Iterator[str]:
    """Yields a function's signature as a code block."""
    words: list[str] = []
    for parameter in function.parameters:
        if parameter.name == "self":
            continue
        star = {"variadic positional": "*", "variadic keyword": "**"}.get(str(parameter.kind.value), "")
        if parameter.kind is griffe.ParameterKind.keyword_only and "*" not in words:
            words.append("*")
        text = f"{star}{parameter.name}"
        if parameter.annotation is not None:
            text += f": {parameter.annotation}"
        if parameter.default is not None and not star:
            text += f" = {parameter.default}"
        words.append(text)
    result = "" if function.name == "__init__" else f" -> {function.returns}"
    line = f"{name}({', '.join(words)}){result}"
    if len(line) > WIDTH:
        inner = "".join(f"    {word},\n" for word in words)
        line = f"{name}(\n{inner}){result}"
    yield f"```python\n{line}\n```\n"


def documentation(found: griffe.Object) -> Iterator[str]:
    """Yields a docstring as Markdown."""
    if found.docstring is None:
        sys.exit(f"{found.path} has no docstring")
    for section in found.docstring.parsed:
        if section.kind is griffe.DocstringSectionKind.text:
            yield f"{markdown(section.value)}\n"
        elif section.kind is griffe.DocstringSectionKind.parameters:
            for entry in section.value:
                yield f"* `{entry.name}`: {one_line(entry.description)}"
            yield ""
        elif section.kind is griffe.DocstringSectionKind.raises:
            for entry in section.value:
                yield f"* Raises `{entry.annotation}` {one_line(entry.description)}"
            yield ""


def markdown(text: str) -> str:
    """Converts docstring markup to Markdown."""
    parts = re.split(r"::\n\n((?:    .*\n?|\n)+)", text)
    for index, part in enumerate(parts):
        if index % 2:
            code = "\n".join(line[4:] for line in part.rstrip().splitlines())
            parts[index] = f":\n\n```python\n{code}\n```\n\n"
        else:
            parts[index] = inline(part)
    return "".join(parts).rstrip()


def inline(text: str) -> str:
    """Converts marked words to Markdown."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
    return text.replace("``", "`")


def one_line(text: str) -> str:
    """Returns the text of a list entry."""
    return inline(" ".join(text.split()))


if __name__ == "__main__":
    main()
