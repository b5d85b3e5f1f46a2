"""Exceptions of this package."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Mapping, Sequence


_INVALID = re.compile(r"invalid value '.*?' for '--(?P<field>[\w-]+).*?': (?P<reason>.*)", re.DOTALL)
"""How the program reports a wrong value of an option."""


class LongwireError(Exception):
    """Base of all exceptions of this package."""


class ProgramNotFoundError(LongwireError):
    """The program ``longwire`` is neither in the package, nor on PATH."""


class StartError(LongwireError):
    """The link did not start.

    ``message`` is the program's, for example that the system forbids user namespaces.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        match = _INVALID.match(message)
        self.field: str | None = match["field"] if match else None
        """The option with a wrong value, as in ``delay``."""
        self.reason: str = match["reason"] if match else message


class SpecificationError(LongwireError, ValueError):
    """The text of a link is wrong."""

    def __init__(self, message: str, field: str, reason: str) -> None:
        super().__init__(message)
        self.field = field or None
        """The option, as in ``delay``; None if the text has no such option."""
        self.reason = reason


class EndedError(LongwireError):
    """The link has ended."""


@dataclasses.dataclass(frozen=True)
class Problem:
    """One reason why a change was refused."""

    field: str
    """The option, as in ``set.link.delay``."""
    reason: str
    remedy: str | None
    """How to correct it, if the program knows."""


class RefusedError(LongwireError):
    """A change was refused, and nothing was changed."""

    def __init__(self, message: str, problems: Sequence[Problem]) -> None:
        super().__init__(message)
        self.problems = tuple(problems)

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


class FidelityError(LongwireError):
    """The run did not meet a requirement: the emulator was not as exact as demanded."""

    def __init__(self, unmet: Sequence[str]) -> None:
        super().__init__("; ".join(unmet))
        self.unmet = tuple(unmet)
