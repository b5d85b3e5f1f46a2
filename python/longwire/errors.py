"""Exceptions of this package."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Mapping, Sequence


_INVALID = re.compile(r"invalid value '.*?' for '--(?P<field>[\w-]+).*?': (?P<reason>.*)", re.DOTALL)
"""How the program reports a wrong value of an option."""

_OPTION = re.compile(r"--(?P<field>[\w-]+): (?P<reason>.*)", re.DOTALL)
"""How it reports an option that does not fit the others."""

_UNKNOWN = re.compile(
    r"unexpected argument '--(?P<field>[\w-]+)\S*' found(?:.*?argument exists: '--(?P<near>[\w-]+))?",
    re.DOTALL,
)
"""How it reports an option that it does not have, and the nearest one."""


class LongwireError(Exception):
    """Base of all exceptions of this package."""


class ProgramNotFoundError(LongwireError):
    """The program ``longwire`` is neither in the package, nor on PATH."""


class StartError(LongwireError):
    """The link did not start.

    ``message`` is the program's, for example that the system forbids user namespaces.
    """

    def __init__(self, message: str) -> None:
        unknown = _UNKNOWN.match(message)
        remedy = f"did you mean --{unknown['near']}?" if unknown and unknown["near"] else None
        if unknown:
            message = f"there is no option --{unknown['field']}" + (f"; {remedy}" if remedy else "")
        super().__init__(message)
        self.message: str = message
        """The program's message."""
        match = unknown or _INVALID.match(message) or _OPTION.match(message)
        self.field: str | None = match["field"] if match else None
        """The option with a wrong value, as in ``delay``."""
        self.reason: str = match["reason"] if match and not unknown else message
        """The reason why it was refused, without the option."""
        self.remedy: str | None = remedy
        """How to correct it, if the program knows."""

    @classmethod
    def of(cls, problems: Sequence[Mapping[str, Any]]) -> StartError:
        """Returns the exception for the problems of a file, as ``longwire check`` finds them."""
        lines = []
        for found in problems:
            place = f"{found['file']}:{found['line']}:{found['column']}: " if found["line"] else ""
            field = f"{found['field']}: " if found["field"] else ""
            remedy = f" ({found['remedy']})" if found["remedy"] else ""
            lines.append(f"{place or found['file'] + ': '}{field}{found['reason']}{remedy}")
        error = cls("\n".join(lines))
        error.field = problems[0]["field"] or None
        error.reason = problems[0]["reason"]
        error.remedy = problems[0]["remedy"] or None
        return error


class SpecificationError(LongwireError, ValueError):
    """The text of a link is wrong."""

    def __init__(self, message: str, field: str, reason: str) -> None:
        super().__init__(message)
        self.field: str | None = field or None
        """The option, as in ``delay``; None if the text has no such option."""
        self.reason: str = reason
        """The reason why its value was refused."""


class EndedError(LongwireError):
    """The link has ended."""


@dataclasses.dataclass(frozen=True)
class Problem:
    """One reason why a change was refused."""

    field: str
    """The option, as in ``set.link.delay``."""
    reason: str
    """The reason why its value was refused."""
    remedy: str | None
    """How to correct it, if the program knows."""


class RefusedError(LongwireError):
    """A change was refused, and nothing was changed."""

    def __init__(self, message: str, problems: Sequence[Problem]) -> None:
        super().__init__(message)
        self.problems: tuple[Problem, ...] = tuple(problems)
        """All that was wrong with the change."""

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> RefusedError:
        """Returns the exception for an answer of the control API."""
        problems = [
            Problem(found["field"], found["reason"], found.get("remedy"))
            for found in answer.get("problems", [])
        ]
        lines = [str(answer.get("error", "refused"))]
        lines += [f"{found.field}: {found.remedy}" for found in problems if found.remedy]
        return cls("\n".join(lines), problems)

    @property
    def field(self) -> str | None:
        """The option of the first problem."""
        return self.problems[0].field if self.problems else None

    @property
    def reason(self) -> str | None:
        """The reason of the first problem."""
        return self.problems[0].reason if self.problems else None

    @property
    def remedy(self) -> str | None:
        """How to correct the first problem."""
        return self.problems[0].remedy if self.problems else None


class CaptureError(LongwireError):
    """A capture could not begin, or not be written to its end."""

    def __init__(self, field: str, reason: str, remedy: str | None) -> None:
        super().__init__(f"capture: {field}: {reason}" + (f" ({remedy})" if remedy else ""))
        self.field: str = field
        """``path``, ``at``, ``snap``, or ``capture`` for its process."""
        self.reason: str = reason
        """The reason why it was refused, or ended."""
        self.remedy: str | None = remedy
        """How to correct it, if there is a way."""


class FidelityError(LongwireError):
    """The run did not meet a requirement: the emulator was not as exact as demanded."""

    def __init__(self, unmet: Sequence[str]) -> None:
        super().__init__("; ".join(unmet))
        self.unmet: tuple[str, ...] = tuple(unmet)
        """A sentence for each requirement that was not met."""
