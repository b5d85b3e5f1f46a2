"""Exceptions of this package."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Mapping, Sequence


_INVALID = re.compile(r"invalid value '.*?' for '--(?P<field>[\w-]+).*?': (?P<reason>.*)", re.DOTALL)
"""The program's message for an invalid value."""

_OPTION = re.compile(r"--(?P<field>[\w-]+): (?P<reason>.*)", re.DOTALL)
"""The program's message for an option that is refused for another reason."""

_UNKNOWN = re.compile(
    r"unexpected argument '--(?P<field>[\w-]+)\S*' found(?:.*?argument exists: '--(?P<near>[\w-]+))?",
    re.DOTALL,
)
"""The program's message for an unknown option, with the nearest known one."""


class LongwireError(Exception):
    """Base of all exceptions of this package."""


class ProgramNotFoundError(LongwireError):
    """The program ``longwire`` was not found."""


class StartError(LongwireError):
    """The link did not start.

    ``message`` is the program's error text, for example that user namespaces are not permitted.
    """

    def __init__(self, message: str) -> None:
        unknown = _UNKNOWN.match(message)
        remedy = f"did you mean --{unknown['near']}?" if unknown and unknown["near"] else None
        if unknown:
            message = f"unknown option --{unknown['field']}" + (f"; {remedy}" if remedy else "")
        super().__init__(message)
        self.message: str = message
        """Message of the program."""
        match = unknown or _INVALID.match(message) or _OPTION.match(message)
        self.field: str | None = match["field"] if match else None
        """The invalid option, such as ``delay``."""
        self.reason: str = match["reason"] if match and not unknown else message
        """Why it was refused."""
        self.remedy: str | None = remedy
        """How to correct it, if known."""

    @classmethod
    def of(cls, problems: Sequence[Mapping[str, Any]]) -> StartError:
        """Returns the exception for problems reported by ``longwire check``."""
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
    """A link specification is invalid."""

    def __init__(self, message: str, field: str, reason: str) -> None:
        super().__init__(message)
        self.field: str | None = field or None
        """The option, such as ``delay``; None for an unknown option."""
        self.reason: str = reason
        """Why its value was refused."""


class EndedError(LongwireError):
    """The run has ended."""


@dataclasses.dataclass(frozen=True)
class Problem:
    """One reason why a change was refused."""

    field: str
    """The option, such as ``set.link.delay``."""
    reason: str
    """Why its value was refused."""
    remedy: str | None
    """How to correct it, if known."""


class RefusedError(LongwireError):
    """A change was refused; nothing was changed."""

    def __init__(self, message: str, problems: Sequence[Problem]) -> None:
        super().__init__(message)
        self.problems: tuple[Problem, ...] = tuple(problems)
        """All problems of the change."""

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> RefusedError:
        """Returns the exception for a response of the control API."""
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
    """A capture could not start, or could not be completed."""

    def __init__(self, field: str, reason: str, remedy: str | None) -> None:
        super().__init__(f"capture: {field}: {reason}" + (f" ({remedy})" if remedy else ""))
        self.field: str = field
        """The invalid argument: ``path``, ``at`` or ``snap``; ``capture`` if the capture process
        failed."""
        self.reason: str = reason
        """Why the capture was refused, or why it ended."""
        self.remedy: str | None = remedy
        """How to correct it, if known."""


class FidelityError(LongwireError):
    """The run did not meet a fidelity requirement."""

    def __init__(self, unmet: Sequence[str]) -> None:
        super().__init__("; ".join(unmet))
        self.unmet: tuple[str, ...] = tuple(unmet)
        """One message per unmet requirement."""
