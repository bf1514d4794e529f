"""Describe a finding in a policy file: its code, exactly where it is, what is wrong, and how to write it right.

``docs/codes.md`` explains the codes. A code is never given another meaning and never used again after it is gone.
``P3xx`` up to P349 concern one file; from P350 on they concern several files together.
"""

from __future__ import annotations

import difflib
import enum
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from maintainer.errors.foreign_text import without_secrets

READING: dict[str, str] = {
    "Y101": "the file cannot be read",
    "Y102": "not a regular file, or reached through a link",
    "Y103": "the file is larger than 256 KiB",
    "Y104": "the file is not UTF-8",
    "Y105": "a control character",
    "Y106": "a tab",
    "Y107": "not YAML",
    "Y108": "a duplicate key",
    "Y109": "an anchor, an alias or a merge key",
    "Y110": "a tag",
    "Y111": "several documents in one file",
    "Y112": "the file is empty",
    "Y113": "the file is not a map",
    "Y114": "a key that is not text",
    "Y115": "nested too deeply",
    "Y116": "too many values",
    "Y117": "a number that can be read in two ways",
    "Y118": "a number that is too large",
    "Y119": "infinity or not-a-number",
    "Y120": "text that must be quoted",
    "Y121": "a second `: ` on one line",
    "Y122": "a YAML directive",
    "Y123": "a secret in a policy",
    "Y124": "a space that YAML does not accept",
    "Y125": "typographic quotes around a text",
}

SCHEMA: dict[str, str] = {
    "P201": "unknown key",
    "P202": "missing key",
    "P203": "wrong type",
    "P204": "not one of the allowed values",
    "P205": "not written in the right form",
    "P206": "outside the allowed range",
    "P207": "an item twice in a list",
    "P208": "a key that does not belong in this file",
    "P209": "unknown version of the format",
}

MEANING: dict[str, str] = {
    "P301": "a decimal unit that Spark reads as binary",
    "P302": "minFileSize is larger than maxFileSize",
    "P303": "compacted files may count as small again",
    "P304": "retention below seven days",
    "P305": "retention below a consumer's lag",
    "P306": "Z-order columns",
    "P307": "a value out of range",
    "P308": "a window that never opens or is unclear",
    "P309": "an environment variable in a policy",
    "P310": "a partition predicate that cannot be used",
    "P311": "unknown expectation",
    "P313": "not a date",
    "P314": "unknown time zone",
    "P315": "a table property that another key manages",
    "P316": "an expectation that cannot be run",
    "P317": "a consumer without maxLag or checkpoint",
    "P318": "a value that Delta would refuse",
    "P319": "rewrites that exclude each other",
    "P320": "a table property that keeps too little",
    "P321": "a table property that Delta does not have",
    "P322": "a size without a unit",
    "P323": "a switch without a value",
    "P324": "a rule by size that sets what tables are selected by",
}

TITLES: dict[str, str] = {**READING, **SCHEMA, **MEANING}
"""Every code of a single file with its title."""

CROSS_FILE: dict[str, str] = {
    "P350": "two files for one table",
    "P351": "unknown profile",
    "P352": "two profiles with one name",
    "P353": "rules of one priority disagree",
    "P354": "an environment variable cannot be used",
    "P355": "a folder that is a link",
    "P357": "a rule that reaches no table",
    "P358": "a rule whose settings are all replaced",
    "P359": "an address that cannot be notified",
    "P360": "a policy test fails",
    "P361": "a policy test of a table without a policy",
    "P370": "a name that is not a setting of Spark",
    "P371": "a secret in the settings of Spark",
    "P372": "not a Maven package",
    "P380": "`state` names the ledger",
    "P381": "a state on storage that is not supported",
    "P385": "a rule that cannot manage tables",
    "P386": "a rule that manages tables, and no place to look for them",
    "P387": "a rule that manages tables elsewhere",
    "P388": "a table that is a whole bucket or disk",
    "P389": "a pattern where one table is named",
    "P390": "a name with too many parts",
    "P391": "a table within another one",
    "P392": "a look-alike or invisible character",
    "P393": "a suspension that is over",
    "P394": "a file that is not read",
    "P395": "a `~` or a variable that is not filled in",
    "P396": "an address that hardly leads to a table",
}


class Severity(str, enum.Enum):
    """An error makes a file invalid; a warning does so only with ``--strict``."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of text. Lines and columns count from 1, columns in characters; the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


START_OF_FILE = Span(1, 1, 1, 1)
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
    span: Span
    help: str | None = None

    def __post_init__(self) -> None:
        # Both texts quote what files hold: whatever that is, they stay one line and move no cursor.
        object.__setattr__(self, "message", _one_line(without_secrets(self.message)))
        object.__setattr__(self, "help", self.help and _one_line(without_secrets(self.help)))

    @property
    def sort_key(self) -> tuple[str, int, int, str, str]:
        """Order of a report: by place, then by code; the message makes the order total."""
        return (self.file, self.span.line, self.span.column, self.code, self.message)

    @property
    def is_error(self) -> bool:
        """Whether this finding alone makes the file invalid."""
        return self.severity is Severity.ERROR

    def __lt__(self, other: Diagnostic) -> bool:
        return self.sort_key < other.sort_key

    def __str__(self) -> str:
        return f"{self.file}:{self.span.line}:{self.span.column}: {self.severity.value}[{self.code}] {self.message}"


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
