"""Describe a finding in a policy file: its code, exactly where it is, what is wrong, and how to write it right.

``docs/codes.md`` explains the codes. A code is never given another meaning and never used again after it is gone.
``P3xx`` up to P349 concern one file; from P350 on they concern several files together.
"""

from __future__ import annotations

import difflib
import enum
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from maintainer.errors import ProjectError
from maintainer.errors.foreign_text import settings_without_secrets, without_secrets

PROJECT_FILE = "maintainer.yml"


class Severity(enum.StrEnum):
    """An error makes a file invalid; a warning does so only with ``--strict``."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, order=True)
class SourceSpan:
    """A stretch of text. Lines and columns count from 1, columns in characters; the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


START_OF_FILE = SourceSpan(1, 1, 1, 1)
"""Where a finding about the file as a whole points."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding in one file; sorts by file, line, column and code.

    ``file`` is a posix path relative to the project. ``message`` is one line without a full stop. ``help`` is
    the way out, None where the message says it all. The codes are in
    ``maintainer.policy.diagnostics``.
    """

    code: str
    severity: Severity
    message: str
    file: str
    span: SourceSpan
    help: str | None = None

    def __post_init__(self) -> None:
        # Both texts quote what files hold: whatever that is, they stay one line and move no cursor.
        cleaned = text_of(self.file)
        object.__setattr__(self, "message", _one_line(cleaned(self.message)))
        object.__setattr__(self, "help", self.help and _one_line(cleaned(self.help)))

    @property
    def sort_key(self) -> tuple[str, int, int, str, str]:
        """Order of a report: by place, then by code; the message makes the order total."""
        return (self.file, self.span.line, self.span.column, self.code, self.message)

    @property
    def place(self) -> str:
        """Where it was found: file, line and column."""
        return f"{self.file}:{self.span.line}:{self.span.column}"

    @property
    def is_error(self) -> bool:
        """Whether this finding alone makes the file invalid."""
        return self.severity is Severity.ERROR

    def __lt__(self, other: Diagnostic) -> bool:
        return self.sort_key < other.sort_key

    def __str__(self) -> str:
        return f"{self.place}: {self.severity.value}[{self.code}] {self.message}"


def text_of(file: str) -> Callable[[str], str]:
    """Return what takes the secrets out of a text that quotes this file."""
    return settings_without_secrets if file.rpartition("/")[2] == PROJECT_FILE else without_secrets


def _one_line(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that ``word`` was most likely meant to be, or None if none is near.

    Case does not matter. Words over 100 characters have no near name: comparing costs time that grows with
    their length, and nobody mistypes that much.
    """
    if len(word) > 100:
        return None
    by_folded = {candidate.casefold(): candidate for candidate in sorted(candidates)}
    matches = difflib.get_close_matches(word.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[matches[0]] if matches else None


def did_you_mean(word: str, near: str) -> str:
    """Return the help that offers ``near`` for ``word``, and names a letter of another script: both may look alike."""
    odd = next((letter for letter in word if not letter.isascii() and letter not in near), None)
    if odd is None:
        return f"did you mean `{near}`?"
    name = unicodedata.name(odd, "").lower()
    return f"did you mean `{near}`? What is written has the character U+{ord(odd):04X}" + (f", {name}" if name else "")


def nearest_table(word: str, names: Iterable[str]) -> str | None:
    """Return the table that ``word`` was most likely meant to be, or None if none is near.

    People call a table by the end of its name, ``orders`` for ``lake.sales.orders`` or ``/data/sales/orders``: where
    that fits one table only, it is the one. Otherwise see ``nearest``.
    """
    known = sorted(names)
    ends = tuple(separator + word.casefold() for separator in "./\\")
    matches = [name for name in known if name.casefold().endswith(ends)] if word else []
    return matches[0] if len(matches) == 1 else nearest(word, known)


def refuse_first(findings: Iterable[Diagnostic], code: str | None = None) -> None:
    """Raise the first finding, if there is one, as an error of the project.

    Raises:
        ProjectError: With this code, or with the finding's own.
    """
    for finding in findings:
        where = f"{finding.file}:{finding.span.line}"
        raise ProjectError(finding.message, code=code or finding.code, where=where, help=finding.help)
